//! How many connections the agent takes, and how large their buffers are.
//!
//! Each connection has four buffers: from and to the network, and from and to the host. Their memory is set
//! aside when it opens, so the sum never exceeds the limit, whatever the ends do. Half of the limit or more
//! is shared out on demand: a connection gets what it wants, but at most a sixteenth of what is left. Each
//! has at least the minimum, for which memory is kept for all connections that may come.
//!
//! ```text
//! granted = floor + min(wanted - floor, (limit - floor * most - granted to others) / 16)
//! ```

use bentpipe_base::{Duration, IpVersion, Size};
use bentpipe_scenario::agent_file::AgentLimits;
use bentpipe_tcp::{Config, DelayedAck, KeepAlive, ReceiveBuffer};
use core::net::IpAddr;

/// Least memory of a connection.
const FLOOR: u64 = 64 << 10;
/// Least size of a buffer.
const LEAST: u64 = 16 << 10;
/// Largest buffer towards the host, which is near: 8 Gbit/s over 1 ms.
const MOST_AT_HOST: u64 = 1 << 20;
/// A connection gets at most this part of the memory that is left.
const PART: u64 = 16;

/// The memory of all connections, and their number.
#[derive(Debug)]
pub(super) struct Memory {
    most: usize,
    limit: u64,
    pub(super) flows: usize,
    pub(super) reserved: u64,
}

/// What a connection gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grant {
    /// Memory in total.
    pub(super) bytes: u64,
    /// Size of each buffer towards the network, and towards the host.
    network: u64,
    host: u64,
}

impl Memory {
    pub(super) const fn new(limits: &AgentLimits) -> Self {
        Self { most: limits.flows, limit: limits.memory.0, flows: 0, reserved: 0 }
    }

    /// Sets memory aside for a connection that wants `config`; `None` if there are too many.
    pub(super) fn admit(&mut self, config: &Config) -> Option<Grant> {
        if self.flows >= self.most {
            return None;
        }
        let network = config.receive_buffer.max().0.max(LEAST).next_power_of_two();
        let host = network.min(MOST_AT_HOST);
        let wanted = 2 * (network + host);
        let kept = FLOOR * self.most as u64;
        let elastic = self.reserved - FLOOR * self.flows as u64;
        let left = self.limit.saturating_sub(kept).saturating_sub(elastic);
        let most = FLOOR + left / PART;
        let mut grant = Grant { bytes: wanted, network, host };
        while grant.bytes > most && grant.network > LEAST {
            grant.network /= 2;
            grant.host = grant.host.min(grant.network);
            grant.bytes = 2 * (grant.network + grant.host);
        }
        self.flows += 1;
        self.reserved += grant.bytes;
        Some(grant)
    }

    pub(super) const fn release(&mut self, bytes: u64) {
        self.flows = self.flows.saturating_sub(1);
        self.reserved = self.reserved.saturating_sub(bytes);
    }
}

impl Grant {
    /// The configurations towards host and network of a connection with this grant.
    pub(super) fn configs(&self, ask: &Config, end: IpAddr, idle: Duration) -> [Config; 2] {
        let keep_alive = Some(KeepAlive { idle, ..KeepAlive::default() });
        let ip = if end.is_ipv4() { IpVersion::V4 } else { IpVersion::V6 };
        let receive_buffer = match ask.receive_buffer {
            ReceiveBuffer::Fixed(size) => ReceiveBuffer::Fixed(size.min(Size(self.network))),
            ReceiveBuffer::Auto { initial, max } => {
                let max = max.min(Size(self.network));
                ReceiveBuffer::Auto { initial: initial.min(max), max }
            }
        };
        let send_buffer = Some(Size(self.network));
        let network = Config { receive_buffer, send_buffer, keep_alive, ip, ..ask.clone() };
        // the host is near: its window need not grow, and single segments are acknowledged soon
        let host = Config {
            receive_buffer: ReceiveBuffer::Fixed(Size(self.host)),
            send_buffer: Some(Size(self.host)),
            delayed_ack: Some(DelayedAck { count: 2, timeout: Duration::from_millis(10) }),
            nagle: false,
            keep_alive,
            ip,
            ..Config::default()
        };
        [host, network]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wants(window: u64) -> Config {
        Config { receive_buffer: ReceiveBuffer::Fixed(Size(window)), ..Config::default() }
    }

    #[test]
    fn all_connections_fit_whatever_they_want() {
        for (flows, memory) in [(16, 2 << 20), (10_000, 1 << 30), (10_000, 1280 << 20), (100, 8 << 30)] {
            let limits = AgentLimits { flows, memory: Size(memory), idle: Duration::from_secs(7200) };
            let mut all = Memory::new(&limits);
            let config = wants(8 << 20);
            let grants: Vec<Grant> = (0..flows).map(|_| all.admit(&config).expect("room")).collect();
            assert!(all.reserved <= memory, "{flows} {}", all.reserved);
            assert!(grants.iter().all(|g| g.network >= LEAST && g.host >= LEAST));
            assert!(grants.windows(2).all(|pair| pair[1].bytes <= pair[0].bytes), "first come");
            assert!(all.admit(&config).is_none());
            all.release(grants[0].bytes);
            assert!(all.admit(&config).is_some());
        }
    }

    #[test]
    fn a_few_connections_get_what_they_want() {
        let limits = AgentLimits { flows: 10_000, memory: Size(1 << 30), idle: Duration::from_secs(7200) };
        let mut all = Memory::new(&limits);
        let first = all.admit(&wants(8 << 20)).unwrap();
        assert_eq!((first.network, first.host, first.bytes), (8 << 20, 1 << 20, 18 << 20));
        let small = all.admit(&wants(1000)).unwrap();
        assert_eq!((small.network, small.host), (LEAST, LEAST));
        let configs = small.configs(&wants(1000), "::1".parse().unwrap(), limits.idle);
        assert_eq!(configs[1].receive_buffer, ReceiveBuffer::Fixed(Size(1000)));
        assert_eq!((configs[1].ip, configs[0].ip), (IpVersion::V6, IpVersion::V6));
    }
}
