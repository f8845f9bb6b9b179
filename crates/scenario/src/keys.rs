//! Every key of a scenario file, once: its type, default and meaning.
//!
//! The parser, its errors, the JSON schema and the reference page all come from these tables.

use crate::diagnostic::Result;
use crate::form::{At, Form, Keys, Read, read_table, table};
use crate::parameters::{Declared, Resolved};
use crate::scalars::{Name, SchemeName, SendBuffer, Ssthresh, Text, Version, Whole, Window, wrong_word};
use crate::types::{Buffer, Stop};
use crate::value::{Kind, Value};
use bentpipe_base::{Duration, Instant, Probability, Rate, Size};
use bentpipe_tcp::{Detection, JitterKind, Reduction, Validation};

/// Most flows of a scenario.
pub(crate) const MAX_FLOWS: u64 = 100_000;
/// Most flows with an end at one host: each needs a port of its own.
pub(crate) const MAX_FLOWS_PER_HOST: u32 = 50_000;
/// Most hosts and routers.
pub(crate) const MAX_NODES: usize = 200_000;
/// Most pairs of a dumbbell: two hosts each, and two routers.
const MAX_PAIRS: u64 = (MAX_NODES as u64 - 2) / 2;
/// Most links.
pub(crate) const MAX_LINKS: usize = 400_000;
/// Most explicit routes.
pub(crate) const MAX_ROUTES: usize = 100_000;

table! {
    /// The keys at the top of the file, before any table.
    struct FileKeys "the file" {
        required {
            /// Version of this format.
            schema: Version,
            /// One line that says what is being asked.
            title: Text,
            /// Latest end of the run. At most a year (8760 h).
            duration: Duration,
            /// The flows.
            flows: Vec<At<FlowKeys>>,
        }
        optional {
            /// Seed of every random stream. The same file and seed give the same bytes of output.
            seed: Whole<0, { u64::MAX }> = "`1`",
            /// When the run ends: at `duration`, or when every flow that has an end has finished (at the latest at `duration`).
            stop: Stop = "`\"duration\"`",
            /// Interval over which goodput is counted.
            measure: MeasureKeys = "the whole run",
            /// Names that `--set` can change; see above.
            parameters: Declared = "none",
            /// Parameters of the file that this one was made from by `bentpipe check`. Copied into reports, no effect otherwise.
            resolved: Resolved = "none",
            /// A ready-made network: pairs of hosts on both sides of one bottleneck.
            dumbbell: DumbbellKeys = "none",
            /// Ends of flows. A host has exactly one link.
            hosts: Vec<At<HostKeys>> = "none",
            /// Nodes that forward. Routes follow the fewest hops unless given.
            routers: Vec<At<RouterKeys>> = "none",
            /// Links between nodes.
            links: Vec<At<LinkKeys>> = "none",
            /// TCP options for all flows; a flow may override each.
            host: TcpKeys = "none",
        }
    }
}

table! {
    /// The interval over which goodput is counted.
    struct MeasureKeys "measure" {
        required {
            /// Its start.
            from: Instant,
            /// Its end, after `from` and at the latest at `duration`.
            to: Instant,
        }
    }
}

table! {
    /// Hosts `src1`, `src2`, ... on the left, `dst1`, `dst2`, ... on the right, routers `left` and `right`, and between these a
    /// link named `bottleneck`; its other direction is `bottleneck-return`. Access links are named `src1-access`,
    /// `dst1-access`, ..., in the direction of the data, and `src1-access-return`, ... in the direction of the ACKs.
    /// Keys for rate, buffer, loss, ber and framing are those of the bottleneck from left to right.
    struct DumbbellKeys "[dumbbell]" {
        required {
            /// Two-way propagation delay from a source to its destination and back. The bottleneck gets what the access links leave: `rtt/2 - 2 * access.delay` each way.
            rtt: Duration,
            /// Every access link, both directions.
            access: DirectionKeys,
        }
        optional {
            /// Number of sources, and of destinations.
            pairs: Whole<1, MAX_PAIRS> = "`1`",
            /// The bottleneck from right to left.
            r#return: ChannelKeys = "rate, buffer and framing as forward; no loss, no bit errors",
        }
        include { channel: ChannelKeys, }
    }
}

table! {
    /// How a link carries packets in one direction. Order of effects: queue, serialise, errors, propagate.
    struct ChannelKeys "a channel" {
        optional {
            /// Rate at which IP bytes plus `framing` are sent.
            rate: Rate = "must be given",
            /// What may wait: packets, or bytes. The packet being sent does not count.
            buffer: Buffer = "must be given",
            /// Probability that a packet is lost, each independently, after the queue.
            loss: Probability = "`0`",
            /// Bit error rate over IP bytes plus `framing`; a packet survives when all its bits do.
            ber: Probability = "`0`",
            /// Bytes that the link adds to each packet.
            framing: Size = "`\"0 B\"`",
        }
    }
}

