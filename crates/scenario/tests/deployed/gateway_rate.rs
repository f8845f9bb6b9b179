//! `[rate]` of gateway files: what it says, and what is refused with place and mend.

use bentpipe_advice::negotiation::Encoding;
use bentpipe_base::{Duration, Rate, Size};
use bentpipe_flow_router::{Encodings, RouterConfig, RouterEncoding};
use bentpipe_scenario::Source;
use bentpipe_scenario::gateway_file::{ManagedRates, load};

const HEAD: &str = "schema = 1\n[deploy]\nkind = \"routed\"\nlan = \"eth1\"\nsatellite = \"eth0\"\n";

/// Loads a file with these keys of `[satellite]` and `[rate]`.
fn read(hop: &str, keys: &str) -> Result<Option<ManagedRates>, String> {
    let text = format!("{HEAD}[satellite]\n{hop}\n[rate]\n{keys}\n");
    load(&Source::new("gw.toml", text)).map(|file| file.rate).map_err(|fault| fault.to_string())
}

fn mbps(mbps: u64) -> Rate {
    Rate::from_bps(mbps * 1_000_000).expect("more than zero")
}

#[track_caller]
fn refuses(hop: &str, keys: &str, message: &str, label: &str) {
    let error = read(hop, keys).expect_err(keys);
    assert!(error.starts_with(message), "{error}");
    assert!(error.contains("--> gw.toml:") && error.contains(label), "{error}");
}

const HOP: &str = "rate = \"20 Mbit/s\"";
const BOTH: &str = "encodings = [\"tia-1039\", \"scone\"]";

#[test]
fn it_is_off_unless_an_encoding_is_named() {
    assert_eq!(read(HOP, ""), Ok(None));
    assert_eq!(read("", "encodings = []"), Ok(None));
    assert_eq!(load(&Source::new("gw.toml", format!("{HEAD}[satellite]\n"))).unwrap().rate, None);
}

#[test]
fn it_takes_the_rate_of_the_hop_and_the_defaults_of_flow_routers() {
    let rates = read(HOP, BOTH).unwrap().unwrap();
    let encodings = Encodings::default().with(Encoding::Tia1039).with(RouterEncoding::Scone);
    let outward = RouterConfig { hops: 2, encodings, is_live: true, ..RouterConfig::new(mbps(20)) };
    assert_eq!(rates, ManagedRates { outward, inward: None });
    let framed = read(&format!("{HOP}\nframing = \"500 B\""), BOTH).unwrap().unwrap();
    assert_eq!(framed.outward.rate, mbps(15), "the rest is framing");
    let scone = read(HOP, "encodings = [\"scone\"]").unwrap().unwrap();
    assert_eq!(scone.outward.encodings, Encodings::default().with(RouterEncoding::Scone));
    let all = "encodings = [\"tia-1039\", \"scone-tcp\", \"quick-start\", \"scone\"]";
    assert_eq!(read(HOP, all).unwrap().unwrap().outward.encodings, Encodings::all());
}

/// Quick-Start: the machine of a routed gateway lowers the TTL when it forwards to the gateway and from it.
#[test]
fn it_knows_by_how_much_the_ttl_of_a_packet_falls() {
    let hops = |kind: &str| {
        let text = format!("{HEAD}[satellite]\n{HOP}\n[rate]\n{BOTH}\n").replace("routed", kind);
        load(&Source::new("gw.toml", text)).unwrap().rate.unwrap().outward.hops
    };
    assert_eq!((hops("routed"), hops("inline")), (2, 0));
}

#[test]
fn its_keys_are_those_of_flow_routers() {
    let keys = "rate = \"8 Mbit/s\"\nreturn_rate = \"2 Mbit/s\"\nutilisation = 0.5\nidle = \"1 min\"\nmtu = \"9000 B\"\n\
        limits = { flows = 7, half_open = 3, half_open_time = \"4 s\" }\n\
        classes = [{ name = \"gold\", weight = 3 }, { name = \"rest\", weight = 1 }]\n\
        rules = [{ from = \"10.0.0.0/8\", class = \"rest\", available = \"1 Mbit/s\" }]";
    let rates = read(HOP, &format!("{BOTH}\n{keys}")).unwrap().unwrap();
    let RouterConfig { rate, classes, policy, .. } = &rates.outward;
    assert_eq!((*rate, classes.len(), policy.rules[0].class), (mbps(8), 2, 1));
    let config = &rates.outward;
    assert_eq!((config.flows, config.half_open, config.mtu), (7, 3, Size(9000)));
    assert_eq!((config.idle, config.half_open_time), (Duration::from_secs(60), Duration::from_secs(4)));
    let inward = rates.inward.as_ref().unwrap();
    assert_eq!(*inward, RouterConfig { rate: mbps(2), ..config.clone() });
}

#[test]
fn what_cannot_be_is_refused_with_place_and_mend() {
    refuses("", BOTH, "the rate to be shared out is not known", "give `rate` here, or in [satellite]");
    let known = "it can be tia-1039, scone, scone-tcp, quick-start";
    refuses(HOP, "encodings = [\"tia1039\"]", "`encodings` cannot be \"tia1039\"", known);
    refuses(HOP, "encodings = \"scone\"", "`encodings` is a list of encodings", "write [\"tia-1039\"");
    refuses(HOP, "encodings = [\"scone\", \"scone\"]", "`encodings` has `scone` twice", "drop one");
    refuses(HOP, "rat = \"1 Mbit/s\"", "unknown key `rat` in [rate]", "did you mean `rate`?");
    refuses(HOP, "utilisation = 1.5", "`utilisation` is a part of the rate", "more than 0 and at most 1");
    refuses(HOP, "mtu = \"100 B\"", "`mtu` is too small", "at least 576 B");
    refuses(HOP, "rate = \"500 bit/s\"", "`rate` is too small", "at least 1 kbit/s");
    refuses(HOP, "return_rate = \"500 bit/s\"", "`return_rate` is too small", "at least 1 kbit/s");
    let class = "rules = [{ from = \"10.0.0.1\", class = \"gold\" }]";
    refuses(HOP, class, "there is no class `gold`", "help: classes: default");
}
