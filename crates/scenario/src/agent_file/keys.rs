//! All keys of an agent file, each with type, default and meaning.

use super::types::{Method, Place, Transport, Treatment};
use crate::form::{At, OrTable, table, words};
use crate::gateway_file::{Firewall, PortRange, Prefix, Side};
use crate::gateway_file::{Interface, OneOrList};
use crate::keys::{AskKeys, SchemeKeys, WindowKeys};
use crate::lists::Path;
use crate::scalars::{Name, SizeOrSegments, Version, Whole};
use bentpipe_base::{Duration, Probability, Rate, Size};
use bentpipe_tcp::{Encoding, Scheme};

words!(Method { "split" => Split, "kernel" => Kernel, });
words!(Place { "inline" => Inline, "routed" => Routed, "host" => Host, });
words!(Transport { "tcp" => Tcp, "udp" => Udp, });
words!(Treatment { "signal" => Signal, "pass" => Pass, });
words!(OpenedFrom { "host" => Host, "network" => Network, });

/// The side of the host that opens a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenedFrom {
    Host,
    Network,
}

impl OpenedFrom {
    pub(crate) const fn side(self) -> Side {
        match self {
            Self::Host => Side::Lan,
            Self::Network => Side::Satellite,
        }
    }
}

table! {
    /// Keys and tables of an agent file.
    struct AgentKeys "the file" {
        /// Version of the file format.
        schema: Version,
        /// How the agent acts for the host. `"split"`: it ends the host's connection and goes on with a TCP
        /// of its own, which signals. `"kernel"`: it signals in the packets of the host's own TCP, which then
        /// sends at the granted rate; for the kind `"host"` only.
        method: Method = "`\"split\"`",
        /// Where the agent stands.
        deploy: AgentDeployKeys,
        /// Which connections the agent takes, and what it asks for them. The first matching rule applies.
        /// Connections that match no rule pass unread.
        rules: Vec<At<AgentRuleKeys>>,
        /// Limits of memory and connections.
        limits: AgentLimitKeys = "as its keys say",
        /// How the agent reports its state.
        status: AgentStatusKeys = "as its keys say",
    }

    /// Where the agent stands, and the names of the system objects it creates. `mark`, `table`, `priority`,
    /// `nft_table`, `firewall`, `inner_host` and `inner_network` do not apply to `"inline"`.
    struct AgentDeployKeys "[deploy]" {
        /// `"inline"`: between two interfaces, like a wire. `"routed"`: on a router, which routes packets
        /// through it. `"host"`: on the host itself.
        kind: Place,
        /// Interface towards the host. `"routed"` allows several, `"host"` has none.
        host: OneOrList<Interface> = "required, but for `\"host\"`",
        /// Interface towards the network.
        network: Interface,
        /// Name of this agent, used for its session and socket.
        name: Name = "`\"agent\"`",
        /// Interface that the agent creates towards the host: a TUN interface, or for `"host"` the end of a
        /// veth pair that the host's own TCP uses.
        inner_host: Interface = "`\"bentahost\"`",
        /// Interface that the agent creates towards the network: a TUN interface, or for `"host"` the other
        /// end of the veth pair.
        inner_network: Interface = "`\"bentanet\"`",
        /// Name of the nftables table, of family `inet`.
        nft_table: Name = "`\"bentpipe_agent\"`",
        /// Firewall mark of packets from the host. Packets from the network get the next number.
        mark: Whole<1, 0xffff_fffe> = "`0x6280`",
        /// Number of the routing table for packets from the host. Those from the network use the next.
        table: Whole<1, 0xffff_fffe> = "`6280`",
        /// Priority of the routing rules.
        priority: Whole<1, 32_765> = "`6280`",
        /// What to do if a firewall on this machine would drop packets on the interfaces that the agent
        /// creates. `"check"`: refuse to start. `"ignore"`: print a warning and start.
        firewall: Firewall = "`\"check\"`",
        /// How long the agent waits, when it is stopped, for its connections to end. Those that are left are
        /// reset; with the method `"kernel"` they go on without rates.
        drain: Duration = "`\"10 s\"`",
    }

    /// A rule. It matches if all given conditions hold for the packet that opens a connection.
    struct AgentRuleKeys "[[rules]]" {
        /// `"signal"`: the agent takes the connection. `"pass"`: it passes unread.
        action: Treatment = "`\"signal\"`",
        /// Protocol to which it applies. A rule for `"udp"` names `to` and `port`, the end that receives the
        /// datagrams, unless its action is `"pass"`. Not with the kind `"routed"`.
        protocol: Transport = "`\"tcp\"`",
        /// Source of the opening packet: an address, a prefix, or a list of them.
        from: OneOrList<Prefix> = "anybody",
        /// Destination of the opening packet.
        to: OneOrList<Prefix> = "anybody",
        /// Destination port: a number, a range such as `"8000-8999"`, or a list of them.
        port: OneOrList<PortRange> = "any",
        /// Source port.
        from_port: OneOrList<PortRange> = "any",
        /// Side from which the connection is opened: `"host"` or `"network"`.
        opened_from: OpenedFrom = "both",
        /// Signalling towards the network. `"off"`: the agent only ends the connection and goes on with
        /// `tcp`. With the method `"kernel"` and for datagrams only `"tia-1039"`; `"quick-start"` not with
        /// the kind `"routed"`.
        encoding: Option<Encoding> = "`\"tia-1039\"`",
        /// Rate for which the agent asks in the direction to the network, headers included, at least
        /// 1 kbit/s. `"none"`: it only answers. A table asks for a rate that is reserved, or with priorities;
        /// for datagrams it must be one that is reserved.
        ask: OrTable<Option<Rate>, AskKeys> = "`\"10 Gbit/s\"`, for datagrams `\"none\"`",
        /// The most that the agent takes in the direction to the host, at least 1 kbit/s. It lowers the rates
        /// that it returns to this.
        take: Option<Rate> = "`\"none\"`",
        /// Believe an answer that no router has lowered. Else it counts as a path without signalling. For
        /// `"tia-1039"`.
        trust_path: bool = "`false`",
        /// Loss rate above which the agent no longer trusts the rate of the network. For `"tia-1039"`.
        ask_fallback: Probability = "`0.1`",
        /// Scheme towards the network until a rate is granted, and where none is: its name, or a table with
        /// its parameters. Not for the method `"kernel"`, with which it is the host's.
        tcp: OrTable<Scheme, SchemeKeys> = "`\"cubic\"`",
        /// Receive window of the agent towards the network: a size, or a table for a window that grows, at a
        /// known rate to three round trips of it at once. The send buffer grows to the same maximum. With the
        /// method `"kernel"` it is what sockets of the host can have: lower limits are raised for all of
        /// them, to the largest window of all rules.
        window: OrTable<SizeOrSegments, WindowKeys> = "`{ initial = \"4 MiB\", max = \"64 MiB\" }`, \
            with the method `\"kernel\"` `\"8 MiB\"`",
    }

    /// Limits of an agent. Connections beyond them pass unread; nothing is dropped.
    struct AgentLimitKeys "[limits]" {
        /// Maximum number of connections that the agent takes at a time.
        flows: Whole<16, 1_000_000> = "`10000`",
        /// Memory for the buffers of all connections together. 64 KiB of it are kept for each of `flows`; the
        /// rest is for those that can use more. Not for the method `"kernel"`.
        memory: Size = "`\"1 GiB\"`",
        /// Time without packets after which the agent asks whether a peer is still there (keep-alive). Not
        /// for the method `"kernel"`.
        idle: Duration = "`\"120 min\"`",
        /// The longest time for which a datagram is held: until the first answer of the network, 10 s at
        /// most, and if a flow sends above its granted rate. After that time without an answer the flow goes
        /// on without a rate; what would wait longer at a granted rate is dropped.
        datagram_wait: Duration = "`\"1 s\"`",
        /// Time without datagrams, 1 s to 1 h and longer than `datagram_wait`, after which a flow gives its
        /// rate back.
        datagram_idle: Duration = "`\"10 s\"`",
    }

    /// How the agent reports its state.
    struct AgentStatusKeys "[status]" {
        /// Path of the control socket for `bentpipe agent status`.
        socket: Path = "beside the session file in `/run/bentpipe`",
    }
}
