//! SCONE of flow routers in real packets: with datagrams of the draft's layout, and with the client and the
//! server of a QUIC stack that is not ours, picoquic, if a build of it is named.

use crate::accept::list::{List, Outcome, Setup, Tests};
use crate::program;
use lab::agents::{Service, scenario};
use lab::chain::Chain;
use lab::datagrams::Changes;
use lab::passage::Host;
use lab::quic::{BOTH, Download, Ip, Picoquic, Speaks, send, without_offloads};
use lab::scenario::OneLink;
use std::path::Path;
use std::time::Duration;

/// The variable with the folder of a build of picoquic.
const VARIABLE: &str = "BENTPIPE_PICOQUIC";
/// The link behind a gateway has more than the gateway gives.
const WIDE: OneLink<'static> =
    OneLink { rate: "100 Mbit/s", delay: "10 ms", buffer: "8 MB", ..OneLink::CLEAN };
/// The link of an emulated flow router.
const NARROW: OneLink<'static> = OneLink { rate: "20 Mbit/s", ..WIDE };
const KEYS: &str = "encodings = [\"scone\"]\nutilisation = 1\n";
const RATES: &str = "rate = \"20 Mbit/s\"\nreturn_rate = \"50 Mbit/s\"\n";
/// The same later, and when that is.
const LATER: &str = "rate = \"5 Mbit/s\"\nreturn_rate = \"50 Mbit/s\"\n";
const LATER_S: u64 = 3;
/// Signals for 20, 50 and 5 Mbit/s, and what picoquic takes them for, bit/s.
const TWENTY: (u8, u64) = (46, 19_952_623);
const FIFTY: (u8, u64) = (53, 44_668_359);
const FIVE: u64 = 4_466_836;
const UNKNOWN: u8 = 127;
/// Bytes of a download, and of one that lasts until picoquic asks a second time, after 19 s to 22 s.
const BYTES: u64 = 4_000_000;
const LONG_BYTES: u64 = 65_000_000;

/// The test programs, as arguments for cargo.
const TESTS: &str = "-p bentpipe-advice -p bentpipe-driver -p bentpipe-flow-router -p bentpipe-accelerate --lib --test encodings";
const PROOFS: &str = "
* layout and signals of the draft
  limits_have_the_signals_and_bytes_of_the_draft a_packet_has_the_connection_ids_of_the_datagram
* a signal is lowered to the share of its flow, never raised
  a_datagram_is_told_the_share_of_its_flow an_element_lowers_and_never_raises
  only_the_signal_of_a_packet_changes
* in both directions of a gateway, and after a reload
  quic_is_told_its_share_in_both_directions a_new_rate_applies_to_the_next_packet
* in each datagram of a super-packet; nothing else changes, and no wrong checksum becomes a right one
  each_datagram_of_a_super_packet_has_a_signal_of_its_own a_lowered_signal_is_the_only_change
  a_datagram_without_a_checksum_gets_none_and_damage_stays_visible a_sum_of_zero_is_written_as_all_ones
* other packets pass untouched
  other_packets_pass_untouched what_is_not_among_the_encodings_passes_and_counts_as_a_user";

/// Where the flow router is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Gateway,
    Emulated,
}

impl Place {
    const fn words(self) -> &'static str {
        if matches!(self, Self::Gateway) { "routed gateway" } else { "emulated flow router" }
    }

    fn chain(self, setup: &Setup) -> Outcome<Chain> {
        let scenario = if self == Self::Gateway { WIDE.toml() } else { scenario(&NARROW, 1.0) };
        Chain::new(setup.bentpipe()?, &scenario, "true")
    }

    fn start(self, chain: &Chain) -> Outcome<Option<Service<'_>>> {
        let start = || Service::gateway(chain, &format!("{KEYS}{RATES}"));
        if self == Self::Gateway { start().map(Some) } else { Ok(None) }
    }

    /// What is told to the host behind the link, and to the one on the LAN.
    const fn told(self) -> [Option<(u8, u64)>; 2] {
        [Some(TWENTY), if matches!(self, Self::Gateway) { Some(FIFTY) } else { None }]
    }
}

