//! A small DNS forwarder: sends queries from behind the link to a resolver that only answers on this machine.
//!
//! Only the query's id is read and replaced (RFC 5625: a proxy passes on what it does not understand). Memory
//! is bounded: unanswered queries are dropped, the oldest first.

use crate::error::Error;
use bentpipe_os::wait::wait;
use bentpipe_os::{Clock, namespace};
use core::net::{IpAddr, SocketAddr};
use std::collections::VecDeque;
use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

const PORT: u16 = 53;
/// Most unanswered queries.
const MOST: usize = 512;
/// Most TCP connections at a time.
const CONNECTIONS: usize = 16;
/// An idle connection is closed after this time.
const IDLE: Duration = Duration::from_secs(10);
/// Time in which a stop is noticed.
const STEP: bentpipe_base::Duration = bentpipe_base::Duration::from_millis(100);
/// Longest message over UDP.
const LONGEST: usize = 65_535;

/// A running forwarder.
#[derive(Debug)]
pub(crate) struct Forwarder {
    thread: Option<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
}

impl Forwarder {
    /// Listens at `at` in the network `home` and forwards to `resolver` there; `None` if another server
    /// already listens there, which then answers.
    pub(super) fn start(home: &OwnedFd, at: IpAddr, resolver: IpAddr) -> Result<Option<Self>, Error> {
        let open = || {
            let sockets = (UdpSocket::bind((at, PORT))?, TcpListener::bind((at, PORT))?);
            sockets.0.set_nonblocking(true)?;
            sockets.1.set_nonblocking(true)?;
            let here: SocketAddr =
                if resolver.is_ipv4() { ([127, 0, 0, 1], 0).into() } else { ([0_u16; 8], 0).into() };
            let upstream = UdpSocket::bind(here)?;
            upstream.connect((resolver, PORT))?;
            upstream.set_nonblocking(true)?;
            Ok((sockets.0, sockets.1, upstream))
        };
        let fault = |e: io::Error| Error::system("the DNS forwarder", e);
        let opened: io::Result<_> = namespace::in_network(home, open).map_err(|e| fault(e.into()))?;
        let (udp, tcp, upstream) = match opened {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => return Ok(None),
            opened => opened.map_err(fault)?,
        };
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, home) = (Arc::clone(&stop), home.try_clone().map_err(fault)?);
        let thread = Builder::new()
            .name("bentpipe-names".to_owned())
            .spawn(move || serve(&home, &udp, &tcp, &upstream, resolver, &stopped))
            .map_err(fault)?;
        Ok(Some(Self { thread: Some(thread), stop }))
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // no result to read
            let _ = thread.join();
        }
    }
}

fn serve(
    home: &OwnedFd,
    udp: &UdpSocket,
    tcp: &TcpListener,
    upstream: &UdpSocket,
    resolver: IpAddr,
    stop: &AtomicBool,
) {
    // connections to the resolver start in that network
    if namespace::enter_network(home).is_err() {
        return;
    }
    let mut questions = PendingQueries::default();
    let connections = Arc::new(());
    let mut buffer = vec![0; LONGEST];
    let (clock, fds) = (Clock::start(), [udp.as_fd(), upstream.as_fd(), tcp.as_fd()]);
    while !stop.load(Ordering::Relaxed) {
        // an interrupted wait just ends early
        let _ = wait(&fds, Some(clock.now() + STEP), &clock, bentpipe_base::Duration::ZERO);
        while let Ok((length, client)) = udp.recv_from(&mut buffer) {
            if questions.ask(&mut buffer[..length], client) {
                // if lost, the client asks again
                let _ = upstream.send(&buffer[..length]);
            }
        }
        // a resolver that is not running yet causes an error, which is no reason to stop
        while let Ok(length) = upstream.recv(&mut buffer) {
            if let Some(client) = questions.answer(&mut buffer[..length]) {
                let _ = udp.send_to(&buffer[..length], client);
            }
        }
        while let Ok((client, _)) = tcp.accept() {
            // each connection holds one; with too many of them, or without a thread, the client's is closed
            if Arc::strong_count(&connections) <= CONNECTIONS {
                let held = Arc::clone(&connections);
                let carry = move || {
                    let _ = forward_connection(client, resolver);
                    drop(held);
                };
                let _ = Builder::new().name("bentpipe-names".to_owned()).spawn(carry);
            }
        }
    }
}

/// Forwards queries and answers in turn, each after its length (RFC 1035, 4.2.2), until one side closes.
fn forward_connection(mut client: TcpStream, resolver: IpAddr) -> io::Result<()> {
    let mut server = TcpStream::connect_timeout(&SocketAddr::new(resolver, PORT), IDLE)?;
    for stream in [&client, &server] {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(IDLE))?;
        stream.set_write_timeout(Some(IDLE))?;
    }
    let mut message = Vec::new();
    loop {
        pass(&mut client, &mut server, &mut message)?;
        pass(&mut server, &mut client, &mut message)?;
    }
}

fn pass(from: &mut TcpStream, to: &mut TcpStream, message: &mut Vec<u8>) -> io::Result<()> {
    let mut length = [0; 2];
    from.read_exact(&mut length)?;
    message.clear();
    message.extend(length);
    message.resize(2 + usize::from(u16::from_be_bytes(length)), 0);
    from.read_exact(&mut message[2..])?;
    to.write_all(message)
}

