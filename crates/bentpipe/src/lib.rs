//! bentpipe as a library.
//!
//! * [`load()`] reads a scenario file, [`run()`] runs it in simulated time, [`sweep()`] runs it many times.
//! * [`endpoint`] is bentpipe's TCP without I/O and clock: packets in and out, and the next deadline.
//! * [`cli`] is the whole command line, with user-defined kinds of nodes ([`CustomNode`], [`Registry`]).
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let scenario_file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/demo.toml");
//! let sets = [("duration".to_owned(), "20 s".to_owned())];
//! # let sets = &sets[1..];
//! let scenario = bentpipe::load(scenario_file.as_ref(), sets, Some(7))?;
//! let report = bentpipe::run(&scenario);
//! assert_eq!(report.seed, Some(7));
//! println!("{:.2} Mbit/s", report.total.goodput_bps / 1e6);
//! # Ok(()) }
//! ```

pub use bentpipe_base::{
    Addr, Cx, Dscp, Duration, Ecn, Flags, Input, Instant, Node, Packet, Pkt, Port, Probability, Proto, Rate,
    Size, Slot,
};
pub use bentpipe_cli::{LoadError, load};
pub use bentpipe_report::{Metric, Report};
pub use bentpipe_scenario::{
    CustomNode, Diagnostic, Files, Registry, Scenario, SettingError, Settings, Source, SweepSpec, register,
    to_toml,
};
pub use bentpipe_sim::run;
pub use bentpipe_sweep::{Formats, Job, Progress, SweepResult, sweep};

use std::process::ExitCode;

/// A TCP implementation without I/O and clock.
///
/// ```
/// use bentpipe::endpoint::{Config, Endpoint, NodeId, Settings, SocketEvent, VnetHeader, World};
/// use bentpipe::{Duration, Instant};
///
/// // two hosts, and a way of 10 ms between them
/// let settings = |host: &str| Settings { addresses: vec![host.parse().unwrap()], ..Settings::default() };
/// let mut world = World::new(1);
/// let mut a = Endpoint::new(&mut world, "a", settings("10.0.0.1"));
/// let mut b = Endpoint::new(&mut world, "b", settings("10.0.0.2"));
/// let mut now = Instant::ZERO;
/// b.listen(80, &Config::default(), 1).unwrap();
/// let to = "10.0.0.2:80".parse().unwrap();
/// let id = a.connect(&mut world.cx(now, NodeId(0)), to, &Config::default()).unwrap();
/// let mut packet = Vec::new();
/// for _ in 0..2 {
///     while a.next_packet(&mut world.cx(now, NodeId(0)), &mut packet) {
///         b.packet(&mut world.cx(now, NodeId(0)), &packet, &VnetHeader::default());
///     }
///     now = now + Duration::from_millis(10);
///     while b.next_packet(&mut world.cx(now, NodeId(0)), &mut packet) {
///         a.packet(&mut world.cx(now, NodeId(0)), &packet, &VnetHeader::default());
///     }
/// }
/// assert_eq!(a.next_event(), Some((id, SocketEvent::Connected)));
/// let connection = a.connection(id).unwrap();
/// assert!(connection.cwnd().0 > 0 && connection.ssthresh().is_none());
/// ```
pub mod endpoint {
    pub use bentpipe_base::{NodeId, World};
    pub use bentpipe_live::endpoint::{
        ConnId, Counters, Ending, Endpoint, EndpointError, Settings, SocketEvent,
    };
    pub use bentpipe_tcp::{Config, Connection};
    pub use bentpipe_wire::offload::VnetHeader;
}

/// Building blocks of congestion control schemes. [`Registry::with_scheme`] registers a scheme.
pub mod scheme {
    pub use bentpipe_tcp::cc::{Ack, CongestionControl, Loss, Path, Plan, law, reno, standard};
    pub use bentpipe_tcp::{Detection, RecoveryParams, Reduction, params};
}

/// Loads a scenario from a text that refers to no trace files.
///
/// # Errors
/// The first error, with its position.
pub fn load_text(source: &Source) -> Result<Scenario, Box<Diagnostic>> {
    bentpipe_scenario::load(source, &[], None)
}

/// Runs the command `bentpipe` with the kinds of nodes in `registry` in addition to the built-in ones.
/// Scenarios use them as `[[nodes]] kind = "..."`, simulated and live.
pub fn cli(registry: Registry) -> ExitCode {
    bentpipe_cli::main(registry)
}
