//! The channel of one direction: rate, one-way delay and errors. A channel that varies over time has its own
//! server (`varying.rs`), which a constant channel never uses.
//!
//! Errors: a packet is lost with probability `loss`; if it survives that, it is lost with probability
//! 1-(1-BER)^(8 L), L its bytes on the wire (independent bit errors; any residual error loses the packet).

use crate::direction::{DirectionSpec, Dynamics};
use crate::gap::{Gap, LossDraw};
use crate::mtu::{Fragments, Mtu};
use crate::state::State;
use crate::varying::Varying;
use bentpipe_base::shift::Walk;
use bentpipe_base::trace::DropCause;
use bentpipe_base::{Cx, Duration, Instant, Packet, Probability, Purpose, Rate, RngSlot, Size, World};

/// Loss processes of one direction.
#[derive(Clone, Copy, Debug)]
pub struct Errors {
    /// The random stream of the errors.
    pub rng: RngSlot,
    /// Loss probability per packet.
    pub loss: Probability,
    /// Bit error rate.
    pub ber: Probability,
}

/// What is special about a link, if anything: the one question that is asked for every packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Special {
    /// Constant, without an MTU, and in no chain (`ahead.rs`).
    Nothing,
    /// Constant, with an MTU.
    Mtu,
    /// It changes over time, and may have an MTU.
    Varies,
    /// Tells the next link of packets.
    First,
    /// Is told of packets, and tells the next link.
    Middle,
    /// Is told of packets.
    Last,
}

impl Special {
    /// True for a link in a chain.
    pub(crate) const fn is_chained(self) -> bool {
        matches!(self, Self::First | Self::Middle | Self::Last)
    }
}

/// The channel of one direction.
#[derive(Debug)]
pub struct Channel {
    pub(crate) rate: Rate,
    /// Remainder of the last packet in units of 1/rate ns, carried over so that the long-run rate is exact.
    pub(crate) carry: u64,
    /// One-way propagation delay.
    pub(crate) one_way: Duration,
    framing: u16,
    pub(crate) mtu: Option<Mtu>,
    pub(crate) special: Special,
    /// Boxed, because most links have neither errors nor changes.
    more: Option<Box<More>>,
    /// Cache for the last size: bytes, whole nanoseconds, and the remainder in units of 1/rate ns. Packets of
    /// a direction mostly have one size, and a division costs as much as the rest of a hop.
    last: (u64, u64, u64),
}

/// State that a constant channel without errors does not have.
#[derive(Debug)]
enum More {
    Errors {
        errors: Errors,
        /// Cache: the last size and its packet error probability.
        last: (u64, f64),
        /// The present gap between packet losses, if they are drawn so.
        gap: Option<Gap>,
    },
    /// Boxed again, so that a lossy constant channel stays small. `None` while the link has borrowed it.
    Varying(Option<Box<Varying>>),
}

impl Channel {
    /// A channel that serialises IP bytes plus `framing` at `rate` and delivers `one_way` later.
    pub fn new(rate: Rate, one_way: Duration, framing: Size, errors: Option<Errors>) -> Self {
        let more = errors.map(|errors| Box::new(More::Errors { errors, last: (0, 0.0), gap: None }));
        // the scenario allows at most 65 535 bytes
        let framing = u16::try_from(framing.0).unwrap_or(u16::MAX);
        Self { rate, carry: 0, one_way, framing, mtu: None, special: Special::Nothing, more, last: (0, 0, 0) }
    }

    /// The same with a limit of the packets' length.
    #[must_use]
    pub fn with_mtu(self, mtu: Option<Mtu>) -> Self {
        let is_first = mtu.is_some() && self.special == Special::Nothing;
        Self { mtu, special: if is_first { Special::Mtu } else { self.special }, ..self }
    }

    /// The same with losses drawn in this way.
    #[must_use]
    pub fn with_loss_draw(mut self, draw: LossDraw) -> Self {
        if let Some(More::Errors { gap, .. }) = self.more.as_deref_mut() {
            *gap = draw.gap();
        }
        self
    }

    /// A channel that starts as `base` and changes as `dynamics` says. `name` is the name of the direction
    /// and owns the random streams opened here, except those of a station's rain and of a pair's satellites.
    pub fn varying(base: &DirectionSpec, dynamics: &Dynamics, name: &str, world: &mut World) -> Self {
        let varying = Box::new(Varying::of(base, dynamics, name, world));
        let more = Some(Box::new(More::Varying(Some(varying))));
        let channel = Self::new(base.rate, base.delay, base.framing, None).with_mtu(base.mtu);
        Self { special: Special::Varies, more, ..channel }
    }

    /// Makes a constant channel one that can change from now on. It keeps the service in progress until
    /// `busy_until`, the remainder of the last packet and the random stream of errors. `name` is as for
    /// [`Channel::varying`].
    pub(crate) fn start_to_vary(&mut self, cx: &mut Cx<'_>, name: &str, busy_until: Instant) {
        let (errors, gap) = match self.more.as_deref() {
            Some(More::Errors { errors, gap, .. }) => (errors.rng, *gap),
            _ => (cx.open_rng(name, Purpose::Errors), None),
        };
        let framing = Size(u64::from(self.framing));
        let varying = Varying::new(self.state(), framing, errors, (self.carry, busy_until)).with_gap(gap);
        self.special = Special::Varies;
        self.more = Some(Box::new(More::Varying(Some(Box::new(varying)))));
    }

