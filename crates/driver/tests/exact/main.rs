//! Byte exactness and connection ends: the kernel's TCP at both ends, a gateway before a hop that loses,
//! duplicates and reorders packets, with outages of three seconds.
//!
//! Each end must see the same as without a gateway over a hop with delay only.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test: what is skipped is printed, what fails may panic"
)]

mod course;
mod hop;
mod peps;
mod talk;

use bentpipe_base::{Duration, Rate};
use bentpipe_gateway::{Config, Copies, Mode};
use bentpipe_os::Clock;
use course::Course;
use hop::Weather;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::scope;
use talk::{End, Kind, Plan, Side, talk};

/// One-way delay.
const DELAY: Duration = Duration::from_millis(10);

/// Settings of hosts, gateway and hop for a group of conversations.
struct Setting {
    timestamps: &'static str,
    sack: &'static str,
    /// The host behind the gateway does not scale windows and has a buffer of 64 KB.
    old: bool,
    loss: f64,
    config: Config,
    seed: u64,
}

/// With and without timestamps, SACK and a modern receiver; each with another loss rate and gateway mode.
fn settings() -> [Setting; 4] {
    let rate = |mbps: u64| Config { rate: Rate::from_bps(mbps * 1_000_000), ..Config::default() };
    let strict = Config { mode: Mode::Strict, ..rate(100) };
    let twice = Config { copies: Copies::Fixed(2), ..rate(400) };
    let setting =
        |(timestamps, sack), old, loss, config, seed| Setting { timestamps, sack, old, loss, config, seed };
    [
        setting(("1", "1"), false, 1e-1, Config::default(), 11),
        setting(("0", "1"), true, 1e-2, rate(100), 12),
        setting(("1", "0"), false, 3e-2, strict, 13),
        setting(("0", "0"), true, 1e-3, twice, 14),
    ]
}

impl Setting {
    fn weather(&self) -> Weather {
        let outage = Some((Duration::from_millis(500), Duration::from_secs(3), Duration::from_secs(15)));
        Weather { delay: DELAY, loss: self.loss, twice: 1e-2, late: 1e-2, outage, seed: self.seed }
    }

    /// Limit of the data from the host behind the gateway, which must repair its own losses.
    const fn most_back(&self) -> usize {
        if self.loss > 2e-2 {
            200_000
        } else if self.loss > 2e-3 {
            2_000_000
        } else {
            50_000_000
        }
    }

    /// Plans conversation `i`, with streams of at most `most` bytes.
    fn plan(&self, i: u64, most: usize) -> Plan {
        let mut random = self.seed << 32 | i;
        let mut draw = |n: u64| {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (random >> 33) % n
        };
        let kind = match (self.seed * 5 + i) % 10 {
            0..=2 => Kind::Both,
            3 => Kind::Request,
            4 => Kind::Banner,
            5 => Kind::Together,
            6 => Kind::Messages(5 + draw(40) as u32),
            7 => Kind::Reset { client: true },
            8 => Kind::Reset { client: false },
            _ => Kind::Closed,
        };
        let mut len = || match draw(9) {
            0 => 0,
            1 => 1,
            2 => 1447 + draw(4) as usize,
            3..=5 => draw(200_000) as usize,
            6 | 7 => draw(most as u64 / 10 + 1) as usize,
            _ => draw(most as u64 + 1) as usize,
        };
        let (mut lens, server) = ([len(), len()], usize::from(!i.is_multiple_of(3)));
        if i == 1 {
            lens = [most, 0];
        }
        // data from the host behind the gateway
        let back = usize::from(server == 1);
        lens[back] = lens[back].min(self.most_back());
        if matches!(kind, Kind::Reset { .. }) {
            lens = lens.map(|len| len.min(self.most_back()));
        }
        let congestion = if i % 4 == 3 { "bbr" } else { "cubic" };
        Plan { seed: self.seed << 16 | i, kind, v6: i.is_multiple_of(2), server, lens, congestion }
    }

