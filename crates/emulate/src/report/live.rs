//! Builds the report of a live run, as for a simulated run.

use crate::flows::FlowResults;
use bentpipe_base::Instant;
use bentpipe_live::Outcome;
use bentpipe_report::{InstrumentReport, LatenessReport, LiveReport, PortDropsReport, Report};
use bentpipe_scenario::{InstrumentKind, Scenario};
use bentpipe_sim::record::{Record, Series};
use bentpipe_sim::report;

/// Returns the report and the record of a run.
pub(crate) fn assemble(scenario: &Scenario, outcome: &Outcome, flows: FlowResults) -> (Report, Record) {
    let mut record = outcome.record.clone().unwrap_or_default();
    record.take_flows(&flows.record);
    let mut instruments = outcome.instruments.clone();
    for (spec, seen) in scenario.instruments.iter().zip(&mut instruments) {
        if let InstrumentKind::Bins { flow } = spec.kind
            && flows.of_scenario
            && let Some(series) = flows.record.flows.get(flow)
        {
            fill_bins(seen, &flows.record.time_s, series);
        }
    }
    let FlowResults { reports, faults, differs, of_scenario, .. } = flows;
    let ran = outcome.until.since(Instant::ZERO);
    let mut report = report::assemble(scenario, ran, reports, outcome.links.clone(), instruments);
    if !of_scenario {
        // program connections are not the scenario's transfers
        report.transfers.clear();
    }
    let timing = &outcome.timing;
    report.live = Some(LiveReport {
        kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
        priority: outcome.priority.clone(),
        packets: timing.packets,
        lateness_us: LatenessReport { p50: timing.p50_us, p99: timing.p99_us, max: timing.max_us },
        late_packets: timing.late_packets,
        port_drops: PortDropsReport {
            receive: timing.port_receive_drops,
            send: timing.port_send_drops,
            not_ip: timing.port_not_ip,
        },
        trusted: timing.trusted,
        doubts: timing.doubts.clone(),
        differs,
        faults,
        ..LiveReport::default()
    });
    report.gateways.clone_from(&outcome.gateways);
    report.flow_routers.clone_from(&outcome.flow_routers);
    report.nodes.clone_from(&outcome.nodes);
    (report, record)
}

/// Fills the goodput of an instrument's bins from the flow's series: the data thread does not see flows.
fn fill_bins(bins: &mut InstrumentReport, time_s: &[f64], flow: &Series) {
    let Some(goodput) = flow.column("goodput_bps") else { return };
    let mut from = 0.0;
    for row in &mut bins.rows {
        let Some([to, cell]) = row.first_chunk_mut::<2>() else { continue };
        *cell = bytes(time_s, goodput, (from, *to)) / (*to - from);
        from = *to;
    }
}

/// Bytes delivered between `from` and `to` by a rate in bit/s, given for intervals that end at `time_s`.
fn bytes(time_s: &[f64], rate: &[f64], (from, to): (f64, f64)) -> f64 {
    let begins = core::iter::once(0.0).chain(time_s.iter().copied());
    let parts = begins.zip(time_s).zip(rate).filter(|(_, rate)| rate.is_finite());
    parts.map(|((begin, end), rate)| rate / 8.0 * (end.min(to) - begin.max(from)).max(0.0)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_sim::record::Column;

    #[test]
    fn bins_get_their_goodput_from_the_series_of_the_flow() {
        let values = vec![f64::NAN, 8.0, 16.0, 24.0];
        let flow = Series { name: "f".into(), columns: vec![Column { key: "goodput_bps", values }] };
        let mut bins = InstrumentReport::new("b", "bins", &["time_s", "goodput_bytes_per_s"]);
        bins.rows = vec![vec![2.0, f64::NAN], vec![3.5, f64::NAN]];
        fill_bins(&mut bins, &[1.0, 2.0, 3.0, 4.0], &flow);
        assert!((bins.rows[0][1] - 0.5).abs() < 1e-12, "{:?}", bins.rows);
        assert!((bins.rows[1][1] - (2.0 + 1.5) / 1.5).abs() < 1e-12, "{:?}", bins.rows);
    }
}
