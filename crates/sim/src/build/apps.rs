//! Creates the applications of a scenario.

use bentpipe_base::{Purpose, World};
use bentpipe_nodes::{Answerer, Asker, Paced, Reader, Typist, Writer};
use bentpipe_scenario as spec;

/// Returns the writing applications of the connecting and the accepting end. They use a random stream of
/// the flow's own.
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

/// Returns the receiving application.
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
