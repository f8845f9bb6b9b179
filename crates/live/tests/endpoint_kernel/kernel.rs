//! The kernel's side: ordinary sockets in the host's namespace, each in its own thread.

use crate::lab::{Lab, at};
use crate::talk::Content;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

/// Threads of the kernel's applications.
#[derive(Default)]
pub(crate) struct Crowd {
    threads: Vec<JoinHandle<()>>,
    failed: Arc<AtomicBool>,
}

struct Alarm(Arc<AtomicBool>);

impl Drop for Alarm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

impl Crowd {
    /// Starts an application.
    pub(crate) fn start(&mut self, act: impl FnOnce() + Send + 'static) {
        let alarm = Alarm(Arc::clone(&self.failed));
        let run = move || {
            let _alarm = alarm;
            act();
        };
        self.threads.push(Builder::new().spawn(run).expect("a thread"));
    }

    /// True if one has failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// True if all are done, or one has failed.
    pub(crate) fn is_over(&self) -> bool {
        self.has_failed() || self.threads.iter().all(JoinHandle::is_finished)
    }

    /// Fails if one has failed, without waiting for the others.
    pub(crate) fn join(self) {
        assert!(!self.has_failed(), "an application on the kernel's side failed");
        for thread in self.threads {
            thread.join().expect("no panic");
        }
    }
}

/// A socket that listens in the kernel's host. Its connections use CUBIC, whatever the machine's default is.
pub(crate) fn listen(lab: &Lab, local: SocketAddr) -> TcpListener {
    let listener = lab.at_kernel(|| TcpListener::bind(local)).expect("to listen");
    cubic(&listener);
    listener
}

/// Accepts the next connection.
pub(crate) fn accept(listener: &TcpListener) -> TcpStream {
    let (stream, _) = listener.accept().expect("a caller");
    patient(stream)
}

/// Connects to the engine from the host's namespace; blocks the calling thread.
pub(crate) fn call(host: &Arc<std::os::fd::OwnedFd>, v6: bool, port: u16) -> std::io::Result<TcpStream> {
    let to = at(crate::lab::ENGINE, v6, port);
    let connect = || TcpStream::connect_timeout(&to, PATIENCE);
    bentpipe_os::namespace::in_network(host.as_ref(), connect).expect("a namespace we made").map(patient)
}

fn patient(stream: TcpStream) -> TcpStream {
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
    cubic(&stream);
    stream
}

fn cubic(socket: &impl std::os::fd::AsFd) {
    let _ = bentpipe_os::tcp::set_congestion(socket, "cubic");
}

/// Sends `says` and receives `hears` at the same time, and shuts down after the last byte.
pub(crate) fn talk(stream: &TcpStream, says: (Content, u64), hears: (Content, u64)) {
    std::thread::scope(|scope| {
        scope.spawn(|| say(stream, says.0, 0, says.1));
        hear(stream, hears.0, hears.1);
    });
}

/// Sends bytes `from` to `to` of a stream, then shuts down this side.
pub(crate) fn say(mut stream: &TcpStream, content: Content, from: u64, to: u64) {
    let mut buffer = vec![0; 65_536];
    let mut at = from;
    while at < to {
        let len = (to - at).min(buffer.len() as u64) as usize;
        content.fill(at, &mut buffer[..len]);
        stream.write_all(&buffer[..len]).expect("to write");
        at += len as u64;
    }
    stream.shutdown(Shutdown::Write).expect("to close one side");
}

/// Receives a stream and checks its bytes and its length.
pub(crate) fn hear(mut stream: &TcpStream, content: Content, len: u64) {
    let mut buffer = vec![0; 65_536];
    let mut at = 0;
    loop {
        let n = stream.read(&mut buffer).expect("bytes in time");
        if n == 0 {
            break;
        }
        content.check(at, &buffer[..n]);
        at += n as u64;
    }
    assert_eq!(at, len, "the end of the stream comes after its last byte");
}
