//! Between two agents with real packets: with connections that do not signal, a firewall, rewritten code
//! points, a NAT, and losses.

use super::SHARE;
use super::bed::{L, LONELY_PORT, agents, are_settled, chain, port, states, transfer, transfers, words};
use crate::accept::list::{List, Outcome, Setup};
use lab::agents::{PLAIN_PORT, PORT};
use lab::chain::Chain;
use lab::join;
use lab::passage::Host;
use lab::scenario::OneLink;
use lab::stats::{mean, median};
use std::thread;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(20);
/// Streams of each kind side by side, and their bytes.
const BESIDE: (u32, u64) = (5, 8_000_000);
/// A lost SYN costs a second; what else the first connection may need, s.
const SYN_TIMEOUT_S: f64 = 1.0;
const SLACK_S: f64 = 0.2;
/// Streams of each row, and their lengths in turn, B.
const STREAMS: u32 = 200;
const LENGTHS: [u64; 4] = [1_000, 20_000, 100_000, 400_000];
/// Streams that last longer than the seconds after which code points are rewritten.
const LONG: [u64; 1] = [12_000_000];
const LATER: Duration = Duration::from_secs(5);
/// Whether the kernel may join and cut packets (GSO, GRO).
const OFFLOADS: [bool; 2] = [true, false];
/// Share of lost packets in each direction.
const LOSS: f64 = 0.1;
/// Streams over it, and their lengths in turn, B: long enough for eight requests that are lost.
const LOSSY_STREAMS: u32 = 50;
const LOSSY_LENGTHS: [u64; 2] = [2_000_000, 4_000_000];

/// Changes of packets on the router, as rules of nftables.
const BOXES: [(&str, &str); 3] = [
    (
        "DSCP set to 0",
        "add chain ip b f { type filter hook forward priority 0; }; add rule ip b f ip dscp set cs0",
    ),
    (
        "DSCP 3 and 7 become 1",
        "add chain ip b f { type filter hook forward priority 0; }; add rule ip b f ip dscp 3 ip dscp set 1; add rule ip b f ip dscp 7 ip dscp set 1",
    ),
    (
        "NAT with other ports",
        "add chain ip b n { type nat hook postrouting priority 100; }; add rule ip b n oifname lan0 meta l4proto tcp masquerade to :20000-40000 random",
    ),
];
/// A firewall that drops SYNs with data: one with all options has 60 bytes.
const FIREWALL: &str = "add chain ip b f { type filter hook forward priority 0; }; add rule ip b f tcp flags & (syn | ack) == syn ip length > 60 drop";

/// Adds rules to the router.
fn add(chain: &Chain, rules: &str) -> Outcome<()> {
    chain.shell(Host::Router, &format!("nft 'add table ip b; {rules}'"), LIMIT).map(drop)
}

/// Switches the joining and cutting of packets on all interfaces.
fn offload(chain: &Chain, on: bool) -> Outcome<()> {
    let word = if on { "on" } else { "off" };
    let set =
        |interface: &str| format!("ethtool -K {interface} tso {word} gso {word} gro {word} >/dev/null; ");
    chain.shell(Host::Sender, &set("a0"), LIMIT)?;
    chain.shell(Host::Router, &(set("lan0") + &set("bent0")), LIMIT)?;
    chain.shell(Host::Receiver, &set("bent0"), LIMIT).map(drop)
}

pub(super) fn mixed(setup: &Setup, list: &mut List) -> Outcome {
    let link = chain(setup, &L, SHARE, "true")?;
    let [sender, receiver] = agents(&link)?;
    let (n, bytes) = BESIDE;
    let group = |port| transfers(&link, port, n, &[bytes], || Ok(()));
    let beside = thread::scope(|scope| {
        let signalled = scope.spawn(|| group(PORT));
        let plain = scope.spawn(|| group(PLAIN_PORT));
        let lonely = scope.spawn(|| transfer(&link, LONELY_PORT, "cubic", 0, bytes));
        Ok::<_, String>((join(signalled)?, join(plain)?, join(lonely)?))
    });
    let what = format!("{n} streams that signal, {n} plain, one peer unable: every byte");
    list.judge(what, beside, |(signalled, plain, lonely)| {
        let times =
            |all: &[lab::streams::TransferRecord]| mean(&all.iter().map(|r| r.seconds).collect::<Vec<_>>());
        (
            format!(
                "{:.2} s, {:.2} s and {:.2} s for {bytes} B",
                times(&signalled),
                times(&plain),
                lonely.seconds
            ),
            true,
        )
    });
    list.judge(
        "of the sender's agent: those that signal are granted, the other is plain",
        states(&sender),
        |all| {
            let count = |state: &str| all.get(state).copied().unwrap_or_default();
            (words(&all), count("granted") + count("reduced") == n as usize && count("plain") == 1)
        },
    );
    drop((sender, receiver));
    drop(link);
    guarded(setup, list)
}

