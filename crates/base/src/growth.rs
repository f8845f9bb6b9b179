//! Queues that grow by a quarter.
//!
//! Doubling, as by default, leaves up to a half unused: of thousands of connections, or of a link with
//! hundreds of thousands of packets in flight, that is much.

use std::collections::VecDeque;

/// Adds an element at the end.
#[inline]
pub fn push_back<T>(queue: &mut VecDeque<T>, element: T) {
    if queue.len() == queue.capacity() {
        queue.reserve_exact((queue.len() / 4).max(4));
    }
    queue.push_back(element);
}
