//! Writes pcapng (draft-ietf-opsawg-pcapng-03): a section header, one interface, a block for each packet with
//! its time in nanoseconds, and at the end a statistics block.
//!
//! Bytes are little-endian. The file never exceeds its limit: recording stops at the first packet that would
//! not fit with the statistics, which then state the number of missing packets.

use crate::capture::CapturedPacket;
use std::io::{self, Write};

/// Link type "raw IP": packets begin with the IP header.
const RAW_IP: u16 = 101;
const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const STATISTICS: u32 = 5;
const PACKET: u32 = 6;

const END_OF_OPTIONS: u16 = 0;
const COMMENT: u16 = 1;
const INTERFACE_NAME: u16 = 2;
const TIME_RESOLUTION: u16 = 9;
const SECTION_APPLICATION: u16 = 4;
const RECEIVED: u16 = 4;
const DROPPED_BY_INTERFACE: u16 = 5;

/// Number of the only interface.
const FIRST_INTERFACE: u32 = 0;
/// Space reserved for the statistics, comment included.
const STATISTICS_ROOM: u64 = 256;

/// An open capture file.
#[derive(Debug)]
pub(crate) struct Writer<W: Write> {
    out: W,
    snap: u32,
    limit: u64,
    /// Start of the run in nanoseconds since 1970; 0 for simulated runs.
    epoch: u64,
    /// Length of the file in bytes.
    written: u64,
    seen: u64,
    /// Number of packets after the file reached its limit.
    missing: u64,
    /// Number of packets lost before they reached the file.
    pub(crate) lost: u64,
    /// Time of the first packet that did not fit.
    full_at: Option<u64>,
    block: Vec<u8>,
    /// The block has options, which need an end.
    has_options: bool,
}

impl<W: Write> Writer<W> {
    /// Starts a file that keeps the first `snap` bytes of each packet.
    pub(crate) fn new(out: W, interface: &str, snap: u32, limit: u64, epoch: u64) -> io::Result<Self> {
        let (written, seen, missing, lost, ended) = (0, 0, 0, 0, None);
        let (block, has_options) = (Vec::new(), false);
        let mut this = Self {
            out,
            snap,
            limit,
            epoch,
            written,
            seen,
            missing,
            lost,
            full_at: ended,
            block,
            has_options,
        };
        this.begin_block(&[0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0]); // byte-order magic, version 1.0
        this.block.extend([0xff; 8]); // section length: unspecified
        this.option(SECTION_APPLICATION, concat!("bentpipe ", env!("CARGO_PKG_VERSION")).as_bytes());
        this.finish_block(SECTION)?;
        this.begin_block(&RAW_IP.to_le_bytes());
        this.block.extend([0, 0]);
        this.block.extend(snap.to_le_bytes());
        this.option(INTERFACE_NAME, interface.as_bytes());
        this.option(TIME_RESOLUTION, &[9]);
        this.finish_block(INTERFACE)?;
        Ok(this)
    }

    /// Adds a packet.
    pub(crate) fn packet(&mut self, seen: &CapturedPacket<'_>) -> io::Result<()> {
        let &CapturedPacket { time, bytes, wire_len: original, comment, .. } = seen;
        let kept = &bytes[..bytes.len().min(self.snap as usize)];
        // 12 bytes of block, 20 of packet header, options with headers and padding
        let size = 32
            + kept.len().next_multiple_of(4) as u64
            + comment.map_or(0, |c| 8 + c.len().next_multiple_of(4) as u64);
        if self.full_at.is_none() && self.written + size + STATISTICS_ROOM > self.limit {
            self.full_at = Some(time);
        }
        self.seen += 1;
        if self.full_at.is_some() {
            self.missing += 1;
            return Ok(());
        }
        self.begin_block(&FIRST_INTERFACE.to_le_bytes());
        self.time(time);
        self.block.extend((kept.len() as u32).to_le_bytes());
        self.block.extend((original as u32).to_le_bytes());
        self.padded(kept);
        if let Some(comment) = comment {
            self.option(COMMENT, comment.as_bytes());
        }
        self.finish_block(PACKET)
    }

    /// Ends the file at `time`. Returns the writer, and the numbers of packets in the file and missing.
    pub(crate) fn finish(mut self, time: u64) -> io::Result<(W, u64, u64)> {
        self.begin_block(&FIRST_INTERFACE.to_le_bytes());
        self.time(time);
        if let Some(ended) = self.full_at {
            let text = format!(
                "recording ended {}.{:09} s after the start: the limit of {} bytes was reached",
                ended / 1_000_000_000,
                ended % 1_000_000_000,
                self.limit
            );
            self.option(COMMENT, text.as_bytes());
        }
        if self.lost > 0 {
            let text = format!("{} packets are missing: the disk was too slow for them", self.lost);
            self.option(COMMENT, text.as_bytes());
        }
        self.option(RECEIVED, &(self.seen + self.lost).to_le_bytes());
        self.option(DROPPED_BY_INTERFACE, &(self.missing + self.lost).to_le_bytes());
        self.finish_block(STATISTICS)?;
        Ok((self.out, self.seen - self.missing, self.missing))
    }

    fn begin_block(&mut self, first: &[u8]) {
        self.has_options = false;
        self.block.clear();
        self.block.extend([0; 8]); // type and length are filled in at the end
        self.block.extend(first);
    }

    fn time(&mut self, time: u64) {
        let time = self.epoch.saturating_add(time);
        self.block.extend(((time >> 32) as u32).to_le_bytes());
        self.block.extend((time as u32).to_le_bytes());
    }

    fn padded(&mut self, bytes: &[u8]) {
        self.block.extend(bytes);
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        self.has_options = true;
        let value = &value[..value.len().min(usize::from(u16::MAX))];
        self.block.extend(code.to_le_bytes());
        self.block.extend((value.len() as u16).to_le_bytes());
        self.padded(value);
    }

    fn finish_block(&mut self, kind: u32) -> io::Result<()> {
        if self.has_options {
            self.option(END_OF_OPTIONS, &[]);
        }
        let len = self.block.len() as u32 + 4;
        self.block[..4].copy_from_slice(&kind.to_le_bytes());
        self.block[4..8].copy_from_slice(&len.to_le_bytes());
        self.block.extend(len.to_le_bytes());
        self.written += u64::from(len);
        self.out.write_all(&self.block)
    }
}
