//! The engine as a real TCP against the kernel's, over emulated links, and the CPU cost of a sender.

use crate::accept::list::{List, Outcome, Setup};
use lab::stats::median;
use lab::transfers::{self, Link, Tcp, TransferRequest, TransferResult, random_transfers, run};
use lab::{Rig, Who};

/// Case L: bytes, and number of runs.
pub(super) const L_BYTES: u64 = 8_388_608;
const RUNS: usize = 20;
/// Case L with a receiver whose window is large from the start, which shows the cost of opening the window.
const OPEN: Link<'static> = Link { first_buffer: 8 << 20, ..Link::L };
/// Case W: its rate, and the payload share of a packet with timestamps.
const W_BPS: f64 = 24e6;
const PAYLOAD: f64 = 1448.0 / 1500.0;
const W_LOSS: f64 = 0.01;
/// Measured part of case W: the receive window needs about six round trips of 1 s to open from 64 KB, and
/// the last repairs come late.
const W_START_S: f64 = 10.0;
const W_END: f64 = 0.97;
/// Transfers of random size and kind: in full, and short.
const INTACT: (usize, usize) = (1000, 200);
/// Transfers in one session.
const BATCH: usize = 100;
/// Congestion controls of the mixture.
const SCHEMES: &str = "reno newreno sack rate-halving vegas cubic hybla westwood bic htcp fast bbr bbr3 \
    careful-resume peach peach-plus swift-sat swift-faithful";
/// The engine sends to the kernel.
pub(super) const TO_KERNEL: (Tcp, Tcp) = (Tcp::Engine, Tcp::Kernel);

/// The short transfer, which needs an otherwise idle machine.
pub(super) fn short(setup: &Setup, list: &mut List) -> Outcome {
    let rig = setup.rig(Who::CurrentUser)?;
    let kernel = times(&rig, &Link::L, (Tcp::Kernel, Tcp::Kernel), &["bbr"]);
    list.judge("case L, the kernel's own bbr (reported)", kernel, |t| (seconds(&t), true));
    case_l(&rig, list, &["bbr"], 1.15);
    let bold = ["bbr", "--set", "startup_conserves=false"];
    let what = "the same, startup_conserves = false (reported)";
    list.judge(what, times(&rig, &Link::L, TO_KERNEL, &bold), |t| (seconds(&t), true));
    // the twelve bytes of timestamps cost 1 %, and a sender with a granted rate does not need them
    let granted = ["explicit-rate", "--set", "grant=100 Mbit/s", "--set", "timestamps=false"];
    case_l(&rig, list, &granted, 0.90);
    for (what, link) in [
        ("the same with timestamps (reported)", Link::L),
        ("the same, receiver's buffer large from the start too (reported)", OPEN),
    ] {
        list.judge(what, times(&rig, &link, TO_KERNEL, &granted[..3]), |t| (seconds(&t), true));
    }
    Ok(())
}

pub(super) fn long(setup: &Setup, list: &mut List) -> Outcome {
    let rig = setup.rig(Who::CurrentUser)?;
    // the link is busy for about a minute; two where there is a requirement, to average out bursts
    case_w(&rig, list, &["bbr"], 150_000_000, None);
    case_w(&rig, list, &["explicit-rate", "--set", "grant=24 Mbit/s"], 300_000_000, Some(0.97));
    Ok(())
}

pub(super) fn mixed(setup: &Setup, list: &mut List) -> Outcome {
    let rig = setup.rig(Who::CurrentUser)?;
    let count = setup.pick(INTACT.0, INTACT.1);
    let what = format!("{count} transfers of all kinds, 1 % lost both ways: all intact{}", setup.short());
    list.judge(what, intact(&rig, count), |bytes| (format!("{bytes} bytes"), true));
    Ok(())
}

/// CPU cost of a sender: bytes of a transfer, runs if there is a requirement, and the requirement.
const FLOOD: (u64, usize, f64) = (1_000_000_000, 7, 2e9);

