//! Super-packets, and a receiver whose kernel rejects a whole super-packet that reaches beyond its window
//! (Linux since 6.17, `tcp_sequence`), including its acknowledgment. Both sides send at once, so a rejected
//! packet also stalls the other direction. Everything must arrive all the same.

use crate::flow_rig::{Hop, Plan, RECEIVER, Rig, SENDER, WINDS, at, gateway, old};
use bentpipe_base::{Duration, Size};
use bentpipe_gateway::Config as GatewayConfig;
use bentpipe_nodes::{Reader, Writer};
use bentpipe_tcp::{Connection, ReceiveBuffer, State};

/// A fast hop: in a millisecond it carries more than the largest super-packet.
const FAST: Hop =
    Hop { bps: 1_000_000_000, one_way: Duration::from_millis(25), loss: 0.0, back_loss: 0.0, queue: 8 << 20 };

fn rig(seed: u64, loss: f64, window: u64, bytes: [u64; 2], rate: bool) -> Rig {
    let hop = Hop { loss, back_loss: loss / 4.0, ..FAST };
    let mut receiver = old();
    receiver.receive_buffer = ReceiveBuffer::Fixed(Size(window));
    let plan = Plan { writes: bytes.map(Writer::Transfer), ..Plan::bulk(receiver) };
    let mut setup = gateway(&hop);
    if !rate {
        setup = GatewayConfig { rate: None, ..setup };
    }
    let mut rig = Rig::new(seed, &hop, setup, &plan);
    rig.joins = 64_000;
    rig
}

/// Runs until both ends are done; returns the seconds it took.
fn finish(rig: &mut Rig, bytes: [u64; 2], most: f64) -> f64 {
    let mut t = 0.0;
    let over =
        |rig: &Rig, end| rig.end(end).is_some_and(|c| matches!(c.state(), State::TimeWait | State::Closed));
    while !(over(rig, SENDER) && over(rig, RECEIVER)) {
        t += 0.5;
        let got = [SENDER, RECEIVER].map(|end| rig.end(end).map(|c| (c.state(), c.received())));
        assert!(
            t < most,
            "not over after {t} s: {got:?}, {:?} refused, {:?}",
            rig.refused,
            rig.gateway.counters()
        );
        rig.run_until(at(t));
    }
    let received = [SENDER, RECEIVER].map(|end| rig.end(end).map_or(0, Connection::received));
    assert_eq!(received, [bytes[1], bytes[0]], "every byte has arrived");
    t
}

/// Windows of half a super-packet and of one: repairs are cut until the receiver accepts them.
#[test]
fn a_receiver_that_refuses_super_packets_gets_everything() {
    for (window, loss) in [(31_000, 0.01), (31_000, 0.05), (65_535, 0.01), (65_535, 0.05)] {
        for seed in 1..=4 {
            for rate in [true, false] {
                let bytes = [12_000_000, 1_000_000];
                let mut rig = rig(seed, loss, window, bytes, rate);
                finish(&mut rig, bytes, 60.0);
                assert!(rig.refused[0] > 0, "it refuses something");
            }
        }
    }
}

/// A receiver whose application pauses has a closed window and refuses the data in flight. Its own data must
/// continue at the usual pace: the ACKs for it carry a sequence number that it accepts.
#[test]
fn a_closed_window_does_not_stop_the_other_direction() {
    let mut plan = Plan { writes: [Writer::Bulk, Writer::Bulk], ..Plan::bulk(old()) };
    plan.reads[RECEIVER] = Reader::Pause { from: at(20.0), to: at(60.0), every: None };
    plan.sender.receive_buffer = ReceiveBuffer::Fixed(Size(65_535));
    let mut rig = Rig::new(1, &WINDS, gateway(&WINDS), &plan);
    rig.joins = 64_000;
    rig.run_until(at(25.0));
    let before = rig.end(SENDER).map_or(0, Connection::received);
    rig.run_until(at(55.0));
    let rate = (rig.end(SENDER).map_or(0, Connection::received) - before) as f64 / 30.0;
    assert!(rate > 0.8 * 65_535.0, "{rate} B/s of a window per second while it rests");
}
