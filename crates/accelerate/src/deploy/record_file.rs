//! The file with the records of connections and of their addresses, which outlives the gateway. It is
//! memory-mapped and is in the run folder.
//!
//! ```text
//! 0      "bentflow"   8 version   12 addresses   16 flows   24 boot ID   40 network namespace
//! 48     FNV-1a over 0..48
//! 56     last heartbeat, nanoseconds of CLOCK_MONOTONIC   64 the same inverted
//! 4096   addresses, 24 bytes each, indexed by address number
//! then   connections, 64 bytes each, indexed by table slot
//! ```
//! It holds only numbers, no pointers, and a torn record fails its checksum. A kill can happen between any
//! two writes. Therefore a record whose slot is about to hold another connection is cleared before an address
//! number is reused, and a connection is written after its addresses.
//!
//! Records of another boot, another network namespace, or a gateway that has been gone for longer than
//! [`TOO_LONG`] are not used: by then the same ports may belong to other connections, whose windows would be
//! misread. Connections without a record pass unaccelerated, as they did while no gateway was running.

use bentpipe_base::{ADDRESS_RECORD as ADDRESS, Addresses};
use bentpipe_base::{Duration, Instant};
use bentpipe_gateway::{Gateway, RECORD as FLOW, Record};
use bentpipe_os::MappedFile;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

const MAGIC: &[u8; 8] = b"bentflow";
const VERSION: u32 = 1;
/// Bytes before the heartbeat; the last eight are the checksum.
const HEAD: usize = 56;
/// Offset of the addresses: the header, which changes every second, has its own page.
const BODY: usize = 4096;
/// Maximum number of slots that a file may claim, more than any limit allows.
const MOST: u32 = 1 << 26;
/// The connections of a gateway that was gone for longer are not resumed. A port may be reused after a minute
/// or more (TIME-WAIT, RFC 9293, section 3.6.1).
const TOO_LONG: Duration = Duration::from_secs(300);
const BEAT: Duration = Duration::from_secs(1);
/// Addresses written per turn of the data thread; each takes some tens of nanoseconds.
const TURN: usize = 1024;

/// Path of the records, with the boot and network namespace that they belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordFile {
    pub(super) path: PathBuf,
    pub(super) boot: String,
    pub(super) network: u64,
}

/// Why the records of an earlier gateway are not used.
#[derive(Debug, thiserror::Error)]
pub(super) enum RecordFileError {
    #[error("it is not a file of records")]
    Foreign,
    #[error("it is of version {}, this program reads version {}", .0, VERSION)]
    Version(u32),
    #[error("it is damaged: {0}")]
    Torn(&'static str),
    #[error("the machine has been rebooted since")]
    Boot,
    #[error("it was written in another network namespace")]
    Network,
    #[error(
        "the gateway was gone for {:.0} s, more than {:.0} s: its ports may belong to other connections by now",
        .0.as_secs_f64(),
        TOO_LONG.as_secs_f64()
    )]
    Silent(Duration),
    #[error(transparent)]
    System(#[from] io::Error),
}

/// Numbers of address and connection slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SlotCounts {
    pub(super) addresses: u32,
    pub(super) flows: u32,
}

impl SlotCounts {
    const fn flows_at(self) -> usize {
        (BODY + self.addresses as usize * ADDRESS).next_multiple_of(BODY)
    }

    const fn len(self) -> usize {
        self.flows_at() + self.flows as usize * FLOW
    }
}

/// FNV-1a (draft-eastlake-fnv), 64 bits.
fn digest(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

fn head(extent: SlotCounts, place: &RecordFile) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[..8].copy_from_slice(MAGIC);
    for (at, number) in [(8, VERSION), (12, extent.addresses), (16, extent.flows)] {
        head[at..at + 4].copy_from_slice(&number.to_le_bytes());
    }
    head[24..32].copy_from_slice(&digest(place.boot.as_bytes()).to_le_bytes());
    head[40..48].copy_from_slice(&place.network.to_le_bytes());
    let sum = digest(&head[..48]);
    head[48..].copy_from_slice(&sum.to_le_bytes());
    head
}

