//! Keys of flows and applications.

use crate::diagnostic::Result;
use crate::form::{Form, Read, either, table, words};
use crate::keys::{MAX_FLOWS, TcpKeys};
use crate::scalars::{Name, Whole, wrong_word};
use crate::value::Value;
use bentpipe_base::{Duration, Instant, Rate, Size};

table! {
    /// A flow, or `count` flows that differ only in their names and hosts.
    struct FlowKeys "[[flows]]" {
        required {
            /// Unique name; with `count`, the flows are called `name1`, `name2`, ...
            name: Name,
            /// The host that opens the connection and sends. With `count`: one host for all flows, or `src`
            /// for `src1`, `src2`, ...
            from: Name,
            /// The host that receives; with `count` as `from`.
            to: Name,
        }
        optional {
            /// Number of flows.
            count: Whole<1, MAX_FLOWS> = "one flow, called `name`",
            /// What is sent: `"bulk"` sends as long as the run lasts.
            app: AppForm = "`\"bulk\"`",
            /// Connections that share one transfer in equal parts; they are flows `name.1`, `name.2`, ...
            connections: Whole<1, 1000> = "one, called `name`",
            /// `false`: the flow is checked and left out. For a parameter that switches it.
            enabled: bool = "`true`",
            /// Name of the transfer that this connection carries a part of. Written by `bentpipe check` for
            /// `connections`.
            group: Name = "none",
            /// How the receiving application reads: `"eager"` takes everything at once.
            reader: ReaderForm = "`\"eager\"`",
            /// TCP options that the receiver has different from the sender. Everything not given here is as
            /// the flow says.
            receiver: ReceiverKeys = "as the sender",
            /// When the flow starts; with `from` and `to` at a random instant between them.
            start: StartForm = "`\"0 s\"`",
        }
        include { tcp: TcpKeys, }
    }
}

table! {
    /// The TCP of the end where a flow's data goes to, where it differs from the other end's: an old receiver
    /// that does not know window scaling before a modern sender, for instance.
    struct ReceiverKeys "receiver" {
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
            /// Asks and gets answers over one connection, as a browser does; the data flows back.
            requests: RequestKeys = "not given",
            /// Small writes at exponential intervals, as typing does.
            telnet: TelnetKeys = "not given",
            /// Datagrams without any control. TCP options have no effect on them.
            udp: UdpKeys = "not given",
        }
    }
}

table! {
    /// Questions and answers. The next question follows the last byte of the answer after a time to think.
    struct RequestKeys "requests" {
        required {
            /// Bytes of an answer.
            response: Size,
        }
        optional {
            /// Bytes of a question.
            request: Size = "`\"300 B\"`",
            /// Mean of the exponential time to think.
            think: Duration = "`\"0 s\"`",
            /// Closes after so many.
            count: Whole<1, 1_000_000_000> = "as long as the run lasts",
        }
    }
}

table! {
    /// Typing.
    struct TelnetKeys "telnet" {
        optional {
            /// Bytes of a write.
            size: Size = "`\"1 B\"`",
            /// Mean time between writes.
            gap: Duration = "`\"1 s\"`",
        }
    }
}

table! {
    /// Datagrams. Rates count payload.
    struct UdpKeys "udp" {
        required {
            /// Mean rate, or with `on` and `off` the rate in a spell.
            rate: Rate,
        }
        optional {
            /// Payload of a datagram, 1 B to 65507 B.
            size: Size = "`\"1000 B\"`",
            /// When they are sent: at equal intervals, or as a Poisson process.
            pattern: PatternForm = "`\"constant\"`",
        }
    }
}

table! {
    /// Spells of datagrams at equal intervals, and silence between them; both of exponential length.
    struct OnOffKeys "pattern" {
        required {
            /// Mean length of a spell.
            on: Duration,
            /// Mean length of a silence.
            off: Duration,
        }
    }
}

table! {
    /// How the receiving application reads. Exactly one key.
    struct ReaderKeys "reader" {
        optional {
            /// Reads at most at this rate.
            rate: Rate = "not given",
            /// Reads at two rates in turn.
            turns: TurnsKeys = "not given",
            /// Reads nothing for a while, once or again and again.
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
        optional {
            /// From one pause to the next, longer than a pause.
            every: Duration = "one pause",
        }
    }
}

table! {
    /// At which rates the reader reads, in turn from the start of the run on.
    struct TurnsKeys "turns" {
        required {
            /// Rate of the first turn.
            rate: Rate,
            /// Rate of the second one.
            then: Rate,
            /// How long a turn is.
            each: Duration,
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
    /// A pattern by name, or spells.
    PatternForm { Plain(PlainPattern), Table(OnOffKeys) }
}

/// A pattern without spells.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PlainPattern {
    Constant,
    Poisson,
}

words!(PlainPattern { "constant" => Constant, "poisson" => Poisson, } or r#"{ on = "1 s", off = "1 s" }"#);

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
                &[
                    "\"bulk\"",
                    "{ transfer = \"50 kB\" }",
                    "{ rate = \"1 Mbit/s\" }",
                    "{ requests = { response = \"50 kB\" } }",
                    "{ telnet = {} }",
                    "{ udp = { rate = \"1 Mbit/s\" } }",
                ],
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
