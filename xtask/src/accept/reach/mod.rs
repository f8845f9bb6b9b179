//! How people get and start the program.

mod packages;

use super::Part;

pub(super) const PARTS: [Part; 4] = packages::PARTS;
