//! What the tests of rate signalling share: scenarios by name, metrics, sinks that watch one link direction.

use bentpipe_base::NodeId;
use bentpipe_base::trace::Sink;
use bentpipe_report::{Metric, Report};
use bentpipe_scenario::{Scenario, Source, load};
use bentpipe_sim::{RecordOptions, SharedSink, run_recorded};
use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

pub(crate) fn loaded(text: &str, sets: &[(&str, &str)], seed: u64) -> Scenario {
    let sets: Vec<_> = sets.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    load(&Source::new("test.toml", text), &sets, Some(seed)).unwrap_or_else(|e| panic!("{e}"))
}

pub(crate) fn scenario(name: &str, sets: &[(&str, &str)], seed: u64) -> Scenario {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../scenarios/{name}.toml"));
    loaded(&std::fs::read_to_string(path).unwrap(), sets, seed)
}

pub(crate) fn metric(report: &Report, name: &str) -> f64 {
    Metric::parse(name).unwrap().of(report).unwrap().unwrap_or_else(|| panic!("{name} has no value"))
}

/// A sink that looks at one link direction.
pub(crate) trait Watches: Sink + Default + 'static {
    /// Sets the direction.
    fn watch(&mut self, link: NodeId);
}

/// Runs a scenario and watches one link direction.
pub(crate) fn watched<S: Watches>(scenario: &Scenario, link: &str) -> (Report, S) {
    let seen = Rc::new(RefCell::new(S::default()));
    let (report, _) = run_recorded(scenario, &RecordOptions::default(), |net| {
        seen.borrow_mut().watch(net.links.iter().find(|(name, _)| **name == *link).unwrap().1);
        Some(Rc::clone(&seen) as SharedSink)
    });
    (report, seen.take())
}
