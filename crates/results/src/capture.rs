//! Records packets at chosen directions of links, one pcapng file each: before the queue, after the link, and those it dropped.

use crate::Error;
use crate::file::{Draft, make_folder};
use crate::packet;
use crate::pcapng::Writer;
use bentpipe_base::trace::{Event, Mask, Sink};
use bentpipe_base::{Instant, NodeId, Packet};
use bentpipe_scenario::{CaptureSpec, Scenario};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Writes the captures of a scenario while it runs. A fault of the disk ends the recording and is told by [`CaptureSink::finish`].
#[derive(Debug, Default)]
pub struct CaptureSink {
    open: Vec<Open>,
    /// Scratch: a payload, a packet.
    payload: Vec<u8>,
    bytes: Vec<u8>,
    last: Instant,
}

/// One file that is complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    /// Name of the direction.
    pub link: String,
    /// The file.
    pub path: PathBuf,
    /// Packets in it; one that was seen before the queue and after the link counts twice.
    pub packets: u64,
    /// Packets that were seen after the file had reached its limit.
    pub missing: u64,
}

#[derive(Debug)]
struct Open {
    spec: CaptureSpec,
    node: NodeId,
    link: String,
    path: PathBuf,
    /// None after a fault.
    writer: Option<Writer<Draft>>,
    fault: Option<io::Error>,
}

impl CaptureSink {
    /// Begins the files of `scenario`'s captures in `dir`, which is made if it is not there. `links` are the nodes of the network
    /// that was built, forward and backward of each link in turn, with their names.
    ///
    /// # Errors
    /// When a file cannot be made.
    pub fn create(dir: &Path, scenario: &Scenario, links: &[(String, NodeId)]) -> Result<Self, Error> {
        make_folder(dir)?;
        let mut this = Self::default();
        for spec in &scenario.captures {
            let Some((link, node)) = links.get(spec.at.index()) else { continue };
            let draft = Draft::new(dir, &file_name(link, spec.at.index(), links))?;
            let path = draft.path().to_owned();
            let interfaces = ["in", "out", "dropped"].map(|point| format!("{link} {point}"));
            let snap = u32::try_from(spec.snap.0).unwrap_or(u32::MAX);
            let writer = Writer::new(draft, &interfaces, snap, spec.limit.0)
                .map_err(|cause| Error::io(&path, "write", cause))?;
            this.open.push(Open {
                spec: *spec,
                node: *node,
                link: link.clone(),
                path,
                writer: Some(writer),
                fault: None,
            });
        }
        Ok(this)
    }

    /// Completes the files.
    ///
    /// # Errors
    /// The first fault there was, now or during the run; the files with a fault are not left behind.
    pub fn finish(&mut self) -> Result<Vec<Captured>, Error> {
        let end = self.last.0;
        self.open.drain(..).map(|open| open.finish(end)).collect()
    }
}

impl Open {
    fn finish(self, end: u64) -> Result<Captured, Error> {
        let fault = |cause| Error::io(&self.path, "write", cause);
        if let Some(cause) = self.fault {
            return Err(fault(cause));
        }
        let Some(writer) = self.writer else { return Err(fault(io::ErrorKind::WriteZero.into())) };
        let packets = writer.packets();
        let (mut draft, missing) = writer.finish(end).map_err(fault)?;
        draft.flush().map_err(fault)?;
        Ok(Captured { link: self.link, path: draft.keep()?, packets, missing })
    }
}

impl Sink for CaptureSink {
    fn mask(&self) -> Mask {
        if self.open.is_empty() { Mask::default() } else { Mask::PACKETS }
    }

    fn event(&mut self, now: Instant, node: NodeId, event: &Event<'_>) {
        let (point, packet, comment): (_, &Packet, _) = match *event {
            Event::Sent(packet) => (0, packet, None),
            Event::Delivered(packet) => (1, packet, None),
            Event::Dropped(packet, cause) => (2, packet, Some(cause.key())),
            _ => return,
        };
        self.last = self.last.max(now);
        let wanted = |o: &&mut Open| o.node == node && o.spec.from <= now && now < o.spec.to;
        for open in self.open.iter_mut().filter(wanted) {
            let Some(writer) = &mut open.writer else { continue };
            let written = packet::bytes(packet, &mut self.payload, &mut self.bytes)
                .and_then(|()| writer.packet(point, now.0, &self.bytes, comment));
            if let Err(fault) = written {
                open.writer = None;
                open.fault = Some(fault);
            }
        }
    }
}

/// `NAME.pcapng`, with a number where two names would become one.
fn file_name(link: &str, index: usize, links: &[(String, NodeId)]) -> String {
    let stem = safe(link);
    let unique = links.iter().filter(|(other, _)| safe(other) == stem).count() == 1;
    if unique { format!("{stem}.pcapng") } else { format!("{stem}-{index}.pcapng") }
}

/// A name that every file system takes.
pub(crate) fn safe(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '-' };
    let safe: String = name.chars().map(plain).collect();
    let safe = safe.trim_matches('-').chars().take(80).collect::<String>();
    if safe.is_empty() { "unnamed".to_owned() } else { safe }
}
