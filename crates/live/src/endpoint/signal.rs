//! Rate signalling in the real packets of the endpoint's connections.
//!
//! SCONE and Quick-Start are options of the headers: they are added after the others, and found among them.
//! A super-packet has one set of options, which was in each of its segments, so each is taken to have it.
//!
//! TIA-1039:
//! The engine has structures beside a segment's data, in [`Packet::signal`]. In a real IPv6 packet they are a
//! hop-by-hop header. In IPv4 they are the end of the payload, where nothing but the DSCP tells them from
//! data, and the path may rewrite that. On a connection that signals:
//!   arriving: what looks like a structure at the end is one. The engine drops a packet whose DSCP does not
//!     fit (`tcp/signalling.rs`); its data come again without a structure.
//!   sent: data never end like a structure: the last byte of such a segment is sent by itself.
//! So a structure is never handed to the application, and no data is taken for a structure. On all other
//! connections nothing is looked for.

use bentpipe_advice::tia1039::{QOS_SIGNAL, Structure, at_end};
use bentpipe_base::{Flags, IpVersion, Packet, Signal};
use bentpipe_driver::{signal_at_end, signal_header, signal_in_options};
use bentpipe_tcp::{Connection, Encoding, State};
use bentpipe_wire::{
    AddressPair, Layout, Segment, WireError, add_hop_by_hop, add_ipv4_options, add_tcp_options,
};

/// A packet from the wire, or a wire packet of a super-packet.
#[derive(Clone, Debug)]
pub(super) struct Received<'a> {
    /// All bytes of the packet.
    pub(super) bytes: &'a [u8],
    pub(super) segment: Segment<'a>,
    /// Its signalling, which is not part of the segment's payload.
    pub(super) signal: Option<Signal>,
}

impl<'a> Received<'a> {
    pub(super) const fn new(bytes: &'a [u8], segment: Segment<'a>) -> Self {
        Self { bytes, segment, signal: None }
    }

    /// Finds the signalling, if it belongs to a connection that signals or may agree to do so.
    pub(super) fn of_connection(self, conn: &Connection) -> Self {
        let signals = match conn.state() {
            State::SynSent => conn.config().signalling.as_ref().map(|signalling| signalling.ask.encoding),
            _ => conn.agreed().signalling,
        };
        match signals {
            Some(Encoding::Tia1039) => self.with_signal(),
            Some(Encoding::SconeTcp | Encoding::QuickStart) => self.with_options(),
            None => self,
        }
    }

    /// Finds the signalling of a packet without a connection: a SYN. It has structures if its DSCP says so.
    pub(super) fn of_listener(self) -> Self {
        let opens = self.segment.tcp.flags.has(Flags::SYN);
        let read = if opens && self.segment.dscp == QOS_SIGNAL { self.with_signal() } else { self };
        if opens && read.signal.is_none() { read.with_options() } else { read }
    }

    fn with_options(mut self) -> Self {
        let layout = Layout::of(self.bytes).ok();
        self.signal =
            layout.and_then(|layout| signal_in_options(self.bytes, &layout, self.segment.tcp.flags));
        self
    }

    const fn is_v4(&self) -> bool {
        matches!(self.segment.ends, AddressPair::V4 { .. })
    }

    fn with_signal(mut self) -> Self {
        if !self.is_v4() {
            self.signal = signal_header(self.bytes);
            return self;
        }
        let payload = self.segment.payload;
        if at_end(self.segment.tcp.flags, payload) == 0 {
            return self;
        }
        let options = Layout::of(self.bytes).ok().and_then(|layout| self.bytes.get(layout.options));
        self.signal = signal_at_end(self.segment.tcp.flags, options.unwrap_or_default(), payload);
        let end = payload.len() - self.signal.map_or(0, |signal| usize::from(signal.len()));
        self.segment.payload = &payload[..end];
        self
    }
}

/// True if the end of this payload, in two parts, looks like a structure.
pub(super) fn looks_signalled(first: &[u8], second: &[u8]) -> bool {
    let len = first.len() + second.len();
    let Some(start) = len.checked_sub(Structure::LEN) else { return false };
    let mut last = [0; Structure::LEN];
    let bytes = first.iter().chain(second).skip(start);
    last.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    at_end(Flags::ACK, &last) > 0
}

/// Signalling that follows the payload.
pub(super) fn end_of(packet: &Packet) -> &[u8] {
    bytes_in(packet, IpVersion::V4)
}

/// Adds the signalling of a packet that is in its headers to its bytes.
pub(super) fn add_to_headers(packet: &Packet, bytes: &mut Vec<u8>) -> Result<(), WireError> {
    let Some(signal) = packet.signal.as_deref() else { return Ok(()) };
    if !signal.tcp_options().is_empty() {
        add_tcp_options(signal.tcp_options(), bytes)?;
    }
    let header = bytes_in(packet, IpVersion::V6);
    let options = if header.is_empty() { signal.ip_options() } else { header };
    match packet.ip {
        _ if options.is_empty() => Ok(()),
        IpVersion::V4 => add_ipv4_options(options, bytes),
        IpVersion::V6 => add_hop_by_hop(options, bytes),
    }
}

fn bytes_in(packet: &Packet, ip: IpVersion) -> &[u8] {
    packet.signal.as_deref().filter(|_| packet.ip == ip).map_or(&[], Signal::bytes)
}
