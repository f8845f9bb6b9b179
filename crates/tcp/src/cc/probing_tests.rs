//! One episode in gated mode, with and without queued segments at the loss.

use super::{ExpansionRule, PeachParams, Probing, ProbingParams};
use crate::cc::law::ControllerStart;
use crate::cc::{
    Ack, CongestionControl, Episode, Loss, LossCause, Path, ProbeCarry, ProbeSignal, SentSegment,
};
use crate::config::Config;
use crate::limits::Limit;
use bentpipe_base::{Duration, Instant, NodeId, Size, World};

const MSS: u64 = 1000;
const W0: u64 = 64;

fn path(srtt_ms: u64, una: u64) -> Path {
    Path {
        mss: Size(MSS),
        in_flight: Size(W0 * MSS),
        flight: Size(W0 * MSS),
        peer_window: Size(1 << 30),
        srtt: Duration::from_millis(srtt_ms),
        rttvar: Duration::ZERO,
        rtt_min: Duration::from_millis(550),
        round: 9,
        una,
        next: 200 * MSS,
        delivered: una,
        lost: MSS,
        unsent: None,
        probes: ProbeSignal::Dsack,
    }
}

fn ack(acked: u64, probes: u32, episode: Episode) -> Ack {
    Ack {
        delivered: Size(acked),
        acked: Size(acked),
        rtt: None,
        rate: None,
        round_ended: false,
        episode,
        limited_by: Limit::CongestionWindow,
        probes,
    }
}

/// Window in segments after an episode in which every probe is acknowledged, followed by `data` data ACKs.
fn after(expands: ExpansionRule, srtt_ms: u64, data: u64) -> u64 {
    let peach = ProbingParams::of_peach(ProbeCarry::Random, PeachParams::default());
    let switches = ProbingParams { expands, partial: true, ..peach };
    let config = Config { initial_window: W0 as u32, ..Config::default() };
    let start = ControllerStart { mss: Size(MSS), headers: Size(40), config: &config };
    let mut cc = Probing::new(&start, switches);
    let mut world = World::new(1);
    let mut cx = world.cx(Instant(1), NodeId(0));
    let loss = Loss { cause: LossCause::Fast, last_sent: Instant::ZERO, resends: 0 };
    cc.on_loss(&mut cx, &path(srtt_ms, 0), &loss);
    for _ in 0..W0 {
        cc.on_sent(&mut cx, &path(srtt_ms, 0), &SentSegment { bytes: Size(MSS), resent: true, probe: true });
    }
    cc.on_ack(&mut cx, &path(srtt_ms, MSS), &ack(MSS, 0, Episode::Fast));
    cc.on_ack(&mut cx, &path(srtt_ms, 2 * MSS), &ack(MSS, 0, Episode::Ended));
    for _ in 0..W0 {
        cc.on_ack(&mut cx, &path(srtt_ms, 2 * MSS), &ack(0, 1, Episode::Open));
    }
    for n in 0..data {
        cc.on_ack(&mut cx, &path(srtt_ms, (3 + n) * MSS), &ack(MSS, 0, Episode::Open));
    }
    cc.plan(&path(srtt_ms, 2 * MSS)).window.0 / MSS
}

/// N = 64 (1 - 550 / RTT): 2.8 at 575 ms, 3.3 at 580 ms.
#[test]
fn a_queue_at_the_loss_keeps_the_window_halved() {
    let gated = ExpansionRule::Gated { share: 0.9, backlog: 3.0 };
    assert_eq!(after(gated, 550, 0), W0, "all probes came back, a partial acknowledgment too: not above W0");
    assert_eq!(after(gated, 575, 0), W0);
    assert_eq!(after(gated, 580, 0), W0 / 2);
    assert_eq!(after(gated, 580, 20), W0 / 2, "data ACKs are congestion avoidance");
    assert_eq!(after(ExpansionRule::Gated { share: 0.9, backlog: 4.0 }, 580, 0), W0);
    assert_eq!(after(ExpansionRule::Always, 580, 0), W0 + 1, "the paper's does not ask");
    assert_eq!(after(ExpansionRule::Always, 580, 20), W0 + 21);
}
