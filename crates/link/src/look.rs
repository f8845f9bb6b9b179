//! What a measuring instrument or a picture sees of a link at one moment.

use crate::drop_tail::Capacity;
use bentpipe_base::{Duration, Rate, Size};

/// A link at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    /// The rate; `None` while nothing moves. For a trace of opportunities its mean.
    pub rate: Option<Rate>,
    /// One-way propagation delay, without waiting and serialisation.
    pub one_way: Duration,
    /// Bit error rate, that of a fade included.
    pub ber: f64,
    /// Loss probability of a packet that begins now, whatever its size, or in an outage what it would be
    /// without.
    pub packet_loss: f64,
    /// Nothing that begins now gets through: it was taken down, or there is an outage or a handover.
    pub dark: bool,
    /// Attenuation in dB, where there is a fade.
    pub fade_db: Option<f64>,
    /// Packets waiting, without the one being sent.
    pub queue_packets: usize,
    /// Their bytes.
    pub queue_bytes: Size,
    /// How much may wait.
    pub queue_limit: Capacity,
}
