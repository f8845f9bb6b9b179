//! What can go wrong with a sweep.

use bentpipe_report::metric;
use bentpipe_scenario::Diagnostic;
use std::path::{Path, PathBuf};

/// Why a sweep ended early.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The input is at fault; the text says where.
    #[error("{0}")]
    Input(String),
    /// The scenario of a cell is at fault. Values of axes stand in the diagnostic as if they were set.
    #[error("{diagnostic}\nnote: in the combination {}", shown(cell))]
    Cell {
        /// What is wrong.
        diagnostic: Box<Diagnostic>,
        /// Axes and their values.
        cell: Vec<(String, String)>,
    },
    /// What is to be measured is at fault.
    #[error("{error}")]
    Metric {
        /// As written.
        text: String,
        /// What is wrong.
        error: Box<metric::Error>,
    },
    /// A file could not be read or written. Runs that are finished stay.
    #[error("{}: {error}\nnote: finished runs are kept, the same command goes on from there", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
}

fn shown(cell: &[(String, String)]) -> String {
    let words: Vec<String> = cell.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    words.join(", ")
}

pub(crate) fn file_error(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let path = path.to_owned();
    move |error| Error::File { path, error }
}

pub(crate) fn metric_error(text: &str, error: metric::Error) -> Error {
    Error::Metric { text: text.to_owned(), error: Box::new(error) }
}
