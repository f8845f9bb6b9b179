//! `bentpipe links`: the named links.

use bentpipe_link::{Capacity, Dynamics, Orbit, Slots};
use bentpipe_scenario::{DirectionSpec, Profile, profiles};
use core::fmt::Write as _;
use serde_json::{Value, json};

pub(crate) fn list(as_json: bool) -> String {
    if as_json {
        let all: Vec<Value> = profiles().iter().map(object).collect();
        return format!("{:#}\n", Value::Array(all));
    }
    let heading = ["name", "to the user", "back", "round trip"].map(String::from);
    let rows: Vec<[String; 4]> = [heading].into_iter().chain(profiles().iter().map(cells)).collect();
    let widths = [0, 1, 2, 3].map(|i| rows.iter().map(|cells| cells[i].chars().count()).max().unwrap_or(0));
    let mut out = String::new();
    row(&mut out, &rows[0], widths);
    for (cells, profile) in rows[1..].iter().zip(profiles()) {
        row(&mut out, cells, widths);
        let _ = writeln!(out, "    {}\n    source: {}", profile.summary, profile.source);
    }
    out += "\nIn a scenario: profile = \"geo-10m\" in [[links]] or [dumbbell]; keys given beside it override it.\n";
    out
}

fn cells(profile: &Profile) -> [String; 4] {
    [profile.name.clone(), rate(&profile.forward), rate(&profile.backward), profile.rtt.clone()]
}

fn row(out: &mut String, cells: &[String; 4], widths: [usize; 4]) {
    let mut line = String::new();
    for (cell, width) in cells.iter().zip(widths) {
        let _ = write!(line, "{cell:width$}  ");
    }
    let _ = writeln!(out, "{}", line.trim_end());
}

/// Formats the rate, or the range of a rate that changes.
fn rate(direction: &DirectionSpec) -> String {
    match direction.dynamics.as_ref().and_then(|d| d.orbit.as_ref()) {
        Some(Orbit::Slots(Slots { rate: Some((least, most)), .. })) => format!("{least} to {most}"),
        _ => direction.rate.to_string(),
    }
}

fn object(profile: &Profile) -> Value {
    json!({
        "name": profile.name,
        "summary": profile.summary,
        "round_trip": profile.rtt,
        "source": profile.source,
        "forward": direction(&profile.forward),
        "backward": direction(&profile.backward),
    })
}

fn direction(d: &DirectionSpec) -> Value {
    let mut out = json!({
        "rate_bps": d.rate.bps(),
        "delay_s": d.delay.as_secs_f64(),
        "varies": d.dynamics.as_deref().map_or_else(Vec::new, mechanisms),
    });
    let (key, value) = match d.buffer {
        Capacity::Packets(n) => ("buffer_packets", u64::from(n)),
        Capacity::Bytes(bytes) => ("buffer_bytes", bytes.0),
    };
    out[key] = value.into();
    out
}

/// Returns the keys of the mechanisms that change a link over time.
fn mechanisms(d: &Dynamics) -> Vec<&'static str> {
    let all = [
        ("capacity", d.capacity.is_some()),
        ("orbit", d.orbit.is_some()),
        ("fade", d.fade.is_some()),
        ("bursts", d.bursts.is_some()),
        ("outages", d.outages.is_some()),
        ("access", d.access.is_some()),
    ];
    all.into_iter().filter(|(_, there)| *there).map(|(name, _)| name).collect()
}
