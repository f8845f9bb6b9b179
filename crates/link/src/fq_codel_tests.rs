use super::*;
use crate::queue::tests::packet;
use bentpipe_base::{Duration, Ecn};

const ROOMY: Capacity = Capacity::Packets(100_000);

fn ms(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// A packet of `size` bytes of flow `flow`, the `number`th.
fn of(flow: u16, number: u64, size: u32) -> Pkt {
    let mut p = packet(size - 40);
    (p.sport, p.body.off) = (flow, number);
    p
}

struct Bench {
    flows: FlowQueues,
    dropped: Dropped,
    capacity: Capacity,
}

impl Bench {
    fn new(parameters: FqCodel) -> Self {
        Self { flows: FlowQueues::new(parameters, 1), dropped: Dropped::default(), capacity: ROOMY }
    }

    fn push(&mut self, at: Instant, packet: Pkt) {
        assert!(self.flows.push(packet, at, self.capacity, &mut self.dropped).is_ok());
    }

    /// Pushes `n` packets of `size` bytes of flow `flow` at 0.
    fn fill(&mut self, flow: u16, n: u64, size: u32) {
        for i in 0..n {
            self.push(ms(0), of(flow, i, size));
        }
    }

    /// The next packet: its flow and number.
    fn next(&mut self, at: Instant) -> Option<(u16, u64)> {
        self.flows.pop(at, &mut self.dropped).map(|p| (p.sport, p.body.off))
    }

    fn take(&mut self, n: usize) -> Vec<(u16, u64)> {
        (0..n).map_while(|_| self.next(ms(1))).collect()
    }

    /// Flow, number and cause of the dropped packets.
    fn lost(&self) -> Vec<(u16, u64, DropCause)> {
        self.dropped.packets.iter().map(|(p, cause)| (p.sport, p.body.off, *cause)).collect()
    }

    /// `n` flows, each with a queue of its own.
    fn apart(&self, n: usize) -> Vec<u16> {
        let (mut seen, mut all) = (std::collections::BTreeSet::new(), Vec::new());
        all.extend((0..).filter(|&flow| seen.insert(self.flows.index(&of(flow, 0, 40)))).take(n));
        all
    }
}

fn default() -> Bench {
    Bench::new(FqCodel::default())
}

#[test]
fn flows_take_turns_and_keep_their_own_order() {
    let mut bench = default();
    let [a, b, c] = bench.apart(3)[..] else { panic!() };
    for flow in [a, b, c] {
        bench.fill(flow, 3, 1500);
    }
    let order = [(a, 0), (b, 0), (c, 0), (a, 1), (b, 1), (c, 1), (a, 2), (b, 2), (c, 2)];
    assert_eq!(bench.take(10), order);
    assert_eq!((bench.flows.packets, bench.flows.bytes), (0, Size::ZERO));
}

#[test]
fn turns_are_counted_in_bytes_not_in_packets() {
    let mut bench = default();
    let [large, small] = bench.apart(2)[..] else { panic!() };
    bench.fill(large, 200, 1500);
    bench.fill(small, 2000, 300);
    let served = bench.take(600);
    let bytes = |flow, size: usize| served.iter().filter(|p| p.0 == flow).count() * size;
    let (large, small) = (bytes(large, 1500), bytes(small, 300));
    // at the end one may be ahead of the other by a quantum
    assert!(large.abs_diff(small) <= 1500 && large > 140_000, "{large} {small}");
}

#[test]
fn a_flow_that_becomes_active_is_served_before_those_that_have_a_backlog() {
    let mut bench = default();
    let [bulk, other, sparse] = bench.apart(3)[..] else { panic!() };
    bench.fill(bulk, 50, 1500);
    bench.fill(other, 50, 1500);
    bench.take(7);
    bench.push(ms(1), of(sparse, 0, 200));
    bench.push(ms(1), of(sparse, 1, 200));
    assert_eq!(bench.take(3)[..2], [(sparse, 0), (sparse, 1)], "within its quantum");
}

#[test]
fn a_new_flow_with_more_than_a_quantum_goes_behind_the_old_ones() {
    let mut bench = default();
    let [bulk, burst] = bench.apart(2)[..] else { panic!() };
    bench.fill(bulk, 50, 1500);
    assert_eq!(bench.take(2), [(bulk, 0), (bulk, 1)]);
    for i in 0..4 {
        bench.push(ms(1), of(burst, i, 1000));
    }
    // a credit of 1500 B allows two packets of 1000 B. The other flow's turn is next, but its credit is used
    // up and only gets its quantum; so a third packet follows, and from then on the flows alternate
    let flows: Vec<u16> = bench.take(6).iter().map(|p| p.0).collect();
    assert_eq!(flows, [burst, burst, burst, bulk, burst, bulk]);
}

/// RFC 8290, section 4.2: otherwise a flow could become new again and again and starve the old ones.
#[test]
fn a_new_queue_that_runs_empty_joins_the_old_ones_before_it_can_be_new_again() {
    let mut bench = default();
    let [bulk, pulse] = bench.apart(2)[..] else { panic!() };
    bench.fill(bulk, 50, 400);
    // a whole turn and one packet of the next: 1000 B of credit are left
    assert_eq!(bench.take(5).len(), 5);
    bench.push(ms(1), of(pulse, 0, 1400));
    assert_eq!(bench.take(1), [(pulse, 0)]);
    // the queue of `pulse` was found empty: it is now the last of the old queues
    assert_eq!(bench.take(1), [(bulk, 5)]);
    bench.push(ms(1), of(pulse, 1, 1400));
    assert_eq!(bench.take(3), [(bulk, 6), (bulk, 7), (pulse, 1)]);
    // an old queue that is found empty becomes inactive; with its next packet it is new again
    assert_eq!(bench.take(5).iter().filter(|p| p.0 == bulk).count(), 5);
    bench.push(ms(1), of(pulse, 2, 1400));
    assert_eq!(bench.take(1), [(pulse, 2)]);
}

#[test]
fn flows_whose_hashes_fall_together_share_a_queue_and_another_key_parts_them() {
    let shared = |key, flow: u16, other: u16| {
        let flows = FlowQueues::new(FqCodel::default(), key);
        flows.index(&of(flow, 0, 40)) == flows.index(&of(other, 0, 40))
    };
    let other = (1..u16::MAX).find(|&other| shared(1, 0, other)).unwrap();
    let mut bench = default();
    bench.fill(0, 3, 1500);
    bench.fill(other, 3, 1500);
    assert_eq!(
        bench.take(9),
        [(0, 0), (0, 1), (0, 2), (other, 0), (other, 1), (other, 2)],
        "first in, first out"
    );
    let parted = (2..102).filter(|&key| !shared(key, 0, other)).count();
    assert!(parted > 95, "{parted}"); // by chance together once in 1024
    // a birthday problem: 100 flows in 1024 queues are 95.3 queues, deviation 2.1
    let used = |key| {
        let flows = FlowQueues::new(FqCodel::default(), key);
        (0..100).map(|f| flows.index(&of(f, 0, 40))).collect::<std::collections::BTreeSet<_>>().len()
    };
    let mean = (0..100).map(used).sum::<usize>() as f64 / 100.0;
    assert!((mean - 95.3).abs() < 0.9, "{mean}"); // 4 sigma
}

#[test]
fn one_queue_is_a_first_in_first_out() {
    let mut bench = Bench::new(FqCodel { flows: 1, ..FqCodel::default() });
    for i in 0..50 {
        bench.push(ms(0), of((i % 7) as u16, i, 1000));
    }
    assert_eq!(bench.take(99).iter().map(|p| p.1).collect::<Vec<_>>(), (0..50).collect::<Vec<_>>());
}

#[test]
fn overload_takes_half_of_the_fattest_queue_from_its_front() {
    let mut bench = default();
    let [fat, thin, arriving] = bench.apart(3)[..] else { panic!() };
    bench.capacity = Capacity::Packets(60);
    bench.fill(thin, 20, 400);
    bench.fill(fat, 40, 1500);
    assert!(bench.lost().is_empty());
    bench.push(ms(0), of(arriving, 0, 100));
    let expected: Vec<_> = (0..20).map(|i| (fat, i, DropCause::QueueFull)).collect();
    assert_eq!(bench.lost(), expected, "20 of 40 packets are half of its bytes");
    assert_eq!((bench.flows.packets, bench.flows.bytes), (41, Size(20 * 400 + 20 * 1500 + 100)));
}

#[test]
fn overload_takes_at_most_64_packets_at_once() {
    let mut bench = default();
    let [fat, thin] = bench.apart(2)[..] else { panic!() };
    bench.capacity = Capacity::Packets(500);
    bench.fill(fat, 500, 1500);
    bench.push(ms(0), of(thin, 0, 100));
    assert_eq!((bench.lost().len(), bench.flows.packets), (64, 437));
}

#[test]
fn a_buffer_in_bytes_counts_bytes_and_a_packet_larger_than_it_drops_no_other() {
    let mut bench = default();
    let [fat, thin] = bench.apart(2)[..] else { panic!() };
    bench.capacity = Capacity::Bytes(Size(6000));
    bench.fill(fat, 4, 1500);
    bench.push(ms(0), of(thin, 0, 100));
    assert_eq!(bench.lost().iter().map(|l| (l.0, l.1)).collect::<Vec<_>>(), [(fat, 0), (fat, 1)]);
    let refused = bench.flows.push(of(thin, 1, 7000), ms(0), bench.capacity, &mut bench.dropped);
    assert!(matches!(refused, Err(Refused::Arrival(p)) if p.body.off == 1));
    assert_eq!((bench.flows.packets, bench.lost().len()), (3, 2));
    // in a buffer for one packet an arrival replaces the other flow's packet
    bench.capacity = Capacity::Packets(1);
    bench.push(ms(0), of(thin, 2, 100));
    assert_eq!(bench.flows.packets, 1);
}

#[test]
fn codel_acts_on_the_flow_that_fills_its_queue_and_on_no_other() {
    let mut bench = default();
    let [fat, thin] = bench.apart(2)[..] else { panic!() };
    bench.fill(fat, 3000, 1500);
    let mut thin_served = 0;
    for at in 1..1500 {
        if at % 10 == 0 {
            let mut p = of(thin, at, 200);
            p.ecn = Ecn::Ect0;
            bench.push(ms(at), p);
        }
        let served = bench.next(ms(at)).unwrap();
        if served.0 == thin {
            thin_served += 1;
            assert!(at - served.1 <= 1, "it never waits for more than a packet");
        }
    }
    assert_eq!((thin_served, bench.dropped.marked), (149, 0));
    let lost = bench.lost();
    assert!(lost.len() > 40 && lost.iter().all(|l| (l.0, l.2) == (fat, DropCause::Aqm)), "{}", lost.len());
}

/// A packet that finds the link idle uses its flow's credit; an idle link resets the credits.
#[test]
fn what_passes_an_empty_queue_uses_up_credit_until_the_link_rests() {
    let mut bench = default();
    let [first, second] = bench.apart(2)[..] else { panic!() };
    bench.flows.rest();
    bench.flows.pass(&of(first, 0, 1500));
    // both arrive while it is being sent
    bench.push(ms(0), of(first, 1, 1500));
    bench.push(ms(0), of(second, 0, 1500));
    assert_eq!(bench.take(9), [(second, 0), (first, 1)], "it has had its turn");
    bench.flows.rest();
    assert!(bench.flows.new.is_empty() && bench.flows.old.is_empty());
    bench.push(ms(0), of(first, 2, 1500));
    bench.push(ms(0), of(second, 1, 1500));
    assert_eq!(bench.take(9), [(first, 2), (second, 1)]);
}

#[test]
fn strange_parameters_end() {
    for (quantum, flows) in [(0, 0), (u64::MAX, 1), (1, u32::MAX)] {
        let mut bench = Bench::new(FqCodel { quantum: Size(quantum), flows, ..FqCodel::default() });
        for i in 0..200 {
            bench.push(ms(0), of(i as u16, i, 1500));
        }
        assert_eq!(bench.take(999).len(), 200);
    }
}
