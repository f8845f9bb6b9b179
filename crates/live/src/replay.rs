//! Runs a journal again: the same inputs at the same times into the same network, under simulated time.

use crate::relay::{Names, network};
use bentpipe_base::Instant;
use bentpipe_driver::{Entry, Hosts, JournalError, LiveNetwork, Preamble, Reader};
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
    /// A change in it is not understood.
    #[error("the journal's change at {at_s} s is not understood: {what}")]
    Change {
        /// When it was made.
        at_s: f64,
        /// What is wrong.
        what: String,
    },
    /// A super-packet for an unknown host, or too long.
    #[error("the journal's packet at {at_s} s makes no sense")]
    Packet {
        /// Time of the packet.
        at_s: f64,
    },
}

/// Runs the journal at `path` again.
///
/// # Errors
/// When the journal is damaged or of another version.
pub fn replay(path: &Path) -> Result<Replayed, ReplayError> {
    let (mut reader, preamble) = Reader::open(path)?;
    let (net, names) = rebuild(&preamble)?;
    let mut run = Run { net, delivered: 0 };
    run.net.keep_digest();
    let (mut packets, mut changes, mut recorded, mut until) = (0, 0, None, Instant::ZERO);
    while let Some((at, entry)) = reader.next_entry()? {
        until = at;
        match entry {
            Entry::Packet { host, vnet, bytes } => {
                packets += 1;
                let wrong = || ReplayError::Packet { at_s: at.as_secs_f64() };
                let port = run.net.port_of(host).ok_or_else(wrong)?;
                if !run.net.store.borrow_mut().write(&bytes) {
                    return Err(wrong());
                }
                run.net.advance(at);
                run.net.accept(port, bytes.len(), &vnet);
            }
            Entry::Change(json) => {
                changes += 1;
                run.net.advance(at);
                run.drain();
                crate::control::repeat(&json, &mut run.net, &names.links())
                    .map_err(|what| ReplayError::Change { at_s: at.as_secs_f64(), what })?;
            }
            Entry::End(digest) => recorded = Some(digest),
        }
        run.net.advance(at);
        run.drain();
    }
    Ok(Replayed { packets, changes, delivered: run.delivered, until, digest: run.net.digest(), recorded })
}

fn rebuild(preamble: &Preamble) -> Result<(LiveNetwork, Names), ReplayError> {
    let source = Source::new("journal", preamble.scenario.as_str());
    let mut scenario = load(&source, &[], None).map_err(|d| ReplayError::Scenario(d.to_string()))?;
    crate::speed::faster(&mut scenario, preamble.speed);
    Ok(network(&scenario, Hosts::new(preamble.addresses.iter().copied(), preamble.gate)))
}

struct Run {
    net: LiveNetwork,
    delivered: u64,
}

impl Run {
    fn drain(&mut self) {
        while let Some(arrival) = self.net.take_arrival() {
            self.delivered += u64::from(arrival.pieces);
            self.net.done(arrival);
        }
    }
}
