//! The encodings in which a flow router tells rates: those of ends, and SCONE of QUIC, of which no end here
//! speaks.

use bentpipe_advice::negotiation::Encoding;

/// How packets carry rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouterEncoding {
    /// The structures of TIA-1039.
    Tia1039,
    /// SCONE packets in QUIC datagrams (draft-ietf-scone-protocol).
    Scone,
    /// SCONE in a TCP option (draft-eddy-tcpm-scone).
    SconeTcp,
    /// The options of Quick-Start (RFC 4782).
    QuickStart,
}

impl RouterEncoding {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Tia1039, Self::Scone, Self::SconeTcp, Self::QuickStart];

    /// Returns the word for it in files.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Tia1039 => Encoding::Tia1039.word(),
            Self::Scone => "scone",
            Self::SconeTcp => Encoding::SconeTcp.word(),
            Self::QuickStart => Encoding::QuickStart.word(),
        }
    }
}

/// A set of encodings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Encodings(u8);

impl Encodings {
    /// All of them.
    pub const fn all() -> Self {
        let mut all = Self(0);
        let mut i = 0;
        while i < RouterEncoding::ALL.len() {
            all = all.with(RouterEncoding::ALL[i]);
            i += 1;
        }
        all
    }

    /// The set and `encoding`.
    #[must_use]
    pub const fn with(self, encoding: RouterEncoding) -> Self {
        Self(self.0 | 1 << encoding as u8)
    }

    /// True if `encoding` is in the set.
    pub const fn has(self, encoding: RouterEncoding) -> bool {
        self.0 & 1 << encoding as u8 != 0
    }

    /// True if the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_was_put_into_it() {
        let one = Encodings::default().with(RouterEncoding::Scone);
        assert!(one.has(RouterEncoding::Scone) && !one.has(RouterEncoding::Tia1039) && !one.is_empty());
        assert!(RouterEncoding::ALL.iter().all(|encoding| Encodings::all().has(*encoding)));
    }
}
