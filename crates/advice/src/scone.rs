//! SCONE: a network element tells QUIC endpoints a rate, in a packet before theirs.
//!
//! Source: draft-ietf-scone-protocol (2026).
//! An endpoint puts a SCONE packet before a QUIC packet in the same datagram. An element replaces its signal
//! by a lower one. The signal is advice: no congestion control, no grant, and not authenticated.
//!   byte 0: 1, a reserved bit, upper six bits of the signal
//!   bytes 1-4: version 0x6F7DC0FD; its top bit is the lowest bit of the signal
//!   then, each after a byte with its length: destination and source connection ID
//!   rate(n) = 100 kbit/s 10^(n/20), n = 0..126 (199.5 Gbit/s); 127: unknown, which endpoints send
//! An element needs no state. It never raises a signal, never makes it unknown, and touches nothing else.
//! Deviation: the draft recognises a packet by its first five bytes; here its connection IDs must fit and
//! another packet must follow, as every sender has to make it. Anything else passes as it came.

use crate::rewrite::Rewrite;
use bentpipe_base::Rate;

/// The version, without its top bit.
const VERSION: u32 = 0x6F7D_C0FD;
/// The top bit of the version, and of its first byte.
const LOWEST_BIT: u32 = 1 << 31;
/// Set in the first byte of a QUIC long header.
const LONG_HEADER: u8 = 0x80;
/// Reserved in the first byte; endpoints may send either value (RFC 9287).
const RESERVED: u8 = 0x40;

/// Signals from a rate to ten times as much.
const PER_DECADE: u8 = 20;
/// 10^11 times 10^(k/20), rounded down: six digits more than the lowest rate has, as the highest needs.
const DECADE: [u64; PER_DECADE as usize] = [
    100_000_000_000,
    112_201_845_430,
    125_892_541_179,
    141_253_754_462,
    158_489_319_246,
    177_827_941_003,
    199_526_231_496,
    223_872_113_856,
    251_188_643_150,
    281_838_293_126,
    316_227_766_016,
    354_813_389_233,
    398_107_170_553,
    446_683_592_150,
    501_187_233_627,
    562_341_325_190,
    630_957_344_480,
    707_945_784_384,
    794_328_234_724,
    891_250_938_133,
];
/// What the table has too much of.
const TABLE_UNIT: u64 = 1_000_000;

/// A signal of seven bits: a rate, or unknown. A higher signal is a higher rate; unknown is the highest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Advice(u8);

impl Advice {
    /// Nobody has given advice.
    pub const UNKNOWN: Self = Self(127);
    /// The lowest rate that can be said: 100 kbit/s.
    pub const LOWEST: Self = Self(0);

    /// `None` above 127.
    pub const fn new(signal: u8) -> Option<Self> {
        if signal <= Self::UNKNOWN.0 { Some(Self(signal)) } else { None }
    }

    /// The signal, 0 to 127.
    pub const fn get(self) -> u8 {
        self.0
    }

    /// The rate, rounded down to bit/s; `None` for unknown.
    pub fn rate(self) -> Option<Rate> {
        let decades = u32::from(self.0 / PER_DECADE);
        let bps = DECADE[usize::from(self.0 % PER_DECADE)] * 10u64.pow(decades) / TABLE_UNIT;
        if self == Self::UNKNOWN { None } else { Rate::from_bps(bps) }
    }

    /// The highest signal whose rate is at most `limit`; `None` below 100 kbit/s, which no signal can say.
    pub fn at_most(limit: Rate) -> Option<Self> {
        (0..Self::UNKNOWN.0).rev().map(Self).find(|advice| advice.rate().is_some_and(|rate| rate <= limit))
    }

    /// From seven bits.
    pub(crate) const fn from_bits(bits: u8) -> Self {
        Self(bits & Self::UNKNOWN.0)
    }
}

/// The SCONE packet of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Its signal.
    pub advice: Advice,
    /// Destination connection ID.
    pub destination: &'a [u8],
    /// Source connection ID.
    pub source: &'a [u8],
    /// The QUIC packets that follow; never empty.
    pub rest: &'a [u8],
}