    /// Visits the state; a service in progress lasts for `lead` from now on.
    pub(crate) fn shift(&mut self, walk: &mut Walk<'_>, lead: Duration) {
        let Self { rate: _, carry, one_way: _, framing: _, mtu: _, more, .. } = self;
        walk.same(carry);
        match more.as_deref_mut() {
            Some(More::Varying(Some(varying))) => varying.shift(walk, lead),
            Some(More::Varying(None)) => walk.refuse("a link in use"),
            Some(More::Errors { gap: Some(gap), .. }) => gap.shift(walk),
            Some(More::Errors { .. }) | None => {}
        }
    }

    /// The place of the varying part, empty while the link uses it; `None` if the channel is constant.
    pub(crate) fn varying_slot(&mut self) -> Option<&mut Option<Box<Varying>>> {
        match self.more.as_deref_mut() {
            Some(More::Varying(place)) => Some(place),
            _ => None,
        }
    }

    /// The varying part; `None` if the channel is constant or the link has borrowed it.
    pub(crate) fn varying_part(&mut self) -> Option<&mut Varying> {
        self.varying_slot()?.as_deref_mut()
    }

    /// True if it changes over time.
    #[inline]
    pub(crate) const fn varies(&self) -> bool {
        matches!(self.special, Special::Varies)
    }

    /// The state of a constant channel.
    pub(crate) fn state(&self) -> State {
        let (loss, ber) = match self.more.as_deref() {
            Some(More::Errors { errors, .. }) => (errors.loss, errors.ber),
            _ => (Probability::ZERO, Probability::ZERO),
        };
        State::new(self.rate, self.one_way, loss, ber)
    }

    /// True if packets like this one are longer than the MTU and are not cut.
    #[inline]
    pub(crate) fn refuses(&self, packet: &Packet) -> bool {
        self.mtu.is_some_and(|mtu| mtu.refuses(packet))
    }

    /// Returns the end of the transmission of a packet that begins at `start`. `fresh` says that the channel
    /// was idle before.
    #[inline]
    pub(crate) fn serialise(&mut self, start: Instant, sent: Fragments, fresh: bool) -> Instant {
        if fresh {
            self.carry = 0;
        }
        let size = sent.framed(Size(u64::from(self.framing)));
        let bps = self.rate.bps();
        if self.last.0 != size.0 {
            // bits * 1e9 fits for packets up to 2 GB
            let work = size.bits() * 1_000_000_000;
            self.last = (size.0, work / bps, work % bps);
        }
        let (_, whole, rest) = self.last;
        self.carry += rest;
        let over = self.carry >= bps;
        if over {
            self.carry -= bps;
        }
        start + Duration(whole + u64::from(over))
    }

    /// True if no packet is lost.
    #[inline]
    pub(crate) const fn is_without_errors(&self) -> bool {
        self.more.is_none()
    }

    /// What [`Channel::serialise`] will return for a packet that arrives when the channel is idle.
    pub(crate) fn foresee(&mut self, start: Instant, sent: Fragments) -> Instant {
        let carry = self.carry;
        let end = self.serialise(start, sent, true);
        self.carry = carry;
        end
    }

    /// Returns why a packet is lost; `None` if it is not.
    #[inline]
    pub(crate) fn draw_loss(&mut self, cx: &mut Cx<'_>, sent: Fragments) -> Option<DropCause> {
        let Some(More::Errors { errors, last, gap }) = self.more.as_deref_mut() else { return None };
        let loss = errors.loss.get();
        let is_lost = match gap {
            Some(gap) => gap.loses(cx.rng(errors.rng), loss, sent.count),
            None => !errors.loss.is_zero() && cx.rng(errors.rng).unit() < sent.lost(loss),
        };
        if is_lost {
            return Some(DropCause::PacketLoss);
        }
        if !errors.ber.is_zero() {
            let size = sent.framed(Size(u64::from(self.framing)));
            if last.0 != size.0 {
                *last = (size.0, segment_error(errors.ber, size));
            }
            if cx.rng(errors.rng).unit() < last.1 {
                return Some(DropCause::BitError);
            }
        }
        None
    }
}

/// Probability that at least one of the bits of `size` bytes is wrong.
fn segment_error(ber: Probability, size: Size) -> f64 {
    -libm::expm1(size.bits() as f64 * libm::log1p(-ber.get()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_stays_one_cache_line() {
        assert!(size_of::<Channel>() <= 64 && size_of::<crate::Link>() <= 256);
    }

    #[test]
    fn long_run_rate_is_exact() {
        // 1040 B at 1.544 Mbit/s take 5 388 601.036... ns: after 193 packets the fractions make whole
        // nanoseconds
        let rate = Rate::from_bps(1_544_000).unwrap();
        let mut c = Channel::new(rate, Duration::ZERO, Size::ZERO, None);
        let mut t = Instant::ZERO;
        for i in 0..193_000 {
            t = c.serialise(t, Fragments::of(None, Size(1040)), i == 0);
        }
        assert_eq!(t.0, 193_000 * 8320 * 1_000_000 / 1544);
    }

    #[test]
    fn segment_error_of_the_ka_band_sheet() {
        // 1500 B on the wire: 1.2e-3 at 1e-7, 1.2e-2 at 1e-6, 0.113 at 1e-5 [kaband]
        for (ber, expected) in [(1e-7, 1.199e-3), (1e-6, 1.193e-2), (1e-5, 0.1131)] {
            let p = segment_error(Probability::new(ber).unwrap(), Size(1500));
            assert!((p / expected - 1.0).abs() < 1e-3, "{ber}: {p}");
        }
        assert!((segment_error(Probability::new(1.0).unwrap(), Size(1)) - 1.0).abs() < 1e-12);
    }
}
