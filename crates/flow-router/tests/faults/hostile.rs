//! Forged requests and false answers: flows with a rate keep it.

use super::end::{Flow, PORT, host, host_of};
use super::faults::{rate, setting};
use super::net::{BACK, Bottleneck, Fate, Net, THERE};
use super::watch::counter;
use bentpipe_advice::tia1039::{Kind, Structure, replace, structures, write};
use bentpipe_base::{Addr, Duration, Flags, Instant, IpVersion, Node, Packet, Purpose, Rng, Seq, Size};
use bentpipe_flow_router::RouterConfig;
use bentpipe_tcp::{Config, ReceiveBuffer};
use std::sync::Arc;

const FLOWS: usize = 8;
const LINK: u64 = 20_000_000;
/// When the attack begins.
const BEGIN: Instant = Instant(600_000_000);

/// A link of 20 Mbit/s with flows that never end.
fn net_of(ip: IpVersion, forge: Option<fn(usize, &mut Packet)>) -> Net<'static> {
    let config = Arc::new(Config { receive_buffer: ReceiveBuffer::Fixed(Size(1 << 20)), ..host(ip) });
    let flows = (0..FLOWS).map(|n| Flow::new(&config, n, 0, [u64::MAX / 8, 0])).collect();
    let site = RouterConfig::new(rate(LINK));
    let mut net = Net::new(&[site.clone(), site], flows, |_| Fate::Pass);
    net.watch.off = true;
    net.forge = forge;
    net.bottleneck = Some(Bottleneck {
        hop: 1,
        way: THERE,
        rate: rate(LINK),
        longest: Duration::from_millis(50),
        free_at: Instant::ZERO,
        dropped: 0,
    });
    net.run(BEGIN);
    net
}

/// Bytes that each flow has brought.
fn brought(net: &Net<'_>) -> Vec<u64> {
    net.flows.iter().map(|flow| flow.ends[1].content.read).collect()
}

/// The rate of each flow.
fn grants(net: &Net<'_>) -> Vec<u64> {
    let granted = |flow: &Flow| {
        flow.ends[0].conn.as_ref().and_then(bentpipe_tcp::Connection::rate).and_then(|r| r.granted)
    };
    net.flows.iter().map(|flow| granted(flow).map_or(0, bentpipe_base::Rate::bps)).collect()
}

/// The least share of what it brings otherwise that a flow still brings, from the beginning of an attack on.
fn least_goodput(net: &Net<'_>, peace: &Net<'_>, before: &[u64]) -> f64 {
    let (with, without) = (brought(net), brought(peace));
    let ratio = |n: usize| (with[n] - before[n]) as f64 / (without[n] - before[n]) as f64;
    (0..FLOWS).map(ratio).fold(f64::INFINITY, f64::min)
}

/// The receiver of the first flow answers that nobody has lowered what the sender asks for.
fn promise_all(side: usize, packet: &mut Packet) {
    if side == 0 || packet.dport != PORT {
        return;
    }
    for (index, structure) in structures(packet).as_slice().iter().enumerate() {
        if structure.kind() == Some(Kind::Response) {
            let mut response = *structure;
            response.set_available(Some(rate(9_000_000_000)));
            response.set_changed(true);
            replace(packet, index, &response);
        }
    }
}

#[test]
fn a_receiver_that_promises_everything_takes_nothing_from_the_neighbours() {
    let mut lines = Vec::new();
    for ip in [IpVersion::V4, IpVersion::V6] {
        let run = |forge: Option<fn(usize, &mut Packet)>| {
            let mut net = net_of(ip, forge);
            let before = brought(&net);
            net.run(BEGIN + Duration::from_secs(5));
            (net, before)
        };
        let ((net, before), (peace, peaceful)) = (run(Some(promise_all)), run(None));
        let more =
            |n: usize| (brought(&net)[n] - before[n]) as f64 / (brought(&peace)[n] - peaceful[n]) as f64;
        let neighbours = (1..FLOWS).map(more).fold(f64::INFINITY, f64::min);
        let policed = counter(&net.routers[0][THERE], "policed");
        assert!(neighbours >= 0.98 && policed > 0, "{ip:?}");
        lines.push(format!("{ip:?}: neighbours keep {neighbours:.3}, it {:.3}, {policed} dropped", more(0)));
    }
    println!("{}", lines.join("; "));
}

fn forged(ip: IpVersion, src: Addr, sport: u16, flags: Flags) -> Packet {
    let mut packet = Packet { ip, src, dst: host_of(1), sport, dport: PORT, hops: 60, ..Packet::default() };
    packet.tcp.flags = flags;
    // who does not see the connection guesses
    (packet.tcp.seq, packet.tcp.ack) = (Seq(1 << 30), Seq(3 << 30));
    packet.seal();
    packet
}

