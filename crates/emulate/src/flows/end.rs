//! One end of a connection: a socket of the kernel, and the applications on it.

use bentpipe_base::{Cx, Duration, Instant, Size};
use bentpipe_nodes::{Duplex, Reader, Writer};
use bentpipe_os::{socket, tcp};
use bentpipe_tcp::State;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

/// Bytes that one call reads.
const READ: usize = 1 << 14;
/// Bytes that one call writes. What is written is all zeros: nothing on the way looks at it.
const PIECE: usize = 1 << 16;
static ZEROS: [u8; PIECE] = [0; PIECE];
/// How often something is looked at of which the kernel tells nobody: that bytes were acknowledged.
pub(super) const WATCH: Duration = Duration::from_millis(1);

/// A socket as an application sees it.
#[derive(Debug)]
pub(super) struct Line {
    socket: OwnedFd,
    /// The handshake is over.
    pub(super) connected: bool,
    /// The peer's FIN was seen.
    ended: bool,
    /// We have closed.
    pub(super) closed: bool,
    /// What ended it before its time.
    pub(super) fault: Option<io::Error>,
    written: u64,
    pub(super) consumed: u64,
    /// Bytes the application may have under way.
    send_buffer: Option<Size>,
    window: Window,
}

/// What a receive window is held to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Window {
    /// Grows up to this.
    UpTo(Size),
    /// Is this.
    Fixed(Size),
    /// Is this less what the application has not read; the flag says that the buffer has been cut to measure.
    Buffer(Size, bool),
}

impl Line {
    pub(super) const fn new(
        socket: OwnedFd,
        connected: bool,
        send_buffer: Option<Size>,
        window: Window,
    ) -> Self {
        Self {
            socket,
            connected,
            ended: false,
            closed: false,
            fault: None,
            written: 0,
            consumed: 0,
            send_buffer,
            window,
        }
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Bytes that the kernel took from the application.
    pub(super) const fn written(&self) -> u64 {
        self.written
    }

    /// The kernel says that something happened.
    pub(super) fn look(&mut self, hung_up: bool) {
        if self.fault.is_none()
            && let Ok(Err(error)) = rustix::net::sockopt::socket_error(&self.socket)
        {
            self.fault = Some(error.into());
        }
        self.ended |= hung_up && self.fault.is_none();
    }

    /// Holds the window to what it is to be: the kernel lifts its limit when it learns how large packets are
    /// in memory.
    fn hold_window(&mut self) {
        let wanted = match self.window {
            Window::UpTo(size) | Window::Fixed(size) | Window::Buffer(size, _) => size,
        };
        let Ok(now) = tcp::window_clamp(&self.socket) else { return };
        let held = if matches!(self.window, Window::UpTo(_)) { now <= wanted } else { now == wanted };
        if held {
            return;
        }
        if let Window::Buffer(size, false) = self.window {
            // the limit it has now is what the whole buffer can hold: so this is the buffer that holds `size`
            if let Ok(room) = rustix::net::sockopt::socket_recv_buffer_size(&self.socket) {
                let room = u128::from(size.0) * room as u128 / u128::from(now.0.max(1));
                // small segments make a bad measure
                let room = room.min(2 * u128::from(size.0));
                // where this is refused, a little more fits than the window
                let _ = socket::cut_receive_buffer(&self.socket, Size(room as u64));
            }
            self.window = Window::Buffer(size, true);
        }
        // a connection that is over has no window
        let _ = tcp::set_window_clamp(&self.socket, wanted);
    }

    fn failed(&mut self, error: Errno) {
        if self.fault.is_none() {
            self.fault = Some(error.into());
        }
    }
}

impl Duplex for Line {
    fn state(&self) -> State {
        match (self.connected, self.closed, self.ended) {
            _ if self.fault.is_some() => State::Closed,
            (false, ..) => State::SynSent,
            (true, false, false) => State::Established,
            (true, true, false) => State::FinWait1,
            (true, false, true) => State::CloseWait,
            (true, true, true) => State::LastAck,
        }
    }

