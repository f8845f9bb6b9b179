//! The tables of checks: what each compares, and why its tolerance is what it is.

/// One table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Completion times against ns-2.
    Transfers,
    /// Window-limited connections against ns-2.
    Windows,
    /// Bit errors against ns-2.
    BitErrors,
    /// Goodput after a slow-start overshoot against ns-2.
    Bursts,
    /// Its peak queue.
    Queues,
    /// Twenty flows, random loss, sender jitter.
    Jitter,
    /// The same without jitter.
    Sharing,
    /// The same with CUBIC.
    Cubic,
    /// W/RTT.
    WindowLimit,
    /// Rounds of slow start.
    SlowStart,
    /// The inverse-square-root law.
    Mathis,
    /// Link rate times the share of packets that arrive.
    Ceiling,
    /// Frequency of packet losses.
    PacketLoss,
    /// Frequency of packets with bit errors.
    BitErrorShare,
    /// A saturated link is never idle.
    Saturated,
    /// And carries its rate.
    LinkRate,
}

/// What stands above a table.
struct Text {
    title: &'static str,
    columns: &'static [&'static str],
    expected: &'static str,
    intro: &'static str,
}

impl Group {
    /// Every table, in the order of the page.
    pub const ALL: [Self; 16] = [
        Self::Transfers,
        Self::Windows,
        Self::BitErrors,
        Self::Bursts,
        Self::Queues,
        Self::Jitter,
        Self::Sharing,
        Self::Cubic,
        Self::WindowLimit,
        Self::SlowStart,
        Self::Mathis,
        Self::Ceiling,
        Self::PacketLoss,
        Self::BitErrorShare,
        Self::Saturated,
        Self::LinkRate,
    ];

    /// Heading.
    pub const fn title(self) -> &'static str {
        self.text().title
    }

    /// Headings of the leading columns.
    pub const fn columns(self) -> &'static [&'static str] {
        self.text().columns
    }

    /// Heading of the column of expected values.
    pub const fn expected(self) -> &'static str {
        self.text().expected
    }

    /// What is compared, and the reason for the tolerance.
    pub const fn intro(self) -> &'static str {
        self.text().intro
    }

    /// True for checks against formulas.
    pub fn is_closed_form(self) -> bool {
        self >= Self::WindowLimit
    }

    /// True when the whole group takes a second or so: a part of the ordinary tests.
    pub const fn is_fast(self) -> bool {
        matches!(
            self,
            Self::Transfers
                | Self::Windows
                | Self::Bursts
                | Self::Queues
                | Self::WindowLimit
                | Self::SlowStart
                | Self::Saturated
                | Self::LinkRate
        )
    }

    const fn text(self) -> Text {
        match self {
            Self::Transfers
            | Self::Windows
            | Self::BitErrors
            | Self::Bursts
            | Self::Queues
            | Self::Jitter
            | Self::Sharing
            | Self::Cubic => self.measured(),
            _ => self.computed(),
        }
    }

    const fn measured(self) -> Text {
        let (title, columns, intro): (_, &'static [&'static str], _) = match self {
            Self::Transfers => ("Transfers", &["size", "initial window"], TRANSFERS),
            Self::Windows => ("Receive windows", &["connections", "window, segments"], WINDOWS),
            Self::BitErrors => ("Bit errors", &["TCP", "bit error rate"], BIT_ERRORS),
            Self::Bursts => ("Slow-start overshoot: goodput", &["TCP", "ACKs", "buffer, packets"], BURSTS),
            Self::Queues => ("Slow-start overshoot: peak queue", &["TCP", "ACKs", "buffer, packets"], QUEUES),
            Self::Jitter => ("Random loss, with sender jitter", &["TCP", "loss"], JITTER),
            Self::Sharing => ("Random loss, without jitter", &["TCP", "loss"], SHARING),
            _ => ("Random loss, CUBIC", &["CUBIC", "loss"], CUBIC),
        };
        Text { title, columns, expected: "ns-2", intro }
    }

    const fn computed(self) -> Text {
        let (title, columns, expected, intro): (_, &'static [&'static str], _, _) = match self {
            Self::WindowLimit => ("Window limit", &["window, segments"], "W / RTT", WINDOW_LIMIT),
            Self::SlowStart => ("Rounds of slow start", &["size", "initial window"], "formula", SLOW_START),
            Self::Mathis => ("Inverse-square-root law", &["TCP", "loss"], "1.22 MSS / (RTT √p)", MATHIS),
            Self::Ceiling => ("Ceiling of retransmission", &["TCP", "flows", "loss"], "C (1 − p)", CEILING),
            Self::PacketLoss => ("Share of packets lost", &["packets of", "loss"], "p", PACKET_LOSS),
            Self::BitErrorShare => (
                "Share of packets with bit errors",
                &["packets of", "bit error rate"],
                "1 − (1 − BER)^(8 L)",
                BIT_ERROR_SHARE,
            ),
            Self::Saturated => {
                ("A saturated link is never idle", &["flows", "window, segments"], "expected", SATURATED)
            }
            _ => ("A saturated link carries its rate", &["flows", "window, segments"], "C / 1.04", LINK_RATE),
        };
        Text { title, columns, expected, intro }
    }
}

