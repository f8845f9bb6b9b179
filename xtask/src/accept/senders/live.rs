//! The engine as a real TCP against the kernel's, over emulated links (6).

use crate::accept::List;
use crate::accept::place::{Place, judge};
use crate::item::{Item, Verdict};
use lab::stats::median;
use lab::transfers::{Link, Order, Result as Transferred, Tcp, mixture, run};
use lab::{Outcome, Rig, Who};
use std::time::Duration;

/// Case L: bytes, and how often.
pub(super) const L_BYTES: u64 = 8_388_608;
const RUNS: usize = 20;
/// Case L with a receiver that shows a large window from the first segment on: what opening it costs.
const OPEN: Link<'static> = Link { first_buffer: 8 << 20, ..Link::L };
/// Case W: its rate, and the share of a packet that is payload beside timestamps.
const W_BPS: f64 = 24e6;
const PAYLOAD: f64 = 1448.0 / 1500.0;
const W_LOSS: f64 = 0.01;
/// What counts of it: a receiver's window opens from 64 KB only over some six round trips of a second, and the last repairs come late.
const W_START_S: f64 = 10.0;
const W_END: f64 = 0.97;
/// Transfers of random size and kind, as the issue asks and shorter.
const INTACT: (usize, usize) = (1000, 200);
/// Transfers of one session.
const BATCH: usize = 100;
/// Schemes of the mixture, as far as this build has them.
const SCHEMES: [&str; 18] = [
    "reno",
    "newreno",
    "sack",
    "rate-halving",
    "vegas",
    "cubic",
    "hybla",
    "westwood",
    "bic",
    "htcp",
    "fast",
    "bbr",
    "bbr3",
    "careful-resume",
    "peach",
    "peach-plus",
    "swift-sat",
    "swift-faithful",
];
const LIMIT: Duration = Duration::from_secs(900);

/// A place to run in, or a line that says why there is none.
pub(super) fn rig(place: &Place, list: &mut List) -> Option<Rig> {
    let rig = place.rig(Who::Ourselves);
    if let Err(why) = &rig {
        list.line(6, &Item::new("a place to run in", why.lines().next().unwrap_or_default(), Verdict::Miss));
    }
    rig.ok()
}

/// The short transfer, which wants a machine that does nothing else.
pub(super) fn short(place: &Place, list: &mut List) {
    let Some(rig) = rig(place, list) else { return };
    let kernel = times(&rig, &Link::L, (Tcp::Kernel, Tcp::Kernel), &["bbr"]);
    list.line(6, &judge("case L, the kernel's own bbr (reported)", kernel, |t| (seconds(&t), true)));
    case_l(&rig, list, &["bbr"], 1.15);
    let bold = ["bbr", "--set", "startup_conserves=false"];
    let what = "the same, startup_conserves = false (reported)";
    let bold = times(&rig, &Link::L, (Tcp::Engine, Tcp::Kernel), &bold);
    list.line(6, &judge(what, bold, |t| (seconds(&t), true)));
    // twelve of 1500 bytes are a hundredth of the transfer, and a sender that is told its rate has no use for them
    let granted = ["explicit-rate", "--set", "grant=100 Mbit/s", "--set", "timestamps=false"];
    case_l(&rig, list, &granted, 0.90);
    let pair = (Tcp::Engine, Tcp::Kernel);
    for (what, link) in [
        ("the same with timestamps (reported)", Link::L),
        ("the same, receiver's buffer large from the start too (reported)", OPEN),
    ] {
        list.line(6, &judge(what, times(&rig, &link, pair, &granted[..3]), |t| (seconds(&t), true)));
    }
}

/// The long transfer.
pub(super) fn long(place: &Place, list: &mut List) {
    let Some(rig) = rig(place, list) else { return };
    // about a minute of the link; where something is asked two, so that lumps average out
    case_w(&rig, list, &["bbr"], 150_000_000, None);
    case_w(&rig, list, &["explicit-rate", "--set", "grant=24 Mbit/s"], 300_000_000, Some(0.97));
}

/// Transfers of all kinds.
pub(super) fn mixed(place: &Place, list: &mut List) {
    let Some(rig) = rig(place, list) else { return };
    let count = if place.long { INTACT.0 } else { INTACT.1 };
    let short = if place.long { "" } else { " (short)" };
    let what = format!("{count} transfers of all kinds, 1 % lost both ways: all intact{short}");
    list.line(6, &judge(&what, intact(&rig, count), |bytes| (format!("{bytes} bytes"), true)));
}

