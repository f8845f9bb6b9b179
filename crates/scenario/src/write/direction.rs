//! Writes one direction of a link with all its dynamics.

use super::{at, buffer, quoted, rate, size, time};
use crate::form::Word as _;
use crate::keys::PlainDiscipline;
use crate::types::DirectionSpec;
use bentpipe_base::{Duration, Probability};
use bentpipe_link::{
    Access, Acm, CapacityTrace, Codel, Coding, Discipline, Dynamics, Fade, FadeEffect, FadeSource, FqCodel,
    GilbertElliott, Handover, Orbit, Outages, Rain, Recorded, Slots,
};

pub(super) fn direction(d: &DirectionSpec) -> String {
    let recorded = d.dynamics.as_deref().map(|d| (d.delay.as_ref(), d.loss.as_ref())).unwrap_or_default();
    let constant = format!(
        "rate = {}, delay = {}, buffer = {}, loss = {}, ber = {:?}, framing = {}",
        rate(d.rate),
        recorded.0.map_or_else(|| time(d.delay), |delay| series(delay, time)),
        buffer(d.buffer),
        recorded.1.map_or_else(|| probability(d.loss), |loss| series(loss, probability)),
        d.ber.get(),
        size(d.framing)
    );
    let discipline = discipline(d.discipline).map(|text| format!("discipline = {text}"));
    let varying = d.dynamics.as_deref().map_or_else(Vec::new, dynamics);
    let parts: Vec<_> = core::iter::once(constant).chain(discipline).chain(varying).collect();
    format!("{{ {} }}", parts.join(", "))
}

/// Writes a discipline with all parameters; `None` for the default.
fn discipline(discipline: Discipline) -> Option<String> {
    let word = |word: &PlainDiscipline| Some(quoted(word.word()));
    match discipline {
        Discipline::Fifo => None,
        Discipline::DropHead => word(&PlainDiscipline::DropHead),
        Discipline::Pushout => word(&PlainDiscipline::Pushout),
        Discipline::Threshold => word(&PlainDiscipline::Threshold),
        Discipline::Wred => word(&PlainDiscipline::Wred),
        Discipline::Codel(codel) => Some(format!("{{ codel = {{ {} }} }}", self::codel(codel))),
        Discipline::FqCodel(FqCodel { codel, quantum, flows }) => Some(format!(
            "{{ fq_codel = {{ flows = {flows}, quantum = {}, {} }} }}",
            size(quantum),
            self::codel(codel)
        )),
    }
}

fn codel(codel: Codel) -> String {
    let Codel { target, interval, ecn } = codel;
    format!("target = {}, interval = {}, ecn = {ecn}", time(target), time(interval))
}

fn probability(p: Probability) -> String {
    format!("{:?}", p.get())
}

fn series<T: Copy>(series: &Recorded<T>, value: impl Fn(T) -> String) -> String {
    let points: Vec<_> =
        series.points.iter().map(|(when, v)| format!("[{}, {}]", at(*when), value(*v))).collect();
    let repeat = series.repeat.map_or_else(String::new, |r| format!(", repeat = {}", time(r)));
    format!("{{ steps = [{}]{repeat} }}", points.join(", "))
}

/// Everything except the timeline, which has its own tables.
fn dynamics(d: &Dynamics) -> Vec<String> {
    let parts = [
        d.capacity.as_ref().map(capacity),
        d.orbit.as_ref().map(orbit),
        d.fade.as_ref().map(fade),
        d.bursts.as_ref().map(bursts),
        d.outages.as_ref().map(outages),
        d.access.map(access),
    ];
    parts.into_iter().flatten().collect()
}

fn capacity(capacity: &CapacityTrace) -> String {
    match capacity {
        CapacityTrace::Steps { points, repeat } => {
            let points: Vec<_> = points
                .iter()
                .map(|(when, r)| format!("[{}, {}]", at(*when), r.map_or_else(|| quoted("none"), rate)))
                .collect();
            let repeat = repeat.map_or_else(String::new, |r| format!(", repeat = {}", time(r)));
            format!("capacity = {{ steps = [{}]{repeat} }}", points.join(", "))
        }
        CapacityTrace::Opportunities { at, .. } => {
            let list: Vec<_> = at.iter().map(|t| (t.0 / 1_000_000).to_string()).collect();
            format!("capacity = {{ opportunities_ms = [{}] }}", list.join(", "))
        }
    }
}

