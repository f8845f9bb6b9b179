//! Runs a scenario's timeline faster: two hours of a fade in two minutes, without changing what a packet
//! experiences on the link.
//!
//! The factor divides the scenario's timestamps and everything that changes over minutes and hours: the
//! end of the run, starts of flows, readers' pauses, intervals of measuring and recording; changes of the
//! timeline, including its outages; steps of capacity; the profile of a fade, rain, the satellite that a
//! dish does not follow, drifts, and the delay of adaptive coding; passes, slots and handovers of
//! satellites; recurring outages, their gaps and their lengths. So the share of time in fade or outage is
//! unchanged, and an event at the end of the scenario is still at its end.
//!
//! The factor does not change what a packet experiences: rate, delay, queue, losses, bursts, jitter and its
//! steps, mahimahi traces (they are the rate), frames and grants of demand assignment, release after idle,
//! scintillation (its corner stays at 0.1 Hz), and what applications do: think times, gaps, rates.

use bentpipe_base::{Duration, Instant};
use bentpipe_link::{
    CapacityTrace, Dynamics, Fade, FadeEffect, FadeSource, Handover, Orbit, Recorded, SHORTEST_STEP, Slots,
};
use bentpipe_scenario::{InstrumentSpec, Reader, Scenario, Start};
use std::sync::Arc;

const RANGE: (f64, f64) = (1e-3, 1e6);

/// An invalid factor.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("the speed {0} is out of range: give a number from 0.001 to 1000000; 60 replays an hour in a minute")]
pub struct SpeedError(pub String);

/// Reads a factor: `60`, `0.5`.
///
/// # Errors
/// When it is not a number, or out of range.
pub fn parse(text: &str) -> Result<f64, SpeedError> {
    let factor: f64 = text.trim().parse().map_err(|_| SpeedError(format!("`{text}`")))?;
    // also rejects NaN
    if (RANGE.0..=RANGE.1).contains(&factor) { Ok(factor) } else { Err(SpeedError(format!("{factor}"))) }
}

/// Makes the scenario's timeline run `speed` times as fast. Ignores a factor that [`parse`] would reject.
pub fn speed_up(scenario: &mut Scenario, speed: f64) {
    if (speed - 1.0).abs() < 1e-12 || !(RANGE.0..=RANGE.1).contains(&speed) {
        return;
    }
    let clock = TimeScale(speed);
    clock.scale(&mut scenario.duration.0);
    if let Some((from, to)) = &mut scenario.measure {
        clock.scale(&mut from.0);
        clock.scale(&mut to.0);
    }
    for link in &mut scenario.links {
        for side in [&mut link.forward, &mut link.backward] {
            if side.dynamics.is_some()
                && let Some(dynamics) = &mut Arc::make_mut(side).dynamics
            {
                clock.dynamics(dynamics);
            }
        }
    }
    for router in &mut scenario.flow_routers {
        // what follows packets (idle times, responses) stays, as on a link
        for (at, _) in &mut router.rates {
            clock.scale(&mut at.0);
        }
    }
    for flow in &mut scenario.flows {
        match &mut flow.start {
            Start::At(at) => clock.scale(&mut at.0),
            Start::Uniform(from, to) => {
                clock.scale(&mut from.0);
                clock.scale(&mut to.0);
            }
        }
        clock.reader(&mut flow.reader);
    }
    for InstrumentSpec { every, .. } in &mut scenario.instruments {
        clock.step(every);
    }
    for capture in &mut scenario.captures {
        clock.scale(&mut capture.from.0);
        clock.scale(&mut capture.to.0);
    }
}

#[derive(Clone, Copy)]
struct TimeScale(f64);

impl TimeScale {
    /// Scales nanoseconds; "never" stays "never".
    fn scale(self, ns: &mut u64) {
        if *ns != u64::MAX {
            *ns = (*ns as f64 / self.0 + 0.5) as u64;
        }
    }

