//! How connections begin and end.

use crate::duel::{Duel, FAIR, FOUL, LEFT, RIGHT, addresses};
use crate::talk::Talk;
use bentpipe_base::{Duration, Instant};
use bentpipe_live::endpoint::{ConnId, Ending, EndpointError, Settings, SocketEvent};
use bentpipe_tcp::{Config, State};

const SECOND: Duration = Duration::from_secs(1);

fn config() -> Config {
    Config { time_wait: SECOND * 10, ..Config::default() }
}

fn state(duel: &Duel, side: usize, id: ConnId) -> Option<State> {
    duel.ends[side].endpoint.connection(id).map(bentpipe_tcp::Connection::state)
}

/// An open connection without applications: its ids on the left and on the right.
fn open(duel: &mut Duel) -> (ConnId, ConnId) {
    duel.ends[RIGHT].endpoint.listen(80, &config(), 4).unwrap();
    let left = duel.connect(LEFT, Duel::at(RIGHT, false, 80), &config()).unwrap();
    duel.pass(SECOND);
    let right = duel.ends[RIGHT].talks.log.iter().find(|n| n.1 == SocketEvent::Calling).unwrap().0;
    (left, right)
}

fn write(duel: &mut Duel, side: usize, id: ConnId, bytes: &[u8]) -> Result<usize, EndpointError> {
    duel.ends[side].endpoint.write(id, bytes)
}

fn read(duel: &mut Duel, side: usize, id: ConnId) -> Result<usize, EndpointError> {
    let now = duel.now;
    duel.ends[side].endpoint.read(now, id, &mut [0; 1000])
}

#[test]
fn a_port_nobody_listens_at_refuses() {
    let mut duel = Duel::new(1, FAIR);
    let id = duel.connect(LEFT, Duel::at(RIGHT, true, 81), &config()).unwrap();
    duel.pass(SECOND);
    assert_eq!(duel.ends[LEFT].endpoint.ending(id), Some(Ending::Refused));
    assert_eq!(duel.ends[LEFT].talks.log, [(id, SocketEvent::Ended)]);
    assert_eq!(read(&mut duel, LEFT, id), Err(EndpointError::Ended(Ending::Refused)));
    assert_eq!(duel.ends[RIGHT].endpoint.counters().refused, 1);
    duel.ends[LEFT].endpoint.close(id);
    assert_eq!(read(&mut duel, LEFT, id), Err(EndpointError::Unknown));
    assert_eq!(duel.ends[LEFT].endpoint.connections(), 0);
}

#[test]
fn a_host_that_does_not_answer_is_given_up() {
    let mut duel = Duel::new(1, FAIR);
    let nobody = "10.0.0.77:80".parse().unwrap();
    let id = duel.connect(LEFT, nobody, &config()).unwrap();
    duel.pass(SECOND * 140);
    assert_eq!(duel.ends[LEFT].endpoint.ending(id), Some(Ending::TimedOut));
    assert_eq!(duel.ends[RIGHT].endpoint.counters().not_ours, duel.ends[LEFT].sent);
}

#[test]
fn wrong_calls_are_told_apart() {
    let mut duel = Duel::new(1, FAIR);
    let to = "[::]:80".parse().unwrap();
    assert_eq!(duel.connect(LEFT, to, &config()), Err(EndpointError::BadAddress(to)));
    let to = "10.0.0.2:0".parse().unwrap();
    assert_eq!(duel.connect(LEFT, to, &config()), Err(EndpointError::BadAddress(to)));
    let settings =
        Settings { addresses: vec![addresses(LEFT)[0]], max_connections: 1, ..Settings::default() };
    duel.ends[LEFT] = crate::duel::End::new(1, settings);
    let to = Duel::at(RIGHT, true, 80);
    assert_eq!(duel.connect(LEFT, to, &config()), Err(EndpointError::NoAddress(to)));
    let to = Duel::at(RIGHT, false, 80);
    let id = duel.connect(LEFT, to, &config()).unwrap();
    assert_eq!(duel.connect(LEFT, to, &config()), Err(EndpointError::TooMany(1)));
    let port = duel.ends[LEFT].endpoint.addresses(id).unwrap().0.port();
    let again = duel.ends[LEFT].with(Instant::ZERO, |e, cx| e.connect_from(cx, port, to, &config()));
    assert_eq!(again, Err(EndpointError::NoPort(to)));
    let right = &mut duel.ends[RIGHT].endpoint;
    right.listen(80, &config(), 1).unwrap();
    assert_eq!(right.listen(80, &config(), 1), Err(EndpointError::Listening(80)));
}

