//! TCP-Peach, TCP-Peach+ and TCP-Swift end to end: two connections over a path with constant delay, counted
//! segment by segment.

use bentpipe_base::{Addr, Cx, Dscp, Duration, Instant, NodeId, Packet, ProbeOption, Seq, Size, World};
use bentpipe_tcp::cc::ProbeSignal;
use bentpipe_tcp::cc::law::Value;
use bentpipe_tcp::probes::Probes;
use bentpipe_tcp::{
    Config, Connection, EcnUse, Offer, Options, RandomValues, ReceiveBuffer, Scheme, Tuple, Validation,
};
use std::collections::VecDeque;
use std::sync::Arc;

#[path = "probing/granted.rs"]
mod granted;
#[path = "probing/timestamps.rs"]
mod timestamps;

const RTT: Duration = Duration::from_millis(550);
/// Small, so that a window of many segments needs no window scaling: the first scaled window would be a
/// window update, and its ACK no duplicate.
const MSS: u64 = 100;

/// The scheme called `name` with `params`.
fn scheme(name: &str, params: &[(&str, Value)]) -> Scheme {
    let mut scheme = Scheme::named(name).expect("a scheme");
    for (key, value) in params {
        assert!(scheme.growth.set(key, *value), "{key}");
    }
    scheme
}

fn faithful() -> Scheme {
    scheme("swift-faithful", &[])
}

/// A host whose segments have one size with any options, with an ACK per segment and a large receive window.
fn host(scheme: Scheme, option: bool, iw: u32) -> Config {
    Config {
        scheme,
        mss: MSS as u16 + if option && scheme.probes() { 8 } else { 0 },
        receive_buffer: ReceiveBuffer::Fixed(Size(650 * MSS)),
        delayed_ack: None,
        options: Options { mss: true, window_scale: false, sack: scheme.wants_sack(), timestamps: false },
        initial_window: iw,
        limited_transmit: false,
        validation: Validation::Keep,
        probe_option: option,
        ..Config::default()
    }
}

/// Two connections and the packets in flight between them.
struct Path {
    world: World,
    now: Instant,
    ends: [Option<Connection>; 2],
    flying: [VecDeque<(Instant, Packet)>; 2],
    answer: Arc<Config>,
    /// Packets of the sender, with their times.
    sent: Vec<(Instant, Packet)>,
    /// Up to this many acknowledgments sent at the same time become one, as with a receiver that merges
    /// segments; ACKs with the probe option are not merged.
    merged: usize,
    /// Acknowledgments merged in the last one.
    run: usize,
}

impl Path {
    fn new(sender: Config) -> Self {
        let mut world = World::new(1);
        // the receiver supports SACK and the probe option, whatever its scheme
        let mut receiver = sender.clone();
        receiver.mss = 1400;
        let tuple = Tuple { local: (Addr(1), 1000), remote: (Addr(2), 2000) };
        let chance = RandomValues { isn: Seq(7), timestamp: 0, jitter: None };
        let conn = Connection::connect(&world.cx(Instant::ZERO, NodeId(0)), tuple, Arc::new(sender), chance);
        Self {
            world,
            now: Instant::ZERO,
            ends: [Some(conn), None],
            flying: Default::default(),
            answer: Arc::new(receiver),
            sent: Vec::new(),
            merged: 1,
            run: 0,
        }
    }

    /// Puts a packet of `side` in flight.
    fn fly(&mut self, side: usize, packet: Packet) {
        let at = self.now + RTT / 2;
        let plain = |p: &Packet| p.body.len == 0 && matches!(p.tcp.probe, ProbeOption::None);
        let last = self.flying[side].back_mut().filter(|(then, p)| *then == at && plain(p));
        match last {
            Some(last) if side == 1 && plain(&packet) && self.run < self.merged => {
                self.run += 1;
                *last = (at, packet);
            }
            _ => {
                self.run = 1;
                self.flying[side].push_back((at, packet));
            }
        }
    }

    fn sender(&self) -> &Connection {
        self.ends[0].as_ref().expect("it was opened")
    }

    fn with<T>(&mut self, act: impl FnOnce(&mut Connection) -> T) -> T {
        act(self.ends[0].as_mut().expect("it was opened"))
    }