    fn write(&mut self, bytes: u64) -> u64 {
        if !self.state().may_send() || self.closed {
            return 0;
        }
        let mut left = bytes.min(self.send_room());
        let mut taken = 0;
        while left > 0 {
            let piece = &ZEROS[..left.min(PIECE as u64) as usize];
            // one write of the application is one for the kernel: the end of a piece is no reason for a short
            // segment (tcp(7), MSG_MORE)
            let more = if left > PIECE as u64 { SendFlags::MORE } else { SendFlags::empty() };
            match rustix::net::send(&self.socket, piece, SendFlags::NOSIGNAL | SendFlags::DONTWAIT | more) {
                Ok(n) => {
                    taken += n as u64;
                    left -= n as u64;
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN | Errno::NOBUFS) => break,
                Err(error) => {
                    self.failed(error);
                    break;
                }
            }
        }
        self.written += taken;
        taken
    }

    fn send_room(&self) -> u64 {
        self.send_buffer.map_or(u64::MAX / 4, |b| b.0.saturating_sub(self.unacknowledged()))
    }

    fn unacknowledged(&self) -> u64 {
        // the FIN counts as a byte
        let bytes = tcp::unacknowledged(&self.socket).map_or(0, |s| s.0);
        bytes.saturating_sub(u64::from(self.closed))
    }

    fn readable(&self) -> u64 {
        rustix::io::ioctl_fionread(&self.socket).unwrap_or(0)
    }

    fn consumed(&self) -> u64 {
        self.consumed
    }

    fn consume(&mut self, _now: Instant, bytes: u64) {
        let mut buffer = [0; READ];
        let mut left = bytes;
        while left > 0 {
            let piece = &mut buffer[..left.min(READ as u64) as usize];
            // TRUNC: TCP throws the bytes away instead of copying them (tcp(7))
            match rustix::net::recv(&self.socket, piece, RecvFlags::TRUNC | RecvFlags::DONTWAIT) {
                Ok((_, 0)) => {
                    self.ended = true;
                    break;
                }
                Ok((_, n)) => {
                    self.consumed += n as u64;
                    left = left.saturating_sub(n as u64);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(error) => {
                    self.failed(error);
                    break;
                }
            }
        }
    }

    fn peer_closed(&self) -> bool {
        self.ended
    }

    fn close(&mut self) {
        if !self.closed && self.connected {
            self.closed = true;
            // it may be over already
            let _ = rustix::net::shutdown(&self.socket, Shutdown::Write);
        }
    }
}

/// A socket with its applications.
#[derive(Debug)]
pub(super) struct End {
    pub(super) line: Line,
    pub(super) writer: Writer,
    pub(super) reader: Reader,
    /// Earliest wake-up asked for and not yet seen.
    pub(super) armed: Instant,
}

impl End {
    pub(super) const fn new(line: Line, writer: Writer, reader: Reader) -> Self {
        Self { line, writer, reader, armed: Instant::NEVER }
    }

    /// Lets the applications act, the reader first; returns when they want to be called again without
    /// anything happening.
    pub(super) fn run(&mut self, cx: &mut Cx<'_>) -> Instant {
        if self.line.fault.is_some() {
            return Instant::NEVER;
        }
        let read_at = self.reader.run(cx.now, &mut self.line);
        let write_at = self.writer.run(cx, &mut self.line);
        self.line.hold_window();
        let watched = if self.waits_for_acknowledgment() { cx.now + WATCH } else { Instant::NEVER };
        read_at.min(write_at).min(watched)
    }

    /// True when it waits for something that the kernel tells nobody.
    fn waits_for_acknowledgment(&self) -> bool {
        let line = &self.line;
        line.connected
            && match self.writer {
                Writer::Telnet(_) => line.unacknowledged() > 0,
                Writer::Silent => false,
                _ if line.closed => line.unacknowledged() > 0,
                _ => line.send_buffer.is_some_and(|b| line.unacknowledged() >= b.0),
            }
    }

    /// True when all that was ever to be written is acknowledged.
    pub(super) fn is_done(&self) -> bool {
        self.line.closed && self.line.fault.is_none() && self.line.unacknowledged() == 0
    }
}
