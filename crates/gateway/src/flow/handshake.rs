//! The handshake: window scaling towards a sender whose receiver has none.
//!
//! Source: TCP-SuperCharger (SC) reads 16-bit windows and must advertise larger ones; RFC 7323, section 2,
//! defines how: scaling is used if both SYNs carry the option. So the gateway adds the option to the SYN or
//! SYN/ACK that the sender receives, and removes the sender's own from the SYN/ACK to a receiver that offered
//! none. The sender's windows then arrive scaled and are translated to unscaled ones, at most 65 535; windows
//! advertised to the sender use our shift. Windows in SYNs are never scaled (RFC 7323, section 2.2). If both
//! hosts scale, the larger of the receiver's shift and ours is shown. Everything else in a SYN is unchanged.
//!
//! The shift is the smallest that allows two bandwidth-delay products, with the RTT measured in the
//! handshake, or else the configured one; without a configured rate it is 7, which hosts commonly offer. It
//! is chosen once: retransmitted SYNs get the same.

use crate::counters::PassReason;
use crate::sides::{LAN, SATELLITE};
use crate::table::persist::SavedState;
use bentpipe_base::{Duration, Flags, Instant, OtherOptions, Packet, Port, Rate, Seq};

/// The largest shift (RFC 7323, section 2.3).
const LARGEST: u8 = 14;
/// Shift without a configured rate.
const COMMON: u8 = 7;
/// RTT assumed before one is known: two geostationary hops.
const ASSUMED: Duration = Duration::from_millis(1500);
/// Room for options in a TCP header (RFC 9293, section 3.1).
const OPTION_SPACE: u8 = 40;

/// The contents of an endpoint's SYN.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SynOptions {
    pub(crate) isn: Seq,
    /// Length of the SYN and its data in sequence space.
    pub(crate) len: u32,
    scale: Option<u8>,
    sack: bool,
    mss: u16,
    /// When it first arrived, and whether it was retransmitted.
    at: Instant,
    retransmitted: bool,
}

/// The two SYNs of a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Handshake {
    lan: Option<SynOptions>,
    satellite: Option<SynOptions>,
    /// The side that opened the connection, from the SYN/ACK until the end of the handshake.
    opener: Option<Port>,
    /// The shift that the sender was shown.
    shown: Option<u8>,
    /// RTTs on either side of the gateway, as measured in the handshake.
    pub(crate) lan_rtt: Option<Duration>,
    pub(crate) hop_rtt: Option<Duration>,
}

/// Bytes left for options.
pub(crate) fn option_space(packet: &Packet) -> u8 {
    let signal = packet.signal.as_deref().map_or(0, |signal| signal.tcp_options().len() as u8);
    let used = (packet.tcp.wire_len() - 20).saturating_add(packet.other_options.len).saturating_add(signal);
    OPTION_SPACE.saturating_sub(used)
}

/// Returns the smallest shift that allows two bandwidth-delay products.
pub(crate) fn shift_for(rate: Option<Rate>, trip: Option<Duration>) -> u8 {
    let Some(rate) = rate else { return COMMON };
    let wanted = rate.bytes_in(trip.unwrap_or(ASSUMED) * 2).0;
    (0..LARGEST).find(|shift| u64::from(u16::MAX) << shift >= wanted).unwrap_or(LARGEST)
}

impl Handshake {
    /// Checks whether a connection with this SYN may be changed.
    pub(crate) fn check_options(syn: &Packet) -> Result<(), PassReason> {
        if syn.other_options.has(OtherOptions::SIGNED) {
            return Err(PassReason::Signed);
        }
        // all subflows share one window (RFC 8684, section 3.3.1), so one subflow does not show the
        // receiver's free space
        if syn.other_options.has(OtherOptions::MULTIPATH) {
            return Err(PassReason::Multipath);
        }
        Ok(())
    }

    /// Notes a SYN or SYN/ACK from `from` and edits it for the other side.
    pub(crate) fn syn(
        &mut self,
        now: Instant,
        from: Port,
        syn: &mut Packet,
        (rate, assumed): (Option<Rate>, Option<Duration>),
    ) -> Result<(), PassReason> {
        Self::check_options(syn)?;
        let tcp = &syn.tcp;
        let end = SynOptions {
            isn: tcp.seq,
            len: syn.seq_len() as u32,
            scale: tcp.window_scale.map(|s| s.min(LARGEST)),
            sack: tcp.sack_permitted,
            mss: tcp.mss.unwrap_or(536),
            at: now,
            retransmitted: false,
        };
        let answer = tcp.flags.has(Flags::ACK);
        let place = if from == LAN { &mut self.lan } else { &mut self.satellite };
        let known = place.filter(|known| known.isn == end.isn);
        *place = Some(known.map_or(end, |known| SynOptions { at: known.at, retransmitted: true, ..end }));
        if answer && known.is_none() {
            self.opener = Some(if from == LAN { SATELLITE } else { LAN });
            self.measure(now, from);
        }
        if from == LAN {
            self.towards_receiver(syn);
            Ok(())
        } else {
            let shift = shift_for(rate, self.hop_rtt.or(assumed));
            self.towards_sender(syn, answer, shift)
        }
    }