    /// The next packet of an end; the receiver reads all data first.
    fn next(&mut self, side: usize) -> Option<Packet> {
        let end = self.ends[side].as_mut()?;
        let mut cx = self.world.cx(self.now, NodeId(0));
        if side == 1 {
            let unread = end.readable();
            end.consume(cx.now, unread);
        }
        end.transmit(&mut cx).map(|packet| *packet)
    }

    /// Lets both ends send; `lost` decides which of the sender's packets are lost.
    fn pump(&mut self, lost: &mut dyn FnMut(&Packet) -> bool) {
        for side in 0..2 {
            while let Some(packet) = self.next(side) {
                if side == 0 {
                    self.sent.push((self.now, packet.clone()));
                    if lost(&packet) {
                        continue;
                    }
                }
                self.fly(side, packet);
            }
        }
    }

    /// Runs until `over`; false if nothing more happens or a minute has passed.
    fn run(
        &mut self,
        lost: &mut dyn FnMut(&Packet) -> bool,
        over: &mut dyn FnMut(&Connection) -> bool,
    ) -> bool {
        self.pump(lost);
        while !over(self.sender()) {
            let arrivals = self.flying.iter().filter_map(|f| f.front().map(|p| p.0));
            let timers = self.ends.iter().flatten().map(Connection::deadline);
            let Some(at) =
                arrivals.chain(timers).min().filter(|t| *t < Instant::ZERO + Duration::from_secs(60))
            else {
                return false;
            };
            self.now = self.now.max(at);
            for side in 0..2 {
                if self.flying[side].front().is_some_and(|p| p.0 <= self.now)
                    && let Some((_, packet)) = self.flying[side].pop_front()
                {
                    self.arrive(1 - side, &packet);
                    break;
                }
            }
            for end in self.ends.iter_mut().flatten() {
                if end.deadline() <= self.now {
                    end.timer(&mut self.world.cx(self.now, NodeId(0)));
                }
            }
            self.pump(lost);
        }
        true
    }

    fn arrive(&mut self, side: usize, packet: &Packet) {
        let mut cx: Cx<'_> = self.world.cx(self.now, NodeId(0));
        if let Some(end) = &mut self.ends[side] {
            end.segment(&mut cx, packet);
        } else {
            let chance = RandomValues { isn: Seq(99), timestamp: 0, jitter: None };
            let offer = Offer::new(packet, Arc::clone(&self.answer)).expect("a SYN");
            self.ends[side] = Some(offer.complete(&mut cx, chance));
        }
    }

    /// A connection with plenty of data to send.
    fn open(sender: Config) -> Self {
        let mut path = Self::new(sender);
        path.with(|c| c.write(100_000_000));
        path
    }
}

fn is_probe(p: &Packet) -> bool {
    p.dscp == Dscp::LE
}

fn is_data(p: &Packet) -> bool {
    p.body.len > 0 && !is_probe(p)
}

/// Results of one episode: copies, new segments and retransmissions from the loss to the ACK that ends
/// recovery; the window at that time (`at_exit`) and at the end of the window expanding period (`at_end`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Episode {
    probes: u64,
    fresh: u64,
    resent: u64,
    at_exit: u64,
    at_end: u64,
}

/// `w0` segments are sent at once and the first one is lost.
fn episode(scheme: Scheme, option: bool, w0: u64, probes_arrive: bool) -> Episode {
    episode_of(scheme, option, w0, &[0], probes_arrive, 1)
}

/// `w0` segments are sent at once; the originals of those with the numbers in `hit` are lost, including the
/// first. The receiver acknowledges up to `merged` segments at once.
fn episode_of(
    scheme: Scheme,
    option: bool,
    w0: u64,
    hit: &[u64],
    probes_arrive: bool,
    merged: usize,
) -> Episode {
    // no speedy start: the window begins where it would end
    let ssthresh = Some(Size(w0 * MSS));
    let mut path = Path::open(Config { initial_ssthresh: ssthresh, ..host(scheme, option, w0 as u32) });
    path.merged = merged;
    let mut originals = hit.to_vec();
    let mut lost = move |p: &Packet| {
        let original = originals.iter().position(|k| is_data(p) && p.body.off == k * MSS);
        original.map(|i| originals.remove(i)).is_some() || (is_probe(p) && !probes_arrive)
    };
    let end_of_window = 1 + w0 * MSS;
    let mut counted = Episode::default();
    // segments that the ACK that ends recovery allows do not count
    let mut recovers = |c: &Connection| {
        let over = c.scoreboard().una() >= end_of_window;
        if !over {
            let resent = c.stats().retransmits;
            let fresh = c.stats().segments_sent.saturating_sub(w0 + resent);
            let probes = c.probes().map_or(0, Probes::sent);
            counted = Episode { probes, fresh, resent, at_exit: c.cwnd().0 / MSS, at_end: 0 };
        }
        over
    };
    assert!(path.run(&mut lost, &mut recovers));
    let wep_end = end_of_window + counted.fresh * MSS;
    assert!(path.run(&mut lost, &mut |c| c.scoreboard().una() >= wep_end));
    assert_eq!(path.sender().stats().timeouts, 0);
    Episode { at_end: path.sender().cwnd().0 / MSS, ..counted }
}

