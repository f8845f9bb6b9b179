//! Every key of a gateway file, once: its type, default and meaning.

use super::scalars::{CopiesForm, DscpClass, Interface, Listen, Many, Percent};
use super::types::{Action, Firewall, Kind, Mode, PortRange, Prefix, RecordFormat, Side};
use crate::form::{At, table, words};
use crate::keys::Customs;
use crate::lists::Path;
use crate::scalars::{Name, Version, Whole};
use bentpipe_base::{Duration, Rate, Size};

/// Most rules of a file.
pub(crate) const MAX_RULES: usize = 1000;

words!(Kind { "routed" => Routed, "inline" => Inline, });
words!(Firewall { "check" => Check, "ignore" => Ignore, });
words!(Action { "accelerate" => Accelerate, "pass" => Pass, });
words!(Side { "lan" => Lan, "satellite" => Satellite, });
words!(RecordFormat { "csv" => Csv, "json-lines" => JsonLines, });

table! {
    /// The tables of a gateway file.
    struct GatewayKeys "the file" {
        required {
            /// Version of this format.
            schema: Version,
            /// The satellite hop.
            satellite: HopKeys,
            /// Where the gateway stands.
            deploy: DeployKeys,
        }
        optional {
            /// Which connections are accelerated: the first rule that matches decides.
            rules: Vec<At<RuleKeys>> = "none",
            /// What becomes of all others, and how the gain is proven.
            policy: PolicyKeys = "as its keys say",
            /// Nodes of kinds that are not built in, behind the gateway in their order.
            nodes: Customs = "none",
            /// How much the gateway may hold.
            limits: LimitKeys = "as its keys say",
            /// How the gateway tells how it is.
            status: StatusKeys = "as its keys say",
        }
    }
}

table! {
    /// The hop that the gateway fills.
    struct HopKeys "[satellite]" {
        optional {
            /// Rate of the hop towards the satellite, as the hop counts: IP bytes and `framing`. With it the
            /// gateway paces everything that goes there, and no queue grows on the hop. Without it nothing is
            /// paced, and windows follow what is measured.
            rate: Rate = "none",
            /// Bytes that the hop counts for each packet beside IP, such as 14 B of Ethernet.
            framing: Size = "`\"0 B\"`",
            /// Round-trip time of the hop, until it has been measured: windows and timeouts begin with it.
            rtt: Duration = "measured; `\"1 s\"` until then",
            /// `"open"` finds out how fast the receiver can read; `"strict"` keeps to the printed equations
            /// of TCP-SuperCharger.
            mode: Mode = "`\"open\"`",
            /// Share of `rate` that is used: below all of it, so that the queue is here and not on the hop.
            share: Percent = "`\"99.5 %\"`",
            /// How often each packet is sent: `"auto"` decides by the loss that is measured.
            copies: CopiesForm = "`\"auto\"`",
        }
    }
}

table! {
    /// Where the gateway stands, and the names of what it makes. `mark`, `table`, `priority`, `nft_table`,
    /// `firewall`, `watch` and the names of the TUN interfaces are for `"routed"` alone.
    struct DeployKeys "[deploy]" {
        required {
            /// `"routed"`: this machine is a router, and packets take a way through the gateway. `"inline"`:
            /// the gateway is the wire between two interfaces.
            kind: Kind,
            /// The interface of the hosts that send, or several when routed.
            lan: Many<Interface>,
            /// The interface that leads to the satellite.
            satellite: Interface,
        }
        optional {
            /// Name of this gateway: of its session, its socket and its metrics.
            name: Name = "`\"gateway\"`",
            /// TUN interface for packets from and to the LAN.
            tun_lan: Interface = "`\"bentlan\"`",
            /// TUN interface for packets from and to the satellite.
            tun_satellite: Interface = "`\"bentsat\"`",
            /// Table of nftables rules, of family `inet`.
            nft_table: Name = "`\"bentpipe_gateway\"`",
            /// Packets from the LAN get this firewall mark, those from the satellite the next.
            mark: Whole<1, 0xffff_fffe> = "`0x6270`",
            /// Number of the routing table for packets from the LAN; those from the satellite use the next.
            table: Whole<1, 0xffff_fffe> = "`6270`",
            /// Preference of the two routing rules.
            priority: Whole<1, 32_765> = "`6270`",
            /// `"check"`: it does not start where a firewall on this machine would drop over the TUN
            /// interfaces what it lets pass today. `"ignore"`: it says so and starts.
            firewall: Firewall = "`\"check\"`",
            /// How long after its start it watches whether the traffic of this machine goes on. When it does
            /// not, everything is taken back. Before the start it looks for up to 2 s at who answers.
            /// `"0 s"`: it does neither.
            watch: Duration = "`\"60 s\"`",
        }
    }
}

