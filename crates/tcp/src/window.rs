//! The receive window: fixed, or grown by dynamic right-sizing.
//!
//! Sources: RFC 9293, sections 3.8.6 (the right edge never moves left; silly-window avoidance) and RFC 7323,
//! section 2 (scaling). Auto-tuning: Fisk and Feng, "Dynamic right-sizing in TCP" (2001), as Linux does it:
//! once per round trip, if the application read more than in any round before, the buffer becomes twice
//! that. A pure receiver takes the round trip from the timestamps that the peer echoes (RFC 7323, section
//! 4.1), as Linux does: the RTT of the handshake contains no queueing delay, and with it the window would
//! stay below the bandwidth-delay product with a queue. Without timestamps only the RTT of the handshake is
//! known. A window is rounded up to the scale's granularity; the buffer is larger by as much.

use crate::config::ReceiveBuffer;
use bentpipe_base::shift::Walk;
use bentpipe_base::{Duration, Instant, Size};

/// State of the advertised window.
#[derive(Clone, Debug, Default)]
pub struct ReceiveWindow {
    /// Bytes kept for the application; the window shows at most `shown` of them.
    buffer: u64,
    max_advertised: u64,
    max: u64,
    auto: bool,
    scale: u8,
    /// The largest buffer that right-sizing wished for.
    wished: u64,
    /// Right edge last advertised.
    edge: u64,
    /// Window in the last header.
    announced: u64,
    round_began: Instant,
    round_read: u64,
    /// Smoothed round trip as the receiver sees it; zero before the first sample.
    rtt: Duration,
    /// Echo of the last sample; each echo gives one.
    last_echo: Option<u32>,
}

impl ReceiveWindow {
    /// Visits the state of the window that bounds `stream`.
    pub(crate) fn shift(&mut self, walk: &mut Walk<'_>, stream: usize) {
        let Self { buffer, max_advertised, max, auto, scale, edge, announced, .. } = self;
        walk.same(&[*buffer, *max_advertised, *max, *announced]);
        walk.same(&(*auto, *scale));
        walk.position(stream, edge);
        if *auto && *buffer < *max {
            let Self { wished, round_began, round_read, rtt, last_echo, .. } = self;
            walk.past(round_began);
            walk.same(&(*round_read, *rtt, *wished));
            walk.same(&last_echo.is_some());
            if let Some(echo) = last_echo {
                walk.coarse_stamp(echo);
            }
        }
        // a fixed buffer, or the largest, stays as it is; only a driver with real packets can allow a larger
        // one. So what right-sizing has measured decides nothing, and no report tells of it
    }
}

/// Weight of a new round-trip sample of the receiver: one in this many.
const RTT_GAIN: u64 = 8;

impl ReceiveWindow {
    /// Creates the window of a buffer policy; the buffer holds `reserve` bytes more than it advertises.
    /// `scale` is the shift agreed for our windows, 0 without scaling.
    pub fn new(policy: ReceiveBuffer, reserve: Size, scale: u8) -> Self {
        let limit = u64::from(u16::MAX) << scale;
        let initial = policy.initial().0.min(limit);
        Self {
            buffer: initial + reserve.0,
            max_advertised: if reserve.0 > 0 { initial } else { limit },
            max: policy.max().0.min(limit),
            auto: matches!(policy, ReceiveBuffer::Auto { .. }),
            scale,
            edge: 1,
            ..Self::default()
        }
    }

    /// True if an echoed timestamp is of use: the buffer is auto-tuned and `echo` is new.
    #[inline]
    pub fn wants_rtt(&self, echo: u32) -> bool {
        self.auto && self.last_echo != Some(echo)
    }

    /// Takes an RTT sample: a full segment echoed `echo`, the timestamp of an acknowledgment sent `rtt` ago.
    pub fn on_echo(&mut self, echo: u32, rtt: Duration) {
        self.last_echo = Some(echo);
        self.rtt = if self.rtt.is_zero() {
            rtt
        } else {
            Duration(self.rtt.0 - self.rtt.0 / RTT_GAIN + rtt.0 / RTT_GAIN)
        };
    }

