//! What exact fast-forward compares and moves of a connection.
//!
//! Only an open connection that repairs nothing and signals nothing: see [`bentpipe_base::shift`]. What
//! changes most often comes first, since the first difference ends a comparison.

use crate::connection::{Connection, SendFlags};
use crate::stamps::TimestampClock;
use crate::state::{State, Stats};
use bentpipe_base::shift::{Shift, Walk};

impl Connection {
    /// Its own stream and the peer's.
    fn streams(&self, walk: &mut Walk<'_>) -> (usize, usize) {
        let (local, remote) = (self.tuple.local, self.tuple.remote);
        let own = walk.stream((local.0, local.1, remote.0, remote.1));
        (own, walk.stream((remote.0, remote.1, local.0, local.1)))
    }

    fn expect_plain(&self, walk: &mut Walk<'_>) {
        walk.expect(
            matches!(self.state, State::Established | State::FinWait1),
            "a connection opens or closes",
        );
        let signals = self.signalling.is_some() || self.probes.is_some() || self.config.grant.is_some();
        walk.expect(!signals, "a sender that signals or probes");
        let waits = self.outgoing.is_some() || self.pending_too_big.is_some();
        walk.expect(!waits, "a packet or message that waits");
    }

    /// Visits the stream that the application still has to write.
    pub fn shift_unwritten(&self, walk: &mut Walk<'_>, bytes: &mut u64) {
        let (own, _) = self.streams(walk);
        walk.unwritten(own, bytes);
    }

    fn shift_sender(&mut self, walk: &mut Walk<'_>, own: usize, peer: usize) {
        walk.position(own, &mut self.peer_right_edge);
        walk.same(&(self.peer_window_max, self.fin_queued, self.state as u8));
        walk.position(peer, &mut self.window_update.0);
        walk.position(own, &mut self.window_update.1);
        // the end is not in sight of a window or burst of segments
        let sight = 2 * self.peer_window_max + (1 << 16);
        let left = self.written.saturating_sub(self.board.next() + sight);
        walk.written(own, &mut self.written, left);
        self.recovery.shift(walk, own);
        self.rate.shift(walk, own);
        self.shift_told(walk, own);
        walk.inner(&mut self.pacer);
        self.tail_probe.shift(walk);
        let SendFlags { persist, tail_probe, reset, syn, hidden_request, jitter_state, .. } = &self.send;
        walk.same(&[*persist, *tail_probe, *reset, *syn, *hidden_request]);
        walk.same(&(*jitter_state as u8, self.send.burst));
        walk.mark(own, &mut self.send.partial_segment_end);
        walk.inner(&mut self.send.tso_burst);
        self.cork.shift(walk, own);
    }

    fn shift_rest(&mut self, walk: &mut Walk<'_>, own: usize, peer: usize) {
        let TimestampClock { recent, recent_phase, recent_at, last_ack_sent, chosen_at } = &mut self.clock;
        walk.position(peer, last_ack_sent);
        if self.negotiated.timestamps {
            walk.stamp(recent, recent_phase);
            walk.choice(chosen_at);
            walk.time(recent_at);
        }
        walk.same(&(self.ecn.echo, self.ecn.send_cwr));
        walk.mark(own, &mut self.ecn.reduced_until);
        self.limits.shift(walk);
        // an end that sends nothing does not read it
        walk.past(&mut self.last_sent);
        let matters = self.config.user_timeout.is_some() || self.config.keep_alive.is_some();
        self.peer_activity.shift(walk, matters);
        walk.same(&(self.timeouts_in_a_row, self.persist_backoff, self.challenges));
        walk.same(&self.events.len());
        let Stats { established_at, finished_at, segments_sent, retransmits, timeouts, undone, .. } =
            &mut self.stats;
        walk.same(&(*established_at, *finished_at));
        for n in [segments_sent, retransmits, timeouts, undone] {
            walk.count(n);
        }
        let Stats { bytes_acked, opened_at, steady, rtt, .. } = &mut self.stats;
        walk.count(&mut bytes_acked.0);
        walk.same(opened_at);
        steady.shift(walk);
        rtt.shift(walk);
    }
}

impl Shift for Connection {
    fn shift(&mut self, walk: &mut Walk<'_>) {
        let (own, peer) = self.streams(walk);
        self.expect_plain(walk);
        if !walk.has_ended() {
            self.cc.shift(walk);
        }
        walk.inner(&mut self.timers);
        self.board.shift(walk, own);
        self.rcv.shift(walk, peer);
        self.shift_sender(walk, own, peer);
        self.shift_rest(walk, own, peer);
        self.board.shift_segments(walk, own);
    }
}
