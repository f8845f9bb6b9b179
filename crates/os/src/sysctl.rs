//! Kernel settings of the calling thread's network namespace, as files under `/proc/sys`.

use std::fs;
use std::io;
use std::path::PathBuf;

/// Reads a setting, for instance `net/ipv4/ip_forward`, without the final line break.
///
/// # Errors
/// When there is no such setting or it may not be read.
pub fn read(name: &str) -> io::Result<String> {
    fs::read_to_string(path(name)).map(|text| text.trim_end().to_owned())
}

/// Writes a setting.
///
/// # Errors
/// When there is no such setting, it may not be written, or the kernel refuses the value.
pub fn write(name: &str, value: &str) -> io::Result<()> {
    fs::write(path(name), value)
}

/// Writes a setting that not every kernel has; returns false if it is missing.
///
/// # Errors
/// As [`write()`], except for a missing setting.
pub fn write_if_there(name: &str, value: &str) -> io::Result<bool> {
    match write(name, value) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Names use slashes, since interface names may contain dots.
fn path(name: &str) -> PathBuf {
    PathBuf::from("/proc/sys").join(name)
}
