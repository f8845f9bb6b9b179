//! Creates reports of a simulated network, a gateway or a connection.

mod flow;
mod probes;

pub(crate) use flow::flow_report;
pub use flow::{
    context, datagrams, describe_schemes, requests, sender_report, sending_end, set_advertised_window, telnet,
};

use crate::build::Network;
use bentpipe_base::{Duration, Instant, NodeId};
use bentpipe_gateway::{Gateway, PassReason};
use bentpipe_link::LinkStats;
use bentpipe_report::metric::Names;
use bentpipe_report::{
    ChargeReport, Counts, FlowReport, FlowRouterReport, GatewayFlows, GatewayReport, InstrumentReport,
    LinkReport, NodeReport, QueueReport, Report, TransferReport,
};
use bentpipe_scenario::{ParamValue, Scenario};
use serde_json::{Map, Value};
use std::sync::Arc;

/// Creates a report. Totals and transfers are computed from the flows in the scenario's order.
pub fn assemble(
    scenario: &Scenario,
    ran: Duration,
    mut flows: Vec<FlowReport>,
    links: Vec<LinkReport>,
    instruments: Vec<InstrumentReport>,
) -> Report {
    describe_schemes(&mut flows);
    Report {
        seed: Some(scenario.seed),
        simulated_s: ran.as_secs_f64(),
        parameters: parameters(scenario),
        transfers: transfers(scenario, &flows),
        links,
        instruments,
        ..Report::new(&scenario.title, flows)
    }
}

/// Returns the parameters of a scenario with their values.
pub fn parameters(scenario: &Scenario) -> Map<String, Value> {
    scenario.parameters.iter().map(|(k, v)| (k.clone(), json(v))).collect()
}

fn json(value: &ParamValue) -> Value {
    match value {
        ParamValue::Text(t) => Value::from(t.as_str()),
        ParamValue::Number(n) => Value::from(*n),
        ParamValue::Integer(n) => Value::from(*n),
        ParamValue::Switch(b) => Value::from(*b),
    }
}

/// Transfers, in the order of their first connections.
fn transfers(scenario: &Scenario, flows: &[FlowReport]) -> Vec<TransferReport> {
    let mut all: Vec<TransferReport> = Vec::new();
    for (spec, flow) in scenario.flows.iter().zip(flows) {
        let Some(name) = &spec.group else { continue };
        let tcp = flow.tcp_or_zeros();
        // connections of a transfer are adjacent, so search from the end
        let known = all.iter_mut().rev().find(|t| t.name == *name);
        if let Some(t) = known {
            t.connections += 1;
            t.bytes += tcp.bytes_acked;
            t.goodput_bps += flow.goodput_bps;
            t.finished_s = t.finished_s.zip(tcp.finished_s).map(|(a, b)| a.max(b));
        } else {
            all.push(TransferReport {
                name: name.clone(),
                connections: 1,
                bytes: tcp.bytes_acked,
                finished_s: tcp.finished_s,
                goodput_bps: flow.goodput_bps,
            });
        }
    }
    all
}

/// Reports of all links up to now.
pub fn link_reports(net: &mut Network) -> Vec<LinkReport> {
    let run = net.sim.now().since(Instant::ZERO);
    let report = |(name, id): &(Arc<str>, NodeId)| {
        let (link, mut cx) = net.sim.link(*id)?;
        let s = link.totals(&mut cx);
        let mean = s.queue_mean_since(&LinkStats::default(), run);
        Some(LinkReport {
            name: Arc::clone(name),
            utilisation: s.utilisation(run),
            packets: s.served.packets,
            drops: s.drops().map(|(cause, n)| (cause.key().to_owned(), n)).collect(),
            marked: s.marked,
            carried_bps: None,
            queue_packets: QueueReport { mean, peak: s.queue_peak },
        })
    };
    let mut all = Vec::with_capacity(net.links.len());
    all.extend(net.links.iter().filter_map(report));
    all
}

/// Reports of all gateways up to now.
pub fn gateway_reports(net: &mut Network) -> Vec<GatewayReport> {
    let report = |(name, id): &(String, NodeId)| Some(gateway_report(name.clone(), net.sim.gateway(*id)?.0));
    net.gateways.iter().filter_map(report).collect()
}

