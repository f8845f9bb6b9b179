//! How many connections the agent takes, and how large their buffers are.
//!
//! Each connection has four buffers: from and to the network, and from and to the host. They start small and
//! grow with what the connection can use (`buffers.rs`). Their memory is set aside before, so the sum never
//! exceeds the limit, whatever the ends do. Each connection has at least the floor, for which memory is kept
//! for all connections that may come. The rest is shared out on demand:
//!
//! ```text
//! left = limit - floor * most - what connections have above the floor
//! a connection opens with at most floor + left / 64; with a window of a fixed size, floor + left / 16
//! a buffer grows by at most left / 4
//! ```
//!
//! Sizes are powers of two, as those of the rings that hold the bytes. Nothing shrinks before the end of the
//! connection: a window that was announced is a promise.

use bentpipe_base::{Duration, IpVersion, Size};
use bentpipe_scenario::agent_file::AgentLimits;
use bentpipe_tcp::options::scale_for;
use bentpipe_tcp::{Config, DelayedAck, KeepAlive, ReceiveBuffer};
use core::net::IpAddr;

/// Least memory of a connection.
const FLOOR: u64 = 64 << 10;
/// Least size of a buffer.
const LEAST: u64 = 16 << 10;
/// Largest buffer towards the host, which is near: 8 Gbit/s over 1 ms.
const MOST_AT_HOST: u64 = 1 << 20;
/// First size of a buffer, unless the window is a fixed one.
const FIRST: u64 = 256 << 10;
/// A connection opens with at most this part of the memory that is left.
const PART: u64 = 64;
/// The same with a window of a fixed size, which cannot grow later.
const FIXED_PART: u64 = 16;

/// The memory of all connections, and their number.
#[derive(Debug)]
pub(super) struct Memory {
    most: usize,
    limit: u64,
    pub(super) flows: usize,
    pub(super) reserved: u64,
}

/// The sizes of the two buffers towards a side, and the largest that they may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    /// Arrived and not carried on.
    pub(super) incoming: u64,
    /// Written and not acknowledged.
    pub(super) outgoing: u64,
    pub(super) most: u64,
}

/// What a connection has: buffers towards host and network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grant(pub(super) [Pair; 2]);

impl Memory {
    pub(super) const fn new(limits: &AgentLimits) -> Self {
        Self { most: limits.flows, limit: limits.memory.0, flows: 0, reserved: 0 }
    }

    /// What is not set aside, and not kept for connections that may come.
    const fn left(&self) -> u64 {
        let kept = FLOOR * self.most as u64;
        let elastic = self.reserved - FLOOR * self.flows as u64;
        self.limit.saturating_sub(kept).saturating_sub(elastic)
    }

    /// Sets memory aside for a connection that wants `config`; `None` if there are too many.
    pub(super) fn admit(&mut self, config: &Config) -> Option<Grant> {
        if self.flows >= self.most {
            return None;
        }
        let most = power_of_two(config.receive_buffer.max().0);
        let (window, part) = match config.receive_buffer {
            ReceiveBuffer::Fixed(_) => (most, FIXED_PART),
            ReceiveBuffer::Auto { initial, .. } => (power_of_two(initial.0).min(most), PART),
        };
        let limit = FLOOR + self.left() / part;
        let mut at_most = window.max(FIRST);
        let grant = loop {
            let pair = |incoming: u64, most: u64| Pair {
                incoming: incoming.min(at_most).min(most),
                outgoing: FIRST.min(at_most).min(most),
                most,
            };
            let grant = Grant([pair(FIRST, most.min(MOST_AT_HOST)), pair(window, most)]);
            if grant.bytes() <= limit || at_most <= LEAST {
                break grant;
            }
            at_most /= 2;
        };
        self.flows += 1;
        self.reserved += grant.bytes();
        Some(grant)
    }

    /// Makes a buffer of `size` as large as `wanted`, or as what it may take of the memory that is left: one
    /// part in `part`.
    pub(super) fn grow(&mut self, size: u64, wanted: u64, part: u64) -> u64 {
        let mut to = wanted.max(size);
        while to > size && to - size > self.left() / part {
            to /= 2;
        }
        let to = to.max(size);
        self.reserved += to - size;
        to
    }

    /// Gives the memory of a connection back.
    pub(super) const fn release(&mut self, grant: &Grant) {
        self.flows = self.flows.saturating_sub(1);
        self.reserved = self.reserved.saturating_sub(grant.bytes());
    }
}

/// The size of a buffer that holds so many bytes.
pub(super) const fn power_of_two(bytes: u64) -> u64 {
    // no window is larger (RFC 7323, section 2.3)
    let bytes = if bytes > 1 << 30 { 1 << 30 } else { bytes };
    if bytes < LEAST { LEAST } else { bytes.next_power_of_two() }
}

impl Grant {
    /// Memory in total.
    pub(super) const fn bytes(&self) -> u64 {
        let [host, network] = &self.0;
        host.incoming + host.outgoing + network.incoming + network.outgoing
    }

