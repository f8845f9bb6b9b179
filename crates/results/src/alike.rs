//! Flows alike: those of one scheme whose names differ only in their numbers. A table shows them as one row.

use bentpipe_report::FlowReport;

/// Fewer flows have a row each.
const LEAST: usize = 4;

/// Returns the flows in groups, in the order of their first ones. Groups of fewer than [`LEAST`] are single
/// flows.
pub(crate) fn groups(flows: &[FlowReport]) -> Vec<Vec<&FlowReport>> {
    let stem = |f: &FlowReport| -> String { f.name.chars().filter(|c| !c.is_ascii_digit()).collect() };
    let mut groups: Vec<((String, &str), Vec<&FlowReport>)> = Vec::new();
    for flow in flows {
        let key = (stem(flow), flow.scheme());
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, members)) => members.push(flow),
            None => groups.push((key, vec![flow])),
        }
    }
    let split = |(_, members): (_, Vec<_>)| {
        if members.len() < LEAST { members.into_iter().map(|m| vec![m]).collect() } else { vec![members] }
    };
    groups.into_iter().flat_map(split).collect()
}

/// Returns the cell of a group: the one that all have, the range of numbers, or the most frequent text.
pub(crate) fn folded(cells: &[String]) -> String {
    let Some(first) = cells.first() else { return String::new() };
    if cells.iter().all(|cell| cell == first) {
        return first.clone();
    }
    let mut numbers: Vec<(f64, &str)> =
        cells.iter().filter_map(|c| Some((c.parse().ok()?, c.as_str()))).collect();
    numbers.sort_by(|a, b| a.0.total_cmp(&b.0));
    if let (Some(least), Some(most)) = (numbers.first(), numbers.last()) {
        return format!("{} – {}", least.1, most.1);
    }
    let count = |text: &str| cells.iter().filter(|cell| *cell == text).count();
    let most = cells.iter().rev().max_by_key(|cell| count(cell)).unwrap_or(first);
    format!("{most} ({} of {})", count(most), cells.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_report::{FlowKind, TcpReport};

    fn flow(name: &str, scheme: &str) -> FlowReport {
        let tcp = TcpReport { scheme: scheme.to_owned().into(), ..TcpReport::default() };
        FlowReport { name: name.into(), kind: FlowKind::from(tcp), ..FlowReport::default() }
    }

    #[test]
    fn flows_of_one_template_are_one_group() {
        let mut flows: Vec<FlowReport> = (1..=5).map(|i| flow(&format!("src{i}"), "reno")).collect();
        flows.insert(2, flow("web", "cubic"));
        flows.push(flow("src6", "cubic"));
        let names: Vec<Vec<&str>> =
            groups(&flows).iter().map(|g| g.iter().map(|f| &*f.name).collect()).collect();
        assert_eq!(names, [vec!["src1", "src2", "src3", "src4", "src5"], vec!["web"], vec!["src6"]]);
        assert_eq!(groups(&flows[..3]).len(), 3, "two are too few to fold");
    }

    #[test]
    fn a_folded_cell_has_the_range() {
        let of = |cells: &[&str]| folded(&cells.iter().map(|c| (*c).to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&["3.0", "10.5", "–", "7"]), "3.0 – 10.5");
        assert_eq!((of(&["reno", "reno"]).as_str(), of(&[]).as_str()), ("reno", ""));
        assert_eq!(of(&["recovery", "pacing", "pacing"]), "pacing (2 of 3)");
    }
}
