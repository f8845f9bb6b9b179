//! With any parameters: no panic, every packet accounted for, arrivals in order unless packets may overtake,
//! and additional observations and calls change nothing.

mod rig;
mod strategies;

use bentpipe_base::trace::DropCause;
use bentpipe_base::{Dscp, Duration, Ecn, Instant, Packet, Purpose, Size, World};
use bentpipe_link::{
    Access, Capacity, CapacityTrace, Change, Channel, Codel, Dama, DirectionSpec, Discipline, Dynamics,
    Errors, FqCodel, GilbertElliott, Handover, IdleRelease, Longer, LossDraw, Mtu, Orbit, Outages, Pass,
    Queue, Recorded, Slots,
};
use proptest::option::of;
use proptest::prelude::*;
use rig::{Fates, Rig, chance, rate};
use strategies::{bps, decibel, duration, fade, instant, probability};

fn buffer() -> impl Strategy<Value = Capacity> {
    prop_oneof![
        (0_u32..20).prop_map(Capacity::Packets),
        (0_u64..20_000).prop_map(|b| Capacity::Bytes(Size(b)))
    ]
}

fn change() -> impl Strategy<Value = (Instant, Change)> {
    let parts =
        (of(bps()), of(duration()), of(buffer()), of(probability()), of(probability()), of(any::<bool>()));
    (instant(), parts).prop_map(|(at, (bps, delay, buffer, loss, ber, up))| {
        (at, Change { rate: bps.map(rate), delay, buffer, loss, ber, up })
    })
}

fn capacity() -> impl Strategy<Value = CapacityTrace> {
    let points = prop::collection::vec((instant(), of(bps())), 0..5);
    let steps = (points, of(duration())).prop_map(|(mut points, repeat)| {
        points.sort_by_key(|p| p.0);
        let points = points.into_iter().map(|(at, bps)| (at, bps.map(rate))).collect();
        CapacityTrace::Steps { points, repeat }
    });
    let at = prop::collection::vec(0_u64..200_000_000, 0..9);
    let opportunities = (at, duration(), 0_u64..3000).prop_map(|(mut at, period, size)| {
        at.sort_unstable();
        let at = at.into_iter().map(Duration).collect();
        CapacityTrace::Opportunities { at, period, size: Size(size) }
    });
    prop_oneof![steps, opportunities]
}

fn recorded<T: core::fmt::Debug + Copy + 'static>(
    values: BoxedStrategy<T>,
) -> impl Strategy<Value = Recorded<T>> {
    (prop::collection::vec((instant(), values), 0..5), of(duration())).prop_map(|(mut points, repeat)| {
        points.sort_by_key(|p| p.0);
        Recorded { points: points.into(), repeat }
    })
}

fn orbit() -> impl Strategy<Value = Orbit> {
    let pass = (decibel(), decibel(), duration()).prop_map(|(km, deg, every)| {
        Orbit::Pass(Pass { altitude_km: km * 1000.0, min_elevation_deg: deg, every, pace: 1.0 })
    });
    let handover = prop_oneof![
        (duration(), duration()).prop_map(|(a, b)| Handover::Outage(a, b)),
        (probability(), duration()).prop_map(|(p, t)| Handover::Loss(p, t)),
        Just(Handover::Seamless),
    ];
    let times = (duration(), duration(), duration(), duration(), duration(), duration());
    let slots =
        (times, of((bps(), bps())), handover, any::<bool>()).prop_map(|(times, rates, handover, reorder)| {
            let (period, offset, low, high, jitter, jitter_step) = times;
            let rate = rates.map(|(a, b)| (rate(a), rate(b)));
            let pair = "pair".to_owned();
            Orbit::Slots(Slots {
                period,
                offset,
                delay: (low, high),
                pair,
                jitter,
                jitter_step,
                rate,
                handover,
                reorder,
            })
        });
    prop_oneof![pass, slots]
}

