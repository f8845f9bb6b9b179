//! The part of a connection's state that survives the gateway: a record of fixed size.
//!
//! A gateway that inserted or removed a window scale must translate windows until the connection ends, even
//! after a crash and restart. The shifts cannot be learned from later packets; everything else can. So a
//! record holds addresses and ports, the shifts, and the window edges at the time of writing. After a restart
//! the connection passes unaccelerated until its current state is known. A sleeping connection is stored in
//! the same form: nothing is in flight then, the edges are exact, and it continues as before.
//!
//! A driver keeps the records in a memory-mapped file, each in the slot with its number, and writes one when
//! it changes: at the end of the handshake, when the connection goes to sleep and when it ends, not per
//! packet. The checksum rejects torn records. Addresses are the driver's own numbers, which it must restore
//! first.

use super::hash::HashKey;
use super::key::Key;
use bentpipe_base::{Addr, Duration, Seq};
use core::fmt;

/// Size of a record in bytes.
pub const RECORD: usize = 64;

const VERSION: u8 = 1;
/// Key of the checksum. Not secret: it protects against torn writes, not against forging.
const CHECK: HashKey = HashKey(0x6265_6e74_7069_7065, 0x7265_636f_7264);

/// The state that is needed to pass the packets of an accelerated connection correctly later on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SavedState {
    /// The shift that the sender applies to windows it receives: the one in the SYN that it saw.
    pub advertised_shift: u8,
    /// The shift that the receiver actually uses.
    pub receiver_shift: u8,
    /// The shift that the sender actually uses.
    pub sender_shift: u8,
    /// The shift that the receiver applies to the sender's windows.
    pub believed_shift: u8,
    /// Both sides use timestamps (RFC 7323).
    pub timestamps: bool,
    /// Both sides may use SACK (RFC 2018).
    pub sack: bool,
    /// Largest segment size towards the satellite.
    pub mss: u16,
    /// The receiver has everything before this.
    pub una: Seq,
    /// Nothing from here on was sent by the sender.
    pub next: Seq,
    /// Right edge of the window that the receiver advertised.
    pub edge: Seq,
    /// Right edge of the window advertised to the sender.
    pub advertised_edge: Seq,
    /// The sender has received everything before this from the receiver.
    pub back_una: Seq,
    /// The largest window that the receiver has advertised, at most 4 GiB - 1.
    pub largest: u32,
    /// RTT behind the gateway, in whole microseconds; zero if unknown.
    pub hop_rtt: Duration,
    /// RTT in front of the gateway, likewise.
    pub lan_rtt: Duration,
}

impl SavedState {
    /// True if packets need no translation: the shifts and the edge shown are the real ones.
    pub const fn is_transparent(&self) -> bool {
        let same = self.advertised_shift == self.receiver_shift && self.believed_shift == self.sender_shift;
        same && self.advertised_edge.0 == self.edge.0
    }
}

/// Why a record cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordError {
    /// Wrong length.
    Length(usize),
    /// Written by another version.
    Version(u8),
    /// Wrong checksum: torn, or not a record.
    Check,
    /// Contains an impossible value.
    Value(&'static str),
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length(n) => write!(f, "a record has {RECORD} bytes, not {n}"),
            Self::Version(v) => write!(f, "record of version {v}; this gateway reads version {VERSION}"),
            Self::Check => write!(f, "the record's check does not hold"),
            Self::Value(what) => write!(f, "the record's {what} is impossible"),
        }
    }
}

impl core::error::Error for RecordError {}

/// A connection: addresses and ports with the LAN host first, and its state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Addresses.
    pub addrs: [Addr; 2],
    /// Ports.
    pub ports: [u16; 2],
    /// The saved state.
    pub persist: SavedState,
}

impl Record {
    /// Returns the key, and whether the LAN host is the lower endpoint.
    pub(crate) fn key(&self) -> (Key, bool) {
        Key::between((self.addrs[0], self.ports[0]), (self.addrs[1], self.ports[1]))
    }

    /// Serialises the record. An empty slot is all zeros.
    pub fn to_bytes(&self) -> [u8; RECORD] {
        let p = &self.persist;
        let mut out = [0; RECORD];
        out[0] = VERSION;
        out[1] = u8::from(p.timestamps) | u8::from(p.sack) << 1;
        out[2..4].copy_from_slice(&p.mss.to_le_bytes());
        out[4..8].copy_from_slice(&[p.advertised_shift, p.receiver_shift, p.sender_shift, p.believed_shift]);
        let words = [
            self.addrs[0].0,
            self.addrs[1].0,
            p.una.0,
            p.next.0,
            p.edge.0,
            p.advertised_edge.0,
            p.back_una.0,
        ];
        for (place, word) in out[8..36].chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        out[36..38].copy_from_slice(&self.ports[0].to_le_bytes());
        out[38..40].copy_from_slice(&self.ports[1].to_le_bytes());
        for (place, word) in
            out[40..52].chunks_exact_mut(4).zip([p.largest, micros(p.hop_rtt), micros(p.lan_rtt)])
        {
            place.copy_from_slice(&word.to_le_bytes());
        }
        let sum = check(&out);
        out[56..].copy_from_slice(&sum.to_le_bytes());
        out
    }