    /// Scales a time that must not be zero.
    fn step(self, length: &mut Duration) {
        self.scale(&mut length.0);
        *length = (*length).max(SHORTEST_STEP);
    }

    fn reader(self, reader: &mut Reader) {
        match reader {
            Reader::Eager | Reader::Slow(_) => {}
            Reader::Turns { rates: _, each } => self.step(each),
            Reader::Pause { from, to, every } => {
                self.scale(&mut from.0);
                self.scale(&mut to.0);
                if let Some(every) = every {
                    self.step(every);
                }
            }
            Reader::StopAt(at) => self.scale(&mut at.0),
        }
    }

    fn points<T: Copy>(self, points: &mut Arc<[(Instant, T)]>) {
        for (at, _) in Arc::make_mut(points).iter_mut() {
            self.scale(&mut at.0);
        }
    }

    fn dynamics(self, dynamics: &mut Dynamics) {
        let Dynamics { changes, capacity, delay, loss, orbit, fade, bursts: _, outages, access: _ } =
            dynamics;
        for (at, _) in changes.iter_mut() {
            self.scale(&mut at.0);
        }
        if let Some(CapacityTrace::Steps { points, repeat }) = capacity {
            self.points(points);
            if let Some(repeat) = repeat {
                self.step(repeat);
            }
        }
        if let Some(series) = delay {
            self.series(series);
        }
        if let Some(series) = loss {
            self.series(series);
        }
        match orbit {
            Some(Orbit::Pass(pass)) => {
                pass.pace *= self.0;
                self.step(&mut pass.every);
            }
            Some(Orbit::Slots(slots)) => self.slots(slots),
            None => {}
        }
        if let Some(fade) = fade {
            self.fade(fade);
        }
        if let Some(outages) = outages {
            for length in [&mut outages.every, &mut outages.shortest, &mut outages.longest] {
                self.scale(&mut length.0);
            }
        }
    }

    fn series<T: Copy>(self, series: &mut Recorded<T>) {
        self.points(&mut series.points);
        if let Some(repeat) = &mut series.repeat {
            self.step(repeat);
        }
    }

    fn slots(self, slots: &mut Slots) {
        self.step(&mut slots.period);
        self.scale(&mut slots.offset.0);
        match &mut slots.handover {
            Handover::Outage(shortest, longest) => {
                self.scale(&mut shortest.0);
                self.scale(&mut longest.0);
            }
            Handover::Loss(_, time) => self.scale(&mut time.0),
            Handover::Seamless => {}
        }
    }

