//! Streams between kernel hosts whose every byte is checked. The receiver opens the connection and says which
//! stream it wants, and how long.

use crate::Outcome;
use crate::stats::median;
use rustix::net::sockopt::set_tcp_congestion;
use std::fmt;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Builder, JoinHandle};
use std::time::{Duration, Instant};

const PIECE: usize = 1 << 16;
/// Interval of the goodput over time, s.
const STEP_S: f64 = 0.2;
/// A stream without data for this long has failed.
const PATIENCE: Duration = Duration::from_secs(150);
/// Time between two looks for a new connection.
const LOOK: Duration = Duration::from_millis(2);
/// Stack size of a thread that only copies.
pub const STACK: usize = 1 << 18;

/// A stream that ended with a clean end.
#[derive(Clone, Debug, Default)]
pub struct TransferRecord {
    /// True if every byte was right and the stream ended after the last.
    pub intact: bool,
    /// Number of bytes.
    pub bytes: u64,
    /// Time from the call to the end, s.
    pub seconds: f64,
    /// Time from the call to the open connection, s.
    pub opened: f64,
    /// Time from the call to the first bytes, s.
    pub first: f64,
    /// Longest time without a byte, the opening included, s.
    pub silent: f64,
    /// Bytes in each interval since the call.
    pub intervals: Vec<u64>,
}

impl TransferRecord {
    /// A word for a figure if it is not intact.
    pub const fn damage(&self) -> &'static str {
        if self.intact { "" } else { " NOT INTACT" }
    }

    /// Goodput between two times, s since the opening; bit/s.
    pub fn goodput(&self, from: f64, to: f64) -> f64 {
        let (first, last) = ((from / STEP_S) as usize, (to / STEP_S) as usize);
        let bytes: u64 = self.intervals.iter().take(last).skip(first).sum();
        bytes as f64 * 8.0 / (last.saturating_sub(first) as f64 * STEP_S)
    }

    /// The first time after `from` at which two seconds with this goodput start, s since `from`.
    pub fn reaches(&self, bps: f64, from: f64) -> Option<f64> {
        let end = self.intervals.len() as f64 * STEP_S;
        let mut times = (0..).map(|i| from + f64::from(i) * STEP_S).take_while(|t| t + 2.0 < end);
        times.find(|t| self.goodput(*t, t + 2.0) >= bps).map(|t| t - from)
    }

    /// The lowest interval between two times, as a share of the median of the `before` seconds before them.
    pub fn lowest_share(&self, from: f64, to: f64, before: f64) -> f64 {
        let part = |from: f64, to: f64| {
            let (first, last) = ((from / STEP_S).ceil() as usize, (to / STEP_S) as usize);
            self.intervals.iter().take(last).skip(first).map(|n| *n as f64).collect::<Vec<_>>()
        };
        let usual = median(&part(from - before, from));
        part(from, to).into_iter().fold(f64::INFINITY, f64::min) / usual
    }
}

/// A stream that ended with an error.
#[derive(Debug)]
pub struct Broken {
    /// Bytes before it.
    pub after: u64,
    /// The error.
    pub error: io::Error,
    /// False if one of these bytes was wrong.
    pub intact: bool,
}

impl Broken {
    /// True if the connection was reset. Linux calls a reset in the handshake a refusal.
    pub fn is_reset(&self) -> bool {
        let kind = self.error.kind();
        matches!(kind, ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionRefused)
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "after {} bytes: {}", self.after, self.error)
    }
}

/// Fills `out` with stream `stream` from byte `at`. The contents do not repeat.
fn fill(stream: u32, at: u64, out: &mut [u8]) {
    for (i, byte) in out.iter_mut().enumerate() {
        let position = at + i as u64;
        let mut word = (u64::from(stream) << 40 ^ position >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // the finisher of SplitMix64 (Steele, Lea, Flood, 2014)
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        *byte = (word ^ word >> 31).to_be_bytes()[(position & 7) as usize];
    }
}

/// Opens a listener in the namespace of the calling thread. Its connections use the congestion control `tcp`
/// of the kernel.
pub fn listen(at: SocketAddr, tcp: &str) -> Outcome<TcpListener> {
    let listener = TcpListener::bind(at).map_err(|e| format!("{at}: {e}"))?;
    // accepted connections inherit it
    set_tcp_congestion(&listener, tcp).map_err(|e| format!("{tcp}: {e}"))?;
    Ok(listener)
}

/// Serves streams until `n` have started, or until those who open them have `ended`: one may have failed to
/// open. A thread each, which says how it ended.
pub fn serve(
    listener: &TcpListener,
    n: usize,
    ended: &AtomicBool,
) -> Outcome<Vec<JoinHandle<io::Result<()>>>> {
    let text = |e: io::Error| format!("sending: {e}");
    listener.set_nonblocking(true).map_err(text)?;
    let mut all = Vec::new();
    while all.len() < n {
        // read before a look at the listener, so that none that came before it is left out
        let is_over = ended.load(Ordering::Acquire);
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false).map_err(text)?;
                all.push(Builder::new().stack_size(STACK).spawn(move || send(stream)).map_err(text)?);
            }
            Err(e) if e.kind() != ErrorKind::WouldBlock => return Err(text(e)),
            Err(_) if is_over => break,
            Err(_) => thread::sleep(LOOK),
        }
    }
    Ok(all)
}

