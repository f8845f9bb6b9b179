//! Records packets on link directions: before the queue, after the link, and dropped ones. Each point has a
//! pcapng file of its own, because analysers take a packet that they see twice for a retransmission, even
//! on different interfaces.

use crate::Error;
use crate::file::{TemporaryFile, make_folder};
use crate::packet;
use crate::pcapng::Writer;
use bentpipe_base::trace::{Event, Mask, Sink};
use bentpipe_base::{Instant, NodeId, Packet};
use bentpipe_scenario::{CaptureSpec, Scenario};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Points at which packets are recorded.
const POINTS: [&str; 3] = ["in", "out", "dropped"];

/// Open capture files of any driver. An I/O error ends a file and is returned by [`CaptureFiles::finish`].
#[derive(Debug, Default)]
pub struct CaptureFiles {
    /// Files of each capture in turn, in the order of `POINTS`.
    open: Vec<OpenCapture>,
    /// Latest time of the run, in nanoseconds since its start.
    last: u64,
}

/// A packet to record.
#[derive(Clone, Copy, Debug)]
pub struct CapturedPacket<'a> {
    /// Point: 0 before the queue, 1 after the link, 2 dropped.
    pub point: usize,
    /// Time in nanoseconds since the start of the run.
    pub time: u64,
    /// Its bytes, or those that are kept.
    pub bytes: &'a [u8],
    /// Length on the wire.
    pub wire_len: usize,
    /// Cause of a drop.
    pub comment: Option<&'a str>,
}

/// A complete capture file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishedCapture {
    /// Name of the link direction.
    pub link: String,
    /// Point: `in`, `out` or `dropped`.
    pub point: &'static str,
    /// Path of the file.
    pub path: PathBuf,
    /// Number of packets in the file.
    pub packets: u64,
    /// Number of packets after the file reached its size limit.
    pub missing: u64,
    /// Number of packets of a live run that arrived faster than they could be written.
    pub lost: u64,
}

#[derive(Debug)]
struct OpenCapture {
    link: String,
    point: &'static str,
    path: PathBuf,
    /// Instead of the writer, the error that ended the file.
    writer: io::Result<Writer<TemporaryFile>>,
}

impl CaptureFiles {
    /// Creates the files of `specs` in `dir`, and `dir` if necessary. `links` are the names of all
    /// directions, forward and backward of each link in turn. `epoch` is the start time in nanoseconds
    /// since 1970, or 0.
    ///
    /// # Errors
    /// A file cannot be created.
    pub fn create(dir: &Path, specs: &[CaptureSpec], links: &[&str], epoch: u64) -> Result<Self, Error> {
        make_folder(dir)?;
        let mut this = Self::default();
        for spec in specs {
            let link = *links.get(spec.link.index()).unwrap_or(&"unknown");
            let stem = file_stem(link, spec.link.index(), links);
            for point in POINTS {
                let draft = TemporaryFile::new(dir, &format!("{stem}.{point}.pcapng"))?;
                let path = draft.path().to_owned();
                let interface = format!("{link} {point}");
                let snap = u32::try_from(spec.snap.0).unwrap_or(u32::MAX);
                let writer = Writer::new(draft, &interface, snap, spec.limit.0, epoch)
                    .map_err(|cause| Error::io(&path, "write", cause))?;
                this.open.push(OpenCapture { link: link.to_owned(), point, path, writer: Ok(writer) });
            }
        }
        Ok(this)
    }

    /// Sets the latest time of the run to `time` nanoseconds after its start, also without packets.
    pub fn extend_to(&mut self, time: u64) {
        self.last = self.last.max(time);
    }

    fn writer(&mut self, capture: usize, point: usize) -> Option<&mut io::Result<Writer<TemporaryFile>>> {
        self.open.get_mut(capture * POINTS.len() + point).map(|open| &mut open.writer)
    }

    /// Adds a packet to the capture with index `capture`.
    pub fn add(&mut self, capture: usize, seen: &CapturedPacket<'_>) {
        if let Some(open) = self.writer(capture, seen.point)
            && let Ok(writer) = open
            && let Err(fault) = writer.packet(seen)
        {
            *open = Err(fault);
        }
    }

