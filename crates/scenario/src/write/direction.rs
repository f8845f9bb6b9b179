//! Writes one direction of a link with all its dynamics.

use super::{at, buffer, quoted, rate, size, time};
use crate::form::Word as _;
use crate::types::DirectionSpec;
use bentpipe_base::{Duration, Instant, Probability, Rate, Size};
use bentpipe_link::{
    Access, CapacityTrace, Codel, Coding, Discipline, Drift, Dynamics, Fade, FadeEffect, FadeSource, FqCodel,
    GilbertElliott, Handover, LossDraw, Mtu, Orbit, Outages, Pointing, Rain, Slots,
};

pub(super) fn direction(d: &DirectionSpec) -> String {
    let dynamics = d.dynamics.as_deref();
    let (delay, loss) = dynamics.map(|d| (d.delay.as_ref(), d.loss.as_ref())).unwrap_or_default();
    let delay = delay.map_or_else(|| time(d.delay), |delay| steps(&delay.points, delay.repeat, time));
    let loss = loss.map_or_else(|| probability(d.loss), |loss| steps(&loss.points, loss.repeat, probability));
    let (rate, buffer, ber, framing) = (rate(d.rate), buffer(d.buffer), probability(d.ber), size(d.framing));
    let constant = format!(
        "rate = {rate}, delay = {delay}, buffer = {buffer}, loss = {loss}, ber = {ber}, framing = {framing}"
    );
    let discipline = discipline(d.discipline).map(|text| format!("discipline = {text}"));
    let draw =
        (d.loss_draw != LossDraw::default()).then(|| format!("loss_draw = {}", quoted(d.loss_draw.word())));
    let varying = dynamics.map_or_else(Vec::new, self::dynamics);
    let parts = core::iter::once(constant).chain(draw).chain(discipline).chain(d.mtu.map(mtu)).chain(varying);
    let parts: Vec<_> = parts.collect();
    format!("{{ {} }}", parts.join(", "))
}

fn mtu(mtu: Mtu) -> String {
    let bytes = size(Size(u64::from(mtu.bytes)));
    format!("mtu = {{ size = {bytes}, longer = {} }}", quoted(mtu.longer.word()))
}

/// Writes a discipline with all parameters; `None` for the default.
fn discipline(discipline: Discipline) -> Option<String> {
    match discipline {
        Discipline::Fifo => None,
        Discipline::DropHead
        | Discipline::FlowPriority
        | Discipline::Pushout
        | Discipline::Threshold
        | Discipline::Wred => Some(quoted(discipline.word())),
        Discipline::Codel(codel) => Some(format!("{{ codel = {{ {} }} }}", self::codel(codel))),
        Discipline::FqCodel(FqCodel { codel, quantum, flows }) => {
            let (quantum, codel) = (size(quantum), self::codel(codel));
            Some(format!("{{ fq_codel = {{ flows = {flows}, quantum = {quantum}, {codel} }} }}"))
        }
    }
}

fn codel(codel: Codel) -> String {
    let Codel { target, interval, ecn } = codel;
    format!("target = {}, interval = {}, ecn = {ecn}", time(target), time(interval))
}

fn probability(p: Probability) -> String {
    format!("{:?}", p.get())
}

fn steps<T: Copy>(list: &[(Instant, T)], repeat: Option<Duration>, value: impl Fn(T) -> String) -> String {
    let repeat = repeat.map_or_else(String::new, |r| format!(", repeat = {}", time(r)));
    format!("{{ steps = {}{repeat} }}", points(list, value))
}

/// Writes a list of times and values.
pub(super) fn points<T: Copy>(list: &[(Instant, T)], value: impl Fn(T) -> String) -> String {
    let points: Vec<_> = list.iter().map(|(when, v)| format!("[{}, {}]", at(*when), value(*v))).collect();
    format!("[{}]", points.join(", "))
}

