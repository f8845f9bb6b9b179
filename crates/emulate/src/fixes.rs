//! Commands that fix what a machine lacks.

use bentpipe_os::sysctl;
use std::fs;

/// [`user_namespaces`] as help lines of an error message.
pub(crate) fn help_lines() -> String {
    user_namespaces().iter().map(|line| format!("help: {line}")).collect::<Vec<_>>().join("\n")
}

/// Why an ordinary user cannot create namespaces here, and how to fix it; never empty.
pub(crate) fn user_namespaces() -> Vec<String> {
    let mut mends = Vec::new();
    if !fs::exists("/proc/self/ns/user").unwrap_or(false) {
        mends.push(
            "this kernel was built without user namespaces: start bentpipe as root (sudo bentpipe ...)"
                .to_owned(),
        );
    }
    for (name, bad, good) in [
        ("user/max_user_namespaces", "0", "10000"),
        ("user/max_net_namespaces", "0", "10000"),
        ("kernel/unprivileged_userns_clone", "0", "1"),
        ("kernel/apparmor_restrict_unprivileged_userns", "1", "0"),
    ] {
        if sysctl::read(name).is_ok_and(|value| value == bad) {
            mends.push(format!("sudo sysctl -w {}={good}", name.replace('/', ".")));
        }
    }
    if is_container() {
        mends.push("in a container: start it with --cap-add SYS_ADMIN --cap-add NET_ADMIN --cap-add NET_RAW, or with --security-opt seccomp=unconfined".to_owned());
    }
    if mends.is_empty() {
        mends.push("start bentpipe as root: sudo bentpipe ...".to_owned());
    }
    mends
}

/// True if this looks like a container, or system calls are filtered as in one.
fn is_container() -> bool {
    let there = |path: &str| fs::exists(path).unwrap_or(false);
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    there("/.dockerenv") || there("/run/.containerenv") || status.lines().any(|l| l == "Seccomp:\t2")
}
