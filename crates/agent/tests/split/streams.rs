//! Bytes through the agent, exactly.

use crate::chain::{Chain, file};
use crate::duel::{FAIR, FOUL, LEFT, RIGHT};
use crate::path::Weather;
use crate::talk::Talk;
use bentpipe_base::{Duration, Instant, Purpose, Rate, Rng};

const MINUTE: Duration = Duration::from_secs(60);

/// A slow hop behind the agent.
const FAR: Weather = Weather {
    rate: match Rate::from_bps(20_000_000) {
        Some(rate) => rate,
        None => unreachable!(),
    },
    one_way: Duration::from_millis(250),
    ..FAIR
};

fn exchange(seed: u64, weather: [Weather; 2], (rule, limits): (&str, &str), bytes: (u64, u64)) -> Chain {
    let mut chain = Chain::new(seed, weather, file(rule, limits));
    let from = (seed % 2) as usize;
    chain.listen(1 - from);
    chain.talk(from, seed % 4 > 1, Talk::new(1, bytes.0, 2, bytes.1), Talk::new(2, bytes.1, 1, bytes.0));
    assert!(chain.run(MINUTE * 10, |c| c.all_done()), "seed {seed}: it does not end");
    assert_eq!((chain.passed, chain.split.counters().connections), (0, 1));
    chain
}

#[test]
fn both_streams_arrive_whole_in_every_weather() {
    for seed in 0..4 {
        exchange(seed, [FAIR, FAIR], ("", ""), (300_000, 200_000));
        exchange(seed, [FOUL, FOUL], ("", ""), (300_000, 200_000));
        exchange(seed, [FAIR, FAR], ("", ""), (2_000_000, 100_000));
    }
    exchange(5, [FAIR, FOUL], ("", ""), (0, 0));
    exchange(6, [FAIR, FAIR], ("encoding = \"off\"\ntcp = \"bbr\"", ""), (400_000, 0));
}

#[test]
fn afterwards_nothing_is_left() {
    let mut chain = exchange(8, [FAIR, FOUL], ("", ""), (100_000, 100_000));
    chain.pass(MINUTE * 3);
    assert_eq!((chain.split.flows(), chain.split.reserved(), chain.split.used()), (0, 0, 0));
    assert_eq!(chain.split.views(chain.now, 10), []);
    assert_eq!(chain.split.counters().closed, 1);
}

#[test]
fn it_asks_by_quick_start_and_carries_the_option_of_scone() {
    for (word, wanted) in [("scone-tcp", ("plain", None)), ("quick-start", ("granted", Some(10_240_000)))] {
        let agent = file(&format!("encoding = \"{word}\"\nask = \"12 Mbit/s\""), "");
        let peer = agent.asks[0].clone().expect("it signals");
        let mut chain = Chain::new(21, [FAIR, FAR], agent);
        chain.ends[RIGHT].endpoint.listen(80, &peer, 10).expect("a free port");
        chain.talk(LEFT, false, Talk::new(1, 500_000, 2, 0), Talk::new(2, 0, 1, 500_000));
        let (mut seen, mut took) = (None, Duration::ZERO);
        assert!(chain.run(MINUTE, |c| {
            if let Some(flow) = c.split.views(c.now, 1).first().filter(|flow| flow.bytes[0] > 0) {
                seen.get_or_insert((flow.rate.clone(), flow.granted_bps));
            }
            took = c.now.since(Instant::ZERO);
            c.all_done()
        }));
        assert_eq!(seen, Some((Some(wanted.0.to_owned()), wanted.1)), "{word}");
        assert!(wanted.1.is_none() || took < Duration::from_millis(1500), "a start at the rate: {took}");
    }
}

