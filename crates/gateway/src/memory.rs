//! Bytes held for connections, bounded in all.

use bentpipe_base::Size;

/// How many bytes are held, and how many may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Memory {
    /// Held now, by all connections.
    pub(crate) used: u64,
    /// May be held: a connection that wants more passes what it has.
    pub(crate) limit: u64,
    peak: u64,
}

impl Memory {
    /// Nothing held.
    pub(crate) const fn new(limit: Size) -> Self {
        Self { used: 0, limit: limit.0, peak: 0 }
    }

    /// Keeps in mind how many bytes are held now.
    #[inline]
    pub(crate) fn note(&mut self) {
        self.peak = self.peak.max(self.used);
    }

    /// The most that were held.
    pub(crate) const fn peak(&self) -> Size {
        Size(self.peak)
    }

    /// True when so little room is left that no further connection should need it.
    pub(crate) const fn is_scarce(&self) -> bool {
        self.used >= self.limit - self.limit / 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_scarce_before_it_is_used_up() {
        let mut memory = Memory::new(Size(800));
        assert!(!memory.is_scarce() && Memory::new(Size(0)).is_scarce());
        for (used, is_scarce) in [(699, false), (700, true), (900, true), (10, false)] {
            memory.used = used;
            memory.note();
            assert_eq!(memory.is_scarce(), is_scarce, "{used}");
        }
        assert_eq!(memory.peak(), Size(900));
    }
}
