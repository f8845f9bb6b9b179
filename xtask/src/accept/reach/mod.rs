//! Where people already work: Python, clusters, packages, first minutes.

mod python;

use super::Part;
use super::list::{List, Outcome, Setup};

pub(super) const PARTS: [Part; 4] =
    [("venv", python::venv), ("cost", python::cost), ("table", python::table), ("scheme", python::scheme)];