const TRANSFERS: &str = "One transfer over 1.544 Mbit/s and 585 ms, from the SYN to the ACK of the last byte, in \
    `scenarios/transfer.toml`. Nothing is random, and ns-2 and ns-3 agree within 0.7 ms. Tolerance 1 ms: less than the \
    serialisation of one packet, so a single round trip or packet out of place shows.";

const WINDOWS: &str = "Long connections limited by their receive windows, 500 s, in `scenarios/window.toml`. Nothing is \
    random. Tolerance 0.5 %: ns-2 counts what the sender has seen acknowledged, bentpipe what the receiver has got, which \
    is half a window more at the end.";

const BIT_ERRORS: &str = "One connection with a window of 128 segments over 1.544 Mbit/s with bit errors, 500 s, in \
    `scenarios/window.toml`. Tolerance 8 %: the reference itself, a mean of ten runs, is known to 4 to 6 % only. \
    Vegas is not judged: its reaction to losses hangs on details of its timer, and ns-2 and ns-3 differ by about a third.";

const BURSTS: &str = "A window of 128 segments overflows the bottleneck's queue in the first slow start; 100 s, in \
    `scenarios/burst.toml`. Tolerance 2 % for SACK with an ACK for every segment. How Reno and NewReno get out of a \
    burst of losses depends on details in which simulators differ by a factor of two or more (and ns-3's NewReno uses \
    SACK and PRR unless told otherwise): not judged, nor are delayed ACKs.";

const QUEUES: &str = "The longest queue of the same runs. Tolerance one packet: of a buffer of K packets, K − 1 can wait in \
    ns-2, K in bentpipe and in ns-3, each plus one in service. ns-2's queue was sampled every 10 ms.";

const JITTER: &str = "Twenty connections share 10 Mbit/s and 550 ms, 500 s, in `scenarios/sharing.toml`; the sum of their \
    goodputs. Each opportunity to send is delayed by up to 0.9 ms, about one packet time, which removes phase effects. \
    Tolerance 6 %: what is left are differences in loss recovery.";

const SHARING: &str = "Without jitter, drop-tail queues lock on to the rhythm of some senders (phase effects) when losses \
    are rare, and the sums depend on nanoseconds: Reno, NewReno and SACK are judged (6 %) from a loss of 5e-3 only, \
    where the queue is mostly empty. Vegas keeps the queue short and is judged everywhere, within 6 %, and 10 % at a loss \
    of 1e-2 where its fine-grained timer decides.";

const CUBIC: &str = "The same with CUBIC. ns-2 has the CUBIC of the Linux of 2008: beta 0.8 and no HyStart. With these, \
    tolerance 6 % everywhere. With what RFC 9438 says (beta 0.7) and HyStart++, 4 % where the queue decides; at a \
    loss of 1e-2 the smaller beta costs goodput, 10 % by the formula of RFC 9438, section 5.1: from ns-2's 1036 kB/s to \
    930. 880 to 960 kB/s are allowed.";

const WINDOW_LIMIT: &str = "Goodput from 100 s to 500 s of one connection, where RTT is propagation plus the \
    serialisation of one segment and its ACK on each link. Tolerance 0.15 %: the ends of the interval can cut \
    one window, in 400 s.";

const SLOW_START: &str = "With n segments and an initial window w, the last segment leaves in round k = ⌈log₂(n/w + 1)⌉ and is \
    the m-th of its round, m = n − w (2^(k−1) − 1). The transfer takes one round trip for the handshake, k for the \
    rounds, and m − 1 packet times of the bottleneck. Tolerance 0.6 ms: TCP options on SYN and SYN-ACK (at most 40 \
    B each) and the ACK before the first segment.";

const MATHIS: &str = "Mean goodput of one of twenty flows in `scenarios/sharing.toml`, with jitter. Tolerance 10 %: the law \
    leaves out timeouts, the receive window and queueing. It holds where random loss, not the queue, decides.";

const CEILING: &str = "What retransmission can reach at most on a link of rate C (payload, without headers) that loses \
    packets: each is sent 1/(1 − p) times. It must not be exceeded, and with flows and windows enough SACK and CUBIC must \
    reach 90 % of it.";

const PACKET_LOSS: &str = "Packets that the satellite hop lost, of those it sent, in five runs of twenty NewReno connections. \
    Tolerance: counts that the binomial distribution yields in all but one of 10 000 cases.";

const BIT_ERROR_SHARE: &str = "The same for bit errors, in `scenarios/window.toml`. A packet of L bytes arrives when all \
    its 8 L bits do.";

const SATURATED: &str = "Share of the time from 100 s to 500 s that the bottleneck spent serialising, with windows larger \
    than the network holds and no loss. Tolerance 1e-4: a packet in service at either end is 1.3e-5.";

const LINK_RATE: &str = "Goodput of the same interval: 1000 of every 1040 B that the link's rate carries. Tolerance 1e-4, \
    as above; so the rate holds in the long run although no packet's time is a whole number of nanoseconds.";