    /// The configurations towards host and network of a connection with this grant.
    pub(super) fn configs(&self, ask: &Config, end: IpAddr, idle: Duration) -> [Config; 2] {
        let keep_alive = Some(KeepAlive { idle, ..KeepAlive::default() });
        let ip = if end.is_ipv4() { IpVersion::V4 } else { IpVersion::V6 };
        let [host, network] = &self.0;
        let common = |config: Config, pair: &Pair| Config {
            send_buffer: Some(Size(pair.outgoing)),
            keep_alive,
            ip,
            ..within(config, pair.incoming)
        };
        // the host is near: single segments are acknowledged soon
        let near = Config {
            receive_buffer: ReceiveBuffer::Auto { initial: Size(host.incoming), max: Size(host.most) },
            delayed_ack: Some(DelayedAck { count: 2, timeout: Duration::from_millis(10) }),
            nagle: false,
            ..Config::default()
        };
        [common(near, host), common(ask.clone(), network)]
    }
}

/// The configuration with a first window that fits into `memory` when it is rounded up to its scale.
fn within(mut config: Config, memory: u64) -> Config {
    let fits = Size(memory - ((1 << scale_for(&config)) - 1));
    config.receive_buffer = match config.receive_buffer {
        ReceiveBuffer::Fixed(size) => ReceiveBuffer::Fixed(size.min(fits)),
        ReceiveBuffer::Auto { initial, max } => ReceiveBuffer::Auto { initial: initial.min(fits), max },
    };
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: AgentLimits =
        AgentLimits { flows: 10_000, memory: Size(1 << 30), idle: Duration::from_secs(7200) };

    fn fixed(window: u64) -> Config {
        Config { receive_buffer: ReceiveBuffer::Fixed(Size(window)), ..Config::default() }
    }

    fn growing(initial: u64, max: u64) -> Config {
        let receive_buffer = ReceiveBuffer::Auto { initial: Size(initial), max: Size(max) };
        Config { receive_buffer, ..Config::default() }
    }

    #[test]
    fn all_connections_fit_whatever_they_want() {
        for (flows, memory) in [(16, 2 << 20), (10_000, 1 << 30), (10_000, 1280 << 20), (100, 8 << 30)] {
            for config in [fixed(8 << 20), growing(64 << 10, 1 << 30)] {
                let limits = AgentLimits { flows, memory: Size(memory), ..LIMITS };
                let mut all = Memory::new(&limits);
                let mut grants: Vec<Grant> = (0..flows).map(|_| all.admit(&config).expect("room")).collect();
                assert!(grants.windows(2).all(|pair| pair[1].bytes() <= pair[0].bytes()), "first come");
                for pair in grants.iter_mut().flat_map(|grant| &mut grant.0) {
                    pair.outgoing = all.grow(pair.outgoing, 64 << 20, 4);
                    assert!(pair.incoming.min(pair.outgoing) >= LEAST);
                }
                assert!(all.reserved <= memory, "{flows} {}", all.reserved);
                assert_eq!(all.reserved, grants.iter().map(Grant::bytes).sum::<u64>());
                assert!(all.admit(&config).is_none());
                all.release(&grants[0]);
                assert!(all.admit(&config).is_some());
            }
        }
    }

    #[test]
    fn a_window_of_a_fixed_size_is_open_at_once_and_another_grows() {
        let mut all = Memory::new(&LIMITS);
        let [host, network] = all.admit(&fixed(8 << 20)).unwrap().0;
        assert_eq!((network.incoming, network.outgoing, network.most), (8 << 20, FIRST, 8 << 20));
        assert_eq!((host.incoming, host.outgoing, host.most), (FIRST, FIRST, MOST_AT_HOST));
        let [_, network] = all.admit(&growing(64 << 10, 64 << 20)).unwrap().0;
        assert_eq!((network.incoming, network.outgoing, network.most), (64 << 10, FIRST, 64 << 20));
        assert_eq!(all.grow(network.outgoing, 32 << 20, 4), 32 << 20);
        assert!(all.grow(FIRST, 1 << 30, 4) < 128 << 20, "a quarter of what is left");
    }

    #[test]
    fn windows_fit_into_their_memory_when_they_are_rounded_up() {
        let mut all = Memory::new(&LIMITS);
        let grant = all.admit(&fixed(1000)).unwrap();
        assert_eq!(grant.bytes(), FLOOR);
        let configs = grant.configs(&fixed(1000), "::1".parse().unwrap(), LIMITS.idle);
        assert_eq!(configs[1].receive_buffer, ReceiveBuffer::Fixed(Size(1000)));
        assert_eq!((configs[1].ip, configs[0].ip), (IpVersion::V6, IpVersion::V6));
        // scales of 8 and 11: steps of 256 and 2048 bytes
        for (config, first) in
            [(fixed(8 << 20), (8 << 20) - 255), (growing(256 << 10, 64 << 20), FIRST - 2047)]
        {
            let grant = all.admit(&config).unwrap();
            let [_, network] = grant.configs(&config, "::1".parse().unwrap(), LIMITS.idle);
            assert_eq!(network.receive_buffer.initial(), Size(first));
            assert!(scale_for(&network) <= scale_for(&config));
        }
    }
}
