//! Creates the applications of a scenario.

use bentpipe_base::{Purpose, World};
use bentpipe_nodes::{Paced, RequestClient, RequestServer, TelnetClient, Writer};
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
            let asker = RequestClient::new(request, response, think, count, rng());
            return (
                Writer::Requests(Box::new(asker)),
                Writer::Responses(RequestServer::new(request, response)),
            );
        }
        spec::App::Telnet { size, gap } => Writer::Telnet(Box::new(TelnetClient::new(size, gap, rng()))),
    };
    (writer, Writer::Silent)
}
