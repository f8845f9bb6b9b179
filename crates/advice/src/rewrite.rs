//! Bytes replaced in place.

/// Bytes that an element replaced in a packet, for the repair of the checksum over them (RFC 1624).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rewrite<const N: usize> {
    /// Where they begin in the bytes that were given. It may be odd: a checksum pairs bytes from its start.
    pub offset: usize,
    /// The bytes before.
    pub old: [u8; N],
    /// The bytes after.
    pub new: [u8; N],
}

impl<const N: usize> Rewrite<N> {
    /// Puts `new` at `offset`. `None` if that changes nothing, or if there are not as many bytes.
    pub(crate) fn apply(bytes: &mut [u8], offset: usize, new: [u8; N]) -> Option<Self> {
        let place = bytes.get_mut(offset..)?.first_chunk_mut::<N>()?;
        let old = core::mem::replace(place, new);
        (old != new).then_some(Self { offset, old, new })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rewrite_tells_what_it_changed() {
        let mut bytes = [1, 2, 3];
        let expected = Rewrite { offset: 1, old: [2, 3], new: [7, 3] };
        assert_eq!(Rewrite::apply(&mut bytes, 1, [7, 3]), Some(expected));
        assert_eq!(Rewrite::apply(&mut bytes, 1, [7, 3]), None);
        assert_eq!(Rewrite::apply(&mut bytes, 2, [9, 9]), None); // does not fit
        assert_eq!(bytes, [1, 7, 3]);
    }
}