/// Reports of all flow routers up to now.
pub fn flow_router_reports(net: &Network) -> Vec<FlowRouterReport> {
    let report = |((name, id), payers): (&(String, NodeId), &Vec<String>)| {
        let counters = net.sim.counters(*id);
        let of = |key: &str| counters.iter().find(|(k, _)| *k == key).map_or(0, |(_, n)| *n);
        FlowRouterReport {
            name: name.clone(),
            flows: of("flows"),
            requests: of("requests"),
            refused: of("refused"),
            preempted: of("preempted"),
            reductions: of("reductions"),
            policed: of("policed"),
            reserved_bps: of("reserved_bps"),
            given_bps: of("given_bps"),
            used_bps: of("used_bps"),
            charges: charges(&counters, payers),
        }
    };
    net.flow_routers.iter().zip(&net.payers).map(report).collect()
}

/// What each payer of a flow router is charged.
fn charges(counters: &[(&'static str, u64)], payers: &[String]) -> Vec<ChargeReport> {
    let of = |key: &'static str| counters.iter().filter(move |(k, _)| *k == key).map(|(_, n)| *n);
    let bytes = of("charged_to_sender").zip(of("charged_to_receiver"));
    let charge = |(payer, (sent_bytes, received_bytes)): (&String, (u64, u64))| ChargeReport {
        payer: payer.clone(),
        sent_bytes,
        received_bytes,
    };
    payers.iter().zip(bytes).map(charge).collect()
}

/// Reports of all custom nodes up to now.
pub fn node_reports(net: &Network) -> Vec<NodeReport> {
    let report = |(name, kind, id): &(String, &'static str, NodeId)| NodeReport {
        name: name.clone(),
        kind: (*kind).to_owned(),
        counters: net.sim.counters(*id).into_iter().map(|(key, n)| (key.to_owned(), n)).collect(),
    };
    net.customs.iter().map(report).collect()
}

fn gateway_report(name: String, gateway: &Gateway) -> GatewayReport {
    let of = gateway.report();
    let counters = &of.counters;
    let passed = PassReason::ALL.into_iter().map(|why| (why.key(), counters.passed(why)));
    GatewayReport {
        name,
        flows: GatewayFlows { accelerated: counters.accelerated, passed: nonzero(passed) },
        forwarded: counters.forwarded,
        losses: counters.losses,
        repairs: counters.repairs,
        resent: counters.resent,
        copies: counters.copies,
        timeouts: counters.timeouts,
        keep_alives: gateway.config().keep_alive.map(|_| counters.keep_alives),
        held_peak_bytes: of.held_peak.0,
        not_forwarded: nonzero(counters.not_forwarded().into_iter()),
    }
}

/// Omits counts of zero.
fn nonzero(counts: impl Iterator<Item = (&'static str, u64)>) -> Counts {
    counts.filter(|(_, n)| *n > 0).map(|(key, n)| (key.to_owned(), n)).collect()
}

/// Names of the flows, link directions, gateways and flow routers in reports of `scenario`.
pub fn names(scenario: &Scenario) -> Names<'_> {
    Names {
        flows: scenario.flows.iter().map(|f| &*f.name).collect(),
        links: scenario.links.iter().flat_map(|l| [&*l.name, &*l.reverse_name]).collect(),
        gateways: scenario.gateways.iter().map(|g| g.name.as_str()).collect(),
        flow_routers: scenario.flow_routers.iter().map(|r| r.name.as_str()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_scenario::{Source, load};

    /// A metric gives the same error before and after the run.
    #[test]
    fn a_report_has_the_names_of_its_scenario() {
        for text in [
            include_str!("../../../../scenarios/fairness.toml"),
            include_str!("../../../../scenarios/supercharger.toml"),
            include_str!("../../../../scenarios/rate-transfer.toml"),
        ] {
            let scenario = load(&Source::new("test.toml", text), &[], None).unwrap();
            let moment = Scenario { duration: Duration::from_millis(1), ..scenario.clone() };
            assert_eq!(names(&scenario), Names::from(&crate::run(&moment)));
        }
    }
}
