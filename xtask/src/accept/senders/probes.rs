//! Low-priority probes of the engine that an unmodified kernel reports, over emulated links. The links'
//! queues have no priorities but are long enough; an option tells the engine to assume priority.

use super::live::{L_BYTES, TO_KERNEL, order, single};
use crate::accept::list::{List, Outcome, Setup};
use lab::Who;
use lab::scenario::OneLink;
use lab::transfers::Link;
use serde_json::Value;

/// Case L without losses and with a queue that holds a full window: no probe is dropped, and no probe fills
/// a hole, where it would count as data.
const CLEAN: Link<'static> =
    Link { link: OneLink { loss_back: 0.0, buffer: "32 MB", ..Link::L.link }, ..Link::L };
/// Share of probes on such a path that the receiver must report.
const TOLD: f64 = 0.99;

pub(super) fn check(setup: &Setup, list: &mut List) -> Outcome {
    let rig = setup.rig(Who::CurrentUser)?;
    for scheme in ["swift-sat", "swift-faithful"] {
        for (name, link, least) in [("case L", &Link::L, None), ("L without losses", &CLEAN, Some(TOLD))] {
            let bound = least.map_or_else(String::new, |l| format!(" of {:.0} %", l * 100.0));
            let what = format!("{name}, {scheme}: DSACKs tell of probes{bound}");
            let order = order(TO_KERNEL, L_BYTES, 1, &[scheme, "--set", "assume_priority=true"]);
            let measured =
                single(&rig, link, order).and_then(|one| Ok((verdict(&one.flow, least)?, one.seconds)));
            list.judge(what, measured, |((figure, met), seconds)| (format!("{figure}; {seconds:.1} s"), met));
        }
    }
    Ok(())
}

/// The sender's counts of its probes, and whether the receiver reported at least the share `least` of them.
fn verdict(flow: &Value, least: Option<f64>) -> Outcome<(String, bool)> {
    let probes = &flow["probes"];
    let count = |key| probes[key].as_u64().ok_or_else(|| format!("no {key} among the probes: {probes}"));
    let known_by = probes["known_by"].as_str().unwrap_or("nothing");
    let (sent, acknowledged, lost) = (count("sent")?, count("acknowledged")?, count("lost")?);
    let known = acknowledged + lost;
    let out = sent.saturating_sub(known);
    let figure = format!("by {known_by}: {sent} sent, {acknowledged} acknowledged, {lost} lost, {out} out");
    let told = acknowledged as f64 >= least.unwrap_or(0.0) * sent as f64;
    Ok((figure, known_by == "dsack" && acknowledged > 0 && known <= sent && told))
}

#[cfg(test)]
mod unit {
    use super::*;
    use serde_json::json;

    #[test]
    fn probes_are_counted() {
        let of = |known_by: &str, sent: u64, acknowledged: u64, lost: u64| {
            let probes =
                json!({"known_by": known_by, "sent": sent, "acknowledged": acknowledged, "lost": lost});
            verdict(&json!({ "probes": probes }), Some(0.99)).unwrap().1
        };
        assert!(of("dsack", 100, 99, 0) && of("dsack", 100, 99, 1));
        assert!(!of("option", 100, 100, 0) && !of("dsack", 100, 98, 2) && !of("dsack", 0, 0, 0));
        assert!(!of("dsack", 100, 99, 2), "more than were sent");
        assert!(verdict(&json!({"probes": null}), None).unwrap_err().contains("no sent"));
    }
}
