//! The event queue: a 4-ary heap in a total order, so that reruns are equal.
//!
//! Entries are ordered by time, then by the order in which they were pushed. Four children per entry keep the tree
//! shallow and a sift within one or two cache lines. Taking the earliest leaves a hole at the root that the
//! next push fills: a link that sends one packet and schedules the next costs one sift, not two.

use crate::node::{NodeId, Slot};
use crate::time::Instant;

/// A wake-up: when, for whom, which timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wake {
    /// When it is due.
    pub at: Instant,
    order: u64,
    /// Whom to wake.
    pub node: NodeId,
    /// Which of the node's timers.
    pub slot: Slot,
}

impl Wake {
    #[inline]
    const fn before(&self, other: &Self) -> bool {
        self.at.0 < other.at.0 || (self.at.0 == other.at.0 && self.order < other.order)
    }
}

/// Wake-ups in the order they are due.
#[derive(Debug, Default)]
pub struct EventQueue {
    heap: Vec<Wake>,
    hole: bool,
    pushed: u64,
}

impl EventQueue {
    /// Adds a wake-up.
    #[inline]
    pub fn push(&mut self, at: Instant, node: NodeId, slot: Slot) {
        let wake = Wake { at, order: self.pushed, node, slot };
        self.pushed += 1;
        if self.hole {
            self.hole = false;
            self.sift_down(wake);
        } else {
            self.heap.push(wake);
            self.sift_up(wake);
        }
    }

    /// When the next wake-up is due.
    pub fn next_at(&mut self) -> Option<Instant> {
        self.fill_hole();
        self.heap.first().map(|w| w.at)
    }

    /// Takes the earliest wake-up due at or before `limit`.
    #[inline]
    pub fn pop_until(&mut self, limit: Instant) -> Option<Wake> {
        self.fill_hole();
        let first = *self.heap.first()?;
        if first.at > limit {
            return None;
        }
        self.hole = true;
        Some(first)
    }

    /// Number of wake-ups waiting.
    pub fn len(&self) -> usize {
        self.heap.len() - usize::from(self.hole)
    }

    /// True when nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    fn fill_hole(&mut self) {
        if self.hole {
            self.hole = false;
            if let Some(last) = self.heap.pop()
                && !self.heap.is_empty()
            {
                self.sift_down(last);
            }
        }
    }

    fn sift_up(&mut self, wake: Wake) {
        let mut at = self.heap.len() - 1;
        while at > 0 {
            let parent = (at - 1) / 4;
            if !wake.before(&self.heap[parent]) {
                break;
            }
            self.heap[at] = self.heap[parent];
            at = parent;
        }
        self.heap[at] = wake;
    }

    fn sift_down(&mut self, wake: Wake) {
        let heap = self.heap.as_mut_slice();
        let len = heap.len();
        let mut at = 0;
        loop {
            let first = at * 4 + 1;
            if first >= len {
                break;
            }
            let mut least = first;
            for child in first + 1..(first + 4).min(len) {
                if heap[child].before(&heap[least]) {
                    least = child;
                }
            }
            if !heap[least].before(&wake) {
                break;
            }
            heap[at] = heap[least];
            at = least;
        }
        heap[at] = wake;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    proptest! {
        /// Against `std`'s heap: same order under any mix of pushes and pops, ties by order of arrival.
        #[test]
        fn agrees_with_the_standard_heap(ops in proptest::collection::vec((any::<bool>(), 0u64..50), 1..400)) {
            let mut ours = EventQueue::default();
            let mut oracle = BinaryHeap::new();
            for (i, (push, at)) in ops.into_iter().enumerate() {
                if push {
                    ours.push(Instant(at), NodeId(i as u32), Slot(0));
                    oracle.push(Reverse((at, i as u32)));
                } else {
                    let limit = at + 10;
                    let expected = match oracle.peek() {
                        Some(Reverse((t, _))) if *t <= limit => oracle.pop().map(|Reverse(e)| e),
                        _ => None,
                    };
                    prop_assert_eq!(ours.pop_until(Instant(limit)).map(|w| (w.at.0, w.node.0)), expected);
                }
                prop_assert_eq!(ours.len(), oracle.len());
            }
        }
    }
}
