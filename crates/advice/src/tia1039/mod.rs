//! The structure of TIA-1039: what a sender asks for, and what the network gives.
//!
//! Source: TIA-1039 (2006), L. G. Roberts' explicit-rate TCP with in-band QoS signalling; for IPv6 also
//! Roberts and Harford, "In-band QoS signaling for IPv6" (Internet draft, 2005).
//! The first packets of a flow carry a structure with the rates it asks for. Routers lower them to what they
//! can give and set M. The receiver returns the result, and the sender uses it. Layout, big endian:
//!   0-3 source address (IPv4) | 4-5 AR, rate given | 6-7 GR, rate guaranteed
//!   8 PP, who survives overload: high 6 bits | 9 DP, who is sent first: high 6 bits
//!   10 CD kind, TP type of rate | 11 CH who pays, BT burst time, a nibble each
//!   12-13 version: 12 bits, M: 4 bits | 14-15 source port (IPv4)
//! In IPv6 the first four bytes belong to the headers around it, and in a response M and the last two bytes
//! are the flow label of the forward direction: the sender has to compare AR with what it asked for.
//! Readings: the source says 64 levels for DP, but not where they are in their byte; here as for PP. Rates
//! have the unit of `rate_field.rs`.

pub mod packet;

pub use packet::{Structures, at_end, is_signal_header, replace, structures, write};

use crate::rate_field::{decode_rate, encode_rate};
use bentpipe_base::{Dscp, Rate};

/// Code point of a packet that carries a structure.
pub const QOS_SIGNAL: Dscp = Dscp::new(3).expect("below 64");
/// Code point of data on a flow whose rate is agreed.
pub const QOS_FLOW: Dscp = Dscp::new(7).expect("below 64");

/// The version this code understands.
const VERSION: u16 = 1;
/// The reserved bit of a rate.
const RATE_RESERVED: u16 = 0x8000;
/// The highest preemption and delay priority.
const HIGHEST: u8 = 63;

/// Where the fields begin.
const AR: usize = 4;
const GR: usize = 6;
const PP: usize = 8;
const DP: usize = 9;
const CD_TP: usize = 10;
const CH_BT: usize = 11;
const M: usize = 13;

/// What a structure is for: the field CD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing to do; in IPv6 a place that a router may use.
    Forward = 0,
    /// A sender asks for a rate.
    Request = 1,
    /// A receiver returns what the network gives.
    Response = 2,
    /// A sender confirms what it uses.
    Confirmation = 3,
    /// A router has not seen the start of this flow.
    MissedStart = 4,
    /// A sender asks for another rate, or a router gives a lower one.
    Renegotiate = 5,
    /// A sender asks again, since its first question was not seen.
    ResendStart = 6,
    /// A guaranteed rate is given back.
    Close = 7,
}

impl Kind {
    const ALL: [Self; 8] = [
        Self::Forward,
        Self::Request,
        Self::Response,
        Self::Confirmation,
        Self::MissedStart,
        Self::Renegotiate,
        Self::ResendStart,
        Self::Close,
    ];

    /// True if a router handles it as a request.
    pub const fn is_request(self) -> bool {
        matches!(self, Self::Request | Self::Renegotiate | Self::ResendStart)
    }
}

/// Which rates a flow asks for: the field TP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateType {
    /// The rate that the network can give at the moment.
    #[default]
    Available = 0,
    /// A guaranteed rate, and what the network can give in addition.
    Composite = 1,
    /// A largest rate, held while it is used.
    Maximum = 2,
    /// A rate held until it is given back.
    Guaranteed = 3,
}

impl RateType {
    const ALL: [Self; 4] = [Self::Available, Self::Composite, Self::Maximum, Self::Guaranteed];
}

/// A view of the 16 bytes. A setter changes its field only, so reserved bits stay as they came.
///
/// From an IPv6 packet the first four bytes are `[0, 0, type, length]` of the option. The default is all
/// zero, which is no supported structure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Structure {
    bytes: [u8; Self::LEN],
}

