//! Sources of expected numbers that are computed in code.

mod fade;
mod formulas;
mod losses;
mod rate;

use crate::check::Check;

/// All checks; those of a table stand together.
pub(crate) fn all() -> Vec<Check> {
    let mut checks = [fade::all(), losses::all(), rate::all(), formulas::all()].concat();
    let mut tables: Vec<&str> = Vec::new();
    for check in &checks {
        if !tables.contains(&check.table.title) {
            tables.push(check.table.title);
        }
    }
    // the stable sort keeps the order within a table
    checks.sort_by_key(|c| tables.iter().position(|title| *title == c.table.title));
    checks
}
