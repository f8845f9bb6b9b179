//! The data path between two simulated ports, with a simulated clock.

use bentpipe_base::{Instant, NodeId, Size};
use bentpipe_driver::{Core, LiveNetwork, Pacing, Unit};
use bentpipe_gateway::{Config, Gateway};
use bentpipe_network::Network;
use bentpipe_os::port::{PacketPort, PortDrops, Received};
use bentpipe_os::{Clock, wait::Ready};
use bentpipe_wire::offload::VnetHeader;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::{Arc, Mutex};

/// Start time, later than any real uptime, so that the real clock has no effect.
pub(crate) const BEGIN: u64 = 1 << 60;

/// A unit that a port reads or sends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wire {
    pub(crate) vnet: VnetHeader,
    pub(crate) bytes: Vec<u8>,
}

/// Units to read with their arrival times, and units sent.
type Input = Arc<Mutex<VecDeque<(u64, Wire)>>>;
type Output = Arc<Mutex<Vec<Wire>>>;

/// A simulated port.
#[derive(Debug)]
struct SimulatedPort {
    fd: File,
    input: Input,
    output: Output,
}

impl PacketPort for SimulatedPort {
    fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<Received>> {
        let Some((at, wire)) = self.input.lock().ok().and_then(|mut i| i.pop_front()) else {
            return Ok(None);
        };
        let len = wire.bytes.len().min(buffer.len());
        buffer[..len].copy_from_slice(&wire.bytes[..len]);
        Ok(Some(Received { vnet: wire.vnet, len, at }))
    }

    fn send(&mut self, vnet: &VnetHeader, parts: &[IoSlice<'_>]) -> io::Result<bool> {
        let bytes = parts.iter().flat_map(|part| part.to_vec()).collect();
        if let Ok(mut output) = self.output.lock() {
            output.push(Wire { vnet: *vnet, bytes });
        }
        Ok(true)
    }

    fn drops(&mut self) -> io::Result<PortDrops> {
        Ok(PortDrops::default())
    }
}

/// A running gateway.
pub(crate) struct DataPath {
    core: Core,
    inputs: [Input; 2],
    outputs: [Output; 2],
}

/// Units that left, with their side.
pub(crate) type Sent = Vec<(usize, Wire)>;

impl DataPath {
    pub(crate) fn new(config: Config, seed: u64) -> io::Result<Self> {
        let (inputs, outputs): ([Arc<_>; 2], [Arc<_>; 2]) = Default::default();
        let port = |side: usize| -> io::Result<Box<dyn PacketPort>> {
            let (input, output) = (Arc::clone(&inputs[side]), Arc::clone(&outputs[side]));
            Ok(Box::new(SimulatedPort { fd: File::open("/dev/null")?, input, output }))
        };
        let ports = vec![port(0)?, port(1)?];
        let add = |network: &mut Network| vec![network.add_gateway(Gateway::new(config))];
        let net = LiveNetwork::chain(add, seed, Unit::Packet, Size(u64::MAX));
        let core = Core::new(net, ports, Clock::of_the_machine(), Pacing::Cheap);
        Ok(Self { core, inputs, outputs })
    }

    fn take(&self) -> Sent {
        let side = |side: usize| {
            let sent = self.outputs[side].lock().map(|mut o| core::mem::take(&mut *o)).unwrap_or_default();
            sent.into_iter().map(move |wire| (side, wire))
        };
        side(0).chain(side(1)).collect()
    }

    /// Feeds a unit to a side.
    pub(crate) fn feed(&mut self, side: usize, at: u64, wire: Wire) -> io::Result<Sent> {
        if let Ok(mut input) = self.inputs[side].lock() {
            input.push_back((at, wire));
        }
        let mut ready = Ready::default();
        ready.add(side);
        self.core.read(ready)?;
        Ok(self.take())
    }

    /// Advances the time.
    pub(crate) fn advance(&mut self, until: u64) -> io::Result<Sent> {
        self.core.advance(Instant(until));
        self.core.deliver()?;
        Ok(self.take())
    }

    /// The next time at which the gateway must be called.
    pub(crate) fn next_at(&mut self) -> Option<u64> {
        self.core.net.network.next_at().map(|at| at.0)
    }

    /// A normal stop.
    pub(crate) fn release(&mut self) -> io::Result<Sent> {
        self.core.net.with(Network::release);
        self.core.deliver()?;
        Ok(self.take())
    }

    /// True if the gateway keeps no packets or bytes.
    pub(crate) fn is_empty(&mut self) -> bool {
        let held = self.core.net.network.gateway(NodeId(0)).map_or(0, |found| found.0.report().held.0);
        held == 0 && self.core.net.store.borrow().is_empty()
    }
}
