//! Exact fast-forward: a network that repeats itself is moved by as many repetitions as fit.
//!
//! A flow that is limited by its window on a path without chance does the same in each round trip, or in a
//! few, when remainders of divisions have come round. After an event of one link (the anchor) the state is
//! compared with an earlier one ([`bentpipe_base::shift`]). If it repeats that, all of it is moved by the
//! repetitions that fit before the end of the run, the next sample, or the next change of a link; the rest is
//! simulated. Repetitions are found as by Brent (BIT 20, 1980): the state to compare with is replaced when
//! the number of comparisons since has grown by half. So a search costs a few comparisons for each event of
//! the anchor, most of which end at the first value.
//!
//! Everything comes out as without it, to the byte: all values are integers, or floating-point numbers that
//! are compared and never moved, and what does not say how it moves is never skipped.

use crate::network::Network;
use crate::nodes::Kind;
use bentpipe_base::shift::{Recorded, Walk};
use bentpipe_base::{Duration, Instant, NodeId};

/// Larger networks are not searched: with many flows a repetition is too rare and a comparison too dear.
const MOST_NODES: usize = 64;
/// Events without one of the anchor, after which there is another anchor.
const MOST_OTHERS: u32 = 4096;
/// Comparisons with the first state after a change.
const FIRST: u64 = 32;

/// The search for a repetition.
#[derive(Debug)]
pub(crate) struct FastForward {
    recorded: Recorded,
    /// Time to the next event in the recorded state, compared first.
    next_after: Duration,
    /// The link after whose events states are compared; none before the first.
    anchor: Option<NodeId>,
    /// Events of other nodes since the last of the anchor.
    others: u32,
    /// Comparisons left with the recorded state, of how many, and how many there are with the next.
    left: u64,
    given: u64,
    span: u64,
    /// True if the recorded state refuses to be moved.
    refuses: bool,
    /// Repetitions skipped so far.
    skipped: u64,
}

impl Network {
    /// Skips what repeats itself from now on. Only for a network that nobody acts on between two calls of
    /// [`Network::run_until`]. It changes no result.
    pub fn fast_forward(&mut self) {
        self.forward = (self.nodes.kinds.len() <= MOST_NODES).then(|| {
            Box::new(FastForward {
                recorded: Recorded::default(),
                next_after: Duration::ZERO,
                anchor: None,
                others: 0,
                left: 0,
                given: 0,
                span: FIRST,
                refuses: false,
                skipped: 0,
            })
        });
    }

    /// Number of repetitions skipped so far.
    pub fn skipped(&self) -> u64 {
        self.forward.as_ref().map_or(0, |forward| forward.skipped)
    }

    /// Looks for a repetition after an event of `node`, and skips up to `until` if there is one.
    #[inline]
    pub(crate) fn consider(&mut self, node: NodeId, until: Instant) {
        let Some(forward) = self.forward.as_deref_mut() else { return };
        forward.others += 1;
        if forward.anchor == Some(node) || forward.left == 0 || forward.others > MOST_OTHERS {
            self.look(node, until);
        }
    }

    fn look(&mut self, node: NodeId, until: Instant) {
        let Some(mut forward) = self.forward.take() else { return };
        if forward.left == 0 || forward.others > MOST_OTHERS {
            // any link will do; one that has no more events is replaced
            if matches!(self.nodes.kinds[node.0 as usize], Kind::Link(_)) {
                self.remember(&mut forward, node, false);
            }
        } else {
            forward.left -= 1;
            forward.others = 0;
            if !forward.refuses && self.next_after() == forward.next_after {
                self.compare(&mut forward, until);
            }
        }
        self.forward = Some(forward);
    }

    fn next_after(&mut self) -> Duration {
        let now = self.now();
        self.world.events.next_at().map_or(Duration::ZERO, |at| at.since(now))
    }

    /// Records the state; with `calls`, what is told from now on is written down.
    fn remember(&mut self, forward: &mut FastForward, anchor: NodeId, calls: bool) {
        forward.anchor = Some(anchor);
        forward.others = 0;
        forward.next_after = self.next_after();
        (forward.left, forward.given) = (forward.span, forward.span);
        forward.span += forward.span / 2;
        let mut walk = Walk::record(&mut forward.recorded, self.now(), calls);
        self.walk(&mut walk);
        forward.refuses = walk.refusal().is_some();
    }

    fn compare(&mut self, forward: &mut FastForward, until: Instant) {
        let now = self.now();
        let mut drifts = false;
        let mut most = None;
        for _ in 0..2 {
            let mut walk = Walk::compare(&mut forward.recorded, now, most);
            self.walk(&mut walk);
            drifts = walk.has_drifted();
            most = Some(walk.repetitions(until));
            if most == Some(0) {
                return;
            }
        }
        let n = most.unwrap_or_default();
        let anchor = forward.anchor.unwrap_or_default();
        // the next is expected after as many events
        forward.span = (2 * (forward.given - forward.left)).max(FIRST);
        if drifts {
            // once more, with what is told
            return self.remember(forward, anchor, true);
        }
        let mut walk = Walk::forward(&mut forward.recorded, now, n);
        self.walk(&mut walk);
        let distance = walk.distance();
        self.skip_to(now + distance);
        for (i, kind) in self.nodes.kinds.iter().enumerate() {
            if let Kind::Host(host) = kind {
                let mut cx = self.world.cx(now + distance, NodeId(i as u32));
                self.nodes.hosts[*host as usize].request_wakes(&mut cx);
            }
        }
        forward.skipped += n;
        self.remember(forward, anchor, true);
    }

    /// Visits the state of everything: what changes most often first.
    fn walk(&mut self, walk: &mut Walk<'_>) {
        let nodes = &mut self.nodes;
        walk.expect(nodes.gateways.is_empty(), "a gateway");
        walk.expect(nodes.arrived.is_empty(), "packets that have arrived at an open end");
        self.world.shift(walk);
        for host in &mut nodes.hosts {
            walk.inner(host);
        }
        for other in &mut nodes.others {
            if !walk.has_ended() {
                other.shift(walk);
            }
        }
        for link in &mut nodes.links {
            walk.inner(link);
        }
    }
}