#[test]
fn buffers_grow_to_three_round_trips_of_a_known_rate() {
    // three round trips of 500 ms at 64 Mbit/s are 12 MB
    let asks = "ask = \"64 Mbit/s\"\ntrust_path = true";
    for (rule, wanted, longest) in [(asks, 32 << 20, 2500), ("encoding = \"off\"", 4 << 20, 5000)] {
        let own = file(rule, "");
        let peer = own.asks[0].clone().expect("it is taken");
        let mut chain = Chain::new(22, [FAIR, FAR], own);
        chain.ends[RIGHT].endpoint.listen(80, &peer, 10).expect("a free port");
        chain.talk(LEFT, false, Talk::new(1, 600_000, 2, 600_000), Talk::new(2, 600_000, 1, 600_000));
        let (mut most, mut took) = (0, Duration::ZERO);
        assert!(chain.run(MINUTE, |c| {
            assert!(c.split.used() <= c.split.reserved(), "{} {}", c.split.used(), c.split.reserved());
            most = most.max(c.split.reserved());
            took = c.now.since(Instant::ZERO);
            c.all_done()
        }));
        // both directions have a rate
        assert!((wanted..wanted + (3 << 20)).contains(&most), "{rule}: {most}");
        assert!(took < Duration::from_millis(longest), "{rule}: {took}");
    }
}

#[test]
fn a_slow_reader_closes_the_window_and_memory_stays_bounded() {
    let limits = "flows = 16\nmemory = \"2 MiB\"";
    for window in ["\"16 KiB\"", "\"40 KiB\"", "{ initial = \"16 KiB\", max = \"4 MiB\" }"] {
        let mut chain = Chain::new(3, [FAIR, FAIR], file(&format!("window = {window}"), limits));
        chain.listen(RIGHT);
        let mut slow = Talk::new(2, 0, 1, 3_000_000);
        slow.lazy = Some(Rng::new(1, "slow", Purpose::SlotJitter));
        chain.talk(LEFT, false, Talk::new(1, 3_000_000, 2, 0), slow);
        let mut most = 0;
        assert!(chain.run(MINUTE * 30, |c| {
            most = most.max(c.split.used());
            assert!(
                c.split.used() <= c.split.reserved().max(1),
                "{} > {}",
                c.split.used(),
                c.split.reserved()
            );
            c.all_done()
        }));
        assert!(most > 16 << 10 && most <= 2 << 20, "{most}");
    }
}

#[test]
fn an_answer_after_the_question_s_end_arrives() {
    let mut chain = Chain::new(4, [FAIR, FOUL], file("", ""));
    chain.listen(RIGHT);
    let mut answer = Talk::new(2, 500_000, 1, 100_000);
    answer.speaks_last = true;
    chain.talk(LEFT, false, Talk::new(1, 100_000, 2, 500_000), answer);
    assert!(chain.run(MINUTE, |c| c.all_done()));
}

#[test]
fn a_thousand_short_transfers_are_exact() {
    let mut chain = Chain::new(11, [FOUL, FOUL], file("", "flows = 2000"));
    let mut rng = Rng::new(11, "sizes", Purpose::SlotJitter);
    chain.listen(LEFT);
    chain.listen(RIGHT);
    let mut started = 0;
    while started < 1000 {
        for _ in 0..25 {
            let mut size = || (rng.unit() * rng.unit() * 30_000.0) as u64;
            let (there, back) = (size(), size());
            let (says, hears) = (2 * started + 1, 2 * started + 2);
            let caller = Talk::new(says, there, hears, back);
            // callers of a port are served in the order of their handshakes: one size for a whole burst
            let from = (started / 25 % 2) as usize;
            chain.talk(from, started % 3 == 0, caller.clone(), Talk::new(hears, back, says, there));
            assert!(chain.run(MINUTE, |c| c.ends[1 - from].talks.all_done() || is_accepted(c, 1 - from)));
            started += 1;
        }
        chain.pass(Duration::from_millis(200));
    }
    assert!(chain.run(MINUTE * 10, |c| c.all_done()), "they do not end");
    assert_eq!((chain.split.counters().connections, chain.passed), (1000, 0));
}

/// True if every caller of port 80 of a side was accepted.
fn is_accepted(chain: &Chain, side: usize) -> bool {
    chain.ends[side].talks.for_callers.values().all(Vec::is_empty)
}