fn access() -> impl Strategy<Value = Access> {
    prop_oneof![
        (duration(), duration(), of(bps())).prop_map(|(frame, latency, free)| Access::Dama(Dama {
            frame,
            latency,
            free: free.map(rate)
        })),
        (duration(), duration()).prop_map(|(idle, setup)| Access::IdleRelease(IdleRelease { idle, setup })),
    ]
}

fn dynamics() -> impl Strategy<Value = Dynamics> {
    let bursts = (duration(), duration(), probability(), probability())
        .prop_map(|(good, bad, loss_good, loss_bad)| GilbertElliott { good, bad, loss_good, loss_bad });
    let outages = (duration(), any::<bool>(), duration(), duration())
        .prop_map(|(every, random, shortest, longest)| Outages { every, random, shortest, longest });
    let changes = prop::collection::vec(change(), 0..4);
    let recorded = (of(recorded(duration().boxed())), of(recorded(probability().boxed())));
    (changes, of(capacity()), recorded, of(orbit()), of(fade()), of(bursts), of(outages), of(access()))
        .prop_map(|(changes, capacity, (delay, loss), orbit, fade, bursts, outages, access)| Dynamics {
            changes,
            capacity,
            delay,
            loss,
            orbit,
            fade,
            bursts,
            outages,
            access,
        })
}

fn base() -> impl Strategy<Value = DirectionSpec> {
    let longer = prop_oneof![Just(Longer::Refuse), Just(Longer::Fragment)];
    let mtu = (prop_oneof![8 => 68_u16..2000, 1 => any::<u16>()], longer)
        .prop_map(|(bytes, longer)| Mtu { bytes, longer });
    let draw = prop_oneof![Just(LossDraw::Packet), Just(LossDraw::Gap)];
    (bps(), duration(), 0_u64..50, (probability(), draw), probability(), of(mtu)).prop_map(
        |(bps, delay, framing, (loss, loss_draw), ber, mtu)| DirectionSpec {
            rate: rate(bps),
            delay,
            framing: Size(framing),
            loss,
            loss_draw,
            ber,
            mtu,
            ..rig::base()
        },
    )
}

/// Gap to the previous packet, and size.
fn packets() -> impl Strategy<Value = Vec<(u64, u32)>> {
    let gap = prop_oneof![4 => Just(0), 8 => 1_000_u64..20_000_000, 1 => 100_000_000_u64..800_000_000];
    prop::collection::vec((gap, 40_u32..3000), 1..60)
}

const END: Instant = Instant(20_000_000_000);

/// Actions of a user, each after a gap from the previous one.
#[derive(Clone, Copy, Debug)]
enum Act {
    Change(Change),
    Outage(Duration),
    Reset,
}

fn acts() -> impl Strategy<Value = Vec<(u64, Act)>> {
    let act = prop_oneof![
        4 => change().prop_map(|(_, change)| Act::Change(change)),
        1 => duration().prop_map(Act::Outage),
        2 => Just(Act::Reset),
    ];
    prop::collection::vec((0_u64..200_000_000, act), 0..8)
}

/// An input of a link.
#[derive(Clone, Copy)]
enum Step {
    Disturb,
    Act(Act),
    Packet(u64, u32),
}

/// The sums of gaps.
fn times<T: Copy>(gaps: &[(u64, T)]) -> impl Iterator<Item = (u64, T)> {
    gaps.iter().scan(0, |at, &(gap, what)| {
        *at += gap;
        Some((*at, what))
    })
}

/// Runs the rig with actions of users, and with additional calls and observations after the given gaps, and
/// counts packets.
fn run(
    rig: Rig,
    packets: &[(u64, u32)],
    acts: &[(u64, Act)],
    disturb: &[(u64, ())],
) -> (Fates, (usize, usize)) {
    run_until(END, rig, packets, acts, disturb)
}

