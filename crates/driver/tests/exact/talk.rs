//! Conversations between the hosts: each byte is known in advance, and each end reports how it ended.

use crate::course::{Course, at};
use bentpipe_os::tcp::{set_congestion, set_no_delay};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Barrier;
use std::thread::scope;
use std::time::Duration;

/// Read timeout. An outage and the sender's timeouts after it are far shorter.
pub(crate) const PATIENCE: Duration = Duration::from_secs(100);
/// Connect timeout: three SYNs may be lost.
const CONNECT: Duration = Duration::from_secs(40);

/// Order of sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Both send at once; each shuts down its side when it is done.
    Both,
    /// The client sends all and shuts down; then the server answers.
    Request,
    /// The server sends all and shuts down; then the client does.
    Banner,
    /// Both send at once, and both close at the same time.
    Together,
    /// One end, the client or the server, closes in the middle.
    Reset { client: bool },
    /// Small messages, each answered before the next.
    Messages(u32),
    /// Nothing listens at the port.
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
    /// Bytes that the client sends, and the server.
    pub(crate) lens: [usize; 2],
    pub(crate) congestion: &'static str,
}

/// How the connection ended, seen from one end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The other end's stream ended.
    Eof,
    /// The connection was reset.
    Reset,
    /// Nobody listens.
    Refused,
    /// This end closed in the middle.
    Left,
    /// Anything else.
    Other(ErrorKind),
}

/// Bytes received by an end, and how it ended.
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

    /// Sends bytes `from` to `to` of its stream.
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

    /// Receives at most `most` more bytes and checks each; fewer if the stream ends.
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
                // closed with unread data, or with data still to come: both reset the connection
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

    /// Answers each message with one of the same length.
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

/// Runs the conversation; returns what the client saw, and the server.
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
