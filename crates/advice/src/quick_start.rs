//! Quick-Start: the rate at which a sender may begin, if every router of the path agrees.
//!
//! Source: RFC 4782 (experimental), sections 3.1 to 3.4 and 4.
//! A sender puts a request into an IP option. A router that agrees lowers the rate to what it approves, and
//! QS TTL by as much as the TTL of the packet. The receiver returns the rate and the difference of the two
//! TTLs in a TCP option. If the difference has changed, a router did not know the request, and it is void.
//!   IPv4 option 25 and TCP option 27: type, length 8, then 6 bytes; IPv6 hop-by-hop option 0x26: length 6
//!   function (0 request, 8 report; reserved in TCP) and rate, 4 bits each | QS TTL, in TCP the difference
//!   nonce: 30 bits | reserved: 2 bits
//!   rate N = 40 kbit/s 2^N, N = 1..15 (80 kbit/s to 1.31 Gbit/s); 0: none
//! Two bits of the nonce belong to each step from a rate N to N - 1. A router that takes the step makes them
//! random, so a receiver cannot claim a higher rate than it got.
//! A router that does not approve any rate may remove the option or make rate, TTL and nonce zero; here it
//! makes them zero.

pub mod packet;

use crate::options::{List, only};
use crate::rewrite::Rewrite;
use bentpipe_base::{IpVersion, Rate};

/// Rate 0, in bit/s, if it were one.
const LOWEST_BPS: u64 = 40_000;
/// Bits of the nonce.
const NONCE: u32 = (1 << 30) - 1;
/// Reserved bits after the nonce.
const NONCE_SHIFT: u32 = 2;

/// A rate as the options have it: four bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RateCode(u8);

impl RateCode {
    /// No rate.
    pub const NONE: Self = Self(0);
    /// The highest rate.
    pub const MAX: Self = Self(15);

    /// `None` above 15.
    pub const fn new(code: u8) -> Option<Self> {
        if code <= Self::MAX.0 { Some(Self(code)) } else { None }
    }

    /// The code, 0 to 15.
    pub const fn get(self) -> u8 {
        self.0
    }

    /// The rate; `None` for code 0.
    pub fn rate(self) -> Option<Rate> {
        Rate::from_bps(LOWEST_BPS << self.0).filter(|_| self != Self::NONE)
    }

    /// The highest code whose rate is at most `limit`; [`RateCode::NONE`] below 80 kbit/s.
    pub fn at_most(limit: Rate) -> Self {
        let fits = |code: &Self| code.rate().is_none_or(|rate| rate <= limit);
        (0..=Self::MAX.0).rev().map(Self).find(fits).unwrap_or_default()
    }

    /// The bits of the nonce for the steps from this code down to `lower`.
    fn steps_to(self, lower: Self) -> u32 {
        let below = |code: Self| (1u32 << (2 * code.0)) - 1;
        below(self) & !below(lower)
    }
}

/// What an IP option says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// A sender asks for a rate.
    Request = 0,
    /// A sender reports the rate it was given.
    Report = 8,
}

/// Where an option is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// The options of an IPv4 header.
    Ipv4,
    /// The options of a hop-by-hop header: its bytes after next header and length.
    Ipv6,
    /// The options of a TCP header.
    Tcp,
}

impl Carrier {
    /// Type and length of the option.
    const fn head(self) -> [u8; 2] {
        match self {
            Self::Ipv4 => [25, 8],
            Self::Ipv6 => [0x26, 6],
            Self::Tcp => [27, 8],
        }
    }

    const fn list(self) -> List {
        match self {
            Self::Ipv4 | Self::Tcp => List::Header,
            Self::Ipv6 => List::HopByHop,
        }
    }
}

/// What a router does with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The highest rate it approves.
    pub approved: RateCode,
    /// By how much it lowers the TTL or hop limit of the packet.
    pub hops: u8,
    /// Random bits, for the nonce.
    pub random: u32,
}

