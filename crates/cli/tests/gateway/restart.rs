//! A gateway that was killed is run again.

use crate::figures;
use crate::lab::{FAR, Lab, echo, out, wait_until};
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
        // little: until a gateway is there again, the far host takes the scaled windows of the other one for what they say
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
