//! Writes the timeline, the instruments and the captures.

use super::{at, buffer, line, quoted, rate, size, time};
use crate::types::{Direction, InstrumentKind, LinkSpec, Scenario};
use bentpipe_base::Instant;
use bentpipe_link::Change;

pub(super) fn timeline(out: &mut String, scenario: &Scenario) {
    for link in &scenario.links {
        for (name, side) in [(&link.name, &link.forward), (&link.reverse_name, &link.backward)] {
            for (when, change) in side.dynamics.iter().flat_map(|d| &d.changes) {
                entry(out, name, *when, change);
            }
        }
    }
}

fn entry(out: &mut String, link: &str, when: Instant, change: &Change) {
    out.push_str("\n[[timeline]]\n");
    line(out, "at", &at(when));
    line(out, "link", &quoted(link));
    let values = [
        ("rate", change.rate.map(rate)),
        ("delay", change.delay.map(time)),
        ("buffer", change.buffer.map(buffer)),
        ("loss", change.loss.map(|p| format!("{:?}", p.get()))),
        ("ber", change.ber.map(|p| format!("{:?}", p.get()))),
        ("up", change.up.map(|up| up.to_string())),
    ];
    for (key, value) in values.into_iter().filter_map(|(key, value)| Some((key, value?))) {
        line(out, key, &value);
    }
}

pub(super) fn direction_name(links: &[LinkSpec], direction: Direction) -> String {
    let link = &links[direction.link];
    quoted(if direction.backward { &link.reverse_name } else { &link.name })
}

pub(super) fn instruments(out: &mut String, scenario: &Scenario) {
    for instrument in &scenario.instruments {
        out.push_str("\n[[instruments]]\n");
        line(out, "name", &quoted(&instrument.name));
        let (word, own) = match instrument.kind {
            InstrumentKind::SideChannel { rate: r } => ("side-channel", Some(("rate", rate(r)))),
            InstrumentKind::Counters => ("counters", None),
            InstrumentKind::Bins { flow } => ("bins", Some(("flow", quoted(&scenario.flows[flow].name)))),
        };
        line(out, "kind", &quoted(word));
        line(out, "link", &direction_name(&scenario.links, instrument.link));
        line(out, "every", &time(instrument.every));
        if let Some((key, value)) = own {
            line(out, key, &value);
        }
    }
}

pub(super) fn captures(out: &mut String, scenario: &Scenario) {
    for capture in &scenario.captures {
        out.push_str("\n[[captures]]\n");
        line(out, "link", &direction_name(&scenario.links, capture.link));
        line(out, "from", &at(capture.from));
        line(out, "to", &at(capture.to));
        line(out, "snap", &size(capture.snap));
        line(out, "limit", &size(capture.limit));
    }
}

pub(super) fn references(out: &mut String, scenario: &Scenario) {
    for reference in &scenario.references {
        out.push_str("\n[[references]]\n");
        line(out, "metric", &quoted(&reference.metric));
        line(out, "value", &quoted(&reference.written));
        line(out, "source", &quoted(&reference.source));
    }
}
