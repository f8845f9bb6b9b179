//! Restarts of a gateway: after a kill, and planned with a successor that resumes the connections.

use crate::figures;
use crate::lab::{FAR, Lab, echo, err, out, wait_until};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;

#[test]
fn a_gateway_that_is_run_again_goes_on_with_what_it_accelerated_before_it_was_killed() {
    let Some(lab) = Lab::new("restart", true) else { return };
    let before = lab.traces();
    // a host without window scaling: the gateway has inserted a window scale towards the other end
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
        // only a little: until a gateway is running again, the far host misreads the scaled windows of the
        // host as unscaled
        echo(stream, 2000);
    }
    for round in 0..2 {
        let mut gateway = lab.start(&file);
        gateway.wait_for("event=\"connections\" text=\"2 resumed after ");
        assert!(!gateway.lines.contains("damaged"), "{}", gateway.lines);
        let mut late = lab.connect(false);
        // twice: packets sent before both hosts have spoken pass unaccelerated, perhaps most of a window
        for _ in 0..2 {
            for stream in streams.iter_mut().chain([&mut late]) {
                echo(stream, 1_000_000);
            }
        }
        let page: Value = serde_json::from_str(&out(&lab.gateway(&["flows", "--json"]))).expect("JSON");
        let flows = page["flows"].as_array().expect("a list");
        // their SYNs were not seen, and yet they are accelerated
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
    // a damaged file is reported and does no harm
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
    // a normal stop leaves nothing behind
    assert_eq!(gateway.end(Signal::TERM).0, Some(0));
    assert_eq!(lab.traces(), before);
}

#[test]
fn a_planned_restart_keeps_connections_accelerated() {
    let Some(lab) = Lab::new("replaced", true) else { return };
    let before = lab.traces();
    let old = "/proc/sys/net/ipv4/tcp_window_scaling";
    lab.at(FAR, || fs::write(old, "0")).expect("a far host of the old kind");
    // with a metrics address that the running gateway uses, and a watch that any other start would begin with
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
    // while the old one is running, a new one replaces it
    for round in 0..2 {
        let refused = lab.gateway(&["run", &file]);
        assert_eq!(refused.status.code(), Some(2), "{}", err(&refused));
        // a check says the same, and with --replace that it would start
        assert_eq!(lab.gateway(&["check", &file]).status.code(), Some(2));
        let checked = lab.gateway(&["check", "--replace", &file]);
        assert_eq!(checked.status.code(), Some(0), "{}", out(&checked));
        let mut new = lab.start_as(&["run", "--replace", &file], &[]);
        new.wait_for("event=\"connections\" text=\"2 resumed after ");
        assert!(!new.lines.contains("watching"), "{}", new.lines);
        let (status, log) = gateway.wait();
        assert_eq!(status, Some(0), "{log}");
        assert!(log.contains("stopped to be replaced"), "{log}");
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
        "gateway gateway has ended; the next run continues its connections\n",
        "{}",
        err(&stopped)
    );
    assert_eq!(gateway.wait().0, Some(0));
    for stream in &mut streams {
        echo(stream, 2000);
    }
    let mut gateway = lab.start(&file);
    gateway.wait_for("event=\"connections\" text=\"2 resumed after ");
    for _ in 0..2 {
        for stream in &mut streams {
            echo(stream, 1_000_000);
        }
    }
    assert_eq!(taken_up(&lab), 2);
    // a stop without --keep leaves nothing behind
    assert_eq!(out(&lab.gateway(&["stop"])), "gateway gateway has ended\n");
    assert_eq!(gateway.wait().0, Some(0));
    for stream in &mut streams {
        echo(stream, 2000);
    }
    assert_eq!(lab.traces(), before);
    assert!(err(&lab.gateway(&["stop"])).contains("no gateway is running"));
}
