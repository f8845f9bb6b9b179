//! Keys of flow routers.

use crate::form::{At, table};
use crate::gateway_file::{OneOrList, Prefix};
use crate::scalars::{Name, Whole};
use bentpipe_advice::negotiation::Encoding;
use bentpipe_base::{Duration, Rate, Size};

/// Maximum number of flows with state.
const MAX_ROUTER_FLOWS: u64 = 10_000_000;

table! {
    /// A flow router at the start of one direction of a link. It answers flows that ask for a rate
    /// (`encoding` and `ask`): it lowers what they ask for to their fair share of the direction, and tells
    /// them later when the share shrinks. Flows that do not ask pass unchanged. Packets of the other
    /// direction pass through it as well. A gateway of the same direction stands before it. Rates count IP
    /// packets with headers.
    struct FlowRouterKeys "[[flow_routers]]" {
        /// Unique name.
        name: Name,
        /// Name of the link direction into which it sends. At most one flow router per direction.
        link: Name,
        /// Rate that it shares out. It follows changes of the link's rate in `[[timeline]]`, whether this is
        /// given or not.
        rate: Rate = "the link's less its framing of packets of `mtu`; must be given where that changes in other ways than by `[[timeline]]`",
        /// How flows may ask it: one or several of the words of `encoding`. What they say in another way
        /// passes unchanged.
        encodings: OneOrList<Encoding> = "all: `[\"tia-1039\", \"scone-tcp\", \"quick-start\"]`",
        /// Fraction of the rate that it gives, more than 0 and at most 1.
        utilisation: f64 = "`0.95`",
        /// Time without data after which a flow is forgotten.
        idle: Duration = "`\"10 s\"`",
        /// The same for a flow with a maximum rate.
        idle_maximum: Duration = "`\"2 s\"`",
        /// Largest packet of the direction. Signalling is inserted only into packets that stay below.
        mtu: Size = "`\"1500 B\"`, or the longest packet of the flows if that is longer",
        /// Classes of flows, which share the rate by their weights.
        classes: Vec<At<ClassKeys>> = "one class called `default`",
        /// What senders may ask for. The first matching rule applies. Without one, a flow gets an available
        /// rate and neither a guaranteed rate nor a priority. Hosts have the addresses that `bentpipe
        /// emulate` gives them: 10.55.0.1 and fd55::1 for the first host, and so on; in simulation the IPv4
        /// ones.
        rules: Vec<At<RateRuleKeys>> = "none",
        /// Limits of state.
        limits: RouterLimitKeys = "see there",
        /// `false`: the flow router is checked but left out of the run. Useful with a parameter.
        enabled: bool = "`true`",
    }

    /// A class of flows: equal rates within it, weights between classes.
    struct ClassKeys "classes" {
        /// Unique name among the classes of the flow router.
        name: Name,
        /// Its part of the rate relative to the other classes that have flows; more than 0.
        weight: f64,
        /// Fraction of the given rate that its flows may reserve as guaranteed or maximum rate, from 0 to 1.
        /// All classes together have at most 1. The hosts of a scenario ask for available rates only.
        reservable: f64 = "0.5 divided by the number of classes",
    }

    /// What a sender may ask for. What is beyond is marked down; nothing is dropped. The hosts of a scenario
    /// ask for available rates only, without priorities.
    struct RateRuleKeys "rate_rules" {
        /// Source of the flow: an address, a prefix, or a list of them.
        from: OneOrList<Prefix>,
        /// Name of the class of its flows.
        class: Name = "the first class",
        /// Largest available rate of a flow.
        available: Rate = "no limit",
        /// Largest guaranteed or maximum rate of a flow.
        guaranteed: Rate = "none may be asked for",
        /// Highest preemption priority.
        preemption: Whole<0, 63> = "`0`",
        /// Highest delay priority.
        delay: Whole<0, 63> = "`0`",
    }

    /// Limits of the state of a flow router.
    struct RouterLimitKeys "router_limits" {
        /// Maximum number of flows with state; at most half of them without signalling.
        flows: Whole<1, MAX_ROUTER_FLOWS> = "`65536`",
        /// Maximum number of flows whose request has had no response yet.
        half_open: Whole<1, MAX_ROUTER_FLOWS> = "`1024`",
        /// Time for which it waits for a response, and for the first data of a flow.
        half_open_time: Duration = "`\"3 s\"`",
    }
}
