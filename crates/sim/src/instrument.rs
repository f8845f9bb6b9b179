//! Measuring instruments, modelled on those of the Ka-band experiment.
//!
//! A side channel measures bit errors and does not see the traffic; counters and bins count packets and do
//! not see bits. Each adds a row at the end of each of its intervals.

use crate::build::Network;
use crate::flow;
use bentpipe_base::{Duration, Instant, Purpose, RngSlot};
use bentpipe_link::LinkStats;
use bentpipe_report::InstrumentReport;
use bentpipe_scenario::{InstrumentKind, InstrumentSpec, Scenario};

/// A side channel samples the link once per second, because errored seconds are counted.
const SECOND: Duration = Duration::from_secs(1);

/// All instruments of a run.
#[derive(Debug)]
pub struct Instruments(Vec<Instrument>);

#[derive(Debug)]
struct Instrument {
    spec: InstrumentSpec,
    /// Index of the measured link direction.
    link: usize,
    rng: RngSlot,
    /// End of the interval, and time of the next sample.
    interval_end: Instant,
    next_sample: Instant,
    last_look: Instant,
    interval_start: Instant,
    before: LinkStats,
    /// Bytes delivered and retransmissions of the flow, up to the start of the interval.
    flow: [u64; 2],
    seen: SideChannelSums,
    report: InstrumentReport,
}

/// Measurements of a side channel in the current interval.
#[derive(Clone, Copy, Debug, Default)]
struct SideChannelSums {
    /// Time covered by samples. It differs from the interval if that is not a multiple of a second.
    time: Duration,
    bits: f64,
    errors: u64,
    errored_seconds: u32,
    ber_time: f64,
    fade_time: Option<f64>,
}

impl Instruments {
    /// Creates the instruments before the run. If flows run outside the network, bins have NaN as the values
    /// of their flow.
    pub fn new(scenario: &Scenario, net: &mut Network) -> Self {
        let start = |spec: &InstrumentSpec| {
            let samples = matches!(spec.kind, InstrumentKind::SideChannel { .. });
            Instrument {
                link: spec.link.index(),
                rng: net.sim.world.open_rng(&spec.name, Purpose::Instrument),
                interval_end: Instant::ZERO + spec.every,
                next_sample: if samples { Instant(SECOND.0) } else { Instant::NEVER },
                last_look: Instant::ZERO,
                interval_start: Instant::ZERO,
                before: LinkStats::default(),
                flow: [0; 2],
                seen: SideChannelSums::default(),
                report: empty(spec),
                spec: spec.clone(),
            }
        };
        Self(scenario.instruments.iter().map(start).collect())
    }

    /// Time of the next sample.
    pub fn next(&self) -> Instant {
        self.0.iter().map(|i| i.next_sample.min(i.interval_end)).min().unwrap_or(Instant::NEVER)
    }

    /// Takes the samples that are due.
    pub fn sample(&mut self, net: &mut Network) {
        let now = net.sim.now();
        for instrument in &mut self.0 {
            // a live run may be late; samples stay on the grid
            if instrument.next_sample <= now {
                instrument.side_channel(net, now);
                instrument.next_sample = next_on_grid(instrument.next_sample, SECOND, now);
            }
            if instrument.interval_end <= now {
                instrument.row(net, now);
                instrument.interval_end = next_on_grid(instrument.interval_end, instrument.spec.every, now);
            }
        }
    }

    /// Ends the last interval if it has started, and returns the measurements.
    pub fn finish(mut self, net: &mut Network) -> Vec<InstrumentReport> {
        let now = net.sim.now();
        for instrument in &mut self.0 {
            instrument.side_channel(net, now);
            if instrument.interval_start < now {
                instrument.row(net, now);
            }
        }
        self.0.into_iter().map(|i| i.report).collect()
    }
}

/// Names of the columns of an instrument's table; the first is the end of the interval.
pub fn columns(spec: &InstrumentSpec) -> Vec<String> {
    empty(spec).columns
}

