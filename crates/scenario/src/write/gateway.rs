//! A gateway.

use super::observe::name;
use super::{line, quoted, rate, size};
use crate::form::Word as _;
use crate::types::{GatewaySpec, LinkSpec};
use bentpipe_gateway::Copies;

pub(super) fn write(out: &mut String, gateway: &GatewaySpec, links: &[LinkSpec]) {
    let config = &gateway.config;
    out.push_str("\n[[gateways]]\n");
    line(out, "name", &quoted(&gateway.name));
    line(out, "link", &name(links, gateway.at));
    line(out, "rate", &config.rate.map_or_else(|| quoted("none"), rate));
    line(out, "framing", &size(config.framing));
    line(out, "mode", &quoted(config.mode.word()));
    line(out, "share", &format!("{:?}", config.share));
    let copies = match config.copies {
        Copies::Auto => quoted("auto"),
        Copies::Fixed(n) => n.to_string(),
    };
    line(out, "copies", &copies);
    let limits = config.limits;
    let limits = format!(
        "{{ flows = {}, memory = {}, per_flow = {} }}",
        limits.flows,
        size(limits.memory),
        size(limits.per_flow)
    );
    line(out, "limits", &limits);
    line(out, "accelerate", &config.accelerate.to_string());
}
