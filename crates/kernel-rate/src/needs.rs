//! Buffers that a rate needs.
//!
//! Source: facts of L. G. Roberts' explicit-rate TCP (a hole holds the window for a round trip per
//! retransmission) and the kernel's accounting: `tcp_rmem` counts whole buffers, of which about half is data;
//! `tcp_wmem` counts them too, and a sender keeps all that is not acknowledged.
//!   receiver: 4 AR RTT of data; sender: the window, 3 AR RTT

use bentpipe_base::{Duration, Rate, Size};

/// Memory per byte of data.
const OVERHEAD: u64 = 2;

/// The least maximum of each buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffers {
    /// The third value of `net.ipv4.tcp_wmem`, for hosts that send.
    pub send: Size,
    /// The third value of `net.ipv4.tcp_rmem`, for hosts that receive.
    pub receive: Size,
}

/// What the buffers of a connection need at this rate and round-trip time. An agent raises the maxima if they
/// are lower, and lowers them again when it ends.
pub fn buffers(rate: Rate, rtt: Duration) -> Buffers {
    let product = rate.bytes_in(rtt).0;
    let times = |n: u64| Size(product.saturating_mul(n * OVERHEAD));
    Buffers { send: times(3), receive: times(4) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_satellite_path_needs_more_than_the_kernels_defaults() {
        let needed = buffers(Rate::from_bps(100_000_000).unwrap(), Duration::from_millis(500));
        assert_eq!((needed.send, needed.receive), (Size(37_500_000), Size(50_000_000)));
    }
}
