//! Every key of a scenario file, once: its type, default and meaning.
//!
//! The parser, its errors, the JSON schema and the reference page all come from these tables.

mod custom;
mod dynamics;
mod flows;
mod gateways;
mod network;
mod observe;
mod queue;
mod scheme;
mod sweep;
mod tcp;

pub(crate) use custom::*;
pub(crate) use dynamics::*;
pub(crate) use flows::*;
pub(crate) use gateways::*;
pub(crate) use network::*;
pub(crate) use observe::*;
pub(crate) use queue::*;
pub(crate) use scheme::*;
pub(crate) use sweep::*;
pub(crate) use tcp::*;

use crate::form::{At, table};
use crate::parameters::{Declared, Resolved};
use crate::scalars::{Text, Version, Whole};
use crate::types::Stop;
use bentpipe_base::{Duration, Instant};

/// Most flows of a scenario.
pub(crate) const MAX_FLOWS: u64 = 100_000;
/// Most flows with an end at one host: each needs a port of its own.
pub(crate) const MAX_FLOWS_PER_HOST: u32 = 50_000;
/// Most hosts and routers.
pub(crate) const MAX_NODES: usize = 200_000;
/// Most pairs of a dumbbell: two hosts each, and two routers.
pub(crate) const MAX_PAIRS: u64 = (MAX_NODES as u64 - 2) / 2;
/// Most stations of a satellite network: a host and a router each, and one that switches.
pub(crate) const MAX_STATIONS: u64 = (MAX_NODES as u64 - 1) / 2;
/// Most links.
pub(crate) const MAX_LINKS: usize = 400_000;
/// Most explicit routes.
pub(crate) const MAX_ROUTES: usize = 100_000;

table! {
    /// The keys at the top of the file, before any table.
    struct FileKeys "the file" {
        required {
            /// Version of this format.
            schema: Version,
            /// One line that says what is being asked.
            title: Text,
            /// Latest end of the run. At most a year (8760 h).
            duration: Duration,
            /// The flows.
            flows: Vec<At<FlowKeys>>,
        }
        optional {
            /// Seed of every random stream. The same file and seed give the same bytes of output.
            seed: Whole<0, { u64::MAX }> = "`1`",
            /// When the run ends: at `duration`, or when every flow that has an end has finished (at the
            /// latest at `duration`).
            stop: Stop = "`\"duration\"`",
            /// Interval over which goodput is counted.
            measure: MeasureKeys = "the whole run",
            /// Names that `--set` can change; see above.
            parameters: Declared = "none",
            /// Parameters of the file that this one was made from by `bentpipe check`. Copied into reports,
            /// no effect otherwise.
            resolved: Resolved = "none",
            /// A ready-made network: pairs of hosts on both sides of one bottleneck.
            dumbbell: DumbbellKeys = "none",
            /// A ready-made network: users behind the stations of one satellite.
            satellite: SatelliteKeys = "none",
            /// Ends of flows. A host has exactly one link.
            hosts: Vec<At<HostKeys>> = "none",
            /// Nodes that forward. Routes follow the fewest hops unless given.
            routers: Vec<At<RouterKeys>> = "none",
            /// Links between nodes.
            links: Vec<At<LinkKeys>> = "none",
            /// Gateways before long hops.
            gateways: Vec<At<GatewayKeys>> = "none",
            /// Nodes of kinds that are not built in.
            nodes: Customs = "none",
            /// TCP options for all flows; a flow may override each.
            host: TcpKeys = "none",
            /// Changes of links during the run.
            timeline: Vec<At<TimelineKeys>> = "none",
            /// Measuring instruments.
            instruments: Vec<At<InstrumentKeys>> = "none",
            /// Packets to record.
            captures: Vec<At<CaptureKeys>> = "none",
            /// Figures that others found, shown beside this run's.
            references: Vec<At<ReferenceKeys>> = "none",
            /// Many runs of this file: what `bentpipe sweep` does. A single run ignores it.
            sweep: SweepKeys = "none",
        }
    }
}

table! {
    /// The interval over which goodput is counted.
    struct MeasureKeys "measure" {
        required {
            /// Its start.
            from: Instant,
            /// Its end, after `from` and at the latest at `duration`.
            to: Instant,
        }
        optional {
            /// Also report what each link carried in this interval (`carried_bps`).
            links: bool = "`false`",
        }
    }
}