fn is_known(rig: &Rig, scheme: &str) -> bool {
    // a scheme that is not there is refused before anything else is looked at
    let done = rig.run(&["send", "nobody.invalid:1", "--tcp", scheme], Duration::from_secs(30));
    done.is_ok_and(|done| done.err.contains("nobody.invalid"))
}

pub(super) fn order(pair: (Tcp, Tcp), bytes: u64, seed: u64, tcp: &[&str]) -> Order {
    let tcp = tcp.iter().map(|word| (*word).to_owned()).collect();
    Order { pair, from_near: true, v6: false, bytes, seed, tcp }
}

/// Seconds from the call to the last acknowledgment, over case L.
fn times(rig: &Rig, link: &Link<'_>, pair: (Tcp, Tcp), tcp: &[&str]) -> Outcome<Vec<f64>> {
    let orders: Vec<_> = (0..RUNS).map(|i| order(pair, L_BYTES, i as u64, tcp)).collect();
    let results = run(rig, link, 1, &orders, LIMIT)?;
    let fault = results.iter().find(|r| !r.fault.is_empty());
    fault.map_or_else(|| Ok(results.iter().map(|r| r.seconds).collect()), |r| Err(r.fault.clone()))
}

fn seconds(all: &[f64]) -> String {
    let (least, most) =
        all.iter().fold((f64::INFINITY, 0.0_f64), |(least, most), s| (least.min(*s), most.max(*s)));
    format!("{:.3} s (median of {}), {least:.3} to {most:.3} s", median(all), all.len())
}

fn case_l(rig: &Rig, list: &mut List, tcp: &[&str], most_s: f64) {
    let without = if tcp.contains(&"timestamps=false") { ", no timestamps" } else { "" };
    let what = format!("case L, {}{without}: <= {most_s:.2} s", tcp[0]);
    if !is_known(rig, tcp[0]) {
        list.line(6, &Item::new(what, "this build has no such scheme", Verdict::Skipped));
        return;
    }
    let measured = times(rig, &Link::L, (Tcp::Engine, Tcp::Kernel), tcp);
    list.line(6, &judge(&what, measured, |t| (seconds(&t), median(&t) <= most_s)));
}

/// The only result of an order.
pub(super) fn single(rig: &Rig, link: &Link<'_>, order: Order) -> Outcome<Transferred> {
    let mut all = run(rig, link, 1, &[order], LIMIT)?;
    match all.pop() {
        Some(one) if one.fault.is_empty() => Ok(one),
        Some(one) => Err(one.fault),
        None => Err("no result".to_owned()),
    }
}

fn case_w(rig: &Rig, list: &mut List, tcp: &[&str], bytes: u64, share: Option<f64>) {
    let bound =
        share.map_or_else(|| "(reported)".to_owned(), |s| format!(">= {:.0} % of (1-p) x link", s * 100.0));
    let what = format!("case W + 1 % loss, {}: {bound}", tcp[0]);
    if !is_known(rig, tcp[0]) {
        list.line(6, &Item::new(what, "this build has no such scheme", Verdict::Skipped));
        return;
    }
    let pair = (Tcp::Engine, Tcp::Kernel);
    let measured = single(rig, &Link::W, order(pair, bytes, 1, tcp)).and_then(|one| {
        let steady = one.flow["steady_bps"].as_f64().ok_or("no steady_bps in the report")?;
        Ok((one.delivered_bps(W_START_S, W_END, bytes)?, steady))
    });
    let most = W_BPS * PAYLOAD * (1.0 - W_LOSS);
    list.line(
        6,
        &judge(&what, measured, |(bps, steady)| {
            let got = bps / most;
            let figure = format!(
                "{:.2} Mbit/s, {:.1} % (start-up and all: {:.1} %)",
                bps / 1e6,
                got * 100.0,
                steady / most * 100.0
            );
            (figure, share.is_none_or(|s| got >= s))
        }),
    );
}

/// Bytes that were carried and compared.
fn intact(rig: &Rig, count: usize) -> Outcome<u64> {
    let schemes: Vec<_> = SCHEMES.into_iter().filter(|s| is_known(rig, s)).collect();
    let orders = mixture(count, 1, &schemes);
    for (batch, seed) in orders.chunks(BATCH).zip(1..) {
        let results = run(rig, &Link::BAD, seed, batch, LIMIT)?;
        if results.len() != batch.len() {
            return Err(format!("{} of {} transfers in batch {seed}", results.len(), batch.len()));
        }
        if let Some((order, result)) = batch.iter().zip(&results).find(|(_, r)| !r.fault.is_empty()) {
            return Err(format!("{order:?}: {}", result.fault));
        }
    }
    Ok(orders.iter().map(|o| o.bytes).sum())
}