/// A firewall that drops SYNs with data.
fn guarded(setup: &Setup, list: &mut List) -> Outcome {
    let link = chain(setup, &L, SHARE, "true")?;
    let _agents = agents(&link)?;
    let open = |i: u16| transfer(&link, port(i), "cubic", i.into(), LENGTHS[1]).map(|record| record.opened);
    let usual: Outcome<Vec<f64>> = (0..3).map(open).collect();
    let usual = median(&usual?);
    add(&link, FIREWALL)?;
    let all: Outcome<Vec<f64>> = (10..15).map(open).collect();
    list.judge(
        "a firewall drops SYNs with data: the first a SYN timeout later, the others at once",
        all,
        |all| {
            let (first, later) =
                (all[0] - usual, all[1..].iter().fold(0.0_f64, |most, s| most.max(*s)) - usual);
            let met =
                (SYN_TIMEOUT_S - SLACK_S..=SYN_TIMEOUT_S + SLACK_S).contains(&first) && later <= SLACK_S;
            (format!("{first:.3} s, then {later:.3} s, besides {usual:.3} s"), met)
        },
    );
    Ok(())
}

pub(super) fn rewritten(setup: &Setup, list: &mut List) -> Outcome {
    for (name, rules) in BOXES {
        for on in OFFLOADS {
            let link = chain(setup, &L, SHARE, "true")?;
            let [sender, _receiver] = agents(&link)?;
            offload(&link, on)?;
            add(&link, rules)?;
            let done = transfers(&link, PORT, STREAMS, &LENGTHS, || Ok(()));
            row(list, &format!("{name}{}", cut(on)), done.and_then(|all| Ok((all.len(), states(&sender)?))));
        }
    }
    for (name, rules) in &BOXES[..2] {
        for on in OFFLOADS {
            let link = chain(setup, &L, SHARE, "true")?;
            let [sender, _receiver] = agents(&link)?;
            offload(&link, on)?;
            let later = || {
                thread::sleep(LATER);
                add(&link, rules)
            };
            let done = transfers(&link, PORT, 8, &LONG, later);
            let short = || transfers(&link, port(1), STREAMS - 8, &LENGTHS, || Ok(()));
            let done = done.and_then(|long| Ok((long.len() + short()?.len(), states(&sender)?)));
            row(list, &format!("{name} from second 5 on{}", cut(on)), done);
        }
    }
    Ok(())
}

const fn cut(on: bool) -> &'static str {
    if on { "" } else { ", GSO and GRO off" }
}

type Settled = (usize, std::collections::BTreeMap<String, usize>);

fn row(list: &mut List, what: &str, done: Outcome<Settled>) {
    list.judge(format!("{what}: every byte, granted or plain"), done, |(n, all)| {
        (format!("{n} streams: {}", words(&all)), are_settled(&all))
    });
}

pub(super) fn lost(setup: &Setup, list: &mut List) -> Outcome {
    let link = chain(setup, &OneLink { loss: LOSS, loss_back: LOSS, ..L }, SHARE, "true")?;
    let [sender, _receiver] = agents(&link)?;
    let done = transfers(&link, PORT, LOSSY_STREAMS, &LOSSY_LENGTHS, || Ok(()));
    let done = done.and_then(|all| Ok((all.len(), states(&sender)?)));
    list.judge(format!("loss {LOSS} both ways: every byte, some granted"), done, |(n, all)| {
        let with_rate = all.get("granted").unwrap_or(&0) + all.get("reduced").unwrap_or(&0);
        (format!("{n} streams: {}", words(&all)), are_settled(&all) && with_rate > 0)
    });
    Ok(())
}
