//! The state of a link at one moment, for instruments and plots.

use crate::drop_tail::Capacity;
use bentpipe_base::{Duration, Rate, Size};

/// The state of a link at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    /// The rate; `None` while nothing is sent. For a trace of opportunities, its mean.
    pub rate: Option<Rate>,
    /// One-way propagation delay, without queueing and serialisation.
    pub one_way: Duration,
    /// Bit error rate, that of a fade included.
    pub ber: f64,
    /// Loss probability of a packet that begins now, without bit errors and outages.
    pub packet_loss: f64,
    /// True if everything that begins now is lost: link down, outage, handover or too deep a fade.
    pub dark: bool,
    /// Attenuation in dB; `None` without a fade.
    pub fade_db: Option<f64>,
    /// Packets waiting, without the one being sent.
    pub queue_packets: usize,
    /// Their bytes.
    pub queue_bytes: Size,
    /// Capacity of the queue.
    pub queue_limit: Capacity,
}
