//! A network namespace without a name: it lives as long as what holds it, and nothing of it is left behind,
//! however we end.

use bentpipe_os::{namespace, sysctl};
use std::os::fd::OwnedFd;
use std::process::Command;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

/// A host or a router.
#[derive(Debug)]
pub struct Namespace {
    net: OwnedFd,
    thread: i32,
    held: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Namespace {
    /// A new one, with a loopback interface that is up.
    ///
    /// # Errors
    /// When we may not make one.
    pub fn new() -> Result<Self, String> {
        let (tell, told) = channel();
        let (keep, end) = channel::<()>();
        let hold = thread::spawn(move || {
            let made = namespace::new_network();
            let id = rustix::thread::gettid().as_raw_nonzero().get();
            let _ = tell.send(made.map(|net| (net, id)));
            // a thread in it gives the namespace a number by which `ip` finds it
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

    /// What `ip ... netns` takes for it.
    pub const fn number(&self) -> i32 {
        self.thread
    }

    /// Does something in it and comes back.
    ///
    /// # Errors
    /// When it cannot be entered, or what is done fails.
    pub fn within<T>(&self, act: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
        namespace::in_network(&self.net, act).map_err(|e| format!("a namespace: {e}"))?
    }

    /// Runs a shell script in it.
    ///
    /// # Errors
    /// When it fails.
    pub fn shell(&self, script: &str) -> Result<String, String> {
        let done = self
            .within(|| Command::new("sh").args(["-ec", script]).output().map_err(|e| format!("sh: {e}")))?;
        if done.status.success() {
            return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
        }
        Err(format!("{script}: {}", String::from_utf8_lossy(&done.stderr).trim()))
    }

    /// Sets kernel settings below `net/ipv4/`.
    ///
    /// # Errors
    /// When there is no such setting.
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