/// Like `run`, and continues until `end` at least.
fn run_until(
    end: Instant,
    mut rig: Rig,
    packets: &[(u64, u32)],
    acts: &[(u64, Act)],
    disturb: &[(u64, ())],
) -> (Fates, (usize, usize)) {
    let mut steps: Vec<(u64, Step)> = times(disturb).map(|(at, ())| (at, Step::Disturb)).collect();
    steps.extend(times(acts).map(|(at, act)| (at, Step::Act(act))));
    steps.extend(times(packets).enumerate().map(|(i, (at, size))| (at, Step::Packet(i as u64, size))));
    steps.sort_by_key(|s| s.0);
    for (at, step) in steps {
        let at = Instant(at);
        match step {
            Step::Disturb if at.0.is_multiple_of(2) => rig.touch(at),
            Step::Disturb => drop(rig.look(at)),
            Step::Act(Act::Change(change)) => rig.change(at, &change),
            Step::Act(Act::Outage(length)) => rig.outage(at, length),
            Step::Act(Act::Reset) => rig.reset(at),
            Step::Packet(number, size) => rig.send_as(at, number, size, |p| says(p, number)),
        }
    }
    let fates = rig.fates(end.max(rig.now));
    (fates, rig.inside())
}

/// A link on which something can change by itself, or a constant one.
fn link(base: &DirectionSpec, dynamics: &Dynamics, discipline: Discipline, capacity: Capacity) -> Rig {
    let mut world = World::new(1);
    let errors = |world: &mut World| Errors {
        rng: world.open_rng("link", Purpose::Errors),
        loss: base.loss,
        ber: base.ber,
    };
    let channel = if dynamics.is_constant() {
        let errors = errors(&mut world);
        Channel::new(base.rate, base.delay, base.framing, Some(errors))
            .with_mtu(base.mtu)
            .with_loss_draw(base.loss_draw)
    } else {
        Channel::varying(base, dynamics, "link", &mut world)
    };
    Rig::queued(world, channel, Queue::new(capacity, discipline, 5))
}

fn discipline() -> impl Strategy<Value = Discipline> {
    let codel = (duration(), duration(), any::<bool>()).prop_map(|(target, interval, ecn)| Codel {
        target,
        interval,
        ecn,
    });
    // short times, so that packets are dropped
    let busy = (0_u64..5_000_000, 0_u64..20_000_000, any::<bool>()).prop_map(|(target, interval, ecn)| {
        Codel { target: Duration(target), interval: Duration(interval), ecn }
    });
    let codel = prop_oneof![1 => codel.boxed(), 3 => busy.boxed()].boxed();
    let quantum = prop_oneof![Just(0), Just(1500), Just(u64::MAX), 0_u64..5000];
    let fair = (codel.clone(), quantum, 0_u32..6).prop_map(|(codel, quantum, flows)| FqCodel {
        codel,
        quantum: Size(quantum),
        flows,
    });
    prop_oneof![
        2 => Just(Discipline::Fifo),
        1 => Just(Discipline::Pushout),
        1 => Just(Discipline::Threshold),
        1 => Just(Discipline::Wred),
        2 => Just(Discipline::DropHead),
        3 => codel.prop_map(Discipline::Codel),
        4 => fair.prop_map(Discipline::FqCodel),
    ]
}

/// Disciplines that drop or mark waiting packets, with times short enough to do so.
fn managed() -> impl Strategy<Value = Discipline> {
    let codel = (500_000_u64..5_000_000, 5_000_000_u64..20_000_000, any::<bool>()).prop_map(
        |(target, interval, ecn)| Codel { target: Duration(target), interval: Duration(interval), ecn },
    );
    let fair = (codel.clone(), 256_u64..3000, 1_u32..6).prop_map(|(codel, quantum, flows)| FqCodel {
        codel,
        quantum: Size(quantum),
        flows,
    });
    prop_oneof![
        1 => Just(Discipline::DropHead),
        3 => codel.prop_map(Discipline::Codel),
        3 => fair.prop_map(Discipline::FqCodel),
    ]
}

