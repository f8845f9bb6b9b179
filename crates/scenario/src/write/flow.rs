//! Writes a flow without its TCP options.

use super::{at, line, quoted, rate, size, time};
use crate::form::Word as _;
use crate::types::{App, DatagramSpec, FlowSpec, NodeSpec, Pattern, Reader, Start, WhenRefused};
use bentpipe_base::Size;

pub(super) fn write(out: &mut String, flow: &FlowSpec, nodes: &[NodeSpec]) {
    out.push_str("\n[[flows]]\n");
    line(out, "name", &quoted(&flow.name));
    line(out, "from", &quoted(&nodes[flow.from].name));
    line(out, "to", &quoted(&nodes[flow.to].name));
    let app = match flow.app {
        App::Bulk => quoted("bulk"),
        App::Transfer(bytes) => format!("{{ transfer = {} }}", size(bytes)),
        App::Rate(rate) => format!("{{ rate = {} }}", self::rate(rate)),
        App::Lasting(length) => format!("{{ lasting = {} }}", time(length)),
        App::Requests { request, response, think, count } => {
            let count = count.map_or_else(String::new, |n| format!(", count = {n}"));
            let (request, response, think) = (size(request), size(response), time(think));
            format!(
                "{{ requests = {{ request = {request}, response = {response}, think = {think}{count} }} }}"
            )
        }
        App::Telnet { size: bytes, gap } => {
            format!("{{ telnet = {{ size = {}, gap = {} }} }}", size(bytes), time(gap))
        }
        App::Udp { size: bytes, pattern } => udp(bytes, pattern, flow.datagrams),
    };
    line(out, "app", &app);
    if let Some(group) = &flow.group {
        line(out, "group", &quoted(group));
    }
    let reader = match flow.reader {
        Reader::Eager => quoted("eager"),
        Reader::Slow(rate) => format!("{{ rate = {} }}", self::rate(rate)),
        Reader::Turns { rates, each } => {
            let ([one, other], each) = (rates.map(rate), time(each));
            format!("{{ turns = {{ rate = {one}, then = {other}, each = {each} }} }}")
        }
        Reader::Pause { from, to, every } => {
            let every = every.map_or(String::new(), |every| format!(", every = {}", time(every)));
            format!("{{ pause = {{ from = {}, to = {}{every} }} }}", at(from), at(to))
        }
        Reader::StopAt(instant) => format!("{{ stop_at = {} }}", at(instant)),
    };
    line(out, "reader", &reader);
    let start = match flow.start {
        Start::At(instant) => at(instant),
        Start::Uniform(from, to) => format!("{{ from = {}, to = {} }}", at(from), at(to)),
    };
    line(out, "start", &start);
}

fn udp(bytes: Size, pattern: Pattern, DatagramSpec { lasting, when_refused }: DatagramSpec) -> String {
    let (speed, pattern) = match pattern {
        Pattern::Constant(speed) => (speed, quoted("constant")),
        Pattern::Poisson(speed) => (speed, quoted("poisson")),
        Pattern::OnOff { rate: speed, on, off } => {
            (speed, format!("{{ on = {}, off = {} }}", time(on), time(off)))
        }
    };
    let lasting = lasting.map_or_else(String::new, |lasting| format!(", lasting = {}", time(lasting)));
    let refused = match when_refused {
        WhenRefused::Silent => String::new(),
        WhenRefused::Send => format!(", refused = {}", quoted(when_refused.word())),
    };
    let (rate, size) = (rate(speed), size(bytes));
    format!("{{ udp = {{ rate = {rate}, size = {size}, pattern = {pattern}{lasting}{refused} }} }}")
}
