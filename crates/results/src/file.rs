//! Files appear whole or not at all: they are written under a temporary name beside their place and renamed
//! at the end.

use crate::Error;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Makes the folder if it is not there. What it holds stays; only files with the names of results are
/// replaced.
///
/// # Errors
/// When the name is taken by something else, or the system refuses.
pub fn make_folder(dir: &Path) -> Result<(), Error> {
    if dir.exists() && !dir.is_dir() {
        return Err(Error::NotAFolder { path: dir.to_owned() });
    }
    fs::create_dir_all(dir).map_err(|cause| Error::io(dir, "create the folder", cause))
}

/// A file in the making. Dropped before [`Draft::keep`], it leaves nothing behind.
#[derive(Debug)]
pub(crate) struct Draft {
    /// Present until it is kept.
    out: Option<BufWriter<File>>,
    hidden: PathBuf,
    path: PathBuf,
}

impl Draft {
    /// Begins the file `name` of `dir`.
    ///
    /// # Errors
    /// When the temporary file cannot be made.
    pub(crate) fn new(dir: &Path, name: &str) -> Result<Self, Error> {
        let path = dir.join(name);
        let hidden = dir.join(format!(".{name}.part"));
        let file = File::create(&hidden).map_err(|cause| Error::io(&path, "create the file", cause))?;
        Ok(Self { out: Some(BufWriter::with_capacity(1 << 16, file)), hidden, path })
    }

    /// Where it will be.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Puts it in its place.
    ///
    /// # Errors
    /// When the rest cannot be written, or the place is taken by a folder.
    pub(crate) fn keep(mut self) -> Result<PathBuf, Error> {
        let fault = |cause| Error::io(&self.path, "write", cause);
        if let Some(out) = self.out.take() {
            let file = match out.into_inner() {
                Ok(file) => file,
                Err(failed) => {
                    let (cause, rest) = failed.into_parts();
                    let _ = rest.into_parts(); // what could not be written is not tried again
                    let _ = fs::remove_file(&self.hidden);
                    return Err(fault(cause));
                }
            };
            // a full disk may show only here
            let renamed = file.sync_all().and_then(|()| fs::rename(&self.hidden, &self.path));
            if let Err(cause) = renamed {
                let _ = fs::remove_file(&self.hidden);
                return Err(fault(cause));
            }
        }
        Ok(core::mem::take(&mut self.path))
    }
}

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.as_mut().map_or(Ok(bytes.len()), |out| out.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.as_mut().map_or(Ok(()), BufWriter::flush)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some(out) = self.out.take() {
            // without a last attempt to write: the file goes anyway
            drop(out.into_parts());
            let _ = fs::remove_file(&self.hidden);
        }
    }
}

/// Writes `text` as the file `name` of `dir`.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn put(dir: &Path, name: &str, text: &str) -> Result<PathBuf, Error> {
    let mut draft = Draft::new(dir, name)?;
    draft.write_all(text.as_bytes()).map_err(|cause| Error::io(draft.path(), "write", cause))?;
    draft.keep()
}
