//! How connections with the kernel begin, pause and end.

use crate::kernel::{self, Crowd};
use crate::lab::{Bench, KERNEL, Lab, at};
use crate::talk::{Content, Talk};
use crate::{ALL, FAIR, FOUL, config, lab};
use bentpipe_base::{Duration, Size};
use bentpipe_live::endpoint::{ConnId, Ending, SocketEvent};
use bentpipe_tcp::{Connection, ReceiveBuffer, State};
use rustix::net::sockopt;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const LIMIT: Duration = Duration::from_secs(60);

fn state(bench: &Bench, id: ConnId) -> Option<State> {
    bench.endpoint.connection(id).map(Connection::state)
}

/// Connects the engine to the kernel; returns the kernel's socket and the engine's connection id.
fn engine_calls(lab: &mut Lab, bench: &mut Bench, v6: bool) -> (TcpStream, ConnId) {
    let listener = kernel::listen(lab, at(KERNEL, v6, 5000));
    let id = bench.with(|e, cx| e.connect(cx, at(KERNEL, v6, 5000), &config(ALL))).unwrap();
    assert!(bench.run(lab, LIMIT, |b| b.talks.log.contains(&(id, SocketEvent::Connected))));
    // the kernel's side is open when our ACK has arrived
    assert!(bench.run(lab, LIMIT, |b| b.path.next_at().as_deadline().is_none()));
    (kernel::accept(&listener), id)
}

/// Waits until the engine's connection has ended.
fn ended(lab: &mut Lab, bench: &mut Bench, id: ConnId) -> Option<Ending> {
    assert!(bench.run(lab, LIMIT, |b| b.endpoint.ending(id).is_some()));
    bench.endpoint.ending(id)
}

#[test]
fn each_side_may_close_first_and_the_other_goes_on() {
    let Some(mut lab) = lab("each_side_may_close_first_and_the_other_goes_on") else { return };
    for v6 in [false, true] {
        for engine_first in [true, false] {
            let mut bench = Bench::new(1, FOUL);
            let mut crowd = Crowd::default();
            let (stream, id) = engine_calls(&mut lab, &mut bench, v6);
            let (first, second) = (10_000, 300_000);
            if engine_first {
                bench.talks.of.insert(id, Talk::new(2, first, 1, second));
                crowd.start(move || {
                    // receive all before sending the first byte
                    kernel::hear(&stream, Content(2), first);
                    kernel::say(&stream, Content(1), 0, second);
                });
            } else {
                let mut talk = Talk::new(2, second, 1, first);
                talk.speaks_last = true;
                bench.talks.of.insert(id, talk);
                crowd.start(move || {
                    kernel::say(&stream, Content(1), 0, first);
                    kernel::hear(&stream, Content(2), second);
                });
            }
            bench.act(id);
            assert!(
                bench.run(&mut lab, LIMIT, |b| crowd.has_failed() || b.talks.all_done() && crowd.is_over())
            );
            crowd.join();
        }
    }
}

#[test]
fn both_may_close_at_once() {
    let Some(mut lab) = lab("both_may_close_at_once") else { return };
    // the two FINs cross when both sides are on time; a busy machine may need another try
    for _ in 0..10 {
        let mut bench = Bench::new(1, FAIR);
        let (mut stream, id) = engine_calls(&mut lab, &mut bench, false);
        stream.shutdown(Shutdown::Write).unwrap();
        bench.endpoint.shutdown(id).unwrap();
        let mut crossed = false;
        let over = bench.run(&mut lab, LIMIT, |b| {
            crossed |= state(b, id) == Some(State::Closing);
            state(b, id) == Some(State::TimeWait)
        });
        assert!(over);
        assert_eq!(stream.read(&mut [0; 10]).unwrap(), 0);
        assert!(bench.talks.log.contains(&(id, SocketEvent::Delivered)));
        if crossed {
            return;
        }
    }
    panic!("the two ends never crossed");
}

#[test]
fn a_reset_from_either_side_is_heard_by_the_other() {
    let Some(mut lab) = lab("a_reset_from_either_side_is_heard_by_the_other") else { return };
    let mut bench = Bench::new(1, FAIR);
    let (stream, id) = engine_calls(&mut lab, &mut bench, true);
    // closing with a linger time of zero sends a RST
    sockopt::set_socket_linger(&stream, Some(std::time::Duration::ZERO)).unwrap();
    drop(stream);
    assert_eq!(ended(&mut lab, &mut bench, id), Some(Ending::Reset));

    let (mut stream, id) = engine_calls(&mut lab, &mut bench, false);
    bench.endpoint.abort(id);
    assert!(
        bench.run(&mut lab, LIMIT, |b| b.endpoint.connections() == 1
            && b.path.next_at().as_deadline().is_none())
    );
    assert_eq!(stream.read(&mut [0; 10]).unwrap_err().kind(), ErrorKind::ConnectionReset);

    // the kernel's data to a closed connection
    let (mut stream, id) = engine_calls(&mut lab, &mut bench, false);
    bench.endpoint.close(id);
    assert!(bench.run(&mut lab, LIMIT, |b| state(b, id).is_none() || state(b, id) == Some(State::FinWait2)));
    stream.write_all(b"are you there?").unwrap();
    assert!(
        bench.run(&mut lab, LIMIT, |b| b.endpoint.connections() == 1
            && b.path.next_at().as_deadline().is_none())
    );
    assert_eq!(stream.write(b"hello?").unwrap_err().kind(), ErrorKind::BrokenPipe);
}

