//! Answers only `GET` and `HEAD` of `/metrics`, one request per connection (HTTP/1.1, RFC 9112, with
//! `Connection: close`).
//!
//! Limits on the number of clients, the length of requests and the time keep clients from blocking a
//! service or filling its memory.

use crate::metrics::CONTENT_TYPE;
use bentpipe_os::clock::monotonic;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd as _, BorrowedFd};

const LONGEST: usize = 8 << 10;
/// Maximum number of clients; further ones are rejected.
const CLIENTS: usize = 8;
/// Maximum time for a client's request and reading the answer, in nanoseconds.
const PATIENCE: u64 = 5_000_000_000;

/// A listener for Prometheus.
#[derive(Debug)]
pub struct Http {
    listener: TcpListener,
    clients: Vec<Client>,
}

#[derive(Debug)]
struct Client {
    stream: TcpStream,
    input: Vec<u8>,
    output: Vec<u8>,
    came: u64,
}

impl Http {
    /// Starts to listen.
    ///
    /// # Errors
    /// When the address is in use or not of this machine.
    pub fn bind(at: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(at)?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, clients: Vec::new() })
    }

    /// Descriptors to wait for: call [`Http::serve`] when one of them is readable.
    pub fn fds(&self) -> Vec<BorrowedFd<'_>> {
        let waiting = self.clients.iter().filter(|c| c.output.is_empty()).map(|c| c.stream.as_fd());
        [self.listener.as_fd()].into_iter().chain(waiting).collect()
    }

    /// True if clients are connected: call [`Http::serve`] again soon even if nothing is readable.
    pub const fn is_behind(&self) -> bool {
        !self.clients.is_empty()
    }

    /// Answers pending requests with `page`. Only `page` may block.
    pub fn serve(&mut self, page: &mut dyn FnMut() -> String) {
        for _ in 0..CLIENTS {
            // errors of a new client are ignored
            let Ok((stream, _)) = self.listener.accept() else { break };
            if self.clients.len() < CLIENTS && stream.set_nonblocking(true).is_ok() {
                let (input, output) = (Vec::new(), Vec::new());
                self.clients.push(Client { stream, input, output, came: monotonic() });
            }
        }
        let now = monotonic();
        self.clients.retain_mut(|client| client.serve(now, page));
    }
}

impl Client {
    /// Serves a client; returns false when it is to be disconnected.
    fn serve(&mut self, now: u64, page: &mut dyn FnMut() -> String) -> bool {
        if now.saturating_sub(self.came) > PATIENCE {
            return false;
        }
        if self.output.is_empty() {
            match self.read() {
                Ok(true) => self.output = answer(&self.input, page),
                Ok(false) => return true,
                Err(_) => return false,
            }
        }
        while !self.output.is_empty() {
            match self.stream.write(&self.output) {
                Ok(n) if n > 0 => {
                    self.output.drain(..n);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                _ => return false,
            }
        }
        false
    }

    /// Reads from the client; true when its request header is complete, or longer than the maximum.
    fn read(&mut self) -> io::Result<bool> {
        let mut part = [0; 2048];
        loop {
            if self.input.windows(4).any(|w| w == b"\r\n\r\n") || self.input.len() > LONGEST {
                return Ok(true);
            }
            match self.stream.read(&mut part) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => self.input.extend_from_slice(&part[..n]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

fn answer(request: &[u8], page: &mut dyn FnMut() -> String) -> Vec<u8> {
    let line = request.split(|b| *b == b'\r').next().unwrap_or_default();
    let mut words = line.split(|b| *b == b' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = target.split(|b| *b == b'?').next().unwrap_or_default();
    let (status, body) = match (method, path) {
        _ if request.len() > LONGEST => ("431 Request Header Fields Too Large", String::new()),
        (b"GET" | b"HEAD", b"/metrics") => ("200 OK", page()),
        (b"GET" | b"HEAD", _) => ("404 Not Found", "metrics are at /metrics\n".to_owned()),
        _ => ("405 Method Not Allowed", String::new()),
    };
    let kind = if status.starts_with("200") { CONTENT_TYPE } else { "text/plain; charset=utf-8" };
    let mut out = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    if method != b"HEAD" {
        out += &body;
    }
    out.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(request: &[u8]) -> String {
        let mut http = Http::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let mut client = TcpStream::connect(http.listener.local_addr().unwrap()).unwrap();
        client.write_all(request).unwrap();
        client.set_nonblocking(true).unwrap();
        let mut got = Vec::new();
        loop {
            http.serve(&mut || "a 1\n".to_owned());
            let mut part = [0; 1000];
            match client.read(&mut part) {
                Ok(0) => break,
                Ok(n) => got.extend_from_slice(&part[..n]),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => std::thread::yield_now(),
                // the unread part of a long request causes a RST
                Err(_) => break,
            }
        }
        assert!(http.clients.is_empty());
        String::from_utf8(got).unwrap()
    }

    #[test]
    fn metrics_are_given_and_nothing_else() {
        let page = asked(b"GET /metrics?x=1 HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(page.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4"), "{page}");
        assert!(page.contains("Content-Length: 4\r\n") && page.ends_with("\r\n\r\na 1\n"), "{page}");
        assert!(asked(b"HEAD /metrics HTTP/1.1\r\n\r\n").ends_with("\r\n\r\n"));
        assert!(asked(b"GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
        assert!(asked(b"POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
        assert!(asked(b"\r\n\r\n").starts_with("HTTP/1.1 405 "));
        assert!(asked(&[b'x'; LONGEST + 1]).starts_with("HTTP/1.1 431 "));
    }

    #[test]
    fn silent_clients_take_no_room_for_ever() {
        let mut http = Http::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let at = http.listener.local_addr().unwrap();
        let silent: Vec<_> = (0..20).map(|_| TcpStream::connect(at).unwrap()).collect();
        for _ in 0..5 {
            http.serve(&mut String::new);
        }
        assert_eq!(http.clients.len(), CLIENTS);
        for client in &mut http.clients {
            client.came = client.came.saturating_sub(PATIENCE + 1);
        }
        http.serve(&mut String::new);
        assert!(http.clients.is_empty());
        drop(silent);
    }
}