table! {
    /// One direction of a link.
    struct DirectionKeys "a direction" {
        optional {
            /// One-way propagation delay.
            delay: Duration = "must be given",
        }
        include { channel: ChannelKeys, }
    }
}

table! {
    /// A host: the end of flows. It has exactly one link.
    struct HostKeys "[[hosts]]" {
        required {
            /// Unique among hosts and routers.
            name: Name,
        }
    }
}

table! {
    /// A router. Packets take the path with the fewest hops (the first link in the file on ties) unless `routes` says otherwise.
    struct RouterKeys "[[routers]]" {
        required {
            /// Unique among hosts and routers.
            name: Name,
        }
        optional {
            /// Routes that differ from the fewest hops.
            routes: Vec<At<RouteKeys>> = "none",
        }
    }
}

table! {
    /// Sends packets for one host over one link.
    struct RouteKeys "routes" {
        required {
            /// A host.
            to: Name,
            /// A link of this router, by the name of either direction.
            via: Name,
        }
    }
}

table! {
    /// A link. Keys of a direction given here hold for both directions, unless `forward` or `backward` says otherwise;
    /// rate, delay and buffer must be given one way or the other.
    struct LinkKeys "[[links]]" {
        required {
            /// Name of the direction from `from` to `to`, unique among links.
            name: Name,
            /// A host or router.
            from: Name,
            /// Another host or router.
            to: Name,
        }
        optional {
            /// Name of the other direction.
            reverse_name: Name = "the name and `-return`",
            /// From `from` to `to`.
            forward: DirectionKeys = "as the link",
            /// From `to` to `from`.
            backward: DirectionKeys = "as the link",
        }
        include { both: DirectionKeys, }
    }
}

table! {
    /// A flow, or `count` flows that differ only in their names and hosts.
    struct FlowKeys "[[flows]]" {
        required {
            /// Unique name; with `count`, the flows are called `name1`, `name2`, ...
            name: Name,
            /// The host that opens the connection and sends. With `count`: one host for all flows, or `src` for `src1`, `src2`, ...
            from: Name,
            /// The host that receives; with `count` as `from`.
            to: Name,
        }
        optional {
            /// Number of flows.
            count: Whole<1, MAX_FLOWS> = "one flow, called `name`",
            /// What is sent: `"bulk"` sends as long as the run lasts.
            app: AppForm = "`\"bulk\"`",
            /// How the receiving application reads: `"eager"` takes everything at once.
            reader: ReaderForm = "`\"eager\"`",
            /// When the flow starts; with `from` and `to` at a random instant between them.
            start: StartForm = "`\"0 s\"`",
        }
        include { tcp: TcpKeys, }
    }
}

table! {
    /// What the sending application does. Exactly one key.
    struct AppKeys "app" {
        optional {
            /// Sends this much, then closes.
            transfer: Size = "not given",
            /// Writes at this rate as long as the run lasts.
            rate: Rate = "not given",
        }
    }
}

table! {
    /// How the receiving application reads. Exactly one key.
    struct ReaderKeys "reader" {
        optional {
            /// Reads at most at this rate.
            rate: Rate = "not given",
            /// Reads nothing for a while.
            pause: PauseKeys = "not given",
            /// Reads nothing from this instant on.
            stop_at: Instant = "not given",
        }
    }
}

table! {
    /// When the reader pauses.
    struct PauseKeys "pause" {
        required {
            /// Start of the pause.
            from: Instant,
            /// End of the pause, after `from`.
            to: Instant,
        }
    }
}

table! {
    /// The flow starts at a random instant, uniform between these two.
    struct StartKeys "start" {
        required {
            /// Earliest start.
            from: Instant,
            /// Latest start, not before `from`.
            to: Instant,
        }
    }
}

