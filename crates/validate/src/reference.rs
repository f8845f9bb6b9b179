//! Numbers measured with other simulators.

use std::collections::BTreeMap;

const TABLE: &str = include_str!("../data/reference.csv");

/// One measured cell. Fields are the columns of `data/reference.csv`; those used as parameters are strings.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// `ns2` or `ns3.44`; or `linux` and a release, for sockets of that kernel over an emulated link.
    pub sim: String,
    /// Case: A to E, with a suffix.
    pub case: String,
    /// The simulator's name of the congestion control.
    pub variant: String,
    /// Number of connections.
    pub flows: String,
    /// Packet loss probability.
    pub loss: String,
    /// Bit error rate.
    pub ber: String,
    /// Bottleneck queue, packets.
    pub buffer: String,
    /// Receive window, segments.
    pub window: String,
    /// Initial window, segments.
    pub iw: String,
    /// Delayed ACKs: every second segment.
    pub delayed_ack: bool,
    /// Duration, s; `None` for transfers.
    pub duration_s: Option<f64>,
    /// Number of runs.
    pub runs: u32,
    /// Mean goodput, B/s.
    pub goodput: f64,
    /// Half-width of its 95 % confidence interval.
    pub goodput_ci95: Option<f64>,
    /// Case B: mean goodput of an X flow over that of a Y flow.
    pub ratio: Option<f64>,
    /// Half-width of its 95 % confidence interval.
    pub ratio_ci95: Option<f64>,
    /// Mean peak queue, packets.
    pub queue_peak: f64,
    /// Completion time of transfers, s.
    pub finished_s: Option<f64>,
}

/// All rows of the table.
pub fn rows() -> Vec<Row> {
    let mut lines = TABLE.lines().filter(|l| !l.starts_with('#'));
    let columns: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    lines.map(|line| row(&columns, line).unwrap_or_else(|| panic!("data/reference.csv: {line}"))).collect()
}

fn row(columns: &[&str], line: &str) -> Option<Row> {
    let cells: Vec<&str> = line.split(',').collect();
    if cells.len() != columns.len() {
        return None;
    }
    let cells: BTreeMap<&str, &str> = columns.iter().copied().zip(cells).collect();
    let text = |name| cells.get(name).map(|v| (*v).to_owned());
    let number = |name| cells.get(name)?.parse::<f64>().ok();
    Some(Row {
        sim: text("sim")?,
        case: text("scenario")?,
        variant: text("variant")?,
        flows: text("flows")?,
        loss: text("loss")?,
        ber: text("ber")?,
        buffer: text("buf")?,
        window: text("wnd")?,
        iw: text("iw")?,
        delayed_ack: cells.get("delack")? == &"1",
        duration_s: number("dur_s"),
        runs: cells.get("runs")?.parse().ok()?,
        goodput: number("goodput_Bps")?,
        goodput_ci95: number("goodput_Bps_ci95"),
        ratio: number("ratio_XY"),
        ratio_ci95: number("ratio_XY_ci95"),
        queue_peak: number("maxq")?,
        finished_s: number("fct_s"),
    })
}

impl Row {
    /// True if the result is not random: no losses, and all flows start together.
    pub fn is_deterministic(&self) -> bool {
        self.case.starts_with('D') || (self.case.starts_with('C') && self.case != "C-ber")
    }

    /// True if `other` is the same experiment in another simulator.
    pub fn same_cell(&self, other: &Self) -> bool {
        let key = |r: &Self| {
            let r = r.clone();
            (r.case, r.variant, r.flows, r.loss, r.ber, r.buffer, r.window, r.iw, r.delayed_ack)
        };
        self.sim != other.sim && key(self) == key(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_reads() {
        let rows = rows();
        assert!(rows.len() > 80, "{}", rows.len());
        assert!(rows.iter().all(|r| r.goodput > 0.0 && r.runs > 0));
        let cell = |sim: &str| {
            let fits = |r: &&Row| r.sim == sim && r.case == "C-iw-100000B" && r.iw == "1";
            rows.iter().find(fits).cloned().unwrap()
        };
        assert_eq!(cell("ns2").finished_s, Some(4.9258));
        assert!(cell("ns2").same_cell(&cell("ns3.44")) && cell("ns2").is_deterministic());
        assert_eq!(row(&["sim"], "ns2,1"), None);
    }
}
