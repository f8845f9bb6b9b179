//! Connections and datagrams between the hosts, checked byte by byte.

use crate::lab::{Lab, at};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(30);

/// Byte `i` of stream `seed`.
fn byte(seed: u64, i: usize) -> u8 {
    let x = (i as u64 ^ seed << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (x >> 32) as u8
}

/// Length of stream `seed`: often zero, one byte, about a packet; sometimes long.
fn length(seed: u64) -> usize {
    let r = (seed + 1).wrapping_mul(0xff51_afd7_ed55_8ccd) >> 33;
    match r % 8 {
        0 => 0,
        1 => 1,
        2 => 1448 + r as usize / 8 % 3,
        3..=6 => (r / 8 % 200_000) as usize,
        _ => (r / 8 % 3_000_000) as usize,
    }
}

/// One end of a conversation: both send at once, each shuts down its side when it is done.
fn talk(mut socket: TcpStream, says: u64, hears: u64) {
    socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    socket.set_write_timeout(Some(PATIENCE)).expect("a timeout");
    let mut writer = socket.try_clone().expect("a second handle");
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let all: Vec<u8> = (0..length(says)).map(|i| byte(says, i)).collect();
            for part in all.chunks(1 << 17) {
                writer.write_all(part).expect("to send");
            }
            writer.shutdown(Shutdown::Write).expect("to close");
        });
        let (mut got, mut buffer) = (0, vec![0; 1 << 16]);
        loop {
            let n = socket.read(&mut buffer).expect("data in time");
            if n == 0 {
                break;
            }
            let wrong = buffer[..n].iter().enumerate().find(|(i, b)| **b != byte(hears, got + i));
            assert_eq!(wrong, None, "stream {hears} at byte {got}");
            got += n;
        }
        assert_eq!(got, length(hears), "stream {hears} ended early or late");
    });
}

/// Runs `n` conversations, four at a time, opened from either side.
pub(crate) fn conversations(lab: &Lab, v6: bool, n: u64) {
    std::thread::scope(|scope| {
        for lane in 0..4 {
            scope.spawn(move || {
                for i in (lane..n).step_by(4) {
                    let server = usize::from(i % 3 != 0);
                    let listener =
                        lab.at(server, || TcpListener::bind(at(server, v6, 0))).expect("to listen");
                    let here = listener.local_addr().expect("an address");
                    std::thread::scope(|both| {
                        both.spawn(|| talk(listener.accept().expect("a connection").0, 2 * i, 2 * i + 1));
                        let socket = lab.at(1 - server, || TcpStream::connect_timeout(&here, PATIENCE));
                        talk(socket.expect("to connect"), 2 * i + 1, 2 * i);
                    });
                }
            });
        }
    });
}

/// A closed port refuses, and a reset in the middle is seen as one.
pub(crate) fn refusals(lab: &Lab, v6: bool) {
    let closed = lab.at(0, || TcpStream::connect_timeout(&at(1, v6, 9), PATIENCE));
    assert_eq!(closed.map(|_| ()).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    let here = at(1, v6, 5009);
    let listener = lab.at(1, || TcpListener::bind(here)).expect("to listen");
    let mut socket = lab.at(0, || TcpStream::connect_timeout(&here, PATIENCE)).expect("to connect");
    socket.set_write_timeout(Some(PATIENCE)).expect("a timeout");
    let (mut server, _) = listener.accept().expect("a connection");
    let error = std::thread::scope(|scope| {
        scope.spawn(move || {
            server.read_exact(&mut [0; 1000]).expect("data");
            // closed with data unread: a reset
        });
        let data = vec![7; 1 << 16];
        loop {
            if let Err(e) = socket.write_all(&data) {
                break e;
            }
        }
    });
    assert!(matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{error}");
}

/// Datagrams of all lengths, fragmented ones too, come back unchanged.
pub(crate) fn datagrams(lab: &Lab, v6: bool) {
    let bound = |host| lab.at(host, || UdpSocket::bind(at(host, v6, 5002))).expect("to bind");
    let (near, far) = (bound(0), bound(1));
    for socket in [&near, &far] {
        socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    }
    near.connect(at(1, v6, 5002)).expect("to connect");
    let mut buffer = vec![0; 1 << 16];
    for len in [0, 1, 1000, 1400, 3000, 9000, 60_000] {
        let data: Vec<u8> = (0..len).map(|i| byte(len as u64, i)).collect();
        near.send(&data).expect("to send");
        let (n, from) = far.recv_from(&mut buffer).expect("a datagram");
        assert_eq!(buffer[..n], data, "{len} bytes there");
        far.send_to(&data, from).expect("to answer");
        let n = near.recv(&mut buffer).expect("an answer");
        assert_eq!(buffer[..n], data, "{len} bytes back");
    }
    // an ICMP error reaches the sender
    let stray = lab.at(0, || UdpSocket::bind(at(0, v6, 5003))).expect("to bind");
    stray.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stray.connect(at(1, v6, 9)).expect("to connect");
    stray.send(b"anybody?").expect("to send");
    assert_eq!(stray.recv(&mut buffer).unwrap_err().kind(), ErrorKind::ConnectionRefused);
}
