//! SCONE's TCP option and Quick-Start in real packets: what both ends learn is what a simulation says.

use crate::lab::{LEFT, Lab, RIGHT, scenario, tshark};
use bentpipe_advice::quick_start::{self, Carrier, Fields, Function, RateCode};
use bentpipe_advice::scone::Advice;
use bentpipe_advice::scone_tcp;
use bentpipe_base::{Duration, Flags, Rate};
use bentpipe_scenario::{Scenario, Source, load};
use bentpipe_tcp::RateState;
use bentpipe_wire::{Layout, hop_by_hop, parse};

const SECOND: Duration = Duration::from_secs(1);
const BYTES: u64 = 3_000_000;

/// Two hosts and a hop of 20 Mbit/s with a flow router, which has 19 Mbit/s to give.
fn hop(encoding: &str, more: &str) -> Scenario {
    scenario(&format!(
        "schema = 1\ntitle = \"t\"\nduration = \"30 s\"\n[host]\nencoding = \"{encoding}\"\ntcp = \"cubic\"\n\
         window = \"4 MiB\"\n[[hosts]]\nname = \"a\"\n[[hosts]]\nname = \"b\"\n[[links]]\nname = \"hop\"\n\
         from = \"a\"\nto = \"b\"\nrate = \"20 Mbit/s\"\ndelay = \"270 ms\"\nbuffer = \"1000 packets\"\n\
         [[flow_routers]]\nname = \"router\"\nlink = \"hop\"\n[[flows]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\n\
         app = {{ transfer = \"{BYTES} B\" }}\n{more}\n"
    ))
}

/// Runs the transfer with real packets; it must be complete and exact.
fn transfer(scenario: &Scenario, v6: bool) -> Lab {
    let mut lab = Lab::new(scenario, v6);
    lab.talk(BYTES);
    lab.run(SECOND * 30);
    assert_eq!((lab.heard, lab.all_heard()), (BYTES, true), "IPv6 {v6}");
    lab
}

fn to(lab: &Lab, side: usize) -> impl Iterator<Item = &[u8]> {
    lab.seen.iter().filter(move |(at, _)| *at == side).map(|(_, bytes)| &bytes[..])
}

fn option_bytes(bytes: &[u8]) -> &[u8] {
    &bytes[Layout::of(bytes).unwrap().options]
}

/// Signal and echo of a packet.
fn advised(bytes: &[u8]) -> Option<(Advice, Option<Advice>)> {
    scone_tcp::find(option_bytes(bytes)).map(|(_, option)| (option.advice(), option.echo(true)))
}

/// The request or report in the IP header of a packet.
fn of_ip(bytes: &[u8]) -> Option<Fields> {
    let found = match bytes[0] >> 4 {
        4 => quick_start::find(Carrier::Ipv4, &bytes[20..Layout::of(bytes).unwrap().network.transport]),
        _ => quick_start::find(Carrier::Ipv6, &hop_by_hop(bytes)?[2..]),
    };
    found.map(|(_, fields)| fields)
}

/// What the same transfer gives in simulated time: the rate, the state, and the time it takes.
fn simulated(scenario: &Scenario) -> (Option<u64>, String, f64) {
    let report = bentpipe_sim::run(scenario);
    let flow = &report.flows[0];
    let rate = flow.tcp().unwrap().rate.as_ref().unwrap();
    (rate.granted_bps, rate.state.clone(), flow.tcp().unwrap().finished_s.unwrap())
}

