//! Streams arrive intact, whatever the path does and whatever options the two ends have.

use crate::duel::{Duel, FAIR, FOUL, LEFT, RIGHT};
use crate::path::Weather;
use crate::talk::Talk;
use bentpipe_base::{Duration, Purpose, Rng, Size};
use bentpipe_live::endpoint::{Settings, SocketEvent};
use bentpipe_tcp::{Config, DelayedAck, EcnUse, Options, ReceiveBuffer, RtoConfig, Scheme};

/// Random host options.
fn config(rng: &mut Rng) -> Config {
    let scheme = Scheme::NAMES[(rng.unit() * Scheme::NAMES.len() as f64) as usize];
    let mut yes = || rng.unit() < 0.5;
    let scale = yes();
    let buffer = if yes() {
        ReceiveBuffer::Auto { initial: Size(8_000), max: Size(if scale { 300_000 } else { 60_000 }) }
    } else {
        ReceiveBuffer::Fixed(Size(if scale { 200_000 } else { 20_000 }))
    };
    Config {
        scheme: Scheme::named(scheme).unwrap(),
        mss: if yes() { 536 } else { 9000 },
        send_buffer: yes().then_some(Size(50_000)),
        receive_buffer: buffer,
        delayed_ack: yes().then_some(DelayedAck { count: 2, timeout: Duration::from_millis(40) }),
        nagle: yes(),
        options: Options { mss: yes(), window_scale: scale, sack: yes(), timestamps: yes() },
        initial_window: if yes() { 2 } else { 10 },
        pacing: yes(),
        ecn: if yes() { EcnUse::Request } else { EcnUse::AcceptOnly },
        time_wait: Duration::from_secs(2),
        rto: RtoConfig { min: Duration::from_millis(200), ..RtoConfig::default() },
        ..Config::default()
    }
}

/// After all data was sent and received, nothing is left of any connection.
fn storm(seed: u64) {
    let mut rng = Rng::new(seed, "storm", Purpose::Start);
    let weather = Weather {
        loss: 0.08 * rng.unit(),
        duplicate: 0.05 * rng.unit(),
        reorder: 0.1 * rng.unit(),
        spread: Duration::from_millis((20.0 * rng.unit()) as u64),
        ..FAIR
    };
    let (ours, theirs, v6) = (config(&mut rng), config(&mut rng), rng.unit() < 0.5);
    let size = |rng: &mut Rng| (rng.unit() * rng.unit() * 200_000.0) as u64;
    let (there, back) = (size(&mut rng), size(&mut rng));
    let mut duel = Duel::new(seed, weather);
    duel.ends[RIGHT].endpoint.listen(80, &theirs, 8).unwrap();
    let mut caller = Talk::new(seed, there, !seed, back);
    let mut listener = Talk::new(!seed, back, seed, there);
    for talk in [&mut caller, &mut listener] {
        talk.lazy = (rng.unit() < 0.3).then(|| Rng::new(seed, "reader", Purpose::Application));
    }
    duel.talk(v6, &ours, caller, listener);
    duel.run(Duration::from_secs(3600), Duel::all_done);
    duel.pass(Duration::from_secs(200));
    for end in &duel.ends {
        assert_eq!(end.endpoint.connections(), 0, "nothing is left");
        assert_eq!((end.endpoint.counters().bad_checksum, end.endpoint.counters().malformed), (0, 0));
    }
}

#[test]
fn streams_arrive_intact_in_any_weather() {
    for seed in 0..300 {
        let outcome = std::panic::catch_unwind(|| storm(seed));
        assert!(outcome.is_ok(), "failed with seed {seed}");
    }
}

#[test]
fn megabytes_each_way_at_once_survive_loss_duplication_and_reordering() {
    for v6 in [false, true] {
        let mut duel = Duel::new(7, FOUL);
        let config = Config::default();
        duel.ends[RIGHT].endpoint.listen(80, &config, 8).unwrap();
        let bytes = 3_000_000;
        duel.talk(v6, &config, Talk::new(1, bytes, 2, bytes), Talk::new(2, bytes, 1, bytes));
        duel.run(Duration::from_secs(120), Duel::all_done);
        assert!(duel.path.lost() > 20 && duel.path.duplicated > 20 && duel.path.delayed > 20);
    }
}

