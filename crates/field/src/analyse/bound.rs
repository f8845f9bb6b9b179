//! What an old receiver can get over a lossy hop, at most, from a gateway before it.
//!
//! It takes 65 535 B, 44 segments, beyond the first byte that it misses. While a hole lasts, a round trip, what arrives beyond those is in vain. With
//! everything sent k times, each of N packets of a round trip is missing with probability p^k; a loss then costs N - 44 packets, so of (1/k) of the rate the
//! share 1 / (1 + p^k (N - 44)) is new data that is taken. k is what is best for the loss that there was.

/// Packet and payload in bytes.
const PACKET: f64 = 1500.0;
/// Payload of it.
const PAYLOAD: f64 = 1460.0;
/// Segments that the window holds.
const HELD: f64 = 44.0;

/// Bits per second over a hop of `rate` bit/s and a round trip of `rtt` seconds that loses the share `p` of its packets.
pub fn old_receiver(rate: f64, rtt: f64, p: f64) -> f64 {
    let beyond = (rate * rtt / 8.0 / PACKET - HELD).max(0.0);
    let once = |k: u32| (0..k).fold(1.0, |product, _| product * p);
    let share = |k: u32| 1.0 / f64::from(k) / (1.0 + once(k) * beyond);
    rate * PAYLOAD / PACKET * (1..=8).map(share).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 24 Mbit/s, a second: the figures that were asked for.
    #[test]
    fn figures() {
        for (p, asked) in [(0.0, 23.36), (1e-4, 19.54), (1e-3, 11.66)] {
            let bound = old_receiver(24e6, 1.0, p) / 1e6;
            assert!((bound - asked).abs() < 0.01, "{p}: {bound}");
        }
        // a round trip that the window fills costs nothing
        assert!((old_receiver(24e6, 0.02, 0.01) - 24e6 * PAYLOAD / PACKET).abs() < 1.0);
    }
}
