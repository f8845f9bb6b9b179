//! Writes a gateway.

use super::observe::direction_name;
use super::{line, quoted, rate, size, time};
use crate::form::Word as _;
use crate::types::{GatewaySpec, LinkSpec};
use bentpipe_gateway::{Copies, Limits, Rule};

pub(super) fn write(out: &mut String, gateway: &GatewaySpec, links: &[LinkSpec]) {
    let config = &gateway.config;
    out.push_str("\n[[gateways]]\n");
    line(out, "name", &quoted(&gateway.name));
    line(out, "link", &direction_name(links, gateway.hop));
    line(out, "rate", &config.rate.map_or_else(|| quoted("none"), rate));
    line(out, "framing", &size(config.framing));
    line(out, "mode", &quoted(config.mode.word()));
    if let Some(alpha) = config.alpha {
        line(out, "alpha", &format!("{alpha:?}"));
    }
    line(out, "k", &config.k.to_string());
    line(out, "share", &format!("{:?}", config.share));
    let copies = match config.copies {
        Copies::Auto => quoted("auto"),
        Copies::Fixed(n) => n.to_string(),
    };
    line(out, "copies", &copies);
    if let Some(every) = config.keep_alive {
        line(out, "keep_alive", &time(every));
    }
    let Limits { flows, memory, per_flow, .. } = config.limits;
    let (memory, per_flow) = (size(memory), size(per_flow));
    line(out, "limits", &format!("{{ flows = {flows}, memory = {memory}, per_flow = {per_flow} }}"));
    line(out, "accelerate", &config.accelerate.to_string());
    line(out, "otherwise", &quoted(gateway.policy.otherwise.word()));
    if !gateway.policy.rules.is_empty() {
        let rules: Vec<String> = gateway.policy.rules.iter().map(|r| format!("    {},", rule(r))).collect();
        line(out, "rules", &format!("[\n{}\n]", rules.join("\n")));
    }
}

fn rule(rule: &Rule) -> String {
    let mut keys = vec![format!("action = {}", quoted(rule.action.word()))];
    let mut list = |key: &str, items: Vec<String>| {
        if !items.is_empty() {
            keys.push(format!("{key} = [{}]", items.join(", ")));
        }
    };
    list("from", rule.from.iter().map(|p| quoted(&p.to_string())).collect());
    list("to", rule.to.iter().map(|p| quoted(&p.to_string())).collect());
    list("port", rule.ports.iter().map(|p| quoted(&p.to_string())).collect());
    list("from_port", rule.from_ports.iter().map(|p| quoted(&p.to_string())).collect());
    list("dscp", rule.dscp.iter().map(u8::to_string).collect());
    if let Some(side) = rule.opened_from {
        keys.push(format!("opened_from = {}", quoted(side.word())));
    }
    format!("{{ {} }}", keys.join(", "))
}
