//! Keys of gateways.

use crate::form::{At, table, words};
use crate::gateway_file::RuleKeys;
use crate::scalars::{Name, Whole};
use bentpipe_base::{Duration, Rate, Size};
use bentpipe_gateway::{Action, Copies, Mode};

pub(crate) const MAX_GATEWAY_FLOWS: u64 = 10_000_000;
/// Maximum `k`: more ACKs than arrive in a round trip of any hop.
pub(crate) const MAX_K: u64 = 100_000;

table! {
    /// A TCP-SuperCharger gateway at the start of a long hop. It replaces the receiver's window by the one
    /// that the hop needs, and retransmits packets that the hop loses. It stands at the start of one
    /// direction of a link; packets of the other direction pass through it as well.
    struct GatewayKeys "[[gateways]]" {
        /// Unique name.
        name: Name,
        /// Name of the hop, the link direction into which it sends. At most one gateway per direction.
        link: Name,
        /// Rate of the hop, as its link counts bytes. Never exceeded. `"none"`: no shaping.
        rate: Option<Rate> = "the link's; must be given where that changes during the run",
        /// Link-layer bytes that the hop counts for each packet in addition to the IP bytes.
        framing: Size = "the link's",
        /// How fast the gateway assumes the receiver to read. `"open"`: fast enough, until its window shows
        /// the opposite. `"strict"`: as in the equations of the paper, with corrections.
        mode: Mode = "`\"open\"`",
        /// Weight of the old value in the smoothed RTT of the hop, equation (2) of the paper, and in the
        /// smoothed read rate of `"strict"`: at least 0 and less than 1. The paper has 0.9.
        alpha: Option<f64> = "`\"auto\"`: 0.875 for the RTT, 0.9 for the read rate",
        /// Number of ACKs over which `"strict"` measures the receiver's read rate, equation (3) of the paper.
        k: Whole<1, MAX_K> = "`8`",
        /// Fraction of the rate that is used, more than 0 and at most 1.
        share: f64 = "`0.995`",
        /// Number of times each packet is sent. `"auto"` chooses it by the measured loss rate.
        copies: Copies = "`\"auto\"`",
        /// While accelerated connections wait and nothing has been sent into the hop for this time, a byte
        /// that has arrived is sent again, and its receiver acknowledges it. For hops that release idle
        /// channels: half of the time after which they do. At least 10 ms. `"none"`: no such packets.
        keep_alive: Option<Duration> = "`\"none\"`",
        /// Limits of memory and flows.
        limits: GatewayLimitKeys = "see there",
        /// Which connections are accelerated, with the keys of `[[rules]]` of a gateway file. The first
        /// matching rule applies. Hosts have the addresses that `bentpipe emulate` gives them: 10.55.0.1 and
        /// fd55::1 for the first host, and so on; in simulation the IPv4 ones.
        rules: Vec<At<RuleKeys>> = "none",
        /// What to do with connections that match no rule.
        otherwise: Action = "`\"accelerate\"`",
        /// `false`: all packets pass unchanged, and flows are still counted.
        accelerate: bool = "`true`",
        /// `false`: the gateway is checked but left out of the run. Useful with a parameter.
        enabled: bool = "`true`",
    }

    /// Limits of a gateway. What exceeds them passes through without acceleration.
    struct GatewayLimitKeys "limits" {
        /// Maximum number of concurrent flows.
        flows: Whole<1, MAX_GATEWAY_FLOWS> = "`100000`",
        /// Memory for the packets of all flows together.
        memory: Size = "`\"1 GiB\"`",
        /// Memory for the packets of one flow. It bounds the window that its sender is shown.
        per_flow: Size = "what the hop carries in 6 s, at least `\"64 MiB\"` and at most `memory`",
    }
}

words!(Mode { "open" => Open, "strict" => Strict, });
