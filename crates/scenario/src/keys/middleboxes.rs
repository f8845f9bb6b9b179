//! Keys of middleboxes.

use crate::form::{table, words};
use crate::gateway_file::{DscpClass, OneOrList};
use crate::lists::Pairs;
use crate::scalars::Name;
use bentpipe_base::Instant;
use bentpipe_nodes::Unwanted;

table! {
    /// A box at the start of one direction of a link that changes or drops packets into this direction:
    /// a router that rewrites code points, a firewall, or a NAT. It stands before gateway and flow router of
    /// the direction. Packets of the other direction pass through it unchanged, apart from translated ports.
    /// It does at least one of `dscp`, `dscp_map`, `drop` and `nat`.
    struct MiddleboxKeys "[[middleboxes]]" {
        /// Unique name.
        name: Name,
        /// Name of the link direction into which it sends. At most one middlebox per direction.
        link: Name,
        /// DSCP that all packets get; the ECN bits stay.
        dscp: DscpClass = "unchanged",
        /// `[[before, after], ...]`: which DSCP becomes which. Others stay.
        dscp_map: Pairs<DscpClass, DscpClass> = "unchanged",
        /// Packets that it drops, one or a list. `"syn-with-data"`: SYNs with bytes behind the TCP header,
        /// which in IPv4 may be a structure of rate signalling. `"hop-by-hop"`: IPv6 packets with such a
        /// header.
        drop: OneOrList<Unwanted> = "none",
        /// `true`: connections and datagrams of sources behind it get other source ports. Addresses
        /// stay. In simulated time only.
        nat: bool = "`false`",
        /// Time from which on it does all this.
        from: Instant = "`\"0 s\"`",
        /// `false`: the middlebox is checked but left out of the run. Useful with a parameter.
        enabled: bool = "`true`",
    }
}

words!(Unwanted { "syn-with-data" => SynWithData, "hop-by-hop" => HopByHop, });
