//! Sources and sinks of bytes (files, pipes, terminals) that do not block a thread that must answer packets.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};

/// Bytes that fit into a pipe that is writable (`PIPE_BUF`, pipe(7)).
const PIPE: usize = 4096;

/// A file or pipe to read.
#[derive(Debug)]
pub struct Source {
    file: File,
    /// Its length, if it has one.
    length: Option<u64>,
}

impl Source {
    /// Reads `file` from its current position.
    ///
    /// # Errors
    /// When it is a folder.
    pub fn new(file: File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let length = metadata.is_file().then_some(metadata.len());
        Ok(Self { file, length })
    }

    /// Its length in bytes, if known.
    pub const fn length(&self) -> Option<u64> {
        self.length
    }

    /// File descriptor to wait for; `None` if it is always readable.
    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.length.is_none().then(|| self.file.as_fd())
    }

    /// Reads the available bytes; `None` if there are none yet, 0 at the end.
    pub(super) fn read(&mut self, into: &mut [u8]) -> io::Result<Option<usize>> {
        if self.length.is_none() && !is_ready(&self.file, PollFlags::IN)? {
            return Ok(None);
        }
        match self.file.read(into) {
            Ok(read) => Ok(Some(read)),
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(None),
            Err(e) => Err(e),
        }
    }
}

/// A file or pipe to write.
#[derive(Debug)]
pub struct Sink {
    file: File,
    is_file: bool,
}

impl Sink {
    /// Writes to `file` from its current position.
    ///
    /// # Errors
    /// When the kernel does not tell the file's type.
    pub fn new(file: File) -> io::Result<Self> {
        let is_file = file.metadata()?.is_file();
        Ok(Self { file, is_file })
    }

    /// Writes as much as possible without blocking; returns the number of bytes.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let most = if self.is_file { bytes.len() } else { bytes.len().min(PIPE) };
        if !self.is_file && !is_ready(&self.file, PollFlags::OUT)? {
            return Ok(0);
        }
        match self.file.write(&bytes[..most]) {
            Ok(0) if most > 0 => Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => Ok(written),
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(0),
            Err(e) => Err(e),
        }
    }
}

/// True if the file can be read or written without waiting, or has an error.
fn is_ready(file: &File, flags: PollFlags) -> io::Result<bool> {
    let mut list = [PollFd::new(file, flags)];
    match poll(&mut list, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(e) => Err(e.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::OwnedFd;

    #[test]
    fn a_pipe_is_never_waited_for() {
        let (reader, writer) = io::pipe().unwrap();
        let mut source = Source::new(File::from(OwnedFd::from(reader))).unwrap();
        let mut sink = Sink::new(File::from(OwnedFd::from(writer))).unwrap();
        assert_eq!((source.length(), source.fd().is_some()), (None, true));
        let mut buffer = vec![0; 1 << 20];
        assert_eq!(source.read(&mut buffer).unwrap(), None);
        let mut written = 0;
        while let more @ 1.. = sink.write(&buffer).unwrap() {
            written += more;
        }
        assert!(written >= PIPE);
        let mut read = 0;
        while let Some(more @ 1..) = source.read(&mut buffer).unwrap() {
            read += more;
        }
        assert_eq!(read, written);
        drop(sink);
        assert_eq!(source.read(&mut buffer).unwrap(), Some(0));
    }

    #[test]
    fn a_folder_is_no_source_and_a_full_device_no_sink() {
        assert_eq!(Source::new(File::open("/").unwrap()).unwrap_err().kind(), io::ErrorKind::IsADirectory);
        let full = File::options().write(true).open("/dev/full").unwrap();
        assert!(Sink::new(full).unwrap().write(b"x").is_err());
    }
}
