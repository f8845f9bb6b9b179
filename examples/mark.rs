//! `bentpipe` with a node of one's own: it marks every n-th data segment with a DSCP, in each direction.
//!
//! ```toml
//! [[nodes]]
//! name = "marker"
//! kind = "mark"
//! link = "satellite"   # it stands before this direction of a link
//! every = 10
//! dscp = 10            # AF11
//! ```
//!
//! `cargo run --example mark -- sim FILE`; so do `emulate`, `sweep`, `replay` and all other commands.

use bentpipe::{CustomNode, Cx, Dscp, Input, Node, Port, Proto, Registry, SettingError, Settings};
use std::process::ExitCode;

/// Marks every n-th data segment.
#[derive(Debug)]
pub(crate) struct Mark {
    every: u64,
    dscp: Dscp,
    /// Data segments that came in at each port, and those of them that were marked.
    seen: [u64; 2],
    marked: [u64; 2],
}

impl Node for Mark {
    fn handle(&mut self, cx: &mut Cx<'_>, input: Input) {
        let Input::Packet(port, mut packet) = input else { return };
        let side = port.0 as usize;
        if packet.proto == Proto::Tcp && packet.body.len > 0 {
            self.seen[side] += 1;
            if self.seen[side].is_multiple_of(self.every) {
                packet.dscp = self.dscp;
                self.marked[side] += 1;
            }
        }
        cx.send(Port(1 - port.0), packet);
    }

    fn counters(&self, each: &mut dyn FnMut(&'static str, u64)) {
        each("data_forward", self.seen[0]);
        each("data_backward", self.seen[1]);
        each("marked_forward", self.marked[0]);
        each("marked_backward", self.marked[1]);
    }
}

impl CustomNode for Mark {
    const KIND: &'static str = "mark";
    const KEYS: &'static [(&'static str, &'static str)] =
        &[("every", "a data segment of so many is marked; 10"), ("dscp", "the mark, 0 to 63; 10")];

    fn read(settings: &Settings) -> Result<Self, SettingError> {
        let every = settings.whole("every", 1..=1_000_000)?.unwrap_or(10);
        let dscp = settings.whole("dscp", 0..=63)?.unwrap_or(10);
        let dscp = Dscp::new(dscp as u8).ok_or_else(|| settings.refuse("dscp", "not a DSCP", "0 to 63"))?;
        Ok(Self { every, dscp, seen: [0; 2], marked: [0; 2] })
    }
}

fn main() -> ExitCode {
    bentpipe::cli(Registry::default().with::<Mark>())
}
