//! A journal: every input of a run with its time, so that the run can be replayed under simulated time.
//!
//! The file is a line of JSON that describes the run, then records: a byte for the kind, the time in
//! nanoseconds since the start, a length, and as many bytes. Numbers are little-endian. The last record holds
//! a digest of the delivered packets: due time, host and bytes of every wire packet. How packets were joined
//! for the kernel, and how late they left, is not part of it.

use bentpipe_base::Instant;
use bentpipe_wire::offload::VnetHeader;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use zerocopy::{FromBytes as _, IntoBytes as _};

/// Value of `journal` in the first line.
const FORMAT: u32 = 1;
/// Longest first line, and longest record.
const LONGEST: usize = 16 << 20;

const PACKET: u8 = 1;
const CHANGE: u8 = 2;
const END: u8 = 3;

/// Why a journal could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// An error of the file system.
    #[error("{path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// Not a journal, another version, or damaged.
    #[error("{path}: {what}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        what: String,
    },
}

/// Description of the recorded run: enough to build the same network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Preamble {
    /// Version of the format.
    pub journal: u32,
    /// Version of bentpipe that wrote it.
    pub version: String,
    /// The scenario as TOML without defaults, including the seed.
    pub scenario: String,
    /// How much faster the scenario's timeline ran.
    pub speed: f64,
    /// Addresses of the hosts, by index among the scenario's nodes.
    pub addresses: Vec<(usize, IpAddr)>,
    /// The host that routes to other networks.
    pub gate: Option<usize>,
}

impl Preamble {
    /// For a run of `scenario`.
    pub fn new(scenario: String, speed: f64, addresses: Vec<(usize, IpAddr)>, gate: Option<usize>) -> Self {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Self { journal: FORMAT, version, scenario, speed, addresses, gate }
    }
}

/// One input.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// A super-packet arrived at a host.
    Packet {
        /// The host's index among the scenario's nodes.
        host: usize,
        /// Its virtio header.
        vnet: VnetHeader,
        /// Its bytes from the IP header on.
        bytes: Vec<u8>,
    },
    /// A user changed a link: JSON, as on the control socket.
    Change(String),
    /// The run ended; digest of the delivered packets.
    End(blake3::Hash),
}

/// A journal being written.
#[derive(Debug)]
pub struct Journal {
    file: BufWriter<File>,
}

impl Journal {
    /// Creates a journal at `path`, which must not exist.
    ///
    /// # Errors
    /// When the file exists or cannot be written.
    pub fn create(path: &Path, preamble: &Preamble) -> Result<Self, JournalError> {
        let io = |error| JournalError::Io { path: path.to_owned(), error };
        let mut file = BufWriter::with_capacity(1 << 20, File::create_new(path).map_err(io)?);
        let line = serde_json::to_string(preamble).map_err(|e| io(e.into()))?;
        file.write_all(line.as_bytes()).and_then(|()| file.write_all(b"\n")).map_err(io)?;
        Ok(Self { file })
    }

    /// Writes that a super-packet arrived at `host` at `at`.
    pub(crate) fn packet(
        &mut self,
        at: Instant,
        host: usize,
        vnet: &VnetHeader,
        bytes: &[u8],
    ) -> io::Result<()> {
        let host = u32::try_from(host).unwrap_or(u32::MAX);
        self.begin(PACKET, at, 4 + size_of::<VnetHeader>() + bytes.len())?;
        self.file.write_all(&host.to_le_bytes())?;
        self.file.write_all(vnet.as_bytes())?;
        self.file.write_all(bytes)
    }

    /// Writes that a user changed a link at `at`.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn change(&mut self, at: Instant, json: &str) -> io::Result<()> {
        self.begin(CHANGE, at, json.len())?;
        self.file.write_all(json.as_bytes())
    }

    pub(crate) fn finish(mut self, now: Instant, digest: blake3::Hash) -> io::Result<()> {
        self.begin(END, now, digest.as_bytes().len())?;
        self.file.write_all(digest.as_bytes())?;
        self.file.flush()
    }

    fn begin(&mut self, kind: u8, at: Instant, len: usize) -> io::Result<()> {
        self.file.write_all(&[kind])?;
        self.file.write_all(&at.0.to_le_bytes())?;
        self.file.write_all(&u32::try_from(len).unwrap_or(u32::MAX).to_le_bytes())
    }
}

