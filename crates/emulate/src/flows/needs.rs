//! What a scenario requires from its hosts' kernels: settings of namespaces, routes, and socket options.
//!
//! Nothing is changed here. [`KernelRequirements::differs`] lists what no kernel can do, and which flows run
//! without this one's TCP.

use super::differs::Differences;
use super::{Error, ends_of, is_tcp};
use bentpipe_base::Size;
use bentpipe_os::netlink::Metrics;
use bentpipe_scenario::{App, FlowSpec, Reader, Scenario};
use bentpipe_tcp::{EcnUse, Options, ReceiveBuffer};
use std::collections::BTreeMap;

/// Smallest segment that the kernel accepts (`TCP_MIN_MSS`), and the payload of a packet of 1500 B.
const SEGMENT: (u16, u16) = (88, 1460);
/// Range of datagram sizes: room for a counter and a time, and no fragmentation.
pub(super) const DATAGRAM: (u64, u64) = (16, 1472);
/// The kernel may account for a received segment with this many times its payload.
const OVERHEAD: u64 = 4;
/// Minimum receive buffer beyond that.
const LEAST_ROOM: u64 = 1 << 20;
/// Minimum limit of send buffers, which grow with cwnd and must not limit it.
const LEAST_SEND_ROOM: u64 = 64 << 20;

/// An option that is a setting of the kernel: its name for people, the setting, and whether a host offers it.
type Switch = (&'static str, &'static str, fn(&Options) -> bool);
const SWITCHES: [Switch; 3] = [
    ("SACK", "net/ipv4/tcp_sack", |o| o.sack),
    ("timestamps", "net/ipv4/tcp_timestamps", |o| o.timestamps),
    ("window scale", "net/ipv4/tcp_window_scaling", |o| o.window_scale),
];

/// Requirements of a scenario.
#[derive(Clone, Debug, Default)]
pub struct KernelRequirements {
    /// Requirements of each host with flows, in the order of the scenario.
    pub hosts: Vec<HostRequirements>,
    /// The congestion control of each flow by its kernel name; `None` for datagrams and for [`Self::engine`].
    pub congestion: Vec<Option<String>>,
    /// True for each TCP flow that has the engine at both ends: the kernel cannot run it.
    pub engine: Vec<bool>,
    /// Differences between the kernel and the scenario, one line each.
    pub differs: Vec<String>,
}

