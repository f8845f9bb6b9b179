//! Upper bounds on what a receiver with a 65 535 B window can get from a gateway in front of a long hop.
//!
//! Lossy hop: the receiver accepts 65 535 B, 44 segments, beyond the first missing byte. Until the hole is
//! repaired, one round trip, it discards whatever arrives beyond that. If the gateway sends everything k
//! times, each of the N packets of a round trip is missing with probability p^k. A loss then costs N - 44
//! packets, so the share 1 / (1 + p^k (N - 44)) of (1/k) of the rate is new data that is accepted. k is the
//! best value for the given loss.
//!
//! Program that reads alternately at a and b bit/s, each for T seconds, with a > b (both at most the hop's
//! goodput): the gateway learns of a change one round trip R late, so it forwards what the program read a
//! round trip ago. After a change from b to a the program misses (a - b) R. After a change from a to b, a R
//! arrives in the first round trip. The window takes W bits of it; then the buffer is full, a packet is
//! discarded, and so is all that follows it until its retransmission arrives R later. The program gets W
//! instead of b R, and a R - W is retransmitted. A cycle of 2 T delivers (a + b) T - (a R - W). Nothing is
//! discarded and nothing is missed if (a - b) R fits into the buffer.

/// Receive window W, bits.
const WINDOW: f64 = 65_535.0 * 8.0;

/// Mean read rate, bit/s, of a program that alternates between two rates, and the bits retransmitted for
/// each change to the lower rate. `most` is the goodput of the hop, bit/s; `turn` and `rtt` are in seconds.
pub fn alternating_reader_bound(rates: [f64; 2], turn: f64, most: f64, rtt: f64) -> (f64, f64) {
    let [one, other] = rates.map(|r| r.min(most));
    let (a, b) = (one.max(other), one.min(other));
    let missed = if (a - b) * rtt > WINDOW { (a * rtt - WINDOW).max(0.0) } else { 0.0 };
    (((a + b) * turn - missed) / (2.0 * turn), missed)
}

/// Packet size, bytes.
const PACKET: f64 = 1500.0;
/// Payload of a packet, bytes.
const PAYLOAD: f64 = 1460.0;
/// Segments that fit into the window.
const HELD: f64 = 44.0;

/// Upper bound of the goodput, bit/s, at `rate` bit/s, round trip `rtt` s and packet loss probability `p`.
pub fn old_receiver_bound(rate: f64, rtt: f64, p: f64) -> f64 {
    let beyond = (rate * rtt / 8.0 / PACKET - HELD).max(0.0);
    let once = |k: u32| (0..k).fold(1.0, |product, _| product * p);
    let share = |k: u32| 1.0 / f64::from(k) / (1.0 + once(k) * beyond);
    rate * PAYLOAD / PACKET * (1..=8).map(share).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At 23.2 Mbit/s and an RTT of 1 s: shares of what the program would read.
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
            let (rate, _) = alternating_reader_bound(rates, turn, 23.2e6, 1.0);
            let all = f64::midpoint(rates[0].min(23.2e6), rates[1].min(23.2e6));
            assert!((rate / all - share).abs() < 6e-4, "{rates:?} {turn}: {}", rate / all);
        }
        assert!((alternating_reader_bound([24e6, 2e6], 5.0, 23.2e6, 1.0).1 - 22.676e6).abs() < 1e3);
    }

    /// At 24 Mbit/s and an RTT of 1 s.
    #[test]
    fn figures() {
        for (p, asked) in [(0.0, 23.36), (1e-4, 19.54), (1e-3, 11.66)] {
            let bound = old_receiver_bound(24e6, 1.0, p) / 1e6;
            assert!((bound - asked).abs() < 0.01, "{p}: {bound}");
        }
        // a BDP below the window costs nothing
        assert!((old_receiver_bound(24e6, 0.02, 0.01) - 24e6 * PAYLOAD / PACKET).abs() < 1.0);
    }
}
