//! Keys of queues.

use crate::form::{either, table, words};
use crate::scalars::Whole;
use bentpipe_base::{Duration, Size};
use bentpipe_link::FqCodel;

/// Most queues of FQ-CoDel.
const MAX_FLOWS: u64 = FqCodel::MOST_FLOWS as u64;

table! {
    /// A discipline with parameters. Exactly one key.
    struct DisciplineKeys "discipline" {
        optional {
            /// Controlled delay, RFC 8289.
            codel: CodelKeys = "not given",
            /// Flow queues under CoDel, RFC 8290.
            fq_codel: FqCodelKeys = "not given",
        }
    }
}

table! {
    /// When packets that have waited too long are dropped or marked, RFC 8289.
    struct CodelKeys "codel" {
        optional {
            /// Time in the queue that is acceptable for long. Best 5 to 10 % of `interval`, and at least the
            /// time that a packet takes.
            target: Duration = "`\"5 ms\"`",
            /// Time for which `target` must be exceeded before the first drop; about the longest round trip.
            interval: Duration = "`\"100 ms\"`",
            /// Packets of flows that understand ECN are marked instead of dropped.
            ecn: bool = "`true`",
        }
    }
}

table! {
    /// A queue for each flow, served in turn by bytes, RFC 8290.
    struct FqCodelKeys "fq_codel" {
        optional {
            /// Number of queues; flows are spread over them by a hash.
            flows: Whole<1, MAX_FLOWS> = "`1024`",
            /// Bytes that a queue may send in its turn, at least 256 B.
            quantum: Size = "`\"1500 B\"`",
        }
        include { codel: CodelKeys, }
    }
}

/// A discipline without parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlainDiscipline {
    Fifo,
    DropHead,
    Codel,
    FqCodel,
    Pushout,
    Threshold,
    Wred,
}

words!(PlainDiscipline {
    "fifo" => Fifo,
    "drop-head" => DropHead,
    "codel" => Codel,
    "fq_codel" => FqCodel,
    "pushout" => Pushout,
    "threshold" => Threshold,
    "wred" => Wred,
} or r#"{ codel = { interval = "600 ms", target = "30 ms" } }"#);

either! {
    /// A discipline by name, or with parameters.
    DisciplineForm { Plain(PlainDiscipline), Table(DisciplineKeys) }
}
