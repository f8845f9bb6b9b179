//! Streams of bytes between sockets.

use std::io::Read as _;
use std::net::TcpStream;
use std::thread::{Builder, JoinHandle};

/// Bytes that differ from connection to connection.
pub(crate) fn content(seed: u32, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2_654_435_761) | 1;
    let next = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..len).map(next).collect()
}

/// Receives a stream and its end.
pub(crate) fn receive(mut stream: TcpStream) -> JoinHandle<Vec<u8>> {
    let read = move || {
        let mut all = Vec::new();
        stream.read_to_end(&mut all).expect("a clean end");
        all
    };
    Builder::new().spawn(read).expect("a thread")
}
