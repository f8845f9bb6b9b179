//! A router: static routes, no delay of its own.

use bentpipe_base::trace::{DropCause, Event, Mask};
use bentpipe_base::{Addr, Cx, Input, Node, Pkt, Port};

/// Forwards by destination address.
#[derive(Debug, Default)]
pub struct Router {
    /// Port by address; addresses are small interned numbers.
    routes: Vec<Option<Port>>,
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

    /// Routes packets for `to` like those for `like`; without a route for `like`, removes that for `to`.
    pub fn route_alike(&mut self, to: Addr, like: Addr) {
        if let Some(port) = self.routes.get(like.0 as usize).copied().flatten() {
            self.route(to, port);
        } else if let Some(route) = self.routes.get_mut(to.0 as usize) {
            *route = None;
        }
    }

    /// The port by which packets for `to` leave.
    #[inline]
    pub fn port_of(&self, to: Addr) -> Option<Port> {
        self.routes.get(to.0 as usize).copied().flatten()
    }

    /// Returns the packet and the port it leaves by; `None` if it was dropped.
    #[inline]
    pub fn forward(&mut self, cx: &mut Cx<'_>, mut packet: Pkt) -> Option<(Port, Pkt)> {
        let route = self.port_of(packet.dst);
        let cause = match route {
            Some(port) if packet.hops > 0 => {
                packet.hops -= 1;
                return Some((port, packet));
            }
            Some(_) => DropCause::HopLimit,
            None => DropCause::NoRoute,
        };
        cx.trace(Mask::PACKETS, || Event::Dropped(&packet, cause));
        cx.recycle(packet);
        None
    }
}

impl Node for Router {
    #[inline]
    fn handle(&mut self, cx: &mut Cx<'_>, input: Input) {
        if let Input::Packet(_, packet) = input
            && let Some((port, packet)) = self.forward(cx, packet)
        {
            cx.send(port, packet);
        }
    }
}
