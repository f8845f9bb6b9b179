//! Runs a journal again: the same inputs at the same times into the same network, under simulated time.

use crate::relay::network;
use bentpipe_base::Instant;
use bentpipe_driver::{Entry, Hosts, JournalError, LiveNetwork, Reader};
use bentpipe_scenario::{Source, load};
use std::path::Path;

/// Result of a replay.
#[derive(Clone, Debug, PartialEq)]
pub struct Replayed {
    /// Super-packets fed into the network.
    pub packets: u64,
    /// Changes of links that were repeated.
    pub changes: u64,
    /// Wire packets delivered by the network.
    pub delivered: u64,
    /// Time of the last input.
    pub until: Instant,
    /// Digest of the delivered packets.
    pub digest: blake3::Hash,
    /// The digest in the journal; `None` if the run was killed before writing it.
    pub recorded: Option<blake3::Hash>,
}

impl Replayed {
    /// Whether the digests are equal; `None` if the journal has none.
    pub fn same(&self) -> Option<bool> {
        self.recorded.map(|r| r == self.digest)
    }
}

/// Why a journal could not be run again.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The file cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// Its scenario is not understood.
    #[error("the journal's scenario is not understood by this version of bentpipe:\n{0}")]
    Scenario(String),
    /// A change in it is not understood: when it was made, and what is wrong.
    #[error("the journal's change at {0} s is not understood: {1}")]
    Change(f64, String),
    /// A super-packet at this time for an unknown host, or too long.
    #[error("the journal's packet at {0} s is invalid")]
    Packet(f64),
}

/// Runs the journal at `path` again.
///
/// # Errors
/// When the journal is damaged or of another version.
pub fn replay(path: &Path) -> Result<Replayed, ReplayError> {
    let (mut reader, preamble) = Reader::open(path)?;
    let source = Source::new("journal", preamble.scenario.as_str());
    let mut scenario = load(&source, &[], None).map_err(|d| ReplayError::Scenario(d.to_string()))?;
    crate::speed::speed_up(&mut scenario, preamble.speed);
    let (mut net, names) = network(&scenario, Hosts::new(preamble.addresses.iter().copied(), preamble.gate));
    net.keep_digest();
    let mut delivered = 0;
    let mut advance = |net: &mut LiveNetwork, at| {
        net.advance(at);
        while let Some(arrival) = net.take_arrival() {
            delivered += u64::from(arrival.pieces);
            net.done(arrival);
        }
    };
    let (mut packets, mut changes, mut recorded, mut until) = (0, 0, None, Instant::ZERO);
    while let Some((at, entry)) = reader.next_entry()? {
        until = at;
        match entry {
            Entry::Packet { host, vnet, bytes } => {
                packets += 1;
                let wrong = || ReplayError::Packet(at.as_secs_f64());
                let port = net.port_of(host).ok_or_else(wrong)?;
                if !net.store.borrow_mut().write(&bytes) {
                    return Err(wrong());
                }
                net.advance(at);
                net.accept(port, bytes.len(), &vnet);
            }
            Entry::Change(json) => {
                changes += 1;
                advance(&mut net, at);
                crate::control::replay_change(&json, &mut net, &names.links())
                    .map_err(|what| ReplayError::Change(at.as_secs_f64(), what))?;
            }
            Entry::End(digest) => recorded = Some(digest),
        }
        advance(&mut net, at);
    }
    Ok(Replayed { packets, changes, delivered, until, digest: net.digest(), recorded })
}
