//! What exact fast-forward compares and moves of a link ([`bentpipe_base::shift`]).
//!
//! A constant link, and one that changes over time: what changes it depends on the time only, so the end of
//! the present state ends what may be skipped. Where a loss is drawn for each packet, a random stream was
//! drawn from, which is no repetition; what is left of a gap to the next loss limits what may be skipped. Not
//! skipped: queues that drop by time or priority, access, and traces of opportunities.

use crate::link::Link;
use crate::stats::{LinkStats, Served};
use bentpipe_base::shift::{Shift, Walk};
use bentpipe_base::{Instant, Pkt};

/// Visits packets and the times at which they are due.
pub(crate) fn packets<'a>(walk: &mut Walk<'_>, all: impl Iterator<Item = (&'a mut Instant, &'a mut Pkt)>) {
    for (at, packet) in all {
        if walk.has_ended() {
            return;
        }
        walk.time(at);
        walk.inner(&mut **packet);
    }
}

impl Shift for Link {
    fn shift(&mut self, walk: &mut Walk<'_>) {
        let Self { busy_until, armed, in_flight, channel, served, queue, stats, expected } = self;
        // a service in progress ends before the link changes
        let lead = busy_until.since(walk.now());
        walk.past(busy_until);
        walk.time(armed);
        channel.shift(walk, lead);
        let Served { packets: sent, bytes, busy } = served;
        for sum in [sent, &mut bytes.0, &mut busy.0] {
            walk.count(sum);
        }
        walk.same(&stats.is_some());
        if let Some(stats) = stats {
            walk.inner(&mut **stats);
        }
        in_flight.shift(walk);
        queue.shift(walk);
        walk.same(&expected.len());
        packets(walk, expected.iter_mut().map(|expected| (&mut expected.at, &mut expected.packet)));
    }
}

impl Shift for LinkStats {
    fn shift(&mut self, walk: &mut Walk<'_>) {
        // `served` and `marked` are copies, made when they are read
        let Self { served: _, queue_peak, recent_peak, marked: _, drops, queue_ns, queue_since } = self;
        walk.same(&(*queue_peak, *recent_peak));
        walk.same(&drops.is_some());
        for sum in drops.iter_mut().flat_map(|drops| drops.iter_mut()) {
            walk.count(sum);
        }
        walk.count_u128(queue_ns);
        walk.past(queue_since);
    }
}