table! {
    /// A rule. Every condition that is given must hold. It is asked once, for the packet that opens a
    /// connection.
    struct RuleKeys "[[rules]]" {
        required {
            /// `"accelerate"` or `"pass"`.
            action: Action,
        }
        optional {
            /// Who opens the connection: an address, a prefix, or a list of them.
            from: Many<Prefix> = "anybody",
            /// To whom.
            to: Many<Prefix> = "anybody",
            /// Port that is opened: a number, a range such as `"8000-8999"`, or a list of them.
            port: Many<PortRange> = "any",
            /// Port of who opens.
            from_port: Many<PortRange> = "any",
            /// DSCP of the opening packet: a number, a name such as `"af41"`, or a list of them.
            dscp: Many<DscpClass> = "any",
            /// From which side it is opened: `"lan"` or `"satellite"`.
            opened_from: Side = "both",
        }
    }
}

table! {
    /// What becomes of connections that no rule names, and the proof of gain.
    struct PolicyKeys "[policy]" {
        optional {
            /// What becomes of a connection that no rule matches.
            otherwise: Action = "`\"accelerate\"`",
            /// Share of the connections to be accelerated that are left alone, at random, to compare with.
            sample: Percent = "`\"0 %\"`",
            /// Stop accelerating when the sample shows that it is slower.
            bypass_when_slower: bool = "`false`",
            /// How long the address prefix of one subscriber is, for flow records.
            subscriber_prefix: SubscriberKeys = "whole addresses, `/64` for IPv6",
        }
    }
}

table! {
    /// The address on the LAN, cut to so many bits, is the subscriber.
    struct SubscriberKeys "subscriber_prefix" {
        optional {
            /// Of IPv4 addresses.
            v4: Whole<1, 32> = "`32`",
            /// Of IPv6 addresses.
            v6: Whole<1, 128> = "`64`",
        }
    }
}

table! {
    /// How much the gateway may hold. What is beyond passes unaccelerated; nothing is dropped for it.
    struct LimitKeys "[limits]" {
        optional {
            /// Connections that are known at a time.
            flows: Whole<16, 16_000_000> = "`1000000`",
            /// Bytes held for all connections together.
            memory: Size = "`\"512 MiB\"`",
            /// Bytes held for one connection.
            per_flow: Size = "`\"32 MiB\"`",
            /// A connection that does not open within this time is forgotten.
            opening: Duration = "`\"30 s\"`",
            /// So is one that is silent for so long: RFC 5382, REQ-5, asks for 2 h 4 min, and keep-alives
            /// come every 2 h.
            idle: Duration = "`\"124 min\"`",
            /// And one that does not end within this time after its first FIN.
            closing: Duration = "`\"4 min\"`",
        }
    }
}

table! {
    /// How the gateway tells how it is.
    struct StatusKeys "[status]" {
        optional {
            /// Socket for `bentpipe gateway status`, `flows`, `top` and `reload`.
            socket: Path = "beside the session file in `/run/bentpipe`",
            /// Address and port on which Prometheus finds metrics.
            prometheus: Listen = "none",
            /// File to which a line is added for each connection that ends.
            records: Path = "none",
            /// `"csv"` or `"json-lines"`.
            record_format: RecordFormat = "by the file's ending: `.csv`, else JSON lines",
        }
    }
}
