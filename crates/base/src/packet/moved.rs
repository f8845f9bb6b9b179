//! Exact fast-forward: a packet under way belongs to a connection, whose positions it carries.

use super::{Body, Packet, Proto, TcpHeader};
use crate::shift::{Shift, Walk};

impl Shift for Packet {
    fn shift(&mut self, walk: &mut Walk<'_>) {
        let Self { src, dst, sport, dport, proto, ip: _, header_len, hops, dscp, .. } = self;
        walk.expect(*proto == Proto::Tcp, "a datagram");
        let ahead = walk.stream((*src, *sport, *dst, *dport));
        let back = walk.stream((*dst, *dport, *src, *sport));
        walk.same(&[u64::from(src.0) << 32 | u64::from(dst.0), u64::from(*sport) << 32 | u64::from(*dport)]);
        walk.same(&(*header_len, *hops, *dscp));
        let Self { ecn, priority, segment, other_options, tcp, body: Body { off, len }, signal, .. } = self;
        walk.same(&(*ecn as u8, *priority, *segment));
        walk.expect(signal.is_none() && other_options.len == 0, "a packet that signals");
        let TcpHeader {
            seq,
            ack,
            window,
            flags,
            mss,
            window_scale,
            sack_permitted,
            timestamps,
            sack,
            probe,
            phases,
        } = tcp;
        walk.wire_position(ahead, &mut seq.0);
        walk.wire_position(back, &mut ack.0);
        walk.position(ahead, off);
        walk.same(&(*len, *window, flags.0));
        walk.same(&(*mss, *window_scale, *sack_permitted));
        walk.expect(sack.is_empty() && *probe == super::ProbeOption::None, "an acknowledgment of a loss");
        walk.same(&timestamps.is_some());
        if let Some(stamps) = timestamps {
            walk.stamp(&mut stamps.value, &mut phases.value);
            walk.stamp(&mut stamps.echo, &mut phases.echo);
        }
    }
}
