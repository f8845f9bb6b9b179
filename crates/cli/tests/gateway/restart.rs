//! A gateway that was killed is run again, or ended as planned so that another goes on.

use crate::figures;
use crate::lab::{FAR, Lab, echo, err, out, wait_until};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;

#[test]
fn a_gateway_that_is_run_again_goes_on_with_what_it_accelerated_before_it_was_killed() {
    let Some(lab) = Lab::new("restart", true) else { return };
    let before = lab.traces();
    // whose windows cannot be scaled: the gateway has put a scale into what the other end saw
    let old = "/proc/sys/net/ipv4/tcp_window_scaling";
    lab.at(FAR, || fs::write(old, "0")).expect("a far host of the old kind");
    let file = lab.file("");
    let gateway = lab.start(&file);
    let mut streams = [lab.connect(false), lab.connect(true)];
    for stream in &mut streams {
        echo(stream, 500_000);
    }
    assert_eq!(figures(&lab)["figures"]["accelerated"], 2);
    gateway.end(Signal::KILL);
    for stream in &mut streams {
        // little: until a gateway is there again, the far host takes the scaled windows of the other one for
        // what they say
        echo(stream, 2000);
    }
    for round in 0..2 {
        let mut gateway = lab.start(&file);
        gateway.wait_for("event=\"connections\" text=\"2 are taken up after ");
        assert!(!gateway.lines.contains("damaged"), "{}", gateway.lines);
        let mut late = lab.connect(false);
        // twice: what is on the way before both hosts have spoken passes, and may be most of a window
        for _ in 0..2 {
            for stream in streams.iter_mut().chain([&mut late]) {
                echo(stream, 1_000_000);
            }
        }
        let page: Value = serde_json::from_str(&out(&lab.gateway(&["flows", "--json"]))).expect("JSON");
        let flows = page["flows"].as_array().expect("a list");
        // nobody has seen them begin, and still they are accelerated
        let old: Vec<_> = flows.iter().filter(|f| f["opened_from"].is_null()).collect();
        assert_eq!((old.len(), flows.len()), (2, 3), "round {round}: {page}");
        for flow in old {
            assert_eq!(
                (&flow["why_passing"], &flow["state"]),
                (&Value::Null, &"established".into()),
                "{page}"
            );
            assert!(flow["acked_bytes"].as_u64() >= Some(1_000_000), "round {round}: {page}");
        }
        drop(late);
        wait_until("the end of the third", || figures(&lab)["figures"]["accelerated"] == 2);
        gateway.end(Signal::KILL);
    }
    // a file that somebody has damaged is said to be, and harms nothing
    let records = lab.run_dir().join("gateway.flows");
    let mut bytes = fs::read(&records).expect("records");
    bytes[13] ^= 1;
    fs::write(&records, bytes).expect("records");
    let mut gateway = lab.start(&file);
    gateway.wait_for("gateway.flows is not used: it is damaged: its head");
    for stream in &mut streams {
        echo(stream, 2000);
    }
    assert_eq!(figures(&lab)["figures"]["accelerated"], 0);
    // ended as planned it leaves nothing
    assert_eq!(gateway.end(Signal::TERM).0, Some(0));
    assert_eq!(lab.traces(), before);
}

#[test]
fn a_planned_restart_keeps_connections_accelerated() {
    let Some(lab) = Lab::new("replaced", true) else { return };
    let before = lab.traces();
    let old = "/proc/sys/net/ipv4/tcp_window_scaling";
    lab.at(FAR, || fs::write(old, "0")).expect("a far host of the old kind");
    // an address for metrics that the one that runs has, and traffic that would be looked at before another
    // start
    let file = lab.watched_file("30 s", "[status]\nprometheus = \"127.0.0.1:9464\"\n");
    let mut gateway = lab.start(&file);
    let mut streams = [lab.connect(false), lab.connect(true)];
    for stream in &mut streams {
        echo(stream, 500_000);
    }
    let taken_up = |lab: &Lab| {
        let page: Value = serde_json::from_str(&out(&lab.gateway(&["flows", "--json"]))).expect("JSON");
        let flows = page["flows"].as_array().expect("a list");
        let again = |f: &&Value| f["opened_from"].is_null() && f["why_passing"].is_null();
        flows.iter().filter(again).count()
    };
    // with the other there, a new program takes its place
    for round in 0..2 {
        let refused = lab.gateway(&["run", &file]);
        assert_eq!(refused.status.code(), Some(2), "{}", err(&refused));
        let mut new = lab.start_as(&["run", "--replace", &file], &[]);
        new.wait_for("event=\"connections\" text=\"2 are taken up after ");
        assert!(!new.lines.contains("watching"), "{}", new.lines);
        let (status, log) = gateway.wait();
        assert_eq!(status, Some(0), "{log}");
        assert!(log.contains("stopped for another to take its place"), "{log}");
        for _ in 0..2 {
            for stream in &mut streams {
                echo(stream, 1_000_000);
            }
        }
        assert_eq!(taken_up(&lab), 2, "round {round}");
        gateway = new;
    }
    // in two steps, as a service manager does
    let stopped = lab.gateway(&["stop", "--keep"]);
    assert_eq!(
        out(&stopped),
        "gateway gateway has ended; the next run goes on with its connections\n",
        "{}",
        err(&stopped)
    );
    assert_eq!(gateway.wait().0, Some(0));
    for stream in &mut streams {
        echo(stream, 2000);
    }
    let mut gateway = lab.start(&file);
    gateway.wait_for("event=\"connections\" text=\"2 are taken up after ");
    for _ in 0..2 {
        for stream in &mut streams {
            echo(stream, 1_000_000);
        }
    }
    assert_eq!(taken_up(&lab), 2);
    // a stop for good leaves nothing
    assert_eq!(out(&lab.gateway(&["stop"])), "gateway gateway has ended\n");
    assert_eq!(gateway.wait().0, Some(0));
    for stream in &mut streams {
        echo(stream, 2000);
    }
    assert_eq!(lab.traces(), before);
    assert!(err(&lab.gateway(&["stop"])).contains("no gateway is running"));
}
