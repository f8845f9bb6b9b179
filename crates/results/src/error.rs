//! Errors of writing results: the path, the operation and the system's error.

use std::io;
use std::path::{Path, PathBuf};

/// A file or folder that could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An I/O error.
    #[error("{}: cannot {doing}: {cause}", path.display())]
    Io {
        /// The file or folder as the user knows it.
        path: PathBuf,
        /// Operation: `write`, `create the folder`.
        doing: &'static str,
        /// The system's error.
        #[source]
        cause: io::Error,
    },
    /// A file with the name of the folder exists.
    #[error("{}: not a folder; name a new or an existing folder for the results", path.display())]
    NotAFolder {
        /// Path of that file.
        path: PathBuf,
    },
}

impl Error {
    pub(crate) fn io(path: &Path, doing: &'static str, cause: io::Error) -> Self {
        Self::Io { path: path.to_owned(), doing, cause }
    }
}
