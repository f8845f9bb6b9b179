//! A memory-mapped file. What is written is in the file at once, even if the process is killed right after.
//!
//! Touching a mapped page for which the file system has no space kills the process (SIGBUS, mmap(2)).
//! Therefore each stretch of the file is allocated with ordinary writes before its first use, and a full file
//! system gives an error. A large file of which little is used takes little space.

#![allow(unsafe_code, reason = "memory of the kernel's choosing; each block says why it is sound")]

use crate::port::invalid;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ffi::c_void;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::ptr::{NonNull, copy_nonoverlapping};
use std::sync::atomic::{Ordering, compiler_fence};

/// Space is allocated in stretches of this length.
const STRETCH: usize = 1 << 16;
static ZEROS: [u8; STRETCH] = [0; STRETCH];

/// A memory-mapped file, initially zeros, readable by its owner only.
#[derive(Debug)]
pub struct MappedFile {
    file: File,
    at: NonNull<c_void>,
    len: usize,
    /// Per stretch: true if its space is allocated.
    has_room: Vec<bool>,
}

// SAFETY: the memory belongs to this value alone and is not bound to a thread.
unsafe impl Send for MappedFile {}

impl MappedFile {
    /// Creates a file of `len` zeros at `path`, replacing whatever is there.
    ///
    /// # Errors
    /// When it cannot be created or mapped.
    pub fn create(path: &Path, len: usize) -> io::Result<Self> {
        match std::fs::remove_file(path) {
            Err(e) if e.kind() != ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        // a new file, so that nothing is written through a link or into another process's file
        let file = File::options().read(true).write(true).create_new(true).mode(0o600).open(path)?;
        let at = map(&file, len)?;
        Ok(Self { file, at, len, has_room: vec![false; len.div_ceil(STRETCH)] })
    }

    /// Makes the file longer; the new part is zeros.
    ///
    /// # Errors
    /// When it cannot be mapped; then the mapping is unchanged.
    pub fn grow(&mut self, len: usize) -> io::Result<()> {
        if len <= self.len {
            return Ok(());
        }
        // the last stretch counts as allocated, so the rest of it has to be
        let (last, within) = (self.len / STRETCH, self.len % STRETCH);
        if within > 0 && self.has_room[last] {
            let rest = STRETCH.min(len - last * STRETCH) - within;
            self.file.write_all_at(&ZEROS[..rest], self.len as u64)?;
        }
        let at = map(&self.file, len)?;
        self.unmap();
        (self.at, self.len) = (at, len);
        self.has_room.resize(len.div_ceil(STRETCH), false);
        Ok(())
    }

    /// Writes `bytes` at offset `at`, ordered after all earlier writes.
    ///
    /// # Errors
    /// When the range is not within the file, or the file system is full; then nothing is written.
    pub fn write(&mut self, at: usize, bytes: &[u8]) -> io::Result<()> {
        self.check(at, bytes.len())?;
        if bytes.is_empty() {
            return Ok(());
        }
        for stretch in at / STRETCH..=(at + bytes.len() - 1) / STRETCH {
            if !self.has_room[stretch] {
                let from = stretch * STRETCH;
                self.file.write_all_at(&ZEROS[..STRETCH.min(self.len - from)], from as u64)?;
                self.has_room[stretch] = true;
            }
        }
        // SAFETY: `check` keeps the range within the mapping, which lives as long as `self` and is not
        // shared.
        unsafe { copy_nonoverlapping(bytes.as_ptr(), self.at.as_ptr().cast::<u8>().add(at), bytes.len()) };
        // a reader after this process has died sees the writes in this order
        compiler_fence(Ordering::SeqCst);
        Ok(())
    }

    /// Reads into `out`. Bytes never written are zeros.
    ///
    /// # Errors
    /// When the range is not within the file.
    pub fn read(&self, at: usize, out: &mut [u8]) -> io::Result<()> {
        self.check(at, out.len())?;
        if out.is_empty() {
            return Ok(());
        }
        if (at / STRETCH..=(at + out.len() - 1) / STRETCH).any(|stretch| !self.has_room[stretch]) {
            return self.file.read_exact_at(out, at as u64);
        }
        // SAFETY: as for writing.
        unsafe {
            copy_nonoverlapping(self.at.as_ptr().cast::<u8>().add(at), out.as_mut_ptr(), out.len());
        }
        Ok(())
    }

    fn check(&self, at: usize, len: usize) -> io::Result<()> {
        match at.checked_add(len) {
            Some(end) if end <= self.len => Ok(()),
            _ => Err(invalid("beyond the end of a mapped file")),
        }
    }

    fn unmap(&mut self) {
        // SAFETY: mapped by this type with this length, and no reference into it is ever given out.
        let _ = unsafe { munmap(self.at.as_ptr(), self.len) };
    }
}

fn map(file: &File, len: usize) -> io::Result<NonNull<c_void>> {
    file.set_len(len as u64)?;
    let flags = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
    // SAFETY: a new mapping at an address chosen by the kernel touches no existing memory.
    let at = unsafe { mmap(std::ptr::null_mut(), len, flags.0, flags.1, file, 0) }?;
    NonNull::new(at).ok_or_else(|| io::Error::other("a file was mapped to no place"))
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        self.unmap();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::MetadataExt as _;

    #[test]
    fn what_is_written_is_in_the_file_and_nothing_else_takes_room() {
        let path = std::env::temp_dir().join(format!("bentpipe-mapped-{}", std::process::id()));
        fs::write(&path, "somebody's").unwrap();
        let mut map = MappedFile::create(&path, 100 << 20).unwrap();
        let seam = 3 * STRETCH - 2;
        map.write(seam, b"over a seam").unwrap();
        map.write(map.len - 1, &[7]).unwrap();
        let file = File::open(&path).unwrap();
        let mut there = [0; 11];
        file.read_exact_at(&mut there, seam as u64).unwrap();
        assert_eq!(&there, b"over a seam");
        let mut again = [1; 13];
        map.read(seam - 1, &mut again).unwrap();
        assert_eq!(&again, b"\0over a seam\0");
        map.read(50 << 20, &mut again).unwrap();
        assert_eq!(again, [0; 13]);
        let found = fs::metadata(&path).unwrap();
        assert_eq!((found.len(), found.mode() & 0o777), (100 << 20, 0o600));
        assert!(found.blocks() * 512 <= 4 * STRETCH as u64, "{} blocks", found.blocks());
        // longer: what was there stays
        map.grow(200 << 20).unwrap();
        map.write((200 << 20) - 3, b"end").unwrap();
        map.read(seam, &mut there).unwrap();
        assert_eq!((&there, map.len), (b"over a seam", 200 << 20));
        for (at, len) in [(map.len - 2, 3), (usize::MAX, 2), (map.len + 1, 0)] {
            assert_eq!(map.write(at, &vec![0; len]).unwrap_err().kind(), ErrorKind::InvalidInput);
            assert_eq!(map.read(at, &mut vec![0; len]).unwrap_err().kind(), ErrorKind::InvalidInput);
        }
        drop(map);
        fs::remove_file(&path).unwrap();
        assert!(
            MappedFile::create(Path::new("/nowhere/x"), 1).is_err() && MappedFile::create(&path, 0).is_err()
        );
        let _ = fs::remove_file(&path);
    }

    #[test]
    fn the_rest_of_a_stretch_is_allocated_when_it_grows() {
        let path = std::env::temp_dir().join(format!("bentpipe-mapped-grow-{}", std::process::id()));
        let mut map = MappedFile::create(&path, 100).unwrap();
        map.write(0, &[1]).unwrap();
        map.grow(2 * STRETCH).unwrap();
        let allocated = fs::metadata(&path).unwrap().blocks() * 512;
        assert!(allocated >= STRETCH as u64 && allocated < 2 * STRETCH as u64, "{allocated}");
        drop(map);
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_full_file_system_is_an_error() {
        // a file that cannot be written to: a full file system gives an error at the same place
        let path = std::env::temp_dir().join(format!("bentpipe-mapped-full-{}", std::process::id()));
        let mut map = MappedFile::create(&path, 4 * STRETCH).unwrap();
        map.file = File::open(&path).unwrap();
        assert!(map.write(0, &[1]).is_err(), "there was no room to be had");
        let mut out = [9; 4];
        map.read(0, &mut out).unwrap();
        assert_eq!(out, [0; 4], "and nothing was written");
        drop(map);
        fs::remove_file(&path).unwrap();
    }
}