/// Speedy recovery as in the text of the paper, probe by probe: with a window of 64, 60 ACKs follow the third
/// duplicate. Half of them allow no data segment, and each is answered by two probes; each of the others
/// allows a new segment. The window afterwards follows from the probes that were acknowledged.
#[test]
fn an_episode_is_counted_probe_by_probe() {
    for option in [true, false] {
        for (w0, peach, swift, unanswered) in
            [(16, 12, 17, 13), (32, 28, 41, 29), (64, 60, 89, 61), (128, 124, 185, 125)]
        {
            let w: u64 = w0;
            let counted =
                |at_end| Episode { probes: w - 4, fresh: w / 2 - 2, resent: 1, at_exit: w / 2, at_end };
            assert_eq!(episode(faithful(), option, w, true), counted(swift), "Swift, {w0}, {option}");
            assert_eq!(
                episode(faithful(), option, w, false),
                counted(unanswered),
                "Swift without answers, {w0}"
            );
            for name in ["peach", "peach-plus"] {
                assert_eq!(
                    episode(scheme(name, &[]), option, w, true),
                    counted(peach),
                    "{name}, {w0}, {option}"
                );
                assert_eq!(episode(scheme(name, &[]), option, w, false), counted(w / 2), "{name}, {w0}");
            }
        }
    }
}

/// A receiver that merges segments, as hosts with GRO do, acknowledges eight at once: probes and the window
/// expanding period count segments, not acknowledgments, so only the burst limit costs some of them.
#[test]
fn merged_acknowledgments_are_worth_what_they_tell() {
    let (single, merged) =
        (episode(faithful(), true, 64, true), episode_of(faithful(), true, 64, &[0], true, 8));
    assert!(merged.probes * 4 >= single.probes * 3 && merged.probes <= 64, "{merged:?}");
    assert!(merged.at_end * 4 >= single.at_end * 3 && merged.at_end <= single.at_end, "{merged:?}");
}

/// Three losses in one window of 64, the second and third detected while the first is repaired; no copy
/// arrives. By the pseudo-code of the paper, read as for one loss:
///   58 duplicate ACKs follow the third. `pipe` goes from 62 to 32 with the first 30, which send two probes
///     each: 60. The other 28 send a segment each: two retransmissions with six new segments between them,
///     and 20 more.
///   The first retransmission's ACK covers 20 segments: `pipe` falls from 32 to 12 although 19 of them had
///     left it when they were SACKed, so this and the following ACKs allow four segments each. So does the
///     second retransmission's ACK. So 58 new segments are in flight at the ACK that ends recovery, which
///     covers six. The other 52 add a segment each, except the last: the window expanding period is over
///     then.
/// The engine takes `pipe` from the scoreboard (`recovery/speedy.rs`). A later loss leaves `pipe` when it is
/// detected: the 19th and the 38th duplicate ACK count twice, so one ACK fewer is answered by probes (58),
/// and 28 new segments are sent. A partial ACK removes only what was still in `pipe`: two segments and one.
/// With the segments that `partial_inc` adds, 3 and 2 segments are sent for the partial ACKs and 7 for the
/// duplicate ACKs between them: 40 new ones, 18 fewer than by the pseudo-code; without it 38, 20 fewer. The
/// window is the same at the ACK that ends recovery, which covers seven here.
#[test]
fn an_episode_with_three_losses_is_counted() {
    for (partial, at_exit, figure, fewer) in [(true, 34, 58, 18), (false, 32, 58, 20)] {
        let scheme = scheme("swift-faithful", &[("partial_inc", Value::Switch(partial))]);
        let counted = episode_of(scheme, false, 64, &[0, 20, 40], false, 1);
        let figures = Episode { probes: 60, fresh: figure, resent: 3, at_exit, at_end: at_exit + figure - 7 };
        let here = Episode {
            probes: figures.probes - 2,
            fresh: figure - fewer,
            at_end: figures.at_end - fewer - 1,
            ..figures
        };
        assert_eq!(counted, here, "partial_inc = {partial}");
    }
}

