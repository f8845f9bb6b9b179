//! Packets for the host.

use super::{HOST, Tagger, has, is_untouchable};
use crate::flow::{Flow, Phase, clean, leave_room};
use crate::rules::covers;
use crate::table::FlowKey;
use bentpipe_advice::tia1039::{QOS_SIGNAL, Structure};
use bentpipe_base::{Cx, Dscp, Flags, Packet, Pkt, Signal, TcpHeader};

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Delivered,
    Dropped,
}

impl Tagger {
    pub(super) fn inward(&mut self, cx: &mut Cx<'_>, mut packet: Pkt) {
        let key = FlowKey::from_peer(&packet);
        let fate = match (has(&packet, Flags::SYN), has(&packet, Flags::ACK)) {
            _ if is_untouchable(&packet) => Fate::Delivered,
            (true, false) => self.peer_syn(cx, key, &mut packet),
            (true, true) => self.peer_syn_ack(cx, key, &mut packet),
            (false, _) => self.peer_segment(cx, key, &mut packet),
        };
        match fate {
            Fate::Delivered => cx.send(HOST, packet),
            Fate::Dropped => cx.recycle(packet),
        }
    }

    fn clean(&mut self, packet: &mut Packet) -> Fate {
        self.counts.removed += u64::from(clean(packet));
        Fate::Delivered
    }

    /// A packet of a flow that is not known, perhaps since the agent was started again: the host must not
    /// take a structure for data, and the peer may still signal.
    fn clean_unknown(&mut self, cx: &Cx<'_>, key: &FlowKey, packet: &mut Packet) -> Fate {
        if packet.dscp == QOS_SIGNAL
            && covers(&self.config.rules, cx.address(key.host.0), cx.address(key.peer.0))
        {
            return self.clean(packet);
        }
        Fate::Delivered
    }

    fn peer_syn(&mut self, cx: &Cx<'_>, key: FlowKey, syn: &mut Packet) -> Fate {
        let now = cx.now;
        if let Some(flow) = self.table.get(&key) {
            let again = flow.phase == Phase::Opening && flow.track.peer_isn == syn.tcp.seq;
            match (flow.phase, flow.is_ours) {
                (Phase::Opening, false) if again => {
                    leave_room(syn);
                    return self.clean(syn);
                }
                // the host decides if it is forged; only if it sends a SYN/ACK the flow is over
                (Phase::Open, _) => return self.clean(syn),
                (Phase::Opening | Phase::Closing, _) => self.forget(&key),
            }
        }
        let ask = if syn.dscp == QOS_SIGNAL { self.ask(cx, &key, false) } else { None };
        let Some(ask) = ask else { return self.clean_unknown(cx, &key, syn) };
        let mut flow = Flow::new(now, &ask, syn.ip, false);
        let answer = flow.hear_syn(now, syn);
        if self.table.insert(key, flow, &self.config) {
            self.note(key, answer);
            leave_room(syn);
        }
        self.clean(syn)
    }

    fn peer_syn_ack(&mut self, cx: &Cx<'_>, key: FlowKey, syn: &mut Packet) -> Fate {
        let Some(flow) = self.table.get_mut(&key) else { return self.clean_unknown(cx, &key, syn) };
        if !flow.is_ours || flow.phase != Phase::Opening {
            return self.clean(syn);
        }
        let acked = syn.tcp.ack.0.wrapping_sub(flow.track.isn.at(1).0);
        let signals = syn.dscp == QOS_SIGNAL;
        let is_bleached = acked == 0 && !signals && (syn.body.len > 0 || syn.signal.is_some());
        if flow.has_asked && (is_bleached || (1..=Signal::MAX as u32).contains(&acked)) {
            // the second case: it signals, and the path hides where its structures are
            flow.taken_as_data = Some(syn.tcp.ack);
            self.counts.taken_as_data += 1;
            self.peers.add(cx.now, key.peer.0);
            return Fate::Dropped;
        }
        if acked != 0 {
            return Fate::Delivered; // the host refuses it
        }
        let answer = flow.hear_syn(cx.now, syn);
        flow.last = cx.now;
        if !signals {
            self.note(key, answer);
            self.forget(&key);
            return Fate::Delivered;
        }
        flow.track.peer_packet(cx.now, syn.tcp.ack);
        self.table.set_phase(key, Phase::Open, cx.now, &self.config);
        self.note(key, answer);
        leave_room(syn);
        self.clean(syn)
    }

    fn peer_segment(&mut self, cx: &mut Cx<'_>, key: FlowKey, packet: &mut Packet) -> Fate {
        let now = cx.now;
        let Some(flow) = self.table.get_mut(&key) else { return self.clean_unknown(cx, &key, packet) };
        if has(packet, Flags::RST) {
            return self.peer_reset(cx, key, packet);
        }
        if flow.is_ours && flow.phase == Phase::Opening {
            return Fate::Delivered;
        }
        if Flow::may_hide_structure(packet) {
            self.counts.withheld += 1;
            if flow.phase != Phase::Closing && flow.is_stuck(packet) {
                let (seq, ack, flags) = (flow.track.expected(), packet.tcp.ack, Flags::RST.with(Flags::ACK));
                let mut reset = cx.duplicate(packet);
                (reset.tcp, reset.body.len) = (TcpHeader { seq, ack, flags, ..TcpHeader::default() }, 0);
                (reset.signal, reset.dscp) = (None, Dscp::DEFAULT);
                reset.seal();
                self.counts.stuck += 1;
                self.table.set_phase(key, Phase::Closing, now, &self.config);
                cx.send(HOST, reset);
            }
            return Fate::Dropped;
        }
        let is_acceptable = flow.track.is_acceptable(packet);
        let answer = flow.hear(now, packet);
        if is_acceptable {
            flow.last = now;
            flow.fins.1 |= has(packet, Flags::FIN);
            let is_over = flow.fins == (true, true);
            if is_over || flow.phase == Phase::Opening {
                let phase = if is_over { Phase::Closing } else { Phase::Open };
                self.table.set_phase(key, phase, now, &self.config);
            }
        }
        self.note(key, answer);
        self.clean(packet)
    }

    /// A peer without a listener acknowledges the structure of the SYN with the SYN (RFC 9293, section
    /// 3.10.7.1). The host knows of no such byte, and would wait in vain.
    fn peer_reset(&mut self, cx: &Cx<'_>, key: FlowKey, reset: &mut Packet) -> Fate {
        let Some(flow) = self.table.get_mut(&key) else { return Fate::Delivered };
        if flow.is_ours && flow.phase == Phase::Opening {
            let expected = flow.track.isn.at(1);
            if flow.has_asked && reset.tcp.ack == expected.at(Structure::LEN as u64) {
                reset.tcp.ack = expected;
            }
        } else if flow.track.is_in_window(reset) {
            self.table.set_phase(key, Phase::Closing, cx.now, &self.config);
        }
        self.clean(reset)
    }
}
