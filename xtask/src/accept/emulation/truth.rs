//! Checks delay, rate and loss of links.

use crate::Outcome;
use crate::accept::list::List;
use crate::accept::setup::Setup;
use lab::datagrams::{Stream, Tally, send};
use lab::scenario::OneLink;
use lab::{Rig, Who, change, delay};

/// Rate of `geo-10m`.
const GEO_BPS: f64 = 10e6;
/// RTT of `geo-10m`, including the serialisation of 84 bytes each way, ms.
const GEO_MS: f64 = 550.0 + 2.0 * 84.0 * 8.0 / GEO_BPS * 1e3;
/// Probability that a correct run lies outside its interval.
const OUTSIDE: f64 = 0.05;
/// Packets of a run that counts losses.
const PACKETS: f64 = 1e5;

pub(super) fn check(setup: &Setup, list: &mut List) -> Outcome {
    for who in [Who::Ourselves, Who::Ordinary] {
        for far in ["-4 far", "-6 far"] {
            pings(&setup.rig(who)?, list, far);
        }
    }
    let rig = setup.rig(Who::Ourselves)?;
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
    super::winds::check(setup, list)
}

fn pings(rig: &Rig, list: &mut List, far: &str) {
    let who = if rig.is_ordinary() { ", ordinary user" } else { "" };
    // IPv6 has 20 more header bytes each way
    let expected = GEO_MS + if far.starts_with("-6") { 2.0 * 20.0 * 8.0 / GEO_BPS * 1e3 } else { 0.0 };
    let what = format!("ping {far} over geo-10m{who}: median within 0.2 ms, p99 within 1 ms");
    list.judge(what, delay::pings(rig, &["geo-10m"], far, 500, 40), |p| {
        let [median, p99, max] = [p.median_ms, p.p99_ms, p.max_ms].map(|ms| ms - expected);
        let figure = format!("{median:+.3} ms, p99 {p99:+.3}, max {max:+.3}, {}/{}", p.came, p.sent);
        (figure, median.abs() <= 0.2 && p99.abs() <= 1.0 && p.came == p.sent)
    });
}

/// Loss count, with the interval for its probability.
fn within((tally, p): (Tally, f64)) -> (String, bool) {
    let (low, high, inside) = tally.within(p, OUTSIDE);
    (format!("{} of {}, 95 % interval {low} to {high}", tally.lost, tally.sent), inside)
}

/// Losses, and their probability.
fn half_rate(rig: &Rig) -> Outcome<(Tally, f64)> {
    const LOSS: f64 = 1e-2;
    let (rate, delay, buffer) = ("10 Mbit/s", "275 ms", "687500 B");
    let link = OneLink { rate, delay, buffer, loss: LOSS, seed: 4, ..OneLink::CLEAN };
    let scenario = rig.file("half.toml", &link.toml())?;
    let (ip_len, rate_bps) = (200, GEO_BPS / 2.0);
    let seconds = (PACKETS * f64::from(ip_len) * 8.0 / rate_bps).ceil() as u32 + 1;
    Ok((send(rig, &[&scenario], &Stream { ip_len, rate_bps, seconds })?, LOSS))
}

/// A packet of n bits is lost with probability 1 - (1 - ber)^n.
fn bits(rig: &Rig, ip_len: u32) -> Outcome<(Tally, f64)> {
    const BER: f64 = 2e-6;
    let (rate, delay, buffer) = ("100 Mbit/s", "10 ms", "2 MB");
    let link = OneLink { rate, delay, buffer, ber: BER, seed: 4, ..OneLink::CLEAN };
    let scenario = rig.file("bits.toml", &link.toml())?;
    let packets_per_s = 4000.0;
    let rate_bps = packets_per_s * f64::from(ip_len) * 8.0;
    let seconds = (PACKETS / packets_per_s).ceil() as u32 + 1;
    let all_right = (0..ip_len * 8).fold(1.0, |p, _| p * (1.0 - BER));
    Ok((send(rig, &[&scenario], &Stream { ip_len, rate_bps, seconds })?, 1.0 - all_right))
}
