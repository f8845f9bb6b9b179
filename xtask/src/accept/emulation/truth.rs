//! Checks delay, rate and loss of links, and the kernel's TCP over them.

use crate::accept::list::{List, Outcome, Setup};
use lab::scenario::OneLink;
use lab::speed::{LossCount, send};
use lab::{Rig, Who, change, delay};
use serde_json::Value;
use std::time::Duration;

/// Rate of `geo-10m`.
const GEO_BPS: f64 = 10e6;
/// RTT of `geo-10m`, including the serialisation of 84 bytes each way, ms.
const GEO_MS: f64 = 550.0 + 2.0 * 84.0 * 8.0 / GEO_BPS * 1e3;
/// Probability that a correct run lies outside its interval.
const OUTSIDE: f64 = 0.05;
/// Packets of a run that counts losses.
const PACKETS: f64 = 1e5;
/// Row, window, keep-alive, measured goodput in bit/s.
const ROWS: [(u32, &str, &str, f64); 3] =
    [(2, "64 KiB", "off", 0.12e6), (3, "512 KiB", "off", 0.8e6), (5, "64 KiB", "on", 0.5e6)];
/// Start of the measured interval, s; the goodput before it varies too much.
const FROM_S: u32 = 60;

pub(super) fn check(setup: &Setup, list: &mut List) -> Outcome {
    for who in [Who::CurrentUser, Who::Unprivileged] {
        for far in ["-4 far", "-6 far"] {
            pings(&setup.rig(who)?, list, far);
        }
    }
    let rig = setup.rig(Who::CurrentUser)?;
    let seconds = setup.pick(60, 20);
    let rate = delay::rate(&rig, &["geo-10m"], 1.3 * GEO_BPS, seconds);
    list.judge(format!("rate over {seconds} s, saturated, within 0.1 %"), rate, |bps| {
        let off = bps / GEO_BPS - 1.0;
        (format!("{:.4} Mbit/s, {:+.3} %", bps / 1e6, off * 100.0), off.abs() <= 1e-3)
    });
    list.judge("lost of 1e5 packets at half rate, loss 1e-2", half_rate(&rig), within);
    for ip_len in [1500, 100] {
        let what = format!("lost of 1e5 packets of {ip_len} B, bit error rate 2e-6");
        list.judge(what, bits(&rig, ip_len), within);
    }
    // the worst of 20 changes to a running link
    list.judge("`link set` takes effect within 10 ms", change::delays(&rig, 20), |ms| {
        let worst = ms.iter().copied().fold(0.0, f64::max);
        let figure = format!("median {:.1} ms, worst {worst:.1} of {}", lab::stats::median(&ms), ms.len());
        (figure, ms.len() == 20 && worst <= 10.0)
    });
    winds(setup, list)
}

fn pings(rig: &Rig, list: &mut List, far: &str) {
    let who = if rig.is_unprivileged() { ", ordinary user" } else { "" };
    // IPv6 has 20 more header bytes each way
    let expected = GEO_MS + if far.starts_with("-6") { 2.0 * 20.0 * 8.0 / GEO_BPS * 1e3 } else { 0.0 };
    let what = format!("ping {far} over geo-10m{who}: median within 0.2 ms, p99 within 1 ms");
    list.judge(what, delay::pings(rig, &["geo-10m"], far, 500, 40), |p| {
        let [median, p99, max] = [p.median_ms, p.p99_ms, p.max_ms].map(|ms| ms - expected);
        let figure = format!("{median:+.3} ms, p99 {p99:+.3}, max {max:+.3}, {}/{}", p.received, p.sent);
        (figure, median.abs() <= 0.2 && p99.abs() <= 1.0 && p.received == p.sent)
    });
}

/// Loss count, with the interval for its probability.
fn within((tally, p): (LossCount, f64)) -> (String, bool) {
    let (low, high, inside) = tally.within(p, OUTSIDE);
    (format!("{} of {}, 95 % interval {low} to {high}", tally.lost, tally.sent), inside)
}

