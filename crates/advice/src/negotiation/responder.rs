//! The receiver's part: it returns what arrives.

use super::{Carrier, Terms};
use crate::tia1039::{Kind, RateType, Structure};
use bentpipe_base::{IpVersion, Rate};
use std::collections::VecDeque;

/// Most structures that wait to be returned; a newer one takes the place of the oldest.
pub(super) const MOST_WAITING: usize = 4;

/// Structures to return.
#[derive(Clone, Debug)]
pub(super) struct Responder {
    take: Option<Rate>,
    ip: IpVersion,
    waiting: VecDeque<Structure>,
    /// The last rate that was returned: the peer may send at it.
    pub(super) returned: Option<Rate>,
}

impl Responder {
    pub(super) const fn new(take: Option<Rate>, ip: IpVersion) -> Self {
        Self { take, ip, waiting: VecDeque::new(), returned: None }
    }

    /// Queues the response to a request.
    pub(super) fn respond(&mut self, request: Structure) {
        let mut response = request;
        response.set_kind(Kind::Response);
        if let Some(most) = self.take {
            Self::lower(&mut response, most);
        }
        let rate_type = response.rate_type().unwrap_or_default();
        self.returned = Terms { rate_type, ..Terms::default() }.rate_in(&response);
        if self.ip == IpVersion::V6 {
            response.set_flow_label(0); // the packets here have no label
        }
        self.keep(response);
    }

    /// Lowers the rates of a response to what this end takes: the guaranteed one first, since it is the one
    /// that the network has set aside, and what it leaves is available.
    fn lower(response: &mut Structure, most: Rate) {
        if response.guaranteed().is_some_and(|rate| rate > most) {
            response.set_guaranteed(Some(most));
        }
        let kept = response.guaranteed().filter(|_| response.rate_type() == Some(RateType::Composite));
        let rest = Rate::from_bps(most.bps() - kept.map_or(0, |kept| kept.bps().min(most.bps())));
        if response.available() > rest {
            response.set_available(rest);
        }
    }

    /// Queues a structure that is returned as it is.
    pub(super) fn keep(&mut self, structure: Structure) {
        if self.waiting.len() >= MOST_WAITING {
            self.waiting.pop_front();
        }
        self.waiting.push_back(structure);
    }

    /// Takes the structure that the next packet returns. What a router missed goes back without data: with
    /// data the peer would return it again.
    pub(super) fn next(&mut self, packet: Carrier) -> Option<Structure> {
        let fits = |s: &Structure| packet == Carrier::Ack || s.kind() == Some(Kind::Response);
        let first = self.waiting.iter().position(fits)?;
        self.waiting.remove(first)
    }

    pub(super) fn is_due(&self) -> bool {
        !self.waiting.is_empty()
    }
}
