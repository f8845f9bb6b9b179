//! What is done for the ends of connections whose agent was killed: both are reset.
//!
//! Only addresses are known, no sequence numbers. So each end gets a SYN, whatever its state: RFC 5961,
//! section 4, and RFC 9293, section 3.10.7.4, have it answer with an acknowledgment that shows its numbers.
//! That, as any other packet of these connections, is answered with the RST that fits (RFC 9293, section
//! 3.5.2), which the end accepts.

use super::{FlowKey, Link, Split};
use bentpipe_base::{Dscp, Ecn, Flags, Instant, Seq, TcpHeader};
use bentpipe_wire::{AddressPair, Segment, emit};
use core::net::{IpAddr, SocketAddr};

impl Split {
    /// Takes over the connections of an agent that was killed: they are reset, and no others are taken.
    pub fn mourn(&mut self, dead: &[(FlowKey, [Link; 2])]) {
        self.stop_accepting();
        for (key, links) in dead {
            self.remember(*key, Instant::NEVER, *links);
        }
    }

    /// Asks all ends of connections that have ended where they are.
    pub fn probe(&mut self) {
        for (key, (_, links)) in &self.graves {
            for (side, link) in links.iter().enumerate() {
                if let Some(syn) = syn(key.end(1 - side), key.end(side)) {
                    self.made.push_back((side, *link, syn));
                }
            }
        }
    }
}

/// A SYN; `None` for addresses of two families.
fn syn(from: SocketAddr, to: SocketAddr) -> Option<Vec<u8>> {
    let ends = match (from.ip(), to.ip()) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => AddressPair::V4 { src, dst },
        (IpAddr::V6(src), IpAddr::V6(dst)) => AddressPair::V6 { src, dst },
        _ => return None,
    };
    let tcp = TcpHeader { flags: Flags::SYN, seq: Seq(0), ..TcpHeader::default() };
    let (sport, dport) = (from.port(), to.port());
    let (dscp, ecn, payload) = (Dscp::DEFAULT, Ecn::NotEct, &[][..]);
    let mut bytes = Vec::new();
    emit(&Segment { ends, sport, dport, hops: 64, dscp, ecn, tcp, payload }, &mut bytes).ok()?;
    Some(bytes)
}
