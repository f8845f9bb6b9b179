//! The first screen of the README, and its two commands for a user who has nothing yet.

use crate::accept::list::{List, Setup};
use crate::{Outcome, metadata};
use lab::rig;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Lines of a first screen.
const SCREEN: usize = 40;
/// What every system has, and `make need-cargo` uses.
const USUAL: [&str; 10] = ["sh", "sed", "dirname", "id", "sort", "head", "uname", "mkdir", "chmod", "cat"];
/// What the installer of Rust leaves, as far as it is looked at.
const RUSTUP: &str = r#"#!/bin/sh
echo 'mkdir -p "$HOME/.cargo/bin" && echo "echo cargo 1.99.0" >"$HOME/.cargo/bin/cargo" && chmod +x "$HOME/.cargo/bin/cargo"'
"#;

pub(super) fn check(setup: &Setup, list: &mut List) -> Outcome {
    let readme = fs::read_to_string(metadata::root().join("README.md")).map_err(|e| e.to_string())?;
    let lacking = lacking(&readme);
    list.line("README's first screen: picture, make demo, make test", lacking.join(", "), lacking.is_empty());
    list.judge("without Rust and compiler: named, and installed for YES=1", missing(), |steps| (steps, true));
    let what = "from an empty home, in a clone: `make demo` and `make test`";
    if !setup.long {
        list.skip(what, "not run: it builds everything, twice; LONG=1");
        return Ok(());
    }
    list.judge(what, from_nothing(), |figure| (figure, true));
    Ok(())
}

/// What the first screen of the text lacks.
fn lacking(readme: &str) -> Vec<&'static str> {
    let screen: Vec<&str> = readme.lines().take(SCREEN).collect();
    let has = |wanted: &str| screen.iter().any(|line| line.starts_with(wanted));
    [("make demo", "make demo"), ("make test", "make test"), ("![", "a picture")]
        .into_iter()
        .filter_map(|(start, name)| (!has(start)).then_some(name))
        .collect()
}

/// A user with an empty home and hardly any program.
struct NewUser(PathBuf);

impl NewUser {
    fn new() -> Outcome<Self> {
        let folder = std::env::temp_dir().join(format!("bentpipe-new-user-{}", std::process::id()));
        let user = Self(folder);
        let make = || -> std::io::Result<()> {
            for sub in ["bin", "home"] {
                fs::create_dir_all(user.0.join(sub))?;
            }
            for (name, path) in USUAL.iter().filter_map(|name| Some((name, rig::find(name)?))) {
                symlink(path, user.0.join("bin").join(name))?;
            }
            Ok(())
        };
        make().map_err(|e| format!("{}: {e}", user.0.display()))?;
        Ok(user)
    }

    /// Adds a program.
    fn program(&self, name: &str, script: &str) -> Outcome {
        let path = self.0.join("bin").join(name);
        let write =
            fs::write(&path, script).and_then(|()| fs::set_permissions(&path, Permissions::from_mode(0o755)));
        write.map_err(|e| format!("{}: {e}", path.display()))
    }

    fn make(&self, words: &[&str]) -> Outcome<Output> {
        let make = rig::find("make").ok_or("make is not installed")?;
        let mut command = Command::new(make);
        command.args(["--no-print-directory", "need-cargo"]).args(words).env_clear();
        command.env("PATH", self.0.join("bin")).env("HOME", self.0.join("home"));
        command.current_dir(metadata::root()).stdin(Stdio::null()).output().map_err(|e| e.to_string())
    }

    /// It must fail, and name a command that starts and ends so, behind `sudo` for an ordinary user.
    fn is_told(&self, start: &str, end: &str) -> Outcome {
        let done = self.make(&[])?;
        let text = String::from_utf8_lossy(&done.stderr);
        let is_it = |line: &str| {
            let line = line.trim().trim_start_matches("sudo ");
            line.starts_with(start) && line.ends_with(end)
        };
        let told = !done.status.success() && text.lines().any(is_it);
        if told { Ok(()) } else { Err(format!("`{start}...{end}` is not named: {}", text.trim())) }
    }

    fn succeeds(&self, words: &[&str]) -> Outcome {
        let done = self.make(words)?;
        let text = String::from_utf8_lossy(&done.stderr);
        if done.status.success() { Ok(()) } else { Err(format!("make need-cargo: {}", text.trim())) }
    }
}

impl Drop for NewUser {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Goes through what can be missing; the installers only leave what is looked at. Returns what was tried.
fn missing() -> Outcome<String> {
    let user = NewUser::new()?;
    let bin = user.0.join("bin");
    user.is_told("PACKAGE-MANAGER install gcc && ", "no-modify-path")?;
    let installs = format!("#!/bin/sh\necho '#!/bin/sh' >'{0}/cc' && chmod +x '{0}/cc'\n", bin.display());
    user.program("apt-get", &installs)?;
    user.program("sudo", "#!/bin/sh\n\"$@\"\n")?;
    user.program("curl", RUSTUP)?;
    user.is_told("apt-get install --yes build-essential && curl ", "no-modify-path")?;
    user.succeeds(&["YES=1"])?;
    // now also without the answer, in the next call
    user.succeeds(&[])?;
    let cargo = user.0.join("home/.cargo/bin/cargo");
    fs::remove_file(&cargo).map_err(|e| e.to_string())?;
    user.is_told("curl ", "https://sh.rustup.rs | sh -s -- -y --profile minimal --no-modify-path")?;
    user.program("cargo", "#!/bin/sh\necho cargo 1.63.0\n")?;
    user.is_told("curl ", "--no-modify-path")?;
    user.program("rustup", "#!/bin/sh\n")?;
    user.is_told("rustup update stable", "stable")?;
    user.program("cargo", "#!/bin/sh\nexit 1\n")?;
    user.is_told("rustup default stable", "stable")?;
    Ok("no compiler, no Rust, an old one, rustup alone".to_owned())
}

/// Both commands in a clone, with the toolchains of this user and nothing else of theirs.
fn from_nothing() -> Outcome<String> {
    let user = NewUser::new()?;
    let clone = user.0.join("bentpipe");
    let git = |words: &[&Path]| {
        lab::once::output("git clone", Command::new("git").args(["clone", "--quiet"]).args(words))
    };
    git(&[&metadata::root(), &clone])?;
    let rustup = std::env::var_os("RUSTUP_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".rustup")));
    let rustup = rustup.ok_or("neither RUSTUP_HOME nor HOME is set")?;
    for target in ["demo", "test"] {
        let mut command = Command::new("make");
        command.arg(target).current_dir(&clone).stdin(Stdio::null()).env("HOME", user.0.join("home"));
        command.env("RUSTUP_HOME", &rustup).env_remove("CARGO_HOME").env_remove("CARGO_TARGET_DIR");
        // the beginning of what it says is about downloads, its end about what failed
        lab::once::output(&format!("make {target}"), &mut command).map_err(|error| {
            let lines: Vec<&str> =
                error.lines().rev().filter(|line| !line.trim().is_empty()).take(3).collect();
            lines.into_iter().rev().collect::<Vec<_>>().join(" / ")
        })?;
    }
    Ok("both succeed".to_owned())
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn a_first_screen_has_a_picture_and_two_commands() {
        let screen = "make demo\nmake test\n![x](y)\n";
        assert!(lacking(screen).is_empty());
        assert_eq!(lacking(&format!("{}{screen}", "\n".repeat(SCREEN))).len(), 3);
    }

    #[test]
    fn who_lacks_a_compiler_or_rust_is_told_how_to_get_it() {
        assert_eq!(missing().map(|_| ()), Ok(()));
    }
}