pub(super) fn cpu(setup: &Setup, list: &mut List) -> Outcome {
    let rig = setup.rig(Who::CurrentUser)?;
    let (bytes, runs, least) = FLOOD;
    for (tcp, runs) in [("cubic", runs), ("newreno", 1), ("bbr", 1)] {
        let rates: Outcome<Vec<f64>> = (0..runs).map(|_| transfers::flood(&rig, bytes, tcp)).collect();
        let bound = if runs > 1 { ">= 2 Gbit/s" } else { "(reported)" };
        list.judge(format!("{tcp}, sender on one core, to the kernel over veth: {bound}"), rates, |rates| {
            let each: Vec<_> = rates.iter().map(|bps| format!("{:.2}", bps / 1e9)).collect();
            let middle = median(&rates);
            (format!("{:.2} Gbit/s ({})", middle / 1e9, each.join(", ")), runs == 1 || middle >= least)
        });
    }
    Ok(())
}

pub(super) fn order(pair: (Tcp, Tcp), bytes: u64, seed: u64, tcp: &[&str]) -> TransferRequest {
    let tcp = tcp.iter().map(|word| (*word).to_owned()).collect();
    TransferRequest { pair, from_near: true, v6: false, bytes, seed, tcp }
}

/// Seconds from the call to the last acknowledgment, over case L.
fn times(rig: &Rig, link: &Link<'_>, pair: (Tcp, Tcp), tcp: &[&str]) -> Outcome<Vec<f64>> {
    let orders: Vec<_> = (0..RUNS).map(|i| order(pair, L_BYTES, i as u64, tcp)).collect();
    Ok(run(rig, link, 1, &orders)?.iter().map(|result| result.seconds).collect())
}

fn seconds(all: &[f64]) -> String {
    let (least, most) =
        all.iter().fold((f64::INFINITY, 0.0_f64), |(least, most), s| (least.min(*s), most.max(*s)));
    format!("{:.3} s (median of {}), {least:.3} to {most:.3} s", median(all), all.len())
}

fn case_l(rig: &Rig, list: &mut List, tcp: &[&str], most_s: f64) {
    let without = if tcp.contains(&"timestamps=false") { ", no timestamps" } else { "" };
    let what = format!("case L, {}{without}: <= {most_s:.2} s", tcp[0]);
    list.judge(what, times(rig, &Link::L, TO_KERNEL, tcp), |t| (seconds(&t), median(&t) <= most_s));
}

/// The result of a single transfer.
pub(super) fn single(rig: &Rig, link: &Link<'_>, order: TransferRequest) -> Outcome<TransferResult> {
    run(rig, link, 1, &[order])?.pop().ok_or_else(|| "no result".to_owned())
}

fn case_w(rig: &Rig, list: &mut List, tcp: &[&str], bytes: u64, share: Option<f64>) {
    let bound =
        share.map_or_else(|| "(reported)".to_owned(), |s| format!(">= {:.0} % of (1-p) x link", s * 100.0));
    let what = format!("case W + 1 % loss, {}: {bound}", tcp[0]);
    let measured = single(rig, &Link::W, order(TO_KERNEL, bytes, 1, tcp)).and_then(|one| {
        let steady = one.flow["steady_bps"].as_f64().ok_or("no steady_bps in the report")?;
        Ok((one.delivered_bps(W_START_S, W_END, bytes)?, steady))
    });
    let most = W_BPS * PAYLOAD * (1.0 - W_LOSS);
    list.judge(what, measured, |(bps, steady)| {
        let got = bps / most;
        let (mbps, share_of_all) = (bps / 1e6, steady / most * 100.0);
        let figure =
            format!("{mbps:.2} Mbit/s, {:.1} % (start-up and all: {share_of_all:.1} %)", got * 100.0);
        (figure, share.is_none_or(|s| got >= s))
    });
}

/// Bytes that were transferred and compared.
fn intact(rig: &Rig, count: usize) -> Outcome<u64> {
    let orders = random_transfers(count, 1, &SCHEMES.split(' ').collect::<Vec<_>>());
    for (batch, seed) in orders.chunks(BATCH).zip(1..) {
        run(rig, &Link::BAD, seed, batch)?;
    }
    Ok(orders.iter().map(|o| o.bytes).sum())
}
