//! Programs of other projects that a check needs: found, or installed where that is possible, or named.

use nix::unistd::Uid;
use std::path::PathBuf;
use std::process::Command;

/// The first of `names` that can be run; else Debian's `package` is installed, if we may.
///
/// # Errors
/// Names the package to install.
pub(crate) fn find(names: &[&str], package: &str) -> Result<PathBuf, String> {
    let there = || names.iter().find_map(|name| on_the_path(name));
    if let Some(found) = there() {
        return Ok(found);
    }
    let hint = format!("{} is not installed (apt-get install {package})", names.join(" or "));
    if !Uid::effective().is_root() || on_the_path("apt-get").is_none() {
        return Err(hint);
    }
    println!("installing {package} (apt-get install {package})");
    let apt = |args: &[&str]| {
        let mut command = Command::new("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive").args(args);
        command.output().is_ok_and(|o| o.status.success())
    };
    if apt(&["update"]) && apt(&["install", "--yes", "--no-install-recommends", package]) {
        return there().ok_or(hint);
    }
    Err(format!("{hint}; it could not be installed"))
}

fn on_the_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|p| p.join(program)).find(|p| p.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_found() {
        assert!(on_the_path("sh").is_some_and(|p| p.is_absolute()));
        assert_eq!(on_the_path("no-such-program-anywhere"), None);
    }
}
