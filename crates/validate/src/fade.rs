//! Evaluates the instruments of a run over a faded link as in the Ka-band experiment: the traffic in bins of
//! time, and the bit errors that the side channel saw in each bin.

use crate::observed::RunResult;

/// Names of the instruments in `scenarios/fade-2h.toml`.
const SIDE_CHANNEL: &str = "side-channel";
const BINS: &str = "bins";

/// One bin of the traffic, two minutes long.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Bin {
    /// Mean attenuation, dB.
    fade_db: f64,
    /// BER of the link.
    link_ber: f64,
    /// BER measured on the side channel.
    measured_ber: f64,
    /// Packets sent.
    packets: f64,
    /// Packets in error.
    errors: f64,
}

/// Rows of an instrument, with cells in the order of `columns`; none if the run does not have it.
fn rows<const N: usize>(run: &RunResult, instrument: &str, columns: [&str; N]) -> Vec<[f64; N]> {
    let Some(table) = run.report.instruments.iter().find(|i| i.name == instrument) else { return Vec::new() };
    let places = columns.map(|name| table.columns.iter().position(|c| *c == name));
    let cell =
        |row: &[f64], place: Option<usize>| place.and_then(|i| row.get(i)).copied().unwrap_or(f64::NAN);
    table.rows.iter().map(|row| places.map(|place| cell(row, place))).collect()
}

/// Time, attenuation, BER of the link and measured BER of each interval of the side channel.
fn side_channel(run: &RunResult) -> Vec<[f64; 4]> {
    rows(run, SIDE_CHANNEL, ["time_s", "fade_db", "link_ber", "measured_ber"])
}

/// The bins of a run.
fn bins(run: &RunResult) -> Vec<Bin> {
    let traffic = rows(run, BINS, ["time_s", "packets", "packets_in_error"]);
    let channel = side_channel(run);
    let mut begin_s = 0.0;
    traffic
        .into_iter()
        .map(|[end_s, packets, errors]| {
            let inside: Vec<&[f64; 4]> =
                channel.iter().filter(|row| row[0] > begin_s && row[0] <= end_s).collect();
            let mean = |i: usize| inside.iter().map(|row| row[i]).sum::<f64>() / inside.len() as f64;
            begin_s = end_s;
            let (fade_db, link_ber, measured_ber) = (mean(1), mean(2), mean(3));
            Bin { fade_db, link_ber, measured_ber, packets, errors }
        })
        .collect()
}

/// Packet error ratio divided by BER. Counts the bins of all runs in which the packet error ratio that the
/// link's BER gives is at least `low` and below `high`.
pub(crate) fn errors_per_bit(runs: &[&RunResult], low: f64, high: f64, measured: bool) -> f64 {
    let all = runs.iter().flat_map(|run| bins(run));
    let fits = |bin: &Bin| {
        let expected = packet_error(bin.link_ber);
        low <= expected && expected < high
    };
    let (errors, bits) = all.filter(fits).fold((0.0, 0.0), |(errors, bits), bin| {
        let ber = if measured { bin.measured_ber } else { bin.link_ber };
        (errors + bin.errors, bits + bin.packets * ber)
    });
    errors / bits
}

/// Probability that a packet of 1500 B has a bit error.
fn packet_error(ber: f64) -> f64 {
    -libm::expm1(12_000.0 * libm::log1p(-ber))
}

/// Share of intervals whose BER is lower than that of the interval with the next smaller fade.
pub(crate) fn out_of_order(run: &RunResult) -> f64 {
    let mut rows = side_channel(run);
    rows.retain(|row| !row[1].is_nan());
    rows.sort_by(|a, b| a[1].total_cmp(&b[1]));
    let pairs = rows.len().saturating_sub(1);
    // the tolerance is for the rounding of the means over an interval
    let falls = rows.windows(2).filter(|w| w[1][2] < w[0][2] * (1.0 - 1e-9)).count();
    falls as f64 / pairs as f64
}

/// Kendall's rank correlation of the fade and the measured BER of two-minute bins: 1 if they always rise
/// together.
pub(crate) fn rank_correlation(run: &RunResult) -> f64 {
    let bins = bins(run);
    let (mut agree, mut pairs) = (0.0, 0.0);
    for (i, a) in bins.iter().enumerate() {
        for b in &bins[i + 1..] {
            let (x, y) = (a.fade_db - b.fade_db, a.measured_ber - b.measured_ber);
            if x != 0.0 && y != 0.0 {
                agree += (x * y).signum();
                pairs += 1.0;
            }
        }
    }
    agree / pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_report::{InstrumentReport, Report};

    fn run(fades: [f64; 4], bers: [f64; 4]) -> RunResult {
        let table = |name: &str, columns: &[&str], rows: Vec<Vec<f64>>| InstrumentReport {
            rows,
            ..InstrumentReport::new(name, "", columns)
        };
        let rows = (0..4).map(|i| vec![15.0 * (i + 1) as f64, fades[i], bers[i], bers[i]]).collect();
        let channel = table(SIDE_CHANNEL, &["time_s", "fade_db", "link_ber", "measured_ber"], rows);
        let columns = ["time_s", "packets", "packets_in_error"];
        let rows = vec![vec![30.0, 1000.0, 24.0], vec![60.0, 500.0, 6.0]];
        let instruments = vec![channel, table(BINS, &columns, rows)];
        RunResult::of(Report { instruments, ..Report::default() })
    }

    #[test]
    fn bins_stand_beside_the_bit_errors_of_their_time() {
        let run = run([4.0, 3.0, 2.0, 1.0], [3e-6, 1e-6, 1e-6, 1e-6]);
        let bins = bins(&run);
        assert_eq!((bins[0].packets, bins[1].packets), (1000.0, 500.0));
        assert!((bins[0].link_ber - 2e-6).abs() < 1e-18 && (bins[1].fade_db - 1.5).abs() < 1e-12);
        // 2e-6 gives a packet error ratio of 0.0237: 24 of 1000 packets; 1e-6 gives 0.0119
        let ratio = errors_per_bit(&[&run], 0.02, 0.03, true);
        assert!((ratio - 12_000.0).abs() < 1e-6, "{ratio}");
        let both = errors_per_bit(&[&run], 0.001, 0.1, false);
        assert!((both - 30.0 / 2.5e-3).abs() < 1e-6, "{both}");
    }

    #[test]
    fn order_and_rank() {
        let falling = run([4.0, 3.0, 2.0, 1.0], [4e-6, 3e-6, 2e-6, 1e-6]);
        assert!(out_of_order(&falling) < 1e-12 && rank_correlation(&falling) > 1.0 - 1e-12);
        let odd = run([4.0, 3.0, 2.0, 1.0], [4e-6, 5e-6, 2e-6, 1e-6]);
        assert!((out_of_order(&odd) - 1.0 / 3.0).abs() < 1e-12);
        assert!(
            out_of_order(&RunResult::default()).is_nan() && rank_correlation(&RunResult::default()).is_nan()
        );
    }
}
