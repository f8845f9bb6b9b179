//! Keys of queues.

use crate::form::{table, words};
use crate::scalars::Whole;
use bentpipe_base::{Duration, Size};
use bentpipe_link::{Codel, Discipline, FqCodel};

const MAX_FLOWS: u64 = FqCodel::MOST_FLOWS as u64;

table! {
    /// A queue discipline with parameters. Exactly one key.
    struct DisciplineKeys "discipline" {
        /// CoDel, RFC 8289.
        codel: CodelKeys = "not given",
        /// FQ-CoDel, RFC 8290.
        fq_codel: FqCodelKeys = "not given",
    }

    /// CoDel (RFC 8289): drops or marks packets that have waited too long.
    struct CodelKeys "codel" {
        /// Queueing delay that is acceptable permanently. 5 to 10 % of `interval` works best; at least the
        /// time to serialise one packet.
        target: Duration = "`\"5 ms\"`",
        /// Time for which the delay must exceed `target` before the first drop. About the largest RTT.
        interval: Duration = "`\"100 ms\"`",
        /// Mark packets of ECN-capable flows instead of dropping them.
        ecn: bool = "`true`",
    }

    /// FQ-CoDel (RFC 8290): one CoDel queue for each flow, served by deficit round robin.
    struct FqCodelKeys "fq_codel" {
        /// Number of queues. Flows are assigned by a hash.
        flows: Whole<1, MAX_FLOWS> = "`1024`",
        /// Bytes that a queue may send per round, at least 256 B.
        quantum: Size = "`\"1500 B\"`",
        ..codel: CodelKeys,
    }
}

words!(Discipline {
    "fifo" => Fifo,
    "drop-head" => DropHead,
    "codel" => Codel(Codel::default()),
    "fq_codel" => FqCodel(FqCodel::default()),
    "flow-priority" => FlowPriority,
    "pushout" => Pushout,
    "threshold" => Threshold,
    "wred" => Wred,
} or r#"{ codel = { interval = "600 ms", target = "30 ms" } }"#);
