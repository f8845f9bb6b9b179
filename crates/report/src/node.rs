//! Report of a node whose kind is not built in.

use crate::link::Counts;
use crate::words::each;
use serde::{Deserialize, Serialize};

/// A node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
pub struct NodeReport {
    /// Name.
    pub name: String,
    /// Kind of the node.
    pub kind: String,
    /// Counters of the node.
    pub counters: Counts,
}

impl NodeReport {
    pub(crate) fn line(&self) -> String {
        let counted =
            if self.counters.is_empty() { "counts nothing".to_owned() } else { each(&self.counters) };
        format!("{} {}: {counted}", self.kind, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_a_line() {
        let counters = [("data".to_owned(), 30), ("marked_up".to_owned(), 3)].into();
        let mut report = NodeReport { name: "m".into(), kind: "mark".into(), counters };
        assert_eq!(report.line(), "mark m: 30 data, 3 marked up");
        report.counters.clear();
        assert_eq!(report.line(), "mark m: counts nothing");
    }
}