table! {
    /// What the TCP at both ends of a flow is and does. Given under `[host]` for all flows, or in a flow.
    struct TcpKeys "[host]" {
        optional {
            /// Congestion control and loss recovery: a name, or a table with parameters.
            tcp: SchemeForm = "`\"cubic\"`",
            /// Payload of a full segment, and what the MSS option announces; timestamps take 12 bytes of it. From 1 B to 65495 B.
            segment: Size = "`\"1460 B\"`",
            /// Receive window: a size, a number of segments, or a table for a window that tunes itself. At most 65535 B without window scale.
            window: WindowForm = "`{ initial = \"64 KiB\", max = \"6 MiB\" }`",
            /// Initial congestion window in segments.
            iw: Whole<1, 65_535> = "`10`",
            /// Initial slow-start threshold; `"window"` is the largest receive window.
            ssthresh: Ssthresh = "`\"unlimited\"`",
            /// Delayed acknowledgments: off acknowledges every segment, on every second one or after 200 ms.
            delayed_ack: DelayedAckForm = "`{ count = 2, timeout = \"40 ms\" }`",
            /// What the sending application may have written and not yet seen acknowledged.
            send_buffer: SendBuffer = "`\"unlimited\"`",
            /// Nagle's algorithm.
            nagle: bool = "`true`",
            /// Random delay of the sender, uniform from zero to this.
            jitter: Duration = "`\"0 s\"`",
            /// What jitter delays: an opportunity to send, opened by an ACK (then all that fits is sent), or each packet, order kept.
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
            /// Send new data on the first two duplicate ACKs (RFC 3042).
            limited_transmit: bool = "`true`",
            /// The congestion window when it is not used: keep it, restart from the initial one after an idle time, or validate it (RFC 7661).
            validation: Validation = "`\"validate\"`",
            /// Spread the segments of a window over the round trip.
            pacing: bool = "`false`",
            /// Negotiate ECN (RFC 3168).
            ecn: bool = "`false`",
            /// Offer timestamps (RFC 7323).
            timestamps: bool = "`true`",
            /// Offer selective acknowledgments. Schemes that make no use of them (reno, newreno, vegas) never do.
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
    /// When a delayed ACK is sent at the latest.
    struct DelayedAckKeys "delayed_ack" {
        optional {
            /// On this many full segments.
            count: Whole<1, 1000> = "`2`",
            /// After this time, which is less than 500 ms.
            timeout: Duration = "`\"200 ms\"`",
        }
    }
}

table! {
    /// A scheme and what to change about it.
    struct SchemeKeys "tcp" {
        required {
            /// Name of the scheme.
            scheme: SchemeName,
        }
        optional {
            /// Loss recovery.
            recovery: RecoveryKeys = "as the scheme",
            /// cubic: multiplicative decrease, 0.1 to 0.95. vegas: shrink above this many queued segments.
            beta: f64 = "cubic `0.7`, vegas `3`",
            /// cubic: aggressiveness C in segments/s^3, 0.001 to 100.
            c: f64 = "`0.4`",
            /// cubic: fast convergence.
            fast_convergence: bool = "`true`",
            /// cubic: HyStart++ ends slow start.
            hystart: bool = "`true`",
            /// vegas: grow below this many queued segments.
            alpha: f64 = "`1`",
            /// vegas: leave slow start above this many queued segments.
            gamma: f64 = "`1`",
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

/// A word or a table.
macro_rules! either {
    ($(#[doc = $doc:literal])* $Name:ident { $Plain:ident($P:ty), Table($T:ty) }) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug)]
        pub(crate) enum $Name {
            $Plain($P),
            Table(Box<$T>),
        }

        impl Read for $Name {
            const FORM: Form = Form::Either(&[<$P as Read>::FORM, Form::Table(<$T as Keys>::REF)]);

            fn read(value: &Value, key: &str) -> Result<Self> {
                match value.kind {
                    Kind::Table(_) => read_table(value, key).map(|t| Self::Table(Box::new(t))),
                    _ => <$P>::read(value, key).map(Self::$Plain),
                }
            }
        }
    };
}

either! {
    /// `"bulk"` or a table.
    AppForm { Bulk(Bulk), Table(AppKeys) }
}
either! {
    /// `"eager"` or a table.
    ReaderForm { Eager(Eager), Table(ReaderKeys) }
}
either! {
    /// An instant or a table.
    StartForm { At(Instant), Table(StartKeys) }
}
either! {
    /// A window or a table.
    WindowForm { Fixed(Window), Table(WindowKeys) }
}
either! {
    /// A switch or a table.
    DelayedAckForm { Switch(bool), Table(DelayedAckKeys) }
}
either! {
    /// A scheme's name or a table.
    SchemeForm { Named(SchemeName), Table(SchemeKeys) }
}

/// The word `bulk`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bulk;

/// The word `eager`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Eager;

impl Read for Bulk {
    const FORM: Form = Form::Words(&["bulk"]);

    fn read(value: &Value, key: &str) -> Result<Self> {
        match value.text() {
            Some("bulk") => Ok(Self),
            _ => Err(wrong_word(
                value,
                key,
                &["\"bulk\"", "{ transfer = \"50 kB\" }", "{ rate = \"1 Mbit/s\" }"],
            )),
        }
    }
}

impl Read for Eager {
    const FORM: Form = Form::Words(&["eager"]);

    fn read(value: &Value, key: &str) -> Result<Self> {
        const FORMS: [&str; 4] = [
            "\"eager\"",
            "{ rate = \"1 Mbit/s\" }",
            "{ pause = { from = \"10 s\", to = \"20 s\" } }",
            "{ stop_at = \"10 s\" }",
        ];
        match value.text() {
            Some("eager") => Ok(Self),
            _ => Err(wrong_word(value, key, &FORMS)),
        }
    }
}
