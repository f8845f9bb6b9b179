//! Chooses at which host to disable a TCP option, so that each connection has the options of its flow.
//!
//! The kernel has one switch per option for a whole network namespace, but uses an option only if both ends
//! offer it. So a flow without SACK needs one end with SACK disabled, and that must not be a host where
//! another flow needs it.

use super::{Error, ends_of, is_tcp};
use bentpipe_scenario::{FlowSpec, Scenario};
use bentpipe_tcp::Options;

/// Largest window without the window scale option.
pub(super) const UNSCALED: u64 = 65_535;

/// An option that is a setting of the kernel.
pub(super) struct Switch {
    pub(super) name: &'static str,
    pub(super) path: &'static str,
    offers: fn(&Options) -> bool,
}

pub(super) const SWITCHES: [Switch; 3] = [
    Switch { name: "SACK", path: "net/ipv4/tcp_sack", offers: |o| o.sack },
    Switch { name: "timestamps", path: "net/ipv4/tcp_timestamps", offers: |o| o.timestamps },
    Switch { name: "window scale", path: "net/ipv4/tcp_window_scaling", offers: |o| o.window_scale },
];

/// For each host of `scenario`: whether it offers `option`. A host that is free to choose follows its flows.
pub(super) fn offered(scenario: &Scenario, option: &Switch) -> Result<Vec<bool>, Error> {
    let tcp = || scenario.flows.iter().filter(|f| is_tcp(f));
    let both = |f: &FlowSpec| (option.offers)(&f.sender.options) && (option.offers)(&f.receiver.options);
    let mut needed_by: Vec<Option<&str>> = vec![None; scenario.nodes.len()];
    let mut on = vec![true; scenario.nodes.len()];
    for flow in tcp().filter(|f| both(f)) {
        needed_by[flow.from].get_or_insert(&flow.name);
        needed_by[flow.to].get_or_insert(&flow.name);
    }
    for flow in tcp().filter(|f| !both(f)) {
        let ends = ends_of(flow).map(|(_, host, config, _)| (host, config));
        let free = |host: usize| needed_by[host].is_none();
        // prefer the end that is configured without it
        let off = ends.iter().find(|(host, config)| free(*host) && !(option.offers)(&config.options));
        let off = off.or_else(|| ends.iter().find(|(host, _)| free(*host)));
        let Some((host, _)) = off else {
            let (host, one) = (&scenario.nodes[flow.from].name, needed_by[flow.from].unwrap_or_default());
            return Err(Error::Shared(option.name, host.clone(), one.to_owned(), flow.name.clone()));
        };
        on[*host] = false;
    }
    Ok(on)
}
