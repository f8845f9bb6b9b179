//! What the driver is told of rates.

use crate::table::FlowKey;
use bentpipe_base::{Addr, Duration, IpVersion, Rate};
use std::collections::BTreeMap;

/// The rate of a flow as it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateNews {
    /// The flow.
    pub flow: FlowKey,
    /// Its IP version.
    pub ip: IpVersion,
    /// The rate in bit/s of IP packets; `None`: there is none, or none any more.
    pub rate: Option<Rate>,
    /// Smoothed round-trip time; zero if it is not known.
    pub srtt: Duration,
}

/// The latest news of each flow until the driver takes them.
#[derive(Debug)]
pub(crate) struct Changes {
    news: BTreeMap<FlowKey, RateNews>,
    most: usize,
}

impl Changes {
    pub(crate) const fn new(most: u32) -> Self {
        Self { news: BTreeMap::new(), most: most as usize }
    }

    /// Notes the rate of a flow. If the driver takes none, the news of flows without a rate are left out
    /// first: their rates expire without it.
    pub(crate) fn note(&mut self, news: RateNews) {
        let is_new = !self.news.contains_key(&news.flow);
        if is_new && self.news.len() >= self.most {
            let without = self.news.values().find(|news| news.rate.is_none()).map(|news| news.flow);
            match without {
                Some(flow) => self.news.remove(&flow),
                None if news.rate.is_none() => return,
                None => self.news.pop_first().map(|(_, news)| news),
            };
        }
        self.news.insert(news.flow, news);
    }

    pub(crate) fn take(&mut self) -> Vec<RateNews> {
        core::mem::take(&mut self.news).into_values().collect()
    }

    pub(crate) fn addresses(&self) -> impl Iterator<Item = Addr> {
        self.news.keys().flat_map(FlowKey::addresses)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn news(port: u16, mbps: u64) -> RateNews {
        let flow = FlowKey { host: (Addr(1), port), peer: (Addr(2), 80) };
        RateNews { flow, ip: IpVersion::V4, rate: Rate::from_bps(mbps), srtt: Duration::ZERO }
    }

    #[test]
    fn the_latest_news_of_each_flow_are_kept() {
        let mut changes = Changes::new(2);
        changes.note(news(1, 10));
        changes.note(news(2, 20));
        changes.note(news(1, 5));
        assert_eq!(changes.take(), [news(1, 5), news(2, 20)]);
        assert_eq!(changes.take(), []);
    }

    #[test]
    fn they_are_bounded() {
        let mut changes = Changes::new(2);
        changes.note(news(1, 10));
        changes.note(news(2, 0));
        changes.note(news(3, 30));
        assert_eq!(changes.addresses().count(), 4);
        changes.note(news(4, 0));
        assert_eq!(changes.take(), [news(1, 10), news(3, 30)]);
    }
}
