//! How much of its rate a flow uses, and when it asks for more.
//!
//! Source: TIA-1039 (2006) and L. G. Roberts' explicit-rate TCP: a sender may ask for more every 128 packets.
//! Here it asks for twice its rate if those used 90 % of it, and for the same rate after 2 s of silence,
//! since the routers may have given it away.

use bentpipe_base::{Duration, Instant, Rate, Size};

/// Packets with data between wishes.
const EVERY: u32 = 128;
/// Share of the rate that must be used, in percent.
const USED: u64 = 90;
/// Silence after which the rate must be confirmed.
const SILENCE: Duration = Duration::from_secs(2);

/// The packets with data that a host sends.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    packets: u32,
    bytes: u64,
    since: Instant,
    last: Option<Instant>,
}

/// What a flow should ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// More: it uses what it has.
    More(Rate),
    /// The same, to be confirmed.
    Same(Rate),
}

impl Usage {
    /// Counts a packet with data of a flow that has this rate.
    pub(crate) fn add(&mut self, now: Instant, size: Size, granted: Option<Rate>) -> Option<Wish> {
        let silent = self.last.is_some_and(|last| now.since(last) > SILENCE);
        self.last = Some(now);
        if silent || self.packets == 0 {
            (self.packets, self.bytes, self.since) = (0, 0, now);
        }
        self.packets += 1;
        self.bytes += size.0;
        let granted = granted?;
        if silent {
            return Some(Wish::Same(granted));
        }
        if self.packets <= EVERY {
            return None;
        }
        // the first packet begins the time, the last one ends it
        let used = self.bytes.saturating_sub(size.0).saturating_mul(100);
        let had = granted.bytes_in(now.since(self.since)).0.saturating_mul(USED);
        (self.packets, self.bytes, self.since) = (1, size.0, now);
        let more = Rate::from_bps(granted.bps().saturating_mul(2))?;
        (used >= had).then_some(Wish::More(more))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Option<Rate> = Rate::from_bps(8_000_000);

    /// Sends 1000-byte packets at an interval; returns which of them had a wish.
    fn wishes(usage: &mut Usage, from: u64, interval: u64, packets: u64) -> Vec<(u64, Wish)> {
        let wish = |i: u64| usage.add(Instant(from + i * interval), Size(1000), RATE).map(|wish| (i, wish));
        (0..packets).filter_map(wish).collect()
    }

    #[test]
    fn a_flow_that_uses_its_rate_asks_for_twice_every_128_packets() {
        let twice = Wish::More(Rate::from_bps(16_000_000).unwrap());
        // 1 ms per packet is the rate
        assert_eq!(wishes(&mut Usage::default(), 7, 1_000_000, 300), [(128, twice), (256, twice)]);
        assert_eq!(wishes(&mut Usage::default(), 7, 1_110_000, 300).len(), 2, "90 %");
        assert_eq!(wishes(&mut Usage::default(), 7, 1_120_000, 300), []);
    }

    #[test]
    fn after_silence_the_rate_is_to_be_confirmed() {
        let mut usage = Usage::default();
        assert_eq!(wishes(&mut usage, 0, 1_000_000, 10), []);
        let same = Wish::Same(RATE.unwrap());
        assert_eq!(wishes(&mut usage, 2_010_000_000, 1_000_000, 120), [(0, same)]);
        assert_eq!(usage.add(Instant(9_000_000_000), Size(1000), None), None);
    }
}