impl Hop {
    /// A router that approves no rate.
    pub const NONE: Self = Self { approved: RateCode::NONE, hops: 1, random: 0 };
}

/// A view of the six bytes after type and length. A setter changes its field only, so reserved bits stay as
/// they came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    bytes: [u8; Self::LEN],
}

impl Fields {
    /// Bytes after type and length.
    pub const LEN: usize = 6;

    /// A request. QS TTL and the nonce have to be random; the nonce has 30 bits.
    pub fn request(rate: RateCode, ttl: u8, nonce: u32) -> Self {
        let mut fields = Self::default();
        fields.set_rate(rate);
        fields.set_ttl(ttl);
        fields.set_nonce(nonce);
        fields
    }

    /// A report of the rate that a sender was given.
    pub fn report(rate: RateCode, nonce: u32) -> Self {
        let mut fields = Self::request(rate, 0, nonce);
        fields.bytes[0] |= (Function::Report as u8) << 4;
        fields
    }

    /// The receiver's answer to this request, for a TCP option. `ip_ttl` is the TTL or hop limit with which
    /// the packet of the request arrived.
    #[must_use]
    pub fn answer(self, ip_ttl: u8) -> Self {
        Self::request(self.rate(), ip_ttl.wrapping_sub(self.ttl()), self.nonce())
    }

    /// The rate that this answer grants to the request `sent`, whose packet left with `ip_ttl`. `None` if a
    /// router did not know the request or refused it, and for an answer that cannot be true.
    pub fn granted(self, sent: Self, ip_ttl: u8) -> Option<Rate> {
        let difference = ip_ttl.wrapping_sub(sent.ttl());
        let untouched = self.rate().steps_to(RateCode::NONE);
        let is_true = self.rate() <= sent.rate()
            && self.ttl() == difference
            && (self.nonce() ^ sent.nonce()) & untouched == 0;
        self.rate().rate().filter(|_| is_true)
    }

    /// From the bytes of an option.
    pub const fn from_bytes(bytes: [u8; Self::LEN]) -> Self {
        Self { bytes }
    }

    /// The bytes.
    pub const fn bytes(self) -> [u8; Self::LEN] {
        self.bytes
    }

    /// The whole option.
    pub fn option(self, carrier: Carrier) -> [u8; 8] {
        let mut option = [0; 8];
        option[..2].copy_from_slice(&carrier.head());
        option[2..].copy_from_slice(&self.bytes);
        option
    }

    /// What an IP option says; `None` for an unknown number.
    pub const fn function(self) -> Option<Function> {
        match self.bytes[0] >> 4 {
            0 => Some(Function::Request),
            8 => Some(Function::Report),
            _ => None,
        }
    }

    /// The rate.
    pub const fn rate(self) -> RateCode {
        RateCode(self.bytes[0] & 0x0F)
    }

    /// Sets the rate.
    pub fn set_rate(&mut self, rate: RateCode) {
        self.bytes[0] = self.bytes[0] & 0xF0 | rate.0;
    }

    /// QS TTL, or the difference of the TTLs.
    pub const fn ttl(self) -> u8 {
        self.bytes[1]
    }

    /// Sets QS TTL, or the difference of the TTLs.
    pub fn set_ttl(&mut self, ttl: u8) {
        self.bytes[1] = ttl;
    }

    /// The nonce, 30 bits.
    pub const fn nonce(self) -> u32 {
        self.last_word() >> NONCE_SHIFT
    }

    /// Sets the nonce, of which the lower 30 bits count.
    pub fn set_nonce(&mut self, nonce: u32) {
        let reserved = self.last_word() & !(NONCE << NONCE_SHIFT);
        let word = (nonce & NONCE) << NONCE_SHIFT | reserved;
        self.bytes[2..].copy_from_slice(&word.to_be_bytes());
    }