/// `swift-faithful` is `swift-sat` with `gated` off.
#[test]
fn the_papers_swift_is_the_one_without_the_gate() {
    let open = || scheme("swift-sat", &[("gated", Value::Switch(false))]);
    assert_eq!(episode(open(), true, 64, false), episode(faithful(), true, 64, false));
    let marked = scheme("swift-faithful", &[("probe_dscp", Value::Number(8.0))]);
    let mut path = Path::open(Config { initial_ssthresh: Some(Size(64 * MSS)), ..host(marked, true, 1) });
    assert!(path.run(&mut |_| false, &mut |c| c.probes().is_some_and(|p| p.sent() == 63)));
    let marks = path.sent.iter().filter(|(_, p)| Some(p.dscp) == Dscp::new(8)).count();
    assert_eq!(
        (marks, path.sent.iter().any(|(_, p)| is_probe(p))),
        (63, false),
        "these are marked otherwise"
    );
}

/// The default: the window grows only if half of the probes are acknowledged, and up to W0.
#[test]
fn gated_swift_needs_answers_and_stops_at_the_old_window() {
    let gated = || scheme("swift-sat", &[]);
    for w0 in [16, 64] {
        assert_eq!(episode(gated(), true, w0, false).at_end, w0 / 2);
        assert_eq!(episode(gated(), true, w0, true).at_end, w0);
    }
}

/// If the path is not known to serve probes last, a quarter of the probes is sent.
#[test]
fn without_priority_a_quarter_of_the_probes() {
    let careful = scheme("swift-sat", &[("assume_priority", Value::Switch(false))]);
    assert_eq!(episode(careful, true, 64, true).probes, 16);
}

/// Time from establishment until the window is 64 segments, in round trips.
fn opens(scheme: Scheme, option: bool, iw: u32) -> f64 {
    let config = Config { initial_ssthresh: Some(Size(64 * MSS)), ..host(scheme, option, iw) };
    let mut path = Path::open(config);
    assert!(path.run(&mut |_| false, &mut |c| c.cwnd().0 >= 64 * MSS));
    let stats = path.sender().stats();
    assert_eq!((stats.retransmits, stats.timeouts), (0, 0), "no ACK of a copy is a sign of loss");
    let established = stats.established_at.expect("it is open");
    path.now.since(established).as_secs_f64() / RTT.as_secs_f64()
}

#[test]
fn a_start_opens_64_segments_in_two_round_trips() {
    let mut longest = 0.0_f64;
    for option in [true, false] {
        for s in [scheme("peach", &[]), scheme("peach-plus", &[]), faithful(), scheme("swift-sat", &[])] {
            for iw in [1, 2, 10] {
                let trips = opens(s, option, iw);
                assert!((1.9..=2.1).contains(&trips), "{} {option} {iw}: {trips}", s.name);
                longest = longest.max(trips);
            }
        }
    }
    println!("at most {longest:.3} RTT");
    assert!(opens(scheme("newreno", &[]), true, 1) > 5.9);
}

/// Time from establishment until 100 segments are acknowledged, in round trips.
fn hundred(scheme: Scheme, iw: u32) -> f64 {
    let mut config = Config { initial_ssthresh: Some(Size(64 * MSS)), ..host(scheme, true, iw) };
    config.receive_buffer = ReceiveBuffer::Fixed(Size(64 * MSS));
    let mut path = Path::new(config);
    assert!(path.run(&mut |_| false, &mut |c| c.stats().established_at.is_some()));
    path.with(|c| {
        c.write(100 * MSS);
        c.close();
    });
    assert!(path.run(&mut |_| false, &mut |c| c.stats().finished_at.is_some()));
    let stats = path.sender().stats();
    let took = stats.finished_at.expect("it ended").since(stats.established_at.expect("it began"));
    took.as_secs_f64() / RTT.as_secs_f64()
}

