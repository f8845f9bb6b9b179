mod flow_rig;
use bentpipe_base::*;
use bentpipe_nodes::*;
use flow_rig::*;
fn run(what: &str, reader: Reader, loss: f64, upto: f64) {
    let hop = Hop { loss, ..WINDS };
    let mut plan = Plan::bulk(old());
    plan.reads[1] = reader;
    let mut rig = Rig::new(1, &hop, gateway(&hop), &plan);
    let mut t = 0.0;
    let mut line = String::new();
    let mut last = *rig.gateway.counters();
    while t < upto {
        let g = rig.goodput(t, t + 2.0);
        t += 2.0;
        let c = *rig.gateway.counters();
        line += &format!(
            " {g:.1}({}r{}p{})",
            c.resent - last.resent,
            c.repairs - last.repairs,
            c.probes - last.probes
        );
        last = c;
    }
    eprintln!("DBG {what} {line} {last:?} {:?}", rig.gateway.reports());
}
#[test]
fn debug() {
    let slow = |bps| Reader::Slow { rate: Rate::from_bps(bps).unwrap(), read: 0, since: None };
    run("slow1", slow(1_000_000), 0.0, 80.0);
    run("slow8", slow(8_000_000), 0.0, 80.0);
    run("slow8lossy", slow(8_000_000), 1e-4, 80.0);
    run("pause", Reader::Pause(at(20.0), at(30.0)), 0.0, 50.0);
    run("pause short", Reader::Pause(at(20.0), at(20.01)), 0.0, 30.0);
    run("pause 100ms", Reader::Pause(at(20.0), at(20.1)), 0.0, 30.0);
    run("stop", Reader::StopAt(at(20.0)), 0.0, 60.0);
}

#[test]
fn seen() {
    let mut plan = Plan::bulk(old());
    plan.reads[1] = Reader::Pause(at(20.0), at(30.0));
    let mut rig = Rig::new(1, &WINDS, gateway(&WINDS), &plan);
    rig.run_until(at(20.4));
    rig.seen = Some(Vec::new());
    let mut t = 20.4;
    let mut last = (0, 0, 0);
    while t < 34.0 {
        rig.run_until(at(t));
        for (at, p) in rig.seen.as_mut().unwrap().drain(..) {
            if !p.tcp.sack.is_empty() || at.0 > 30_000_000_000 && at.0 < 31_200_000_000 {
                eprintln!(
                    "DBG {at} ack {} win {} sack {:?}",
                    p.tcp.ack.0,
                    p.tcp.window,
                    p.tcp.sack.as_slice()
                );
            }
        }
        let s = rig.end(SENDER).unwrap();
        let now = (s.stats().retransmits, s.stats().timeouts, s.stats().undone);
        if now != last {
            eprintln!("DBG {t} {now:?} cwnd {:?} ", s.cwnd());
            last = now;
        }
        t += 0.01;
    }
}
#[test]
fn strict() {
    let hop =
        Hop { one_way: Duration::from_millis(500), loss: 0.05, back_loss: 0.0, queue: 4 << 20, ..WINDS };
    let mut plain = old();
    plain.options.sack = false;
    let plan = Plan {
        sender: plain,
        writes: [Writer::Transfer(51101), Writer::Transfer(59861)],
        receiver_opens: false,
        ..Plan::bulk(modern())
    };
    let mut rig = Rig::new(769380, &hop, gateway(&hop), &plan);
    rig.lan = [3, 3, 10];
    let mut t = 0.0;
    let mut was = (0, 0, 0);
    while t < 600.0 {
        rig.run_until(at(t));
        let s = rig
            .end(SENDER)
            .map(|s| (s.stats().retransmits, s.stats().timeouts, s.state(), s.unacknowledged()));
        let r = rig
            .end(RECEIVER)
            .map(|s| (s.stats().retransmits, s.stats().timeouts, s.state(), s.unacknowledged()));
        let now = (rig.received(), s.map_or(0, |s| s.1), r.map_or(0, |s| s.1));
        if now != was {
            eprintln!(
                "DBG {t:.1} {} {s:?} {r:?} {:?} {:?}",
                rig.received(),
                rig.gateway.reports(),
                rig.gateway.counters()
            );
        }
        was = now;
        t += 0.5;
    }
}