/// Requirements of one host.
#[derive(Clone, Debug, Default)]
pub struct HostRequirements {
    /// Its index among the scenario's nodes.
    pub host: usize,
    /// Kernel settings: path below /proc/sys, and value.
    pub settings: Vec<(&'static str, String)>,
    /// Metrics of the routes to other hosts, by index.
    pub routes: BTreeMap<usize, Metrics>,
    /// Sockets with a fixed window must lock their buffer, because others on this host have growing windows.
    pub locks_buffers: bool,
}

/// Returns what the flows of `scenario` require from a kernel with these congestion controls.
///
/// # Errors
/// What neither the kernel nor the engine can do here: datagrams at granted rates, two flows of the kernel
/// that need different settings of one host, invalid sizes.
pub fn kernel_requirements(scenario: &Scenario, kernel: &[String]) -> Result<KernelRequirements, Error> {
    let mut differs = Differences::new(scenario);
    let (mut congestion, mut engine) = (Vec::new(), Vec::new());
    for flow in &scenario.flows {
        sizes(flow)?;
        let signals = flow.sender.signalling.is_some() || flow.receiver.signalling.is_some();
        if signals && !is_tcp(flow) {
            return Err(Error::Signalling(flow.name.to_string()));
        }
        let known = congestion_of(flow, kernel).filter(|_| is_tcp(flow) && !signals);
        let own = is_tcp(flow) && known.is_none();
        if own {
            differs.engine_flow(flow);
        } else {
            differs.flow(flow);
        }
        engine.push(own);
        congestion.push(known);
    }
    let mut of_kernel = engine.iter().map(|own| !own);
    let mut scenario = scenario.clone();
    scenario.flows.retain(|_| of_kernel.next().unwrap_or(true));
    let hosts = host_requirements(&scenario, &mut differs)?;
    Ok(KernelRequirements { hosts, congestion, engine, differs: differs.lines() })
}

/// Requirements of the hosts with flows of the kernel, which are all flows of `scenario`.
fn host_requirements(scenario: &Scenario, differs: &mut Differences) -> Result<Vec<HostRequirements>, Error> {
    let switches: Vec<_> =
        SWITCHES.iter().map(|s| Ok((s.1, offered(scenario, *s)?))).collect::<Result<_, Error>>()?;
    let mut hosts = Vec::new();
    for host in 0..scenario.nodes.len() {
        if !scenario.flows.iter().any(|f| f.from == host || f.to == host) {
            continue;
        }
        let mut settings = vec![
            // connections must not reuse metrics of earlier ones
            ("net/ipv4/tcp_no_metrics_save", "1".to_owned()),
            ("net/ipv4/tcp_ecn", ecn(scenario, host)?.to_owned()),
        ];
        settings.extend(switches.iter().map(|(path, on)| (*path, u8::from(on[host]).to_string())));
        settings.extend(differs.of_senders(scenario, host));
        let (buffers, locks_buffers) = buffers(scenario, host);
        settings.extend(buffers);
        hosts.push(HostRequirements { host, settings, routes: routes(scenario, host)?, locks_buffers });
    }
    Ok(hosts)
}

fn sizes(flow: &FlowSpec) -> Result<(), Error> {
    if let App::Udp { size, .. } = flow.app {
        let (least, most) = DATAGRAM;
        let fits = (least..=most).contains(&size.0);
        return fits.then_some(()).ok_or_else(|| Error::Datagram(flow.name.to_string(), size.0, least, most));
    }
    let (least, most) = SEGMENT;
    let wrong = [flow.sender.mss, flow.receiver.mss].into_iter().find(|mss| !(least..=most).contains(mss));
    wrong.map_or(Ok(()), |bytes| Err(Error::Segment(flow.name.to_string(), bytes, least, most)))
}

/// The kernel's name for a scheme, if the kernel has it. Its "reno" is Reno, `NewReno` or SACK, depending on
/// the options.
fn congestion_of(flow: &FlowSpec, kernel: &[String]) -> Option<String> {
    let name = match flow.sender.scheme.name {
        "reno" | "newreno" | "sack" | "rate-halving" => "reno",
        other => other,
    };
    kernel.iter().find(|known| *known == name).cloned()
}

/// Returns for each host of `scenario` whether it offers the option. The kernel has one switch per option for
/// a whole network namespace, but uses an option only if both ends offer it. So a flow without SACK needs one
/// end with SACK disabled, which must not be a host where another flow needs it.
fn offered(scenario: &Scenario, (name, _, offers): Switch) -> Result<Vec<bool>, Error> {
    let tcp = || scenario.flows.iter().filter(|f| is_tcp(f));
    let both = |f: &FlowSpec| offers(&f.sender.options) && offers(&f.receiver.options);
    let mut needed_by: Vec<Option<&str>> = vec![None; scenario.nodes.len()];
    let mut on = vec![true; scenario.nodes.len()];
    for flow in tcp().filter(|f| both(f)) {
        needed_by[flow.from].get_or_insert(&flow.name);
        needed_by[flow.to].get_or_insert(&flow.name);
    }
    for flow in tcp().filter(|f| !both(f)) {
        let free = ends_of(flow).into_iter().filter(|(_, host, ..)| needed_by[*host].is_none());
        // prefer the end that is configured without it, else the first
        let Some((_, host, ..)) = free.min_by_key(|(_, _, config, _)| offers(&config.options)) else {
            let (host, one) = (&scenario.nodes[flow.from].name, needed_by[flow.from].unwrap_or_default());
            return Err(Error::Shared(name, host.to_string(), one.to_owned(), flow.name.to_string()));
        };
        on[host] = false;
    }
    Ok(on)
}

/// Value of tcp_ecn: a host that opens connections requests ECN; one that accepts them agrees to it (2).
fn ecn(scenario: &Scenario, host: usize) -> Result<&'static str, Error> {
    let mut opened = scenario.flows.iter().filter(|f| f.from == host && is_tcp(f));
    let asks = |f: &FlowSpec| f.sender.ecn == EcnUse::Request && f.receiver.ecn != EcnUse::Off;
    let Some(first) = opened.next() else { return Ok("2") };
    match opened.find(|f| asks(f) != asks(first)) {
        Some(other) => Err(shared("ECN", scenario, host, (first, other))),
        None => Ok(if asks(first) { "1" } else { "0" }),
    }
}