pub(super) fn check(setup: &Setup, list: &mut List) -> Outcome {
    list.proofs(&Tests::of(TESTS, &[])?, PROOFS);
    program::find(&["ethtool"], "ethtool")?;
    for place in [Place::Gateway, Place::Emulated] {
        for ip in BOTH {
            let what = format!("{}, {ip}: datagrams of the draft's layout, both ways", place.words());
            list.judge(what, own(setup, (place, ip)), |passed| {
                (format!("{passed} told or passed as they should, checksums right"), true)
            });
        }
    }
    let what = "the same with a QUIC stack that is not ours";
    let Some(folder) = std::env::var_os(VARIABLE) else {
        list.skip(what, &format!("{VARIABLE} is not set to a folder with picoquicdemo"));
        return Ok(());
    };
    program::find(&["openssl"], "openssl")?;
    let quic = Picoquic::of(Path::new(&folder))?;
    for place in [Place::Gateway, Place::Emulated] {
        for ip in BOTH {
            told(setup, list, &quic, (place, ip));
        }
    }
    for ip in BOTH {
        untouched(setup, list, &quic, ip);
    }
    with_offloads(setup, list, &quic);
    later(setup, list, &quic);
    Ok(())
}

/// A datagram that begins with a SCONE packet with this signal.
fn asking(signal: u8, reserved: u8, source: &[u8], data: u8) -> Vec<u8> {
    let id = [8, 1, 2, 3, 4, 5, 6, 7, 8];
    let start = [0x80 | reserved | signal >> 1, 0x6F | (signal & 1) << 7, 0x7D, 0xC0, 0xFD];
    [&start[..], &id, &[source.len() as u8], source, &[0x40], &id[1..], &[data; 40]].concat()
}

/// Datagrams, and as what they arrive where `told` is told.
fn vectors(told: Option<u8>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let lowered = |signal: u8| told.map_or(signal, |told| told.min(signal));
    let mut all = Vec::new();
    for signal in [UNKNOWN, 126, 54, 47, 46, 30, 0] {
        for (reserved, source) in [(0x40, &[][..]), (0, &[]), (0x40, &[7; 8])] {
            // other data in each, so that what arrives can be told from the others
            let [sent, wanted] = [signal, lowered(signal)].map(|told| asking(told, reserved, source, signal));
            all.push((sent, wanted));
        }
    }
    // an Initial packet that ends with the hint, one with a SCONE packet after it, and a short header
    let initial = [&[0xC3, 0, 0, 0, 1, 8][..], &[9; 1192], &[0xC8, 0x13]].concat();
    let late = [&initial[..100], &asking(UNKNOWN, 0x40, &[], 1)].concat();
    let mut others = vec![initial, late, vec![0x41; 30]];
    // another version, and a packet that nothing follows
    let other_version = |mut datagram: Vec<u8>| {
        datagram[4] = 0xFC;
        datagram
    };
    others.push(other_version(asking(UNKNOWN, 0x40, &[], 1)));
    others.push(asking(UNKNOWN, 0x40, &[], 1)[..15].to_vec());
    all.extend(others.into_iter().map(|other| (other.clone(), other)));
    all
}

/// Sends our own datagrams both ways; returns how many.
fn own(setup: &Setup, (place, ip): (Place, Ip)) -> Outcome<usize> {
    // a flow router of its own for each: a flow counts as a user for some seconds after it has ended
    let chain = place.chain(setup)?;
    let _router = place.start(&chain)?;
    without_offloads(&chain)?;
    let mut passed = 0;
    for (from, told) in [Host::Sender, Host::Receiver].into_iter().zip(place.told()) {
        let (sent, wanted): (Vec<_>, Vec<_>) = vectors(told.map(|(signal, _)| signal)).into_iter().unzip();
        let (arrived, changes) = send(&chain, from, ip, &sent)?;
        if let Some(i) = (0..sent.len()).find(|i| arrived.get(*i) != wanted.get(*i)) {
            let start = |bytes: &[u8]| format!("{:02x?}", &bytes[..bytes.len().min(16)]);
            let came = arrived.get(i).map_or_else(|| "nothing".to_owned(), |bytes| start(bytes));
            return Err(format!("from {from:?}: {} arrived as {came}", start(&sent[i])));
        }
        let expected = sent.iter().zip(&wanted).filter(|(sent, wanted)| sent != wanted).count();
        if are_sound(&changes)? != expected {
            return Err(format!(
                "from {from:?}: {} datagrams changed, not {expected}",
                changes.changed.len()
            ));
        }
        passed += arrived.len();
    }
    Ok(passed)
}

/// How many datagrams changed; all must have had a right checksum, and have one.
fn are_sound(changes: &Changes) -> Outcome<usize> {
    let wrong = changes.changed.iter().flatten().find(|datagram| !datagram.is_sound());
    match wrong {
        Some(datagram) => Err(format!("a wrong checksum: {:02x?}", datagram.payload().get(..8))),
        None => Ok(changes.changed.len()),
    }
}

