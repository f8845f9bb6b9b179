//! TCP options as encoded in the header (RFC 9293, section 3.2).

use crate::error::{Fault, WireError};

/// A TCP option kind, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OptionKind(pub u8);

impl OptionKind {
    /// End of the list; one byte.
    pub const END: Self = Self(0);
    /// No operation, used as padding; one byte.
    pub const NOP: Self = Self(1);
    /// Maximum segment size.
    pub const MSS: Self = Self(2);
    /// Window scale (RFC 7323).
    pub const WINDOW_SCALE: Self = Self(3);
    /// Selective acknowledgments permitted (RFC 2018).
    pub const SACK_PERMITTED: Self = Self(4);
    /// Selective acknowledgments (RFC 2018).
    pub const SACK: Self = Self(5);
    /// Timestamps (RFC 7323).
    pub const TIMESTAMPS: Self = Self(8);
    /// For experiments (RFC 4727). They share this number; an identifier in the option tells them apart (RFC
    /// 6994).
    pub const EXPERIMENT: Self = Self(254);
}

/// Bytes of options that fit into a TCP header.
pub const OPTION_SPACE: usize = 40;

/// One option, kind and length bytes included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawOption<'a> {
    /// Where it begins, from the start of the options.
    pub at: usize,
    /// All its bytes.
    pub bytes: &'a [u8],
}

impl<'a> RawOption<'a> {
    /// Its kind.
    pub const fn kind(&self) -> OptionKind {
        match self.bytes.first() {
            Some(kind) => OptionKind(*kind),
            None => OptionKind::END,
        }
    }
    /// The bytes after kind and length.
    pub fn value(&self) -> &'a [u8] {
        self.bytes.get(2..).unwrap_or_default()
    }
}

/// Iterates over the options; skips no-operations and stops at the end of the list.
///
/// An impossible length is reported once and ends the iteration, because the next option cannot be found.
#[derive(Clone, Debug)]
pub struct Options<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Options<'a> {
    /// Iterates over the option bytes of a header.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = Result<RawOption<'a>, WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let at = self.at;
            let rest = self.bytes.get(at..)?;
            match OptionKind(*rest.first()?) {
                OptionKind::END => {
                    self.at = self.bytes.len();
                    return None;
                }
                OptionKind::NOP => self.at += 1,
                _ => {
                    let len = rest.get(1).map_or(0, |len| usize::from(*len));
                    let Some(bytes) = rest.get(..len).filter(|b| b.len() >= 2) else {
                        self.at = self.bytes.len();
                        return Some(Err(WireError::new(Fault::OptionLength, at)));
                    };
                    self.at += len;
                    return Some(Ok(RawOption { at, bytes }));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(bytes: &[u8]) -> Vec<Result<(usize, u8, usize), WireError>> {
        Options::new(bytes).map(|o| o.map(|o| (o.at, o.kind().0, o.bytes.len()))).collect()
    }

    #[test]
    fn options_are_told_apart() {
        assert_eq!(list(&[]), []);
        assert_eq!(list(&[2, 4, 5, 0xb4, 1, 3, 3, 7]), [Ok((0, 2, 4)), Ok((5, 3, 3))]);
        assert_eq!(list(&[1, 1, 4, 2]), [Ok((2, 4, 2))]);
        assert_eq!(list(&[4, 2, 0, 2, 4, 5, 0xb4]), [Ok((0, 4, 2))]); // options after the end are ignored
    }

    #[test]
    fn impossible_lengths_end_the_list() {
        let fault = |at| Err(WireError::new(Fault::OptionLength, at));
        assert_eq!(list(&[1, 2, 0, 4, 2]), [fault(1)]);
        assert_eq!(list(&[2, 1, 4, 2]), [fault(0)]);
        assert_eq!(list(&[4, 2, 8, 10, 0, 0]), [Ok((0, 4, 2)), fault(2)]);
        assert_eq!(list(&[4, 2, 8]), [Ok((0, 4, 2)), fault(2)]); // no length byte
    }
}
