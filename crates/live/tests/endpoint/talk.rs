//! An application for each end of a connection: it sends its data, shuts down its side, receives the other's
//! data, and checks every byte.

use bentpipe_base::{Cx, Rng};
use bentpipe_live::endpoint::{ConnId, Ending, Endpoint, EndpointError, SocketEvent};
use std::collections::BTreeMap;

/// A stream in which each byte is a function of its position.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Content(pub u64);

impl Content {
    fn word(self, i: u64) -> [u8; 8] {
        // SplitMix64 (Steele, Lea and Flood 2014)
        let mut z = (self.0.wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ i).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31).to_le_bytes()
    }

    /// The bytes from `at` on.
    pub(crate) fn fill(self, at: u64, into: &mut [u8]) {
        let mut at = at;
        let mut rest = into;
        while !rest.is_empty() {
            let word = self.word(at / 8);
            let from = (at % 8) as usize;
            let len = rest.len().min(8 - from);
            rest[..len].copy_from_slice(&word[from..from + len]);
            rest = &mut rest[len..];
            at += len as u64;
        }
    }

    /// Fails unless `bytes` are those from `at` on.
    pub(crate) fn check(self, at: u64, bytes: &[u8]) {
        let mut expected = vec![0; bytes.len()];
        self.fill(at, &mut expected);
        if expected != bytes {
            let wrong = expected.iter().zip(bytes).position(|(a, b)| a != b).unwrap_or_default();
            panic!(
                "byte {} of the stream is {:#x}, not {:#x}",
                at + wrong as u64,
                bytes[wrong],
                expected[wrong]
            );
        }
    }
}

/// One side of a conversation.
#[derive(Clone, Debug)]
pub(crate) struct Talk {
    pub(crate) says: Content,
    pub(crate) to_say: u64,
    pub(crate) hears: Content,
    pub(crate) to_hear: u64,
    pub(crate) said: u64,
    pub(crate) heard: u64,
    pub(crate) peer_closed: bool,
    pub(crate) delivered: bool,
    /// Reads a random part of the available data, and only when it runs anyway.
    pub(crate) lazy: Option<Rng>,
    /// Sends nothing before it has received all.
    pub(crate) speaks_last: bool,
    shut: bool,
    /// Closes the connection when all data was sent, received and delivered.
    pub(crate) lets_go: bool,
    pub(crate) ended: Option<Ending>,
    pub(crate) done: bool,
}

impl Talk {
    pub(crate) fn new(says: u64, to_say: u64, hears: u64, to_hear: u64) -> Self {
        Self {
            says: Content(says),
            to_say,
            hears: Content(hears),
            to_hear,
            said: 0,
            heard: 0,
            peer_closed: false,
            delivered: false,
            lazy: None,
            speaks_last: false,
            shut: false,
            lets_go: true,
            ended: None,
            done: false,
        }
    }

    /// Sends and receives what is possible now.
    pub(crate) fn act(&mut self, endpoint: &mut Endpoint, cx: &Cx<'_>, id: ConnId) {
        if self.done {
            return;
        }
        if !self.speaks_last {
            self.say(endpoint, id);
        }
        self.hear(endpoint, cx, id);
        if self.speaks_last && self.peer_closed {
            self.say(endpoint, id);
        }
        if self.lets_go && self.peer_closed && self.delivered {
            endpoint.close(id);
            self.done = true;
        }
    }

    /// Starts sending right after `connect`.
    pub(crate) fn start(&mut self, endpoint: &mut Endpoint, id: ConnId) {
        if !self.speaks_last {
            self.say(endpoint, id);
        }
    }

    fn say(&mut self, endpoint: &mut Endpoint, id: ConnId) {
        let mut buffer = [0; 16_384];
        while self.said < self.to_say {
            let len = (self.to_say - self.said).min(buffer.len() as u64) as usize;
            self.says.fill(self.said, &mut buffer[..len]);
            match endpoint.write(id, &buffer[..len]) {
                Ok(taken) => self.said += taken as u64,
                Err(EndpointError::WouldBlock) => return,
                Err(EndpointError::Ended(_)) if self.ended.is_some() => return,
                Err(other) => panic!("write: {other}"),
            }
        }
        if !self.shut {
            self.shut = true;
            endpoint.shutdown(id).expect("it lives");
        }
    }

    fn hear(&mut self, endpoint: &mut Endpoint, cx: &Cx<'_>, id: ConnId) {
        let mut buffer = [0; 16_384];
        loop {
            let most = self.lazy.as_mut().map_or(buffer.len(), |rng| (rng.unit() * 4000.0) as usize + 1);
            match endpoint.read(cx.now, id, &mut buffer[..most]) {
                Ok(0) => {
                    assert_eq!(self.heard, self.to_hear, "the end of the stream comes after its last byte");
                    self.peer_closed = true;
                    return;
                }
                Ok(len) => {
                    self.hears.check(self.heard, &buffer[..len]);
                    self.heard += len as u64;
                }
                Err(EndpointError::WouldBlock) => return,
                Err(EndpointError::Ended(ending)) => {
                    self.ended = Some(ending);
                    return;
                }
                Err(other) => panic!("read: {other}"),
            }
            if self.lazy.is_some() {
                return;
            }
        }
    }
}

/// All conversations of an endpoint.
#[derive(Default)]
pub(crate) struct Talks {
    pub(crate) of: BTreeMap<ConnId, Talk>,
    /// Talks for new connections at a port, in order.
    pub(crate) for_callers: BTreeMap<u16, Vec<Talk>>,
    pub(crate) log: Vec<(ConnId, SocketEvent)>,
}

impl Talks {
    /// Handles all events.
    pub(crate) fn run(&mut self, endpoint: &mut Endpoint, cx: &mut Cx<'_>) {
        while let Some((id, news)) = endpoint.next_event() {
            self.log.push((id, news));
            if news == SocketEvent::Calling {
                let port = endpoint.addresses(id).expect("it lives").0.port();
                let caller = endpoint.accept(port).expect("it was said that one waits");
                if let Some(talks) = self.for_callers.get_mut(&port)
                    && !talks.is_empty()
                {
                    self.of.insert(caller, talks.remove(0));
                }
            }
            let Some(talk) = self.of.get_mut(&id) else { continue };
            match news {
                SocketEvent::Delivered => talk.delivered = true,
                SocketEvent::Ended => talk.ended = endpoint.ending(id),
                _ => {}
            }
            talk.act(endpoint, cx, id);
        }
        for (id, talk) in self.of.iter_mut().filter(|(_, t)| t.lazy.is_some()) {
            talk.act(endpoint, cx, *id);
        }
    }

    pub(crate) fn all_done(&self) -> bool {
        self.of.values().all(|t| t.done) && self.for_callers.values().all(Vec::is_empty)
    }
}
