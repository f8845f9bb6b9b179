//! Records what ends and routers say about the rate of a flow: the packets with signalling, hop by hop.

use bentpipe_advice::tia1039::{Kind, QOS_SIGNAL, Structure, structures};
use bentpipe_base::trace::Event;
use bentpipe_base::{Dscp, Flags, Instant, NodeId, Packet, Rate, Seq};

/// Maximum number of packets recorded of a flow.
const MAX_PACKETS: usize = 2000;

/// The signalling of one flow.
#[derive(Clone, Debug, Default)]
pub struct Exchange {
    /// Index of the flow.
    pub flow: usize,
    /// Names of the hosts and routers in the order in which packets meet them, the sender first.
    pub stations: Vec<String>,
    /// Packets in the order in which they were sent or got their structure. SYNs and the first data are among
    /// them even without one.
    pub packets: Vec<ExchangePacket>,
    /// Number of packets omitted at the end because there were too many.
    pub omitted: u64,
}

/// One packet on its way.
#[derive(Clone, Debug)]
pub struct ExchangePacket {
    /// True from the sender of the data to its receiver.
    pub forward: bool,
    /// TCP flags.
    pub flags: Flags,
    /// True if it carries data.
    pub has_data: bool,
    /// The hops, the first one where it was sent, or where a router wrote into it.
    pub hops: Vec<ExchangeHop>,
    seq: Seq,
    ack: Seq,
}

/// A packet on one link.
#[derive(Clone, Debug)]
pub struct ExchangeHop {
    /// Index of the station that sent it.
    pub from: usize,
    /// Index of the station to which the link leads.
    pub to: usize,
    /// When it entered the link, in seconds.
    pub sent_s: f64,
    /// When it arrived; `None` if it was lost, or still under way at the end.
    pub arrived_s: Option<f64>,
    /// Its code point on this link.
    pub dscp: Dscp,
    /// What its structures say.
    pub structures: Vec<(Kind, Option<Rate>)>,
}

/// A link as the recorder knows it.
#[derive(Clone, Debug)]
pub(crate) struct Hop {
    pub(crate) link: NodeId,
    pub(crate) from: String,
    pub(crate) to: String,
}

/// Records one flow.
#[derive(Debug)]
pub(crate) struct ExchangeRecorder {
    exchange: Exchange,
    /// Address and port of sender and receiver.
    ends: [(u32, u16); 2],
    hops: Vec<Hop>,
}

impl ExchangeRecorder {
    pub(crate) fn new(flow: usize, ends: [(u32, u16); 2], hops: Vec<Hop>) -> Self {
        Self { exchange: Exchange { flow, ..Exchange::default() }, ends, hops }
    }

    pub(crate) fn finish(self) -> Exchange {
        self.exchange
    }

    pub(crate) fn event(&mut self, now: Instant, node: NodeId, event: &Event<'_>) {
        let (Event::Sent(packet) | Event::Delivered(packet)) = event else { return };
        let ends = [(packet.src.0, packet.sport), (packet.dst.0, packet.dport)];
        let forward = ends == self.ends;
        if !forward && ends != [self.ends[1], self.ends[0]] || !is_shown(packet) {
            return;
        }
        let Some(hop) = self.hops.iter().find(|hop| hop.link == node).cloned() else { return };
        let (from, to) = (self.station(&hop.from), self.station(&hop.to));
        match event {
            Event::Sent(_) => self.sent(now, packet, forward, (from, to)),
            _ => self.arrived(now, packet, forward, (from, to)),
        }
    }

    fn station(&mut self, name: &str) -> usize {
        let known = self.exchange.stations.iter().position(|station| station == name);
        known.unwrap_or_else(|| {
            self.exchange.stations.push(name.to_owned());
            self.exchange.stations.len() - 1
        })
    }

