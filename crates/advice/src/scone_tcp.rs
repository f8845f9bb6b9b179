//! SCONE for TCP: the signal of SCONE in a TCP option.
//!
//! Source: draft-eddy-tcpm-scone (2025). The option has no number yet, so it is experimental: kind 253 or
//! 254 (RFC 4727) with an identifier (RFC 6994).
//!   kind, 6, 0x6F7D, field of 16 bits: low 7 bits signal, upper 9 bits zero and ignored
//! Both SYNs carry it if it is to be used later. An element lowers the signal of a segment that passes, as
//! MSS clamping changes the MSS.
//! Readings: the draft's formula adds where SCONE multiplies; here rates are those of `scone.rs`. It leaves
//! open what 127 means, and whether a signal may be raised: both as in SCONE.
//! Deviation: it does not say how a sender learns what its receiver was told. Bits 7 to 13 echo the signal
//! that came, 127 for none. Peers that know the draft only send zeros there, so an echo counts only if a
//! peer has once sent something else ([`Advised::has_echo`]). Our SYN therefore echoes 127.

pub mod packet;

use crate::options::{List, only};
use crate::rewrite::Rewrite;
use crate::scone::Advice;

/// Identifies the option among the experimental ones.
pub const EXPERIMENT_ID: u16 = 0x6F7D;

/// Bytes of the option before its field.
const HEAD: usize = 4;
/// The bits of the signal, and of the echo once it is shifted.
const SIGNAL: u16 = 0x7F;
/// Where the echo begins.
const ECHO_SHIFT: u32 = 7;

/// Kind of an experimental option (RFC 4727).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// Experiment 1.
    First = 253,
    /// Experiment 2.
    #[default]
    Second = 254,
}

impl Kind {
    const fn new(kind: u8) -> Option<Self> {
        match kind {
            253 => Some(Self::First),
            254 => Some(Self::Second),
            _ => None,
        }
    }
}

/// The option. A setter changes its bits only, so reserved bits stay as they came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advised {
    kind: Kind,
    field: u16,
}

impl Advised {
    /// Bytes of the option, without padding.
    pub const LEN: usize = 6;

    /// An option as the draft has it, without echo.
    pub const fn new(kind: Kind, advice: Advice) -> Self {
        Self { kind, field: advice.get() as u16 }
    }

    /// Its kind.
    pub const fn kind(self) -> Kind {
        self.kind
    }

    /// The signal.
    pub const fn advice(self) -> Advice {
        Advice::from_bits((self.field & SIGNAL) as u8)
    }

    /// The same option with another signal.
    #[must_use]
    pub const fn with_advice(self, advice: Advice) -> Self {
        Self { kind: self.kind, field: self.field & !SIGNAL | advice.get() as u16 }
    }

    /// True if the bits of the echo are not all zero: the sender of this option knows the echo.
    pub const fn has_echo(self) -> bool {
        self.field >> ECHO_SHIFT & SIGNAL != 0
    }

    /// The signal that the peer echoes; `None` if it has none to echo, or does not know the echo, which
    /// its handshake tells ([`Advised::has_echo`]).
    pub fn echo(self, peer_knows_it: bool) -> Option<Advice> {
        let echo = Advice::from_bits((self.field >> ECHO_SHIFT & SIGNAL) as u8);
        Some(echo).filter(|echo| peer_knows_it && *echo != Advice::UNKNOWN)
    }

    /// The same option with an echo; [`Advice::UNKNOWN`] for none.
    #[must_use]
    pub const fn with_echo(self, echo: Advice) -> Self {
        let field = self.field & !(SIGNAL << ECHO_SHIFT) | (echo.get() as u16) << ECHO_SHIFT;
        Self { kind: self.kind, field }
    }

    /// The bytes of the option.
    pub const fn bytes(self) -> [u8; Self::LEN] {
        let ([id, of], [high, low]) = (EXPERIMENT_ID.to_be_bytes(), self.field.to_be_bytes());
        [self.kind as u8, Self::LEN as u8, id, of, high, low]
    }

    /// From all bytes of an option; `None` if it is another.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let [kind, len, id, of, high, low] = *bytes.first_chunk::<{ Self::LEN }>()?;
        let is_ours = bytes.len() == Self::LEN
            && usize::from(len) == Self::LEN
            && u16::from_be_bytes([id, of]) == EXPERIMENT_ID;
        let kind = Kind::new(kind).filter(|_| is_ours)?;
        Some(Self { kind, field: u16::from_be_bytes([high, low]) })
    }
}

