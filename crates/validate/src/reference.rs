//! Numbers measured with other simulators.

const TABLE: &str = include_str!("../data/reference.csv");

/// One measured cell: a row of `data/reference.csv`. Values that become scenario parameters stay text.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// `ns2` or `ns3.44`; or `linux` and a release, for sockets of that kernel over an emulated link.
    pub sim: &'static str,
    /// Case: A to E, with a suffix.
    pub case: &'static str,
    /// The simulator's name of the congestion control.
    pub variant: &'static str,
    /// Number of connections.
    pub flows: &'static str,
    /// Packet loss probability.
    pub loss: &'static str,
    /// Bit error rate.
    pub ber: &'static str,
    /// Bottleneck queue, packets.
    pub buffer: &'static str,
    /// Receive window, segments.
    pub window: &'static str,
    /// Initial window, segments.
    pub iw: &'static str,
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

fn row(columns: &[&str], line: &'static str) -> Option<Row> {
    let cells = Some(line.split(',').collect::<Vec<_>>()).filter(|cells| cells.len() == columns.len())?;
    let text = |name: &str| Some(cells[columns.iter().position(|column| *column == name)?]);
    let number = |name: &str| text(name)?.parse::<f64>().ok();
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
        delayed_ack: text("delack")? == "1",
        duration_s: number("dur_s"),
        runs: text("runs")?.parse().ok()?,
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
    pub fn is_same_experiment(&self, other: &Self) -> bool {
        let key =
            |r: &Self| (r.case, r.variant, r.flows, r.loss, r.ber, r.buffer, r.window, r.iw, r.delayed_ack);
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
        assert!(cell("ns2").is_same_experiment(&cell("ns3.44")) && cell("ns2").is_deterministic());
        assert_eq!(row(&["sim"], "ns2,1"), None);
    }
}
