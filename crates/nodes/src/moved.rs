//! What exact fast-forward compares and moves of a host ([`bentpipe_base::shift`]).
//!
//! A host whose connections write and read without a rate of their own. Wake-ups for timers that most often
//! have moved on come last among those of their time, so it does not matter when a host requests them: they
//! are not compared, and are requested again after a move.

use crate::app::Writer;
use crate::ends::Endpoint;
use crate::host::Host;
use bentpipe_base::shift::{Shift, Walk};
use bentpipe_base::{Cx, Instant, Slot};

impl Shift for Endpoint {
    fn shift(&mut self, walk: &mut Walk<'_>) {
        walk.expect(self.reader.is_eager(), "an application that reads at a rate");
        let conn = &mut self.conn;
        walk.inner(conn);
        match &mut self.writer {
            Writer::Silent | Writer::Bulk => {}
            Writer::Transfer(left) => conn.shift_unwritten(walk, left),
            Writer::Paced(_)
            | Writer::Lasting(_)
            | Writer::Requests(_)
            | Writer::Responses(_)
            | Writer::Telnet(_) => {
                walk.refuse("an application that writes at a rate or in turn");
            }
        }
        walk.deadline(&mut self.app_at);
        let mut armed = if self.rests { Instant::NEVER } else { self.armed };
        walk.time(&mut armed);
        if !self.rests {
            self.armed = armed;
        }
    }
}

impl Shift for Host {
    fn shift(&mut self, walk: &mut Walk<'_>) {
        let Self { addr: _, ends, listeners: _, planned: _, isn: _, jitter: _, held, refused, udp, peers: _ } =
            self;
        walk.expect(
            held.as_ref().is_none_or(|held| held.is_empty()) && udp.is_none(),
            "datagrams, or packets held by jitter",
        );
        walk.same(refused);
        for end in ends.all() {
            walk.same(&end.is_some());
            if let Some(end) = end {
                walk.inner(end);
            }
        }
    }
}

impl Host {
    /// Requests the wake-ups that come last again, after a move.
    pub fn request_wakes(&mut self, cx: &mut Cx<'_>) {
        for (i, end) in self.ends.all().enumerate() {
            let Some(end) = end else { continue };
            end.behind = Instant::NEVER;
            if end.rests {
                end.armed = Instant::NEVER;
                end.arm(cx, Slot(i as u32));
            }
        }
    }
}