#[derive(Debug, Default)]
struct PendingQueries {
    /// Our id, the client's id, the client's address; oldest first.
    waiting: VecDeque<(u16, [u8; 2], SocketAddr)>,
    last: u16,
}

impl PendingQueries {
    /// Replaces a query's id by one of ours; false if it is not a query.
    fn ask(&mut self, question: &mut [u8], client: SocketAddr) -> bool {
        let Some(number) = question.first_chunk_mut::<2>() else { return false };
        if self.waiting.len() == MOST {
            self.waiting.pop_front();
        }
        // The upstream socket is connected within this machine, so the id may be predictable.
        self.last = self.last.wrapping_add(1);
        self.waiting.push_back((self.last, *number, client));
        *number = self.last.to_be_bytes();
        true
    }

    /// Restores the client's id in an answer and returns the client; `None` if nobody waits for it.
    fn answer(&mut self, answer: &mut [u8]) -> Option<SocketAddr> {
        let number = answer.first_chunk_mut::<2>()?;
        let ours = u16::from_be_bytes(*number);
        let place = self.waiting.iter().position(|(n, ..)| *n == ours)?;
        let (_, theirs, client) = self.waiting.remove(place)?;
        *number = theirs;
        Some(client)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_finds_who_asked() {
        let mut questions = PendingQueries::default();
        let client = |n: u16| SocketAddr::from(([10, 55, 0, 1], n));
        let (mut first, mut second) = ([7, 7, 1], [7, 7, 2]);
        assert!(questions.ask(&mut first, client(1)) && questions.ask(&mut second, client(2)));
        assert_ne!(first[..2], second[..2]);
        assert_eq!((questions.answer(&mut second), second), (Some(client(2)), [7, 7, 2]));
        assert_eq!((questions.answer(&mut first), first), (Some(client(1)), [7, 7, 1]));
        assert_eq!(questions.answer(&mut first), None, "an answer is given once");
        assert!(!questions.ask(&mut [1], client(3)) && questions.answer(&mut []).is_none());
    }

    #[test]
    fn questions_without_answers_are_forgotten() {
        let mut questions = PendingQueries::default();
        for n in 0..2 * MOST as u16 {
            assert!(questions.ask(&mut [0; 12], SocketAddr::from(([10, 55, 0, 1], n))));
        }
        assert_eq!(questions.waiting.len(), MOST);
    }

    /// Answers every query with its own bytes and one more, over UDP and TCP.
    fn resolver() {
        let (udp, tcp) =
            (UdpSocket::bind("127.0.0.1:53").unwrap(), TcpListener::bind("127.0.0.1:53").unwrap());
        let over_udp = move || {
            let mut buffer = [0; 600];
            while let Ok((length, client)) = udp.recv_from(&mut buffer) {
                buffer[length] = 1;
                udp.send_to(&buffer[..=length], client).unwrap();
            }
        };
        let over_tcp = move || {
            let (mut client, _) = tcp.accept().unwrap();
            let mut question = [0; 5];
            while client.read_exact(&mut question).is_ok() {
                client.write_all(&[0, 4, question[2], question[3], question[4], 1]).unwrap();
            }
        };
        Builder::new().spawn(over_udp).unwrap();
        Builder::new().spawn(over_tcp).unwrap();
    }

    /// Runs in a network namespace of its own, with the address of a far end.
    fn questions_are_answered() {
        let home = namespace::new_network().unwrap();
        let mut netlink = bentpipe_os::netlink::Netlink::open().unwrap();
        netlink.set_up("lo").unwrap();
        let at = IpAddr::from([10, 55, 0, 1]);
        netlink.add_address("lo", at).unwrap();
        resolver();
        let forwarder = Forwarder::start(&home, at, [127, 0, 0, 1].into()).unwrap().unwrap();
        let client = UdpSocket::bind("0.0.0.0:0").unwrap();
        client.set_read_timeout(Some(IDLE)).unwrap();
        client.connect((at, PORT)).unwrap();
        let mut answer = [0; 8];
        for n in 0..3 {
            client.send(&[7, n, n]).unwrap();
            assert_eq!((client.recv(&mut answer).unwrap(), &answer[..4]), (4, &[7, n, n, 1][..]));
        }
        let mut client = TcpStream::connect((at, PORT)).unwrap();
        client.set_read_timeout(Some(IDLE)).unwrap();
        for n in 0..3 {
            client.write_all(&[0, 3, 7, 7, n]).unwrap();
            let mut answer = [0; 6];
            client.read_exact(&mut answer).unwrap();
            assert_eq!(answer, [0, 4, 7, 7, n, 1]);
        }
        assert!(Forwarder::start(&home, at, [127, 0, 0, 1].into()).unwrap().is_none(), "the place is taken");
        drop(forwarder);
        assert!(Forwarder::start(&home, at, [127, 0, 0, 1].into()).unwrap().is_some(), "it is free again");
    }

    #[test]
    fn a_resolver_of_this_machine_answers_through_the_forwarder() {
        if !rustix::process::geteuid().is_root() {
            println!("SKIPPED a_resolver_of_this_machine_answers_through_the_forwarder: it needs root");
            return;
        }
        // a thread can change its network namespace without affecting others
        Builder::new().spawn(questions_are_answered).unwrap().join().unwrap();
    }
}