/// Writes everything that changes, except the timeline, which has its own tables.
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
            let rate_or_none = |r: Option<Rate>| r.map_or_else(|| quoted("none"), rate);
            format!("capacity = {}", steps(points, *repeat, rate_or_none))
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

/// Writes a range of times; a single time if both ends are equal.
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
    let (period, offset, delay) = (time(s.period), time(s.offset), times(s.delay.0, s.delay.1));
    let (pair, jitter, step, reorder) = (quoted(&s.pair), time(s.jitter), time(s.jitter_step), s.reorder);
    format!(
        "{{ period = {period}, offset = {offset}, delay = {delay}, pair = {pair}, jitter = {jitter}, \
         jitter_step = {step}, {rates}handover = {handover}, reorder = {reorder} }}"
    )
}

fn fade(fade: &Fade) -> String {
    let source = match &fade.source {
        FadeSource::Profile(list) => format!("profile = {}", points(list, decibel)),
        FadeSource::Rain(rain) => format!("rain = {}", self::rain(rain)),
        FadeSource::Pointing(pointing) => format!("pointing = {}", self::pointing(pointing)),
    };
    let effect = match fade.effect {
        FadeEffect::Coding { coding, clear_db, drift } => {
            let coding = match coding {
                Coding::Uncoded => quoted("uncoded"),
                Coding::Viterbi => quoted("viterbi"),
                Coding::Threshold { ebn0_db } => format!("{{ threshold = {} }}", decibel(ebn0_db)),
            };
            let drift = drift.map_or_else(String::new, self::drift);
            format!("coding = {coding}, clear = {}{drift}", decibel(clear_db))
        }
        FadeEffect::Acm(acm) => {
            let (clear, hysteresis) = (decibel(acm.clear_db), decibel(acm.hysteresis_db));
            let (margin, delay) = (acm.margin_db.map_or_else(|| quoted("auto"), decibel), time(acm.delay));
            format!(
                "acm = {{ clear = {clear}, hysteresis = {hysteresis}, margin = {margin}, delay = {delay} }}"
            )
        }
    };
    format!("fade = {{ {source}, {effect}, every = {} }}", time(fade.every))
}

fn rain(r: &Rain) -> String {
    let Rain { m, sigma, p0, beta, scale, .. } = r;
    let (step, scintillation, station) = (time(r.step), decibel(r.scintillation_db), quoted(&r.station));
    format!(
        "{{ m = {m:?}, sigma = {sigma:?}, p0 = {p0:?}, beta = \"{beta} 1/s\", step = {step}, \
         scintillation = {scintillation}, station = {station}, scale = {scale:?} }}"
    )
}

fn pointing(p: &Pointing) -> String {
    let (north, east) = p.station_deg;
    format!(
        "{{ dish = \"{} m\", frequency = \"{} GHz\", inclination = \"{} deg\", satellite = \"{} deg\", \
         latitude = \"{north} deg\", longitude = \"{east} deg\", node = {}, aim = {} }}",
        p.dish_m,
        p.frequency_ghz,
        p.inclination_deg,
        p.satellite_deg,
        at(p.node),
        at(p.aim)
    )
}

fn drift(d: Drift) -> String {
    let (amplitude, period, start) = (decibel(d.amplitude_db), time(d.period), at(d.start));
    format!(", drift = {{ amplitude = {amplitude}, period = {period}, start = {start} }}")
}

fn bursts(b: &GilbertElliott) -> String {
    let (good, bad) = (time(b.good), time(b.bad));
    let (loss_good, loss_bad) = (probability(b.loss_good), probability(b.loss_bad));
    format!("bursts = {{ good = {good}, bad = {bad}, loss_good = {loss_good}, loss_bad = {loss_bad} }}")
}

fn outages(o: &Outages) -> String {
    let (every, length, random) = (time(o.every), times(o.shortest, o.longest), o.random);
    format!("outages = {{ every = {every}, length = {length}, random = {random} }}")
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