    fn sent(&mut self, now: Instant, packet: &Packet, forward: bool, (from, to): (usize, usize)) {
        let hop = ExchangeHop {
            from,
            to,
            sent_s: now.as_secs_f64(),
            arrived_s: None,
            dscp: packet.dscp,
            structures: said(packet),
        };
        let goes_on = |p: &&mut ExchangePacket| {
            p.is(packet, forward) && p.hops.last().is_some_and(|h| h.to == from && h.arrived_s.is_some())
        };
        if let Some(known) = self.exchange.packets.iter_mut().rev().find(goes_on) {
            return known.hops.push(hop);
        }
        if self.exchange.packets.len() >= MAX_PACKETS {
            self.exchange.omitted += 1;
            return;
        }
        self.exchange.packets.push(ExchangePacket {
            forward,
            flags: packet.tcp.flags,
            has_data: packet.body.len > 0,
            hops: vec![hop],
            seq: packet.tcp.seq,
            ack: packet.tcp.ack,
        });
    }

    fn arrived(&mut self, now: Instant, packet: &Packet, forward: bool, (from, to): (usize, usize)) {
        let waits = |h: &ExchangeHop| h.from == from && h.to == to && h.arrived_s.is_none();
        let packets = self.exchange.packets.iter_mut().rev().filter(|p| p.is(packet, forward));
        let hop = packets.filter_map(|p| p.hops.last_mut()).find(|h| waits(h));
        if let Some(hop) = hop {
            hop.arrived_s = Some(now.as_secs_f64());
        }
    }
}

impl ExchangePacket {
    fn is(&self, packet: &Packet, forward: bool) -> bool {
        let tcp = &packet.tcp;
        self.forward == forward && (self.flags, self.seq, self.ack) == (tcp.flags, tcp.seq, tcp.ack)
    }
}

/// True for a packet whose structures say something, for a SYN and for the first data.
fn is_shown(packet: &Packet) -> bool {
    let opens = packet.tcp.flags.has(Flags::SYN) || packet.body.len > 0 && packet.body.off == 0;
    opens || !said(packet).is_empty()
}

/// Kinds and rates in a packet; a structure that says nothing is not among them.
fn said(packet: &Packet) -> Vec<(Kind, Option<Rate>)> {
    if packet.dscp != QOS_SIGNAL {
        return Vec::new();
    }
    let kind = |s: &Structure| s.kind().filter(|kind| *kind != Kind::Forward);
    structures(packet).as_slice().iter().filter_map(|s| Some((kind(s)?, s.available()))).collect()
}

impl Exchange {
    /// The packets that open the connection, and those that change the rate: of all requests only those whose
    /// answer differs from the rate before.
    pub fn changes(&self) -> Vec<&ExchangePacket> {
        let (mut shown, mut before) = (Vec::new(), None);
        for (i, packet) in self.packets.iter().enumerate() {
            let said = packet.hops.last().map_or(&[][..], |hop| &hop.structures);
            let answer = said.iter().find(|(kind, _)| *kind == Kind::Response);
            if packet.flags.has(Flags::SYN) || said.is_empty() {
                before = answer.map_or(before, |(_, rate)| *rate);
                shown.push(i);
            } else if let Some((_, rate)) = answer {
                if *rate != before {
                    shown.extend(self.question_before(i));
                    shown.push(i);
                }
                before = *rate;
            }
        }
        shown.sort_unstable();
        shown.dedup();
        shown.into_iter().filter_map(|i| self.packets.get(i)).collect()
    }

    /// The request that an answer returns: the last one that had arrived when it was sent.
    fn question_before(&self, answer: usize) -> Option<usize> {
        let answer = self.packets.get(answer)?;
        let sent = answer.hops.first()?.sent_s;
        let arrived = |p: &ExchangePacket| p.hops.last()?.arrived_s.filter(|arrived| *arrived <= sent);
        let asks = |p: &&ExchangePacket| {
            p.forward != answer.forward && !p.hops.last().is_none_or(|h| h.structures.is_empty())
        };
        let asked = self.packets.iter().enumerate().filter(|(_, p)| asks(p));
        let arrivals = asked.filter_map(|(i, p)| Some((i, arrived(p)?)));
        arrivals.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(i, _)| i)
    }
}
