//! Network namespaces without a name. They disappear when the process ends, however it ends.

use bentpipe_os::{namespace, sysctl};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::process::Command;
use std::thread;

/// The namespace of a host or router.
#[derive(Debug)]
pub struct Namespace(OwnedFd);

impl Namespace {
    /// Creates a namespace with its loopback interface up.
    ///
    /// # Errors
    /// If the process lacks the rights.
    pub fn new() -> Result<Self, String> {
        // made by another thread, since a thread that creates a namespace is then inside it
        let made = thread::spawn(namespace::new_network).join();
        let net = made
            .map_err(|_| "no thread for a namespace".to_owned())?
            .map_err(|e| format!("a network namespace (are we root?): {e}"))?;
        let place = Self(net);
        place.shell("ip link set lo up")?;
        Ok(place)
    }

    /// The path for `ip ... netns`.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }

    /// Runs `act` inside the namespace.
    ///
    /// # Errors
    /// If the namespace cannot be entered, or `act` fails.
    pub fn within<T>(&self, act: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
        namespace::in_network(&self.0, act).map_err(|e| format!("a namespace: {e}"))?
    }

    /// Runs a shell script inside the namespace.
    ///
    /// # Errors
    /// If the script fails.
    pub fn shell(&self, script: &str) -> Result<(), String> {
        let done = self
            .within(|| Command::new("sh").args(["-ec", script]).output().map_err(|e| format!("sh: {e}")))?;
        if done.status.success() {
            return Ok(());
        }
        Err(format!("{script}: {}", String::from_utf8_lossy(&done.stderr).trim()))
    }

    /// Sets kernel settings below `net/ipv4/`.
    ///
    /// # Errors
    /// If a setting does not exist.
    pub fn set(&self, settings: &[(&str, &str)]) -> Result<(), String> {
        self.within(|| {
            settings.iter().try_for_each(|(name, value)| {
                sysctl::write(&format!("net/ipv4/{name}"), value).map_err(|e| format!("{name}={value}: {e}"))
            })
        })
    }
}
