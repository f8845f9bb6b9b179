//! How it ends, and what comes after: killed, stopped as planned, run again.

use super::figures;
use super::lab::{FAR, Lab, echo, out, wait_until};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;

#[test]
fn when_it_is_killed_the_kernel_forwards_by_itself() {
    let Some(lab) = Lab::new("killed", true) else { return };
    let before = lab.traces();
    let gateway = lab.start(&lab.file(""));
    let mut streams = [lab.connect(false), lab.connect(true)];
    for stream in &mut streams {
        echo(stream, 1_000_000);
    }
    // in the middle of what is being sent
    let busy = lab.connect(false);
    let send = move || {
        let mut busy = busy;
        echo(&mut busy, 20_000_000);
    };
    let running = std::thread::Builder::new().spawn(send).expect("a thread");
    gateway.end(Signal::KILL);
    for stream in &mut streams {
        echo(stream, 1_000_000);
    }
    running.join().expect("every byte came back");
    assert!(lab.ping(false) && lab.ping(true));
    echo(&mut lab.connect(true), 1_000_000);
    let checked = out(&lab.gateway(&["check", &lab.file("")]));
    assert!(checked.contains("it was killed and has left rules behind"), "{checked}");
    let undone = out(&lab.gateway(&["undo"]));
    assert!(undone.contains("gateway gateway: nftables table inet bentpipe_gateway removed\n"), "{undone}");
    assert!(undone.contains("IPv6 routing rule for mark 0x6271 removed\n"), "{undone}");
    assert_eq!(lab.traces(), before);
    assert!(lab.ping(false));
}

#[test]
fn a_planned_end_loses_no_byte_of_what_is_under_way() {
    let Some(lab) = Lab::new("planned", true) else { return };
    let gateway = lab.start(&lab.file(""));
    let busy = [false, true].map(|v6| {
        let mut stream = lab.connect(v6);
        let send = move || {
            echo(&mut stream, 20_000_000);
            stream
        };
        std::thread::Builder::new().spawn(send).expect("a thread")
    });
    let (status, log) = gateway.end(Signal::TERM);
    assert_eq!(status, Some(0), "{log}");
    for sending in busy {
        let mut stream = sending.join().expect("every byte came back");
        echo(&mut stream, 1_000_000);
    }
}

#[test]
fn the_next_run_takes_back_what_a_killed_one_left() {
    let Some(lab) = Lab::new("again", true) else { return };
    let before = lab.traces();
    lab.start(&lab.file("")).end(Signal::KILL);
    let gateway = lab.start(&lab.file(""));
    assert!(gateway.lines.contains("event=\"leftover\""), "{}", gateway.lines);
    echo(&mut lab.connect(false), 1_000_000);
    assert!(figures(&lab)["figures"]["bytes"][0].as_u64().unwrap() > 1_000_000);
    // whoever undoes a gateway that runs ends it
    let undone = out(&lab.gateway(&["undo"]));
    assert!(undone.contains(&format!("process {} stopped", gateway.pid())), "{undone}");
    assert_eq!(lab.traces(), before);
}

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
        // little: until a gateway is there again, the far host takes the scaled windows of the other one for what they say
        echo(stream, 2000);
    }
    for round in 0..2 {
        let mut gateway = lab.start(&file);
        gateway.wait_for("event=\"connections\" text=\"2 are taken up after ");
        assert!(!gateway.lines.contains("damaged"), "{}", gateway.lines);
        let mut late = lab.connect(false);
        for stream in streams.iter_mut().chain([&mut late]) {
            echo(stream, 1_000_000);
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
            assert!(flow["acked_bytes"].as_u64() > Some(500_000), "round {round}: {page}");
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