#[test]
fn a_sender_hears_the_advice_of_a_router() {
    let limit = Advice::at_most(Rate::from_bps(19_000_000).unwrap()).unwrap();
    for v6 in [false, true] {
        let scenario = hop("scone-tcp", "");
        let lab = transfer(&scenario, v6);
        let rate = lab.sender().rate().unwrap();
        let (granted, state, took) = simulated(&scenario);
        assert_eq!((rate.granted.map(Rate::bps), rate.state.word()), (granted, &state[..]));
        assert_eq!(rate.granted, limit.rate());
        assert!((lab.now.as_secs_f64() / took - 1.0).abs() < 0.1, "{} {took}", lab.now);
        // the SYN as it arrives, its answer, which says it back, and a segment that asks again
        let (syn, answer) = (to(&lab, RIGHT).next().unwrap(), to(&lab, LEFT).next().unwrap());
        assert_eq!(option_bytes(syn)[20..], [1, 1, 254, 6, 0x6F, 0x7D, 0x3F, 0x80 | limit.get()]);
        assert_eq!(advised(answer), Some((Advice::UNKNOWN, Some(limit))));
        let data: Vec<_> =
            to(&lab, RIGHT).filter(|bytes| !parse(bytes).unwrap().payload.is_empty()).collect();
        assert_eq!(advised(data[0]), Some((limit, None)), "the first data asks");
        let asks = data.iter().filter(|bytes| advised(bytes).is_some()).count();
        assert!((2..6).contains(&asks), "a second later, and so on: {asks}");
        let most = if v6 { 1500 - 60 - 12 - 8 } else { 1500 - 40 - 12 - 8 };
        assert!(data.iter().all(|bytes| parse(bytes).unwrap().payload.len() <= most));
        assert!(data.iter().any(|bytes| parse(bytes).unwrap().payload.len() == most));
    }
}

#[test]
fn a_sender_begins_at_the_rate_that_a_router_approves() {
    // 10.24 Mbit/s is the highest code up to 19 Mbit/s
    let code = RateCode::new(8).unwrap();
    for v6 in [false, true] {
        let scenario = hop("quick-start", "");
        let lab = transfer(&scenario, v6);
        let rate = lab.sender().rate().unwrap();
        let (granted, state, took) = simulated(&scenario);
        assert_eq!((rate.granted.map(Rate::bps), rate.state.word()), (granted, &state[..]));
        assert_eq!((rate.granted, rate.state), (code.rate(), RateState::Granted));
        assert!((lab.now.as_secs_f64() / took - 1.0).abs() < 0.1, "{} {took}", lab.now);
        let syn = to(&lab, RIGHT).next().unwrap();
        let asked = of_ip(syn).unwrap();
        assert_eq!((asked.function(), asked.rate()), (Some(Function::Request), code));
        let answer = option_bytes(to(&lab, LEFT).next().unwrap());
        let (_, answer) = quick_start::find(Carrier::Tcp, answer).unwrap();
        assert_eq!(answer, asked.answer(parse(syn).unwrap().hops));
        let reports: Vec<_> = to(&lab, RIGHT).skip(1).filter_map(of_ip).collect();
        assert_eq!(
            (reports.len(), reports[0].function(), reports[0].rate()),
            (1, Some(Function::Report), code)
        );
        let more = to(&lab, LEFT).filter(|b| quick_start::find(Carrier::Tcp, option_bytes(b)).is_some());
        assert_eq!(more.count(), 1, "one answer");
    }
}

/// Two requests of one host differ in what the receiver must not know, though their SYNs show all else.
#[test]
fn the_nonce_is_a_secret_of_the_sender() {
    let lab = transfer(&hop("quick-start", ""), false);
    let syn = parse(to(&lab, RIGHT).next().unwrap()).unwrap();
    let shown = u64::from(syn.tcp.seq.0) << 32 | u64::from(syn.tcp.timestamps.unwrap().value);
    let guess = bentpipe_base::mix(shown) as u32 & 0x3FFF_FFFF;
    let asked = of_ip(to(&lab, RIGHT).next().unwrap()).unwrap();
    // the bits below the approved rate are those of the sender
    assert_ne!(asked.nonce() & 0xFFFF, guess & 0xFFFF);
}

/// Routers lower the TTL. One that does not take part voids the start.
#[test]
fn every_router_of_the_path_has_to_approve() {
    let file = include_str!("../../../../scenarios/rate-encodings.toml");
    for (last, v6) in [("true", false), ("true", true), ("false", false), ("false", true)] {
        let sets = [("last", last), ("encoding", "quick-start")];
        let sets = sets.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let scenario = load(&Source::new("test", file.to_owned()), &sets, None).unwrap();
        let lab = transfer(&scenario, v6);
        let rate = lab.sender().rate().unwrap();
        // 47.5 Mbit/s are unused: 40.96 Mbit/s
        let (granted, state) = if last == "true" {
            (Rate::from_bps(40_960_000), RateState::Granted)
        } else {
            (None, RateState::Plain)
        };
        assert_eq!((rate.granted, rate.state), (granted, state), "IPv6 {v6}");
    }
}

