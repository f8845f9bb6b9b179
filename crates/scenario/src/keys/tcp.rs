//! Keys of the TCP at both ends of a flow.

use super::scheme::SchemeKeys;
use crate::form::{either, table};
use crate::lists::{Pairs, RateOrNone, TimeOrNone};
use crate::scalars::{EcnForm, SchemeName, SendBuffer, Ssthresh, Whole, Window};
use bentpipe_base::{Duration, Instant, Probability, Rate, Size};
use bentpipe_tcp::{Detection, JitterKind, Reduction, Stack, Standard, Validation};

table! {
    /// What the TCP at both ends of a flow is and does. Given under `[host]` for all flows, or in a flow.
    struct TcpKeys "[host]" {
        optional {
            /// Whose TCP it is: what the RFCs say, or Linux, with its defaults for all other options; what is
            /// written beside it wins.
            stack: Stack = "`\"rfc\"`",
            /// Congestion control and loss recovery: a name, or a table with parameters.
            tcp: SchemeForm = "`\"cubic\"`",
            /// Payload of a full segment, and what the MSS option announces; timestamps take 12 bytes of it.
            /// From 1 B to 65495 B.
            segment: Size = "`\"1460 B\"`",
            /// Receive window: a size, a number of segments, or a table for a window that tunes itself. At
            /// most 65535 B without window scale.
            window: WindowForm = "`{ initial = \"64 KiB\", max = \"6 MiB\" }`",
            /// Initial congestion window in segments.
            iw: Whole<1, 65_535> = "`10`",
            /// Initial slow-start threshold; `"window"` is the largest receive window.
            ssthresh: Ssthresh = "`\"unlimited\"`",
            /// Delayed acknowledgments: off acknowledges every segment, on every second one or after 200 ms.
            delayed_ack: DelayedAckForm = "`{ count = 2, timeout = \"40 ms\" }`",
            /// What the sending application may have written and not yet seen acknowledged.
            send_buffer: SendBuffer = "`\"unlimited\"`",
            /// Nagle's algorithm; with `stack = "linux"` Minshall's variant of it. Without this key the end
            /// that answers requests is without, as servers are.
            nagle: bool = "`true`",
            /// Random delay of the sender, uniform from zero to this.
            jitter: Duration = "`\"0 s\"`",
            /// What jitter delays: an opportunity to send, opened by an ACK (then all that fits is sent), or
            /// each packet, order kept.
            jitter_kind: JitterKind = "`\"opportunity\"`",
            /// Lower bound of the retransmission timeout.
            min_rto: Duration = "`\"1 s\"`",
            /// Upper bound of the retransmission timeout.
            max_rto: Duration = "`\"60 s\"`",
            /// Retransmission timeout before the first round-trip sample.
            initial_rto: Duration = "`\"1 s\"`",
            /// Clock granularity of the retransmission timer.
            rto_granularity: Duration = "`\"1 ms\"`",
            /// Give up after this many timeouts in a row.
            max_timeouts: Whole<1, 1000> = "`15`",
            /// Give up when what was sent makes no progress for this time, in place of a number of timeouts.
            user_timeout: TimeOrNone = "`\"none\"`",
            /// Ask a peer that is silent whether it is still there (RFC 9293, section 3.8.4): a switch, or a
            /// table with the times.
            keep_alive: KeepAliveForm = "`false`",
            /// Send new data on the first two duplicate ACKs (RFC 3042).
            limited_transmit: bool = "`true`",
            /// The congestion window when it is not used: keep it, restart from the initial one after an idle
            /// time, or validate it (RFC 7661).
            validation: Validation = "`\"validate\"`",
            /// Spread the segments of a window over the round trip.
            pacing: bool = "`false`",
            /// ECN (RFC 3168): asked for and agreed to, or `"answer"`: agreed to where the other end asks. A
            /// Linux host: `"answer"`.
            ecn: EcnForm = "`false`",
            /// Agree on the probe option, where the scheme sends probe segments. Without it the sender knows
            /// of them by DSACKs, or without SACK by timestamps, as with hosts that are not ours.
            probe_option: bool = "`true`",
            /// A rate that the network grants the sender, of whole packets: for schemes that ask for one, as
            /// `explicit-rate`.
            grant: GrantForm = "`\"none\"`",
            /// Offer timestamps (RFC 7323).
            timestamps: bool = "`true`",
            /// Offer selective acknowledgments. Schemes that make no use of them (reno, newreno, vegas) never
            /// do.
            sack: bool = "`true`",
            /// Offer window scaling (RFC 7323).
            window_scale: bool = "`true`",
            /// Send the MSS option; without it the peer sends 536 B.
            mss_option: bool = "`true`",
            /// Length of TIME-WAIT.
            time_wait: Duration = "`\"60 s\"`",
        }
    }
}

table! {
    /// A receive window that starts small and grows with what the application reads.
    struct WindowKeys "window" {
        required {
            /// First window.
            initial: Window,
            /// Largest window.
            max: Window,
        }
    }
}

table! {
    /// What the network grants a sender.
    struct GrantKeys "grant" {
        required {
            /// The rate from the start, of whole packets.
            rate: Rate,
        }
        optional {
            /// What it grants later: instants in order, each with a rate. The sender hears of less a round
            /// trip later, of more when it asks.
            changes: Pairs<Instant, Rate> = "none",
            /// Share of lost packets, 0 to 0.5, above which the sender becomes a standard TCP; 0.2 for radio.
            fallback: Probability = "`0.1`",
            /// What it becomes.
            fallback_to: Standard = "`\"cubic\"`",
        }
    }
}

table! {
    /// When a delayed ACK is sent at the latest.
    struct DelayedAckKeys "delayed_ack" {
        optional {
            /// On this many full segments.
            count: Whole<1, 1000> = "`2`",
            /// After this time, which is less than 500 ms. A Linux host: `"40 ms"`.
            timeout: Duration = "`\"200 ms\"`",
        }
    }
}

table! {
    /// When a silent peer is asked, and given up. Times are at least 1 s.
    struct KeepAliveKeys "keep_alive" {
        optional {
            /// Time without anything heard before the first question.
            idle: Duration = "`\"7200 s\"`",
            /// Time between two.
            interval: Duration = "`\"75 s\"`",
            /// So many without an answer end the connection.
            count: Whole<1, 127> = "`9`",
        }
    }
}

table! {
    /// Loss recovery of a scheme.
    struct RecoveryKeys "recovery" {
        optional {
            /// How losses are found: RFC 5681, RFC 6582, the timer of Vegas, RFC 6675 or RFC 8985.
            detection: Detection = "as the scheme",
            /// How the window comes down during recovery.
            reduction: Reduction = "as the scheme",
            /// Detect spurious timeouts (RFC 5682).
            frto: bool = "as the scheme",
        }
    }
}

either! {
    /// A window or a table.
    WindowForm { Fixed(Window), Table(WindowKeys) }
}
either! {
    /// A rate, none, or a table.
    GrantForm { Plain(RateOrNone), Table(GrantKeys) }
}
either! {
    /// A switch or a table.
    DelayedAckForm { Switch(bool), Table(DelayedAckKeys) }
}
either! {
    /// A switch or a table.
    KeepAliveForm { Switch(bool), Table(KeepAliveKeys) }
}
either! {
    /// A scheme's name or a table.
    SchemeForm { Named(SchemeName), Table(SchemeKeys) }
}
