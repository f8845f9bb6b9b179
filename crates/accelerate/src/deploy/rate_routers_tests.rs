use super::*;
use bentpipe_base::{Instant, Rate, Size};
use bentpipe_driver::Unit;
use bentpipe_flow_router::{ClassConfig, Encodings, Fixed};
use bentpipe_gateway::{Config, Gateway};
use bentpipe_scenario::Source;
use bentpipe_scenario::gateway_file::load;
use bentpipe_wire::offload::VnetHeader;

fn rates(keys: &str) -> Option<ManagedRates> {
    let text = format!(
        "schema = 1\n[satellite]\nrate = \"20 Mbit/s\"\n[deploy]\nkind = \"inline\"\nlan = \"a\"\nsatellite = \"b\"\n\
         [rate]\nencodings = [\"tia-1039\", \"scone\"]\nutilisation = 1\n{keys}"
    );
    load(&Source::new("gw.toml", text)).unwrap().rate
}

/// A gateway that accelerates nothing, with flow routers.
struct Stage {
    net: LiveNetwork,
    routers: RateRouters,
}

impl Stage {
    fn new(rates: &ManagedRates) -> Self {
        let mut routers = None;
        let add = |network: &mut Network| {
            let gateway =
                network.add_gateway(Gateway::new(Config { accelerate: false, ..Config::default() }));
            let (all, mut chain) = RateRouters::add(network, Some(rates));
            routers = Some(all);
            chain.push(gateway.into());
            chain
        };
        let net = LiveNetwork::chain(add, 1, Unit::Packet, Size(1 << 20));
        Self { net, routers: routers.unwrap() }
    }

    /// Sends a packet in at a port; returns the port and the bytes with which it leaves.
    fn pass(&mut self, port: usize, bytes: &[u8]) -> (usize, Vec<u8>) {
        self.net.advance(self.net.now() + bentpipe_base::Duration::from_millis(20));
        self.net.store.borrow_mut().write(bytes);
        assert!(self.net.accept(port, bytes.len(), &VnetHeader::default()));
        self.net.advance(self.net.now() + bentpipe_base::Duration::from_millis(20));
        let arrival = self.net.take_arrival().expect("nothing is dropped");
        let sent = self.net.emit(&arrival, |_, header, rest| [header, rest].concat());
        let port = arrival.port;
        self.net.done(arrival);
        (port, sent)
    }

    fn counter(&self, direction: usize, key: &str) -> u64 {
        let figures = self.routers.figures().remove(direction);
        figures.counters.iter().find(|(k, _)| k == key).unwrap().1
    }
}

/// A QUIC datagram with a SCONE packet that has this signal, without a checksum. `from`: last byte of the
/// sender's address.
fn quic(from: u8, port: u16, signal: u8) -> Vec<u8> {
    let mut ip = vec![0x45, 0, 0, 48, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, from, 10, 0, 0, 3 - from];
    let sum = bentpipe_wire::Sum::of(&ip).finish();
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    ip.extend(port.to_be_bytes());
    ip.extend([1, 187, 0, 28, 0, 0]);
    ip.extend([0xC0 | signal >> 1, 0x6F | (signal & 1) << 7, 0x7D, 0xC0, 0xFD, 1, 9, 0]);
    ip.extend([0x40; 12]);
    ip
}

const UNKNOWN: u8 = 127;

#[test]
fn quic_is_told_its_share_in_both_directions() {
    let rates = rates("return_rate = \"100 Mbit/s\"\n").unwrap();
    let mut stage = Stage::new(&rates);
    // 20 Mbit/s for one flow, then 10 for each of two
    assert_eq!(stage.pass(0, &quic(1, 5, UNKNOWN)), (1, quic(1, 5, 46)));
    assert_eq!(stage.pass(0, &quic(1, 6, UNKNOWN)), (1, quic(1, 6, 40)));
    assert_eq!(stage.pass(0, &quic(1, 5, 30)), (1, quic(1, 5, 30)), "never higher");
    assert_eq!(stage.pass(1, &quic(2, 443, UNKNOWN)), (0, quic(2, 443, 60)));
    assert_eq!((stage.counter(0, "flows"), stage.counter(1, "flows")), (2, 1));
    assert_eq!((stage.counter(0, "advised"), stage.counter(1, "advised")), (2, 1));
    let names: Vec<String> = stage.routers.figures().into_iter().map(|f| f.name).collect();
    assert_eq!(names, ["to_satellite", "to_lan"]);
}

#[test]
fn a_new_rate_applies_to_the_next_packet() {
    let old = rates("").unwrap();
    let mut stage = Stage::new(&old);
    assert_eq!(stage.pass(0, &quic(1, 5, UNKNOWN)).1, quic(1, 5, 46));
    let new = rates("rate = \"2 Mbit/s\"\nrules = [{ from = \"10.0.0.9\" }]\n").unwrap();
    assert_eq!(refusal(Some(&old), Some(&new)), None);
    stage.routers.reconfigure(&mut stage.net, Some(&new)).unwrap();
    assert_eq!(stage.counter(0, "rate_bps"), 2_000_000);
    assert_eq!(stage.pass(0, &quic(1, 5, UNKNOWN)).1, quic(1, 5, 26));
    assert!(stage.net.now() > Instant::ZERO);
}

#[test]
fn what_cannot_change_is_refused_with_the_reason() {
    let old = rates("").unwrap();
    let why = |change: &dyn Fn(&mut ManagedRates)| {
        let mut new = old.clone();
        change(&mut new);
        refusal(Some(&old), Some(&new))
    };
    let fixed = |what: Fixed| Some(format!("[rate]: {what}"));
    assert_eq!(why(&|rates| rates.outward.flows = 7), fixed(Fixed::Limits));
    assert_eq!(why(&|rates| rates.outward.encodings = Encodings::default()), fixed(Fixed::Encodings));
    assert_eq!(why(&|rates| rates.outward.classes.push(ClassConfig::default())), fixed(Fixed::Classes));
    assert_eq!(why(&|rates| rates.outward.rate = Rate::from_bps(7).unwrap()), None);
    assert_eq!(why(&|rates| rates.outward.utilisation = 0.5), None);
    let directions = why(&|rates| rates.inward = Some(rates.outward.clone()));
    assert!(directions.is_some_and(|why| why.contains("which directions")));
    assert!(refusal(None, Some(&old)).is_some() && refusal(Some(&old), None).is_some());
    assert_eq!(refusal(None, None), None);
}
