//! Keeps the channels of the hop while accelerated connections wait.
//!
//! Source: TCP-SuperCharger, section 5: over WINDS the channel was released when it had been idle, a new one
//! took seconds, and a stream of datagrams beside the TCP connection cured that. Here, if nothing that a
//! receiver acknowledges has gone into the hop for `keep_alive`, the gateway sends a byte again that has
//! arrived. Its receiver discards it and acknowledges at once (RFC 9293, section 3.10.7.4), so a packet goes
//! in each direction. The byte is the last one of an earlier packet of any accelerated connection: as with
//! all packets of the gateway, a copy of one that it received. The acknowledgment repeats an earlier one. It
//! does not count as a sign of a loss, and is withheld unless nothing of the connection is outstanding.
//!
//! Connections count as waiting for 30 s ([`PATIENCE`]) after data was last sent.

use super::Gateway;
use crate::flow::Flow;
use crate::table::NONE;
use bentpipe_base::{Cx, Duration, Instant, Pkt};

/// Time after the last data in which connections are expected to go on.
const PATIENCE: Duration = Duration::from_secs(30);

/// A byte that was sent.
#[derive(Debug)]
struct SentByte {
    /// Number of its connection, and the position behind it.
    id: u32,
    end: u64,
    packet: Pkt,
}

#[derive(Debug, Default)]
pub(super) struct KeepAlive {
    /// A byte that has arrived, and a later one that may not have.
    arrived: Option<SentByte>,
    later: Option<SentByte>,
    /// When something was last sent that a receiver acknowledges, and when that was data.
    sent: Instant,
    data: Instant,
}

impl KeepAlive {
    /// When a byte is due.
    fn deadline(&self, every: Option<Duration>) -> Option<Instant> {
        let at = self.sent + every.filter(|_| self.arrived.is_some())?;
        (at < self.data + PATIENCE).then_some(at)
    }

    /// Drops the bytes of connection `id`, or all.
    pub(super) fn forget(&mut self, cx: &mut Cx<'_>, id: Option<u32>) {
        for byte in [&mut self.arrived, &mut self.later] {
            if let Some(byte) = byte.take_if(|byte| id.is_none_or(|id| byte.id == id)) {
                cx.recycle(byte.packet);
            }
        }
    }
}

impl Gateway {
    fn flow(&self, id: u32) -> Option<&Flow> {
        Some(self.flows.get(self.table.get(id)?.flow)?)
    }

    /// Notes that connection `id` sent data.
    pub(super) fn data_sent(&mut self, cx: &mut Cx<'_>, id: u32) {
        if self.shared.config.keep_alive.is_none() {
            return;
        }
        (self.keep_alive.sent, self.keep_alive.data) = (cx.now, cx.now);
        if self.keep_alive.later.is_none() {
            let byte = self.flow(id).and_then(|flow| flow.last_byte(cx));
            self.keep_alive.later = byte.map(|(end, packet)| SentByte { id, end, packet });
        }
    }

    /// When the hop needs a keep-alive.
    pub(super) fn keep_alive_at(&self) -> Option<Instant> {
        self.keep_alive.deadline(self.shared.config.keep_alive)
    }

    /// Sends a byte again if it is due.
    pub(super) fn keep_hop(&mut self, cx: &mut Cx<'_>) {
        let later = self.keep_alive.later.as_ref();
        let has_arrived =
            later.is_some_and(|byte| self.flow(byte.id).is_some_and(|flow| flow.has_arrived(byte.end)));
        if has_arrived
            && let Some(byte) = self.keep_alive.later.take()
            && let Some(old) = self.keep_alive.arrived.replace(byte)
        {
            cx.recycle(old.packet);
        }
        if self.keep_alive_at().is_none_or(|at| at > cx.now) {
            return;
        }
        let Some(byte) = self.keep_alive.arrived.take() else { return };
        let flow = self.flows.get_mut(self.table.get(byte.id).map_or(NONE, |e| e.flow));
        let Some(flow) = flow.filter(|flow| flow.can_keep_alive()) else { return cx.recycle(byte.packet) };
        flow.send_again(cx, &byte.packet, &mut self.shared);
        self.shared.counters.keep_alives += 1;
        self.keep_alive.sent = cx.now;
        self.keep_alive.arrived = Some(byte);
    }
}