#[test]
fn a_port_nobody_listens_at_refuses_on_either_side() {
    let Some(mut lab) = lab("a_port_nobody_listens_at_refuses_on_either_side") else { return };
    for v6 in [false, true] {
        let mut bench = Bench::new(1, FOUL);
        let id = bench.with(|e, cx| e.connect(cx, at(KERNEL, v6, 4999), &config(ALL))).unwrap();
        assert_eq!(ended(&mut lab, &mut bench, id), Some(Ending::Refused));
        let mut crowd = Crowd::default();
        let host = Arc::clone(&lab.host);
        crowd.start(move || {
            let refused = kernel::call(&host, v6, 81).expect_err("nobody listens");
            assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        });
        assert!(bench.run(&mut lab, LIMIT, |_| crowd.is_over()));
        crowd.join();
    }
}

/// The kernel's application pauses reading: the window closes, the engine probes it and then continues.
#[test]
fn the_kernels_window_may_close_and_open() {
    let Some(mut lab) = lab("the_kernels_window_may_close_and_open") else { return };
    let mut bench = Bench::new(1, FAIR);
    let (stream, id) = engine_calls(&mut lab, &mut bench, false);
    let bytes = 10_000_000;
    bench.talks.of.insert(id, Talk::new(2, bytes, 1, 0));
    bench.act(id);
    let closed = |b: &Bench| b.endpoint.connection(id).is_some_and(|c| c.path().peer_window.0 == 0);
    assert!(bench.run(&mut lab, LIMIT, |b| closed(b)));
    let until = bench.clock.now() + Duration::from_secs(2);
    let sent = bench.endpoint.counters().sent;
    assert!(bench.run(&mut lab, LIMIT, |b| b.clock.now() >= until));
    let probes = bench.endpoint.counters().sent - sent;
    assert!(closed(&bench) && (1..30).contains(&probes), "{probes} packets in 2 s of a closed window");
    let mut crowd = Crowd::default();
    crowd.start(move || {
        kernel::say(&stream, Content(1), 0, 0);
        kernel::hear(&stream, Content(2), bytes);
    });
    assert!(bench.run(&mut lab, LIMIT, |b| crowd.has_failed() || b.talks.all_done() && crowd.is_over()));
    crowd.join();
}

/// The engine's application pauses reading: the kernel probes the closed window, and learns that it opened.
#[test]
fn the_engines_window_may_close_and_open() {
    let Some(mut lab) = lab("the_engines_window_may_close_and_open") else { return };
    let mut bench = Bench::new(1, FAIR);
    let buffer = ReceiveBuffer::Fixed(Size(60_000));
    let config = bentpipe_tcp::Config { receive_buffer: buffer, ..config(ALL) };
    bench.endpoint.listen(80, &config, 1).unwrap();
    let host = Arc::clone(&lab.host);
    let mut crowd = Crowd::default();
    let bytes = 3_000_000;
    let all_said = Arc::new(AtomicBool::new(false));
    let said = Arc::clone(&all_said);
    crowd.start(move || {
        let stream = kernel::call(&host, true, 80).expect("the engine answers");
        kernel::say(&stream, Content(1), 0, bytes);
        said.store(true, Ordering::Relaxed);
        kernel::hear(&stream, Content(2), 0);
    });
    let full = |b: &Bench| {
        let caller = b.talks.log.iter().find(|n| n.1 == SocketEvent::Calling)?.0;
        (b.endpoint.connection(caller)?.readable() >= 60_000).then_some(caller)
    };
    assert!(bench.run(&mut lab, LIMIT, |b| crowd.has_failed() || full(b).is_some()));
    let id = full(&bench).unwrap();
    let until = bench.clock.now() + Duration::from_secs(2);
    assert!(bench.run(&mut lab, LIMIT, |b| b.clock.now() >= until));
    assert!(!all_said.load(Ordering::Relaxed), "three megabytes do not fit");
    assert_eq!(full(&bench), Some(id), "nothing was lost or read");
    bench.talks.of.insert(id, Talk::new(2, 0, 1, bytes));
    bench.act(id);
    assert!(bench.run(&mut lab, LIMIT, |b| crowd.has_failed() || b.talks.all_done() && crowd.is_over()));
    crowd.join();
}
