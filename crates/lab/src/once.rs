//! Runs a short program to its end, in the namespaces of the calling thread; and a test program again
//! without privileges, as root of a new user namespace only.

use crate::Outcome;
use std::process::Command;

/// Runs a command, which must succeed, and returns its standard output; `name` is for messages.
pub fn output(name: &str, command: &mut Command) -> Outcome<String> {
    let out = command.output().map_err(|e| format!("{name}: {e}"))?;
    if out.status.success() {
        return Ok(String::from_utf8_lossy(&out.stdout).into_owned());
    }
    Err(format!("{name}: {}", String::from_utf8_lossy(&out.stderr).trim()))
}

/// Runs `program` with `arguments`, which are separated by spaces.
pub fn run(program: &str, arguments: &str) -> Outcome<()> {
    let name = format!("{program} {arguments}");
    output(&name, Command::new(program).args(arguments.split(' '))).map(drop)
}

/// Runs `ip ARGUMENTS` of iproute2.
pub fn ip(arguments: &str) -> Outcome<()> {
    run("ip", arguments)
}

/// Runs this program with `arguments` as an ordinary user in new user and network namespaces, and prints
/// its output. If that is impossible, it prints that `test` was skipped, and why.
///
/// # Panics
/// If the program fails, or cannot be copied to where every user can run it.
#[expect(clippy::print_stdout, reason = "where the test harness, and who counts what is skipped, reads it")]
pub fn run_as_unprivileged_user(test: &str, arguments: &[&str]) {
    let skipped = |why: &str| println!("SKIPPED {test}: {why}");
    let copy = std::env::temp_dir().join(format!("bentpipe-again-{}-{test}", std::process::id()));
    std::fs::copy("/proc/self/exe", &copy).expect("a copy of this program");
    let mut words = vec!["unshare", "-Urn", "--"];
    if crate::rig::is_root() {
        let other = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"];
        words.splice(0..0, other);
    }
    let out = Command::new(words[0]).args(&words[1..]).arg(&copy).args(arguments).current_dir("/").output();
    std::fs::remove_file(&copy).expect("the copy is ours");
    let Ok(out) = out else { return skipped("no setpriv or no unshare (util-linux)") };
    let [text, err] = [&out.stdout, &out.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    print!("{text}");
    if !text.contains("running ") {
        return skipped(&format!("no user namespace: {err}"));
    }
    assert!(out.status.success() && !text.contains("running 0 tests"), "{text}{err}");
}
