//! Unlike a splitting proxy, the gateway can hold more connections than it may have descriptors.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test: what is skipped is printed, what fails may panic"
)]

#[allow(dead_code, reason = "another test uses the rest")]
#[path = "gateway/lab.rs"]
mod lab;

use lab::{Lab, echo};
use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit};

/// PEPsal exits when it runs out of descriptors. This gateway needs none per connection.
#[test]
fn few_descriptors_are_enough_for_many_connections() {
    let Some(lab) = Lab::new("descriptors", true) else { return };
    let gateway = lab.start(&lab.file(""));
    let few = Rlimit { current: Some(40), maximum: Some(40) };
    prlimit(Pid::from_raw(gateway.pid()), Resource::Nofile, few).unwrap();
    let mut streams: Vec<_> = (0..300).map(|i| lab.connect(i % 2 == 1)).collect();
    for stream in &mut streams {
        echo(stream, 5000);
    }
    let status = lab.gateway(&["status", "--json"]);
    let status: serde_json::Value = serde_json::from_str(&lab::out(&status)).unwrap();
    assert!(status["figures"]["packets"][0].as_u64().unwrap() > 1000, "{status}");
    let (code, log) = gateway.end(Signal::TERM);
    assert_eq!(code, Some(0), "{log}");
    for stream in &mut streams {
        echo(stream, 5000);
    }
}
