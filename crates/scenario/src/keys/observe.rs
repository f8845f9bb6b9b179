//! Keys of timeline, instruments, captures and references.

use crate::form::table;
use crate::scalars::{Name, Text};
use bentpipe_base::{Duration, Instant, Probability, Rate, Size};
use bentpipe_link::Capacity;

table! {
    /// Changes one direction of a link at a given time. Properties without a key stay unchanged.
    struct TimelineKeys "[[timeline]]" {
        /// Time of the change, before the end of the run.
        at: Instant,
        /// Name of the link direction.
        link: Name,
        /// New rate.
        rate: Rate = "unchanged",
        /// New one-way propagation delay.
        delay: Duration = "unchanged",
        /// New size of the queue. Packets that exceed a smaller size stay until they are served.
        buffer: Capacity = "unchanged",
        /// New loss probability per packet.
        loss: Probability = "unchanged",
        /// New bit error rate.
        ber: Probability = "unchanged",
        /// Duration for which all packets are lost.
        outage: Duration = "none",
        /// `false`: all packets are lost until another entry sets `true`.
        up: bool = "unchanged",
    }

    /// A measuring instrument. It samples at fixed intervals, and its samples are part of the report.
    struct InstrumentKeys "[[instruments]]" {
        /// Unique name.
        name: Name,
        /// `"side-channel"`: a narrow channel beside a link that counts bit errors and errored seconds.
        /// `"counters"`: the counters of a router. `"bins"`: goodput of a flow and packet error ratio of a
        /// link.
        kind: InstrumentWord,
        /// Name of the link direction.
        link: Name,
        /// Measuring interval.
        every: Duration,
        /// Bit rate of a side channel.
        rate: Rate = "`\"256 kbit/s\"`",
        /// Name of the flow, for bins.
        flow: Name = "must be given for bins",
    }

    /// A link whose packets are recorded when results are written to a folder.
    struct CaptureKeys "[[captures]]" {
        /// Name of the link direction.
        link: Name,
        /// Start of the recording.
        from: Instant = "`\"0 s\"`",
        /// End of the recording, not after `duration`.
        to: Instant = "`duration`",
        /// Maximum number of bytes recorded of each packet, at least 64 B.
        snap: Size = "`\"65535 B\"`, whole packets",
        /// Maximum file size, at least 4 KiB. The recording stops there.
        limit: Size = "`\"64 MiB\"`",
    }

    /// A published or measured value. The report shows it beside the value of this run.
    struct ReferenceKeys "[[references]]" {
        /// Metric to compare with, named as for `--expect`.
        metric: Text,
        /// The reference value with its unit, for instance `"23.67 Mbit/s"`, `"500 ms"` or `"0.99"`.
        value: Text,
        /// Source of the value, for instance a paper.
        source: Text,
    }
}

/// Kinds of instruments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InstrumentWord {
    SideChannel,
    Counters,
    Bins,
}

crate::form::words!(InstrumentWord { "side-channel" => SideChannel, "counters" => Counters, "bins" => Bins, });
