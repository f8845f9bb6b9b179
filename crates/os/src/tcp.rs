//! TCP_INFO of the kernel's TCP connections, and socket options of TCP.
//!
//! `struct tcp_info` (linux/tcp.h) grows at its end only. An older kernel returns a shorter one: missing
//! fields are zero, or `None` where zero would mislead.

use crate::options::{checked, get, set};
use bentpipe_base::{Duration, Size};
use libc::IPPROTO_TCP;
use rustix::net::sockopt;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _};

/// Bytes requested: today's structure and room for future fields.
const LONGEST: usize = 512;
/// Minimum useful length of a `struct tcp_info`: up to `tcpi_total_retrans` (Linux 2.6).
const SHORTEST: usize = 104;
/// `tcpi_snd_ssthresh` of a connection that has seen no loss (`TCP_INFINITE_SSTHRESH`).
const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;
/// Pacing rate that sets no limit: the socket then paces at the congestion control's rate.
const ANY_PACE: u64 = u64::MAX - 1;
/// Longest keep-alive time in seconds (`MAX_TCP_KEEPIDLE`).
const MAX_KEEP_ALIVE: u64 = 32_767;

/// Socket options, with the numbers of linux/tcp.h.
mod option {
    pub(super) const MAXSEG: i32 = 2;
    pub(super) const WINDOW_CLAMP: i32 = 10;
    pub(super) const INFO: i32 = 11;
    pub(super) const RTO_MAX_MS: i32 = 44;
    pub(super) const RTO_MIN_US: i32 = 45;
    pub(super) const DELACK_MAX_US: i32 = 46;
}

/// State of a connection (net/tcp_states.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Data may be exchanged.
    Established,
    /// SYN sent or received.
    Opening,
    /// One side has closed.
    Closing,
    /// Closed.
    Closed,
    /// Waits for connections.
    Listening,
}

impl State {
    /// From the kernel's number.
    pub const fn of(number: u8) -> Self {
        match number {
            1 => Self::Established,
            2 | 3 | 12 => Self::Opening,
            4 | 5 | 8 | 9 | 11 => Self::Closing,
            10 => Self::Listening,
            _ => Self::Closed,
        }
    }
}

/// TCP_INFO: statistics of one end of a connection at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// True while it recovers from losses, detected by acknowledgments or by an RTO (`tcpi_ca_state`).
    pub is_recovering: bool,
    /// MSS for sending.
    pub mss: Size,
    /// Segments sent and not acknowledged; `sacked`, `lost` and `resent` are parts of them.
    pub unacked: u32,
    /// Unacknowledged segments that were SACKed.
    pub sacked: u32,
    /// Unacknowledged segments marked as lost.
    pub lost: u32,
    /// Unacknowledged segments that were retransmitted.
    pub resent: u32,
    /// Smoothed RTT.
    pub rtt: Duration,
    /// Minimum RTT of the last minutes; zero before the first sample.
    pub min_rtt: Duration,
    /// Slow-start threshold in segments; `None` before the first loss.
    pub ssthresh: Option<u32>,
    /// Congestion window in segments.
    pub cwnd: u32,
    /// Total number of retransmitted segments.
    pub retransmits: u32,
    /// Bytes acknowledged; the SYN of the opening side and the FIN count as one each.
    pub bytes_acked: u64,
    /// Bytes received in order; the peer's FIN counts as one.
    pub bytes_received: u64,
    /// Payload sent, retransmissions included, and of these the retransmissions; zero on kernels before 4.19.
    pub bytes_sent: (u64, u64),
    /// Bytes written by the application but not sent yet.
    pub not_sent: Size,
    /// Segments with data received.
    pub data_in: u32,
    /// Segments with data sent, retransmissions included.
    pub data_out: u32,
    /// Time with data waiting to be sent or acknowledged.
    pub busy: Duration,
    /// Part of `busy` limited by the peer's window.
    pub window_limited: Duration,
    /// Part of `busy` limited by the send buffer.
    pub buffer_limited: Duration,
    /// The peer's receive window; zero on kernels before 5.4.
    pub peer_window: Size,
    /// RTOs; `None` on kernels before 6.7.
    pub timeouts: Option<u16>,
}

