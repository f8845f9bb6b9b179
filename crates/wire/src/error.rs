//! Errors in bytes from a wire: what is wrong, and where.

use core::fmt;

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The bytes end before the header, or before the length the header states.
    Truncated,
    /// Neither IPv4 nor IPv6, or not the version asked for.
    Version(u8),
    /// A header states a length that is shorter than its fixed part.
    HeaderLength,
    /// The total length is shorter than the headers it includes.
    TotalLength,
    /// A jumbogram (RFC 2675): its length is not in the IP header.
    Jumbo,
    /// A fragment: it does not hold a whole segment.
    Fragment,
    /// Another transport protocol than the one asked for.
    Protocol(u8),
    /// A TCP option's length is below two or reaches past the header.
    OptionLength,
    /// No room for the option: a TCP header has at most 40 bytes of options.
    OptionSpaceFull,
    /// The packet is too long for the length field of the IP header.
    TooLong,
}

/// A fault and where it was found, in bytes from the start of the given bytes; for a packet that cannot be
/// written, the length of the output before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireError {
    /// What is wrong.
    pub fault: Fault,
    /// Where, in bytes.
    pub offset: usize,
}

impl WireError {
    pub(crate) const fn new(fault: Fault, offset: usize) -> Self {
        Self { fault, offset }
    }
    /// The same fault, with its offset counted from the start of a larger packet in which the bytes begin at
    /// `base`.
    pub(crate) const fn shifted_by(self, base: usize) -> Self {
        Self { fault: self.fault, offset: self.offset + base }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("the packet ends too early"),
            Self::Version(v) => write!(f, "IP version {v}"),
            Self::HeaderLength => f.write_str("header length below the fixed header"),
            Self::TotalLength => f.write_str("total length below the headers"),
            Self::Jumbo => f.write_str("jumbogram"),
            Self::Fragment => f.write_str("fragment of a larger packet"),
            Self::Protocol(p) => write!(f, "transport protocol {p}"),
            Self::OptionLength => f.write_str("impossible TCP option length"),
            Self::OptionSpaceFull => f.write_str("no room for another TCP option"),
            Self::TooLong => f.write_str("longer than an IP packet can be"),
        }
    }
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: {}", self.offset, self.fault)
    }
}

impl core::error::Error for WireError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_what_and_where() {
        let e = WireError::new(Fault::OptionLength, 3).shifted_by(40);
        assert_eq!(e.to_string(), "byte 43: impossible TCP option length");
    }
}
