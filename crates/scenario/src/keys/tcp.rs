//! Keys of the TCP at both ends of a flow.

use super::scheme::SchemeKeys;
use crate::form::{OrTable, table};
use crate::lists::Pairs;
use crate::scalars::{Charge, SizeOrSegments, Ssthresh, Whole};
use bentpipe_base::{Duration, Instant, IpVersion, Probability, Rate, Size};
use bentpipe_tcp::{
    Detection, EcnUse, Encoding, FallbackScheme, JitterKind, Reduction, Scheme, Stack, Validation,
};

table! {
    /// TCP options of both ends of a flow. Under `[host]` they hold for all flows; in a flow, for that flow.
    struct TcpKeys "[host]" {
        /// TCP implementation that supplies the defaults of all other options: `"rfc"` follows the RFCs,
        /// `"linux"` behaves like Linux. Options that are given explicitly override these defaults.
        stack: Stack = "`\"rfc\"`",
        /// Congestion control and loss recovery: the name of a scheme, or a table with its parameters.
        tcp: OrTable<Scheme, SchemeKeys> = "`\"cubic\"`",
        /// Payload of a full segment, as in the MSS option; timestamps take 12 B of it. 1 B to 65495 B. With
        /// `ip = 6` the default is 20 B less.
        segment: Size = "`\"1460 B\"`",
        /// Receive window: a size, a number of segments, or a table for a window that grows automatically. At
        /// most 65535 B without window scaling.
        window: OrTable<SizeOrSegments, WindowKeys> = "`{ initial = \"64 KiB\", max = \"6 MiB\" }`",
        /// Bytes that a receiver with a fixed window keeps beyond what the window shows. Linux keeps up to
        /// twice what it can show without window scaling.
        reserve: Size = "`\"0 B\"`",
        /// Initial congestion window, in segments.
        iw: Whole<1, 65_535> = "`10`",
        /// Initial ssthresh. `"window"` sets it to the largest receive window.
        ssthresh: Ssthresh = "`\"unlimited\"`",
        /// Delayed acknowledgments. Off: every segment is acknowledged at once. On: every second segment, or
        /// after 200 ms. A table sets both values.
        delayed_ack: OrTable<bool, DelayedAckKeys> = "`{ count = 2, timeout = \"40 ms\" }`",
        /// Maximum amount of data written by the sending application and not yet acknowledged.
        send_buffer: Option<Size> = "`\"unlimited\"`",
        /// Nagle's algorithm; with `stack = "linux"`, Minshall's variant. If the key is not given, the end
        /// that answers requests does not use it, as usual for servers.
        nagle: bool = "`true`",
        /// Maximum random delay at the sender, drawn uniformly from zero to this value.
        jitter: Duration = "`\"0 s\"`",
        /// What `jitter` delays: `"opportunity"` delays the moment after an ACK at which the sender sends all
        /// that the window allows; `"packet"` delays each packet and keeps their order.
        jitter_kind: JitterKind = "`\"opportunity\"`",
        /// Minimum retransmission timeout.
        min_rto: Duration = "`\"1 s\"`",
        /// Maximum retransmission timeout.
        max_rto: Duration = "`\"60 s\"`",
        /// Retransmission timeout before the first RTT sample.
        initial_rto: Duration = "`\"1 s\"`",
        /// Clock granularity of the retransmission timer.
        rto_granularity: Duration = "`\"1 ms\"`",
        /// Number of consecutive timeouts after which the connection is aborted.
        max_timeouts: Whole<1, 1000> = "`15`",
        /// Abort the connection if sent data is not acknowledged for this time. Replaces `max_timeouts`.
        user_timeout: Option<Duration> = "`\"none\"`",
        /// TCP keep-alive (RFC 9293, section 3.8.4): a switch, or a table with the times.
        keep_alive: OrTable<bool, KeepAliveKeys> = "`false`",
        /// Send new data on each of the first two duplicate ACKs (RFC 3042).
        limited_transmit: bool = "`true`",
        /// What happens to a congestion window that the sender does not use: it is kept, reset to the initial
        /// window after an idle period, or validated (RFC 7661).
        validation: Validation = "`\"validate\"`",
        /// Spread the segments of a window evenly over the RTT.
        pacing: bool = "`false`",
        /// ECN (RFC 3168). `true`: request and accept it; `"answer"`: only accept it when the other end
        /// requests it. A Linux host: `"answer"`.
        ecn: EcnUse = "`false`",
        /// Negotiate the probe option if the scheme sends probe segments. Without it, the sender learns from
        /// DSACKs, or from timestamps if there is no SACK, which probes arrived, as with other hosts.
        probe_option: bool = "`true`",
        /// Sending rate that the network grants the sender, headers included. For schemes that need one, such
        /// as `explicit-rate`. With an `encoding`, the routers of the path grant rates instead.
        grant: OrTable<Option<Rate>, GrantKeys> = "`\"none\"`",
        /// Signalling by which an end asks routers for a rate (see `[[flow_routers]]`). `"tia-1039"`: in-band
        /// QoS signalling of TIA-1039. An end that asks runs `explicit-rate`, and `tcp` names the scheme that
        /// it falls back to. `"scone-tcp"`: SCONE's TCP option. The sender runs what `tcp` says, and never
        /// sends faster than routers advise. `"quick-start"`: RFC 4782. The sender starts at the rate that
        /// all routers approve, and goes on with what `tcp` says. `"off"`: an end without signalling.
        /// `trust_path` and `ask_fallback` have an effect with `"tia-1039"` only, `ask` and `take` not with
        /// `"off"`.
        encoding: Option<Encoding> = "`\"off\"`",
        /// Rate for which the sender of the data asks, headers included, at least 1 kbit/s; with
        /// `scone-tcp` the most that it uses of any advice. `"none"`: it only answers. A table asks for a
        /// rate that is reserved, or with priorities (`tia-1039` only). A receiver asks only if its own
        /// table says so. A flow of datagrams asks only for a rate that is reserved.
        ask: OrTable<Option<Rate>, AskKeys> = "`\"10 Gbit/s\"` for the sender, `\"none\"` for the receiver",
        /// The most that this end takes as a receiver, at least 1 kbit/s. It lowers the rates that it returns
        /// to this.
        take: Option<Rate> = "`\"none\"`",
        /// Believe an answer that no router has lowered. Else it counts as a path without signalling.
        trust_path: bool = "`false`",
        /// Loss rate above which a sender no longer trusts the rate of the network.
        ask_fallback: Probability = "`0.1`",
        /// IP version of the packets. Both ends of a flow have the same.
        ip: IpVersion = "`4`",
        /// Offer timestamps (RFC 7323).
        timestamps: bool = "`true`",
        /// Offer selective acknowledgments (SACK). Reno, newreno and vegas never do.
        sack: bool = "`true`",
        /// Offer window scaling (RFC 7323).
        window_scale: bool = "`true`",
        /// Send the MSS option; without it the peer sends 536 B.
        mss_option: bool = "`true`",
        /// Duration of TIME-WAIT.
        time_wait: Duration = "`\"60 s\"`",
    }

    /// A receive window that starts small and grows with the rate at which the application reads.
    struct WindowKeys "window" {
        /// Initial window.
        initial: SizeOrSegments,
        /// Maximum window.
        max: SizeOrSegments,
    }

    /// The rate that the network grants a sender.
    struct GrantKeys "grant" {
        /// Granted rate from the start, headers included.
        rate: Rate,
        /// Later changes: times in increasing order, each with the new rate. The sender learns of a lower
        /// rate one RTT later, of a higher one with its next request.
        changes: Pairs<Instant, Rate> = "none",
        /// Loss rate, 0 to 0.5, above which the sender falls back to a standard TCP; 0.2 suits radio links.
        fallback: Probability = "`0.1`",
        /// Scheme to which the sender falls back.
        fallback_to: FallbackScheme = "`\"cubic\"`",
    }

    /// What an end asks for. Which rates are given says of what type the whole is; a flow router gives
    /// reserved ones, and priorities, only where one of its rules allows them. Rates count IP packets with
    /// headers, at least 1 kbit/s.
    struct AskKeys "ask" {
        /// Available rate, which the network sets. With `guaranteed`, both.
        available: Rate = "not given",
        /// Rate that is reserved until it is given back. `available` and `guaranteed` together are a
        /// composite rate.
        guaranteed: Rate = "not given",
        /// Rate that is reserved while it is used. Alone.
        maximum: Rate = "not given",
        /// Preemption priority: who keeps a reserved rate when there are too many; 63 the longest.
        preemption: Whole<0, 63> = "`0`",
        /// Delay priority: who is sent first in a queue with `discipline = "flow-priority"`; 63 is.
        delay: Whole<0, 63> = "`0`",
        /// Time for which the rate may be exceeded: 500 ms, or that halved up to 15 times. Other times are
        /// rounded down to one of these.
        burst: Duration = "`\"500 ms\"`",
        /// Who pays.
        charge: Charge = "`\"sender\"`",
    }

    /// Limits after which a delayed ACK must be sent.
    struct DelayedAckKeys "delayed_ack" {
        /// Number of full segments.
        count: Whole<1, 1000> = "`2`",
        /// Time, less than 500 ms. A Linux host: `"40 ms"`.
        timeout: Duration = "`\"200 ms\"`",
    }

    /// Times and number of keep-alive probes. Times are at least 1 s.
    struct KeepAliveKeys "keep_alive" {
        /// Time without any segment from the peer before the first probe.
        idle: Duration = "`\"7200 s\"`",
        /// Time between two probes.
        interval: Duration = "`\"75 s\"`",
        /// Number of unanswered probes after which the connection is aborted.
        count: Whole<1, 127> = "`9`",
    }

    /// Loss recovery of a scheme.
    struct RecoveryKeys "recovery" {
        /// Loss detection: RFC 5681, RFC 6582, the fine-grained timer of Vegas, RFC 6675 or RFC 8985.
        detection: Detection = "as the scheme",
        /// How cwnd is reduced during recovery.
        reduction: Reduction = "as the scheme",
        /// Detect spurious timeouts with F-RTO (RFC 5682).
        frto: bool = "as the scheme",
    }
}