/// Requests from addresses that do not exist, one in `every`, for `length`. Returns the least goodput of a
/// flow with a rate, beside that without them; the most flows that the router kept; lowest and former
/// grants.
fn flood(ip: IpVersion, every: Duration, length: Duration) -> (f64, usize, [Vec<u64>; 2]) {
    let (mut net, mut peace) = (net_of(ip, None), net_of(ip, None));
    let (before, granted) = (brought(&net), grants(&net));
    let mut rng = Rng::new(1, "forged", Purpose::Start);
    let (mut most, mut lowest, end) = (0, granted.clone(), BEGIN + length);
    while net.now < end {
        net.run(net.now + every);
        let (src, sport) = (Addr(rng.bits() as u32 | 1 << 20), rng.bits() as u16 % PORT);
        let mut packet = forged(ip, src, sport, Flags::SYN);
        write(&mut packet, &[Structure::request(rate(10_000_000_000))]);
        net.cross(0, THERE, Box::new(packet));
        if rng.bits().is_multiple_of(1000) {
            let mut addresses = 0;
            net.routers[0][THERE].addresses(&mut |_| addresses += 1);
            most = most.max(addresses / 2);
            lowest.iter_mut().zip(grants(&net)).for_each(|(low, now)| *low = (*low).min(now));
        }
    }
    peace.run(end);
    (least_goodput(&net, &peace, &before), most, [lowest, granted])
}

#[test]
fn a_flood_of_forged_requests_takes_nothing_from_flows_with_a_rate() {
    let (every, seconds) = (Duration::from_micros(5), setting("BENTPIPE_FLOOD_SECONDS", 1));
    let mut lines = Vec::new();
    for ip in [IpVersion::V4, IpVersion::V6] {
        let (goodput, most, [lowest, granted]) = flood(ip, every, Duration::from_secs(seconds));
        assert!(goodput >= 0.98, "{ip:?}: {goodput}");
        assert_eq!(lowest, granted, "{ip:?}");
        assert!((1024..=1024 + FLOWS).contains(&most), "{ip:?}: {most}"); // RouterConfig::half_open
        lines.push(format!("{ip:?}: goodput {goodput:.4} at least, {most} flows kept in {seconds} s"));
    }
    println!("{}", lines.join("; "));
}

/// They are believed until it shows that nobody answers them, and even then they do not get everything.
#[test]
fn few_forged_requests_per_second_take_little_from_flows_with_a_rate() {
    let mut lines = Vec::new();
    for per_second in [10_u64, 1000] {
        let every = Duration(1_000_000_000 / per_second);
        let (goodput, ..) = flood(IpVersion::V4, every, Duration::from_secs(20));
        assert!(goodput >= 0.98, "{per_second} in a second: {goodput}");
        lines.push(format!("{per_second} in a second: goodput {goodput:.4} at least"));
    }
    println!("{}", lines.join("; "));
}

/// A packet with the addresses of a live flow, of either side, with any kind of structure.
#[test]
fn forged_start_packets_do_not_change_the_rate_of_a_live_flow() {
    const KINDS: [Kind; 8] = [
        Kind::Forward,
        Kind::Request,
        Kind::Response,
        Kind::Confirmation,
        Kind::MissedStart,
        Kind::Renegotiate,
        Kind::ResendStart,
        Kind::Close,
    ];
    for ip in [IpVersion::V4, IpVersion::V6] {
        for kind in KINDS {
            for flags in [Flags::SYN, Flags::SYN.with(Flags::ACK), Flags::ACK] {
                for way in [THERE, BACK] {
                    let what = format!("{ip:?} {kind:?} {flags:?} way {way}");
                    let mut net = net_of(ip, None);
                    let granted = grants(&net);
                    for asked in [1_000, 100_000, 10_000_000_000] {
                        net.depart(way * 2, way, Box::new(forged_start(ip, way, flags, kind, asked)));
                        for _ in 0..12 {
                            net.run(net.now + Duration::from_millis(25));
                            assert_eq!(grants(&net), granted, "{what}, {asked} bit/s");
                        }
                    }
                    let dropped = net.routers.iter().flatten().map(|router| counter(router, "policed"));
                    assert_eq!(dropped.sum::<u64>(), 0, "{what}");
                }
            }
        }
    }
}

/// A packet with the addresses of the first flow, as if its opener or the other end had sent it.
fn forged_start(ip: IpVersion, way: usize, flags: Flags, kind: Kind, asked: u64) -> Packet {
    let mut packet = forged(ip, host_of(0), PORT, flags);
    if way == BACK {
        (packet.src, packet.dst) = (packet.dst, packet.src);
        (packet.sport, packet.dport) = (packet.dport, packet.sport);
    }
    let mut structure = Structure::request(rate(asked));
    structure.set_kind(kind);
    write(&mut packet, &[structure]);
    packet
}