/// Reads the SCONE packet at the start of a UDP payload; `None` if there is none.
pub fn read(payload: &[u8]) -> Option<Packet<'_>> {
    let ([first, version @ ..], rest) = payload.split_first_chunk::<5>()?;
    let version = u32::from_be_bytes(*version);
    if first & LONG_HEADER == 0 || version & !LOWEST_BIT != VERSION {
        return None;
    }
    let advice = Advice::from_bits(first << 1 | (version >> 31) as u8);
    let (destination, rest) = connection_id(rest)?;
    let (source, rest) = connection_id(rest)?;
    (!rest.is_empty()).then_some(Packet { advice, destination, source, rest })
}

/// A SCONE packet, to be put before the packets of a datagram. `None` for a connection ID of more than 255
/// bytes.
pub fn write(advice: Advice, destination: &[u8], source: &[u8]) -> Option<Vec<u8>> {
    let mut packet = Vec::with_capacity(7 + destination.len() + source.len());
    packet.push(LONG_HEADER | RESERVED);
    packet.extend_from_slice(&VERSION.to_be_bytes());
    for id in [destination, source] {
        packet.push(u8::try_from(id.len()).ok()?);
        packet.extend_from_slice(id);
    }
    let start = packet.first_chunk_mut::<2>()?;
    *start = with_advice(*start, advice);
    Some(packet)
}

/// What an element does with a UDP payload that passes: lowers the signal to `limit`. `None` if the payload
/// stays as it came: it has no SCONE packet, or none with a higher signal.
pub fn lower(payload: &mut [u8], limit: Advice) -> Option<Rewrite<2>> {
    if read(payload)?.advice <= limit {
        return None;
    }
    let start = *payload.first_chunk::<2>()?;
    Rewrite::apply(payload, 0, with_advice(start, limit))
}

/// The first two bytes of a packet with another signal.
const fn with_advice([first, second]: [u8; 2], advice: Advice) -> [u8; 2] {
    [first & (LONG_HEADER | RESERVED) | advice.0 >> 1, second & 0x7F | (advice.0 & 1) << 7]
}

