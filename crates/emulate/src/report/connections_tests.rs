//! Combining connections from artificial polls.

use super::*;
use bentpipe_base::Size;
use bentpipe_os::tcp::TcpInfo;
use bentpipe_sim::record::Series;
use std::net::IpAddr;

const NEAR: usize = 0;
const FAR: usize = 1;

fn address(host: usize, port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::from([10, 55, 0, host as u8 + 1]), port)
}

fn connections() -> Connections {
    let host = |name: &str, i: usize| {
        let addresses = vec![address(i, 0).ip()];
        (i, HostEntry { name: name.into(), addresses, own: true, ..HostEntry::default() })
    };
    Connections::new(vec![host("near", 0), host("far", 1)], Duration::from_millis(100), Instant::ZERO)
}

/// One end: payload sent and received, segments sent and received.
fn end(local: SocketAddr, peer: SocketAddr, sent: u64, received: u64) -> Connection {
    let info = TcpInfo {
        bytes_acked: sent + 1,
        bytes_sent: (sent + 100, 100),
        bytes_received: received,
        data_out: sent.div_ceil(1000) as u32,
        data_in: received.div_ceil(1000) as u32,
        retransmits: 1,
        mss: Size(1000),
        cwnd: 10,
        rtt: Duration::from_millis(600),
        min_rtt: Duration::from_millis(550),
        busy: Duration::from_millis(100),
        ..TcpInfo::default()
    };
    let congestion = "cubic".to_owned();
    Connection { local, peer, state: State::Established, congestion, info: Some(info), id: [0; 48] }
}

fn found(near: Vec<Connection>, far: Vec<Connection>, ended: Vec<Connection>) -> Vec<PollResult> {
    vec![PollResult { connections: near, ended: Vec::new() }, PollResult { connections: far, ended }]
}

fn at(tenths: u64) -> Instant {
    Instant(tenths * 100_000_000)
}

fn finish(c: Connections, tenths: u64) -> FlowResults {
    c.finish(at(tenths), &|from, to| if (from, to) == (Some(1), Some(0)) { 24_000_000 } else { 0 })
}

fn sum(series: &Series, key: &str) -> f64 {
    series.column(key).unwrap().iter().filter(|v| !v.is_nan()).sum()
}

#[test]
fn a_download_is_one_flow_from_far_told_by_its_sender_and_counted_at_its_receiver() {
    let (near, far) = (address(NEAR, 40312), address(FAR, 5201));
    let mut c = connections();
    c.process_poll(at(1), &found(vec![], vec![], vec![]));
    for t in 2..12 {
        // the receiver is ahead of the acknowledgments
        let (acked, arrived) = (10_000 * (t - 2), 10_000 * (t - 1));
        let mut sender = end(far, near, acked, 80);
        sender.info.as_mut().unwrap().bytes_sent = (arrived + 100, 100);
        c.process_poll(at(t), &found(vec![end(near, far, 80, arrived)], vec![sender], vec![]));
    }
    let states = c.states();
    assert_eq!((states[0].name.as_str(), states[0].cwnd), ("far:5201 > near:40312", 10));
    assert!((states[0].goodput_bps - 800_000.0).abs() < 1.0, "{states:?}");
    // both have closed: the kernel reports the sender's final figures
    c.process_poll(at(12), &found(vec![], vec![], vec![end(far, near, 100_000, 81)]));
    let flows = finish(c, 20);
    assert_eq!(flows.reports.len(), 1, "the request is not told: {:?}", flows.reports);
    let flow = &flows.reports[0];
    assert_eq!(&*flow.name, "far:5201 > near:40312");
    let tcp = flow.tcp().unwrap();
    assert_eq!((&*tcp.scheme, tcp.bytes_acked, tcp.retransmits), ("cubic", 100_000, 1));
    assert_eq!(tcp.finished_s, Some(1.1), "when the last byte had come, not when it was closed");
    assert!((flow.goodput_bps - 800_000.0).abs() < 1.0, "{}", flow.goodput_bps);
    assert_eq!((tcp.rtt_ms.min, flow.context.path_bps), (Some(550.0), 24_000_000));
    assert_eq!(flows.record.time_s.len(), 12);
    let series = &flows.record.flows[0];
    assert!((sum(series, "goodput_bps") * 0.1 - 800_000.0).abs() < 1.0);
    assert!(series.columns.iter().all(|c| c.values.len() == 12));
    assert!(series.column("cwnd_bytes").unwrap()[0].is_nan(), "before it began");
}