    /// Returns the position after the last byte the peer may send.
    #[inline]
    pub const fn right_edge(&self) -> u64 {
        self.edge
    }

    /// Returns the window that the last packet announced, in bytes.
    pub const fn announced(&self) -> u64 {
        self.announced
    }

    /// Returns the present buffer in bytes.
    pub const fn buffer(&self) -> u64 {
        self.buffer
    }

    /// Returns the largest buffer that right-sizing has wished for, whatever it got; 0 if it never did.
    pub const fn wished(&self) -> u64 {
        self.wished
    }

    /// Sets the memory of an auto-tuned window: right-sizing makes the buffer as large as rounding up the
    /// window allows. It has at least `opened` bytes at once, as far as they fit. It never shrinks.
    pub fn allow(&mut self, memory: u64, opened: u64) {
        if self.auto {
            let limit = (u64::from(u16::MAX) << self.scale).min(memory.saturating_sub((1 << self.scale) - 1));
            self.max = limit.max(self.buffer);
            self.buffer = self.buffer.max(opened.min(self.max));
        }
    }

    /// Returns the right edge that would be advertised now.
    #[inline]
    fn wished_edge(&self, next: u64, buffered: u64) -> u64 {
        let free = self.buffer.saturating_sub(buffered).min(self.max_advertised);
        // a scale is at most 14, so the shifts here and in `advertise` drop nothing
        debug_assert!(self.scale <= 14, "RFC 7323, section 2.3");
        let step = !u64::MAX.wrapping_shl(u32::from(self.scale));
        (next + ((free + step) & !step)).max(self.edge)
    }

    /// Moves the right edge and returns the window field of the header.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a call costs half as much as the work")]
    pub fn advertise(&mut self, next: u64, buffered: u64, largest: u64) -> u16 {
        let wished = self.wished_edge(next, buffered);
        // silly-window avoidance: the edge does not move by less than a segment, or half the buffer if that
        // is less
        if wished - self.edge >= largest.min(self.buffer / 2) || self.edge < next {
            self.edge = wished;
        }
        let scale = u32::from(self.scale);
        let field = (self.edge - next).wrapping_shr(scale).min(u64::from(u16::MAX));
        self.announced = field.wrapping_shl(scale);
        field as u16
    }

    /// Returns the unscaled window field of a SYN.
    pub fn advertise_syn(&mut self, next: u64) -> u16 {
        let window = self.buffer.min(u64::from(u16::MAX));
        self.edge = self.edge.max(next + window);
        self.announced = window;
        window as u16
    }

    /// True when reading opened the window enough to tell the peer, which knows of less than half the buffer:
    /// by a segment or half the buffer (RFC 9293, section 3.8.6.2.2); on Linux (`tcp_cleanup_rbuf`) also to
    /// twice what the peer knows. A peer with plenty of room learns of it soon enough from the next ACK.
    #[inline]
    pub fn window_update_due(&self, next: u64, buffered: u64, largest: u64, linux: bool) -> bool {
        let known = self.edge - next.min(self.edge);
        let opening = self.wished_edge(next, buffered) - self.edge;
        let least = largest.min(self.buffer / 2).max(if linux { known.max(1) } else { 1 });
        opening >= least && known < self.buffer / 2
    }