/// Records left by an earlier gateway.
#[derive(Debug)]
pub(super) struct SavedRecords {
    addresses: Vec<u8>,
    flows: Vec<u8>,
    /// How long the earlier gateway has been gone.
    pub(super) gone: Duration,
}

impl SavedRecords {
    /// Reads the file; `None` if there is none. `now` is `CLOCK_MONOTONIC` in nanoseconds.
    pub(super) fn read(place: &RecordFile, now: u64) -> Result<Option<Self>, RecordFileError> {
        let nofollow = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        let flags = nofollow.bits().cast_signed();
        let mut file = match File::options().read(true).custom_flags(flags).open(&place.path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other?,
        };
        let found = file.metadata()?;
        if !found.is_file() || found.len() < BODY as u64 {
            return Err(RecordFileError::Foreign);
        }
        let mut first = [0; BODY];
        file.read_exact(&mut first)?;
        let (extent, gone) = check_header(&first, place, now)?;
        if found.len() != extent.len() as u64 {
            return Err(RecordFileError::Torn("its length"));
        }
        let mut part = |len: usize| {
            let mut bytes = vec![0; len];
            file.read_exact(&mut bytes).map(|()| bytes)
        };
        let mut addresses = part(extent.flows_at() - BODY)?;
        addresses.truncate(extent.addresses as usize * ADDRESS);
        Ok(Some(Self { addresses, flows: part(extent.flows as usize * FLOW)?, gone }))
    }

    /// True if `place` has records that a gateway could resume.
    pub(super) fn is_there(place: &RecordFile, now: u64) -> bool {
        let mut first = [0; BODY];
        File::open(&place.path).and_then(|mut file| file.read_exact(&mut first)).is_ok()
            && check_header(&first, place, now).is_ok()
    }

    /// Restores the addresses with their numbers. Returns the records of connections, and how many records of
    /// addresses are unusable and connections lost their addresses.
    pub(super) fn restore_addresses(mut self, addresses: &mut Addresses) -> (Vec<u8>, u32) {
        let mut damaged = addresses.restore(&self.addresses);
        for place in self.flows.chunks_exact_mut(FLOW) {
            let Ok(Some(record)) = Record::from_bytes(place) else { continue };
            // its address number could be assigned to a different address later
            if record.addrs.iter().any(|addr| addresses.address(*addr).is_none()) {
                place.fill(0);
                damaged += 1;
            }
        }
        (self.flows, damaged)
    }
}

/// Checks whether a file with this first page can be used.
fn check_header(
    first: &[u8; BODY],
    place: &RecordFile,
    now: u64,
) -> Result<(SlotCounts, Duration), RecordFileError> {
    let word = |at: usize| u32::from_le_bytes([first[at], first[at + 1], first[at + 2], first[at + 3]]);
    let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
    if &first[..8] != MAGIC {
        return Err(RecordFileError::Foreign);
    }
    if word(8) != VERSION {
        return Err(RecordFileError::Version(word(8)));
    }
    if long(48) != digest(&first[..48]) {
        return Err(RecordFileError::Torn("its head"));
    }
    let extent = SlotCounts { addresses: word(12), flows: word(16) };
    if extent.addresses > MOST || extent.flows > MOST {
        return Err(RecordFileError::Torn("its sizes"));
    }
    if long(24) != digest(place.boot.as_bytes()) {
        return Err(RecordFileError::Boot);
    }
    if long(40) != place.network {
        return Err(RecordFileError::Network);
    }
    // torn while writing a heartbeat: the gateway was alive then
    let gone = if long(64) == !long(56) { now.saturating_sub(long(56)) } else { 0 };
    if gone > TOO_LONG.0 {
        return Err(RecordFileError::Silent(Duration(gone)));
    }
    Ok((extent, Duration(gone)))
}

