//! The control socket: replies, and misbehaving clients.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use bentpipe_service::{Client, ClientError, Server};
use serde::{Deserialize, Serialize};
use std::env;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case", deny_unknown_fields)]
enum Request {
    Show,
    Reset { on: u32 },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
enum Reply {
    State { title: String },
}

impl bentpipe_service::Reply for Reply {
    type Request = Request;
    const SERVICE: &'static str = "bench";
}

/// A server with a fake service, which runs until it is dropped.
struct Bench {
    path: PathBuf,
    stop: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<usize>>,
}

fn path(name: &str) -> PathBuf {
    env::temp_dir().join(format!("bentpipe-test-{}-{name}.sock", process::id()))
}

impl Bench {
    /// `weight` is the length of its title in bytes.
    fn new(name: &str, weight: usize) -> Self {
        let path = path(name);
        let mut server = Server::bind(&path).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let ours = Arc::clone(&stop);
        let title = "x".repeat(weight);
        let serve = move || {
            let mut answered = 0;
            while !ours.load(Ordering::Relaxed) {
                let fds = server.fds();
                let mut list: Vec<_> = fds
                    .iter()
                    .map(|fd| rustix::event::PollFd::from_borrowed_fd(*fd, rustix::event::PollFlags::IN))
                    .collect();
                let wait = rustix::event::Timespec { tv_sec: 0, tv_nsec: 5_000_000 };
                rustix::event::poll(&mut list, Some(&wait)).unwrap();
                drop(list);
                drop(fds);
                server.serve(&mut |request| {
                    answered += 1;
                    match request {
                        Request::Show => Ok(Reply::State { title: title.clone() }),
                        Request::Reset { .. } => Err("this service is made up".into()),
                    }
                });
            }
            answered
        };
        let thread = thread::Builder::new().spawn(serve).unwrap();
        Self { path, stop, thread: Some(thread) }
    }

    fn client(&self) -> Client<Reply> {
        Client::connect(&self.path).unwrap()
    }

    fn raw(&self) -> UnixStream {
        let stream = UnixStream::connect(&self.path).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    /// Stops it; returns how many requests it answered.
    fn end(mut self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

fn answer(stream: &UnixStream) -> String {
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    line
}

#[test]
fn a_client_asks_again_and_again_and_the_file_goes_with_the_server() {
    let bench = Bench::new("plain", 10);
    let mode = fs::metadata(&bench.path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut client = bench.client();
    for _ in 0..50 {
        let Ok(Reply::State { title }) = client.ask(&Request::Show, Some) else { panic!("no state") };
        assert_eq!(title.len(), 10);
    }
    let refused = client.ask(&Request::Reset { on: 1 }, Some).unwrap_err();
    assert_eq!(refused.to_string(), "this service is made up");
    let path = bench.path.clone();
    assert_eq!(bench.end(), 51);
    assert!(!path.exists());
    assert!(matches!(client.ask(&Request::Show, Some), Err(ClientError::Silent { .. })));
    assert!(matches!(Client::<Reply>::connect(&path), Err(ClientError::Silent { .. })));
}

#[test]
fn an_invalid_request_is_refused_and_the_next_is_answered() {
    let bench = Bench::new("garbage", 10);
    let mut stream = bench.raw();
    for garbage in
        ["", "{", "[[[[", "{\"request\":\"fly\"}", "\u{0}\u{1}", "{\"request\":\"reset\",\"on\":{\"x\":1}}"]
    {
        stream.write_all(format!("{garbage}\n").as_bytes()).unwrap();
        let line = answer(&stream);
        assert!(line.contains("invalid request"), "{garbage}: {line}");
    }
    stream.write_all(&[0xff, 0xfe, b'\n']).unwrap();
    assert!(answer(&stream).contains("invalid request"));
    // one request in two parts, and two requests at once
    stream.write_all(b"{\"request\":").unwrap();
    thread::yield_now();
    stream.write_all(b"\"show\"}\n{\"request\":\"show\"}\n").unwrap();
    let mut lines = BufReader::new(&stream).lines();
    for _ in 0..2 {
        assert!(lines.next().unwrap().unwrap().contains("\"state\""));
    }
    bench.end();
}

#[test]
fn an_endless_line_is_cut_off_and_others_are_served() {
    let bench = Bench::new("endless", 10);
    let mut stream = bench.raw();
    // the server may disconnect before all is written
    let _ = stream.write_all(&vec![b'{'; 1 << 20]);
    let mut said = Vec::new();
    let _ = stream.read_to_end(&mut said);
    assert!(said.len() < 1000);
    assert!(matches!(bench.client().ask(&Request::Show, Some), Ok(Reply::State { .. })));
    bench.end();
}

#[test]
fn a_client_that_takes_nothing_holds_nobody_up_and_is_not_read_from() {
    let bench = Bench::new("slow", 300_000);
    let mut slow = bench.raw();
    slow.set_nonblocking(true).unwrap();
    let mut sent = 0;
    for _ in 0..10_000 {
        match slow.write(b"{\"request\":\"show\"}\n") {
            Ok(n) => sent += n,
            Err(_) => break,
        }
    }
    assert!(sent > 1000);
    let mut other = bench.client();
    for _ in 0..5 {
        assert!(matches!(other.ask(&Request::Show, Some), Ok(Reply::State { .. })));
    }
    let answered = bench.end();
    // a socket buffers about 200 KB: hardly any of the slow client's requests was answered
    assert!(answered < 5 + 10, "{answered}");
}

#[test]
fn too_many_clients_push_out_the_silent_ones() {
    let bench = Bench::new("many", 10);
    let silent: Vec<UnixStream> = (0..100).map(|_| bench.raw()).collect();
    assert!(matches!(bench.client().ask(&Request::Show, Some), Ok(Reply::State { .. })));
    drop(silent);
    bench.end();
}

#[test]
fn a_socket_left_over_is_replaced_and_one_in_use_is_not() {
    let path = path("leftover");
    // dropping a listener leaves its file
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let first = Server::bind(&path).unwrap();
    let error = Server::bind(&path).unwrap_err().to_string();
    assert!(error.contains("cannot be made") && error.contains("leftover"), "{error}");
    drop(first);
    assert!(!path.exists());
    let long = env::temp_dir().join("x".repeat(200));
    assert!(Server::bind(&long).is_err());
}

#[test]
fn a_reply_of_another_version_is_said_to_be_unexpected() {
    let bench = Bench::new("version", 10);
    let said = |error: ClientError| error.to_string();
    let wanted = "unexpected reply; client and bench versions may differ";
    assert_eq!(said(bench.client().ask(&Request::Show, |_| None::<()>).unwrap_err()), wanted);
    bench.end();
    let path = path("foreign");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let mut client = Client::<Reply>::connect(&path).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    server.write_all(b"{\"reply\":\"of tomorrow\"}\n").unwrap();
    assert_eq!(said(client.ask(&Request::Show, Some).unwrap_err()), wanted);
    fs::remove_file(path).unwrap();
}