    /// Records that the application read `bytes`; may grow the buffer. `handshake` is the round trip to use
    /// until a better one is known.
    #[inline]
    pub fn on_read(&mut self, now: Instant, bytes: u64, handshake: Duration) {
        if !self.auto {
            return;
        }
        let rtt = if self.rtt.is_zero() { handshake } else { self.rtt };
        self.round_read += bytes;
        if now.since(self.round_began) >= rtt {
            let wish = self.round_read.saturating_mul(2);
            if wish > self.buffer && !rtt.is_zero() {
                self.wished = self.wished.max(wish);
                self.buffer = wish.min(self.max);
            }
            self.round_began = now;
            self.round_read = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_right_edge_never_moves_left() {
        let mut w = ReceiveWindow::new(ReceiveBuffer::Fixed(Size(10_000)), Size(0), 0);
        assert_eq!(w.advertise(1, 0, 1000), 10_000);
        // 5000 buffered would mean 5000 free, but 9000 were promised
        assert_eq!(w.advertise(1001, 5000, 1000), 9000);
        assert_eq!(w.advertise(10_001, 10_000, 1000), 0);
        assert!(!w.window_update_due(10_001, 9_500, 1000, false)); // 500 bytes: not worth telling
        assert!(w.window_update_due(10_001, 9_000, 1000, false));
    }

    #[test]
    fn a_reserve_fills_before_the_window_falls() {
        let mut w = ReceiveWindow::new(ReceiveBuffer::Fixed(Size(10_000)), Size(5000), 0);
        assert_eq!(w.advertise(1, 0, 1000), 10_000);
        assert_eq!(w.advertise(5001, 5000, 1000), 10_000);
        assert_eq!(w.advertise(6001, 6000, 1000), 9000);
        assert_eq!(w.advertise(15_001, 15_000, 1000), 0);
    }

    #[test]
    fn scaled_windows_are_rounded_up() {
        let mut w = ReceiveWindow::new(ReceiveBuffer::Fixed(Size(524_140)), Size(0), 4);
        let field = w.advertise(1, 0, 1460);
        assert_eq!(u64::from(field) << 4, 524_144);
    }

    #[test]
    fn right_sizing_goes_by_the_round_trip_that_data_take() {
        let auto = ReceiveBuffer::Auto { initial: Size(64_000), max: Size(1_000_000) };
        let mut w = ReceiveWindow::new(auto, Size(0), 5);
        let (handshake, loaded) = (Duration::from_millis(10), Duration::from_millis(100));
        assert!(w.wants_rtt(7));
        w.on_echo(7, loaded);
        assert!(!w.wants_rtt(7) && w.wants_rtt(8), "an echo gives one sample");
        // 10 ms is less than the round trip of the data
        let mut now = Instant::ZERO;
        for _ in 0..9 {
            now += handshake;
            w.on_read(now, 50_000, handshake);
            assert_eq!(w.buffer(), 64_000);
        }
        w.on_read(now + handshake, 50_000, handshake);
        assert_eq!(w.buffer(), 1_000_000);
    }

    #[test]
    fn right_sizing_stays_within_the_memory_that_it_is_given() {
        let auto = ReceiveBuffer::Auto { initial: Size(60_000), max: Size(16 << 20) };
        let (mut w, rtt) = (ReceiveWindow::new(auto, Size(0), 9), Duration::from_millis(100));
        w.allow(65_536, 0);
        w.on_read(Instant::ZERO + rtt, 60_000, rtt);
        assert_eq!((w.buffer(), w.wished()), (65_536 - 511, 120_000));
        // whatever was read, the right edge is within the memory
        for read in [0, 1, 511, 512, 60_001] {
            assert!(w.wished_edge(read + 100, 100) - read <= 65_536);
        }
        w.allow(1 << 20, 300_000);
        assert_eq!(w.buffer(), 300_000, "at once");
        w.allow(65_536, 0);
        w.on_read(Instant::ZERO + rtt * 2, 300_000, rtt);
        assert_eq!(w.buffer(), 300_000, "it never shrinks");
    }

    #[test]
    fn right_sizing_doubles_what_is_read_per_round_trip() {
        let auto = ReceiveBuffer::Auto { initial: Size(64_000), max: Size(1_000_000) };
        let mut w = ReceiveWindow::new(auto, Size(0), 5);
        let rtt = Duration::from_millis(100);
        let mut now = Instant::ZERO;
        for expected in [128_000, 256_000, 512_000, 1_000_000] {
            now += rtt;
            let read = w.buffer();
            w.on_read(now, read, rtt);
            assert_eq!(w.buffer(), expected);
        }
    }
}
