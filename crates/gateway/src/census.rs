//! A census of the windows that hosts behind the hop announce.
//!
//! Source: TCP-SuperCharger, section 1, which looked at six programs by hand: a window W over a round trip T
//! limits a connection to W/T, whatever the hop could carry. Each connection and each client counts once,
//! with its largest window, also those that are not accelerated. Classes are powers of two. Windows of
//! connections whose handshake was not seen are unknown, since their scale is.

use bentpipe_base::{Duration, Rate, Size};
use core::net::IpAddr;
use std::collections::BTreeMap;

/// Maximum number of clients that are told apart.
const CLIENTS: usize = 65_536;
/// Number of classes: the largest window is 2^30 (RFC 7323, section 2.3).
const CLASSES: usize = 31;

/// A connection's largest window so far, in a new class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LargestWindow {
    pub(crate) window: u32,
    pub(crate) class: u8,
    pub(crate) is_accelerated: bool,
    /// The class that it was counted in, and whether as accelerated.
    pub(crate) before: Option<(u8, bool)>,
}

/// Returns the class of a window: it is at most two to this power. None for a closed window.
pub(crate) const fn class_of(window: u32) -> Option<u8> {
    match window {
        0 => None,
        1 => Some(1),
        _ => Some((u32::BITS - (window - 1).leading_zeros()) as u8),
    }
}

/// Hosts behind the hop whose largest announced windows are between two powers of two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowClass {
    /// The largest of these windows.
    pub window: Size,
    /// Connections since the gateway started.
    pub connections: u64,
    /// Of these, accelerated ones.
    pub accelerated: u64,
    /// Hosts.
    pub clients: u64,
}

impl WindowClass {
    /// Rate that a connection with this window cannot exceed over a round trip of `rtt`.
    pub fn limit(&self, rtt: Duration) -> Option<Rate> {
        if rtt.is_zero() {
            return None;
        }
        Rate::from_bps((self.window.bits() as f64 / rtt.as_secs_f64()) as u64)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Census {
    classes: [WindowClass; CLASSES],
    /// The class of each client.
    clients: BTreeMap<IpAddr, u8>,
    /// There were more clients than can be told apart.
    pub(crate) is_full: bool,
    /// RTT of the hop in handshakes, smoothed as in RFC 6298.
    pub(crate) hop_rtt: Option<Duration>,
}

impl Census {
    pub(crate) fn count(&mut self, client: IpAddr, news: &LargestWindow) {
        if let Some((before, was_accelerated)) = news.before {
            let class = &mut self.classes[usize::from(before)];
            class.connections -= 1;
            class.accelerated -= u64::from(was_accelerated);
        }
        let class = &mut self.classes[usize::from(news.class)];
        class.window = class.window.max(Size(u64::from(news.window)));
        class.connections += 1;
        class.accelerated += u64::from(news.is_accelerated);
        let is_full = self.clients.len() >= CLIENTS;
        match self.clients.get_mut(&client) {
            Some(before) if *before < news.class => {
                self.classes[usize::from(*before)].clients -= 1;
                *before = news.class;
            }
            Some(_) => return,
            None if is_full => {
                self.is_full = true;
                return;
            }
            None => _ = self.clients.insert(client, news.class),
        }
        self.classes[usize::from(news.class)].clients += 1;
    }

    /// Notes the RTT of the hop in a handshake.
    pub(crate) fn sample(&mut self, trip: Duration) {
        let old = self.hop_rtt.unwrap_or(trip);
        self.hop_rtt = Some(Duration(old.0 - old.0 / 8 + trip.0 / 8));
    }

    /// Classes with connections, smallest windows first.
    pub(crate) fn classes(&self) -> Vec<WindowClass> {
        self.classes.iter().filter(|class| class.connections > 0).copied().collect()
    }

    /// Memory for the clients, without that of the tree's nodes.
    pub(crate) fn footprint(&self) -> usize {
        self.clients.len() * (size_of::<IpAddr>() + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;

    fn news(window: u32, before: Option<u32>) -> LargestWindow {
        let before = before.and_then(class_of).map(|class| (class, true));
        LargestWindow { window, class: class_of(window).unwrap(), is_accelerated: true, before }
    }

    fn client(n: u32) -> IpAddr {
        IpAddr::V4(Ipv4Addr::from(n))
    }

    #[test]
    fn a_class_ends_at_a_power_of_two() {
        let classes = [1, 17_520, 32_768, 32_769, 65_535, 65_536, 65_537, 65_535 << 14].map(class_of);
        assert_eq!(classes.map(Option::unwrap), [1, 15, 15, 16, 16, 16, 17, 30]);
        assert_eq!(class_of(0), None);
    }

    #[test]
    fn each_connection_and_each_client_counts_once_with_its_largest_window() {
        let mut census = Census::default();
        census.count(client(1), &news(17_520, None));
        census.count(client(1), &news(65_535, None));
        census.count(client(1), &news(16_384, None));
        census.count(client(2), &news(64_240, None));
        census.count(client(2), &news(6 << 20, Some(64_240)));
        let class = |window, connections, clients| WindowClass {
            window: Size(window),
            connections,
            accelerated: connections,
            clients,
        };
        let wanted = [class(16_384, 1, 0), class(17_520, 1, 0), class(65_535, 1, 1), class(6 << 20, 1, 1)];
        assert_eq!(census.classes(), wanted);
    }

    #[test]
    fn a_window_limits_to_itself_per_round_trip() {
        let class = WindowClass { window: Size(65_535), ..WindowClass::default() };
        assert_eq!(class.limit(Duration::from_millis(500)).map(Rate::bps), Some(1_048_560));
        assert_eq!(class.limit(Duration::ZERO), None);
    }

    #[test]
    fn its_memory_is_bounded() {
        let mut census = Census::default();
        (0..=CLIENTS as u32).for_each(|n| census.count(client(n), &news(65_535, None)));
        let all = census.classes()[0];
        assert_eq!((all.connections, all.clients), (CLIENTS as u64 + 1, CLIENTS as u64));
        assert!(census.is_full);
    }
}
