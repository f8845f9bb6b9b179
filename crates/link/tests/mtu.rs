//! Links with an MTU: packets that are cut, and packets that are refused.

mod rig;

use bentpipe_base::trace::DropCause;
use bentpipe_base::{IpVersion, Size, TooBig};
use bentpipe_link::{Capacity, DirectionSpec, Dynamics, Longer, Mtu, Outages};
use rig::{Rig, base, chance, ms};

const IN_PARTS: Mtu = Mtu { bytes: 1500, longer: Longer::Fragment };
const WHOLE: Mtu = Mtu { bytes: 1500, longer: Longer::Refuse };

/// A constant link and one that varies, with the same properties.
fn both(base: &DirectionSpec) -> [Rig; 2] {
    let outages = Outages {
        every: bentpipe_base::Duration::from_secs(3600),
        random: false,
        shortest: bentpipe_base::Duration::from_secs(1),
        longest: bentpipe_base::Duration::from_secs(1),
    };
    let dynamics = Dynamics { outages: Some(outages), ..Dynamics::default() };
    [Rig::constant(base, Capacity::Packets(1000), 1), Rig::new(base, &dynamics)]
}

/// 1728 B of data and 40 B of headers are 1500 and 288 B: at a byte in a microsecond 1.788 ms, and 4 B of
/// framing for each.
#[test]
fn a_packet_that_is_cut_takes_the_time_of_all_its_fragments() {
    let framed = DirectionSpec { mtu: Some(IN_PARTS), framing: Size(4), ..base() };
    for mut rig in both(&framed) {
        rig.send(ms(0), 0, 1768);
        rig.send(ms(10), 1, 1500);
        let fates = rig.fates(ms(1000));
        let arrived: Vec<u64> = fates.arrivals().iter().map(|at| at.0).collect();
        assert_eq!(arrived, [101_796_000, 111_504_000]);
        assert_eq!((rig.served().0, rig.served_bytes()), (2, 1788 + 1500));
        assert!(rig.told.is_empty());
    }
}

/// Four fragments, each lost with a probability of 0.1: 0.3439.
#[test]
fn a_packet_is_lost_with_any_of_its_fragments() {
    let lossy = DirectionSpec { mtu: Some(Mtu { bytes: 420, ..IN_PARTS }), loss: chance(0.1), ..base() };
    for mut rig in both(&lossy) {
        for i in 0..20_000 {
            rig.send(ms(2 * i), i, 1500);
        }
        let fates = rig.fates(ms(60_000));
        let share = fates.dropped.len() as f64 / 20_000.0;
        // 4 sigma
        assert!((share - 0.3439).abs() < 0.0134, "{share}");
        assert!(fates.dropped.iter().all(|d| d.1 == DropCause::PacketLoss));
    }
}

#[test]
fn what_is_too_long_is_dropped_before_the_queue_and_its_sender_told() {
    for mut rig in both(&DirectionSpec { mtu: Some(WHOLE), ..base() }) {
        for (number, size) in [(0, 1500), (1, 1501), (2, 40)] {
            rig.send_as(ms(0), number, size, |p| p.tcp.seq = bentpipe_base::Seq(1000 * number as u32));
        }
        let fates = rig.fates(ms(1000));
        assert_eq!((fates.numbers(), fates.dropped), (vec![0, 2], vec![(1, DropCause::TooBig)]));
        let said = TooBig { is_tcp: true, seq: bentpipe_base::Seq(1000), len: Size(1501), mtu: 1500 };
        assert_eq!(rig.told, [said]);
    }
}

#[test]
fn ipv6_is_never_cut() {
    for mut rig in both(&DirectionSpec { mtu: Some(IN_PARTS), ..base() }) {
        rig.send_as(ms(0), 0, 1501, |p| p.ip = IpVersion::V6);
        rig.send(ms(0), 1, 1501);
        let fates = rig.fates(ms(1000));
        assert_eq!((fates.numbers(), rig.told.len()), (vec![1], 1));
    }
}
