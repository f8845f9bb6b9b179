//! Resolves `fade`: the source of the attenuation and its effect.

use super::direction::{latitude, longitude};
use super::dynamics::{check_times_increase, interval_or};
use crate::diagnostic::{Fault, Result, bail};
use crate::form::{At, OrTable};
use crate::keys::{AcmKeys, AnchorKeys, DriftKeys, FadeKeys, PointingKeys, RainKeys, ThresholdKeys};
use crate::lists::Pairs;
use crate::measure::Decibel;
use crate::source::Span;
use bentpipe_base::{Duration, Instant};
use bentpipe_link::{Acm, Coding, Drift, Fade, FadeEffect, FadeSource, Pointing, Rain, geo};

/// Es/N0 of QPSK 1/4, the most robust mode of DVB-S2.
const LOWEST_MODE_DB: f64 = -2.35;
/// Smallest value of a parameter that must be more than zero.
const LEAST: f64 = 1e-12;

pub(super) fn resolve(given: &At<FadeKeys>) -> Result<Fade> {
    let keys = &given.value;
    let source = match (&keys.profile, &keys.rain, &keys.pointing) {
        (Some(profile), None, None) => FadeSource::Profile(points(&profile.value)?.into()),
        (None, Some(rain), None) => FadeSource::Rain(self::rain(&rain.value)?),
        (None, None, Some(given)) => FadeSource::Pointing(pointing(given)?),
        _ => bail!(given.span, "a fade has one source", "write one of `profile`, `rain` and `pointing`"),
    };
    Ok(Fade {
        source,
        effect: effect(keys, given.span)?,
        every: interval_or("every", keys.every, Duration::from_secs(1))?,
    })
}

fn points(profile: &Pairs<Instant, Decibel>) -> Result<Vec<(Instant, f64)>> {
    check_times_increase("profile", profile)?;
    let point = |(at, fade): &(At<Instant>, At<Decibel>)| Ok((at.value, attenuation("profile", *fade)?));
    profile.0.iter().map(point).collect()
}

/// Returns the attenuation, which must not be negative.
fn attenuation(key: &str, given: At<Decibel>) -> Result<f64> {
    if given.value.0 >= 0.0 {
        return Ok(given.value.0);
    }
    Err(Fault::new(given.span, format!("`{key}` is an attenuation"), "it is not less than 0 dB"))
}

fn rain(keys: &RainKeys) -> Result<Rain> {
    let number = |key: &str, given: Option<At<f64>>, default: f64, range: (f64, f64)| {
        given.map_or(Ok(default), |given| given.within(key, range, ""))
    };
    Ok(Rain {
        m: number("m", keys.m, -3.26, (-20.0, 20.0))?,
        sigma: number("sigma", keys.sigma, 1.65, (LEAST, 10.0))?,
        p0: keys.p0.map_or(Ok(0.05), |p| p.fraction("p0"))?,
        beta: keys.beta.map_or(Ok(2e-4), |b| b.map(|b| b.0).positive("beta"))?,
        step: interval_or("step", keys.step, Duration::from_secs(1))?,
        scintillation_db: keys.scintillation.map_or(Ok(0.0), |s| attenuation("scintillation", s))?,
        // an empty name is replaced by the link's name later
        station: keys.station.as_ref().map_or_else(String::new, |s| s.value.0.clone()),
        scale: number("scale", keys.scale, 1.0, (LEAST, 100.0))?,
    })
}

fn pointing(given: &At<PointingKeys>) -> Result<Pointing> {
    let keys = &given.value;
    let default = Pointing::default();
    let inclination =
        keys.inclination.map(|given| given.map(|i| i.0).within("inclination", (0.0, 90.0), " deg"));
    let (north, east) = default.station_deg;
    let pointing = Pointing {
        dish_m: keys.dish.map_or(default.dish_m, |given| given.value.0),
        frequency_ghz: keys.frequency.map_or(default.frequency_ghz, |given| given.value.0),
        inclination_deg: inclination.transpose()?.unwrap_or(default.inclination_deg),
        satellite_deg: keys.satellite.map_or(Ok(default.satellite_deg), longitude)?,
        station_deg: (
            keys.latitude.map_or(Ok(north), latitude)?,
            keys.longitude.map_or(Ok(east), longitude)?,
        ),
        node: keys.node.map_or(default.node, |given| given.value),
        aim: keys.aim.map_or(default.aim, |given| given.value),
        pace: 1.0,
    };
    let station = pointing.station_deg;
    geo::delay(pointing.satellite_deg, station, station).map(|_| pointing).map_err(|below| {
        let label = format!("its elevation there is {:.1} deg", below.elevation_deg);
        Fault::new(given.span, "this station does not see the satellite", label)
    })
}

