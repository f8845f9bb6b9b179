//! Two network namespaces with a veth between them, a sender in one and a receiver in the other.

use bentpipe_os::{namespace, socket};
use core::net::{IpAddr, SocketAddr};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Sender and receiver, in both IP versions.
const ENDS: [[&str; 2]; 2] = [["10.231.0.1", "10.231.0.2"], ["fd31::1", "fd31::2"]];
/// The port at which packets are lost as often as a byte in 5000 says, and the next, where 3 in 10 are.
pub(crate) const PORT: u16 = 9000;

/// In a thousand, at [`PORT`] and the one after it.
const LOSS: [u32; 2] = [20, 300];

/// When how many bytes had arrived.
type Samples = Arc<Mutex<Vec<(Instant, u64)>>>;

pub(crate) fn run(command: &str) {
    let mut words = command.split_whitespace();
    let status = Command::new(words.next().unwrap()).args(words).status().unwrap();
    assert!(status.success(), "{command}");
}

/// Address and port of an end: 0 sends.
pub(crate) fn end(v6: bool, end: usize, port: u16) -> SocketAddr {
    let address: IpAddr = ENDS[usize::from(v6)][end].parse().unwrap();
    SocketAddr::from((address, port))
}

/// Lives in a namespace of its own, in which it must be made; the thread stays there.
pub(crate) struct Rig {
    samples: Samples,
}

/// One end of the link.
fn set_up(interface: &str, addresses: [&str; 2]) {
    run("ip link set lo up");
    run(&format!("ip addr add {}/24 dev {interface}", addresses[0]));
    run(&format!("ip addr add {}/64 dev {interface} nodad", addresses[1]));
    run(&format!("ip link set {interface} up"));
}

/// Reads all that comes, over one connection after the other.
fn receive(listener: &TcpListener, samples: &Samples) {
    let mut buffer = vec![0; 1 << 20];
    for from in listener.incoming() {
        let (mut from, mut bytes) = (from.unwrap(), 0);
        samples.lock().unwrap().clear();
        while let Ok(n @ 1..) = from.read(&mut buffer) {
            bytes += n as u64;
            samples.lock().unwrap().push((Instant::now(), bytes));
        }
    }
}

fn receiver(ready: &Sender<u32>, go: &Receiver<()>, samples: &Samples) {
    namespace::new_network().unwrap();
    ready.send(rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()).unwrap();
    go.recv().unwrap();
    set_up("vb", [ENDS[0][1], ENDS[1][1]]);
    let rule = |(i, loss)| {
        let port = usize::from(PORT) + i;
        format!("tcp dport {port} meta length > 200 numgen random mod 1000 < {loss} drop\n")
    };
    let rules: String = LOSS.into_iter().enumerate().map(rule).collect();
    let chain = format!("chain c {{\ntype filter hook input priority 0\n{rules}}}\n");
    bentpipe_os::nft::run(&format!("table inet loss {{\n{chain}}}\n")).unwrap();
    let listeners = [false, true].map(|v6| (0..2).map(move |i| TcpListener::bind(end(v6, 1, PORT + i))));
    for listener in listeners.into_iter().flatten() {
        let (listener, samples) = (listener.unwrap(), Arc::clone(samples));
        thread::spawn(move || receive(&listener, &samples));
    }
    ready.send(0).unwrap();
}

impl Rig {
    pub(crate) fn new() -> Self {
        let samples = Samples::default();
        let ((ready, is_ready), (go, may_go), shared) = (channel(), channel(), Arc::clone(&samples));
        thread::spawn(move || receiver(&ready, &may_go, &shared));
        namespace::new_network().unwrap();
        let thread = is_ready.recv().unwrap();
        run(&format!("ip link add name va type veth peer name vb netns {thread}"));
        run("ip link set va gso_max_segs 1"); // each packet is lost or not
        go.send(()).unwrap();
        set_up("va", [ENDS[0][0], ENDS[1][0]]);
        is_ready.recv().unwrap();
        Self { samples }
    }

    /// Mean rate in Mbit/s at which bytes arrived in the last `seconds`.
    pub(crate) fn rate(&self, seconds: f64) -> f64 {
        let (now, samples) = (Instant::now(), self.samples.lock().unwrap());
        let is_late = |(at, _): &&(Instant, u64)| now.duration_since(*at).as_secs_f64() <= seconds;
        let ((t0, b0), (t1, b1)) = (samples.iter().find(is_late).unwrap(), samples.last().unwrap());
        (b1 - b0) as f64 * 8e-6 / t1.duration_since(*t0).as_secs_f64()
    }
}

/// Connects from this port to the receiver's.
pub(crate) fn connect(v6: bool, from: u16, to: u16) -> TcpStream {
    let (local, remote) = (end(v6, 0, from), end(v6, 1, to));
    let stream = socket::stream(&remote).unwrap();
    socket::bind(&stream, &local).unwrap();
    socket::connect(&stream, &remote).unwrap();
    let stream = TcpStream::from(stream);
    stream.set_nonblocking(false).unwrap();
    stream
}

/// Writes for this long; calls `each` every 200 ms.
pub(crate) fn write(to: &mut TcpStream, seconds: f64, mut each: impl FnMut()) {
    let (start, block) = (Instant::now(), vec![7; 32 << 10]);
    let mut next = start;
    while start.elapsed().as_secs_f64() < seconds {
        to.write_all(&block).unwrap();
        if Instant::now() >= next {
            each();
            next = Instant::now() + Duration::from_millis(200);
        }
    }
}
