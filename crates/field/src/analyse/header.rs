//! Parser for captured IPv4 and TCP headers (RFC 791, 9293, 2018). Truncated, malformed or other packets
//! give `None`.
//!
//! It is independent of the parser of the gateway under test, so that a bug there is not hidden here.

/// A TCP segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Source address and port.
    pub from: (u32, u16),
    /// Destination address and port.
    pub to: (u32, u16),
    /// Sequence number of the first byte.
    pub seq: u32,
    /// Acknowledgment number.
    pub ack: u32,
    /// Payload, bytes.
    pub len: u32,
    /// ACK flag.
    pub is_ack: bool,
    /// SYN flag.
    pub is_syn: bool,
    /// SACK blocks as in the header.
    pub blocks: Vec<(u32, u32)>,
}

impl Segment {
    /// Parses the first bytes of a packet of `size` bytes.
    pub fn parse(head: &[u8], size: u32) -> Option<Self> {
        let u16_at = |at: usize| Some(u16::from_be_bytes(head.get(at..at + 2)?.try_into().ok()?));
        let u32_at = |at: usize| Some(u32::from_be_bytes(head.get(at..at + 4)?.try_into().ok()?));
        let ip = usize::from(head.first()? & 15) * 4;
        let total = u32::from(u16_at(2)?);
        // fragments are skipped
        let is_whole = u16_at(6)? << 2 == 0;
        if head[0] >> 4 != 4 || ip < 20 || *head.get(9)? != 6 || !is_whole || total > size {
            return None;
        }
        let tcp = usize::from(*head.get(ip + 12)? >> 4) * 4;
        let flags = *head.get(ip + 13)?;
        let len = total.checked_sub((ip + tcp) as u32).filter(|_| tcp >= 20)?;
        let sack = options(head.get(ip + 20..ip + tcp)?).into_iter().filter(|option| option[0] == 5);
        // an option whose length is wrong or missing has no blocks
        let sack = sack.filter(|option| option.get(1).is_some_and(|len| usize::from(*len) == option.len()));
        let blocks = sack.flat_map(|option| option[2..].as_chunks::<8>().0);
        let edge = |bytes: &[u8]| bytes.iter().fold(0, |edge, byte| edge << 8 | u32::from(*byte));
        Some(Self {
            from: (u32_at(12)?, u16_at(ip)?),
            to: (u32_at(16)?, u16_at(ip + 2)?),
            seq: u32_at(ip + 4)?,
            ack: u32_at(ip + 8)?,
            len,
            is_ack: flags & 0x10 != 0,
            is_syn: flags & 2 != 0,
            blocks: blocks.map(|block| (edge(&block[..4]), edge(&block[4..]))).collect(),
        })
    }
}

/// TCP options without padding, each with its kind and its length. If a length is wrong, the rest is one
/// option.
pub fn options(mut rest: &[u8]) -> Vec<&[u8]> {
    let mut all = Vec::new();
    while let [kind, more @ ..] = rest {
        let len = match (kind, more.first()) {
            (0, _) => break,
            (1, _) => 1,
            (_, Some(len)) if *len >= 2 && usize::from(*len) <= rest.len() => usize::from(*len),
            _ => rest.len(),
        };
        let (option, next) = rest.split_at(len);
        if *kind != 1 {
            all.push(option);
        }
        rest = next;
    }
    all
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A packet from host 1 to host 2, or back.
    pub(crate) fn packet(
        forward: bool,
        seq: u32,
        ack: u32,
        len: u16,
        blocks: &[(u32, u32)],
    ) -> (Vec<u8>, u32) {
        let mut options = Vec::new();
        if !blocks.is_empty() {
            options.extend([1, 1, 5, 2 + 8 * blocks.len() as u8]);
            for (left, right) in blocks {
                options.extend(left.to_be_bytes());
                options.extend(right.to_be_bytes());
            }
        }
        let total = 40 + options.len() as u16 + len;
        let (from, to) = if forward { (1_u32, 2_u32) } else { (2, 1) };
        let mut head = vec![0x45, 0];
        head.extend(total.to_be_bytes());
        head.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
        head.extend(from.to_be_bytes());
        head.extend(to.to_be_bytes());
        head.extend(if forward { [0, 10, 0, 20] } else { [0, 20, 0, 10] });
        head.extend(seq.to_be_bytes());
        head.extend(ack.to_be_bytes());
        head.extend([((5 + options.len() / 4) as u8) << 4, 0x10, 0xff, 0xff, 0, 0, 0, 0]);
        head.extend(options);
        (head, u32::from(total))
    }

    #[test]
    fn a_segment_is_read_with_its_blocks() {
        let (head, size) = packet(false, 7, 1000, 0, &[(2000, 3000), (5000, 6000)]);
        let segment = Segment::parse(&head, size).unwrap();
        assert_eq!((segment.from, segment.to), ((2, 20), (1, 10)));
        assert_eq!((segment.seq, segment.ack, segment.len), (7, 1000, 0));
        assert_eq!(segment.blocks, [(2000, 3000), (5000, 6000)]);
        assert!(segment.is_ack && !segment.is_syn);
    }

    #[test]
    fn what_is_cut_off_or_false_is_no_segment() {
        let (head, size) = packet(true, 7, 1000, 100, &[(2000, 3000)]);
        for cut in 0..head.len() {
            assert_eq!(Segment::parse(&head[..cut], size), None, "{cut}");
        }
        assert_eq!(Segment::parse(&head, size - 1), None, "longer than it was");
        let changed = |at: usize, to: u8| {
            let mut head = head.clone();
            head[at] = to;
            Segment::parse(&head, size)
        };
        // version, header length, protocol, fragment, TCP header length
        for (at, to) in [(0, 0x65), (0, 0x44), (9, 17), (7, 1), (6, 0x20), (32, 0x40), (32, 0xf0)] {
            assert_eq!(changed(at, to), None, "byte {at}");
        }
        // options: length 0, length 1, a length beyond the end, end of list
        for (at, to) in [(43, 0), (43, 1), (43, 200), (42, 0)] {
            assert_eq!(changed(at, to).unwrap().blocks, [], "byte {at} is {to}");
        }
        // the most blocks that fit
        let (head, size) = packet(false, 0, 0, 0, &[(1, 2); 4]);
        assert_eq!(Segment::parse(&head, size).unwrap().blocks.len(), 4);
    }
}