#[test]
fn a_half_closed_connection_goes_on_the_other_way() {
    let mut duel = Duel::new(1, FAIR);
    let (left, right) = open(&mut duel);
    duel.ends[LEFT].endpoint.shutdown(left).unwrap();
    assert_eq!(write(&mut duel, LEFT, left, b"late"), Err(EndpointError::Shut));
    duel.pass(SECOND);
    assert_eq!(read(&mut duel, RIGHT, right), Ok(0));
    assert_eq!(state(&duel, LEFT, left), Some(State::FinWait2));
    duel.pass(SECOND * 600);
    // the application holds it: no time limit, and all data still arrives
    assert_eq!(write(&mut duel, RIGHT, right, &[7; 900]), Ok(900));
    duel.ends[RIGHT].endpoint.shutdown(right).unwrap();
    duel.pass(SECOND);
    assert_eq!((read(&mut duel, LEFT, left), read(&mut duel, LEFT, left)), (Ok(900), Ok(0)));
    let told: Vec<_> = duel.ends[RIGHT].talks.log.iter().filter(|n| n.0 == right).map(|n| n.1).collect();
    assert!(told.ends_with(&[SocketEvent::Delivered, SocketEvent::Ended]), "{told:?}");
    duel.pass(SECOND * 11);
    assert_eq!(duel.ends[LEFT].endpoint.ending(left), Some(Ending::Closed));
    assert_eq!(duel.ends[RIGHT].endpoint.ending(right), Some(Ending::Closed));
}

#[test]
fn both_may_close_at_once() {
    let mut duel = Duel::new(1, FAIR);
    let (left, right) = open(&mut duel);
    duel.ends[LEFT].endpoint.shutdown(left).unwrap();
    duel.ends[RIGHT].endpoint.shutdown(right).unwrap();
    duel.pass(SECOND);
    assert_eq!(
        (state(&duel, LEFT, left), state(&duel, RIGHT, right)),
        (Some(State::TimeWait), Some(State::TimeWait))
    );
    for (side, id) in [(LEFT, left), (RIGHT, right)] {
        assert_eq!(read(&mut duel, side, id), Ok(0));
        duel.ends[side].endpoint.close(id);
    }
    duel.pass(SECOND * 10);
    assert_eq!(duel.ends.iter().map(|e| e.endpoint.connections()).sum::<usize>(), 0);
}

#[test]
fn both_may_call_at_once() {
    for weather in [FAIR, FOUL] {
        let mut duel = Duel::new(2, weather);
        let mut ids = Vec::new();
        for side in [LEFT, RIGHT] {
            let to = Duel::at(1 - side, true, 500);
            let id =
                duel.ends[side].with(Instant::ZERO, |e, cx| e.connect_from(cx, 500, to, &config())).unwrap();
            let (says, hears) = (side as u64, 1 - side as u64);
            duel.ends[side].talks.of.insert(id, Talk::new(says, 30_000, hears, 30_000));
            ids.push(id);
        }
        duel.run(SECOND * 60, Duel::all_done);
        assert!(
            duel.ends.iter().zip(&ids).all(|(e, id)| e.talks.log.contains(&(*id, SocketEvent::Connected)))
        );
    }
}

#[test]
fn what_arrives_for_nobody_is_answered_with_a_reset() {
    let mut duel = Duel::new(1, FAIR);
    let (left, right) = open(&mut duel);
    duel.ends[LEFT].endpoint.close(left);
    duel.pass(SECOND);
    assert_eq!(read(&mut duel, RIGHT, right), Ok(0));
    assert_eq!(write(&mut duel, RIGHT, right, b"are you there?"), Ok(14));
    duel.pass(SECOND);
    assert_eq!(duel.ends[RIGHT].endpoint.ending(right), Some(Ending::Reset));
    assert_eq!(duel.ends[LEFT].endpoint.connections(), 0);
}

#[test]
fn letting_go_of_unread_bytes_resets() {
    let mut duel = Duel::new(1, FAIR);
    let (left, right) = open(&mut duel);
    assert_eq!(write(&mut duel, RIGHT, right, b"never read"), Ok(10));
    duel.pass(SECOND);
    duel.ends[LEFT].endpoint.close(left);
    duel.pass(SECOND);
    assert_eq!(duel.ends[RIGHT].endpoint.ending(right), Some(Ending::Reset));
}

