//! Socket options that rustix does not have.

#![allow(unsafe_code, reason = "libc calls with pointers; each block says why it is sound")]

use std::ffi::c_int;
use std::io::{Error, Result};
use std::os::fd::{AsFd, AsRawFd as _};
use std::ptr::from_ref;

/// Sets an option. `value` is what the option takes, an integer or a structure of the kernel; what it points
/// to must live during the call.
pub(crate) fn set<T: Copy>(socket: impl AsFd, level: c_int, name: c_int, value: &T) -> Result<()> {
    let (fd, len) = (socket.as_fd().as_raw_fd(), size_of::<T>() as libc::socklen_t);
    // SAFETY: the kernel reads at most `len` bytes from a live value of that size.
    checked(unsafe { libc::setsockopt(fd, level, name, from_ref(value).cast(), len) })
}

/// Reads an option into `value`; returns its length in bytes.
pub(crate) fn get(socket: impl AsFd, level: c_int, name: c_int, value: &mut [u8]) -> Result<usize> {
    let (fd, mut len) = (socket.as_fd().as_raw_fd(), value.len() as libc::socklen_t);
    // SAFETY: the kernel writes at most `len` bytes into a live slice of that length, and stores the number
    // in `len`.
    checked(unsafe { libc::getsockopt(fd, level, name, value.as_mut_ptr().cast(), &raw mut len) })?;
    Ok((len as usize).min(value.len()))
}

/// The result of a call that returns a negative number on failure.
pub(crate) fn checked(status: c_int) -> Result<()> {
    if status < 0 { Err(Error::last_os_error()) } else { Ok(()) }
}
