//! How this program is started again, as a helper of its own.

use std::ffi::OsString;
use std::process::Command;
use std::sync::OnceLock;

static WORDS: OnceLock<Vec<OsString>> = OnceLock::new();

/// Says which words start this program where it is a library of another one, such as Python. The first call
/// decides; later ones do nothing.
pub fn set_own_program(words: Vec<OsString>) {
    // a second caller in the same process would say the same
    let _ = WORDS.set(words);
}

/// Returns a command that starts this program, also if its file has been replaced since; arguments follow.
pub fn own_program() -> Command {
    match WORDS.get().and_then(|words| words.split_first()) {
        Some((program, arguments)) => {
            let mut command = Command::new(program);
            command.args(arguments);
            command
        }
        None => Command::new("/proc/self/exe"),
    }
}
