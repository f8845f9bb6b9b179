//! Applications of a scenario as those of hosts.

use bentpipe_base::{Purpose, World};
use bentpipe_nodes::{Answerer, Asker, Paced, Reader, Typist, Writer};
use bentpipe_scenario as spec;

/// What the opening and the accepting end write. What is random comes from a stream of the flow's own.
pub fn writers(world: &mut World, flow: &spec::FlowSpec) -> (Writer, Writer) {
    let mut rng = || world.open_rng(&flow.name, Purpose::Application);
    let writer = match flow.app {
        spec::App::Bulk | spec::App::Udp { .. } => Writer::Bulk,
        spec::App::Transfer(size) => Writer::Transfer(size.0),
        spec::App::Rate(rate) => Writer::Paced(Paced::new(rate)),
        spec::App::Requests { request, response, think, count } => {
            let asker = Asker::new(request, response, think, count, rng());
            return (Writer::Ask(Box::new(asker)), Writer::Answer(Answerer::new(request, response)));
        }
        spec::App::Telnet { size, gap } => Writer::Telnet(Box::new(Typist::new(size, gap, rng()))),
    };
    (writer, Writer::Silent)
}

/// How the receiving application of a scenario reads.
pub const fn reader(reader: &spec::Reader) -> Reader {
    match *reader {
        spec::Reader::Eager => Reader::Eager,
        spec::Reader::Slow(rate) => Reader::Slow { rate, read: 0, since: None },
        spec::Reader::Turns { rates, each } => Reader::Turns { rates, each, turn: 0, read: 0, since: None },
        spec::Reader::Pause { from, to, every: None } => Reader::Pause(from, to),
        spec::Reader::Pause { from, to, every: Some(every) } => Reader::Pauses { from, to, every },
        spec::Reader::StopAt(at) => Reader::StopAt(at),
    }
}
