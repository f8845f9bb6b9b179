//! The encodings in which a flow router tells rates: those of ends, and SCONE of QUIC, of which no end here
//! speaks.

use bentpipe_advice::negotiation::Encoding;

/// How packets carry rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouterEncoding {
    /// As ends speak it.
    End(Encoding),
    /// SCONE packets in QUIC datagrams (draft-ietf-scone-protocol).
    Scone,
}

impl From<Encoding> for RouterEncoding {
    fn from(encoding: Encoding) -> Self {
        Self::End(encoding)
    }
}

impl RouterEncoding {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::End(Encoding::Tia1039),
        Self::Scone,
        Self::End(Encoding::SconeTcp),
        Self::End(Encoding::QuickStart),
    ];

    /// Returns the word for it in files.
    pub const fn word(self) -> &'static str {
        match self {
            Self::End(encoding) => encoding.word(),
            Self::Scone => "scone",
        }
    }

    /// Its bit in a set.
    const fn bit(self) -> u8 {
        match self {
            Self::End(encoding) => 2 << encoding as u8,
            Self::Scone => 1,
        }
    }
}

/// A set of encodings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Encodings(u8);

impl Encodings {
    /// All of them.
    pub fn all() -> Self {
        RouterEncoding::ALL.into_iter().fold(Self::default(), Self::with)
    }

    /// The set and `encoding`.
    #[must_use]
    pub fn with(self, encoding: impl Into<RouterEncoding>) -> Self {
        Self(self.0 | encoding.into().bit())
    }

    /// True if `encoding` is in the set.
    pub fn has(self, encoding: impl Into<RouterEncoding>) -> bool {
        self.0 & encoding.into().bit() != 0
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
        for (i, one) in RouterEncoding::ALL.into_iter().enumerate() {
            let set = Encodings::default().with(one);
            let has = RouterEncoding::ALL.map(|encoding| set.has(encoding));
            assert!(has.iter().enumerate().all(|(j, has)| *has == (i == j)), "{}", one.word());
            assert!(!set.is_empty() && Encodings::all().has(one));
        }
    }
}