impl Structure {
    /// Bytes of a structure.
    pub const LEN: usize = 16;

    /// A request for an available rate, with the lowest priorities.
    pub fn request(available: Rate) -> Self {
        let mut structure = Self::default();
        structure.set_kind(Kind::Request);
        structure.set_available(Some(available));
        structure.bytes[M] = (VERSION << 4) as u8;
        structure
    }

    /// From the bytes of a packet.
    pub const fn from_bytes(bytes: [u8; Self::LEN]) -> Self {
        Self { bytes }
    }

    /// The bytes.
    pub const fn bytes(&self) -> &[u8; Self::LEN] {
        &self.bytes
    }

    /// True if this code understands all of it: version, kind and type of rate are known, the reserved bits
    /// of the rates are zero.
    pub fn is_supported(&self) -> bool {
        let reserved = (self.word(AR) | self.word(GR)) & RATE_RESERVED;
        self.version() == VERSION && self.kind().is_some() && self.rate_type().is_some() && reserved == 0
    }

    /// True if it is supported, and all other bits have values that TIA-1039 defines for IPv4: zero where it
    /// reserves them, 0 or 1 in CH and M. It is the test for bytes of a payload, which may be data: random
    /// bytes pass it once in 2^27.
    pub fn is_well_formed(&self) -> bool {
        let priorities = (self.bytes[PP] | self.bytes[DP]) & 3;
        self.is_supported() && priorities == 0 && self.bytes[CH_BT] >> 4 < 2 && self.bytes[M] & 0x0F < 2
    }

    /// What it is for; `None` for an unknown number.
    pub fn kind(&self) -> Option<Kind> {
        Kind::ALL.get(usize::from(self.bytes[CD_TP] >> 4)).copied()
    }

    /// Sets what it is for.
    pub fn set_kind(&mut self, kind: Kind) {
        self.set_high(CD_TP, kind as u8);
    }

    /// AR, the rate that the network gives; `None` is zero.
    pub fn available(&self) -> Option<Rate> {
        decode_rate(self.word(AR))
    }

    /// Sets AR, rounded down.
    pub fn set_available(&mut self, rate: Option<Rate>) {
        self.set_rate(AR, rate);
    }

    /// GR, the rate that the sender asks to be guaranteed; `None` is zero.
    pub fn guaranteed(&self) -> Option<Rate> {
        decode_rate(self.word(GR))
    }

    /// Sets GR, rounded down.
    pub fn set_guaranteed(&mut self, rate: Option<Rate>) {
        self.set_rate(GR, rate);
    }

    /// PP: who survives overload, 0 to 63; the highest does.
    pub fn preemption_priority(&self) -> u8 {
        self.bytes[PP] >> 2
    }

    /// Sets PP; above 63 is 63.
    pub fn set_preemption_priority(&mut self, priority: u8) {
        self.set_priority(PP, priority);
    }

    /// DP: who is sent first, 0 to 63; the highest is.
    pub fn delay_priority(&self) -> u8 {
        self.bytes[DP] >> 2
    }

    /// Sets DP; above 63 is 63.
    pub fn set_delay_priority(&mut self, priority: u8) {
        self.set_priority(DP, priority);
    }

    /// Which rates the flow asks for; `None` for an unknown number.
    pub fn rate_type(&self) -> Option<RateType> {
        RateType::ALL.get(usize::from(self.bytes[CD_TP] & 0x0F)).copied()
    }

    /// Sets which rates the flow asks for.
    pub fn set_rate_type(&mut self, rate_type: RateType) {
        self.set_low(CD_TP, rate_type as u8);
    }

    /// CH: true if the receiver pays.
    pub fn charges_receiver(&self) -> bool {
        self.bytes[CH_BT] >> 4 == 1
    }

    /// Sets who pays.
    pub fn set_charges_receiver(&mut self, receiver: bool) {
        self.set_high(CH_BT, u8::from(receiver));
    }

