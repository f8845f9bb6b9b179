//! TCP streams and UDP datagrams between the two hosts, checked byte by byte.

use crate::lab::{Lab, address};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

pub(crate) const BYTES: usize = 20 << 20;
const PATIENCE: Option<Duration> = Some(Duration::from_secs(20));
/// Datagrams sent before waiting for the receiver's acknowledgment.
const WINDOW: usize = 40;
/// Payload of a datagram: divides no buffer size, so that the last segment of a super-packet is shorter.
pub(crate) const DATAGRAM: usize = 1399;

/// Byte `i` of every stream: no two packets have the same content.
fn pattern(i: usize) -> u8 {
    let i = i as u64;
    ((i ^ (i >> 8).wrapping_mul(0x9e37_79b9)).wrapping_mul(0xff51_afd7) >> 16) as u8
}

fn stream(from: usize, len: usize) -> Vec<u8> {
    (from..from + len).map(pattern).collect()
}

/// Sends `bytes` bytes, and a few bytes back after the other side has closed.
pub(crate) fn tcp(lab: &Lab, v6: bool, bytes: usize) {
    let listener = lab.at(1, || TcpListener::bind(SocketAddr::new(address(1, v6), 5001))).expect("to listen");
    std::thread::scope(|scope| {
        let server = scope.spawn(|| {
            let (mut socket, _) = listener.accept().expect("a connection");
            socket.set_read_timeout(PATIENCE).expect("a timeout");
            let mut buffer = vec![0; 1 << 16];
            let mut at = 0;
            loop {
                let n = socket.read(&mut buffer).expect("data in time");
                if n == 0 {
                    break;
                }
                let wrong = buffer[..n].iter().enumerate().find(|(i, b)| **b != pattern(at + i));
                assert_eq!(wrong, None, "at byte {at}");
                at += n;
            }
            socket.write_all(&(at as u64).to_be_bytes()).expect("to answer");
        });
        let to = SocketAddr::new(address(1, v6), 5001);
        let mut socket =
            lab.at(0, || TcpStream::connect_timeout(&to, Duration::from_secs(20))).expect("to connect");
        socket.set_read_timeout(PATIENCE).expect("a timeout");
        socket.set_write_timeout(PATIENCE).expect("a timeout");
        for at in (0..bytes).step_by(1 << 18) {
            socket.write_all(&stream(at, (1 << 18).min(bytes - at))).expect("to send");
        }
        socket.shutdown(std::net::Shutdown::Write).expect("to close");
        let mut answer = [0; 8];
        socket.read_exact(&mut answer).expect("an answer");
        assert_eq!(u64::from_be_bytes(answer), bytes as u64);
        server.join().expect("an intact stream");
    });
}

/// Sends `bytes` bytes in datagrams, each window acknowledged; `gso` passes 40 to the kernel at once.
pub(crate) fn udp(lab: &Lab, v6: bool, gso: bool, bytes: usize) {
    let bound =
        |host| lab.at(host, || UdpSocket::bind(SocketAddr::new(address(host, v6), 5002))).expect("to bind");
    let (near, far) = (bound(0), bound(1));
    near.connect(SocketAddr::new(address(1, v6), 5002)).expect("to connect");
    for socket in [&near, &far] {
        socket.set_read_timeout(PATIENCE).expect("a timeout");
    }
    if gso && !segment(&near, DATAGRAM as i32) {
        println!("SKIPPED datagrams cut by the kernel: it has no UDP_SEGMENT");
        return;
    }
    std::thread::scope(|scope| {
        let server = scope.spawn(|| {
            let mut buffer = vec![0; 1 << 16];
            let (mut at, mut count) = (0, 0);
            while at < bytes {
                let (n, from) = far.recv_from(&mut buffer).expect("data in time");
                assert_eq!(n, DATAGRAM.min(bytes - at), "a datagram of another length at byte {at}");
                assert_eq!(buffer[..n], stream(at, n), "at byte {at}");
                at += n;
                count += 1;
                if count % WINDOW == 0 || at == bytes {
                    far.send_to(&(at as u64).to_be_bytes(), from).expect("to answer");
                }
            }
        });
        let mut at = 0;
        while at < bytes {
            let window = (WINDOW * DATAGRAM).min(bytes - at);
            let data = stream(at, window);
            if gso {
                assert_eq!(near.send(&data).expect("to send"), window);
            } else {
                for part in data.chunks(DATAGRAM) {
                    near.send(part).expect("to send");
                }
            }
            at += window;
            let mut answer = [0; 8];
            near.recv(&mut answer).expect("an answer in time");
            assert_eq!(u64::from_be_bytes(answer), at as u64);
        }
        server.join().expect("intact datagrams");
    });
}

/// Lets the kernel segment sent data into datagrams of this size (udp(7)).
#[allow(unsafe_code, reason = "UDP_SEGMENT has no safe wrapper")]
fn segment(socket: &UdpSocket, size: i32) -> bool {
    use std::os::fd::AsRawFd;
    let len = size_of::<i32>() as libc::socklen_t;
    // SAFETY: `size` lives during the call and `len` is its size.
    let done = unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_UDP, libc::UDP_SEGMENT, (&raw const size).cast(), len)
    };
    done == 0
}