/// 100 segments over 550 ms take less time than with slow start from 10, 2 and 1 segments.
#[test]
fn a_short_transfer_ends_earlier_than_with_slow_start() {
    let swift = hundred(scheme("swift-sat", &[]), 1);
    let gains = [(10, 0.4), (2, 2.3), (1, 3.3)].map(|(iw, earlier)| {
        let slow = hundred(scheme("newreno", &[]), iw);
        assert!(slow - swift >= earlier, "from {iw}: {slow} against {swift}");
        slow - swift
    });
    println!("earlier by {:.2}, {:.2} and {:.2} RTT", gains[0], gains[1], gains[2]);
}

/// No signal for probes: none is sent, and the start is slow start.
#[test]
fn without_a_signal_it_is_slow_start() {
    let mut config =
        Config { initial_ssthresh: Some(Size(64 * MSS)), ..host(scheme("swift-sat", &[]), false, 2) };
    config.options.sack = false;
    let mut path = Path::open(config);
    assert!(path.run(&mut |_| false, &mut |c| c.cwnd().0 >= 64 * MSS));
    assert_eq!(path.sender().probes().map(|p| (p.signal(), p.sent())), Some((ProbeSignal::None, 0)));
    assert!(!path.sent.iter().any(|(_, p)| is_probe(p)));
    let since = path.now.since(path.sender().stats().established_at.expect("it is open"));
    assert_eq!(since, RTT * 5);
}

/// A probe is marked LE, not ECT, and copies unacknowledged data; it does not count as in flight or as an RTT
/// sample.
#[test]
fn a_probe_is_outside_of_everything_that_counts_data() {
    for option in [true, false] {
        let config = Config {
            ecn: EcnUse::Request,
            initial_ssthresh: Some(Size(64 * MSS)),
            ..host(scheme("swift-sat", &[]), option, 4)
        };
        let mut path = Path::open(config);
        assert!(path.run(&mut |_| false, &mut |c| c.probes().is_some_and(|p| p.sent() == 60)));
        let c = path.sender();
        assert_eq!((c.path().in_flight, c.stats().segments_sent), (Size(4 * MSS), 4));
        for (_, p) in path.sent.iter().filter(|(_, p)| is_probe(p)) {
            assert_eq!(
                (p.ecn, u64::from(p.body.len), p.body.off % MSS),
                (bentpipe_base::Ecn::NotEct, MSS, 0)
            );
            assert!(p.body.off < 4 * MSS);
        }
        // random among those copied least: each of the four 15 times
        for k in 0..4 {
            let copies = path.sent.iter().filter(|(_, p)| is_probe(p) && p.body.off == k * MSS).count();
            assert_eq!(copies, 15, "segment {k}");
        }
        assert!(path.run(&mut |_| false, &mut |c| c.probes().is_some_and(|p| p.acknowledged() == 60)));
        let c = path.sender();
        let signal = if option { ProbeSignal::Option } else { ProbeSignal::Dsack };
        assert_eq!(c.probes().map(|p| (p.signal(), p.lost())), Some((signal, 0)));
        assert_eq!((c.stats().undone, c.stats().retransmits), (0, 0));
        let spread = c.rtt().srtt().saturating_sub(RTT).max(RTT.saturating_sub(c.rtt().srtt()));
        assert!(spread < Duration::from_millis(1), "{:?}", c.rtt().srtt());
    }
}

/// A copy repairs a loss before the retransmission arrives; the DSACK for the retransmission is then our own
/// doing and undoes nothing.
#[test]
fn a_copy_may_repair_a_loss() {
    for option in [true, false] {
        let mut path = Path::open(Config {
            initial_ssthresh: Some(Size(64 * MSS)),
            ..host(scheme("swift-sat", &[]), option, 1)
        });
        let mut originals = 1;
        let mut lost = |p: &Packet| {
            let hit = is_data(p) && originals > 0;
            originals -= u32::from(hit);
            hit
        };
        // only a copy can repair the only segment sent, before the timer expires
        assert!(path.run(&mut lost, &mut |c| c.scoreboard().una() > 1));
        let stats = path.sender().stats();
        assert_eq!((stats.timeouts, stats.retransmits), (0, 0));
        assert!(path.now.since(stats.established_at.expect("it is open")) < RTT + RTT / 32);
    }
}
