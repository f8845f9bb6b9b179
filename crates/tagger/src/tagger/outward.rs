//! Packets of the host.

use super::{NETWORK, Tagger, has, is_untouchable};
use crate::flow::{Flow, Phase, cut_end};
use crate::rules::{Call, asked};
use crate::table::FlowKey;
use bentpipe_advice::negotiation::AskConfig;
use bentpipe_advice::tia1039::{QOS_SIGNAL, Structure};
use bentpipe_base::{Cx, Flags, Packet, Pkt, TcpHeader};

impl Tagger {
    pub(super) fn outward(&mut self, cx: &mut Cx<'_>, mut packet: Pkt) {
        let key = FlowKey::from_host(&packet);
        let signals = has(&packet, Flags::SYN) && packet.dscp == QOS_SIGNAL;
        if is_untouchable(&packet) || signals {
            self.forget(&key);
        } else if has(&packet, Flags::SYN) && has(&packet, Flags::ACK) {
            self.host_syn_ack(cx, key, &mut packet);
        } else if has(&packet, Flags::SYN) {
            self.host_syn(cx, key, &mut packet);
        } else {
            self.host_segment(cx, key, &mut packet);
        }
        cx.send(NETWORK, packet);
    }

    /// What the rules say for a flow that the host, or its peer, opens, if the path to the peer may have
    /// structures.
    pub(super) fn ask(&mut self, cx: &Cx<'_>, key: &FlowKey, is_ours: bool) -> Option<AskConfig> {
        let (host, peer) = (cx.address(key.host.0), cx.address(key.peer.0));
        let ports = if is_ours { [key.host.1, key.peer.1] } else { [key.peer.1, key.host.1] };
        let ask = asked(&self.config.rules, Call { host, peer, ports, is_ours }).filter(|_| self.accepts)?;
        (!self.peers.contains(cx.now, key.peer.0)).then(|| ask.clone())
    }

    fn host_syn(&mut self, cx: &mut Cx<'_>, key: FlowKey, syn: &mut Packet) {
        let known = self
            .table
            .get_mut(&key)
            .filter(|flow| flow.is_ours && flow.phase == Phase::Opening && flow.track.isn == syn.tcp.seq);
        if let Some(flow) = known {
            if let Some(expected) = flow.taken_as_data {
                send_reset(cx, syn, TcpHeader { seq: expected, ..TcpHeader::default() });
                return self.forget(&key);
            }
            return flow.tag_syn(cx.now, syn);
        }
        self.forget(&key);
        let Some(ask) = self.ask(cx, &key, true) else { return };
        if syn.wire_len().0 + Structure::LEN as u64 > self.config.mtu.0 || syn.signal.is_some() {
            return;
        }
        let flow = Flow::new(cx.now, &ask, syn.ip, true);
        if !self.table.insert(key, flow, &self.config) {
            return;
        }
        if let Some(flow) = self.table.get_mut(&key) {
            flow.tag_syn(cx.now, syn);
            self.counts.asked += u64::from(flow.has_asked);
        }
    }

    fn host_syn_ack(&mut self, cx: &Cx<'_>, key: FlowKey, syn: &mut Packet) {
        let Some(flow) = self.table.get_mut(&key) else { return };
        // both ends opened at once, or the host takes a new connection: nothing was agreed
        if flow.is_ours || flow.phase != Phase::Opening || syn.signal.is_some() {
            return self.forget(&key);
        }
        flow.tag_syn(cx.now, syn);
        self.counts.answered += u64::from(flow.syns == 1);
        self.note(key, None);
    }

    fn host_segment(&mut self, cx: &mut Cx<'_>, key: FlowKey, packet: &mut Pkt) {
        let now = cx.now;
        let Some(flow) = self.table.get_mut(&key) else { return };
        if flow.is_ours && flow.phase == Phase::Opening {
            return; // the peer has not answered: it may not signal
        }
        flow.last = now;
        if has(packet, Flags::RST) {
            return self.table.set_phase(key, Phase::Closing, now, &self.config);
        }
        let rest = cut_end(cx, packet).or_else(|| flow.cut_for_place(cx, packet));
        if let Some(before) = flow.tag(cx, packet, self.config.mtu) {
            cx.send(NETWORK, before);
        }
        if let Some(mut rest) = rest {
            if let Some(before) = flow.tag(cx, &mut rest, self.config.mtu) {
                cx.send(NETWORK, before);
            }
            // the caller sends the last packet
            cx.send(NETWORK, core::mem::replace(packet, rest));
        }
        flow.fins.0 |= has(packet, Flags::FIN);
        match (flow.fins, flow.phase) {
            ((true, true), _) => self.table.set_phase(key, Phase::Closing, now, &self.config),
            // it did not believe a RST of the peer
            (_, Phase::Closing) => self.table.set_phase(key, Phase::Open, now, &self.config),
            _ => {}
        }
    }
}

/// Ends what a peer has opened: a copy of the host's SYN becomes a RST.
fn send_reset(cx: &mut Cx<'_>, syn: &Packet, tcp: TcpHeader) {
    let mut reset = cx.duplicate(syn);
    reset.tcp = TcpHeader { flags: Flags::RST, ..tcp };
    reset.seal();
    cx.send(NETWORK, reset);
}
