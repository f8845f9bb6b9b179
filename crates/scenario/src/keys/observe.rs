//! Keys of what happens and what is looked at during a run: timeline, instruments, captures.

use crate::form::table;
use crate::scalars::{Name, Text};
use bentpipe_base::{Duration, Instant, Probability, Rate, Size};
use bentpipe_link::Capacity;

table! {
    /// Changes one direction of a link at an instant; what is not given stays as it is.
    struct TimelineKeys "[[timeline]]" {
        required {
            /// When, before the end of the run.
            at: Instant,
            /// Name of a direction.
            link: Name,
        }
        optional {
            /// New rate.
            rate: Rate = "unchanged",
            /// New one-way propagation delay.
            delay: Duration = "unchanged",
            /// New size of the queue; packets beyond a smaller one stay until they are served.
            buffer: Capacity = "unchanged",
            /// New loss probability per packet.
            loss: Probability = "unchanged",
            /// New bit error rate.
            ber: Probability = "unchanged",
            /// Everything that is sent is lost for so long.
            outage: Duration = "none",
            /// `false`: everything that is sent is lost, until an entry says `true`.
            up: bool = "unchanged",
        }
    }
}

table! {
    /// Looks at something at fixed times; what it saw is part of the report.
    struct InstrumentKeys "[[instruments]]" {
        required {
            /// Unique name.
            name: Name,
            /// `"side-channel"`: a narrow channel beside a link that counts wrong bits and errored seconds.
            /// `"counters"`: a router's counters. `"bins"`: goodput of a flow and the share of packets in
            /// error on a link.
            kind: InstrumentWord,
            /// Name of a direction.
            link: Name,
            /// Length of an interval.
            every: Duration,
        }
        optional {
            /// Rate of a side channel.
            rate: Rate = "`\"256 kbit/s\"`",
            /// Name of a flow, for bins.
            flow: Name = "must be given for bins",
        }
    }
}

table! {
    /// Packets to record when results are written to a folder.
    struct CaptureKeys "[[captures]]" {
        required {
            /// Name of a direction.
            link: Name,
        }
        optional {
            /// From when.
            from: Instant = "`\"0 s\"`",
            /// Until when, at the latest `duration`.
            to: Instant = "`duration`",
            /// Bytes kept of each packet, at least 64 B.
            snap: Size = "`\"65535 B\"`, whole packets",
            /// Largest file, at least 4 KiB; recording ends there.
            limit: Size = "`\"64 MiB\"`",
        }
    }
}

table! {
    /// A figure that somebody else found, in a paper or by measuring: the report shows this run's beside it.
    struct ReferenceKeys "[[references]]" {
        required {
            /// Which figure of this run it is compared with: a metric, as for `--expect`.
            metric: Text,
            /// The other's figure with its unit, as in `"23.67 Mbit/s"`, `"500 ms"` or `"0.99"`.
            value: Text,
            /// Where it was found.
            source: Text,
        }
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