/// The download with SCONE at both ends.
fn told(setup: &Setup, list: &mut List, quic: &Picoquic, (place, ip): (Place, Ip)) {
    let run = || -> Outcome<Download> {
        let chain = place.chain(setup)?;
        let _router = place.start(&chain)?;
        without_offloads(&chain)?;
        quic.download(&chain, ip, Speaks { client: true, server: true }, BYTES, || Ok(()))
    };
    let what = format!("{}, {ip}, picoquic: both ends hear their advice, every byte arrives", place.words());
    list.judge(
        what,
        run().and_then(|done| Ok((are_sound(done.changes.as_ref()?)?, done))),
        |(changed, done)| {
            let rates = |told: Option<(u8, u64)>| told.map(|(_, bps)| vec![bps]).unwrap_or_default();
            let [client, server] = place.told().map(rates);
            let wanted = client.len() + server.len();
            let met =
                done.is_exact && changed == wanted && (&done.client, &done.server) == (&client, &server);
            (format!("{}; {changed} datagrams changed, checksums right", heard(&done)), met)
        },
    );
}

/// How many datagrams of a download changed, with right checksums.
fn with_changes(done: Download) -> Outcome<(usize, Download)> {
    Ok((are_sound(done.changes.as_ref()?)?, done))
}

/// What both ends were told, in words.
fn heard(done: &Download) -> String {
    let words = |rates: &[u64]| match rates {
        [] => "nothing".to_owned(),
        all => all.iter().map(|bps| format!("{bps}")).collect::<Vec<_>>().join(" and ") + " bit/s",
    };
    let broken = if done.is_exact { "" } else { ", NOT EXACT" };
    format!("client {}, server {}{broken}", words(&done.client), words(&done.server))
}

/// Downloads with SCONE at the client only, and without.
fn untouched(setup: &Setup, list: &mut List, quic: &Picoquic, ip: Ip) {
    for (client, who) in [(false, "no end"), (true, "the client")] {
        let run = || -> Outcome<Download> {
            let chain = Place::Gateway.chain(setup)?;
            let _router = Place::Gateway.start(&chain)?;
            without_offloads(&chain)?;
            quic.download(&chain, ip, Speaks { client, server: false }, BYTES, || Ok(()))
        };
        let what = format!("routed gateway, {ip}, picoquic, SCONE at {who}: byte for byte the same");
        list.judge(what, run().and_then(|done| Ok((done.changes?, done.is_exact))), |(changes, exact)| {
            let Changes { passed, hints, changed } = changes;
            let is_whole = exact && changed.is_empty() && passed as u64 > BYTES / 1500;
            let figure = format!("{passed} datagrams, {} changed, {hints} with the hint", changed.len());
            (figure, is_whole && (!client || hints > 0))
        });
    }
}

/// A host that leaves checksums and the cutting of super-packets to its interface, as most do.
fn with_offloads(setup: &Setup, list: &mut List, quic: &Picoquic) {
    let run = || -> Outcome<Download> {
        let chain = Place::Gateway.chain(setup)?;
        let _router = Place::Gateway.start(&chain)?;
        quic.download(&chain, Ip::V4, Speaks { client: true, server: true }, BYTES, || Ok(()))
    };
    list.judge("routed gateway, IPv4, picoquic, with the hosts' offloads", run(), |done| {
        (
            heard(&done),
            done.is_exact && (done.client.as_slice(), done.server.as_slice()) == (&[TWENTY.1], &[FIFTY.1]),
        )
    });
}

/// Another rate while the download runs: picoquic asks again, and hears of it.
fn later(setup: &Setup, list: &mut List, quic: &Picoquic) {
    let run = || -> Outcome<Download> {
        let chain = Chain::new(setup.bentpipe()?, &NARROW.toml(), "true")?;
        let _router = Place::Gateway.start(&chain)?;
        without_offloads(&chain)?;
        quic.download(&chain, Ip::V4, Speaks { client: true, server: true }, LONG_BYTES, || {
            std::thread::sleep(Duration::from_secs(LATER_S));
            Service::reload_gateway(&chain, &format!("{KEYS}{LATER}"))
        })
    };
    let what = format!("the same, 5 Mbit/s from {LATER_S} s on: in the second SCONE packet");
    list.judge(what, run().and_then(with_changes), |(changed, done)| {
        let told = done.client.len() + done.server.len();
        (heard(&done), done.is_exact && done.client == [TWENTY.1, FIVE] && changed == told)
    });
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn a_datagram_is_expected_lower_or_as_it_was() {
        let told = vectors(Some(46));
        let changed = told.iter().filter(|(sent, wanted)| sent != wanted).count();
        assert_eq!((changed, told.len()), (12, 26));
        assert!(vectors(None).iter().all(|(sent, wanted)| sent == wanted));
        let (sent, wanted) = &told[0];
        assert_eq!((&sent[..5], &wanted[..2]), (&[0xFF, 0xEF, 0x7D, 0xC0, 0xFD][..], &[0xD7, 0x6F][..]));
    }
}
