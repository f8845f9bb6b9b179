//! Writes a flow router.

use super::observe::direction_name;
use super::{line, quoted, rate, size, time};
use crate::types::{FlowRouterSpec, LinkSpec};
use bentpipe_flow_router::{ClassConfig, RouterConfig, RouterEncoding, Rule};

pub(super) fn write(out: &mut String, router: &FlowRouterSpec, links: &[LinkSpec]) {
    let RouterConfig { classes, policy, half_open, flows, .. } = &router.config;
    out.push_str("\n[[flow_routers]]\n");
    line(out, "name", &quoted(&router.name));
    line(out, "link", &direction_name(links, router.hop));
    line(out, "rate", &rate(router.config.rate));
    let told = RouterEncoding::ALL.into_iter().filter(|encoding| router.config.encodings.has(*encoding));
    let words: Vec<String> = told.map(|encoding| quoted(encoding.word())).collect();
    line(out, "encodings", &format!("[{}]", words.join(", ")));
    line(out, "utilisation", &format!("{:?}", router.config.utilisation));
    line(out, "idle", &time(router.config.idle));
    line(out, "idle_maximum", &time(router.config.idle_maximum));
    line(out, "mtu", &size(router.config.mtu));
    list(out, "classes", classes.iter().map(class));
    if !policy.rules.is_empty() {
        list(out, "rules", policy.rules.iter().map(|r| rule(r, classes)));
    }
    let half_open_time = time(router.config.half_open_time);
    let limits = format!("flows = {flows}, half_open = {half_open}, half_open_time = {half_open_time}");
    line(out, "limits", &format!("{{ {limits} }}"));
}

/// Writes a list with one item per line.
fn list(out: &mut String, key: &str, items: impl Iterator<Item = String>) {
    let items: Vec<String> = items.map(|item| format!("    {{ {item} }},")).collect();
    line(out, key, &format!("[\n{}\n]", items.join("\n")));
}

fn class(class: &ClassConfig) -> String {
    let name = quoted(&class.name);
    format!("name = {name}, weight = {:?}, reservable = {:?}", class.weight, class.reservable)
}

fn rule(rule: &Rule, classes: &[ClassConfig]) -> String {
    let class = classes.get(rule.class).map(|class| format!("class = {}", quoted(&class.name)));
    let parts = [
        Some(format!("from = {}", quoted(&rule.from.to_string()))),
        class,
        rule.available.map(|r| format!("available = {}", rate(r))),
        rule.guaranteed.map(|r| format!("guaranteed = {}", rate(r))),
        Some(format!("preemption = {}, delay = {}", rule.preemption, rule.delay)),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}