fn decibel(db: f64) -> String {
    quoted(&format!("{db} dB"))
}

/// A range of times, or a single time.
fn times(least: Duration, most: Duration) -> String {
    if least == most { time(least) } else { format!("[{}, {}]", time(least), time(most)) }
}

fn orbit(orbit: &Orbit) -> String {
    match orbit {
        Orbit::Pass(pass) => format!(
            "orbit = {{ pass = {{ altitude = \"{} km\", min_elevation = \"{} deg\", every = {} }} }}",
            pass.altitude_km,
            pass.min_elevation_deg,
            time(pass.every)
        ),
        Orbit::Slots(slots) => format!("orbit = {{ slots = {} }}", self::slots(slots)),
    }
}

fn slots(s: &Slots) -> String {
    let rates = s
        .rate
        .map_or_else(String::new, |(least, most)| format!("rate = [{}, {}], ", rate(least), rate(most)));
    let handover = match s.handover {
        Handover::Seamless => quoted("seamless"),
        Handover::Outage(least, most) => format!("{{ outage = {} }}", times(least, most)),
        Handover::Loss(loss, t) => format!("{{ loss = {:?}, time = {} }}", loss.get(), time(t)),
    };
    format!(
        "{{ period = {}, offset = {}, delay = {}, pair = {}, jitter = {}, jitter_step = {}, {rates}handover = {handover}, reorder = {} }}",
        time(s.period),
        time(s.offset),
        times(s.delay.0, s.delay.1),
        quoted(&s.pair),
        time(s.jitter),
        time(s.jitter_step),
        s.reorder
    )
}

fn fade(fade: &Fade) -> String {
    let source = match &fade.source {
        FadeSource::Profile(points) => {
            let points: Vec<_> =
                points.iter().map(|(when, db)| format!("[{}, {}]", at(*when), decibel(*db))).collect();
            format!("profile = [{}]", points.join(", "))
        }
        FadeSource::Rain(rain) => format!("rain = {}", self::rain(rain)),
    };
    let effect = match fade.effect {
        FadeEffect::Coding { coding, clear_db } => {
            let coding = match coding {
                Coding::Uncoded => quoted("uncoded"),
                Coding::Viterbi => quoted("viterbi"),
                Coding::Threshold { ebn0_db } => format!("{{ threshold = {} }}", decibel(ebn0_db)),
            };
            format!("coding = {coding}, clear = {}", decibel(clear_db))
        }
        FadeEffect::Acm(Acm { clear_db, hysteresis_db, margin_db, delay }) => format!(
            "acm = {{ clear = {}, hysteresis = {}, margin = {}, delay = {} }}",
            decibel(clear_db),
            decibel(hysteresis_db),
            margin_db.map_or_else(|| quoted("auto"), decibel),
            time(delay)
        ),
    };
    format!("fade = {{ {source}, {effect}, every = {} }}", time(fade.every))
}

fn rain(r: &Rain) -> String {
    format!(
        "{{ m = {:?}, sigma = {:?}, p0 = {:?}, beta = \"{} 1/s\", step = {}, scintillation = {}, station = {}, scale = {:?} }}",
        r.m,
        r.sigma,
        r.p0,
        r.beta,
        time(r.step),
        decibel(r.scintillation_db),
        quoted(&r.station),
        r.scale
    )
}

fn bursts(b: &GilbertElliott) -> String {
    format!(
        "bursts = {{ good = {}, bad = {}, loss_good = {:?}, loss_bad = {:?} }}",
        time(b.good),
        time(b.bad),
        b.loss_good.get(),
        b.loss_bad.get()
    )
}

fn outages(o: &Outages) -> String {
    format!(
        "outages = {{ every = {}, length = {}, random = {} }}",
        time(o.every),
        times(o.shortest, o.longest),
        o.random
    )
}

fn access(access: Access) -> String {
    match access {
        Access::Dama(dama) => {
            let free = dama.free.map_or_else(String::new, |f| format!(", free = {}", rate(f)));
            format!("dama = {{ frame = {}, latency = {}{free} }}", time(dama.frame), time(dama.latency))
        }
        Access::IdleRelease(idle) => {
            format!("idle_release = {{ idle = {}, setup = {} }}", time(idle.idle), time(idle.setup))
        }
    }
}
