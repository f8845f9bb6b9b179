//! Resumes the connections of an earlier data path, and keeps records for a later one.

use super::engine::{Event, Level};
use super::gateway_node::{ADDRESSES, call, gateway, gateway_and_addresses};
use super::record_file::{RecordFile, RecordFileWriter, SavedRecords, SlotCounts};
use bentpipe_base::Instant;
use bentpipe_driver::{Core, DataThreadTask};
use bentpipe_gateway::Limits;
use bentpipe_os::clock::monotonic;
use std::io;
use std::sync::mpsc::Sender;

fn send_event(news: &Sender<Event>, level: Level, text: String) {
    // when the gateway ends, events are not read any more
    let _ = news.send(Event { level, name: "connections", text });
}

/// Reads the records of an earlier gateway at `place` and creates a new file. Returns the writer of the file,
/// and a task to run before the first packet.
pub(super) fn begin(
    place: Option<&RecordFile>,
    limits: &Limits,
    news: Sender<Event>,
) -> (RecordWriter, Option<DataThreadTask>) {
    let mut keeping = RecordWriter { keeper: None, is_on: false, is_behind: false, news: news.clone() };
    let Some(place) = place else { return (keeping, None) };
    let kept = SavedRecords::read(place, monotonic()).unwrap_or_else(|refused| {
        send_event(&news, Level::Warning, format!("{} is not used: {refused}", place.path.display()));
        None
    });
    keeping.is_on = true;
    match RecordFileWriter::create(place, SlotCounts { addresses: ADDRESSES, flows: limits.connections() }) {
        Ok(keeper) => keeping.keeper = Some(keeper),
        Err(error) => keeping.lose(&error),
    }
    let errand = move |core: &mut Core| {
        if let Some(kept) = kept {
            resume(core, kept, &news);
        }
        core.net.network.world.addresses.keep_journal();
        gateway(core).keep_journal();
    };
    (keeping, Some(Box::new(errand)))
}

fn resume(core: &mut Core, kept: SavedRecords, news: &Sender<Event>) {
    let gone = kept.gone;
    let (flows, damaged) = kept.restore_addresses(&mut core.net.network.world.addresses);
    // a lost port ends the thread in its first turn
    let Ok(restored) = call(core, |gateway, cx| gateway.restore(cx, &flows)) else { return };
    let count = |n: u32, what: &str| if n == 0 { String::new() } else { format!(", {n} {what}") };
    let damaged = damaged + restored.damaged;
    let text = format!(
        "{} resumed after {:.1} s{}{}",
        restored.flows,
        gone.as_secs_f64(),
        count(restored.refused, "did not fit into the table"),
        count(damaged, "records are damaged")
    );
    let level = if damaged + restored.refused == 0 { Level::Info } else { Level::Warning };
    send_event(news, level, text);
}

/// Writes changed records on the data thread.
#[derive(Debug)]
pub(super) struct RecordWriter {
    keeper: Option<RecordFileWriter>,
    /// True if the gateway queues changes; they must then be fetched even if there is no file any more.
    is_on: bool,
    is_behind: bool,
    news: Sender<Event>,
}

impl RecordWriter {
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
        match written.and_then(|more| keeper.heartbeat(now, monotonic).map(|()| more)) {
            Ok(more) => self.is_behind = more,
            Err(error) => self.lose(&error),
        }
    }

    /// Writes all pending changes and then stops writing: the state after acceleration is switched off must
    /// not reach the next gateway.
    pub(super) fn close(&mut self, core: &mut Core) -> Result<(), String> {
        self.turn(core);
        while self.is_behind {
            self.turn(core);
        }
        self.keeper.take().map(drop).ok_or_else(|| "there is no file".to_owned())
    }

    /// When [`RecordWriter::turn`] must be called again: at once if there is more to write.
    pub(super) fn next(&self) -> Option<Instant> {
        self.is_behind.then_some(Instant::ZERO)
    }

    pub(super) fn fit(&mut self, limits: &Limits) {
        if let Some(Err(error)) = self.keeper.as_mut().map(|keeper| keeper.grow(limits.connections())) {
            self.lose(&error);
        }
    }

    fn lose(&mut self, error: &io::Error) {
        if let Some(mut keeper) = self.keeper.take() {
            keeper.give_up();
        }
        self.is_behind = false;
        send_event(&self.news, Level::Warning, format!("not saved for a restart: {error}"));
    }
}
