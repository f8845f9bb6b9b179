//! Atomic files: written under a temporary name in the same folder and renamed when complete.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
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
    /// Returns an I/O error in `doing` something to the file or folder `path`.
    pub fn io(path: &Path, doing: &'static str, cause: io::Error) -> Self {
        Self::Io { path: path.to_owned(), doing, cause }
    }
}

/// Creates the folder if it does not exist. Existing files remain, except those with the names of results.
///
/// # Errors
/// A file of that name exists, or the system refuses.
pub fn make_folder(dir: &Path) -> Result<(), Error> {
    if dir.exists() && !dir.is_dir() {
        return Err(Error::NotAFolder { path: dir.to_owned() });
    }
    fs::create_dir_all(dir).map_err(|cause| Error::io(dir, "create the folder", cause))
}

/// A temporary file. If dropped before [`TemporaryFile::commit`], it is removed.
#[derive(Debug)]
pub(crate) struct TemporaryFile {
    /// `None` once the file is kept.
    out: Option<BufWriter<File>>,
    temporary: PathBuf,
    path: PathBuf,
}

impl TemporaryFile {
    /// Creates the file `name` in `dir` under a temporary name.
    pub(crate) fn new(dir: &Path, name: &str) -> Result<Self, Error> {
        let path = dir.join(name);
        let hidden = dir.join(format!(".{name}.part"));
        let file = File::create(&hidden).map_err(|cause| Error::io(&path, "create the file", cause))?;
        Ok(Self { out: Some(BufWriter::with_capacity(1 << 16, file)), temporary: hidden, path })
    }

    /// Returns the final path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Completes the file and renames it to its final name.
    pub(crate) fn commit(mut self) -> Result<PathBuf, Error> {
        let renamed = self.out.as_mut().map_or(Ok(()), |out| {
            out.flush()?;
            // sync reports errors of delayed writes, such as a full disk
            out.get_ref().sync_all()?;
            fs::rename(&self.temporary, &self.path)
        });
        renamed.map_err(|cause| Error::io(&self.path, "write", cause))?;
        self.out = None;
        Ok(core::mem::take(&mut self.path))
    }
}

impl Write for TemporaryFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.as_mut().map_or(Ok(bytes.len()), |out| out.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.as_mut().map_or(Ok(()), BufWriter::flush)
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if let Some(out) = self.out.take() {
            // discard the buffered data: the file is removed
            drop(out.into_parts());
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// Writes `content` to the file `name` in `dir`.
pub(crate) fn write_file(dir: &Path, name: &str, content: &[u8]) -> Result<PathBuf, Error> {
    let mut draft = TemporaryFile::new(dir, name)?;
    draft.write_all(content).map_err(|cause| Error::io(draft.path(), "write", cause))?;
    draft.commit()
}
