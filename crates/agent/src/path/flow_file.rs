//! A file with the connections of a running agent, for the process that resets them if the agent is killed.
//!
//! Each connection has a slot of 96 bytes. The first byte is written last when a slot is filled, and first
//! when it is emptied, so a reader after the agent's death sees whole slots only.
//!
//! ```text
//! 0      1        2..18  18..20  20..36   36..38  38        39..65  65        66..92
//! state  family   host   port    remote   port    length    link    length    link     (to host, to network)
//! ```

use crate::split::{FlowKey, FlowLog, LONGEST_LINK, Link};
use bentpipe_os::MappedFile;
use core::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

const SLOT: usize = 96;
const USED: u8 = 1;
const V4: u8 = 4;
const V6: u8 = 6;

/// The file, open for writing.
#[derive(Debug)]
pub struct FlowFile {
    file: MappedFile,
    slots: BTreeMap<FlowKey, usize>,
    free: Vec<usize>,
    /// Connections that found no room; they cannot be reset if the agent is killed.
    pub lost: u64,
}

impl FlowFile {
    /// Creates the file at `path` for at most `most` connections.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn create(path: &Path, most: usize) -> io::Result<Self> {
        let file = MappedFile::create(path, most * SLOT)?;
        Ok(Self { file, slots: BTreeMap::new(), free: (0..most).rev().collect(), lost: 0 })
    }

    /// Reads the connections of an agent that has died.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read(path: &Path) -> io::Result<Vec<(FlowKey, [Link; 2])>> {
        let bytes = std::fs::read(path)?;
        Ok(bytes.chunks_exact(SLOT).filter_map(decode).collect())
    }
}

impl FlowLog for FlowFile {
    fn opened(&mut self, key: &FlowKey, links: &[Link; 2]) {
        // the same addresses and ports may be used again before the end was seen
        self.ended(key);
        let Some(slot) = self.free.pop() else {
            self.lost += 1;
            return;
        };
        let bytes = encode(key, links);
        let at = slot * SLOT;
        let written = self.file.write(at + 1, &bytes[1..]).and_then(|()| self.file.write(at, &bytes[..1]));
        if written.is_err() {
            self.lost += 1;
            self.free.push(slot);
            return;
        }
        self.slots.insert(*key, slot);
    }

    fn ended(&mut self, key: &FlowKey) {
        if let Some(slot) = self.slots.remove(key) {
            // the slot was written before, so there is room
            let _ = self.file.write(slot * SLOT, &[0]);
            self.free.push(slot);
        }
    }
}

fn encode(key: &FlowKey, links: &[Link; 2]) -> [u8; SLOT] {
    let mut slot = [0; SLOT];
    slot[0] = USED;
    slot[1] = if key.host.is_ipv4() { V4 } else { V6 };
    for (at, end) in [(2, key.host), (20, key.remote)] {
        let ip = match end.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        slot[at..at + 16].copy_from_slice(&ip.octets());
        slot[at + 16..at + 18].copy_from_slice(&end.port().to_be_bytes());
    }
    for (at, link) in [(38, &links[0]), (39 + LONGEST_LINK, &links[1])] {
        let bytes = link.bytes();
        slot[at] = bytes.len() as u8;
        slot[at + 1..=at + bytes.len()].copy_from_slice(bytes);
    }
    slot
}

fn decode(slot: &[u8]) -> Option<(FlowKey, [Link; 2])> {
    let end = |at: usize| {
        let ip = Ipv6Addr::from(*slot.get(at..at + 16)?.first_chunk::<16>()?);
        let port = u16::from_be_bytes(*slot.get(at + 16..at + 18)?.first_chunk::<2>()?);
        let ip = match (slot.get(1)?, ip.to_ipv4_mapped()) {
            (&V4, Some(ip)) => IpAddr::V4(ip),
            (&V6, _) => IpAddr::V6(ip),
            _ => return None,
        };
        Some(SocketAddr::new(ip, port))
    };
    let link = |at: usize| {
        let len = usize::from(*slot.get(at)?);
        Link::new(slot.get(at + 1..=at + len)?)
    };
    if slot.first() != Some(&USED) {
        return None;
    }
    Some((FlowKey { host: end(2)?, remote: end(20)? }, [link(38)?, link(39 + LONGEST_LINK)?]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_open_at_the_death_is_read_again() {
        let path = std::env::temp_dir().join(format!("bentpipe-agent-flows-{}", std::process::id()));
        let key = |host: &str, remote: &str| FlowKey {
            host: host.parse().unwrap(),
            remote: remote.parse().unwrap(),
        };
        let all = [
            key("10.0.0.1:4000", "192.0.2.1:80"),
            key("[fd00::1]:4000", "[2001:db8::1]:443"),
            key("10.0.0.2:5", "192.0.2.1:80"),
        ];
        let link = Link::new(&[7; 18]).unwrap();
        let mut file = FlowFile::create(&path, 3).unwrap();
        for key in &all {
            file.opened(key, &[link, link.reversed()]);
        }
        file.opened(&key("10.0.0.9:5", "192.0.2.1:80"), &[link; 2]);
        assert_eq!(file.lost, 1);
        // again without an end in between: in the same slot, of which none is left
        file.opened(&all[0], &[link; 2]);
        file.ended(&all[0]);
        assert_eq!(file.lost, 1);
        file.opened(&key("10.0.0.9:6", "192.0.2.1:80"), &[link; 2]);
        file.ended(&key("10.0.0.9:6", "192.0.2.1:80"));
        assert_eq!(file.lost, 1);
        let mut read = FlowFile::read(&path).unwrap();
        read.sort_by_key(|(key, _)| *key);
        let keys: Vec<FlowKey> = read.iter().map(|(key, _)| *key).collect();
        let mut wanted = all[1..].to_vec();
        wanted.sort();
        assert_eq!((keys, read[0].1), (wanted, [link, link.reversed()]));
        // any bytes are safe
        for fill in [0u8, 1, 4, 27, 255] {
            std::fs::write(&path, [fill; 5 * SLOT + 7]).unwrap();
            assert!(FlowFile::read(&path).unwrap().len() <= 5);
        }
        std::fs::remove_file(&path).unwrap();
    }
}