/// A journal being read.
#[derive(Debug)]
pub struct Reader {
    path: PathBuf,
    file: BufReader<File>,
    last: Instant,
    /// Bytes read, for errors.
    place: u64,
    ended: bool,
}

impl Reader {
    /// Opens the journal at `path`.
    ///
    /// # Errors
    /// When it cannot be read, or is not a journal of this version.
    pub fn open(path: &Path) -> Result<(Self, Preamble), JournalError> {
        let io = |error| JournalError::Io { path: path.to_owned(), error };
        let damaged = |what| JournalError::Damaged { path: path.to_owned(), what };
        let mut file = BufReader::new(File::open(path).map_err(io)?);
        let mut line = Vec::new();
        (&mut file).take(LONGEST as u64).read_until(b'\n', &mut line).map_err(io)?;
        let preamble: Preamble = serde_json::from_slice(&line).map_err(|_| {
            damaged("not a journal: its first line is not what `--journal` writes".to_owned())
        })?;
        if preamble.journal != FORMAT {
            let what = format!("journal format {}, this version reads {FORMAT}", preamble.journal);
            return Err(damaged(what));
        }
        let place = line.len() as u64;
        Ok((Self { path: path.to_owned(), file, last: Instant::ZERO, place, ended: false }, preamble))
    }

    /// Returns the next input; `None` at the end. The journal of a killed run ends without [`Entry::End`].
    ///
    /// # Errors
    /// When the file cannot be read or is damaged.
    pub fn next_entry(&mut self) -> Result<Option<(Instant, Entry)>, JournalError> {
        let mut head = [0; 13];
        if self.ended || !self.fill(&mut head)? {
            return Ok(None);
        }
        let kind = head[0];
        let at = Instant(u64::from_le_bytes(core::array::from_fn(|i| head[1 + i])));
        let len = u32::from_le_bytes(core::array::from_fn(|i| head[9 + i])) as usize;
        if len > LONGEST || at < self.last || at == Instant::NEVER {
            return Err(self.damaged("a record's length or time makes no sense"));
        }
        self.last = at;
        let mut bytes = vec![0; len];
        if !self.fill(&mut bytes)? {
            return Ok(None);
        }
        self.place += 13 + len as u64;
        let entry = self.entry(kind, bytes)?;
        self.ended = matches!(entry, Entry::End(_));
        Ok(Some((at, entry)))
    }

    fn entry(&self, kind: u8, bytes: Vec<u8>) -> Result<Entry, JournalError> {
        match kind {
            PACKET => {
                let (host, rest) =
                    bytes.split_first_chunk::<4>().ok_or_else(|| self.damaged("a packet without a host"))?;
                let (vnet, rest) = VnetHeader::read_from_prefix(rest)
                    .map_err(|_| self.damaged("a packet without a header"))?;
                let host = u32::from_le_bytes(*host) as usize;
                Ok(Entry::Packet { host, vnet, bytes: rest.to_vec() })
            }
            CHANGE => {
                String::from_utf8(bytes).map(Entry::Change).map_err(|_| self.damaged("a change is not text"))
            }
            END => <[u8; 32]>::try_from(bytes)
                .map(|digest| Entry::End(digest.into()))
                .map_err(|_| self.damaged("the digest has the wrong length")),
            other => Err(self.damaged(&format!("a record of unknown kind {other}"))),
        }
    }

    /// Fills `bytes`; false if the file ends before.
    fn fill(&mut self, bytes: &mut [u8]) -> Result<bool, JournalError> {
        match self.file.read_exact(bytes) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(JournalError::Io { path: self.path.clone(), error }),
        }
    }

    fn damaged(&self, what: &str) -> JournalError {
        JournalError::Damaged { path: self.path.clone(), what: format!("{what} (at byte {})", self.place) }
    }
}