    /// Takes an RTT sample from the answer to a SYN that was not retransmitted (Karn).
    fn measure(&mut self, now: Instant, from: Port) {
        let (trip, other) =
            if from == LAN { (&mut self.lan_rtt, self.satellite) } else { (&mut self.hop_rtt, self.lan) };
        if let Some(other) = other.filter(|other| !other.retransmitted) {
            trip.get_or_insert(now.since(other.at));
        }
    }

    /// Completes the handshake when the opener answers the SYN/ACK.
    pub(crate) fn acknowledged(&mut self, now: Instant, from: Port) {
        if self.opener == Some(from) {
            self.opener = None;
            self.measure(now, from);
        }
    }

    fn towards_receiver(&self, syn: &mut Packet) {
        if self.satellite.is_some_and(|s| s.scale.is_none()) && syn.tcp.window_scale.is_some() {
            edit(syn, None);
        }
    }

    fn towards_sender(&mut self, syn: &mut Packet, answer: bool, enough: u8) -> Result<(), PassReason> {
        // a SYN/ACK has the option only if the SYN had it
        if answer && self.lan.is_some_and(|l| l.scale.is_none()) {
            return Ok(());
        }
        let wished = self.shown.unwrap_or(enough);
        let shift = syn.tcp.window_scale.map_or(wished, |s| s.min(LARGEST).max(wished));
        if syn.tcp.window_scale.is_none() && option_space(syn) < 4 {
            return Err(PassReason::OptionSpace);
        }
        edit(syn, Some(shift));
        self.shown = Some(shift);
        Ok(())
    }

    fn scaling(&self) -> bool {
        self.shown.is_some() && self.lan.is_some_and(|l| l.scale.is_some())
    }
    /// Shift of the windows that the sender sees.
    pub(crate) fn advertised_shift(&self) -> u8 {
        if self.scaling() { self.shown.unwrap_or(0) } else { 0 }
    }
    /// Shift of the receiver's own windows.
    pub(crate) fn receiver_shift(&self) -> u8 {
        let both = self.lan.is_some_and(|l| l.scale.is_some());
        self.satellite.and_then(|s| s.scale).filter(|_| both).unwrap_or(0)
    }
    /// Translates the sender's window field for the receiver.
    pub(crate) fn window_for_receiver(&self, field: u16) -> u16 {
        let known = self.satellite.is_some_and(|s| s.scale.is_some());
        let shift = self.lan.and_then(|l| l.scale).filter(|_| self.scaling() && !known).unwrap_or(0);
        u16::try_from(u32::from(field) << shift).unwrap_or(u16::MAX)
    }
    pub(crate) fn persist(&self, to: &mut SavedState) {
        let scales = self.satellite.is_some_and(|s| s.scale.is_some());
        to.advertised_shift = self.advertised_shift();
        to.receiver_shift = self.receiver_shift();
        to.sender_shift = self.lan.and_then(|l| l.scale).filter(|_| self.scaling()).unwrap_or(0);
        to.believed_shift = if scales { to.sender_shift } else { 0 };
    }

    /// Restores a handshake: both SYNs are assumed just before the next expected bytes.
    pub(crate) fn resume(kept: &SavedState) -> Self {
        let scaling = kept.advertised_shift | kept.sender_shift > 0;
        let known =
            kept.receiver_shift > 0 || (kept.sender_shift > 0 && kept.believed_shift == kept.sender_shift);
        let end = |expected: Seq, scale| SynOptions {
            isn: Seq(expected.0.wrapping_sub(1)),
            len: 1,
            scale,
            sack: kept.sack,
            mss: kept.mss,
            at: Instant::ZERO,
            retransmitted: true,
        };
        Self {
            lan: Some(end(kept.una, scaling.then_some(kept.sender_shift))),
            satellite: Some(end(kept.back_una, known.then_some(kept.receiver_shift))),
            opener: None,
            shown: scaling.then_some(kept.advertised_shift),
            hop_rtt: Some(kept.hop_rtt).filter(|t| !t.is_zero()),
            lan_rtt: Some(kept.lan_rtt).filter(|t| !t.is_zero()),
        }
    }

    /// Makes `first` the first byte after the SYN, from which the positions of the sender's bytes are
    /// counted.
    pub(crate) fn count_from(&mut self, first: Seq) {
        if let Some(lan) = &mut self.lan {
            lan.isn = Seq(first.0.wrapping_sub(1));
        }
    }

    pub(crate) const fn lan(&self) -> Option<SynOptions> {
        self.lan
    }
    pub(crate) const fn satellite(&self) -> Option<SynOptions> {
        self.satellite
    }
    /// Largest payload the sender sends.
    pub(crate) fn mss(&self) -> u64 {
        u64::from(self.satellite.map_or(536, |s| s.mss)).max(1)
    }
    pub(crate) fn sack(&self) -> bool {
        self.lan.is_some_and(|l| l.sack) && self.satellite.is_some_and(|s| s.sack)
    }
}

/// Sets or removes the option and updates the header length.
fn edit(syn: &mut Packet, scale: Option<u8>) {
    let before = syn.tcp.wire_len();
    syn.tcp.window_scale = scale;
    syn.header_len = (syn.header_len + syn.tcp.wire_len()).saturating_sub(before);
}