fn drift(keys: &DriftKeys) -> Result<Drift> {
    Ok(Drift {
        amplitude_db: keys.amplitude.value.0,
        period: interval_or("period", keys.period, Duration::from_secs(86_400))?,
        start: keys.start.map_or(Instant::ZERO, |given| given.value),
    })
}

fn effect(keys: &FadeKeys, span: Span) -> Result<FadeEffect> {
    match (&keys.coding, &keys.acm) {
        (Some(coding), None) => {
            let coding = self::coding(&coding.value);
            let clear_db = match (keys.clear, &keys.anchor) {
                (Some(clear), None) => clear.value.0,
                (None, Some(anchor)) => anchored(coding, anchor)?,
                _ => {
                    let label = "write either `clear` or `anchor`";
                    return Err(Fault::new(span, "`coding` needs one Eb/N0 under clear sky", label));
                }
            };
            let drift = keys.drift.as_ref().map(|given| drift(&given.value)).transpose()?;
            Ok(FadeEffect::Coding { coding, clear_db, drift })
        }
        (None, Some(acm)) => {
            if let Some(wrong) = keys.clear.map(|c| c.span).or(keys.anchor.as_ref().map(|a| a.span)) {
                bail!(wrong, "this goes with `coding`", "write it into `acm` as `clear`");
            }
            if let Some(drift) = &keys.drift {
                bail!(drift.span, "`drift` goes with `coding`", "leave it out, or write `coding` for `acm`");
            }
            self::acm(&acm.value).map(FadeEffect::Acm)
        }
        _ => Err(Fault::new(span, "a fade has one effect", "write either `coding` or `acm`")),
    }
}

fn coding(given: &OrTable<Coding, ThresholdKeys>) -> Coding {
    match given {
        OrTable::Plain(coding) => *coding,
        OrTable::Table(table) => Coding::Threshold { ebn0_db: table.threshold.value.0 },
    }
}

/// Returns the Eb/N0 under clear sky, computed from the bit error rate at a known attenuation.
fn anchored(coding: Coding, given: &At<AnchorKeys>) -> Result<f64> {
    let keys = &given.value;
    let fade = attenuation("fade", keys.fade)?;
    if matches!(coding, Coding::Threshold { .. }) {
        let label = "give `clear`: a threshold has no bit error rate";
        return Err(Fault::new(given.span, "`anchor` needs a coding with bit errors", label));
    }
    let ber = keys.ber.value.get();
    coding.ebn0_for(ber).map(|ebn0| ebn0 + fade).ok_or_else(|| {
        Fault::new(keys.ber.span, "no Eb/N0 has this bit error rate", "more than 0 and less than 0.5")
    })
}

fn acm(keys: &AcmKeys) -> Result<Acm> {
    let clear_db = keys.clear.value.0;
    if clear_db < LOWEST_MODE_DB {
        bail!(keys.clear.span, "no mode works under clear sky", "QPSK 1/4 needs {LOWEST_MODE_DB} dB");
    }
    Ok(Acm {
        clear_db,
        hysteresis_db: keys.hysteresis.map_or(Ok(0.5), |h| attenuation("hysteresis", h))?,
        margin_db: keys.margin.map_or(Ok(None), margin)?,
        delay: keys.delay.map_or(Duration::from_secs(1), |d| d.value),
    })
}

fn margin(given: At<Option<Decibel>>) -> Result<Option<f64>> {
    match given.value {
        Some(Decibel(db)) if db < 0.0 => {
            Err(Fault::new(given.span, "`margin` cannot be negative", "from 0 dB, or \"auto\""))
        }
        given => Ok(given.map(|db| db.0)),
    }
}
