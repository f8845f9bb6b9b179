use super::*;
use crate::queue::tests::packet;

/// Payload of a packet of 1500 B.
const FULL: u32 = 1460;
const MS: u64 = 1_000_000;

fn ms(ms: u64) -> Instant {
    Instant(ms * MS)
}

/// A queue and the fate of its packets.
struct Bench {
    queue: CodelQueue,
    dropped: Dropped,
    ecn: Ecn,
    number: u64,
}

impl Bench {
    fn new(ecn: Ecn) -> Self {
        Self { queue: CodelQueue::new(Codel::default()), dropped: Dropped::default(), ecn, number: 0 }
    }

    fn arrive(&mut self, at: Instant, packets: u64) {
        for _ in 0..packets {
            let mut p = packet(FULL);
            (p.ecn, p.body.off) = (self.ecn, self.number);
            self.number += 1;
            assert!(self.queue.push(p, at, Capacity::Packets(u32::MAX)).is_ok());
        }
    }

    /// Serves one packet at `at`; returns it and how many were dropped or marked before.
    fn serve(&mut self, at: Instant) -> (Option<Pkt>, u64) {
        let before = self.acts();
        let packet = self.queue.pop(at, &mut self.dropped);
        (packet, self.acts() - before)
    }

    fn acts(&self) -> u64 {
        self.dropped.packets.len() as u64 + self.dropped.marked
    }

    /// Serves a packet each millisecond; returns the milliseconds at which packets were dropped or marked,
    /// one entry for each packet.
    fn run(&mut self, millis: core::ops::Range<u64>) -> Vec<u64> {
        millis.flat_map(|at| core::iter::repeat_n(at, self.serve(ms(at)).1 as usize)).collect()
    }
}

/// Milliseconds at which the control law drops, from `begin` with `count` until `end`.
fn law(begin: u64, count: u32, end: u64) -> Vec<u64> {
    let (mut at, mut count, mut all) = (begin as f64, count, vec![begin]);
    loop {
        at += 100.0 / f64::from(count).sqrt();
        if at.ceil() as u64 >= end {
            return all;
        }
        all.push(at.ceil() as u64);
        count += 1;
    }
}

#[test]
fn the_first_drop_comes_an_interval_after_the_target_and_the_next_by_the_control_law() {
    let mut bench = Bench::new(Ecn::NotEct);
    bench.arrive(ms(0), 5000);
    // at 5 ms a packet has waited for the target
    let drops = bench.run(1..3000);
    assert_eq!(drops, law(105, 1, 3000));
    // 105, 205, 276, 334, 384, ...
    assert_eq!(drops[..5], [105, 205, 276, 334, 384]);
    assert!(drops.len() > 150, "{}", drops.len());
}

#[test]
fn one_packet_below_the_target_begins_the_interval_anew() {
    let mut bench = Bench::new(Ecn::NotEct);
    bench.arrive(ms(0), 80);
    bench.arrive(ms(78), 1000);
    // the 81st waited 3 ms; 5 ms are reached again at 83 ms
    assert_eq!(bench.run(1..250), [183]);
}

#[test]
fn a_queue_of_one_packet_is_left_alone_however_long_it_waited() {
    let mut bench = Bench::new(Ecn::NotEct);
    for second in 0..10 {
        bench.arrive(ms(second * 1000), 2);
        // 500 and 900 ms: above the target, but one packet at most is left behind
        assert_eq!(bench.serve(ms(second * 1000 + 500)).1, 0);
        assert_eq!(bench.serve(ms(second * 1000 + 900)).1, 0);
        assert!(bench.serve(ms(second * 1000 + 950)).0.is_none());
    }
}

#[test]
fn the_last_packet_is_served_whatever_is_due() {
    let mut bench = Bench::new(Ecn::NotEct);
    bench.arrive(ms(0), 8);
    assert_eq!((bench.serve(ms(10)).1, bench.serve(ms(110)).1), (0, 1));
    // by now many are due; the loop ends when one largest packet is left
    let (served, dropped) = bench.serve(ms(5000));
    assert_eq!((served.map(|p| p.body.off), dropped, bench.queue.queue.packets.len()), (Some(6), 3, 1));
    assert_eq!(bench.serve(ms(9000)).0.map(|p| p.body.off), Some(7));
}

