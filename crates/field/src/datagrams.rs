//! UDP datagrams at a constant rate to the first receiver, as a flow that is not accelerated.

use crate::bed::{SENDER, TestBed, receiver};
use bentpipe_os::Clock;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Payload of a datagram, bytes.
pub const SIZE: usize = 1000;
const PORT: u16 = 5301;

/// Sends at `rate` bit/s until `end` is set. Returns the numbers of datagrams sent and received.
///
/// # Errors
/// If the sockets cannot be created.
pub fn run(bed: &TestBed, rate: f64, clock: Clock, end: &AtomicBool) -> Result<[u64; 2], String> {
    let text = |e: std::io::Error| format!("datagrams: {e}");
    let from = bed.sender.within(|| UdpSocket::bind((SENDER, 0)).map_err(text))?;
    let first = bed.receivers.first().ok_or("no receiver")?;
    let to = first.within(|| UdpSocket::bind((receiver(0), PORT)).map_err(text))?;
    to.set_read_timeout(Some(Duration::from_millis(100))).map_err(text)?;
    thread::scope(|scope| {
        let arrived = scope.spawn(|| {
            let (mut buffer, mut n) = ([0; 2 * SIZE], 0);
            while !end.load(Ordering::Relaxed) {
                n += u64::from(to.recv(&mut buffer).is_ok());
            }
            n
        });
        let (block, begin, mut sent) = ([0; SIZE], clock.now().0, 0_u64);
        while !end.load(Ordering::Relaxed) {
            let due = (clock.now().0 - begin) as f64 * rate / 8e9 / SIZE as f64;
            while (sent as f64) < due {
                // what the kernel refuses counts as lost
                let _ = from.send_to(&block, (receiver(0), PORT));
                sent += 1;
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok([sent, arrived.join().map_err(|_| "a thread panicked".to_owned())?])
    })
}
