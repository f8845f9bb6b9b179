//! Writes a middlebox.

use super::observe::direction_name;
use super::{at, line, quoted};
use crate::form::Word as _;
use crate::types::{LinkSpec, MiddleboxSpec};
use bentpipe_nodes::DscpRule;

pub(super) fn write(out: &mut String, middlebox: &MiddleboxSpec, links: &[LinkSpec]) {
    let config = &middlebox.config;
    out.push_str("\n[[middleboxes]]\n");
    line(out, "name", &quoted(&middlebox.name));
    line(out, "link", &direction_name(links, middlebox.hop));
    line(out, "from", &at(config.from));
    match &config.dscp {
        DscpRule::Keep => {}
        DscpRule::All(dscp) => line(out, "dscp", &dscp.get().to_string()),
        DscpRule::Map(pairs) => {
            let pairs = pairs.iter().map(|(before, after)| format!("[{}, {}]", before.get(), after.get()));
            line(out, "dscp_map", &format!("[{}]", pairs.collect::<Vec<_>>().join(", ")));
        }
    }
    if !config.drops.is_empty() {
        let words: Vec<String> = config.drops.iter().map(|unwanted| quoted(unwanted.word())).collect();
        line(out, "drop", &format!("[{}]", words.join(", ")));
    }
    line(out, "nat", &config.nat.to_string());
}
