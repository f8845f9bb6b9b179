//! The table compared with a simple model.

use super::*;
use bentpipe_base::{Addr, Flags, Packet};
use proptest::prelude::*;
use std::collections::BTreeMap;

const LIMITS: Limits = Limits {
    flows: 3,
    opening: 4,
    passing: 5,
    memory: bentpipe_base::Size(0),
    per_flow: bentpipe_base::Size(0),
    reports: 0,
};

fn entry(host: u32, flags: Flags, at: u64) -> Entry {
    let mut first = Packet { src: Addr(1), dst: Addr(host), sport: 9, dport: 80, ..Packet::default() };
    first.tcp.flags = flags;
    let (key, is_low) = Key::of(&first);
    let mut entry = Entry::new(key, 0, is_low, &first, Instant(at));
    entry.note(0, &first, Instant(at));
    entry
}

#[derive(Clone, Debug)]
enum Op {
    Insert(u32, bool),
    Remove(u32),
    Class(u32, u8),
    Why(u32, usize),
    State(u32, usize),
    Rebuild(u64),
}

fn op() -> impl Strategy<Value = Op> {
    let host = || 0u32..12;
    prop_oneof![
        4 => (host(), any::<bool>()).prop_map(|(h, syn)| Op::Insert(h, syn)),
        2 => host().prop_map(Op::Remove),
        1 => (host(), 0u8..3).prop_map(|(h, c)| Op::Class(h, c)),
        1 => (host(), 0..PassReason::ALL.len()).prop_map(|(h, w)| Op::Why(h, w)),
        1 => (host(), 0..State::ALL.len()).prop_map(|(h, s)| Op::State(h, s)),
        1 => any::<u64>().prop_map(Op::Rebuild),
    ]
}

fn apply(
    table: &mut Table,
    model: &mut BTreeMap<u32, (Class, State, Option<PassReason>)>,
    op: &Op,
    now: u64,
) {
    let id = |table: &Table, host| table.find(&entry(host, Flags::ACK, 0).key);
    match *op {
        Op::Insert(host, is_syn) => {
            let new = entry(host, if is_syn { Flags::SYN } else { Flags::ACK }, now);
            if id(table, host).is_none() && table.has_room(new.class, &LIMITS) {
                table.insert(new);
                model.insert(host, (new.class, new.state, None));
            }
        }
        Op::Remove(host) => {
            let taken = id(table, host).and_then(|id| table.remove(id));
            assert_eq!(taken.is_some(), model.remove(&host).is_some());
        }
        Op::Class(host, class) => {
            let class = [Class::Opening, Class::Accelerated, Class::Passing][usize::from(class)];
            let Some(id) = id(table, host) else { return };
            if table.has_room(class, &LIMITS) {
                table.update(id, |e| e.class = class);
                model.entry(host).and_modify(|m| m.0 = class);
            }
        }
        Op::Why(host, why) => {
            if let Some(id) = id(table, host) {
                table.update(id, |e| e.pass_reason = Some(PassReason::ALL[why]));
                model.entry(host).and_modify(|m| m.2 = Some(PassReason::ALL[why]));
            }
        }
        Op::State(host, state) => {
            if let Some(id) = id(table, host) {
                table.update(id, |e| e.state = State::ALL[state]);
                model.entry(host).and_modify(|m| m.1 = State::ALL[state]);
            }
        }
        Op::Rebuild(key) => table.rebuild(&LIMITS, HashKey(key, !key)),
    }
}

proptest! {
    #[test]
    fn agrees_with_a_model(ops in proptest::collection::vec(op(), 1..200)) {
        let mut table = Table::new(&LIMITS, HashKey(1, 2));
        let mut model = BTreeMap::new();
        for (now, op) in ops.into_iter().enumerate() {
            apply(&mut table, &mut model, &op, now as u64);
            prop_assert_eq!(table.len() as usize, model.len());
            for host in 0..12 {
                let found = table.find(&entry(host, Flags::ACK, 0).key).and_then(|id| table.get(id));
                prop_assert_eq!(found.map(|e| (e.class, e.state, e.pass_reason)), model.get(&host).copied());
            }
            for (i, why) in PassReason::ALL.into_iter().enumerate() {
                let n = model.values().filter(|m| m.2 == Some(why)).count();
                prop_assert_eq!(table.passing[i] as usize, n);
            }
            for (i, state) in State::ALL.into_iter().enumerate() {
                prop_assert_eq!(table.states[i] as usize, model.values().filter(|m| m.1 == state).count());
            }
            for class in [Class::Opening, Class::Accelerated, Class::Passing] {
                let n = model.values().filter(|m| m.0 == class).count();
                prop_assert_eq!(table.count(class) as usize, n);
                let victim = table.victim(class, Instant(1_000_000)).and_then(|id| table.get(id));
                prop_assert!(victim.is_none_or(|e| e.class == class));
                prop_assert_eq!(victim.is_some(), n > 0 && class != Class::Accelerated);
            }
        }
    }
}

#[test]
fn a_protected_handshake_makes_no_room() {
    let mut table = Table::new(&LIMITS, HashKey(1, 2));
    let mut answered = entry(2, Flags::SYN, 0);
    let mut syn_ack = Packet::default();
    syn_ack.tcp.flags = Flags::SYN.with(Flags::ACK);
    answered.note(1, &syn_ack, Instant(0));
    answered.flow = 0;
    let id = table.insert(answered);
    assert_eq!(table.victim(Class::Opening, Instant(1)), None, "its SYN/ACK may carry our scale");
    assert_eq!(table.victim(Class::Opening, Instant::ZERO + PROTECTED), Some(id));
    let mut unanswered = entry(3, Flags::SYN, 0);
    unanswered.flow = 1;
    let unanswered = table.insert(unanswered);
    assert_eq!(table.victim(Class::Opening, Instant(1)), Some(unanswered));
}

#[test]
fn one_sided_connections_make_room_first() {
    let mut table = Table::new(&LIMITS, HashKey(1, 2));
    let mut one_sided = entry(2, Flags::ACK, 0);
    for at in 0..20 {
        one_sided.note(0, &Packet::default(), Instant(100 + at));
    }
    let id = table.insert(one_sided);
    table.insert(entry(3, Flags::ACK, 0));
    // eight draws of two members miss one of them once in 128 times
    let hits = (0..100).filter(|_| table.victim(Class::Passing, Instant(500)) == Some(id)).count();
    assert!(hits > 90, "{hits}");
}

#[test]
fn draws_are_even_and_depend_on_the_secret() {
    let [mut table, other] = [HashKey(1, 2), HashKey(3, 4)].map(|key| Table::new(&LIMITS, key));
    let keys: Vec<Key> = (0..10_000).map(|host| entry(host, Flags::SYN, 0).key).collect();
    let low = keys.iter().filter(|k| table.draw(**k, 7) < u32::MAX / 10).count();
    assert!((880..1120).contains(&low), "{low}: 4 sigma are 120");
    let both =
        keys.iter().filter(|k| table.draw(**k, 7) < u32::MAX / 10 && other.draw(**k, 7) < u32::MAX / 10);
    assert!((60..140).contains(&both.count()));
    table.insert(entry(5, Flags::SYN, 0));
    assert_eq!(table.draw(keys[5], 7), table.draw(keys[5], 7), "what is in the table does not matter");
}
