//! Nodes that change packets as a gateway may; connections of real stacks break if one bit is wrong.

use bentpipe_base::{Cx, Duration, Flags, Input, Instant, Node, Packet, Pkt, Port, Proto, SackList, Slot};
use bentpipe_gateway::{LAN, SATELLITE};
use std::collections::VecDeque;

/// Shifts sequence numbers of one side, changes scales, cuts, copies, holds, duplicates and drops packets.
#[derive(Debug, Default)]
pub(crate) struct Meddler {
    held: VecDeque<(Instant, Port, Pkt)>,
    count: u64,
    passes: bool,
    /// Number of packets cut, copied, held, lost.
    pub(crate) did: [u64; 4],
}

/// Shift of the sequence numbers and timestamps of hosts on the LAN.
pub(crate) const SHIFT: u32 = 0xfff0_1234;
const HOLD: Duration = Duration::from_millis(2);

const fn across(port: Port) -> Port {
    if port.0 == LAN.0 { SATELLITE } else { LAN }
}

fn shift(packet: &mut Packet, from: Port) {
    let tcp = &mut packet.tcp;
    if let Some(scale) = &mut tcp.window_scale {
        *scale += 1;
    }
    if !tcp.flags.has(Flags::SYN) {
        tcp.window >>= 1;
    }
    if from == LAN {
        tcp.seq.0 = tcp.seq.0.wrapping_add(SHIFT);
        if let Some(stamps) = &mut tcp.timestamps {
            stamps.value = stamps.value.wrapping_add(SHIFT);
        }
        return;
    }
    if !tcp.flags.has(Flags::ACK) {
        return;
    }
    tcp.ack.0 = tcp.ack.0.wrapping_sub(SHIFT);
    if let Some(stamps) = &mut tcp.timestamps {
        stamps.echo = stamps.echo.wrapping_sub(SHIFT);
    }
    let mut sack = SackList::default();
    for (left, right) in tcp.sack.as_slice() {
        let back = |seq: &bentpipe_base::Seq| bentpipe_base::Seq(seq.0.wrapping_sub(SHIFT));
        sack.push(back(left), back(right));
    }
    tcp.sack = sack;
}

impl Meddler {
    fn tcp(&mut self, cx: &mut Cx<'_>, from: Port, mut packet: Pkt) {
        shift(&mut packet, from);
        let to = across(from);
        self.count += 1;
        if self.passes || packet.tcp.flags.has(Flags::SYN) {
            return cx.send(to, packet);
        }
        let of = |n: u64| self.count.is_multiple_of(n);
        if of(3) && packet.body.len > 8 {
            // in two: FIN and PSH must not stay on the first
            let mut first = cx.duplicate(&packet);
            first.body.len /= 2;
            let cut = first.body.len;
            packet.body.off += u64::from(cut);
            packet.body.len -= cut;
            packet.tcp.seq = packet.tcp.seq.at(u64::from(cut));
            cx.send(to, first);
            cx.send(to, packet);
            self.did[0] += 1;
        } else if of(17) {
            let copy = cx.duplicate(&packet);
            let cached = cx.duplicate(&packet);
            cx.send(to, copy);
            cx.recycle(cached);
            cx.send(to, packet);
            self.did[1] += 1;
        } else if of(29) {
            let at = cx.now + HOLD;
            self.held.push_back((at, to, packet));
            cx.wake(Slot(0), at);
            self.did[2] += 1;
        } else if of(401) {
            cx.recycle(packet);
            self.did[3] += 1;
        } else {
            cx.send(to, packet);
        }
    }
}

impl Node for Meddler {
    fn handle(&mut self, cx: &mut Cx<'_>, input: Input) {
        match input {
            Input::Packet(from, packet) if packet.proto == Proto::Tcp => self.tcp(cx, from, packet),
            Input::Packet(from, packet) => cx.send(across(from), packet),
            Input::Timer(_) => {
                while self.held.front().is_some_and(|(at, ..)| *at <= cx.now) {
                    if let Some((_, to, packet)) = self.held.pop_front() {
                        cx.send(to, packet);
                    }
                }
            }
        }
    }

    fn release(&mut self, cx: &mut Cx<'_>) {
        self.passes = true;
        for (_, to, packet) in self.held.drain(..) {
            cx.send(to, packet);
        }
    }
}

/// Holds all packets to the satellite until it is released; then sends one per millisecond.
#[derive(Debug, Default)]
pub(crate) struct Holder {
    held: VecDeque<Pkt>,
}

impl Node for Holder {
    fn handle(&mut self, cx: &mut Cx<'_>, input: Input) {
        match input {
            Input::Packet(LAN, packet) => self.held.push_back(packet),
            Input::Packet(_, packet) => cx.send(LAN, packet),
            Input::Timer(_) => self.release(cx),
        }
    }

    fn release(&mut self, cx: &mut Cx<'_>) {
        if let Some(packet) = self.held.pop_front() {
            cx.send(SATELLITE, packet);
            cx.wake(Slot(0), cx.now + Duration::from_millis(1));
        }
    }
}
