//! A router: static routes, no delay of its own.

use bentpipe_base::trace::{DropCause, Event, Mask};
use bentpipe_base::{Addr, Cx, Input, Node, Port};

/// Forwards by destination address.
#[derive(Debug, Default)]
pub struct Router {
    /// Port by address; addresses are small interned numbers.
    routes: Vec<Option<Port>>,
    dropped: u64,
}

impl Router {
    /// Sends packets for `to` out of `port`.
    pub fn route(&mut self, to: Addr, port: Port) {
        let index = to.0 as usize;
        if self.routes.len() <= index {
            self.routes.resize(index + 1, None);
        }
        self.routes[index] = Some(port);
    }

    /// Packets without a route or with no hops left.
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }
}

impl Node for Router {
    #[inline]
    fn handle(&mut self, cx: &mut Cx<'_>, input: Input) {
        let Input::Packet(_, mut packet) = input else { return };
        let route = self.routes.get(packet.dst.0 as usize).copied().flatten();
        let cause = match route {
            Some(port) if packet.hops > 0 => {
                packet.hops -= 1;
                cx.send(port, packet);
                return;
            }
            Some(_) => DropCause::HopLimit,
            None => DropCause::NoRoute,
        };
        self.dropped += 1;
        cx.trace(Mask::PACKETS, || Event::Dropped(&packet, cause));
        cx.recycle(packet);
    }
}