/// Sends the stream that the receiver asks for, and waits until it has closed the connection.
pub fn send(mut stream: TcpStream) -> io::Result<()> {
    let (mut number, mut bytes) = ([0; 4], [0; 8]);
    stream.read_exact(&mut number)?;
    stream.read_exact(&mut bytes)?;
    let (number, bytes) = (u32::from_be_bytes(number), u64::from_be_bytes(bytes));
    let (mut piece, mut at) = (vec![0; PIECE], 0);
    while at < bytes {
        let len = (bytes - at).min(PIECE as u64) as usize;
        fill(number, at, &mut piece[..len]);
        stream.write_all(&piece[..len])?;
        at += len as u64;
    }
    stream.shutdown(Shutdown::Write)?;
    stream.read(&mut piece).map(drop)
}

/// Receives stream `number` of this length and checks it.
pub fn receive(to: SocketAddr, number: u32, bytes: u64) -> Result<TransferRecord, Broken> {
    let start = Instant::now();
    let seconds = || start.elapsed().as_secs_f64();
    let mut record = TransferRecord { intact: true, ..TransferRecord::default() };
    let broken =
        |record: &TransferRecord, error| Broken { after: record.bytes, intact: record.intact, error };
    let open = || {
        let mut stream = TcpStream::connect_timeout(&to, PATIENCE)?;
        let opened = seconds();
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(&[&number.to_be_bytes()[..], &bytes.to_be_bytes()].concat())?;
        Ok((stream, opened))
    };
    let (mut stream, opened) = open().map_err(|error| broken(&record, error))?;
    record.opened = opened;
    let (mut got, mut wanted) = (vec![0; PIECE], vec![0; PIECE]);
    let mut last = 0.0;
    loop {
        let n = match stream.read(&mut got) {
            Ok(0) => break,
            Ok(n) => n,
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(broken(&record, error)),
        };
        if record.bytes == 0 {
            record.first = seconds();
        }
        fill(number, record.bytes, &mut wanted[..n]);
        record.intact &= got[..n] == wanted[..n];
        record.bytes += n as u64;
        let now = seconds();
        record.silent = record.silent.max(now - last);
        last = now;
        let interval = (now / STEP_S) as usize;
        record.intervals.resize(record.intervals.len().max(interval + 1), 0);
        record.intervals[interval] += n as u64;
    }
    record.seconds = seconds();
    record.silent = record.silent.max(record.seconds - last);
    record.intact &= record.bytes == bytes;
    Ok(record)
}

/// Address and port, from their text.
pub fn endpoint(address: &str, port: u16) -> Outcome<SocketAddr> {
    let address: IpAddr = address.parse().map_err(|_| format!("{address}: no address"))?;
    Ok(SocketAddr::new(address, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_course_is_judged_by_its_intervals() {
        // 1 Mbyte/s, nothing for a second from 4 s on, a low interval at 8 s
        let mut intervals = vec![200_000; 60];
        intervals[20..25].fill(0);
        intervals[40] = 80_000;
        let course = TransferRecord { intact: true, seconds: 12.0, intervals, ..TransferRecord::default() };
        assert!((course.goodput(0.0, 4.0) - 8e6).abs() < 1.0);
        assert!((course.reaches(7.9e6, 4.0).unwrap() - 1.0).abs() < 1e-9);
        assert_eq!(course.reaches(9e6, 0.0), None);
        assert!((course.lowest_share(6.0, 10.0, 1.0) - 0.4).abs() < 1e-9);
        assert!(course.lowest_share(4.0, 5.0, 2.0).abs() < 1e-9);
    }

    #[test]
    fn streams_differ_everywhere_and_do_not_depend_on_how_they_are_cut() {
        let (mut whole, mut part) = ([0; 4096], [0; 100]);
        fill(3, 5, &mut whole);
        fill(3, 1005, &mut part);
        assert_eq!(part, whole[1000..1100]);
        for other in [4, 5] {
            let mut out = [0; 4096];
            fill(other, 5, &mut out);
            let same = out.iter().zip(&whole).filter(|(a, b)| a == b).count();
            assert!(same < 64, "{same} of 4096");
        }
        let mut later = [0; 4096];
        fill(3, 5 + 4096, &mut later);
        assert!(later.iter().zip(&whole).filter(|(a, b)| a == b).count() < 64);
    }
}