    /// BT: packets above the rate are dropped after 2^(-BT-1) s.
    pub fn burst_exponent(&self) -> u8 {
        self.bytes[CH_BT] & 0x0F
    }

    /// Sets BT; above 15 is 15.
    pub fn set_burst_exponent(&mut self, exponent: u8) {
        self.set_low(CH_BT, exponent.min(15));
    }

    /// The version of the structure.
    pub fn version(&self) -> u16 {
        self.word(M - 1) >> 4
    }

    /// M: true if a router changed a field. It means nothing in an IPv6 response.
    pub fn is_changed(&self) -> bool {
        self.bytes[M] & 0x0F != 0
    }

    /// Sets M.
    pub fn set_changed(&mut self, changed: bool) {
        self.set_low(M, u8::from(changed));
    }

    /// IPv4: source address and port. Zero in the first request of a flow.
    pub fn source(&self) -> (u32, u16) {
        let [a, b, c, d, .., high, low] = self.bytes;
        (u32::from_be_bytes([a, b, c, d]), u16::from_be_bytes([high, low]))
    }

    /// IPv4: sets source address and port.
    pub fn set_source(&mut self, address: u32, port: u16) {
        self.bytes[..AR].copy_from_slice(&address.to_be_bytes());
        self.bytes[M + 1..].copy_from_slice(&port.to_be_bytes());
    }

    /// IPv6 response: the flow label of the forward direction, 20 bits.
    pub fn flow_label(&self) -> u32 {
        u32::from(self.bytes[M] & 0x0F) << 16 | u32::from(self.word(M + 1))
    }

    /// IPv6 response: sets the flow label, of which the lower 20 bits count. It takes the place of M.
    pub fn set_flow_label(&mut self, label: u32) {
        self.set_low(M, (label >> 16) as u8 & 0x0F);
        self.bytes[M + 1..].copy_from_slice(&(label as u16).to_be_bytes());
    }

