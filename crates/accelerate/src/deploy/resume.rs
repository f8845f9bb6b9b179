//! Resumes the connections of an earlier data path, and keeps records for a later one.

use super::event::{Event, Level};
use super::gateway_node::{ADDRESSES, call, gateway, gateway_and_addresses};
use super::kept::{Extent, Keeper, Kept, RecordFile};
use bentpipe_base::Instant;
use bentpipe_driver::{Core, Errand};
use bentpipe_gateway::Limits;
use bentpipe_os::clock::monotonic;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// Events of the data thread.
pub(super) type News = Arc<Mutex<Vec<Event>>>;

fn tell(news: &News, level: Level, text: String) {
    let mut news = news.lock().unwrap_or_else(PoisonError::into_inner);
    news.push(Event { level, name: "connections", text });
}

/// Returns the events since the last call.
pub(super) fn take(news: &News) -> Vec<Event> {
    core::mem::take(&mut *news.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Maximum number of table slots with these limits.
const fn places(limits: &Limits) -> u32 {
    limits.flows.saturating_add(limits.opening).saturating_add(limits.passing)
}

/// Reads the records of an earlier gateway at `place` and creates a new file. Returns the writer of the file,
/// and a task to run before the first packet.
pub(super) fn begin(place: Option<&RecordFile>, limits: &Limits, news: &News) -> (Keeping, Option<Errand>) {
    let mut keeping = Keeping { keeper: None, is_on: false, is_behind: false, news: Arc::clone(news) };
    let Some(place) = place else { return (keeping, None) };
    let kept = Kept::read(place, monotonic()).unwrap_or_else(|refused| {
        tell(news, Level::Warning, format!("{} is not used: {refused}", place.path.display()));
        None
    });
    keeping.is_on = true;
    match Keeper::create(place, Extent { addresses: ADDRESSES, flows: places(limits) }) {
        Ok(keeper) => keeping.keeper = Some(keeper),
        Err(error) => keeping.lose(&error),
    }
    let news = Arc::clone(news);
    let errand = move |core: &mut Core| {
        if let Some(kept) = kept {
            resume(core, kept, &news);
        }
        core.net.network.world.addresses.keep_journal();
        gateway(core).keep_journal();
    };
    (keeping, Some(Box::new(errand)))
}

fn resume(core: &mut Core, kept: Kept, news: &News) {
    let gone = kept.gone;
    let ready = kept.name(&mut core.net.network.world.addresses);
    // a lost port ends the thread in its first turn
    let Ok(restored) = call(core, |gateway, cx| gateway.restore(cx, ready.flows())) else { return };
    let count = |n: u32, what: &str| if n == 0 { String::new() } else { format!(", {n} {what}") };
    let damaged = ready.damaged() + restored.damaged;
    let text = format!(
        "{} are taken up after {:.1} s{}{}",
        restored.flows,
        gone.as_secs_f64(),
        count(restored.refused, "find no room"),
        count(damaged, "records are damaged")
    );
    let level = if damaged + restored.refused == 0 { Level::Info } else { Level::Warning };
    tell(news, level, text);
}

/// Writes changed records on the data thread.
#[derive(Debug)]
pub(super) struct Keeping {
    keeper: Option<Keeper>,
    /// True if the gateway queues changes; they must then be fetched even if there is no file any more.
    is_on: bool,
    is_behind: bool,
    news: News,
}

impl Keeping {
    /// Writes changes between two turns of the data thread.
    pub(super) fn turn(&mut self, core: &mut Core) {
        if !self.is_on {
            return;
        }
        let now = core.clock.now();
        let Some(keeper) = &mut self.keeper else {
            while gateway(core).take_changed().is_some() {}
            while core.net.network.world.addresses.take_changed().is_some() {}
            return;
        };
        let (gateway, addresses) = gateway_and_addresses(core);
        let written = keeper.write(gateway, addresses);
        match written.and_then(|more| keeper.beat(now, monotonic).map(|()| more)) {
            Ok(more) => self.is_behind = more,
            Err(error) => self.lose(&error),
        }
    }

    /// Writes all pending changes and then stops writing: the state after acceleration is switched off must
    /// not reach the next gateway.
    pub(super) fn close(&mut self, core: &mut Core) -> Result<(), String> {
        loop {
            self.turn(core);
            if !self.is_behind {
                break;
            }
        }
        self.is_behind = false;
        self.keeper.take().map(drop).ok_or_else(|| "there is no file".to_owned())
    }

    /// At once if there is more to write.
    pub(super) fn next(&self) -> Option<Instant> {
        self.is_behind.then_some(Instant::ZERO)
    }

    /// Makes room for the connections that `limits` allow.
    pub(super) fn fit(&mut self, limits: &Limits) {
        if let Some(Err(error)) = self.keeper.as_mut().map(|keeper| keeper.fit(places(limits))) {
            self.lose(&error);
        }
    }

    /// Removes the file after an error.
    fn lose(&mut self, error: &io::Error) {
        if let Some(mut keeper) = self.keeper.take() {
            keeper.give_up();
        }
        self.is_behind = false;
        let text = format!("they are not kept for a restart: {error}");
        tell(&self.news, Level::Warning, text);
    }
}
