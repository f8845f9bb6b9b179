//! What a receiver of 65 535 B can get, at most, from a gateway before a long hop.
//!
//! Over a lossy hop it takes 65 535 B, 44 segments, beyond the first byte that it misses. While a hole lasts,
//! a round trip, what arrives beyond those is in vain. With everything sent k times, each of N packets of a
//! round trip is missing with probability p^k; a loss then costs N - 44 packets, so of (1/k) of the rate the
//! share 1 / (1 + p^k (N - 44)) is new data that is taken. k is what is best for the loss that there was.
//!
//! A program that reads at a and b bit/s in turn, each for T seconds, with a > b (both at most the hop's
//! goodput): a gateway that hears of a change a round trip R late forwards what the program read a round trip
//! ago. After a change from b to a the program misses (a - b) R. After one from a to b, a R arrives in the
//! first round trip; W bits of it are taken, then the buffer is full and a first packet is thrown away, and
//! all behind it is until its repair arrives, R after it: the program gets W in place of b R, and a R - W is
//! sent again. A cycle of 2 T brings (a + b) T - (a R - W). Where (a - b) R fits the buffer nothing is thrown
//! away, and nothing is missed.

/// What the window holds, bits.
const WINDOW: f64 = 65_535.0 * 8.0;

/// Mean rate of a program that reads at two rates in turn, and what is sent again for each change to the
/// lower one, bits. `most` is the goodput of the hop, `turn` and `rtt` are in seconds.
pub fn alternating(rates: [f64; 2], turn: f64, most: f64, rtt: f64) -> (f64, f64) {
    let [one, other] = rates.map(|r| r.min(most));
    let (a, b) = (one.max(other), one.min(other));
    let missed = if (a - b) * rtt > WINDOW { (a * rtt - WINDOW).max(0.0) } else { 0.0 };
    (((a + b) * turn - missed) / (2.0 * turn), missed)
}

/// Packet and payload in bytes.
const PACKET: f64 = 1500.0;
/// Payload of it.
const PAYLOAD: f64 = 1460.0;
/// Segments that the window holds.
const HELD: f64 = 44.0;

/// Bits per second over a hop of `rate` bit/s and a round trip of `rtt` seconds that loses the share `p` of
/// its packets.
pub fn old_receiver(rate: f64, rtt: f64, p: f64) -> f64 {
    let beyond = (rate * rtt / 8.0 / PACKET - HELD).max(0.0);
    let once = |k: u32| (0..k).fold(1.0, |product, _| product * p);
    let share = |k: u32| 1.0 / f64::from(k) / (1.0 + once(k) * beyond);
    rate * PAYLOAD / PACKET * (1..=8).map(share).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 23.2 Mbit/s, a second: shares of what the program would read.
    #[test]
    fn readers_in_turn() {
        for (rates, turn, share) in [
            ([24e6, 2e6], 5.0, 0.820),
            ([20e6, 4e6], 5.0, 0.838),
            ([10e6, 12e6], 5.0, 0.896),
            ([24e6, 2e6], 30.0, 0.970),
            ([12e6, 11.9e6], 5.0, 1.0),
            ([30e6, 25e6], 5.0, 1.0),
        ] {
            let (rate, _) = alternating(rates, turn, 23.2e6, 1.0);
            let all = f64::midpoint(rates[0].min(23.2e6), rates[1].min(23.2e6));
            assert!((rate / all - share).abs() < 6e-4, "{rates:?} {turn}: {}", rate / all);
        }
        assert!((alternating([24e6, 2e6], 5.0, 23.2e6, 1.0).1 - 22.676e6).abs() < 1e3);
    }

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
