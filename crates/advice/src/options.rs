//! Walks over lists of options without trusting their lengths.

/// How a list of options is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum List {
    /// IPv4 (RFC 791, section 3.1) and TCP (RFC 9293, section 3.2): 0 ends the list, 1 is one byte of
    /// padding, a length counts the whole option.
    Header,
    /// A hop-by-hop header (RFC 8200, section 4.2): 0 is one byte of padding, a length counts the data only.
    HopByHop,
}

/// Where an option is, its type and length included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Its type.
    pub(crate) kind: u8,
    /// Its first byte.
    pub(crate) at: usize,
    /// The byte after its last.
    pub(crate) end: usize,
}

impl Place {
    /// Bytes after type and length.
    pub(crate) const fn data_len(self) -> usize {
        self.end - self.at - HEAD
    }
}

/// An option that reaches past the end of the list, or is shorter than its type and length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// Bytes of type and length.
const HEAD: usize = 2;

/// Iterates over the options; padding is skipped. An impossible length is the last item.
#[derive(Clone, Debug)]
pub(crate) struct Options<'a> {
    list: List,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Options<'a> {
    /// Iterates over the bytes of a list.
    pub(crate) const fn new(list: List, bytes: &'a [u8]) -> Self {
        Self { list, bytes, at: 0 }
    }

    /// The option at the current place.
    fn option(&mut self, kind: u8) -> Result<Place, Malformed> {
        let at = self.at;
        let uncounted = if self.list == List::HopByHop { HEAD } else { 0 };
        let stated = self.bytes.get(at + 1).map(|len| at + uncounted + usize::from(*len));
        let end = stated.filter(|end| (at + HEAD..=self.bytes.len()).contains(end));
        self.at = end.unwrap_or(self.bytes.len());
        end.map(|end| Place { kind, at, end }).ok_or(Malformed)
    }
}

impl Iterator for Options<'_> {
    type Item = Result<Place, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let kind = *self.bytes.get(self.at)?;
            match (self.list, kind) {
                (List::Header, 0) => {
                    self.at = self.bytes.len();
                    return None;
                }
                (List::Header, 1) | (List::HopByHop, 0) => self.at += 1,
                _ => return Some(self.option(kind)),
            }
        }
    }
}

/// Returns the only option that `read` knows, and where it begins. `None` if there are two of them, since
/// who reads the packet may take the other one, or if a length is impossible.
pub(crate) fn only<T>(list: List, bytes: &[u8], read: impl Fn(&[u8]) -> Option<T>) -> Option<(usize, T)> {
    let mut found = None;
    for place in Options::new(list, bytes) {
        let place = place.ok()?;
        let known = bytes.get(place.at..place.end).and_then(&read);
        if known.is_some() && found.is_some() {
            return None;
        }
        found = known.map(|value| (place.at, value)).or(found);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(list: List, bytes: &[u8]) -> Vec<Result<(u8, usize, usize), Malformed>> {
        Options::new(list, bytes).map(|o| o.map(|o| (o.kind, o.at, o.data_len()))).collect()
    }

    #[test]
    fn options_of_both_kinds_of_list_are_found() {
        assert_eq!(all(List::Header, &[1, 2, 4, 5, 6, 8, 2, 0, 9, 2]), [Ok((2, 1, 2)), Ok((8, 5, 0))]);
        let found = [Ok((5, 1, 2)), Ok((1, 5, 0)), Ok((7, 7, 0))];
        assert_eq!(all(List::HopByHop, &[0, 5, 2, 0, 0, 1, 0, 7, 0]), found);
    }

    #[test]
    fn an_impossible_length_ends_the_list() {
        for bytes in [&[1, 2, 0, 5, 2][..], &[1, 2, 1, 5, 2], &[1, 2, 9, 5, 2], &[1, 2]] {
            assert_eq!(all(List::Header, bytes), [Err(Malformed)], "{bytes:?}");
        }
        for bytes in [&[0, 5, 2, 0][..], &[0, 5]] {
            assert_eq!(all(List::HopByHop, bytes), [Err(Malformed)], "{bytes:?}");
        }
    }
    #[test]
    fn an_option_counts_if_it_is_the_only_one_and_all_lengths_are_possible() {
        let found = |bytes: &[u8]| only(List::Header, bytes, |o| (o[0] == 9).then_some(o.len()));
        assert_eq!(found(&[1, 2, 3, 7, 9, 3, 5, 2, 2]), Some((4, 3)));
        assert_eq!(
            (found(&[9, 2, 9, 2]), found(&[9, 2, 2, 1]), found(&[9, 2, 2]), found(&[2, 2])),
            (None, None, None, None)
        );
        assert_eq!(found(&[9, 2, 0, 9, 2]), Some((0, 2)), "nothing follows the end of the list");
    }
}