/// Losses, and their probability.
fn half_rate(rig: &Rig) -> Outcome<(LossCount, f64)> {
    const LOSS: f64 = 1e-2;
    let (rate, delay, buffer) = ("10 Mbit/s", "275 ms", "687500 B");
    let link = OneLink { rate, delay, buffer, loss: LOSS, seed: 4, ..OneLink::CLEAN };
    Ok((lost(rig, &link, 200, GEO_BPS / 2.0)?, LOSS))
}

/// A packet of n bits is lost with probability 1 - (1 - ber)^n.
fn bits(rig: &Rig, ip_len: u32) -> Outcome<(LossCount, f64)> {
    const BER: f64 = 2e-6;
    let (rate, delay, buffer) = ("100 Mbit/s", "10 ms", "2 MB");
    let link = OneLink { rate, delay, buffer, ber: BER, seed: 4, ..OneLink::CLEAN };
    let all_right = (0..ip_len * 8).fold(1.0, |p, _| p * (1.0 - BER));
    // 4000 packets a second
    Ok((lost(rig, &link, ip_len, 4000.0 * f64::from(ip_len) * 8.0)?, 1.0 - all_right))
}

fn lost(rig: &Rig, link: &OneLink<'_>, ip_len: u32, rate_bps: f64) -> Outcome<LossCount> {
    let scenario = rig.file("lost.toml", &link.toml())?;
    let seconds = (PACKETS * f64::from(ip_len) * 8.0 / rate_bps).ceil() as u32 + 1;
    send(rig, &[&scenario], ip_len, rate_bps, seconds)
}

/// The WINDS measurements of 2009 with the kernel's TCP: rows 2, 3 and 5 of table 1 in Lee, Yum and Wan,
/// TCP-SuperCharger.
fn winds(setup: &Setup, list: &mut List) -> Outcome {
    let goodputs = goodputs(&setup.rig(Who::CurrentUser)?, setup.pick(600, 180))?;
    for ((number, _, _, measured_bps), goodput_bps) in ROWS.iter().zip(goodputs) {
        let cure = if *number == 5 { ", with the keep-alive" } else { "" };
        let what = format!("WINDS row {number}{cure}, within 30 %{}", setup.short());
        let apart = goodput_bps / measured_bps - 1.0;
        let [here, there] = [goodput_bps, *measured_bps].map(|bps| bps / 1e6);
        let figure = format!("{here:.3} Mbit/s, measured {there:.2}: {:+.0} %", apart * 100.0);
        list.line(what, figure, apart.abs() <= 0.3);
    }
    Ok(())
}

/// Goodput of the kernel's TCP in the three rows, run concurrently for `seconds` after the start, bit/s.
fn goodputs(rig: &Rig, seconds: u32) -> Outcome<Vec<f64>> {
    let original = include_str!("../../../../scenarios/winds.toml");
    let end = format!("\"{} s\"", FROM_S + seconds);
    let text = original.replace("\"660 s\"", &end);
    let file = rig.file("winds-rows.toml", &text)?;
    let mut sessions = Vec::new();
    for (number, window, keepalive, _) in ROWS {
        let (window, keepalive) = (format!("window={window}"), format!("keepalive={keepalive}"));
        let name = format!("winds-{number}");
        let words = ["emulate", &file, "--name", &name, "--set", &window, "--set", &keepalive, "--json"];
        sessions.push(rig.start(&words)?);
    }
    let limit = Duration::from_secs(u64::from(FROM_S + seconds + 90));
    let mut rows = Vec::new();
    for (session, (number, ..)) in sessions.into_iter().zip(ROWS) {
        let done = session.wait(limit)?;
        let report: Value =
            serde_json::from_str(&done.out).map_err(|_| format!("row {number}: {}", done.describe()))?;
        let flows = report["flows"].as_array().into_iter().flatten();
        let goodput = flows.filter(|f| f["name"] == "flow").find_map(|f| f["goodput_bps"].as_f64());
        rows.push(goodput.ok_or_else(|| format!("row {number}: no goodput of `flow` in {report}"))?);
    }
    Ok(rows)
}