/// Sets the fields of packet `number`.
fn says(packet: &mut Packet, number: u64) {
    packet.sport = (number % 3) as u16;
    packet.dscp = if number.is_multiple_of(4) { Dscp::LE } else { Dscp::DEFAULT };
    packet.ecn = if number.is_multiple_of(2) { Ecn::Ect0 } else { Ecn::NotEct };
}

/// True if packets are delivered in order, within each flow and priority.
fn in_order(fates: &Fates, discipline: Discipline) -> bool {
    let apart = |number: &u64| match discipline {
        Discipline::FqCodel(_) => number % 3,
        Discipline::Pushout => u64::from(number.is_multiple_of(4)),
        _ => 0,
    };
    (0..3).all(|group| fates.numbers().iter().filter(|n| apart(n) == group).is_sorted())
}

fn disturbances() -> impl Strategy<Value = Vec<(u64, ())>> {
    prop::collection::vec((0_u64..50_000_000, Just(())), 0..80)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(400), ..ProptestConfig::default() })]

    #[test]
    fn every_packet_is_accounted_for_and_looking_changes_nothing(
        base in base(),
        dynamics in prop_oneof![4 => dynamics().boxed(), 2 => Just(Dynamics::default()).boxed()],
        (discipline, capacity) in (discipline(), buffer()),
        packets in packets(),
        acts in prop_oneof![Just(Vec::new()).boxed(), acts().boxed()],
        disturb in disturbances(),
    ) {
        let link = || link(&base, &dynamics, discipline, capacity);
        let (fates, (waiting, flying)) = run(link(), &packets, &acts, &[]);
        prop_assert_eq!(fates.delivered.len() + fates.dropped.len() + waiting + flying, packets.len());
        prop_assert!(fates.arrivals().is_sorted());
        let may_overtake = matches!(&dynamics.orbit, Some(Orbit::Slots(slots)) if slots.reorder);
        prop_assert!(may_overtake || in_order(&fates, discipline));
        prop_assert!(fates.marked.iter().all(|number| number.is_multiple_of(2)));
        let (again, inside) = run(link(), &packets, &acts, &disturb);
        prop_assert_eq!(again, fates);
        prop_assert_eq!(inside, (waiting, flying));
    }

    /// The same for the `managed` disciplines, under a load that makes them act: 1000 B take 2 ms and come
    /// every 0.2 to 0.8 ms, with pauses. A link that could change but does not behaves like a constant one.
    #[test]
    fn a_managed_queue_is_as_exact_as_any(
        discipline in managed(),
        one_way in 0_u64..30_000_000,
        waiting in 20_u32..200,
        bursts in prop::collection::vec((prop::collection::vec((200_000_u64..800_000, 900_u32..1100), 60..100), 0_u64..400_000_000), 2..4),
        disturb in prop::collection::vec((0_u64..3_000_000, Just(())), 50..200),
    ) {
        let base = DirectionSpec { rate: rate(4_000_000), delay: Duration(one_way), ..rig::base() };
        let mut packets = Vec::new();
        for (burst, rest) in bursts {
            packets.extend(burst);
            if let Some(last) = packets.last_mut() {
                last.0 += rest;
            }
        }
        let later = Dynamics { changes: vec![(END, Change { loss: Some(chance(0.0)), ..Change::default() })], ..Dynamics::default() };
        let run = |dynamics: &Dynamics, disturb: &[(u64, ())]| {
            run(link(&base, dynamics, discipline, Capacity::Packets(waiting)), &packets, &[], disturb)
        };
        let (fates, inside) = run(&Dynamics::default(), &[]);
        prop_assert_eq!(fates.delivered.len() + fates.dropped.len(), packets.len());
        prop_assert!(in_order(&fates, discipline) && inside == (0, 0));
        let acted = fates.marked.len() + fates.dropped.iter().filter(|d| d.1 == DropCause::Aqm).count();
        prop_assert!(acted > 0 || discipline == Discipline::DropHead);
        for (dynamics, disturb) in [(&Dynamics::default(), &disturb[..]), (&later, &[]), (&later, &disturb)] {
            let (again, left) = run(dynamics, disturb);
            prop_assert_eq!(&again, &fates);
            prop_assert_eq!(left, inside);
        }
    }

    /// For losses and queues, a user's change at `t` has the same effect as one of a timeline at `t`, at any
    /// time and together with all other changes.
    #[test]
    fn losses_and_queues_change_as_in_a_timeline(
        base in base(),
        dynamics in dynamics().boxed(),
        packets in packets(),
        acts in acts().boxed(),
    ) {
        let acts: Vec<_> = acts.into_iter().map(|(gap, act)| (gap + 1, only(act, |c| Change { rate: None, delay: None, ..c }))).collect();
        // a recorded loss has precedence over a timeline's, a user's over both
        let dynamics = Dynamics { loss: None, ..dynamics };
        let now = Dynamics { changes: Vec::new(), ..dynamics.clone() };
        let (by_user, _) = run(Rig::with(&base, &now, Capacity::Packets(10), "link", 1), &packets, &acts, &[]);
        let planned = Dynamics { changes: timeline(&acts), ..dynamics };
        let (by_timeline, _) = run(Rig::with(&base, &planned, Capacity::Packets(10), "link", 1), &packets, &[], &[]);
        prop_assert_eq!(by_user, by_timeline);
    }

    /// The same for rate and delay, on a constant link when no packet is being sent at a change.
    #[test]
    fn a_constant_link_changes_as_in_a_timeline(
        bps in 1_000_000_u64..100_000_000,
        one_way in 0_u64..400_000_000,
        // a constant link draws a random number even for certain losses
        loss in (0.0..0.9_f64).prop_map(chance),
        ber in prop_oneof![Just(0.0), Just(1e-5), Just(1e-4)].prop_map(chance),
        phases in prop::collection::vec((packets(), change().boxed(), 1_000_000_u64..100_000_000), 1..5).boxed(),
    ) {
        let base = DirectionSpec {
            rate: rate(bps),
            delay: Duration(one_way),
            framing: Size(4),
            loss,
            ber,
            ..rig::base()
        };
        let (mut all, mut acts, mut last) = (Vec::new(), Vec::new(), 0);
        for (packets, (_, change), next_bps) in phases {
            // 60 packets of 3000 bytes take 1.5 s at the least of these rates
            let gap = packets.iter().map(|p| p.0).sum::<u64>() + 2_000_000_000;
            acts.push((gap, Act::Change(Change { rate: change.rate.map(|_| rate(next_bps)), ..change })));
            for (i, (gap, size)) in packets.into_iter().enumerate() {
                all.push((if i == 0 { gap + last } else { gap }, size));
            }
            last = 2_000_000_000;
        }
        // the last change comes after the last packet
        let end = END.max(Instant(acts.iter().map(|a| a.0).sum()));
        let (by_user, _) = run_until(end, Rig::constant(&base, Capacity::Packets(10), 1), &all, &acts, &[]);
        let planned = Dynamics { changes: timeline(&acts), ..Dynamics::default() };
        let (by_timeline, _) = run_until(end, Rig::with(&base, &planned, Capacity::Packets(10), "link", 1), &all, &[], &[]);
        prop_assert_eq!(by_user, by_timeline);
    }
}

/// Replaces each change by the part that `keep` returns; an outage or reset becomes an empty change.
fn only(act: Act, keep: impl Fn(Change) -> Change) -> Act {
    match act {
        Act::Change(change) => Act::Change(keep(change)),
        Act::Outage(_) | Act::Reset => Act::Change(Change::default()),
    }
}

/// The same changes as a timeline.
fn timeline(acts: &[(u64, Act)]) -> Vec<(Instant, Change)> {
    times(acts)
        .filter_map(|(at, act)| match act {
            Act::Change(change) => Some((Instant(at), change)),
            Act::Outage(_) | Act::Reset => None,
        })
        .collect()
}
