//! All keys of a gateway file, each with type, default and meaning.

use super::rate::EncodingList;
use super::scalars::{CopyCount, DscpClass, Interface, OneOrList, Percent};
use super::types::{Action, Firewall, Kind, Mode, PortRange, Prefix, RecordFormat, Side};
use crate::form::{At, table, words};
use crate::keys::{Custom, MAX_K, SharingKeys};
use crate::lists::Path;
use crate::scalars::{Name, Version, Whole};
use bentpipe_base::{Duration, Rate, Size};
use core::net::SocketAddr;

pub(crate) const MAX_RULES: usize = 1000;

words!(Kind { "routed" => Routed, "inline" => Inline, });
words!(Firewall { "check" => Check, "ignore" => Ignore, });
words!(Action { "accelerate" => Accelerate, "pass" => Pass, });
words!(Side { "lan" => Lan, "satellite" => Satellite, });
words!(RecordFormat { "csv" => Csv, "json-lines" => JsonLines, });

table! {
    /// Keys and tables of a gateway file.
    struct GatewayKeys "the file" {
        /// Version of the file format.
        schema: Version,
        /// The satellite hop.
        satellite: HopKeys,
        /// Where the gateway stands in the network.
        deploy: DeployKeys,
        /// Rates that flows are told: the gateway is a flow router too.
        rate: RateKeys = "no flow is told a rate",
        /// Which connections are accelerated. The first matching rule applies.
        rules: Vec<At<RuleKeys>> = "none",
        /// What to do with all other connections, and how the gain is measured.
        policy: PolicyKeys = "as its keys say",
        /// Nodes of kinds that are not built in, placed behind the gateway in this order.
        nodes: Vec<Custom> = "none",
        /// Limits of memory and connections.
        limits: LimitKeys = "as its keys say",
        /// How the gateway reports its state.
        status: StatusKeys = "as its keys say",
    }

    /// The hop over which the gateway accelerates.
    struct HopKeys "[satellite]" {
        /// Rate of the hop towards the satellite, counting IP bytes and `framing`. The gateway paces
        /// everything it sends there, so that no queue builds up on the hop. Without a rate, the gateway does
        /// not pace, and windows follow the measured rate.
        rate: Rate = "none",
        /// Link-layer bytes that the hop counts for each packet in addition to IP, for instance 14 B of
        /// Ethernet.
        framing: Size = "`\"0 B\"`",
        /// RTT of the hop, used for windows and timeouts until it has been measured.
        rtt: Duration = "measured; `\"1 s\"` until then",
        /// `"open"` probes how fast the receiver can read. `"strict"` follows the published equations.
        mode: Mode = "`\"open\"`",
        /// Weight of the old value in the smoothed RTT of the hop, equation (2), and in the smoothed
        /// read rate of `"strict"`: at least 0 and less than 1. The publication has 0.9.
        alpha: Option<f64> = "`\"auto\"`: 0.875 for the RTT, 0.9 for the read rate",
        /// Number of ACKs over which `"strict"` measures the receiver's read rate, equation (3).
        k: Whole<1, MAX_K> = "`8`",
        /// Fraction of `rate` that is used. Less than 100 % keeps the queue in the gateway.
        share: Percent = "`\"99.5 %\"`",
        /// Number of times each packet is sent. `"auto"` chooses it by the measured loss rate.
        copies: CopyCount = "`\"auto\"`",
        /// While accelerated connections wait and nothing has been sent into the hop for this time, a byte
        /// that has arrived is sent again, and its receiver acknowledges it. For hops that release idle
        /// channels: half of the time after which they do. At least 10 ms. `"none"`: no such packets.
        keep_alive: Option<Duration> = "`\"none\"`",
    }

    /// Where the gateway stands, and the names of the system objects it creates. `mark`, `table`, `priority`,
    /// `nft_table`, `firewall`, `watch` and the names of the TUN interfaces apply to `"routed"` only.
    struct DeployKeys "[deploy]" {
        /// `"routed"`: this machine is a router and routes packets through the gateway. `"inline"`: the
        /// gateway bridges two interfaces like a wire.
        kind: Kind,
        /// Interface towards the sending hosts. `"routed"` allows several.
        lan: OneOrList<Interface>,
        /// Interface towards the satellite.
        satellite: Interface,
        /// Name of this gateway, used for its session, socket and metrics.
        name: Name = "`\"gateway\"`",
        /// TUN interface for packets from and to the LAN.
        tun_lan: Interface = "`\"bentlan\"`",
        /// TUN interface for packets from and to the satellite.
        tun_satellite: Interface = "`\"bentsat\"`",
        /// Name of the nftables table, of family `inet`.
        nft_table: Name = "`\"bentpipe_gateway\"`",
        /// Firewall mark of packets from the LAN. Packets from the satellite get the next number.
        mark: Whole<1, 0xffff_fffe> = "`0x6270`",
        /// Number of the routing table for packets from the LAN. Those from the satellite use the next.
        table: Whole<1, 0xffff_fffe> = "`6270`",
        /// Priority of the two routing rules.
        priority: Whole<1, 32_765> = "`6270`",
        /// What to do if a firewall on this machine would drop packets on the TUN interfaces that it accepts
        /// today. `"check"`: refuse to start. `"ignore"`: print a warning and start.
        firewall: Firewall = "`\"check\"`",
        /// How long after the start the gateway watches whether traffic through this machine continues. If it
        /// does not, the gateway removes all its changes. Before the start it observes which hosts answer,
        /// for at most 2 s. `"0 s"` turns both off.
        watch: Duration = "`\"60 s\"`",
    }

    /// A flow router in the gateway: it tells flows that ask what rate they may send at, their fair share of
    /// the direction to the satellite. With `[policy] otherwise = "pass"` the gateway does nothing else.
    /// Flows that do not ask pass unchanged and count as users. Rates count IP packets with headers.
    struct RateKeys "[rate]" {
        /// How packets carry rates: `"tia-1039"`, `"scone-tcp"` and `"quick-start"` for TCP, `"scone"` for
        /// QUIC; one or several.
        encodings: EncodingList = "`[]`: off; the other keys are checked all the same",
        /// Rate of the direction to the satellite that it shares out.
        rate: Rate = "that of `[satellite]` less its framing of packets of `mtu`; must be given if there is none",
        /// Rate of the direction to the LAN, which a second flow router shares out, with the same keys.
        return_rate: Rate = "that direction is not managed",
        ..sharing: SharingKeys,
    }

    /// A rule. It matches if all given conditions hold for the packet that opens a connection.
    struct RuleKeys "[[rules]]" {
        /// `"accelerate"` or `"pass"`.
        action: Action,
        /// Source of the opening packet: an address, a prefix, or a list of them.
        from: OneOrList<Prefix> = "anybody",
        /// Destination of the opening packet.
        to: OneOrList<Prefix> = "anybody",
        /// Destination port: a number, a range such as `"8000-8999"`, or a list of them.
        port: OneOrList<PortRange> = "any",
        /// Source port.
        from_port: OneOrList<PortRange> = "any",
        /// DSCP of the opening packet: a number, a name such as `"af41"`, or a list of them.
        dscp: OneOrList<DscpClass> = "any",
        /// Side from which the connection is opened: `"lan"` or `"satellite"`.
        opened_from: Side = "both",
    }

    /// What to do with connections that match no rule, and how the gain is measured.
    struct PolicyKeys "[policy]" {
        /// What to do with connections that match no rule.
        otherwise: Action = "`\"accelerate\"`",
        /// Fraction of the connections that is left unaccelerated at random, as a control group.
        sample: Percent = "`\"0 %\"`",
        /// Stop acceleration when the control group is faster.
        bypass_when_slower: bool = "`false`",
        /// Length of the address prefix that identifies a subscriber in flow records.
        subscriber_prefix: SubscriberKeys = "whole addresses, `/64` for IPv6",
    }

    /// Number of leading bits of the LAN address that identify the subscriber.
    struct SubscriberKeys "subscriber_prefix" {
        /// For IPv4 addresses.
        v4: Whole<1, 32> = "`32`",
        /// For IPv6 addresses.
        v6: Whole<1, 128> = "`64`",
    }

    /// Limits of a gateway. What exceeds them passes without acceleration; nothing is dropped.
    struct LimitKeys "[limits]" {
        /// Maximum number of known connections.
        flows: Whole<16, 16_000_000> = "`1000000`",
        /// Memory for the packets of all connections together.
        memory: Size = "`\"512 MiB\"`",
        /// Memory for the packets of one connection. It bounds the window that its sender is shown.
        per_flow: Size = "what the hop carries in 6 s, at least `\"32 MiB\"` and at most `memory`",
        /// Time after which a connection that is not established is forgotten.
        opening: Duration = "`\"30 s\"`",
        /// Time without packets after which a connection is forgotten. RFC 5382, REQ-5, requires 2 h 4 min,
        /// and keep-alives come every 2 h.
        idle: Duration = "`\"124 min\"`",
        /// Time after the first FIN after which a connection that has not ended is forgotten.
        closing: Duration = "`\"4 min\"`",
    }

    /// How the gateway reports its state.
    struct StatusKeys "[status]" {
        /// Path of the control socket for `bentpipe gateway status`, `flows`, `top` and `reload`.
        socket: Path = "beside the session file in `/run/bentpipe`",
        /// Address and port of the Prometheus metrics endpoint.
        prometheus: SocketAddr = "none",
        /// File to which one line per finished connection is appended.
        records: Path = "none",
        /// Format of `records`: `"csv"` or `"json-lines"`.
        record_format: RecordFormat = "by the file's ending: `.csv`, else JSON lines",
    }
}
