//! Keys of gateways.

use crate::form::{At, table, words};
use crate::gateway_file::RuleKeys;
use crate::lists::RateOrNone;
use crate::scalars::{CopiesForm, Name, Whole};
use bentpipe_base::Size;
use bentpipe_gateway::{Action, Mode};

/// Most flows of a gateway.
pub(crate) const MAX_GATEWAY_FLOWS: u64 = 10_000_000;

table! {
    /// A TCP-SuperCharger gateway before a long hop: it shows senders the window that the hop needs, whatever
    /// the receiver announces, and repairs the hop's losses. It stands at the beginning of one direction of a
    /// link; what comes back over the other direction passes through it as well.
    struct GatewayKeys "[[gateways]]" {
        required {
            /// Unique name.
            name: Name,
            /// The hop: name of the direction of a link into which it sends. A direction has at most one
            /// gateway.
            link: Name,
        }
        optional {
            /// Rate of the hop as the link counts, which the gateway never exceeds. `"none"`: it does not
            /// shape.
            rate: RateOrNone = "the link's; must be given where that changes during the run",
            /// Bytes that the hop counts beside those of IP.
            framing: Size = "the link's",
            /// `"open"` takes the receiver to keep up until its window says otherwise; `"strict"` follows the
            /// paper's equations, corrected where they need it.
            mode: Mode = "`\"open\"`",
            /// Share of the rate that is used, more than 0 and at most 1.
            share: f64 = "`0.995`",
            /// How often each packet is sent: always so often, or as often as pays at the loss that the
            /// gateway sees.
            copies: CopiesForm = "`\"auto\"`",
            /// What it may hold.
            limits: GatewayLimitKeys = "see there",
            /// Which connections are accelerated: as `[[rules]]` of a gateway file; the first rule that
            /// matches decides. Hosts have the addresses that `bentpipe emulate` gives them: 10.55.0.1 and
            /// fd55::1 for the first, and so on; in simulation the IPv4 ones.
            rules: Vec<At<RuleKeys>> = "none",
            /// What becomes of a connection that no rule matches.
            otherwise: Action = "`\"accelerate\"`",
            /// `false`: everything passes as it is, and flows are still counted.
            accelerate: bool = "`true`",
            /// `false`: the gateway is checked and left out; the link is as without it. For a parameter that
            /// switches it.
            enabled: bool = "`true`",
        }
    }
}

table! {
    /// Bounds of what a gateway holds. What is beyond them passes as it is.
    struct GatewayLimitKeys "limits" {
        optional {
            /// Flows at a time.
            flows: Whole<1, MAX_GATEWAY_FLOWS> = "`100000`",
            /// Bytes held for all flows together.
            memory: Size = "`\"1 GiB\"`",
            /// Bytes held for one flow.
            per_flow: Size = "`\"64 MiB\"`",
        }
    }
}

words!(Mode { "open" => Open, "strict" => Strict, });