    /// What leaves a router. Only a request for a rate changes.
    #[must_use]
    pub fn after(self, hop: Hop) -> Self {
        let mut passed = self;
        let asked = self.rate();
        if self.function() != Some(Function::Request) || asked == RateCode::NONE {
            return passed;
        }
        passed.set_rate(asked.min(hop.approved));
        if hop.approved == RateCode::NONE {
            passed.set_ttl(0);
            passed.set_nonce(0);
        } else {
            let renewed = asked.steps_to(passed.rate());
            passed.set_ttl(self.ttl().wrapping_sub(hop.hops));
            passed.set_nonce(self.nonce() & !renewed | hop.random & renewed);
        }
        passed
    }

    const fn last_word(self) -> u32 {
        let [_, _, a, b, c, d] = self.bytes;
        u32::from_be_bytes([a, b, c, d])
    }
}

/// The only such option in a list of options, and where it begins. `None` if there are two, or if the length
/// of any option is impossible.
pub fn find(carrier: Carrier, options: &[u8]) -> Option<(usize, Fields)> {
    let read = |bytes: &[u8]| {
        let [kind, len, bytes @ ..] = <[u8; 8]>::try_from(bytes).ok()?;
        ([kind, len] == carrier.head()).then_some(Fields { bytes })
    };
    only(carrier.list(), options, read)
}

