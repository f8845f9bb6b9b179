//! An address as a fixed-length record in a file that outlives the process: when a gateway restarts and
//! resumes its flows, each number must denote the same address as before.
//!
//! ```text
//! 0 version (1)   1 family (4, 6)   2..4 zero   4..20 address, the rest zero   20..24 FNV-1a over 0..20
//! ```
//! A record of zeros is empty.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Bytes of a record.
pub const RECORD: usize = 24;

const VERSION: u8 = 1;

/// A record that was partly written, or by another version.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Damaged;

/// FNV-1a (draft-eastlake-fnv), 32 bits.
fn digest(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

pub(crate) fn write(address: Option<IpAddr>) -> [u8; RECORD] {
    let mut record = [0; RECORD];
    let Some(address) = address else { return record };
    record[0] = VERSION;
    match address {
        IpAddr::V4(v4) => {
            record[1] = 4;
            record[4..8].copy_from_slice(&v4.octets());
        }
        IpAddr::V6(v6) => {
            record[1] = 6;
            record[4..20].copy_from_slice(&v6.octets());
        }
    }
    let sum = digest(&record[..20]);
    record[20..].copy_from_slice(&sum.to_le_bytes());
    record
}

/// The address in a record; `None` if the record is empty.
pub(crate) fn read(record: &[u8; RECORD]) -> Result<Option<IpAddr>, Damaged> {
    if record.iter().all(|byte| *byte == 0) {
        return Ok(None);
    }
    let (body, sum) = record.split_at(20);
    if sum != digest(body).to_le_bytes() || record[0] != VERSION {
        return Err(Damaged);
    }
    let (short, long) = (body[4..].first_chunk::<4>(), body[4..].first_chunk::<16>());
    match (record[1], short, long) {
        (4, Some(v4), _) => Ok(Some(Ipv4Addr::from(*v4).into())),
        (6, _, Some(v6)) => Ok(Some(Ipv6Addr::from(*v6).into())),
        _ => Err(Damaged),
    }
}
