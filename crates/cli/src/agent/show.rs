//! Output of `bentpipe agent check` and `status`.

use crate::doctor::findings_text;
use crate::link::{listed, rate, time};
use crate::outcome::{Failure, to_json};
use bentpipe_agent::deploy::Check;
use bentpipe_agent::kernel::KernelView;
use bentpipe_agent::path::DatagramFlow;
use bentpipe_agent::split::FlowView;
use bentpipe_agent::status::Status;
use core::fmt::Write as _;
use serde_json::json;

/// Formats the result of `bentpipe agent check`.
pub(super) fn check(file: &str, check: &Check, json: bool) -> Result<String, Failure> {
    if !json {
        return Ok(check_text(check));
    }
    to_json(&json!({
        "file": file,
        "method": check.method,
        "takes": check.site.intercepted,
        "steps": check.site.steps(),
        "starts": check.site.is_good(),
        "findings": check.site.findings,
    }))
}

fn check_text(check: &Check) -> String {
    let mut out = format!("method:\n  {}\n\nwould go through the agent:\n", check.method);
    let mut lines = |title: &str, lines: &[String]| {
        out += title;
        for line in lines.iter().flat_map(|step| step.lines()) {
            let _ = writeln!(out, "  {line}");
        }
    };
    lines("", &check.site.intercepted);
    lines("\nwould be changed, and reverted at the end:\n", &check.site.steps());
    out += "\nthis machine:\n";
    out += &findings_text(&check.site.findings);
    out += if check.site.is_good() { "\nthe agent would start\n" } else { "\nthe agent would not start\n" };
    out
}

/// Formats the state of an agent.
pub(super) fn status(status: &Status, json: bool) -> Result<String, Failure> {
    if json {
        return to_json(status);
    }
    let Status { name, method, kind, file, .. } = status;
    let drains = if status.draining { ", draining" } else { "" };
    let mut out = format!("agent {name} ({method}, {kind}, {file}{drains})  {}\n", time(status.uptime_s));
    let mut line = |name: &str, text: &str| {
        let _ = writeln!(out, "{name:<12} {text}");
    };
    if let Some(kernel) = &status.kernel {
        kernel_lines(status, kernel, &mut line);
    } else {
        split_lines(status, &mut line);
    }
    line("dropped", &listed(&status.port_drops));
    line("sandbox", &format!("Landlock {}; seccomp {}", status.sandbox.landlock, status.sandbox.seccomp));
    let gone = || "gone: nobody sees to the connections if the agent is killed".to_owned();
    line("watcher", &status.watcher.map_or_else(gone, |pid| format!("process {pid}")));
    if !status.flows.is_empty() {
        out += &cells(["host", "remote", "state", "asked", "granted", "rate", "sent", "received"]);
        status.flows.iter().for_each(|flow| out += &row(flow));
    }
    Ok(out)
}

/// What there is to say of method "kernel".
fn kernel_lines(status: &Status, kernel: &KernelView, line: &mut impl FnMut(&str, &str)) {
    let [adopted, fell_back, left, refused] = kernel.sockets;
    let ends =
        format!("{adopted} got a rate, {fell_back} fell back, {left} left with its end, {refused} refused");
    line("connections", &format!("{} now", status.open));
    line(
        "sockets",
        &format!("congestion control {}: {ends}; no room for {}", kernel.control, kernel.no_room),
    );
    line("exchange", &listed(&kernel.exchange));
    for (name, was, value) in &kernel.raised {
        let [was, value] = [was, value].map(|text| text.replace('\t', " "));
        line("raised", &format!("{name}: {was} -> {value}"));
    }
    if kernel.unlisted > 0 {
        line(
            "unguarded",
            &format!("{} connections found no room in the list for the guard", kernel.unlisted),
        );
    }
}

/// What there is to say of method "split".
fn split_lines(status: &Status, line: &mut impl FnMut(&str, &str)) {
    let Status { counters, traffic, .. } = status;
    let [from_host, from_network] = counters.failed;
    let ends = format!(
        "{} delivered, {} refused, {} unanswered, {from_host} ended by the host and {from_network} by the network",
        counters.closed, counters.refused, counters.unanswered
    );
    line("connections", &format!("{} now, {} in all: {ends}", status.open, counters.connections));
    let [passed_there, passed_back] = traffic.passed;
    let not_taken = format!("{} too many, {} not taken", counters.too_many, counters.not_taken);
    line("passed", &format!("{passed_there} packets to the network, {passed_back} to the host; {not_taken}"));
    let [reserved, used, limit] = status.memory;
    line("memory", &format!("{reserved} B set aside of {limit} B, {used} B in use"));
    if let Some(datagrams) = &status.datagrams {
        line("datagrams", &listed(&datagrams.counters));
        datagrams.flows.iter().for_each(|flow| line("", &datagram_row(flow)));
    }
}

fn datagram_row(flow: &DatagramFlow) -> String {
    let bps = |bps: Option<u64>| bps.map_or("-".to_owned(), |bps| rate(bps as f64));
    let DatagramFlow { host, remote, rate: word, waiting, .. } = flow;
    let (asked, granted) = (bps(flow.asked_bps), bps(flow.granted_bps));
    format!("{host} to {remote}: asked for {asked}, granted {granted} ({word}), {waiting} B wait")
}

fn row(flow: &FlowView) -> String {
    let bps = |bps: Option<u64>| bps.map_or("-".to_owned(), |bps| rate(bps as f64));
    let state = format!("{:?}", flow.state).to_lowercase();
    let [sent, received] = flow.bytes.map(|bytes| bytes.to_string());
    let word = flow.rate.as_deref().unwrap_or("-");
    cells([
        &flow.host,
        &flow.remote,
        &state,
        &bps(flow.asked_bps),
        &bps(flow.granted_bps),
        word,
        &sent,
        &received,
    ])
}

fn cells(cells: [&str; 8]) -> String {
    let [host, remote, state, asked, granted, rate, sent, received] = cells;
    format!(
        "{host:<22} {remote:<22} {state:<8} {asked:>12} {granted:>12} {rate:<12} {sent:>12} {received:>12}\n"
    )
}
