//! Where people already work: Python, clusters, packages, first minutes.

mod packages;
mod python;
mod words;

use super::Part;
use super::list::{List, Outcome, Setup};
use crate::pages;

pub(super) const PARTS: [Part; 11] = [
    ("venv", python::venv),
    ("cost", python::cost),
    ("table", python::table),
    ("scheme", python::scheme),
    packages::PARTS[0],
    packages::PARTS[1],
    packages::PARTS[2],
    packages::PARTS[3],
    words::PARTS[0],
    words::PARTS[1],
    ("page", |_, list| pages::item(None).map(|item| list.item(&item))),
];