#[derive(Debug)]
pub(super) struct RecordFileWriter {
    map: MappedFile,
    place: RecordFile,
    extent: SlotCounts,
    /// Temporary path until all records of an earlier gateway are in the file.
    draft: Option<PathBuf>,
    /// Changed records that are not written yet, because addresses are written first.
    changed: Vec<(u32, [u8; FLOW])>,
    next_beat: Instant,
}

impl RecordFileWriter {
    /// Creates a new file beside the one at `place`, which replaces it when it is complete.
    pub(super) fn create(place: &RecordFile, extent: SlotCounts) -> io::Result<Self> {
        let draft = place.path.with_extension("flows-draft");
        let map = MappedFile::create(&draft, extent.len())?;
        let (place, draft) = (place.clone(), Some(draft));
        let mut keeper = Self { map, place, extent, draft, changed: Vec::new(), next_beat: Instant::ZERO };
        keeper.map.write(0, &head(extent, &keeper.place))?;
        Ok(keeper)
    }

    /// Writes changes; returns true if there is more to write.
    pub(super) fn write(&mut self, gateway: &mut Gateway, addresses: &mut Addresses) -> io::Result<bool> {
        while let Some((id, record)) = gateway.take_changed() {
            if self.is_of_another(id, &record)? {
                self.put_flow(id, &[0; FLOW])?;
            }
            self.changed.push((id, record));
        }
        for _ in 0..TURN {
            let Some((number, record)) = addresses.take_changed() else {
                for i in 0..self.changed.len() {
                    let (id, record) = self.changed[i];
                    self.put_flow(id, &record)?;
                }
                self.changed.clear();
                if let Some(draft) = &self.draft {
                    fs::rename(draft, &self.place.path)?;
                    self.draft = None;
                }
                return Ok(false);
            };
            if number < self.extent.addresses {
                self.map.write(BODY + number as usize * ADDRESS, &record)?;
            }
        }
        Ok(true)
    }

    /// True if slot `id` holds a connection between other addresses or ports than `record` has.
    fn is_of_another(&self, id: u32, record: &[u8; FLOW]) -> io::Result<bool> {
        if id >= self.extent.flows {
            return Ok(false);
        }
        let mut there = [0; FLOW];
        self.map.read(self.flow_at(id), &mut there)?;
        let names = |bytes: &[u8]| Record::from_bytes(bytes).ok().flatten().map(|r| (r.addrs, r.ports));
        Ok(there != [0; FLOW] && names(&there) != names(record))
    }

    const fn flow_at(&self, id: u32) -> usize {
        self.extent.flows_at() + id as usize * FLOW
    }

    fn put_flow(&mut self, id: u32, record: &[u8; FLOW]) -> io::Result<()> {
        // a slot beyond the file's size has no record
        if id < self.extent.flows { self.map.write(self.flow_at(id), record) } else { Ok(()) }
    }

    /// Writes a heartbeat if it is due; only then is the kernel's clock `monotonic` read.
    pub(super) fn heartbeat(&mut self, now: Instant, monotonic: impl FnOnce() -> u64) -> io::Result<()> {
        if now < self.next_beat {
            return Ok(());
        }
        self.next_beat = now + BEAT;
        let now = monotonic();
        self.map.write(HEAD, [now.to_le_bytes(), (!now).to_le_bytes()].as_flattened())
    }

    pub(super) fn grow(&mut self, flows: u32) -> io::Result<()> {
        if flows > self.extent.flows {
            let extent = SlotCounts { flows, ..self.extent };
            self.map.grow(extent.len())?;
            // a kill before the header is written leaves a file of the wrong length, which is not used
            self.map.write(0, &head(extent, &self.place))?;
            self.extent = extent;
        }
        Ok(())
    }

    /// Removes the file because it is incomplete.
    pub(super) fn give_up(&mut self) {
        let _ = fs::remove_file(self.draft.as_ref().unwrap_or(&self.place.path));
    }
}

impl Drop for RecordFileWriter {
    fn drop(&mut self) {
        if let Some(draft) = &self.draft {
            let _ = fs::remove_file(draft);
        }
    }
}