    /// Runs `n` conversations, `lanes` at a time.
    fn converse(&self, course: &Course, (n, lanes, most): (u64, u64, usize)) -> Vec<[Side; 2]> {
        course.set("net/ipv4/tcp_timestamps", self.timestamps);
        course.set("net/ipv4/tcp_sack", self.sack);
        if self.old {
            course.set_at(1, "net/ipv4/tcp_window_scaling", "0");
            course.set_at(1, "net/ipv4/tcp_rmem", "4096 131072 131072");
        }
        let lane = |lane: u64| -> Vec<(u64, [Side; 2])> {
            (lane..n).step_by(lanes as usize).map(|i| (i, talk(course, self.plan(i, most)))).collect()
        };
        let mut all: Vec<_> = scope(|scope| {
            let lanes: Vec<_> = (0..lanes).map(|l| scope.spawn(move || lane(l))).collect();
            lanes.into_iter().flat_map(|l| l.join().expect("conversations that end as they should")).collect()
        });
        all.sort_by_key(|(i, _)| *i);
        all.into_iter().map(|(_, sides)| sides).collect()
    }
}

/// Runs `n` conversations with each of the settings, all at once, without and with the gateway.
fn compare(test: &str, n: u64, lanes: u64, most: usize) {
    let clock = Clock::start();
    let [done, bytes, resets, refused] = [const { AtomicUsize::new(0) }; 4];
    scope(|scope| {
        for setting in settings() {
            let (done, bytes, resets, refused) = (&done, &bytes, &resets, &refused);
            scope.spawn(move || {
                let size = (n, lanes, most);
                let Some(course) = Course::new(test, None, &Weather::clear(DELAY)) else { return };
                let without = setting.converse(&course, size);
                course.end();
                let weather = setting.weather();
                let Some(course) = Course::new(test, Some(setting.config.clone()), &weather) else { return };
                let with = setting.converse(&course, size);
                let (gateway, hop) = course.end();
                let report = gateway.expect("there was one").lock().unwrap().report();
                for (i, (with, without)) in with.iter().zip(&without).enumerate() {
                    assert_eq!(with, without, "{:?}", setting.plan(i as u64, most));
                    bytes.fetch_add(with[0].0 + with[1].0, Ordering::Relaxed);
                    let count = |end| usize::from(with.iter().any(|side| side.1 == end));
                    resets.fetch_add(count(End::Reset), Ordering::Relaxed);
                    refused.fetch_add(count(End::Refused), Ordering::Relaxed);
                }
                done.fetch_add(with.len(), Ordering::Relaxed);
                let v6 = (0..n).filter(|i| setting.plan(*i, most).v6).count();
                let Setting { timestamps, sack, .. } = setting;
                let window = if setting.old { "64 KB" } else { "large" };
                println!(
                    "exact, timestamps {timestamps}, SACK {sack}, {window} window: {} over IPv4, {v6} over IPv6",
                    with.len() - v6
                );
                println!("{test}: loss {}: hop {:?}, {:?}", setting.loss, hop.lock().unwrap().did, report.counters);
                assert!(report.counters.accelerated > 0 && hop.lock().unwrap().did.iter().all(|did| *did > 0));
                assert_eq!(report.held.0, 0, "nothing is kept");
            });
        }
    });
    let [done, bytes, resets, refused] = [done, bytes, resets, refused].map(AtomicUsize::into_inner);
    assert!(done == 0 || (resets > 0 && refused > 0), "{resets} broken, {refused} refused");
    println!(
        "exact: {done} conversations, {bytes} bytes intact, {resets} broken, {refused} refused, all as without the gateway, {:.0} s",
        clock.now().as_secs_f64()
    );
}

/// Twenty conversations; `BENTPIPE_CONVERSATIONS` sets a larger number, and makes them longer.
#[test]
fn random_conversations_arrive_byte_for_byte() {
    let asked = std::env::var("BENTPIPE_CONVERSATIONS").ok();
    let asked = asked.map(|n| n.parse::<u64>().expect("BENTPIPE_CONVERSATIONS is a number"));
    let (each, most) = asked.map_or((5, 10_000_000), |n| (n.div_ceil(4), 50_000_000));
    compare("random_conversations_arrive_byte_for_byte", each, 5, most);
}
