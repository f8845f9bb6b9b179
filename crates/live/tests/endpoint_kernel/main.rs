//! The engine with the kernel's TCP, as client and server, over a path with loss, duplication and reordering.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may say what it takes for granted, and why it does not run"
)]

mod alone;
mod ends;
mod kernel;
mod lab;
#[path = "../endpoint/path.rs"]
mod path;
#[path = "../endpoint/talk.rs"]
mod talk;

use crate::kernel::Crowd;
use crate::lab::{Bench, KERNEL, Lab, at};
use crate::path::Weather;
use crate::talk::{Content, Talk};
use bentpipe_base::{Duration, Rate};
use bentpipe_tcp::{AskConfig, Config, Encoding, Options, RtoConfig, Scheme, Signalling};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Bytes in each direction; more in fast builds.
const BYTES: u64 = if cfg!(debug_assertions) { 500_000 } else { 20_000_000 };

/// 200 Mbit/s and an RTT of 10 ms. One packet in a hundred is lost, another duplicated, another delayed so
/// that it is overtaken.
pub(crate) const FOUL: Weather = Weather {
    rate: match Rate::from_bps(200_000_000) {
        Some(rate) => rate,
        None => unreachable!(),
    },
    one_way: Duration::from_millis(5),
    loss: 0.01,
    duplicate: 0.01,
    reorder: 0.01,
    spread: Duration::from_millis(4),
};

/// The same without impairments.
pub(crate) const FAIR: Weather = Weather { loss: 0.0, duplicate: 0.0, reorder: 0.0, ..FOUL };

/// Creates a lab, or prints why that is not possible.
pub(crate) fn lab(test: &str) -> Option<Lab> {
    Lab::new().inspect_err(|why| println!("SKIPPED {test}: {why}")).ok()
}

/// The engine with the kernel's minimum RTO: with one of a second, timeouts would take most of the time.
pub(crate) fn config(options: Options) -> Config {
    Config {
        options,
        rto: RtoConfig { min: Duration::from_millis(200), ..RtoConfig::default() },
        ..Config::default()
    }
}

pub(crate) const ALL: Options = Options { mss: true, window_scale: true, sack: true, timestamps: true };

/// Four conversations at once, each `BYTES` in both directions at the same time: opened by the kernel and by
/// the engine, over IPv4 and IPv6. The engine offers `options`; `both` is what must be negotiated.
fn exchange(lab: &mut Lab, what: &str, options: Options, both: Options) {
    exchange_with(lab, what, &config(options), both);
}

/// The same with this configuration of the engine.
fn exchange_with(lab: &mut Lab, what: &str, config: &Config, both: Options) {
    let mut bench = Bench::new(11, FOUL);
    let mut crowd = Crowd::default();
    bench.endpoint.listen(80, config, 8).unwrap();
    let (kernels, engines) = (Content(100), Content(200));
    let talk = || Talk::new(200, BYTES, 100, BYTES);
    bench.talks.for_callers.insert(80, vec![talk(), talk()]);
    for v6 in [false, true] {
        let host = Arc::clone(&lab.host);
        crowd.start(move || {
            let stream = kernel::call(&host, v6, 80).expect("the engine answers");
            kernel::talk(&stream, (kernels, BYTES), (engines, BYTES));
        });
        let listener = kernel::listen(lab, at(KERNEL, v6, 5000));
        crowd.start(move || {
            let stream = kernel::accept(&listener);
            kernel::talk(&stream, (kernels, BYTES), (engines, BYTES));
        });
        let id = bench.with(|e, cx| e.connect(cx, at(KERNEL, v6, 5000), config)).unwrap();
        bench.talks.of.insert(id, talk());
    }
    let ids: Vec<_> = bench.talks.of.keys().copied().collect();
    for id in ids {
        bench.act(id);
    }
    let mut agreed = BTreeSet::new();
    let in_time = bench.run(lab, Duration::from_secs(240), |b| {
        let open = b.talks.of.keys().filter_map(|id| b.endpoint.connection(*id));
        let open = open.filter(|c| c.stats().established_at.is_some()).map(bentpipe_tcp::Connection::agreed);
        agreed.extend(open.map(|a| (a.scaling, a.sack, a.timestamps)));
        crowd.has_failed() || (b.talks.all_done() && crowd.is_over())
    });
    assert_eq!(agreed, BTreeSet::from([(both.window_scale, both.sack, both.timestamps)]), "{what}");
    let took = bench.clock.now().as_secs_f64();
    let heard: Vec<_> = bench.talks.of.values().map(|t| (t.said, t.heard)).collect();
    let (lost, counters) = (bench.path.lost(), bench.endpoint.counters());
    println!(
        "{what}: {took:.1} s, {lost} lost, {} doubled, {} late, {} uncut, {counters:?}",
        bench.path.duplicated, bench.path.delayed, bench.uncut
    );
    assert!(in_time, "{what}: too slow: {heard:?}");
    crowd.join();
    assert!(bench.talks.all_done());
    assert_eq!((counters.bad_checksum, counters.malformed, counters.overflowed), (0, 0, 0));
    assert!(lost as f64 > 2.0 * BYTES as f64 / 1448.0 * 0.01, "{what}: the path lost nothing: {lost}");
}

/// All options, and without each of them, disabled at the kernel or at the engine.
#[test]
fn streams_to_and_from_the_kernel_are_intact() {
    let Some(mut lab) = lab("streams_to_and_from_the_kernel_are_intact") else { return };
    exchange(&mut lab, "all options", ALL, ALL);
    let without = [
        ("window_scaling", Options { window_scale: false, ..ALL }),
        ("sack", Options { sack: false, ..ALL }),
        ("timestamps", Options { timestamps: false, ..ALL }),
    ];
    for (name, options) in without {
        let setting = format!("net/ipv4/tcp_{name}");
        lab.set(&setting, "0");
        exchange(&mut lab, &format!("kernel without {name}"), ALL, options);
        lab.set(&setting, "1");
        exchange(&mut lab, &format!("engine without {name}"), options, options);
    }
    let none = Options { mss: true, window_scale: false, sack: false, timestamps: false };
    exchange(&mut lab, "engine without any", none, none);
}

/// A SYN with a structure behind it, or with options of other encodings, to a kernel that knows nothing of
/// them: an ordinary connection.
#[test]
fn a_kernel_that_does_not_signal_gets_ordinary_connections() {
    let Some(mut lab) = lab("a_kernel_that_does_not_signal_gets_ordinary_connections") else { return };
    for (encoding, scheme) in
        [(Encoding::Tia1039, "explicit-rate"), (Encoding::SconeTcp, "cubic"), (Encoding::QuickStart, "cubic")]
    {
        let ask = AskConfig { encoding, ask: Rate::from_bps(10_000_000_000), ..AskConfig::default() };
        let (scheme, signalling) = (Scheme::named(scheme).unwrap(), Some(Signalling::new(ask)));
        exchange_with(&mut lab, encoding.word(), &Config { scheme, signalling, ..config(ALL) }, ALL);
    }
}

/// The same as root of a user namespace: runs this test program again as an unprivileged user.
#[test]
fn an_ordinary_user_can_do_this_too() {
    ::lab::once::run_as_unprivileged_user(
        "an_ordinary_user_can_do_this_too",
        &["ends::", "--nocapture", "--test-threads=1"],
    );
}