/// What a router does with the options of a packet that passes. `None` if they stay as they came.
pub fn pass(ip: IpVersion, options: &mut [u8], hop: Hop) -> Option<Rewrite<{ Fields::LEN }>> {
    let carrier = match ip {
        IpVersion::V4 => Carrier::Ipv4,
        IpVersion::V6 => Carrier::Ipv6,
    };
    let (at, fields) = find(carrier, options)?;
    Rewrite::apply(options, at + carrier.head().len(), fields.after(hop).bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SENT: u32 = 0x2AAA_AAAA;

    fn code(code: u8) -> RateCode {
        RateCode::new(code).unwrap()
    }

    fn hop(approved: u8) -> Hop {
        Hop { approved: code(approved), hops: 1, random: !SENT }
    }

    #[test]
    fn codes_are_powers_of_two_and_round_down() {
        let kbps = |kbps: u64| Rate::from_bps(kbps * 1000);
        assert_eq!((code(0).rate(), code(1).rate(), code(15).rate()), (None, kbps(80), kbps(1_310_720)));
        let vectors = [(79, 0), (80, 1), (159, 1), (160, 2), (24_000, 9), (1_310_719, 14), (9_000_000, 15)];
        for (limit, expected) in vectors {
            assert_eq!(RateCode::at_most(kbps(limit).unwrap()), code(expected), "{limit} kbit/s");
        }
        assert_eq!(RateCode::new(16), None);
    }

    #[test]
    fn options_have_the_bytes_of_the_rfc() {
        let fields = Fields::request(code(9), 200, SENT);
        let bytes = [0x09, 200, 0xAA, 0xAA, 0xAA, 0xA8];
        assert_eq!((fields.bytes(), fields.function()), (bytes, Some(Function::Request)));
        assert_eq!(fields.option(Carrier::Ipv4)[..3], [25, 8, 9]);
        assert_eq!(fields.option(Carrier::Ipv6)[..3], [0x26, 6, 9]);
        assert_eq!(fields.option(Carrier::Tcp)[..3], [27, 8, 9]);
        let report = Fields::report(code(3), SENT);
        assert_eq!(report.bytes()[..2], [0x83, 0]);
        assert_eq!(report.function(), Some(Function::Report));
        assert_eq!(Fields::from_bytes([0x10, 0, 0, 0, 0, 0]).function(), None);
    }

    #[test]
    fn a_path_of_routers_that_agree_grants_the_lowest_rate() {
        let (sent, ip_ttl) = (Fields::request(code(12), 7, SENT), 64);
        let passed = [15, 9, 12].into_iter().fold(sent, |fields, approved| fields.after(hop(approved)));
        let answer = passed.answer(ip_ttl - 3);
        assert_eq!(answer.granted(sent, ip_ttl), code(9).rate());
        // a fourth router lowered the TTL of the packet only
        assert_eq!(passed.answer(ip_ttl - 4).granted(sent, ip_ttl), None);
        // a receiver that claims more does not know the nonce
        let mut claim = answer;
        claim.set_rate(code(10));
        assert_eq!(claim.granted(sent, ip_ttl), None);
        let higher = Fields::request(code(13), answer.ttl(), SENT);
        assert_eq!(higher.granted(sent, ip_ttl), None);
    }

    #[test]
    fn a_router_lowers_rate_and_ttl_and_renews_the_nonce_of_its_steps() {
        let mut options = [&[1][..], &Fields::request(code(4), 0, SENT).option(Carrier::Ipv4)].concat();
        let rewrite = pass(IpVersion::V4, &mut options, hop(2)).unwrap();
        // the bits of 4 -> 3 and 3 -> 2 are 4 to 7 of the nonce
        let expected = Fields::request(code(2), 255, SENT ^ 0xF0);
        assert_eq!((rewrite.offset, rewrite.new), (3, expected.bytes()));
        assert_eq!(find(Carrier::Ipv4, &options), Some((1, expected)));
        // no rate at all
        pass(IpVersion::V4, &mut options, hop(0)).unwrap();
        assert_eq!(find(Carrier::Ipv4, &options), Some((1, Fields::default())));
        assert_eq!(pass(IpVersion::V4, &mut options, hop(15)), None);
        assert_eq!(Fields::default().answer(61).granted(Fields::request(code(4), 0, SENT), 64), None);
    }

    #[test]
    fn reports_and_other_options_pass_untouched() {
        let request = Fields::request(code(4), 9, SENT);
        let mut unknown = request;
        unknown.bytes[0] |= 0x10;
        for fields in [Fields::report(code(4), SENT), unknown] {
            let mut options = fields.option(Carrier::Ipv6);
            assert_eq!(pass(IpVersion::V6, &mut options, hop(1)), None);
            assert_eq!(options, fields.option(Carrier::Ipv6));
        }
        let mut answer = request.option(Carrier::Tcp);
        assert_eq!(pass(IpVersion::V4, &mut answer, hop(1)), None);
        let mut twice = request.option(Carrier::Ipv4).repeat(2);
        assert_eq!(pass(IpVersion::V4, &mut twice, hop(1)), None, "which one would count?");
        let mut long = [&[25, 10][..], &request.bytes(), &[0, 0]].concat();
        assert_eq!(pass(IpVersion::V4, &mut long, hop(1)), None);
        let mut padded = [&[0, 1, 1, 0][..], &request.option(Carrier::Ipv6)].concat();
        assert_eq!(pass(IpVersion::V6, &mut padded, hop(1)).map(|rewrite| rewrite.offset), Some(6));
    }

    proptest! {
        #[test]
        fn a_router_never_raises_and_keeps_reserved_bits(bytes: [u8; 6], approved in 0u8..=15, random: u32) {
            let before = Fields::from_bytes(bytes);
            let after = before.after(Hop { approved: code(approved), hops: 1, random });
            prop_assert!(after.rate() <= before.rate());
            prop_assert_eq!((after.bytes[0] ^ bytes[0]) & 0xF0, 0);
            prop_assert_eq!((after.bytes[5] ^ bytes[5]) & 3, 0);
            if before.function() == Some(Function::Request) {
                prop_assert!(after.rate() <= code(approved));
            } else {
                prop_assert_eq!(after, before);
            }
            let option = after.option(Carrier::Tcp);
            prop_assert_eq!(find(Carrier::Tcp, &option), Some((0, after)));
        }
    }
}