/// A receiver that does not signal: an ordinary connection.
#[test]
fn without_a_peer_that_signals_connections_are_ordinary() {
    for encoding in ["scone-tcp", "quick-start"] {
        for v6 in [false, true] {
            let lab = transfer(&hop(encoding, "receiver = { encoding = \"off\" }"), v6);
            let rate = lab.sender().rate().unwrap();
            assert_eq!((rate.granted, rate.state), (None, RateState::Plain), "{encoding}");
            let rest = to(&lab, RIGHT).skip(1).chain(to(&lab, LEFT));
            assert_eq!(rest.filter(|bytes| advised(bytes).is_some() || of_ip(bytes).is_some()).count(), 0);
        }
    }
}

/// Two connections, and packets of both directions are lost.
#[test]
fn streams_stay_exact_when_packets_are_lost() {
    for encoding in ["scone-tcp", "quick-start"] {
        for v6 in [false, true] {
            let mut lab = Lab::new(&hop(encoding, ""), v6);
            lab.loses_every = Some(50);
            lab.talk(BYTES);
            lab.talk(BYTES / 3);
            lab.run(SECOND * 120);
            assert_eq!((lab.heard, lab.all_heard()), (BYTES + BYTES / 3, true));
        }
    }
}

/// Wireshark finds the options where they belong, and nothing wrong.
#[test]
fn tshark_reads_them() {
    for encoding in ["scone-tcp", "quick-start"] {
        for v6 in [false, true] {
            let lab = transfer(&hop(encoding, ""), v6);
            let name = format!("{encoding}-{v6}");
            let fields = |filter: &str, names: &[&str]| tshark(&name, &lab.seen, filter, names);
            let bad = "_ws.malformed || ip.checksum.status == 0 || tcp.checksum.status == 0";
            let Some(found) = fields(bad, &["frame.number"]) else { return };
            assert!(found.is_empty(), "{name}: {found:?}");
            let read = |filter: &str, names: &[&str]| fields(filter, names).unwrap();
            if encoding == "scone-tcp" {
                let ids = read("tcp.flags.syn == 1", &["tcp.options.experimental.exid"]);
                assert_eq!(ids, ["0x6f7d", "0x6f7d"]);
                continue;
            }
            let of = |field: &str| format!("{}.opt.qs_{field}", if v6 { "ipv6" } else { "ip" });
            let (function, rate) = (of("func"), of("rate"));
            assert_eq!(read("tcp.flags.syn == 1 && tcp.flags.ack == 0", &[&function, &rate]), ["0\t8"]);
            assert_eq!(read("tcp.flags.syn == 1 && tcp.flags.ack == 1", &["tcp.options.qs.rate"]), ["8"]);
            assert_eq!(read(&format!("{function} == 8"), &[&rate]), ["8"]);
        }
    }
}

/// The last SYN of a doubtful path has no option, as in a simulation.
#[test]
fn a_path_that_drops_options_gets_a_plain_syn() {
    for encoding in ["scone-tcp", "quick-start"] {
        for v6 in [false, true] {
            let mut lab = Lab::new(&hop(encoding, ""), v6);
            lab.drops_options = true;
            lab.talk(BYTES);
            lab.run(SECOND * 60);
            assert!(lab.all_heard());
            assert_eq!(lab.sender().rate().unwrap().state, RateState::Plain);
            let syns = to(&lab, RIGHT).filter(|b| parse(b).unwrap().tcp.flags.has(Flags::SYN));
            let syns: Vec<_> = syns.map(|syn| (advised(syn), of_ip(syn))).collect();
            assert_eq!((syns, lab.lost_syns > 0), (vec![(None, None)], true), "{encoding}");
        }
    }
}