/// Creates the table of an instrument without rows.
fn empty(spec: &InstrumentSpec) -> InstrumentReport {
    let (kind, columns): (_, &[&str]) = match spec.kind {
        InstrumentKind::SideChannel { .. } => {
            ("side-channel", &["time_s", "fade_db", "link_ber", "measured_ber", "errored_seconds"])
        }
        InstrumentKind::Counters => {
            ("counters", &["time_s", "packets", "bytes", "packets_in_error", "packets_dropped"])
        }
        InstrumentKind::Bins { .. } => (
            "bins",
            &[
                "time_s",
                "goodput_bytes_per_s",
                "packets",
                "packets_in_error",
                "packet_error_share",
                "retransmits",
            ],
        ),
    };
    InstrumentReport::new(&spec.name, kind, columns)
}

/// Returns the first of the times `at`, `at + every`, ... that is later than `now`.
fn next_on_grid(at: Instant, every: Duration, now: Instant) -> Instant {
    let over = now.since(at).0 / every.0.max(1);
    at + every * (over + 1)
}

impl Instrument {
    /// Adds the bit errors since the last sample, drawn with the link's bit error rate.
    fn side_channel(&mut self, net: &mut Network, now: Instant) {
        let InstrumentKind::SideChannel { rate } = self.spec.kind else { return };
        let time = now.since(self.last_look);
        if time.is_zero() {
            return;
        }
        let id = net.links[self.link].1;
        let Some((link, mut cx)) = net.sim.link(id) else { return };
        let look = link.snapshot(&mut cx);
        let bits = rate.bps() as f64 * time.as_secs_f64();
        let errors = cx.rng(self.rng).poisson(bits * look.ber);
        self.seen.time += time;
        self.seen.bits += bits;
        self.seen.errors += errors;
        self.seen.errored_seconds += u32::from(errors > 0);
        self.seen.ber_time += look.ber * time.as_secs_f64();
        if let Some(fade) = look.fade_db {
            *self.seen.fade_time.get_or_insert(0.0) += fade * time.as_secs_f64();
        }
        self.last_look = now;
    }

    fn row(&mut self, net: &mut Network, now: Instant) {
        let seconds = now.since(self.interval_start).as_secs_f64();
        let mut row = vec![now.as_secs_f64()];
        match self.spec.kind {
            InstrumentKind::SideChannel { .. } => {
                let seen = core::mem::take(&mut self.seen);
                // without a sample in the interval, all three are 0 / 0, that is NaN
                let looked = seen.time.as_secs_f64();
                let fade = seen.fade_time.map_or(f64::NAN, |f| f / looked);
                let (link_ber, measured) = (seen.ber_time / looked, seen.errors as f64 / seen.bits);
                row.extend([fade, link_ber, measured, f64::from(seen.errored_seconds)]);
            }
            InstrumentKind::Counters => row.extend(self.counted(net)),
            InstrumentKind::Bins { flow } => {
                let [goodput, retransmits] = if flow < net.flows.len() {
                    let seen = [flow::delivered_by(net, flow), flow::retransmits_by(net, flow)];
                    let before = core::mem::replace(&mut self.flow, seen);
                    [(seen[0] - before[0]) as f64 / seconds, (seen[1] - before[1]) as f64]
                } else {
                    [f64::NAN; 2]
                };
                let [packets, _, errors, _] = self.counted(net);
                let share = if packets > 0.0 { errors / packets } else { f64::NAN };
                row.extend([goodput, packets, errors, share, retransmits]);
            }
        }
        self.report.rows.push(row);
        self.interval_start = now;
    }

    /// Packets and bytes carried, and packets lost to errors and dropped at the queue, since the last call.
    fn counted(&mut self, net: &mut Network) -> [f64; 4] {
        let id = net.links[self.link].1;
        let Some((link, mut cx)) = net.sim.link(id) else { return [0.0; 4] };
        let stats = link.stats(&mut cx);
        let before = core::mem::replace(&mut self.before, stats.clone());
        let counted = [
            stats.served.packets - before.served.packets,
            stats.served.bytes.0 - before.served.bytes.0,
            stats.lost() - before.lost(),
            stats.dropped_in_queue() - before.dropped_in_queue(),
        ];
        counted.map(|n| n as f64)
    }
}
