//! Measures one-way delay. Sender and receiver are threads of this process, so they share a clock.

use crate::Outcome;
use lab::passage::{Carrier, Host, Passage};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

/// Payload of a probe, small enough for one packet.
const PROBE: usize = 100;
/// Time between two probes.
const GAP: Duration = Duration::from_millis(1);
/// Time limit of any wait.
const PATIENCE: Duration = Duration::from_secs(10);
/// Seconds of load before and after probing.
const MARGIN: u32 = 1;

/// A connection opened by the receiver: the sender's end, the receiver's.
fn connection(passage: &Passage, carrier: Carrier) -> Outcome<[TcpStream; 2]> {
    let text = |e: std::io::Error| format!("a connection over {carrier:?}: {e}");
    let listener =
        passage.within(Host::Sender, || TcpListener::bind((carrier.ends()[0], 0)).map_err(text))?;
    let to = listener.local_addr().map_err(text)?;
    let far = passage.within(Host::Receiver, || TcpStream::connect_timeout(&to, PATIENCE).map_err(text))?;
    let near = listener.accept().map_err(text)?.0;
    for end in [&near, &far] {
        end.set_nodelay(true).and_then(|()| end.set_read_timeout(Some(PATIENCE))).map_err(text)?;
    }
    Ok([near, far])
}

/// One-way delays of `n` probes, from write to read, during a load of `load_bps`; us.
pub(super) fn one_way(passage: &Passage, carrier: Carrier, n: u32, load_bps: u64) -> Outcome<Vec<f64>> {
    let gateway = passage.carry(carrier, "")?;
    let [near, far] = connection(passage, carrier)?;
    let probing = GAP.as_secs_f64() * f64::from(n) * 1.2;
    let seconds = probing.ceil() as u32 + 2 * MARGIN;
    let lags = scope(|scope| {
        let words = format!("-b {load_bps} -l 16K --pacing-timer 100 -t {seconds}");
        let load = scope.spawn(move || passage.iperf(carrier, &words, seconds));
        sleep(Duration::from_secs(u64::from(2 * MARGIN)));
        let lags = probes(near, far, n);
        let carried = load.join().unwrap_or_else(|_| Err("the load stopped".to_owned()))?;
        let asked = load_bps as f64;
        if (carried / asked - 1.0).abs() > 0.2 {
            return Err(format!("the load was {:.0}, not {:.0} Mbit/s", carried / 1e6, asked / 1e6));
        }
        lags
    });
    gateway.end()?;
    lags
}

fn probes(mut near: TcpStream, mut far: TcpStream, n: u32) -> Outcome<Vec<f64>> {
    let (sent, came) = scope(|scope| {
        let came = scope.spawn(move || -> std::io::Result<Vec<Instant>> {
            let mut probe = [0; PROBE];
            (0..n).map(|_| far.read_exact(&mut probe).map(|()| Instant::now())).collect()
        });
        let sent = (0..n).map(|_| {
            sleep(GAP);
            let at = Instant::now();
            near.write_all(&[7; PROBE]).map(|()| at)
        });
        let sent: std::io::Result<Vec<Instant>> = sent.collect();
        (sent, came.join().unwrap_or_else(|_| Err(std::io::Error::other("the receiver stopped"))))
    });
    let (sent, came) =
        (sent.map_err(|e| format!("a probe: {e}"))?, came.map_err(|e| format!("a probe: {e}"))?);
    Ok(sent.iter().zip(came).map(|(sent, came)| came.duration_since(*sent).as_secs_f64() * 1e6).collect())
}

/// Round-trip times of `n` messages of `bytes`, us.
pub(super) fn echoes(passage: &Passage, carrier: Carrier, n: u32, bytes: usize) -> Outcome<Vec<f64>> {
    let gateway = passage.carry(carrier, "")?;
    let [mut near, mut far] = connection(passage, carrier)?;
    let lags = scope(|scope| {
        scope.spawn(move || {
            let mut message = vec![0; bytes];
            // ends when the other end closes
            while near.read_exact(&mut message).and_then(|()| near.write_all(&message)).is_ok() {}
        });
        let mut message = vec![7; bytes];
        let times = (0..n).map(|_| {
            let since = Instant::now();
            far.write_all(&message)?;
            far.read_exact(&mut message)?;
            Ok(since.elapsed().as_secs_f64() * 1e6)
        });
        let times: std::io::Result<Vec<f64>> = times.collect();
        drop(far);
        times
    });
    gateway.end()?;
    lags.map_err(|e| format!("an echo over {carrier:?}: {e}"))
}