    fn word(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.bytes[at], self.bytes[at + 1]])
    }

    fn set_rate(&mut self, at: usize, rate: Option<Rate>) {
        let word = self.word(at) & RATE_RESERVED | encode_rate(rate);
        self.bytes[at..at + 2].copy_from_slice(&word.to_be_bytes());
    }

    fn set_priority(&mut self, at: usize, priority: u8) {
        self.bytes[at] = priority.min(HIGHEST) << 2 | self.bytes[at] & 3;
    }

    /// Sets the high nibble of a byte.
    fn set_high(&mut self, at: usize, nibble: u8) {
        self.bytes[at] = nibble << 4 | self.bytes[at] & 0x0F;
    }

    /// Sets the low nibble of a byte; `nibble` is below 16.
    fn set_low(&mut self, at: usize, nibble: u8) {
        self.bytes[at] = self.bytes[at] & 0xF0 | nibble;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mbps(mbps: u64) -> Option<Rate> {
        Rate::from_bps(mbps * 1_000_000)
    }

    #[test]
    fn a_request_has_the_bytes_of_the_layout() {
        let structure = Structure::request(mbps(100).unwrap());
        assert_eq!(structure.bytes(), &[0, 0, 0, 0, 0x61, 0x0D, 0, 0, 0, 0, 0x10, 0, 0, 0x10, 0, 0]);
        assert!(structure.is_supported() && !structure.is_changed());
        assert_eq!(structure.kind(), Some(Kind::Request));
        assert_eq!(structure.rate_type(), Some(RateType::Available));
    }

    #[test]
    fn every_field_is_at_its_place() {
        let mut structure = Structure::default();
        structure.set_source(0x0A01_0203, 0x1F90);
        structure.set_available(mbps(30));
        structure.set_guaranteed(mbps(35));
        structure.set_preemption_priority(63);
        structure.set_delay_priority(1);
        structure.set_kind(Kind::Close);
        structure.set_rate_type(RateType::Guaranteed);
        structure.set_charges_receiver(true);
        structure.set_burst_exponent(9);
        structure.set_changed(true);
        let expected = [0x0A, 1, 2, 3, 0x5D, 0xA9, 0x5E, 0x22, 0xFC, 4, 0x73, 0x19, 0, 1, 0x1F, 0x90];
        assert_eq!(structure.bytes(), &expected);
        assert_eq!(structure.source(), (0x0A01_0203, 0x1F90));
        assert_eq!(structure.available(), Rate::from_bps(29_984_000));
        assert_eq!(structure.guaranteed(), Rate::from_bps(34_944_000));
        assert_eq!((structure.preemption_priority(), structure.delay_priority()), (63, 1));
        assert_eq!(structure.kind(), Some(Kind::Close));
        assert_eq!(structure.rate_type(), Some(RateType::Guaranteed));
        assert_eq!((structure.charges_receiver(), structure.burst_exponent()), (true, 9));
        assert_eq!((structure.version(), structure.is_changed()), (0, true));
    }

    #[test]
    fn a_flow_label_takes_the_place_of_m() {
        let mut structure = Structure::request(mbps(1).unwrap());
        structure.set_flow_label(0xABC_DEF0);
        assert_eq!(structure.bytes()[12..], [0, 0x1C, 0xDE, 0xF0]);
        assert_eq!((structure.flow_label(), structure.version()), (0xC_DEF0, 1));
    }

    #[test]
    fn values_out_of_range_become_the_highest() {
        let mut structure = Structure::default();
        structure.set_preemption_priority(64);
        structure.set_delay_priority(255);
        structure.set_burst_exponent(16);
        assert_eq!(structure.bytes()[8..12], [0xFC, 0xFC, 0, 0x0F]);
    }

    #[test]
    fn what_is_not_understood_is_not_supported() {
        let good = *Structure::request(mbps(1).unwrap()).bytes();
        let with = |at: usize, value: u8| {
            let mut bytes = good;
            bytes[at] = value;
            Structure::from_bytes(bytes)
        };
        assert!(with(10, 0x73).is_supported());
        // an unknown kind or type, another version, a reserved bit of a rate
        for (at, value) in [(10, 0x80), (10, 0x14), (13, 0x20), (12, 1), (4, 0xE1), (6, 0x80)] {
            assert!(!with(at, value).is_supported(), "{at} {value:#x}");
        }
        assert_eq!((with(10, 0x80).kind(), with(10, 0x14).rate_type()), (None, None));
    }

    #[test]
    fn routers_handle_three_kinds_as_requests() {
        let requests: Vec<_> = Kind::ALL.into_iter().filter(|kind| kind.is_request()).collect();
        assert_eq!(requests, [Kind::Request, Kind::Renegotiate, Kind::ResendStart]);
        assert!(Kind::ALL.into_iter().enumerate().all(|(number, kind)| kind as usize == number));
        assert!(RateType::ALL.into_iter().enumerate().all(|(number, kind)| kind as usize == number));
    }

    #[test]
    fn the_code_points_are_those_of_the_source() {
        assert_eq!((QOS_SIGNAL.get() << 2, QOS_FLOW.get() << 2), (0x0C, 0x1C));
    }

    proptest! {
        #[test]
        fn setters_leave_other_fields_and_reserved_bits(bytes: [u8; 16], bps: u64, value: u8) {
            let mut structure = Structure::from_bytes(bytes);
            structure.set_available(Rate::from_bps(bps));
            structure.set_guaranteed(None);
            structure.set_preemption_priority(value);
            structure.set_delay_priority(value);
            structure.set_burst_exponent(value);
            structure.set_changed(value > 99);
            let changed: [u8; 16] = [0, 0, 0, 0, 0x7F, 0xFF, 0x7F, 0xFF, 0xFC, 0xFC, 0, 0x0F, 0, 0x0F, 0, 0];
            for ((before, after), changed) in bytes.iter().zip(structure.bytes()).zip(changed) {
                prop_assert_eq!(before & !changed, after & !changed);
            }
        }
    }
}