    fn fade(self, fade: &mut Fade) {
        self.step(&mut fade.every);
        match &mut fade.source {
            FadeSource::Profile(points) => self.points(points),
            FadeSource::Rain(rain) => {
                // the same samples, closer together
                rain.beta *= self.0;
                self.step(&mut rain.step);
            }
            FadeSource::Pointing(pointing) => {
                pointing.pace *= self.0;
                self.scale(&mut pointing.node.0);
                self.scale(&mut pointing.aim.0);
            }
        }
        match &mut fade.effect {
            FadeEffect::Acm(acm) => self.scale(&mut acm.delay.0),
            FadeEffect::Coding { drift: Some(drift), .. } => {
                self.step(&mut drift.period);
                self.scale(&mut drift.start.0);
            }
            FadeEffect::Coding { drift: None, .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_scenario::{Source, load};

    const TEXT: &str = r#"
schema = 1
title = "everything that has a time"
duration = "2 h"
measure = { from = "60 s", to = "120 s" }

[dumbbell]
access = { rate = "100 Mbit/s", delay = "1 ms", buffer = "50 packets" }
rate = "10 Mbit/s"
rtt = "600 ms"
buffer = "50 packets"
framing = "4 B"
capacity = { steps = [["60 s", "1 Mbit/s"], ["120 s", "none"]], repeat = "180 s" }
fade = { profile = [["0 s", "5 dB"], ["7200 s", "0 dB"]], acm = { clear = "13.5 dB", delay = "6 s" }, every = "15 s" }
bursts = { loss = 0.01, burst = "100 ms" }
outages = { every = "60 s", length = "6 s" }

[dumbbell.return]
orbit = { slots = { delay = ["20 ms", "30 ms"], period = "15 s", offset = "3 s", jitter = "1 ms", handover = { outage = "60 ms" } } }
fade = { pointing = { aim = "7200 s" }, coding = "uncoded", clear = "14 dB", drift = { amplitude = "1 dB" } }

[[timeline]]
at = "600 s"
link = "bottleneck"
outage = "60 s"

[[flows]]
name = "data"
from = "src1"
to = "dst1"
start = "30 s"
app = "bulk"
"#;

    fn scenario() -> Scenario {
        load(&Source::new("test", TEXT), &[], None).unwrap_or_else(|d| panic!("{d}"))
    }

    fn secs(s: f64) -> Duration {
        Duration::from_secs_f64(s)
    }

    #[test]
    fn dates_come_sooner_and_what_packets_feel_stays() {
        let (before, mut s) = (scenario(), scenario());
        speed_up(&mut s, 60.0);
        assert_eq!(s.duration, secs(120.0));
        assert_eq!(s.measure, Some((Instant(1_000_000_000), Instant(2_000_000_000))));
        assert_eq!(s.flows[0].start, Start::At(Instant(500_000_000)));
        let (old, new) = (&before.links[0].forward, &s.links[0].forward);
        assert_eq!((new.rate, new.delay, new.buffer), (old.rate, old.delay, old.buffer));
        let d = new.dynamics.as_deref().unwrap();
        assert_eq!(d.changes.iter().map(|c| c.0.0).collect::<Vec<_>>(), [10_000_000_000, 11_000_000_000]);
        let Some(CapacityTrace::Steps { points, repeat }) = &d.capacity else { panic!("no steps") };
        assert_eq!((points[1].0, *repeat), (Instant(2_000_000_000), Some(secs(3.0))));
        let fade = d.fade.as_ref().unwrap();
        assert_eq!(fade.every, secs(0.25));
        let FadeSource::Profile(points) = &fade.source else { panic!("no profile") };
        assert_eq!(points[1], (Instant(120_000_000_000), 0.0));
        let FadeEffect::Acm(acm) = &fade.effect else { panic!("no adaptive coding") };
        assert_eq!(acm.delay, secs(0.1));
        assert_eq!(d.bursts, old.dynamics.as_ref().unwrap().bursts);
        let outages = d.outages.unwrap();
        assert_eq!((outages.every, outages.longest), (secs(1.0), secs(0.1)));
        let back = s.links[0].backward.dynamics.as_ref().unwrap();
        let Some(Orbit::Slots(slots)) = &back.orbit else { panic!("no slots") };
        assert_eq!((slots.period, slots.offset, slots.jitter), (secs(0.25), secs(0.05), secs(1e-3)));
        assert_eq!(slots.handover, Handover::Outage(secs(1e-3), secs(1e-3)));
        let fade = back.fade.as_ref().unwrap();
        let FadeSource::Pointing(dish) = &fade.source else { panic!("no dish") };
        assert_eq!((dish.pace, dish.aim), (60.0, Instant(120_000_000_000)));
        let FadeEffect::Coding { drift: Some(drift), .. } = fade.effect else { panic!("no drift") };
        assert_eq!(drift.period, secs(1440.0));
    }

    #[test]
    fn a_speed_of_one_changes_nothing_and_nonsense_is_refused() {
        let mut s = scenario();
        speed_up(&mut s, 1.0);
        assert_eq!(s, scenario());
        speed_up(&mut s, f64::NAN);
        speed_up(&mut s, 0.0);
        assert_eq!(s, scenario());
        assert_eq!((parse("60"), parse(" 0.5 ")), (Ok(60.0), Ok(0.5)));
        for text in ["", "fast", "0", "-1", "1e9", "nan", "inf"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