impl TcpInfo {
    /// Parses the kernel's structure; `None` if it is too short.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        if bytes.len() < SHORTEST {
            return None;
        }
        let f = Fields(bytes);
        let us = |at| Duration::from_micros(u64::from(f.u32(at)));
        let long_us = |at| Duration::from_micros(f.u64(at));
        let size = |at| Size(u64::from(f.u32(at)));
        let ssthresh = f.u32(76);
        Some(Self {
            // TCP_CA_Recovery and TCP_CA_Loss
            is_recovering: matches!(f.u8(1), 3 | 4),
            mss: size(16),
            unacked: f.u32(24),
            sacked: f.u32(28),
            lost: f.u32(32),
            resent: f.u32(36),
            rtt: us(68),
            // ~0 stands for "none yet"
            min_rtt: if f.u32(148) == u32::MAX { Duration::ZERO } else { us(148) },
            ssthresh: (ssthresh < INFINITE_SSTHRESH).then_some(ssthresh),
            cwnd: f.u32(80),
            retransmits: f.u32(100),
            bytes_acked: f.u64(120),
            bytes_received: f.u64(128),
            bytes_sent: (f.u64(200), f.u64(208)),
            not_sent: size(144),
            data_in: f.u32(152),
            data_out: f.u32(156),
            busy: long_us(168),
            window_limited: long_us(176),
            buffer_limited: long_us(184),
            peer_window: size(228),
            timeouts: (bytes.len() >= 242).then(|| u16::from_ne_bytes(f.take(240))),
        })
    }

    /// Bytes in flight: unacknowledged and retransmitted segments, minus those SACKed or marked lost.
    pub fn in_flight(&self) -> Size {
        let segments =
            self.unacked.saturating_add(self.resent).saturating_sub(self.sacked.saturating_add(self.lost));
        Size(u64::from(segments) * self.mss.0)
    }
}

/// Reads fields by offset; zero beyond the end.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&self, at: usize) -> [u8; N] {
        self.0.get(at..at + N).and_then(|s| s.try_into().ok()).unwrap_or([0; N])
    }
    fn u8(&self, at: usize) -> u8 {
        self.take::<1>(at)[0]
    }
    fn u32(&self, at: usize) -> u32 {
        u32::from_ne_bytes(self.take(at))
    }
    fn u64(&self, at: usize) -> u64 {
        u64::from_ne_bytes(self.take(at))
    }
}

/// Returns TCP_INFO of a socket.
///
/// # Errors
/// When it is not a TCP socket, or the kernel lacks TCP_INFO.
pub fn info(socket: impl AsFd) -> io::Result<TcpInfo> {
    let mut bytes = [0_u8; LONGEST];
    let len = get(socket, IPPROTO_TCP, option::INFO, &mut bytes)?;
    let too_short = || io::Error::new(io::ErrorKind::Unsupported, "the kernel's TCP_INFO is too short");
    TcpInfo::parse(&bytes[..len]).ok_or_else(too_short)
}

/// Bytes written but not acknowledged yet (SIOCOUTQ); a FIN counts as one.
///
/// # Errors
/// When it is not a TCP socket.
pub fn unacknowledged(socket: impl AsFd) -> io::Result<Size> {
    let mut bytes: libc::c_int = 0;
    #[allow(unsafe_code, reason = "rustix has no SIOCOUTQ")]
    // SAFETY: SIOCOUTQ (the same number as TIOCOUTQ) writes one int to the address, which is that of a live
    // variable.
    let status = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    checked(status)?;
    Ok(Size(u64::try_from(bytes).unwrap_or(0)))
}

/// Returns the congestion controls available in this network namespace.
///
/// # Errors
/// When `/proc` is missing.
pub fn congestion_controls() -> io::Result<Vec<String>> {
    let text = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")?;
    Ok(text.split_whitespace().map(str::to_owned).collect())
}

/// Sets the congestion control of a socket.
///
/// # Errors
/// `NotFound` when the kernel does not know it; `PermissionDenied` when only root may use it.
pub fn set_congestion(socket: impl AsFd, name: &str) -> io::Result<()> {
    Ok(sockopt::set_tcp_congestion(socket, name)?)
}

/// Limits the window that a socket advertises. The kernel may raise it when its segment size estimate changes
/// (`tcp_measure_rcv_mss` in net/ipv4/tcp_input.c): check [`window_clamp`] regularly.
///
/// # Errors
/// When it is not a TCP socket.
pub fn set_window_clamp(socket: impl AsFd, window: Size) -> io::Result<()> {
    set(socket, IPPROTO_TCP, option::WINDOW_CLAMP, &int(window.0))
}

