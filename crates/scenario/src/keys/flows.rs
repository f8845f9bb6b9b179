//! Keys of flows and applications.

use crate::diagnostic::Result;
use crate::form::{Form, OrTable, Read, table, words};
use crate::keys::{MAX_FLOWS, TcpKeys};
use crate::scalars::{Name, Whole, wrong_word};
use crate::value::Value;
use bentpipe_base::{Duration, Instant, Rate, Size};
use bentpipe_nodes::WhenRefused;

table! {
    /// A flow, or `count` flows that differ only in their names and hosts.
    struct FlowKeys "[[flows]]" {
        /// Unique name. With `count`, the flows are called `name1`, `name2`, ...
        name: Name,
        /// Host that connects and sends. With `count`: one host, or `src` for `src1`, `src2`, ...
        from: Name,
        /// Host that receives. With `count`, as for `from`.
        to: Name,
        /// Number of flows.
        count: Whole<1, MAX_FLOWS> = "one flow, called `name`",
        /// What the application sends. `"bulk"` sends until the end of the run.
        app: OrTable<Bulk, AppKeys> = "`\"bulk\"`",
        /// Connections that share one transfer in equal parts, called `name.1`, `name.2`, ...
        connections: Whole<1, 1000> = "one, called `name`",
        /// `false`: the flow is checked but does not run. Useful with a parameter.
        enabled: bool = "`true`",
        /// Transfer of which this connection carries a part. Written by `bentpipe check`.
        group: Name = "none",
        /// How the receiving application reads. `"eager"` reads all data at once.
        reader: OrTable<Eager, ReaderKeys> = "`\"eager\"`",
        /// TCP options of the receiver where they differ from those of the sender.
        receiver: ReceiverKeys = "as the sender",
        /// Start time of the flow. A table with `from` and `to` draws a random time between them; one with
        /// `every` starts the flows of a `count` one after another.
        start: OrTable<Instant, StartKeys> = "`\"0 s\"`",
        ..tcp: TcpKeys,
    }

    /// TCP options of the receiving end where they differ from those of the other end, for instance an old
    /// receiver without window scaling.
    struct ReceiverKeys "receiver" {
        ..tcp: TcpKeys,
    }

    /// Behaviour of the sending application. Exactly one key.
    struct AppKeys "app" {
        /// Sends this amount, then closes the connection.
        transfer: Size = "not given",
        /// Writes at this rate until the end of the run.
        rate: Rate = "not given",
        /// Sends without limit for this time from the start of the flow, then closes the connection.
        lasting: Duration = "not given",
        /// Sends requests and receives responses over one connection, as a browser does. The data flows from
        /// `to` to `from`.
        requests: RequestKeys = "not given",
        /// Small writes at exponentially distributed intervals, like a user who types.
        telnet: TelnetKeys = "not given",
        /// UDP datagrams without congestion control. TCP options have no effect on them, but with an
        /// `encoding` and a reserved rate in `ask` they are sent at the rate that the network grants.
        udp: UdpKeys = "not given",
    }

    /// Requests and responses. The next request follows the last byte of a response after a think time.
    struct RequestKeys "requests" {
        /// Size of a response.
        response: Size,
        /// Size of a request.
        request: Size = "`\"300 B\"`",
        /// Mean think time, exponentially distributed.
        think: Duration = "`\"0 s\"`",
        /// Number of requests after which the connection is closed.
        count: Whole<1, 1_000_000_000> = "as long as the run lasts",
    }

    /// Interactive typing.
    struct TelnetKeys "telnet" {
        /// Size of a write.
        size: Size = "`\"1 B\"`",
        /// Mean time between writes.
        gap: Duration = "`\"1 s\"`",
    }

    /// UDP datagrams. Rates count the payload.
    struct UdpKeys "udp" {
        /// Mean rate; with `on` and `off`, the rate during an on period.
        rate: Rate,
        /// Payload of a datagram, from 1 B to 65507 B.
        size: Size = "`\"1000 B\"`",
        /// When datagrams are sent: at equal intervals, as a Poisson process, or in on and off periods.
        pattern: OrTable<PlainPattern, OnOffKeys> = "`\"constant\"`",
        /// Time from the start of the flow after which it ends. A rate that was reserved for it is then given
        /// back.
        lasting: Duration = "until the end of the run",
        /// What it does if the network refuses the rate for which it asks (`ask`) or withdraws it:
        /// `"silent"` sends nothing any more, `"send"` sends without a rate.
        refused: WhenRefused = "`\"silent\"`",
    }

    /// On and off periods of exponentially distributed length; datagrams at equal intervals while on.
    struct OnOffKeys "pattern" {
        /// Mean length of an on period.
        on: Duration,
        /// Mean length of an off period.
        off: Duration,
    }

    /// How the receiving application reads. Exactly one key.
    struct ReaderKeys "reader" {
        /// Reads at most at this rate.
        rate: Rate = "not given",
        /// Reads at two rates alternately.
        turns: TurnsKeys = "not given",
        /// Stops reading for a time, once or periodically.
        pause: PauseKeys = "not given",
        /// Stops reading at this time.
        stop_at: Instant = "not given",
    }

    /// Times at which the reader pauses.
    struct PauseKeys "pause" {
        /// Start of the first pause.
        from: Instant,
        /// End of the first pause, after `from`.
        to: Instant,
        /// Period of repeated pauses, from start to start; longer than a pause.
        every: Duration = "one pause",
    }

    /// Two reading rates that alternate from the start of the run.
    struct TurnsKeys "turns" {
        /// First rate.
        rate: Rate,
        /// Second rate.
        then: Rate,
        /// Time for which each rate holds.
        each: Duration,
    }

    /// Start at a random time, uniformly distributed between `from` and `to`; or, with `every`, the flows of
    /// a `count` at equal intervals.
    struct StartKeys "start" {
        /// Earliest start; with `every`, the start of the first flow.
        from: Instant = "must be given; with `every`: `\"0 s\"`",
        /// Latest start, not before `from`.
        to: Instant = "must be given, unless there is `every`",
        /// Time from the start of one flow to the start of the next.
        every: Duration = "not given",
    }
}

/// A pattern without on and off periods.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PlainPattern {
    Constant,
    Poisson,
}

words!(PlainPattern { "constant" => Constant, "poisson" => Poisson, } or r#"{ on = "1 s", off = "1 s" }"#);

/// Declares a type for the only word that a key takes. `$forms` are all its values, for errors.
macro_rules! only_word {
    ($T:ident $word:literal $forms:expr) => {
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $T;

        impl Read for $T {
            const FORM: Form = Form::Words(&[$word]);

            fn read(value: &Value, key: &str) -> Result<Self> {
                if value.text() == Some($word) { Ok(Self) } else { Err(wrong_word(value, key, &$forms)) }
            }
        }
    };
}

only_word! { Bulk "bulk" [
    "\"bulk\"",
    "{ transfer = \"50 kB\" }",
    "{ rate = \"1 Mbit/s\" }",
    "{ lasting = \"20 s\" }",
    "{ requests = { response = \"50 kB\" } }",
    "{ telnet = {} }",
    "{ udp = { rate = \"1 Mbit/s\" } }",
] }
only_word! { Eager "eager" [
    "\"eager\"",
    "{ rate = \"1 Mbit/s\" }",
    "{ pause = { from = \"10 s\", to = \"20 s\" } }",
    "{ stop_at = \"10 s\" }",
] }