    /// Parses a record; none for an empty slot.
    ///
    /// # Errors
    /// If the bytes are not what [`Record::to_bytes`] writes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Option<Self>, RecordError> {
        let bytes: &[u8; RECORD] = bytes.try_into().map_err(|_| RecordError::Length(bytes.len()))?;
        if bytes.iter().all(|b| *b == 0) {
            return Ok(None);
        }
        if word64(bytes, 56) != check(bytes) {
            return Err(RecordError::Check);
        }
        if bytes[0] != VERSION {
            return Err(RecordError::Version(bytes[0]));
        }
        let seq = |at| Seq(word32(bytes, at));
        let port = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let persist = SavedState {
            advertised_shift: bytes[4],
            receiver_shift: bytes[5],
            sender_shift: bytes[6],
            believed_shift: bytes[7],
            timestamps: bytes[1] & 1 != 0,
            sack: bytes[1] & 2 != 0,
            mss: port(2),
            una: seq(16),
            next: seq(20),
            edge: seq(24),
            advertised_edge: seq(28),
            back_una: seq(32),
            largest: word32(bytes, 40),
            hop_rtt: Duration::from_micros(u64::from(word32(bytes, 44))),
            lan_rtt: Duration::from_micros(u64::from(word32(bytes, 48))),
        };
        // RFC 7323, section 2.3: the shift is at most 14
        if bytes[4..8].iter().any(|shift| *shift > 14) {
            return Err(RecordError::Value("window scale"));
        }
        let addrs = [Addr(word32(bytes, 8)), Addr(word32(bytes, 12))];
        Ok(Some(Self { addrs, ports: [port(36), port(38)], persist }))
    }
}

fn micros(trip: Duration) -> u32 {
    u32::try_from(trip.0 / 1000).unwrap_or(u32::MAX)
}

fn word32(bytes: &[u8; RECORD], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn word64(bytes: &[u8; RECORD], at: usize) -> u64 {
    u64::from(word32(bytes, at + 4)) << 32 | u64::from(word32(bytes, at))
}

fn check(bytes: &[u8; RECORD]) -> u64 {
    (0..56).step_by(8).fold(0, |sum, at| {
        let word = word64(bytes, at);
        CHECK.hash(sum ^ word, word >> 8, 7)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(words: [u32; 7], ports: [u16; 2], shifts: [u8; 4], mss: u16, flags: [bool; 2]) -> Record {
        Record {
            addrs: [Addr(words[0]), Addr(words[1])],
            ports,
            persist: SavedState {
                advertised_shift: shifts[0] % 15,
                receiver_shift: shifts[1] % 15,
                sender_shift: shifts[2] % 15,
                believed_shift: shifts[3] % 15,
                timestamps: flags[0],
                sack: flags[1],
                mss,
                una: Seq(words[2]),
                next: Seq(words[3]),
                edge: Seq(words[4]),
                advertised_edge: Seq(words[5]),
                back_una: Seq(words[6]),
                largest: words[0] ^ words[5],
                hop_rtt: Duration::from_micros(u64::from(words[1] ^ words[4])),
                lan_rtt: Duration::from_micros(u64::from(words[2] ^ words[3])),
            },
        }
    }

    proptest! {
        #[test]
        fn a_record_survives_the_file(words: [u32; 7], ports: [u16; 2], shifts: [u8; 4], mss: u16, flags: [bool; 2]) {
            let record = record(words, ports, shifts, mss, flags);
            prop_assert_eq!(Record::from_bytes(&record.to_bytes()), Ok(Some(record)));
        }

        #[test]
        fn a_torn_record_is_not_used(words: [u32; 7], ports: [u16; 2], at in 0usize..RECORD, flip in 1u8..) {
            let mut bytes = record(words, ports, [7, 0, 9, 0], 1460, [true, false]).to_bytes();
            bytes[at] ^= flip;
            prop_assert_eq!(Record::from_bytes(&bytes), Err(RecordError::Check));
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            prop_assert!(Record::from_bytes(&bytes).is_err() || bytes == [0; RECORD]);
        }
    }

    #[test]
    fn errors_say_what() {
        assert_eq!(Record::from_bytes(&[0; RECORD]), Ok(None));
        assert_eq!(Record::from_bytes(&[0; 3]).unwrap_err().to_string(), "a record has 64 bytes, not 3");
        let mut bytes = Record::default().to_bytes();
        bytes[0] = 9;
        let sum = check(&bytes);
        bytes[56..].copy_from_slice(&sum.to_le_bytes());
        assert_eq!(Record::from_bytes(&bytes), Err(RecordError::Version(9)));
        let mut bytes = Record::default().to_bytes();
        bytes[5] = 15;
        let sum = check(&bytes);
        bytes[56..].copy_from_slice(&sum.to_le_bytes());
        assert_eq!(
            Record::from_bytes(&bytes).unwrap_err().to_string(),
            "the record's window scale is impossible"
        );
    }

    #[test]
    fn shifts_and_edges_need_translation() {
        let plain = SavedState { advertised_shift: 7, receiver_shift: 7, ..SavedState::default() };
        assert!(plain.is_transparent() && !SavedState { receiver_shift: 0, ..plain }.is_transparent());
        assert!(!SavedState { sender_shift: 2, ..plain }.is_transparent());
        // the right edge must not move left (RFC 9293, section 3.8.6)
        assert!(!SavedState { advertised_edge: Seq(1), ..plain }.is_transparent());
    }
}
