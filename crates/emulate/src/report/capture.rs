//! Writes captures on a separate thread, so that a slow disk never delays a packet.

use bentpipe_base::Instant;
use bentpipe_driver::LiveNetwork;
use bentpipe_live::relay::Names;
use bentpipe_live::tap::{ChunkReceiver, Record, Tap, chunk_channel};
use bentpipe_live::thread::Install;
use bentpipe_os::{Clock, clock};
use bentpipe_results::{CaptureFiles, CapturedPacket, Error, FinishedCapture};
use bentpipe_scenario::Scenario;
use std::io;
use std::path::{Path, PathBuf};
use std::thread::{Builder, JoinHandle};

#[derive(Debug)]
pub(super) struct Capture {
    dir: PathBuf,
    writer: JoinHandle<CaptureFiles>,
}

impl Capture {
    /// Creates the files and starts the writer. The returned [`Install`] must be installed on the network.
    pub(super) fn begin(dir: &Path, scenario: &Scenario, run: Clock) -> Result<(Self, Install), Error> {
        let names: Vec<&str> = scenario.links.iter().flat_map(|l| [&*l.name, &*l.reverse_name]).collect();
        let start = clock::realtime().saturating_sub(run.now().0);
        let files = CaptureFiles::create(dir, &scenario.captures, &names, start)?;
        let (outlet, inlet) = chunk_channel();
        let captures = scenario.captures.clone();
        let end = Instant::ZERO + scenario.duration;
        let install = move |net: &mut LiveNetwork, names: &Names| {
            let tap = Tap::new(net, names, &captures, end, outlet);
            net.network.world.set_sink(Box::new(tap));
        };
        let writer = Builder::new().name("bentpipe-capture".to_owned()).spawn(move || write(files, &inlet));
        let writer = writer.map_err(|cause| Error::io(dir, "start a thread for captures", cause))?;
        Ok((Self { dir: dir.to_owned(), writer }, Box::new(install)))
    }

    /// Completes the files, once the tap is gone.
    pub(super) fn finish(self, end: Instant) -> Result<Vec<FinishedCapture>, Error> {
        let cause = || io::Error::other("an internal check failed; please report it");
        let broken = |_| Error::io(&self.dir, "write captures", cause());
        let mut files = self.writer.join().map_err(broken)?;
        files.extend_to(end.0);
        files.finish()
    }
}

fn write(mut files: CaptureFiles, inlet: &ChunkReceiver) -> CaptureFiles {
    while let Some(chunk) = inlet.next_chunk() {
        for (record, bytes) in chunk.packets() {
            let Record { at, capture, point, cause: comment, original, .. } = *record;
            files.add(capture, &CapturedPacket { point, time: at.0, bytes, wire_len: original, comment });
        }
        for (capture, lost) in chunk.lost.iter().enumerate() {
            for (point, packets) in lost.iter().enumerate() {
                files.count_lost(capture, point, *packets);
            }
        }
        inlet.done(chunk);
    }
    files
}