/// Settings of receive buffers. The kernel counts the memory of segments, of which the payload is a part.
fn buffers(scenario: &Scenario, host: usize) -> (Vec<(&'static str, String)>, bool) {
    let limit = |bytes: u64| bytes.min(i32::MAX as u64);
    let mut fixed = None::<Size>;
    let mut auto = None::<(Size, Size)>;
    let mut largest = 0;
    // an eager reader needs room beyond the window for out-of-order data; for others the buffer is the window
    let mut slow = true;
    for (flow, at, config, receives) in scenario.flows.iter().filter(|f| is_tcp(f)).flat_map(ends_of) {
        largest = largest.max(config.receive_buffer.max().0);
        match config.receive_buffer {
            _ if at != host || !receives => {}
            ReceiveBuffer::Fixed(size) => {
                slow &= flow.reader != Reader::Eager;
                fixed = fixed.max(Some(size));
            }
            ReceiveBuffer::Auto { initial, max } => {
                let (a, b) = auto.unwrap_or((Size::ZERO, Size::ZERO));
                auto = Some((a.max(initial), b.max(max)));
            }
        }
    }
    let send = limit(largest.saturating_mul(OVERHEAD).max(LEAST_SEND_ROOM));
    let mut settings = vec![("net/ipv4/tcp_wmem", format!("4096 16384 {send}"))];
    if let Some((initial, max)) = auto {
        // before the first segment, the window is half of the buffer (tcp_scaling_ratio)
        let (initial, max) = (limit(initial.0 * 2), limit(max.0.saturating_mul(2)));
        settings.push(("net/ipv4/tcp_rmem", format!("4096 {initial} {max}")));
        settings.push(("net/ipv4/tcp_moderate_rcvbuf", "1".to_owned()));
    } else if let Some(Size(window)) = fixed {
        let room = if slow { limit(window.saturating_mul(2)) } else { room_for(Size(window)).0 };
        settings.push(("net/ipv4/tcp_rmem", format!("4096 {room} {room}")));
        settings.push(("net/ipv4/tcp_moderate_rcvbuf", "0".to_owned()));
    }
    (settings, auto.is_some() && fixed.is_some())
}

/// Returns a receive buffer large enough for a window of `window`.
pub(super) fn room_for(window: Size) -> Size {
    Size((window.0.saturating_mul(OVERHEAD) + LEAST_ROOM).min(i32::MAX as u64))
}

/// Initial windows and quick ACKs as route metrics.
fn routes(scenario: &Scenario, host: usize) -> Result<BTreeMap<usize, Metrics>, Error> {
    let mut routes: BTreeMap<usize, (Metrics, &FlowSpec)> = BTreeMap::new();
    for (flow, at, config, _) in scenario.flows.iter().filter(|f| is_tcp(f)).flat_map(ends_of) {
        if at != host {
            continue;
        }
        let to = if flow.from == host { flow.to } else { flow.from };
        let metrics = Metrics {
            initcwnd: Some(config.initial_window),
            quickack: config.delayed_ack.is_none().then_some(true),
            ..Metrics::default()
        };
        let (known, first) = routes.entry(to).or_insert_with(|| (metrics.clone(), flow));
        if known.initcwnd != metrics.initcwnd {
            return Err(shared("the initial window", scenario, host, (first, flow)));
        }
        if known.quickack != metrics.quickack {
            return Err(shared("delayed acknowledgments", scenario, host, (first, flow)));
        }
    }
    Ok(routes.into_iter().map(|(to, (metrics, _))| (to, metrics)).collect())
}

fn shared(
    what: &'static str,
    scenario: &Scenario,
    host: usize,
    (one, other): (&FlowSpec, &FlowSpec),
) -> Error {
    Error::Shared(what, scenario.nodes[host].name.to_string(), one.name.to_string(), other.name.to_string())
}
