//! A strict pcapng reader, to check files without other programs.
#![allow(dead_code, reason = "each test uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

/// A packet read from the file.
pub(crate) struct Seen {
    pub(crate) time: u64,
    pub(crate) original: usize,
    pub(crate) bytes: Vec<u8>,
    pub(crate) comment: Option<String>,
}

/// Contents of a file.
#[derive(Default)]
pub(crate) struct File {
    pub(crate) interfaces: Vec<String>,
    pub(crate) packets: Vec<Seen>,
    /// For each interface: packets seen, packets missing, comment.
    pub(crate) statistics: Vec<(u64, u64, Option<String>)>,
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn options(mut bytes: &[u8]) -> Vec<(u16, Vec<u8>)> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let (code, len) = (word(bytes, 0) as u16, (word(bytes, 0) >> 16) as usize);
        if code == 0 {
            assert_eq!((len, bytes.len()), (0, 4), "nothing after the end of the options");
            return all;
        }
        all.push((code, bytes[4..4 + len].to_vec()));
        assert!(bytes[4 + len..4 + len.next_multiple_of(4)].iter().all(|b| *b == 0), "padding");
        bytes = &bytes[4 + len.next_multiple_of(4)..];
    }
    assert!(all.is_empty(), "options without an end");
    all
}

fn text(options: &[(u16, Vec<u8>)], code: u16) -> Option<String> {
    options.iter().find(|o| o.0 == code).map(|o| String::from_utf8(o.1.clone()).unwrap())
}

fn count(options: &[(u16, Vec<u8>)], code: u16) -> u64 {
    u64::from_le_bytes(options.iter().find(|o| o.0 == code).unwrap().1.clone().try_into().unwrap())
}

/// Reads a file; panics at the first violation of the format.
pub(crate) fn read(mut bytes: &[u8]) -> File {
    let mut file = File::default();
    let mut first = true;
    while !bytes.is_empty() {
        let (kind, len) = (word(bytes, 0), word(bytes, 4) as usize);
        assert!(len % 4 == 0 && len >= 12 && len <= bytes.len(), "block of {len} bytes");
        assert_eq!(word(bytes, len - 4) as usize, len, "both lengths of a block");
        let body = &bytes[8..len - 4];
        assert_eq!(kind == 0x0a0d_0d0a, first, "one section header, at the beginning");
        first = false;
        match kind {
            0x0a0d_0d0a => {
                assert_eq!((word(body, 0), word(body, 4)), (0x1a2b_3c4d, 1), "byte order, version 1.0");
                options(&body[16..]);
            }
            1 => {
                assert_eq!(word(body, 0), 101, "raw IP");
                let options = options(&body[8..]);
                assert_eq!(options.iter().find(|o| o.0 == 9).unwrap().1, [9], "nanoseconds");
                file.interfaces.push(text(&options, 2).unwrap());
            }
            6 => {
                let kept = word(body, 12) as usize;
                let time = u64::from(word(body, 4)) << 32 | u64::from(word(body, 8));
                file.packets.push(Seen {
                    time,
                    original: word(body, 16) as usize,
                    bytes: body[20..20 + kept].to_vec(),
                    comment: text(&options(&body[20 + kept.next_multiple_of(4)..]), 1),
                });
            }
            5 => {
                let options = options(&body[12..]);
                assert_eq!(word(body, 0) as usize, file.statistics.len());
                file.statistics.push((count(&options, 4), count(&options, 5), text(&options, 1)));
            }
            other => panic!("a block of type {other}"),
        }
        bytes = &bytes[len..];
    }
    file
}
