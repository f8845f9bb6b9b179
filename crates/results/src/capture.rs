//! Records packets at chosen directions of links: before the queue, after the link, and those it dropped.
//! Each place has a pcapng file of its own: a program that looks for retransmissions takes a packet that it
//! sees twice for one, whatever interfaces a file names.

use crate::Error;
use crate::file::{Draft, make_folder};
use crate::packet;
use crate::pcapng::Writer;
use bentpipe_base::trace::{Event, Mask, Sink};
use bentpipe_base::{Instant, NodeId, Packet};
use bentpipe_scenario::{CaptureSpec, Scenario};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Where packets are seen.
const POINTS: [&str; 3] = ["in", "out", "dropped"];

/// Files of captures in the making, of whatever driver. A fault of the disk ends one and is told by
/// [`CaptureFiles::finish`].
#[derive(Debug, Default)]
pub struct CaptureFiles {
    /// Those of each capture in turn, in the order of `POINTS`.
    open: Vec<Open>,
    /// Time up to which the run has come.
    last: u64,
}

/// A packet as it was seen.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// 0 before the queue, 1 after the link, 2 where it was dropped.
    pub point: usize,
    /// Nanoseconds since the start of the run.
    pub time: u64,
    /// Its bytes, or as many of them as are kept.
    pub bytes: &'a [u8],
    /// Its length on the wire.
    pub original: usize,
    /// Why it was dropped.
    pub comment: Option<&'a str>,
}

/// One file that is complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    /// Name of the direction.
    pub link: String,
    /// Where on it: `in`, `out` or `dropped`.
    pub point: &'static str,
    /// The file.
    pub path: PathBuf,
    /// Packets in it.
    pub packets: u64,
    /// Packets that were seen after the file had reached its limit.
    pub missing: u64,
    /// Packets of a live run that came faster than they could be written.
    pub lost: u64,
}

#[derive(Debug)]
struct Open {
    link: String,
    point: &'static str,
    path: PathBuf,
    /// None after a fault.
    writer: Option<Writer<Draft>>,
    fault: Option<io::Error>,
    lost: u64,
}

impl CaptureFiles {
    /// Begins the files of `specs` in `dir`, which is made if it is not there. `links` are the names of all
    /// directions, forward and backward of each link in turn; `epoch` is the time of the start in nanoseconds
    /// since 1970, or 0.
    ///
    /// # Errors
    /// When a file cannot be made.
    pub fn create(dir: &Path, specs: &[CaptureSpec], links: &[&str], epoch: u64) -> Result<Self, Error> {
        make_folder(dir)?;
        let mut this = Self::default();
        for spec in specs {
            let link = *links.get(spec.at.index()).unwrap_or(&"unknown");
            let stem = file_stem(link, spec.at.index(), links);
            for point in POINTS {
                let draft = Draft::new(dir, &format!("{stem}.{point}.pcapng"))?;
                let path = draft.path().to_owned();
                let interface = [format!("{link} {point}")];
                let snap = u32::try_from(spec.snap.0).unwrap_or(u32::MAX);
                let writer = Writer::new(draft, &interface, snap, spec.limit.0, epoch)
                    .map_err(|cause| Error::io(&path, "write", cause))?;
                let (link, writer) = (link.to_owned(), Some(writer));
                this.open.push(Open { link, point, path, writer, fault: None, lost: 0 });
            }
        }
        Ok(this)
    }

    /// The run has come to `time` nanoseconds after its start, whether or not there was a packet to record.
    pub fn until(&mut self, time: u64) {
        self.last = self.last.max(time);
    }

    /// Adds a packet to a capture, by its place among them.
    pub fn add(&mut self, capture: usize, seen: &Seen<'_>) {
        let Some(open) = self.open.get_mut(capture * POINTS.len() + seen.point) else { return };
        let Some(writer) = &mut open.writer else { return };
        if let Err(fault) = writer.packet(0, seen.time, (seen.bytes, seen.original), seen.comment) {
            open.fail(fault);
        }
    }