/// Splits off a connection ID, which a byte with its length precedes.
fn connection_id(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = bytes.split_first()?;
    rest.split_at_checked(usize::from(*len))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ID: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];

    fn datagram(advice: Advice) -> Vec<u8> {
        let mut datagram = write(advice, &ID, &[]).unwrap();
        datagram.extend([0x40, 9]);
        datagram
    }

    #[test]
    fn limits_have_the_signals_and_bytes_of_the_draft() {
        // limit, signal, rate, first two bytes
        let vectors = [
            (100_000, 0, 100_000, [0xC0, 0x6F]),
            (512_000, 14, 501_187, [0xC7, 0x6F]),
            (1_544_000, 23, 1_412_537, [0xCB, 0xEF]),
            (2_000_000, 26, 1_995_262, [0xCD, 0x6F]),
            (10_000_000, 40, 10_000_000, [0xD4, 0x6F]),
            (20_000_000, 46, 19_952_623, [0xD7, 0x6F]),
            (24_000_000, 47, 22_387_211, [0xD7, 0xEF]),
            (50_000_000, 53, 44_668_359, [0xDA, 0xEF]),
            (100_000_000, 60, 100_000_000, [0xDE, 0x6F]),
            (155_000_000, 63, 141_253_754, [0xDF, 0xEF]),
            (622_000_000, 75, 562_341_325, [0xE5, 0xEF]),
            (1_000_000_000, 80, 1_000_000_000, [0xE8, 0x6F]),
            (10_000_000_000, 100, 10_000_000_000, [0xF2, 0x6F]),
            (u64::MAX, 126, 199_526_231_496, [0xFF, 0x6F]),
        ];
        for (limit, signal, rate, bytes) in vectors {
            let advice = Advice::at_most(Rate::from_bps(limit).unwrap()).unwrap();
            assert_eq!((advice.get(), advice.rate()), (signal, Rate::from_bps(rate)), "{limit}");
            assert_eq!(datagram(advice)[..2], bytes, "{limit}");
        }
        assert_eq!(datagram(Advice::UNKNOWN)[..2], [0xFF, 0xEF]);
        assert_eq!((Advice::UNKNOWN.rate(), Advice::new(128)), (None, None));
        assert_eq!(Advice::at_most(Rate::from_bps(99_999).unwrap()), None);
    }

    #[test]
    fn each_signal_is_twelve_per_cent_above_the_one_before() {
        let rate = |signal| Advice(signal).rate().unwrap().bps();
        for signal in 1..127 {
            let (before, after) = (rate(signal - 1), rate(signal));
            assert!((before * 1122..before * 1123).contains(&(after * 1000)), "{signal}");
            assert_eq!(Advice::at_most(Rate::from_bps(after).unwrap()), Advice::new(signal));
            assert_eq!(Advice::at_most(Rate::from_bps(after - 1).unwrap()), Advice::new(signal - 1));
        }
    }

    #[test]
    fn a_packet_has_the_connection_ids_of_the_datagram() {
        let packet = write(Advice::UNKNOWN, &ID, &[]).unwrap();
        assert_eq!(packet, [0xFF, 0xEF, 0x7D, 0xC0, 0xFD, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0]);
        let expected = Packet { advice: Advice::UNKNOWN, destination: &ID, source: &[], rest: &[0x40, 9] };
        assert_eq!(read(&datagram(Advice::UNKNOWN)), Some(expected));
        assert_eq!(read(&packet), None); // nothing follows
        assert_eq!(write(Advice::UNKNOWN, &[0; 256], &[]), None);
    }

    #[test]
    fn an_element_lowers_and_never_raises() {
        let advice = |signal| Advice::new(signal).unwrap();
        let mut payload = datagram(Advice::UNKNOWN);
        payload[0] &= !RESERVED; // greased
        let rewrite = Rewrite { offset: 0, old: [0xBF, 0xEF], new: [0x97, 0xEF] };
        assert_eq!(lower(&mut payload, advice(47)), Some(rewrite));
        let once = payload.clone();
        for limit in [advice(47), advice(48), advice(126), Advice::UNKNOWN] {
            assert_eq!(lower(&mut payload, limit), None);
        }
        assert_eq!(payload, once);
        assert!(lower(&mut payload, advice(0)).is_some());
        assert_eq!(read(&payload).unwrap().advice, advice(0));
    }

    #[test]
    fn other_packets_pass_untouched() {
        let good = datagram(Advice::UNKNOWN);
        for (at, value) in [(0, 0x7F), (1, 0x6E), (2, 0), (3, 0), (4, 0), (5, 40), (14, 4)] {
            let mut other = good.clone();
            other[at] = value;
            let before = other.clone();
            assert_eq!(lower(&mut other, Advice(0)), None, "{at}");
            assert_eq!(other, before);
        }
        for len in 0..good.len() - 1 {
            assert_eq!(read(&good[..len]), None, "{len}");
        }
    }

    proptest! {
        #[test]
        fn only_the_signal_of_a_packet_changes(
            signal in 0u8..=127, limit in 0u8..=127, reserved: bool,
            tail in proptest::collection::vec(any::<u8>(), 1..40),
        ) {
            let mut payload = write(Advice(signal), &ID, &ID[..3]).unwrap();
            payload[0] &= if reserved { 0xFF } else { !RESERVED };
            payload.extend(tail);
            let before = payload.clone();
            prop_assert_eq!(read(&before).unwrap().advice, Advice(signal));
            let rewrite = lower(&mut payload, Advice(limit));
            prop_assert_eq!(rewrite.is_some(), limit < signal);
            prop_assert_eq!(read(&payload).unwrap().advice, Advice(signal.min(limit)));
            prop_assert_eq!(&payload[2..], &before[2..]);
            prop_assert_eq!(((payload[0] ^ before[0]) & 0xC0, (payload[1] ^ before[1]) & 0x7F), (0, 0));
        }
    }
}