#[test]
fn a_connection_between_two_looks_is_known_by_its_end() {
    let (near, far) = (address(NEAR, 40312), address(FAR, 80));
    let mut c = connections();
    c.process_poll(at(1), &found(vec![], vec![], vec![]));
    c.process_poll(at(2), &found(vec![], vec![], vec![end(far, near, 3000, 80)]));
    c.process_poll(at(3), &found(vec![], vec![], vec![]));
    let flows = finish(c, 3);
    assert_eq!(flows.reports.len(), 1);
    let flow = &flows.reports[0];
    let tcp = flow.tcp().unwrap();
    assert_eq!((tcp.bytes_acked, flow.start_s, tcp.finished_s), (3000, 0.1, Some(0.2)));
    assert!((sum(&flows.record.flows[0], "goodput_bps") - 240_000.0).abs() < 1.0);
}

#[test]
fn the_same_ports_again_are_another_flow() {
    let (near, far) = (address(NEAR, 40312), address(FAR, 80));
    let mut c = connections();
    c.process_poll(at(1), &found(vec![], vec![end(far, near, 50_000, 80)], vec![]));
    c.process_poll(at(2), &found(vec![], vec![end(far, near, 1000, 80)], vec![]));
    let names: Vec<String> =
        finish(c, 3).reports.iter().map(|r| format!("{} {}", r.name, r.tcp().unwrap().bytes_acked)).collect();
    assert_eq!(names, ["far:80 > near:40312 50000", "far:80 > near:40312 (2) 1000"]);
}

#[test]
fn behind_an_uplink_the_receiver_tells() {
    let near = address(NEAR, 40312);
    let web: SocketAddr = "[2001:db8::1]:443".parse().unwrap();
    let mapped: SocketAddr = "[::ffff:192.0.2.7]:443".parse().unwrap();
    let mut c = connections();
    c.hosts[FAR].1.own = false;
    for t in 1..4 {
        // this machine's own connections are not ours
        let others = end(address(FAR, 22), "192.0.2.9:5000".parse().unwrap(), 9_000_000, 0);
        let receiving = vec![end(near, web, 500, 20_000 * t), end(address(NEAR, 2), mapped, 0, 100)];
        c.process_poll(at(t), &found(receiving, vec![others], vec![]));
    }
    let flows = finish(c, 4);
    let told: Vec<(&str, u64)> =
        flows.reports.iter().map(|r| (&*r.name, r.tcp().unwrap().bytes_acked)).collect();
    assert_eq!(told, [("192.0.2.7:443 > near:2", 100), ("[2001:db8::1]:443 > near:40312", 60_000)]);
    assert!(flows.reports[1].tcp().unwrap().rtt_ms.p50.is_none());
}

#[test]
fn what_stays_within_a_host_and_what_is_too_much_is_left_out() {
    let mut c = connections();
    let local = end("127.0.0.1:5".parse().unwrap(), "127.0.0.1:6".parse().unwrap(), 1000, 0);
    let itself = end(address(NEAR, 5), address(NEAR, 6), 1000, 0);
    let many = (0..300).map(|p| end(address(FAR, 80), address(NEAR, 1000 + p), 5000, 0)).collect();
    c.process_poll(at(1), &found(vec![local, itself], many, vec![]));
    let flows = finish(c, 2);
    assert_eq!(flows.reports.len(), MOST_FLOWS);
    assert_eq!(flows.faults, ["44 more connections were not followed: the limit is 256"]);
}

#[test]
fn hours_fit_into_the_record() {
    let (near, far) = (address(NEAR, 40312), address(FAR, 5201));
    let mut c = connections();
    for t in 1..=5000 {
        c.process_poll(at(t), &found(vec![], vec![end(far, near, 1000 * t, 80)], vec![]));
    }
    let flows = finish(c, 5000);
    let rows = flows.record.time_s.len();
    assert!((MAX_INTERVALS / 2..=MAX_INTERVALS).contains(&rows), "{rows}");
    let series = &flows.record.flows[0];
    assert!(series.columns.iter().all(|c| c.values.len() == rows));
    let bits = sum(series, "goodput_bps") * flows.record.every.as_secs_f64();
    assert!((bits - 8.0 * 5_000_000.0).abs() < 0.001 * bits, "{bits}");
}
