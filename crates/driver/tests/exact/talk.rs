//! Conversations between the hosts: what is said is known byte by byte, and each end tells how it came out.

use crate::course::{Course, at};
use bentpipe_os::tcp::{set_congestion, set_no_delay};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Barrier;
use std::thread::scope;
use std::time::Duration;

/// Longest silence. An outage and the timeouts of a sender after it are far shorter.
pub(crate) const PATIENCE: Duration = Duration::from_secs(100);
/// Longest attempt to connect: three SYNs may be lost.
const CONNECT: Duration = Duration::from_secs(40);

/// What is said in which order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Both at once; each closes its half when it has said all.
    Both,
    /// The client says all and closes its half; then the server answers.
    Request,
    /// The server says all and closes its half; then the client does.
    Banner,
    /// Both at once, and both close at the same time.
    Together,
    /// One end goes away in the middle: the client, or the server.
    Reset { client: bool },
    /// Small messages, each answered before the next.
    Messages(u32),
    /// There is nobody at the port.
    Closed,
}

/// A conversation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) kind: Kind,
    pub(crate) v6: bool,
    /// Host of the server.
    pub(crate) server: usize,
    /// Bytes that the client says, and the server.
    pub(crate) lens: [usize; 2],
    pub(crate) congestion: &'static str,
}

/// How an end saw the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The other end's stream ended.
    Eof,
    /// The connection broke.
    Reset,
    /// Nobody listens.
    Refused,
    /// It went away by itself.
    Left,
    /// Anything else.
    Other(ErrorKind),
}

/// What an end heard, and how it ended.
pub(crate) type Side = (usize, End);

