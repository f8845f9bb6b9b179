//! Errors of sweeps.

use crate::figure::LiveError;
use bentpipe_report::metric;
use bentpipe_scenario::Diagnostic;
use std::path::{Path, PathBuf};

/// Why a sweep was aborted.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Invalid input; the text gives the position.
    #[error("{0}")]
    Input(String),
    /// The scenario of a cell is invalid. Axis values appear in the diagnostic as if set by `--set`.
    #[error("{diagnostic}\nnote: in the combination {}", shown(cell))]
    Cell {
        /// The error.
        diagnostic: Box<Diagnostic>,
        /// Axes and their values in this cell.
        cell: Vec<(String, String)>,
    },
    /// A figure file does not fit its scenario.
    #[error("{0}")]
    Figure(Box<Diagnostic>),
    /// A metric is invalid.
    #[error("{error}")]
    Metric {
        /// Text as given.
        text: String,
        /// The error.
        error: Box<metric::Error>,
    },
    /// A run with real packets failed or was refused.
    #[error("{0}")]
    Live(LiveError),
    /// A file could not be read or written. Finished runs are kept.
    #[error("{}: {error}\nnote: finished runs are kept, the same command goes on from there", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
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
