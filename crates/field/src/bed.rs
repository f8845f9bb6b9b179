//! The test bed: a sender, a router with the gateway, the hop, a second router, and receivers, each in its
//! own network namespace.
//!
//! ```text
//! sender 10.81.1.2 -- veth -- west [router, gateway] tuna ==hop==
//!     tunb [router] east0 -- veth -- 10.82.0.2 receiver
//!                   east1 -- veth -- 10.82.1.2 receiver
//! ```

use crate::namespace::Namespace;
use bentpipe_os::TunPort;
use std::net::Ipv4Addr;

/// Kernel settings of a receiving host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Receiver {
    /// Today's kernel with a receive buffer large enough for every test.
    #[default]
    Modern,
    /// Like a host of 2001: 65 535 B window, no window scaling, no timestamps, SACK.
    Old,
    /// Like `Old`, without SACK.
    Plain,
}

/// The test bed: its namespaces.
#[derive(Debug)]
pub struct TestBed {
    /// The sending host.
    pub sender: Namespace,
    /// The router with the gateway.
    pub router: Namespace,
    far: Namespace,
    /// The receiving hosts.
    pub receivers: Vec<Namespace>,
}

/// The sender's address.
pub const SENDER: Ipv4Addr = Ipv4Addr::new(10, 81, 1, 2);

/// Returns the address of receiver `i`.
pub const fn receiver(i: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 82, i as u8, 2)
}

/// Interface queue length, large enough that no packet is dropped there.
const TXQ: &str = "txqueuelen 20000";

impl TestBed {
    /// Creates the bed and the hop's two interfaces. `wmem` is the maximum send buffer of a socket, bytes.
    ///
    /// # Errors
    /// If not run as root, or if a program fails.
    pub fn new(receivers: &[Receiver], wmem: u64) -> Result<(Self, [TunPort; 2]), String> {
        let places: Result<Vec<Namespace>, String> = receivers.iter().map(|_| Namespace::new()).collect();
        let bed = Self {
            sender: Namespace::new()?,
            router: Namespace::new()?,
            far: Namespace::new()?,
            receivers: places?,
        };
        bed.settings(receivers, wmem)?;
        wire((&bed.sender, "eth0", "10.81.1.2/24"), (&bed.router, "west", "10.81.1.1/24"))?;
        bed.sender.shell("ip route add default via 10.81.1.1")?;
        for (i, place) in bed.receivers.iter().enumerate() {
            let (near, address) = (format!("10.82.{i}.1/24"), format!("10.82.{i}.2/24"));
            wire((place, "eth0", &address), (&bed.far, &format!("east{i}"), &near))?;
            place.shell(&format!("ip route add default via 10.82.{i}.1"))?;
        }
        let hop = |place: &Namespace, name: &str| {
            let port = place.within(|| TunPort::create_plain(name).map_err(|e| e.to_string()))?;
            place.shell(&format!("ip link set {name} mtu 1500 {TXQ} up; ip route add default dev {name}"))?;
            Ok::<TunPort, String>(port)
        };
        let ports = [hop(&bed.router, "tuna")?, hop(&bed.far, "tunb")?];
        Ok((bed, ports))
    }

    fn settings(&self, receivers: &[Receiver], wmem: u64) -> Result<(), String> {
        let filter = [("conf/all/rp_filter", "0"), ("conf/default/rp_filter", "0")];
        for place in [&self.sender, &self.router, &self.far].into_iter().chain(&self.receivers) {
            place.set(&filter)?;
        }
        [&self.router, &self.far].iter().try_for_each(|router| router.set(&[("ip_forward", "1")]))?;
        let wmem = format!("4096 65536 {wmem}");
        self.sender.set(&[
            ("tcp_wmem", &wmem),
            ("tcp_rmem", "4096 131072 67108864"),
            ("tcp_no_metrics_save", "1"),
        ])?;
        for (place, kind) in self.receivers.iter().zip(receivers) {
            place.set(match kind {
                Receiver::Modern => &[("tcp_rmem", "4096 131072 67108864")],
                Receiver::Old => &OLD[..3],
                Receiver::Plain => &OLD,
            })?;
        }
        Ok(())
    }
}

/// Settings of old receivers. The kernel keeps half of the buffer for itself, so the window is 65 535 B.
const OLD: [(&str, &str); 4] = [
    ("tcp_window_scaling", "0"),
    ("tcp_timestamps", "0"),
    ("tcp_rmem", "4096 131072 131072"),
    ("tcp_sack", "0"),
];

/// Connects two namespaces by a veth pair.
fn wire(a: (&Namespace, &str, &str), b: (&Namespace, &str, &str)) -> Result<(), String> {
    let (name, peer, net) = (a.1, b.1, b.0.path());
    a.0.shell(&format!("ip link add {name} {TXQ} type veth peer name {peer} {TXQ} netns {net}"))?;
    for (place, name, address) in [a, b] {
        place.shell(&format!("ip addr add {address} dev {name}; ip link set {name} up"))?;
    }
    Ok(())
}
