//! What happens at one end, and what the other end gets of it.

use super::flow::{Flow, Phase};
use super::{FlowKey, GRAVE, MOST_GRAVES, SWEEP, Split};
use bentpipe_base::{Cx, Duration, Instant};
use bentpipe_live::endpoint::{ConnId, Ending, EndpointError, SocketEvent};

/// How long an end gets what came before the other was reset, before it is reset too.
const LAST_WORDS: Duration = Duration::from_secs(1);

impl Split {
    /// Carries what has happened from end to end.
    pub fn serve(&mut self, cx: &mut Cx<'_>) {
        loop {
            let mut is_idle = true;
            for side in 0..2 {
                while let Some((id, event)) = self.ends[side].next_event() {
                    is_idle = false;
                    if let Some(key) = self.by_conn[side].get(&id).copied() {
                        self.event(cx, side, key, event);
                    }
                }
            }
            if is_idle {
                return;
            }
        }
    }

    fn event(&mut self, cx: &mut Cx<'_>, side: usize, key: FlowKey, event: SocketEvent) {
        match event {
            SocketEvent::Connected => self.connected(cx, side, key),
            SocketEvent::Readable | SocketEvent::PeerClosed => self.carry(cx.now, key, side),
            SocketEvent::Writable => self.carry(cx.now, key, 1 - side),
            SocketEvent::Delivered => {
                if let Some(flow) = self.flows.get_mut(&key) {
                    flow.delivered[side] = true;
                }
                self.check_end(cx, key);
            }
            SocketEvent::Ended => self.ended(cx, side, key),
            SocketEvent::Calling => {}
        }
    }

    /// The connection to `side` is open. If it is the one that we opened, we accept the other.
    fn connected(&mut self, cx: &mut Cx<'_>, side: usize, key: FlowKey) {
        let Some(flow) = self.flows.get_mut(&key) else { return };
        let opener = flow.opener;
        if side == opener {
            self.carry(cx.now, key, side);
            return;
        }
        let Phase::Opening(held) = core::mem::replace(&mut flow.phase, Phase::Open) else { return };
        let Ok(id) = self.ends[opener].complete(cx, held) else {
            self.abort(cx.now, key);
            return;
        };
        flow.ids[opener] = Some(id);
        if let Some(log) = &mut self.log {
            log.opened(&key, &flow.links);
        }
        self.by_conn[opener].insert(id, key);
        self.carry(cx.now, key, side);
    }

    /// Moves bytes that arrived from side `from` to the other side, and the end of the stream behind them.
    fn carry(&mut self, now: Instant, key: FlowKey, from: usize) {
        let to = 1 - from;
        self.fit(&key);
        let Some(flow) = self.flows.get_mut(&key) else { return };
        let [Some(source), Some(sink)] = [flow.ids[from], flow.ids[to]] else { return };
        while !flow.ended[from] {
            let room = self.ends[to].connection(sink).map_or(0, bentpipe_tcp::Connection::send_room);
            if room == 0 {
                // at a known rate there is more room as soon as the connection is used
                if self.fit(&key) {
                    self.carry(now, key, from);
                    return;
                }
                self.ends[to].await_room(sink);
                return;
            }
            let most = self.scratch.len().min(usize::try_from(room).unwrap_or(usize::MAX));
            match self.ends[from].read(now, source, &mut self.scratch[..most]) {
                // a connection that was reset may have got its FIN before: then its stream is whole
                Ok(0) => {
                    flow.ended[from] = true;
                    let _ = self.ends[to].shutdown(sink);
                }
                Ok(len) => match self.ends[to].write(sink, &self.scratch[..len]) {
                    Ok(taken) if taken == len => flow.carried[from] += len as u64,
                    // never a gap in a stream: it ends with a RST
                    Ok(_) | Err(_) => {
                        self.abort(now, key);
                        return;
                    }
                },
                Err(EndpointError::Ended(_)) => {
                    // its event follows, or was here while the other end had no room
                    self.check_failing(now, key);
                    return;
                }
                Err(_) => return,
            }
        }
    }

    /// A connection to one end is over.
    fn ended(&mut self, cx: &mut Cx<'_>, side: usize, key: FlowKey) {
        let Some(flow) = self.flows.get_mut(&key) else { return };
        let Some(id) = flow.ids[side] else { return };
        let ending = self.ends[side].ending(id).unwrap_or(Ending::Aborted);
        match core::mem::replace(&mut flow.phase, Phase::Closing) {
            Phase::Opening(held) => {
                let opener = flow.opener;
                match ending {
                    Ending::Refused | Ending::Reset | Ending::Unreachable => {
                        self.ends[opener].refuse(cx, held);
                        self.counters.refused += 1;
                    }
                    // the opener retransmits its SYN until it gives up, as it would without us
                    _ => self.counters.unanswered += 1,
                }
                self.abort(cx.now, key);
                return;
            }
            Phase::Closing => return,
            phase => flow.phase = phase,
        }
        self.carry(cx.now, key, side);
        if ending != Ending::Closed
            && let Some(flow) = self.flows.get_mut(&key)
        {
            if matches!(flow.phase, Phase::Open) {
                flow.phase = Phase::Failing(cx.now + LAST_WORDS);
                self.counters.failed[side] += 1;
                self.wake(cx.now);
            }
            self.check_failing(cx.now, key);
            return;
        }
        self.check_end(cx, key);
    }