/// The only such option in the option bytes of a TCP header, and where it begins. `None` if there are two, or
/// if the length of any option is impossible.
pub fn find(options: &[u8]) -> Option<(usize, Advised)> {
    only(List::Header, options, Advised::from_bytes)
}

/// What an element does with the option bytes of a segment that passes: lowers the signal to `limit`. `None`
/// if they stay as they came: there is no such option, or its signal is not higher.
pub fn lower(options: &mut [u8], limit: Advice) -> Option<Rewrite<2>> {
    let (at, option) = find(options)?;
    if option.advice() <= limit {
        return None;
    }
    Rewrite::apply(options, at + HEAD, option.with_advice(limit).field.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn advice(signal: u8) -> Advice {
        Advice::new(signal).unwrap()
    }

    #[test]
    fn the_option_has_the_bytes_of_the_draft() {
        let option = Advised::new(Kind::Second, advice(60));
        assert_eq!(option.bytes(), [254, 6, 0x6F, 0x7D, 0, 60]);
        assert_eq!(Advised::new(Kind::First, Advice::UNKNOWN).bytes(), [253, 6, 0x6F, 0x7D, 0, 127]);
        assert_eq!(option.with_echo(advice(1)).bytes(), [254, 6, 0x6F, 0x7D, 0, 0xBC]);
        assert_eq!(option.with_echo(Advice::UNKNOWN).bytes(), [254, 6, 0x6F, 0x7D, 0x3F, 0xBC]);
    }

    #[test]
    fn an_echo_counts_from_a_peer_that_knows_it() {
        let plain = Advised::new(Kind::Second, advice(60));
        assert_eq!((plain.has_echo(), plain.echo(false)), (false, None));
        let syn = plain.with_echo(Advice::UNKNOWN);
        assert_eq!((syn.has_echo(), syn.echo(true)), (true, None));
        for signal in [0, 1, 126] {
            let echo = syn.with_echo(advice(signal));
            assert_eq!((echo.echo(true), echo.echo(false)), (Some(advice(signal)), None));
            assert_eq!(echo.advice(), advice(60));
        }
    }

    #[test]
    fn an_element_finds_it_among_other_options_and_lowers_it() {
        let option = Advised::new(Kind::First, Advice::UNKNOWN).with_echo(advice(5));
        let mut options = [&[1, 2, 4, 5, 0xB4, 254, 4, 1, 2][..], &option.bytes(), &[0]].concat();
        let before = options.clone();
        assert_eq!(find(&options), Some((9, option)));
        let expected = Rewrite { offset: 13, old: [2, 0xFF], new: [2, 0xB0] };
        assert_eq!(lower(&mut options, advice(48)), Some(expected));
        assert_eq!((lower(&mut options, advice(48)), lower(&mut options, Advice::UNKNOWN)), (None, None));
        assert_eq!(find(&options), Some((9, option.with_advice(advice(48)))));
        assert_eq!((&options[..13], &options[15..]), (&before[..13], &before[15..]));
    }

    #[test]
    fn other_options_pass_untouched() {
        let good = Advised::new(Kind::Second, Advice::UNKNOWN).bytes();
        for (at, value) in [(0, 252), (1, 5), (1, 7), (1, 0), (2, 0), (3, 0)] {
            let mut other = good;
            other[at] = value;
            let before = other;
            assert_eq!((lower(&mut other, advice(0)), other), (None, before), "{at}");
        }
        assert_eq!(find(&[254, 8, 0x6F, 0x7D, 0, 1, 0, 0]), None); // another length
        assert_eq!(find(&[&[0][..], &good].concat()), None); // after the end of the list
        assert_eq!(find(&[good, good].concat()), None); // which one would count?
    }

    proptest! {
        #[test]
        fn only_the_signal_changes_on_the_way(field: u16, limit in 0u8..=127) {
            let [high, low] = field.to_be_bytes();
            let mut options = [254, 6, 0x6F, 0x7D, high, low];
            let rewrite = lower(&mut options, advice(limit));
            let after = u16::from_be_bytes([options[4], options[5]]);
            prop_assert_eq!(after & !SIGNAL, field & !SIGNAL);
            prop_assert_eq!(after & SIGNAL, (field & SIGNAL).min(u16::from(limit)));
            prop_assert_eq!(rewrite.is_some(), after != field);
            prop_assert_eq!(find(&options).unwrap().1.bytes(), options);
        }
    }
}
