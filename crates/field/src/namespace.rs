//! Network namespaces without a name. They disappear when the process ends, however it ends.

use bentpipe_os::{namespace, sysctl};
use std::os::fd::OwnedFd;
use std::process::Command;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

/// The namespace of a host or router.
#[derive(Debug)]
pub struct Namespace {
    net: OwnedFd,
    thread: i32,
    held: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Namespace {
    /// Creates a namespace with its loopback interface up.
    ///
    /// # Errors
    /// If the process lacks the rights.
    pub fn new() -> Result<Self, String> {
        let (tell, told) = channel();
        let (keep, end) = channel::<()>();
        let hold = thread::spawn(move || {
            let made = namespace::new_network();
            let id = rustix::thread::gettid().as_raw_nonzero().get();
            let _ = tell.send(made.map(|net| (net, id)));
            // a thread inside the namespace has an id by which `ip` finds it
            let _ = end.recv();
        });
        let (net, thread) = told
            .recv()
            .map_err(|_| "no thread for a namespace".to_owned())?
            .map_err(|e| format!("a network namespace (are we root?): {e}"))?;
        let place = Self { net, thread, held: Some((keep, hold)) };
        place.shell("ip link set lo up")?;
        Ok(place)
    }

    /// The id for `ip ... netns`.
    pub const fn thread_id(&self) -> i32 {
        self.thread
    }

    /// Runs `act` inside the namespace.
    ///
    /// # Errors
    /// If the namespace cannot be entered, or `act` fails.
    pub fn within<T>(&self, act: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
        namespace::in_network(&self.net, act).map_err(|e| format!("a namespace: {e}"))?
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

impl Drop for Namespace {
    fn drop(&mut self) {
        if let Some((keep, hold)) = self.held.take() {
            drop(keep);
            let _ = hold.join();
        }
    }
}