#[test]
fn two_hundred_connections_take_turns_and_leave_nothing() {
    let mut duel = Duel::new(3, FOUL);
    let config = Config { time_wait: Duration::from_secs(1), ..Config::default() };
    duel.ends[RIGHT].endpoint.listen(80, &config, 300).unwrap();
    for i in 0..200 {
        let bytes = 20_000 + 100 * i;
        duel.talk(
            i % 2 == 1,
            &config,
            Talk::new(i, bytes, i + 1000, bytes),
            Talk::new(i + 1000, bytes, i, bytes),
        );
        // connections arrive in the order of their SYNs, so each gets the matching talk
        duel.run(Duration::from_secs(20), |d| d.ends[RIGHT].talks.for_callers[&80].is_empty());
    }
    duel.run(Duration::from_secs(300), Duel::all_done);
    duel.pass(Duration::from_secs(200));
    assert_eq!(duel.ends.iter().map(|e| e.endpoint.connections()).sum::<usize>(), 0);
}

#[test]
fn memory_of_streams_stays_within_their_buffers() {
    let mut duel = Duel::new(5, FOUL);
    let config = Config {
        send_buffer: Some(Size(100_000)),
        receive_buffer: ReceiveBuffer::Fixed(Size(100_000)),
        ..Config::default()
    };
    duel.ends[RIGHT].endpoint.listen(80, &config, 8).unwrap();
    let id = duel.talk(false, &config, Talk::new(1, 2_000_000, 2, 10), Talk::new(2, 10, 1, 2_000_000));
    let mut most = 0;
    duel.run(Duration::from_secs(120), |duel| {
        most = most.max(duel.ends[LEFT].endpoint.memory(id).unwrap_or_default());
        duel.all_done()
    });
    // two rings, each the next power of two, plus at most one step of the window scale
    assert!(most > 100_000 && most <= 2 * 131_072, "{most}");
}

#[test]
fn the_mss_is_what_the_network_leaves() {
    for (v6, mtu, expected) in
        [(false, 1500, 1448), (true, 1500, 1428), (false, 1280, 1228), (true, 1280, 1208)]
    {
        let mut duel = Duel::with(1, FAIR, &Settings { mtu, ..Settings::default() });
        let config = Config { mss: 9000, ..Config::default() };
        duel.ends[RIGHT].endpoint.listen(80, &config, 8).unwrap();
        let id = duel.talk(v6, &config, Talk::new(1, 10_000, 2, 0), Talk::new(2, 0, 1, 10_000));
        duel.run(Duration::from_secs(1), |d| d.ends[LEFT].talks.log.contains(&(id, SocketEvent::Connected)));
        assert_eq!(duel.ends[LEFT].endpoint.connection(id).unwrap().agreed().mss, expected);
    }
}

#[test]
fn a_reader_that_stops_closes_the_window_and_opens_it_again() {
    let mut duel = Duel::new(1, FAIR);
    let config = Config { receive_buffer: ReceiveBuffer::Fixed(Size(20_000)), ..Config::default() };
    duel.ends[RIGHT].endpoint.listen(80, &config, 8).unwrap();
    let id = duel.connect(LEFT, Duel::at(RIGHT, false, 80), &Config::default()).unwrap();
    duel.ends[LEFT].talks.of.insert(id, Talk::new(1, 100_000, 2, 0));
    duel.run(Duration::from_secs(1), |d| !d.ends[RIGHT].talks.log.is_empty());
    let peer = duel.ends[RIGHT].talks.log[0].0;
    duel.pass(Duration::from_secs(100));
    let left = duel.ends[LEFT].endpoint.connection(id).unwrap();
    assert_eq!(left.path().peer_window.0, 0, "the window is closed, and probed without end");
    assert_eq!(duel.ends[RIGHT].endpoint.connection(peer).unwrap().readable(), 20_000);
    duel.ends[RIGHT].talks.of.insert(peer, Talk::new(2, 0, 1, 100_000));
    duel.ends[RIGHT].talks.of.get_mut(&peer).unwrap().lazy =
        Some(Rng::new(1, "reader", Purpose::Application));
    duel.run(Duration::from_secs(300), Duel::all_done);
}