#[test]
fn what_is_overdue_is_dropped_at_once_until_the_schedule_is_met() {
    let mut bench = Bench::new(Ecn::NotEct);
    bench.arrive(ms(0), 1000);
    assert_eq!(bench.run(5..106), [105]);
    // nothing is served until 500 ms: due by then are 205, 276, 334, 384, 429, 470
    assert_eq!(bench.serve(ms(500)).1, 6);
    assert_eq!(bench.serve(ms(501)).1, 0);
}

/// A drop state that lasts until 1000 ms, and one that begins 105 ms after `arrival`: it begins with the
/// count of the first if it `goes_on`, else with 1.
fn again(arrival: u64, goes_on: bool) {
    let mut bench = Bench::new(Ecn::NotEct);
    bench.arrive(ms(0), 5000);
    bench.run(1..1000);
    while bench.serve(ms(1000)).0.is_some() {}
    let drops = bench.acts() as u32;
    assert!(drops > 15, "{drops}");
    bench.arrive(ms(arrival), 5000);
    let (begin, end) = (arrival + 105, arrival + 205);
    // the first state began with 1 and counted its first drop as that
    let count = if goes_on { drops - 1 } else { 1 };
    assert_eq!(bench.run(arrival..end), law(begin, count, end), "{arrival}");
}

#[test]
fn a_drop_state_soon_after_another_goes_on_with_its_count_and_a_later_one_begins_anew() {
    again(1500, true);
    // 16 intervals after the last drop was due, about 1010 ms
    again(2450, true);
    again(2550, false);
}

#[test]
fn packets_of_ecn_capable_transports_are_marked_where_others_are_dropped() {
    for ecn in [Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
        let mut bench = Bench::new(ecn);
        bench.arrive(ms(0), 3000);
        let mut marked = Vec::new();
        for at in 1..2000 {
            let (packet, acts) = bench.serve(ms(at));
            let is_marked = packet.is_some_and(|p| p.ecn == Ecn::Ce);
            assert!(ecn == Ecn::Ce || u64::from(is_marked) == acts, "{at}");
            marked.extend((acts > 0).then_some(at));
        }
        assert_eq!(marked, law(105, 1, 2000));
        assert_eq!((bench.dropped.marked as usize, bench.dropped.packets.len()), (marked.len(), 0));
    }
    let mut bench = Bench::new(Ecn::Ect0);
    bench.queue.parameters.ecn = false;
    bench.arrive(ms(0), 3000);
    assert_eq!((bench.run(1..2000), bench.dropped.marked), (law(105, 1, 2000), 0));
    assert!(bench.dropped.packets.iter().all(|d| d.1 == DropCause::Aqm && d.0.ecn == Ecn::Ect0));
}

#[test]
fn a_full_buffer_refuses_the_arrival() {
    let mut queue = CodelQueue::new(Codel::default());
    let full = Capacity::Bytes(Size(3000));
    assert!(queue.push(packet(FULL), ms(0), full).is_ok() && queue.push(packet(FULL), ms(0), full).is_ok());
    assert!(matches!(queue.push(packet(0), ms(0), full), Err(Refused::Arrival(p)) if p.body.len == 0));
}

/// Extreme parameters: an interval of 0 drops all but the last packet, one of centuries drops nothing.
#[test]
fn strange_parameters_end() {
    for (target, interval, left) in [(0, 0, 1), (0, u64::MAX, 99), (u64::MAX, 0, 99)] {
        let mut bench = Bench::new(Ecn::NotEct);
        let (target, interval) = (Duration(target), Duration(interval));
        bench.queue.parameters = Codel { target, interval, ecn: true };
        bench.arrive(ms(0), 100);
        let served = (0..).map_while(|i| bench.serve(ms(i)).0).count();
        assert!(served <= 100 && served >= left && bench.queue.queue.bytes == Size::ZERO, "{served}");
    }
}