/// Returns the current limit on the window.
///
/// # Errors
/// When it is not a TCP socket.
pub fn window_clamp(socket: impl AsFd) -> io::Result<Size> {
    let mut bytes = [0; 4];
    get(socket, IPPROTO_TCP, option::WINDOW_CLAMP, &mut bytes)?;
    Ok(Size(u64::from(u32::from_ne_bytes(bytes))))
}

/// Sets the MSS that a socket announces and does not exceed. Call it before connecting or listening.
///
/// # Errors
/// `InvalidInput` below 88 B or above 32767 B (`TCP_MIN_MSS`, `MAX_TCP_WINDOW`).
pub fn set_max_segment(socket: impl AsFd, bytes: u16) -> io::Result<()> {
    set(socket, IPPROTO_TCP, option::MAXSEG, &i32::from(bytes))
}

/// Sends small segments at once (no Nagle).
///
/// # Errors
/// When it is not a TCP socket.
pub fn set_no_delay(socket: impl AsFd, on: bool) -> io::Result<()> {
    Ok(sockopt::set_tcp_nodelay(socket, on)?)
}

/// Aborts the connection when sent data, or data held back by a closed window, makes no progress for `time`.
///
/// # Errors
/// When it is not a TCP socket.
pub fn set_user_timeout(socket: impl AsFd, time: Duration) -> io::Result<()> {
    let ms = u32::try_from(time.0.div_ceil(1_000_000)).unwrap_or(u32::MAX);
    Ok(sockopt::set_tcp_user_timeout(socket, ms)?)
}

/// Probes a peer that has been silent for `idle`, every `interval`, and aborts after `count` unanswered
/// probes. Times are whole seconds, rounded up, at most 32 767.
///
/// # Errors
/// `InvalidInput` for more than 127 probes.
pub fn set_keep_alive(socket: impl AsFd, idle: Duration, interval: Duration, count: u32) -> io::Result<()> {
    let socket = socket.as_fd();
    let seconds =
        |time: Duration| core::time::Duration::from_secs(time.0.div_ceil(1_000_000_000).min(MAX_KEEP_ALIVE));
    sockopt::set_tcp_keepidle(socket, seconds(idle))?;
    sockopt::set_tcp_keepintvl(socket, seconds(interval))?;
    sockopt::set_tcp_keepcnt(socket, count)?;
    Ok(sockopt::set_socket_keepalive(socket, true)?)
}

/// Sets the minimum distance of the RTO above the smoothed RTT.
///
/// # Errors
/// `Unsupported` on kernels before 6.15; `InvalidInput` below two jiffies (`TCP_TIMEOUT_MIN`) or above 200 ms
/// (`TCP_RTO_MIN`).
pub fn set_rto_min(socket: impl AsFd, least: Duration) -> io::Result<()> {
    set_since_6_15(socket, option::RTO_MIN_US, least.0 / 1000)
}

/// Sets the maximum RTO.
///
/// # Errors
/// `Unsupported` on kernels before 6.15; `InvalidInput` outside 1 s to 120 s.
pub fn set_rto_max(socket: impl AsFd, most: Duration) -> io::Result<()> {
    set_since_6_15(socket, option::RTO_MAX_MS, most.0 / 1_000_000)
}

/// Sets the maximum delay of an acknowledgment.
///
/// # Errors
/// `Unsupported` on kernels before 6.15; `InvalidInput` below two jiffies (`TCP_TIMEOUT_MIN`) or above 200 ms
/// (`TCP_DELACK_MAX`).
pub fn set_delayed_ack_max(socket: impl AsFd, most: Duration) -> io::Result<()> {
    set_since_6_15(socket, option::DELACK_MAX_US, most.0 / 1000)
}

/// Enables pacing from cwnd and RTT for congestion controls without their own pacing rate, with no additional
/// limit (`SO_MAX_PACING_RATE`).
///
/// # Errors
/// When the kernel does not know the option.
pub fn set_pacing(socket: impl AsFd) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, &ANY_PACE)
}

fn set_since_6_15(socket: impl AsFd, name: i32, value: u64) -> io::Result<()> {
    set(socket, IPPROTO_TCP, name, &int(value)).map_err(|error| match error.raw_os_error() {
        Some(libc::ENOPROTOOPT) => io::Error::new(io::ErrorKind::Unsupported, "needs Linux 6.15"),
        _ => error,
    })
}

fn int(value: u64) -> i32 {
    i32::try_from(value).unwrap_or(i32::MAX)
}
