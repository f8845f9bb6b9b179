//! One end of a connection: a kernel socket and its applications.

use bentpipe_base::{Cx, Duration, Instant, Size};
use bentpipe_nodes::{ByteStream, Reader, ReaderState, Writer};
use bentpipe_os::{socket, tcp};
use bentpipe_tcp::State;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

/// Bytes read per call.
const READ: usize = 1 << 14;
/// Bytes written per call. The data is all zeros: nothing on the path looks at it.
const PIECE: usize = 1 << 16;
static ZEROS: [u8; PIECE] = [0; PIECE];
/// Polling interval for acknowledged bytes, for which the kernel has no event.
pub(super) const WATCH: Duration = Duration::from_millis(1);

/// A socket as an application sees it.
#[derive(Debug)]
pub(super) struct KernelSocket {
    socket: OwnedFd,
    pub(super) connected: bool,
    /// The peer's FIN was seen.
    ended: bool,
    /// We have closed our side.
    pub(super) closed: bool,
    /// The error that ended it early.
    pub(super) fault: Option<io::Error>,
    /// Bytes that the kernel accepted from the application.
    pub(super) written: u64,
    pub(super) consumed: u64,
    /// Limit of unacknowledged bytes of the application.
    send_buffer: Option<Size>,
    window: Window,
}

/// How the receive window is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Window {
    /// It grows up to this size.
    UpTo(Size),
    /// It has this size.
    Fixed(Size),
    /// This size minus unread data; the flag is true once the buffer was cut to match.
    Buffer(Size, bool),
}

impl KernelSocket {
    pub(super) fn new(socket: OwnedFd, connected: bool, send_buffer: Option<Size>, window: Window) -> Self {
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

    /// Handles an event of the socket.
    pub(super) fn look(&mut self, hung_up: bool) {
        if self.fault.is_none()
            && let Ok(Err(error)) = rustix::net::sockopt::socket_error(&self.socket)
        {
            self.failed(error);
        }
        self.ended |= hung_up && self.fault.is_none();
    }

    /// Enforces the window limit again: the kernel raises it when it learns how much memory packets take.
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
            // `now` is the window that the whole buffer allows: scale the buffer to allow `size`
            if let Ok(room) = rustix::net::sockopt::socket_recv_buffer_size(&self.socket) {
                let room = u128::from(size.0) * room as u128 / u128::from(now.0.max(1));
                // with small segments the estimate is too large
                let room = room.min(2 * u128::from(size.0));
                // if this is refused, a little more than the window fits
                let _ = socket::try_set_receive_buffer(&self.socket, Size(room as u64));
            }
            self.window = Window::Buffer(size, true);
        }
        // fails only if the connection has ended
        let _ = tcp::set_window_clamp(&self.socket, wanted);
    }

    fn failed(&mut self, error: Errno) {
        self.fault.get_or_insert_with(|| error.into());
    }
}

impl ByteStream for KernelSocket {
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
        let room = self.send_buffer.map_or(u64::MAX / 4, |b| b.0.saturating_sub(self.unacknowledged()));
        let mut left = bytes.min(room);
        let mut taken = 0;
        while left > 0 {
            let piece = &ZEROS[..left.min(PIECE as u64) as usize];
            // one write of the application must be one for the kernel: the end of a piece must not cause a
            // short segment (tcp(7), MSG_MORE)
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
            // TRUNC: TCP discards the bytes instead of copying them (tcp(7))
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

    fn close(&mut self) {
        if !self.closed && self.connected {
            self.closed = true;
            // it may have ended already
            let _ = rustix::net::shutdown(&self.socket, Shutdown::Write);
        }
    }
}

/// A socket with its applications.
#[derive(Debug)]
pub(super) struct ConnectionEnd {
    pub(super) socket: KernelSocket,
    pub(super) writer: Writer,
    pub(super) reader: ReaderState,
    /// Earliest pending wake-up.
    pub(super) armed: Instant,
}

impl ConnectionEnd {
    pub(super) const fn new(line: KernelSocket, writer: Writer, reader: Reader) -> Self {
        Self { socket: line, writer, reader: ReaderState::new(reader), armed: Instant::NEVER }
    }

    /// Runs the applications, the reader first; returns when they must run again if no event happens.
    pub(super) fn run(&mut self, cx: &mut Cx<'_>) -> Instant {
        if self.socket.fault.is_some() {
            return Instant::NEVER;
        }
        let read_at = self.reader.run(cx.now, &mut self.socket);
        let write_at = self.writer.run(cx, &mut self.socket);
        self.socket.hold_window();
        let watched = if self.waits_for_acknowledgment() { cx.now + WATCH } else { Instant::NEVER };
        read_at.min(write_at).min(watched)
    }

    /// True if it waits for acknowledgments, for which the kernel has no event.
    fn waits_for_acknowledgment(&self) -> bool {
        let line = &self.socket;
        line.connected
            && match self.writer {
                Writer::Telnet(_) => line.unacknowledged() > 0,
                Writer::Silent => false,
                _ if line.closed => line.unacknowledged() > 0,
                _ => line.send_buffer.is_some_and(|b| line.unacknowledged() >= b.0),
            }
    }

    /// True if all data was written, closed and acknowledged.
    pub(super) fn is_done(&self) -> bool {
        self.socket.closed && self.socket.fault.is_none() && self.socket.unacknowledged() == 0
    }
}
