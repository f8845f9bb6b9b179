//! All keys of a scenario file, each with type, default and meaning.
//!
//! The parser, its errors, the JSON schema and the reference page are all built from these tables.

mod custom;
mod dynamics;
mod flow_routers;
mod flows;
mod gateways;
mod middleboxes;
mod network;
mod observe;
mod queue;
mod scheme;
mod sweep;
mod tcp;

pub(crate) use custom::*;
pub(crate) use dynamics::*;
pub(crate) use flow_routers::*;
pub(crate) use flows::*;
pub(crate) use gateways::*;
pub(crate) use middleboxes::*;
pub(crate) use network::*;
pub(crate) use observe::*;
pub(crate) use queue::*;
pub(crate) use scheme::*;
pub(crate) use sweep::*;
pub(crate) use tcp::*;

use crate::form::{At, table};
use crate::parameters::ParameterDeclarations;
use crate::scalars::{Text, Version, Whole};
use crate::types::{ParamValue, Stop};
use bentpipe_base::{Duration, Instant};

pub(crate) const MAX_FLOWS: u64 = 100_000;
/// Maximum number of flows with an end at one host: each needs a port of its own.
pub(crate) const MAX_FLOWS_PER_HOST: u32 = 50_000;
/// Those of a dumbbell with as many pairs as there may be flows.
pub(crate) const MAX_NODES: usize = 200_002;
/// Maximum number of pairs of a dumbbell: each has two hosts, and there are two routers.
pub(crate) const MAX_PAIRS: u64 = (MAX_NODES as u64 - 2) / 2;
/// Maximum number of stations of a satellite network: each has a host and a router, and there is one switch.
pub(crate) const MAX_STATIONS: u64 = (MAX_NODES as u64 - 1) / 2;
pub(crate) const MAX_LINKS: usize = 400_000;
pub(crate) const MAX_ROUTES: usize = 100_000;

table! {
    /// Keys at the top of the file, before any table.
    struct FileKeys "the file" {
        /// Version of the file format.
        schema: Version,
        /// Title of the experiment: one line that states its question.
        title: Text,
        /// Maximum length of the run in simulated time, at most one year (8760 h).
        duration: Duration,
        /// The flows.
        flows: Vec<At<FlowKeys>>,
        /// Seed of all random streams. The same file with the same seed gives byte-identical output.
        seed: Whole<0, { u64::MAX }> = "`1`",
        /// When the run ends: at `duration`, or before if every flow of finite length has finished.
        stop: Stop = "`\"duration\"`",
        /// Time interval in which goodput is counted.
        measure: MeasureKeys = "the whole run",
        /// Named values that `--set` can change; see above.
        parameters: ParameterDeclarations = "none",
        /// Parameter values of the original file, written by `bentpipe check`. Copied into reports.
        resolved: Vec<(String, ParamValue)> = "none",
        /// A ready-made network: pairs of hosts on both sides of one bottleneck link.
        dumbbell: DumbbellKeys = "none",
        /// A ready-made network: users behind the ground stations of one satellite.
        satellite: SatelliteKeys = "none",
        /// The hosts, which are the ends of flows. A host has exactly one link.
        hosts: Vec<At<HostKeys>> = "none",
        /// The routers. Packets follow the route with the fewest hops unless `routes` says otherwise.
        routers: Vec<At<RouterKeys>> = "none",
        /// Links between nodes.
        links: Vec<At<LinkKeys>> = "none",
        /// TCP-SuperCharger gateways at the start of long hops.
        gateways: Vec<At<GatewayKeys>> = "none",
        /// Flow routers, which answer requests for rates.
        flow_routers: Vec<At<FlowRouterKeys>> = "none",
        /// Boxes that change or drop packets: firewalls, NATs, and routers that rewrite code points.
        middleboxes: Vec<At<MiddleboxKeys>> = "none",
        /// Nodes of kinds that are not built in.
        nodes: Vec<Custom> = "none",
        /// TCP options of all flows. Each flow can override them.
        host: TcpKeys = "none",
        /// Changes of links at given times of the run.
        timeline: Vec<At<TimelineKeys>> = "none",
        /// Measuring instruments.
        instruments: Vec<At<InstrumentKeys>> = "none",
        /// Links whose packets are recorded.
        captures: Vec<At<CaptureKeys>> = "none",
        /// Published or measured values to which the report compares this run.
        references: Vec<At<ReferenceKeys>> = "none",
        /// A set of many runs of this file, for `bentpipe sweep`. A single run ignores it.
        sweep: SweepKeys = "none",
    }

    /// The time interval in which goodput is counted.
    struct MeasureKeys "measure" {
        /// Start of the interval.
        from: Instant,
        /// End of the interval, after `from` and not after `duration`.
        to: Instant,
        /// `true`: also report the throughput of each link in this interval (`carried_bps`).
        links: bool = "`false`",
    }
}
