//! What can go wrong while writing: always a path, what was tried, and what the system said.

use std::io;
use std::path::{Path, PathBuf};

/// A file or folder that could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refused.
    #[error("{}: cannot {doing}: {cause}", path.display())]
    Io {
        /// The file or folder the user knows of.
        path: PathBuf,
        /// What was tried: `write`, `create the folder`.
        doing: &'static str,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// The folder's name is taken by something else.
    #[error("{}: not a folder; name a new or an existing folder for the results", path.display())]
    NotAFolder {
        /// The name.
        path: PathBuf,
    },
}

impl Error {
    /// Says what was tried with `path` when `cause` came.
    pub(crate) fn io(path: &Path, doing: &'static str, cause: io::Error) -> Self {
        Self::Io { path: path.to_owned(), doing, cause }
    }
}