#[test]
fn an_abort_is_a_reset_and_what_had_arrived_can_be_read() {
    let mut duel = Duel::new(1, FAIR);
    let (left, right) = open(&mut duel);
    assert_eq!(write(&mut duel, LEFT, left, &[1; 500]), Ok(500));
    duel.pass(SECOND);
    duel.ends[LEFT].endpoint.abort(left);
    duel.pass(SECOND);
    assert_eq!(duel.ends[LEFT].endpoint.connections(), 0);
    assert_eq!(read(&mut duel, RIGHT, right), Ok(500));
    assert_eq!(read(&mut duel, RIGHT, right), Err(EndpointError::Ended(Ending::Reset)));
    assert_eq!(write(&mut duel, RIGHT, right, b"x"), Err(EndpointError::Ended(Ending::Reset)));
}

#[test]
fn nobody_waits_for_ever_in_fin_wait_2() {
    let mut duel = Duel::new(1, FAIR);
    let (left, right) = open(&mut duel);
    duel.ends[LEFT].endpoint.close(left);
    duel.pass(SECOND * 59);
    assert_eq!(duel.ends[LEFT].endpoint.connections(), 1);
    duel.pass(SECOND * 2);
    assert_eq!(duel.ends[LEFT].endpoint.connections(), 0, "after 60 s");
    // the peer gets no packet until it sends one
    assert_eq!(duel.ends[RIGHT].endpoint.ending(right), None);
    assert_eq!(write(&mut duel, RIGHT, right, b"hello?"), Ok(6));
    duel.pass(SECOND);
    assert_eq!(duel.ends[RIGHT].endpoint.ending(right), Some(Ending::Reset));
}

/// The time limit starts when the application closes the connection, however long it was half-closed before.
#[test]
fn who_lets_go_late_waits_as_long() {
    let mut duel = Duel::new(1, FAIR);
    let (left, right) = open(&mut duel);
    duel.ends[LEFT].endpoint.shutdown(left).unwrap();
    duel.pass(SECOND * 600);
    duel.ends[LEFT].endpoint.close(left);
    duel.pass(SECOND * 50);
    duel.ends[RIGHT].endpoint.shutdown(right).unwrap();
    duel.pass(SECOND);
    assert_eq!(duel.ends[RIGHT].endpoint.ending(right), Some(Ending::Closed));
}

#[test]
fn nobody_waits_for_ever_for_a_peer_that_reads_nothing() {
    let mut duel = Duel::new(1, FAIR);
    let (left, right) = open(&mut duel);
    let lots = vec![0; 3_000_000];
    while write(&mut duel, LEFT, left, &lots).is_ok() {
        duel.pass(SECOND);
    }
    duel.ends[LEFT].endpoint.close(left);
    duel.pass(SECOND * 125);
    let left_state = state(&duel, LEFT, left);
    assert_eq!(duel.ends[LEFT].endpoint.connections(), 0, "120 s without progress: {left_state:?}");
    assert_eq!(duel.ends[RIGHT].endpoint.ending(right), Some(Ending::Reset));
}

#[test]
fn callers_beyond_the_backlog_ask_again() {
    let mut duel = Duel::new(1, FAIR);
    duel.ends[RIGHT].endpoint.listen(90, &config(), 3).unwrap();
    for _ in 0..5 {
        duel.connect(LEFT, Duel::at(RIGHT, false, 90), &config()).unwrap();
    }
    // without `accept`, three get in
    for _ in 0..100 {
        let now = duel.now;
        let end = &mut duel.ends[RIGHT];
        let mut cx = end.world.cx(now, bentpipe_base::NodeId(0));
        duel.path.advance(now);
        while let Some(bytes) = duel.path.leave(now, RIGHT) {
            end.endpoint.packet(&mut cx, &bytes, &bentpipe_wire::offload::VnetHeader::default());
        }
        let mut out = Vec::new();
        while end.endpoint.next_packet(&mut cx, &mut out) {
            duel.path.enter(now, RIGHT, &out);
        }
        let left = &mut duel.ends[LEFT];
        let mut cx = left.world.cx(now, bentpipe_base::NodeId(0));
        while let Some(bytes) = duel.path.leave(now, LEFT) {
            left.endpoint.packet(&mut cx, &bytes, &bentpipe_wire::offload::VnetHeader::default());
        }
        while left.endpoint.next_packet(&mut cx, &mut out) {
            duel.path.enter(now, LEFT, &out);
        }
        duel.now += Duration::from_millis(5);
    }
    assert_eq!(duel.ends[RIGHT].endpoint.connections(), 3);
    assert_eq!(duel.ends[RIGHT].endpoint.counters().overflowed, 2);
    // now they are accepted, and the others retransmit their SYNs
    duel.pass(SECOND * 5);
    assert_eq!(duel.ends[RIGHT].endpoint.connections(), 5);
}