    /// `packets` seen at a point of a capture were lost on the way to its file.
    pub fn lost(&mut self, capture: usize, point: usize, packets: u64) {
        let Some(open) = self.open.get_mut(capture * POINTS.len() + point) else { return };
        open.lost += packets;
        if let Some(writer) = &mut open.writer {
            writer.lost(0, packets);
        }
    }

    /// Completes the files.
    ///
    /// # Errors
    /// The first fault there was, now or during the run; the files with a fault are not left behind.
    pub fn finish(&mut self) -> Result<Vec<Captured>, Error> {
        let end = self.last;
        self.open.drain(..).map(|open| open.finish(end)).collect()
    }
}

impl Open {
    /// The file cannot go on.
    fn fail(&mut self, fault: io::Error) {
        self.writer = None;
        self.fault = Some(fault);
    }

    fn finish(self, end: u64) -> Result<Captured, Error> {
        let fault = |cause| Error::io(&self.path, "write", cause);
        if let Some(cause) = self.fault {
            return Err(fault(cause));
        }
        let Some(writer) = self.writer else { return Err(fault(io::ErrorKind::WriteZero.into())) };
        let packets = writer.packets();
        let (mut draft, missing) = writer.finish(end).map_err(fault)?;
        draft.flush().map_err(fault)?;
        let (link, point, lost) = (self.link, self.point, self.lost);
        Ok(Captured { link, point, path: draft.keep()?, packets, missing, lost })
    }
}

/// Writes the captures of a scenario while it is simulated.
#[derive(Debug, Default)]
pub struct CaptureSink {
    files: CaptureFiles,
    wanted: Vec<(CaptureSpec, NodeId)>,
    /// Scratch: a payload, a packet.
    payload: Vec<u8>,
    bytes: Vec<u8>,
}

impl CaptureSink {
    /// Begins the files of `scenario`'s captures in `dir`, which is made if it is not there. `links` are the
    /// nodes of the network that was built, forward and backward of each link in turn, with their names.
    ///
    /// # Errors
    /// When a file cannot be made.
    pub fn create(dir: &Path, scenario: &Scenario, links: &[(String, NodeId)]) -> Result<Self, Error> {
        let names: Vec<&str> = links.iter().map(|(name, _)| name.as_str()).collect();
        let files = CaptureFiles::create(dir, &scenario.captures, &names, 0)?;
        let nobody = NodeId(u32::MAX);
        let node = |spec: &CaptureSpec| links.get(spec.at.index()).map_or(nobody, |(_, node)| *node);
        let wanted = scenario.captures.iter().map(|spec| (*spec, node(spec))).collect();
        Ok(Self { files, wanted, ..Self::default() })
    }

    /// Completes the files.
    ///
    /// # Errors
    /// The first fault there was, now or during the run; the files with a fault are not left behind.
    pub fn finish(&mut self) -> Result<Vec<Captured>, Error> {
        self.files.finish()
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
            _ => return,
        };
        self.files.until(now.0);
        for (capture, (spec, at)) in self.wanted.iter().enumerate() {
            if *at != node || now < spec.from || now >= spec.to {
                continue;
            }
            match packet::bytes(packet, &mut self.payload, &mut self.bytes) {
                Ok(()) => {
                    let (bytes, original) = (&self.bytes, self.bytes.len());
                    self.files.add(capture, &Seen { point, time: now.0, bytes, original, comment });
                }
                Err(fault) => {
                    if let Some(open) = self.files.open.get_mut(capture * POINTS.len() + point) {
                        open.fail(fault);
                    }
                }
            }
        }
    }
}

/// What the names of a direction's files begin with: `NAME`, with a number where two names would become one.
fn file_stem(link: &str, index: usize, links: &[&str]) -> String {
    let stem = safe(link);
    let unique = links.iter().filter(|other| safe(other) == stem).count() == 1;
    if unique { stem } else { format!("{stem}-{index}") }
}

/// A name that every file system takes.
pub(crate) fn safe(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '-' };
    let safe: String = name.chars().map(plain).collect();
    let safe = safe.trim_matches('-').chars().take(80).collect::<String>();
    if safe.is_empty() { "unnamed".to_owned() } else { safe }
}
