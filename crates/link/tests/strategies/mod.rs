//! Values of any kind for properties of links.

use crate::rig::chance;
use bentpipe_base::{Duration, Instant, Probability};
use bentpipe_link::{Acm, Coding, Drift, Fade, FadeEffect, FadeSource, Pointing, Rain};
use proptest::option::of;
use proptest::prelude::*;

/// Nanoseconds from 0 to centuries, mostly around the time of a packet.
fn nanoseconds() -> impl Strategy<Value = u64> {
    prop_oneof![
        1 => Just(0),
        1 => Just(1),
        8 => 1_000_u64..100_000_000,
        4 => 100_000_000_u64..3_000_000_000,
        1 => Just(u64::MAX / 3),
        1 => Just(u64::MAX),
    ]
}

pub(crate) fn duration() -> impl Strategy<Value = Duration> {
    nanoseconds().prop_map(Duration)
}

pub(crate) fn instant() -> impl Strategy<Value = Instant> {
    nanoseconds().prop_map(Instant)
}

pub(crate) fn bps() -> impl Strategy<Value = u64> {
    prop_oneof![1 => Just(1), 8 => 50_000_u64..100_000_000, 1 => Just(u64::MAX)]
}

pub(crate) fn probability() -> impl Strategy<Value = Probability> {
    prop_oneof![Just(0.0), Just(1.0), 0.0..1.0_f64, Just(1e-5)].prop_map(chance)
}

pub(crate) fn decibel() -> impl Strategy<Value = f64> {
    prop_oneof![8 => -10.0..40.0_f64, 1 => Just(0.0), 1 => Just(f64::INFINITY), 1 => Just(f64::NAN), 1 => Just(-1e300)]
}

pub(crate) fn fade() -> impl Strategy<Value = Fade> {
    let profile = prop::collection::vec((instant(), decibel()), 0..4).prop_map(|mut points| {
        points.sort_by_key(|p| p.0);
        FadeSource::Profile(points.into())
    });
    let rain =
        (decibel(), decibel(), decibel(), duration(), decibel()).prop_map(|(m, sigma, db, step, scale)| {
            let station = "station".to_owned();
            let (p0, beta) = (sigma / 40.0, m / 10.0);
            FadeSource::Rain(Rain {
                m: m / 10.0,
                sigma: sigma / 10.0,
                p0,
                beta,
                step,
                scintillation_db: db,
                station,
                scale,
            })
        });
    let coding = prop_oneof![
        Just(Coding::Uncoded),
        Just(Coding::Viterbi),
        decibel().prop_map(|ebn0_db| Coding::Threshold { ebn0_db })
    ];
    let drift = (decibel(), duration(), instant()).prop_map(|(amplitude_db, period, start)| Drift {
        amplitude_db,
        period,
        start,
    });
    let effect = prop_oneof![
        (coding, decibel(), of(drift)).prop_map(|(coding, clear_db, drift)| FadeEffect::Coding {
            coding,
            clear_db,
            drift
        }),
        (decibel(), decibel(), of(decibel()), duration()).prop_map(
            |(clear_db, hysteresis_db, margin_db, delay)| FadeEffect::Acm(Acm {
                clear_db,
                hysteresis_db,
                margin_db,
                delay
            })
        ),
    ];
    (prop_oneof![profile, rain, pointing()], effect, duration()).prop_map(|(source, effect, every)| Fade {
        source,
        effect,
        every,
    })
}

fn pointing() -> impl Strategy<Value = FadeSource> {
    let numbers = (decibel(), decibel(), decibel(), decibel(), decibel());
    (numbers, instant(), instant()).prop_map(|((dish_m, frequency_ghz, tilt, north, pace), node, aim)| {
        FadeSource::Pointing(Pointing {
            dish_m,
            frequency_ghz,
            inclination_deg: tilt,
            satellite_deg: tilt * 4.0,
            station_deg: (north * 3.0, 0.0),
            node,
            aim,
            pace,
        })
    })
}