#[test]
fn ports_in_time_wait_may_be_called_from_again() {
    let mut duel = Duel::new(1, FAIR);
    duel.ends[RIGHT].endpoint.listen(80, &config(), 4).unwrap();
    let to = Duel::at(RIGHT, false, 80);
    let mut fresh = 0;
    for _ in 0..20 {
        let now = duel.now;
        let left = duel.ends[LEFT].with(now, |e, cx| e.connect_from(cx, 700, to, &config())).unwrap();
        let called =
            |d: &Duel| d.ends[RIGHT].talks.log.iter().filter(|n| n.1 == SocketEvent::Calling).count();
        let before = called(&duel);
        duel.run(SECOND * 30, |d| called(d) > before);
        fresh += u64::from(duel.now.since(now) < SECOND);
        let right = duel.ends[RIGHT].talks.log.iter().rfind(|n| n.1 == SocketEvent::Calling).unwrap().0;
        // the right closes first and enters TIME-WAIT; the left forgets the connection at once
        duel.ends[RIGHT].endpoint.shutdown(right).unwrap();
        duel.pass(SECOND);
        duel.ends[LEFT].endpoint.close(left);
        duel.pass(SECOND);
        assert_eq!(state(&duel, RIGHT, right), Some(State::TimeWait));
        assert_eq!(duel.ends[LEFT].endpoint.connections(), 0);
        duel.ends[RIGHT].endpoint.close(right);
    }
    // half of the random sequence numbers lie beyond the old connection's; the others get a RST and retry
    assert!((2..=18).contains(&fresh), "{fresh}");
    duel.pass(SECOND * 80);
    assert_eq!(duel.ends[RIGHT].endpoint.connections(), 0);
}

#[test]
fn time_wait_is_bounded() {
    let mut duel = Duel::with(1, FAIR, &Settings { max_time_wait: 3, ..Settings::default() });
    duel.ends[RIGHT].endpoint.listen(80, &config(), 40).unwrap();
    for i in 0..10 {
        duel.talk(false, &config(), Talk::new(i, 100, i + 50, 100), Talk::new(i + 50, 100, i, 100));
        duel.run(SECOND, |d| d.ends[RIGHT].talks.for_callers[&80].is_empty());
    }
    duel.run(SECOND * 5, Duel::all_done);
    let kept: Vec<_> = duel.ends.iter().map(|e| e.endpoint.connections()).collect();
    assert!(kept.iter().all(|k| *k <= 4), "{kept:?}");
    duel.pass(SECOND * 30);
    assert_eq!(duel.ends.iter().map(|e| e.endpoint.connections()).sum::<usize>(), 0);
}

#[test]
fn who_stops_listening_sends_callers_away() {
    let mut duel = Duel::new(1, FAIR);
    duel.ends[RIGHT].endpoint.listen(80, &config(), 4).unwrap();
    let id = duel.connect(LEFT, Duel::at(RIGHT, false, 80), &config()).unwrap();
    // the SYN-ACK is on its way back
    duel.settle();
    duel.now += Duration::from_millis(6);
    duel.path.advance(duel.now);
    let now = duel.now;
    while let Some(bytes) = duel.path.leave(now, RIGHT) {
        duel.ends[RIGHT]
            .with(now, |e, cx| e.packet(cx, &bytes, &bentpipe_wire::offload::VnetHeader::default()));
    }
    duel.ends[RIGHT].endpoint.stop_listening(80);
    duel.pass(SECOND * 5);
    assert!(matches!(duel.ends[LEFT].endpoint.ending(id), Some(Ending::Refused | Ending::Reset)));
    assert_eq!(duel.ends[RIGHT].endpoint.connections(), 0);
}