    /// Counts `packets` of a point that were lost before they reached the file.
    pub fn count_lost(&mut self, capture: usize, point: usize, packets: u64) {
        if let Some(Ok(writer)) = self.writer(capture, point) {
            writer.lost += packets;
        }
    }

    /// Completes the files.
    ///
    /// # Errors
    /// The first error, also of earlier writes. Files with errors are removed.
    pub fn finish(&mut self) -> Result<Vec<FinishedCapture>, Error> {
        let end = self.last;
        self.open.drain(..).map(|open| open.finish(end)).collect()
    }
}

impl OpenCapture {
    fn finish(self, end: u64) -> Result<FinishedCapture, Error> {
        let fault = |cause| Error::io(&self.path, "write", cause);
        let writer = self.writer.map_err(fault)?;
        let lost = writer.lost;
        let (draft, packets, missing) = writer.finish(end).map_err(fault)?;
        let (link, point) = (self.link, self.point);
        Ok(FinishedCapture { link, point, path: draft.commit()?, packets, missing, lost })
    }
}

/// Writes the captures of a simulated scenario.
#[derive(Debug, Default)]
pub(crate) struct CaptureSink {
    pub(crate) files: CaptureFiles,
    wanted: Vec<(CaptureSpec, NodeId)>,
    /// Scratch space for a payload and a packet.
    payload: Vec<u8>,
    bytes: Vec<u8>,
}

impl CaptureSink {
    /// Creates the files of `scenario`'s captures in `dir`, and `dir` if necessary. `links` are names and
    /// nodes of the links, forward and backward of each in turn.
    pub(crate) fn create(
        dir: &Path,
        scenario: &Scenario,
        links: &[(Arc<str>, NodeId)],
    ) -> Result<Self, Error> {
        let names: Vec<&str> = links.iter().map(|(name, _)| &**name).collect();
        let files = CaptureFiles::create(dir, &scenario.captures, &names, 0)?;
        let nobody = NodeId(u32::MAX);
        let node = |spec: &CaptureSpec| links.get(spec.link.index()).map_or(nobody, |(_, node)| *node);
        let wanted = scenario.captures.iter().map(|spec| (*spec, node(spec))).collect();
        Ok(Self { files, wanted, ..Self::default() })
    }
}

impl Sink for CaptureSink {
    fn mask(&self) -> Mask {
        if self.wanted.is_empty() { Mask::default() } else { Mask::PACKETS }
    }

    fn event(&mut self, now: Instant, node: NodeId, event: &Event<'_>) {
        let (point, packet, comment): (_, &Packet, _) = match *event {
            Event::Sent(packet) => (0, packet, None),
            Event::Delivered(packet) => (1, packet, None),
            Event::Dropped(packet, cause) => (2, packet, Some(cause.key())),
            Event::RoundTrip { .. } => return,
        };
        self.files.extend_to(now.0);
        for (capture, (spec, at)) in self.wanted.iter().enumerate() {
            if *at != node || now < spec.from || now >= spec.to {
                continue;
            }
            match packet::bytes(packet, &mut self.payload, &mut self.bytes) {
                Ok(()) => {
                    let (bytes, original) = (&self.bytes, self.bytes.len());
                    self.files.add(
                        capture,
                        &CapturedPacket { point, time: now.0, bytes, wire_len: original, comment },
                    );
                }
                Err(fault) => {
                    if let Some(writer) = self.files.writer(capture, point) {
                        *writer = Err(fault);
                    }
                }
            }
        }
    }
}

/// Returns the first part of a direction's file names: its name, with a number if it is not unique.
fn file_stem(link: &str, index: usize, links: &[&str]) -> String {
    let stem = safe_file_name(link);
    let unique = links.iter().filter(|other| safe_file_name(other) == stem).count() == 1;
    if unique { stem } else { format!("{stem}-{index}") }
}

/// Replaces characters that are not allowed on all file systems.
pub(crate) fn safe_file_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '-' };
    let safe: String = name.chars().map(plain).collect();
    let safe = safe.trim_matches('-').chars().take(80).collect::<String>();
    if safe.is_empty() { "unnamed".to_owned() } else { safe }
}