    /// Ends a connection whose streams were both carried and delivered.
    fn check_end(&mut self, cx: &Cx<'_>, key: FlowKey) {
        let Some(flow) = self.flows.get_mut(&key) else { return };
        if matches!(flow.phase, Phase::Failing(_)) {
            self.check_failing(cx.now, key);
            return;
        }
        if flow.ended != [true; 2] || flow.delivered != [true; 2] {
            return;
        }
        flow.phase = Phase::Closing;
        self.counters.closed += 1;
        self.release(&key);
        if let Some(log) = &mut self.log {
            log.ended(&key);
        }
        self.close(&key);
        self.wake(cx.now);
    }

    /// Resets the other end of a connection of which one end was reset, once it has what came before, or its
    /// time is over.
    fn check_failing(&mut self, now: Instant, key: FlowKey) {
        let Some(flow) = self.flows.get(&key) else { return };
        let Phase::Failing(at) = flow.phase else { return };
        let waits = (0..2).any(|side| {
            let Some(id) = flow.ids[side] else { return false };
            let end = &self.ends[side];
            end.ending(id).is_none() && end.connection(id).is_some_and(|c| c.unacknowledged() > 0)
        });
        if !waits || now >= at {
            self.abort(now, key);
        }
    }

    /// Resets both ends, as far as they are alive, and forgets the connection.
    pub(super) fn abort(&mut self, now: Instant, key: FlowKey) {
        for side in 0..2 {
            if let Some(id) = self.take_id(&key, side) {
                self.ends[side].abort(id);
            }
        }
        self.bury(now, key);
    }

    /// Resets all connections.
    pub fn abort_all(&mut self, now: Instant) {
        let keys: Vec<FlowKey> = self.flows.keys().copied().collect();
        for key in keys {
            self.abort(now, key);
        }
    }

    /// Closes our connections; the endpoints still have them until their TIME-WAIT is over.
    fn close(&mut self, key: &FlowKey) {
        for side in 0..2 {
            if let Some(id) = self.flows.get(key).and_then(|flow| flow.ids[side]) {
                self.by_conn[side].remove(&id);
                self.ends[side].close(id);
            }
        }
    }

    fn take_id(&mut self, key: &FlowKey, side: usize) -> Option<ConnId> {
        let id = self.flows.get_mut(key)?.ids[side].take()?;
        self.by_conn[side].remove(&id);
        Some(id)
    }

    /// Gives the memory of a connection back, once.
    fn release(&mut self, key: &FlowKey) {
        if let Some(grant) = self.flows.get_mut(key).and_then(|flow| flow.grant.take()) {
            self.memory.release(&grant);
        }
    }

    /// Removes a connection; what is left of it in the endpoints vanishes without a packet if `at_once`.
    pub(super) fn forget(&mut self, key: &FlowKey, at_once: bool) -> Option<Flow> {
        self.release(key);
        for side in 0..2 {
            if let Some(id) = self.take_id(key, side)
                && at_once
            {
                self.ends[side].discard(id);
            }
        }
        let pair = (key.host.ip(), key.remote.ip());
        if let Some(count) = self.between.get_mut(&pair) {
            *count -= 1;
            if *count == 0 {
                self.between.remove(&pair);
            }
        }
        self.flows.remove(key)
    }

    /// Forgets a connection, but answers packets that still come with a RST.
    fn bury(&mut self, now: Instant, key: FlowKey) {
        let Some(flow) = self.forget(&key, false) else { return };
        if let Some(log) = &mut self.log {
            log.ended(&key);
        }
        self.remember(key, now + GRAVE, flow.links);
        self.wake(now);
    }

    pub(super) fn remember(&mut self, key: FlowKey, until: Instant, links: [super::Link; 2]) {
        self.graves.insert(key, (until, links));
        self.buried.push_back((key, until));
        // all connections may end at once
        let most = MOST_GRAVES.max(2 * self.file.limits.flows);
        while self.buried.len() > most {
            self.dig_up();
        }
    }

    /// Takes the oldest out of the queue, and forgets it unless its addresses were buried again.
    fn dig_up(&mut self) {
        let Some((key, until)) = self.buried.pop_front() else { return };
        if self.is_grave(&key, until) {
            self.graves.remove(&key);
        }
    }

    fn is_grave(&self, key: &FlowKey, until: Instant) -> bool {
        self.graves.get(key).is_some_and(|grave| grave.0 == until)
    }

    /// Has [`Split::timer`] look at connections that have ended.
    fn wake(&mut self, now: Instant) {
        self.sweep_at = self.sweep_at.min(now + SWEEP);
    }

    /// Forgets connections that the endpoints have forgotten, resets those that fail, and empties graves.
    pub(super) fn sweep(&mut self, now: Instant) {
        let ends = &self.ends;
        let is_gone = |flow: &Flow| {
            (0..2).all(|side| flow.ids[side].is_none_or(|id| ends[side].connection(id).is_none()))
        };
        let mut gone = Vec::new();
        let mut failing = Vec::new();
        let mut waits = false;
        for (key, flow) in &self.flows {
            match flow.phase {
                Phase::Closing if is_gone(flow) => gone.push(*key),
                Phase::Failing(_) => failing.push(*key),
                Phase::Closing => waits = true,
                _ => {}
            }
        }
        for key in gone {
            self.forget(&key, false);
        }
        self.sweep_at = Instant::NEVER;
        for key in failing {
            self.check_failing(now, key);
        }
        waits |= self.flows.values().any(|flow| matches!(flow.phase, Phase::Failing(_)));
        while let Some((key, until)) = self.buried.front().copied() {
            if until > now && self.is_grave(&key, until) {
                waits = true;
                break;
            }
            self.dig_up();
        }
        if waits {
            self.wake(now);
        }
    }
}