/// Byte `i` of stream `seed`.
fn byte(seed: u64, i: usize) -> u8 {
    let x = (i as u64 ^ seed << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (x >> 32) as u8
}

fn ended(error: &std::io::Error) -> End {
    match error.kind() {
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted => End::Reset,
        ErrorKind::ConnectionRefused => End::Refused,
        other => End::Other(other),
    }
}

/// One end of a conversation.
struct Talker {
    socket: TcpStream,
    plan: Plan,
    is_client: bool,
    heard: usize,
}

impl Talker {
    fn new(socket: TcpStream, plan: Plan, is_client: bool) -> Self {
        socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        socket.set_write_timeout(Some(PATIENCE)).expect("a timeout");
        set_congestion(&socket, plan.congestion).expect("a congestion control");
        Self { socket, plan, is_client, heard: 0 }
    }

    fn seed(&self, own: bool) -> u64 {
        2 * self.plan.seed + u64::from(self.is_client == own)
    }

    fn len(&self, own: bool) -> usize {
        self.plan.lens[usize::from(self.is_client != own)]
    }

    /// Says bytes `from` to `to` of its stream.
    fn say(&self, from: usize, to: usize) -> std::io::Result<()> {
        let seed = self.seed(true);
        let mut at = from;
        while at < to {
            let end = to.min(at + (1 << 17));
            let part: Vec<u8> = (at..end).map(|i| byte(seed, i)).collect();
            (&self.socket).write_all(&part)?;
            at = end;
        }
        Ok(())
    }

    fn say_all(&self) -> std::io::Result<()> {
        self.say(0, self.len(true))
    }

    fn close(&self) -> std::io::Result<()> {
        self.socket.shutdown(Shutdown::Write)
    }

    /// Hears at most `most` bytes more, each of which must be right; fewer where the stream ends.
    fn hear(&mut self, most: usize) -> std::io::Result<usize> {
        let (seed, mut buffer, before) = (self.seed(false), vec![0; 1 << 16], self.heard);
        while self.heard - before < most {
            let room = buffer.len().min(most - (self.heard - before));
            let n = self.socket.read(&mut buffer[..room])?;
            if n == 0 {
                break;
            }
            let wrong = buffer[..n].iter().enumerate().find(|(i, b)| **b != byte(seed, self.heard + i));
            assert_eq!(wrong, None, "{:?}: a wrong byte after {}", self.plan, self.heard);
            self.heard += n;
        }
        Ok(self.heard - before)
    }

    fn hear_all(&mut self) -> std::io::Result<()> {
        self.hear(usize::MAX).map(|_| ())
    }

    fn run(&mut self, barrier: &Barrier) -> Side {
        let outcome = match (self.plan.kind, self.is_client) {
            (Kind::Both, _) => self.both(),
            (Kind::Request, true) | (Kind::Banner, false) => {
                self.say_all().and_then(|()| self.close()).and_then(|()| self.hear_all())
            }
            (Kind::Request, false) | (Kind::Banner, true) => {
                self.hear_all().and_then(|()| self.say_all()).and_then(|()| self.close())
            }
            (Kind::Together, _) => self.together(barrier),
            (Kind::Reset { client }, is_client) if client == is_client => {
                // closed with bytes unread, or more to come: either way the other end hears of it with a
                // reset
                return match self.hear(self.len(false)) {
                    Ok(_) => (self.heard, End::Left),
                    Err(e) => (self.heard, ended(&e)),
                };
            }
            (Kind::Reset { .. }, _) => self.say(0, usize::MAX),
            (Kind::Messages(n), true) => self.ask(n),
            (Kind::Messages(_), false) => self.echo(),
            (Kind::Closed, _) => Ok(()),
        };
        (self.heard, outcome.map_or_else(|e| ended(&e), |()| End::Eof))
    }

    fn both(&mut self) -> std::io::Result<()> {
        let writer =
            Self { socket: self.socket.try_clone()?, plan: self.plan, is_client: self.is_client, heard: 0 };
        scope(|scope| {
            let said = scope.spawn(move || writer.say_all().and_then(|()| writer.close()));
            let heard = self.hear_all();
            said.join().expect("no panic").and(heard)
        })
    }

    fn together(&mut self, barrier: &Barrier) -> std::io::Result<()> {
        let writer =
            Self { socket: self.socket.try_clone()?, plan: self.plan, is_client: self.is_client, heard: 0 };
        let both = scope(|scope| {
            let said = scope.spawn(move || writer.say_all());
            let heard = self.hear(self.len(false)).map(|_| ());
            said.join().expect("no panic").and(heard)
        });
        barrier.wait();
        both?;
        self.close()?;
        self.hear_all()
    }

    /// Length of message `i`.
    fn message(&self, i: u32) -> usize {
        1 + usize::from(byte(self.plan.seed, i as usize)) * 4
    }

    fn ask(&mut self, n: u32) -> std::io::Result<()> {
        set_no_delay(&self.socket, true)?;
        let mut at = 0;
        for i in 0..n {
            let len = self.message(i);
            self.say(at, at + len)?;
            let heard = self.hear(len)?;
            assert_eq!(heard, len, "{:?}: message {i}", self.plan);
            at += len;
        }
        self.close()?;
        self.hear_all()
    }

    /// Answers each message with as many bytes of its own.
    fn echo(&mut self) -> std::io::Result<()> {
        set_no_delay(&self.socket, true)?;
        for i in 0.. {
            let before = self.heard;
            if self.hear(self.message(i))? == 0 {
                break;
            }
            self.say(before, self.heard)?;
        }
        self.close()
    }
}

/// Has the conversation; what the client saw, and the server.
pub(crate) fn talk(course: &Course, plan: Plan) -> [Side; 2] {
    let (server, client) = (plan.server, 1 - plan.server);
    let listener = course.at(server, || TcpListener::bind(at(server, plan.v6, 0))).expect("to listen");
    let here = listener.local_addr().expect("an address");
    if plan.kind == Kind::Closed {
        drop(listener);
        let refused = course.at(client, || TcpStream::connect_timeout(&here, CONNECT));
        return [(0, refused.map_or_else(|e| ended(&e), |_| End::Eof)), (0, End::Left)];
    }
    let barrier = Barrier::new(2);
    scope(|both| {
        let answer = both.spawn(|| {
            let (socket, from) = listener.accept().expect("a connection");
            assert_eq!(from.ip(), at(client, plan.v6, 0).ip(), "the server sees the client's own address");
            Talker::new(socket, plan, false).run(&barrier)
        });
        let socket = course.at(client, || TcpStream::connect_timeout(&here, CONNECT));
        let socket = socket.unwrap_or_else(|e| panic!("{plan:?}: to connect: {e}"));
        let asked = Talker::new(socket, plan, true).run(&barrier);
        [asked, answer.join().expect("no panic")]
    })
}
