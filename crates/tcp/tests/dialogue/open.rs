//! Opening: active, passive in two steps, simultaneous; lost, refused and aborted.

use crate::script::{
    ACK, Dialogue, FIN, OURS, PEERS, RST, SYN, SYN_ACK, Seg, Want, ack, data, packet_of, plain, position,
    syn, syn_ack,
};
use bentpipe_base::{Flags, Instant, NodeId, World};
use bentpipe_tcp::{Config, Event, Offer, RandomValues, Stack, State, reset_for, reset_in_listen};
use std::sync::Arc;

/// RFC 9293, section 3.5, figure 6: SYN, SYN/ACK, ACK.
#[test]
fn an_active_open_takes_three_segments() {
    let mut d = Dialogue::connect(plain());
    let (at, first) = d.take();
    assert_eq!((at, first.tcp.flags, position(OURS, first.tcp.seq)), (0, Flags::SYN, 0));
    d.silent();
    assert_eq!((d.conn.state(), d.event()), (State::SynSent, None));
    d.at(100).gets(SYN_ACK).sends_at(100, ack(1)).silent();
    assert_eq!((d.conn.state(), d.event(), d.event()), (State::Established, Some(Event::Established), None));
}

/// RFC 9293, section 3.5, figure 6: the same for the passive end.
#[test]
fn a_passive_open_answers_and_waits_for_the_ack() {
    let mut d = Dialogue::accept(plain(), SYN);
    d.sends_at(0, syn_ack()).silent();
    d.write(1000).silent();
    assert_eq!((d.conn.state(), d.event()), (State::SynReceived, None));
    d.at(100).gets(ACK).sends_at(100, data(1, 1000)).silent();
    assert_eq!((d.conn.state(), d.event()), (State::Established, Some(Event::Established)));
}

/// RFC 9293, section 3.10.7.4, fifth check: data on the ACK of our SYN/ACK is accepted.
#[test]
fn the_ack_of_the_handshake_may_carry_data() {
    let mut d = Dialogue::accept(plain(), SYN);
    d.sends(syn_ack()).gets(Seg { len: 300, ..ACK }).sends(ack(301)).silent();
    assert_eq!(d.conn.readable(), 300);
}

/// RFC 9293, section 3.10.2: a held offer sends nothing; SYN/ACK and timer start when it is completed.
#[test]
fn a_held_offer_answers_when_it_is_completed() {
    let mut d = Dialogue::accept_at(5000, plain(), SYN);
    d.sends_at(5000, syn_ack()).at(5999).silent();
    d.at(6000).sends_at(6000, syn_ack()).silent();
}

/// RFC 9293, section 3.10.7.1: a refusal is a RST that acknowledges the SYN.
#[test]
fn a_refused_offer_is_reset() {
    let mut world = World::new(1);
    let offer = Offer::new(&packet_of(&SYN), Arc::new(plain())).expect("a SYN");
    let rst = offer.refuse(&mut world.cx(Instant::ZERO, NodeId(0)));
    assert_eq!(rst.tcp.flags, Flags::RST.with(Flags::ACK));
    assert_eq!((position(PEERS, rst.tcp.ack), rst.tcp.seq.0), (1, 0));
    assert_eq!((rst.sport, rst.dport), (1000, 2000));
}

/// RFC 9293, section 3.10.7.2: a listener accepts only a SYN.
#[test]
fn only_a_syn_is_an_offer() {
    let config = Arc::new(plain());
    for seg in [ACK, SYN_ACK, RST, FIN, Seg { flags: Flags::SYN.with(Flags::RST), ..SYN }] {
        assert!(Offer::new(&packet_of(&seg), config.clone()).is_none(), "{seg:?}");
    }
}

/// RFC 9293, section 3.10.7.2: a SYN with FIN counts as a SYN, and the FIN is ignored; Linux
/// (`tcp_rcv_state_process`) drops it.
#[test]
fn a_syn_with_a_fin_is_a_syn() {
    let both = Seg { flags: Flags::SYN.with(Flags::FIN), ..SYN };
    let offer = Offer::new(&packet_of(&both), Arc::new(plain())).expect("a SYN");
    let mut world = World::new(1);
    let chance = RandomValues { isn: OURS, timestamp: 0, jitter: None };
    let mut cx = world.cx(Instant::ZERO, NodeId(0));
    let mut conn = offer.complete(&mut cx, chance);
    let answer = conn.transmit(&mut cx).expect("a SYN/ACK");
    assert_eq!((answer.tcp.flags, position(PEERS, answer.tcp.ack)), (Flags::SYN.with(Flags::ACK), 1));
    assert_eq!((conn.state(), conn.peer_closed()), (State::SynReceived, false));
    assert!(Offer::new(&packet_of(&both), Arc::new(plain().on(Stack::Linux))).is_none());
}

/// RFC 9293, section 3.10.7.2: in LISTEN only an acknowledgment causes a RST; a segment without SYN and ACK
/// is dropped.
#[test]
fn a_listener_answers_acknowledgments_only() {
    let mut world = World::new(1);
    let mut cx = world.cx(Instant::ZERO, NodeId(0));
    for seg in [ACK, SYN_ACK, FIN, Seg { len: 5, ack: Some(77), ..ACK }] {
        let rst = reset_in_listen(&mut cx, &packet_of(&seg)).expect("an answer");
        assert_eq!((rst.tcp.flags, Some(position(OURS, rst.tcp.seq))), (Flags::RST, seg.ack), "{seg:?}");
    }
    let bare = Seg { ack: None, ..ACK };
    let fin_alone = Seg { ack: None, ..FIN };
    let both = Seg { flags: Flags::SYN.with(Flags::FIN), ..SYN };
    for seg in [bare, fin_alone, Seg { len: 10, ..bare }, RST, Seg { ack: Some(1), ..RST }, both] {
        assert!(reset_in_listen(&mut cx, &packet_of(&seg)).is_none(), "{seg:?}");
    }
}

/// RFC 9293, section 3.10.7.3, fourth check: data and FIN on the SYN/ACK are processed as in ESTABLISHED.
/// Linux without Fast Open drops them (`tcp_rcv_synsent_state_process`), and the peer retransmits them.
#[test]
fn text_on_the_syn_ack_is_kept() {
    let answer = Seg { len: 300, ..SYN_ACK };
    let mut d = Dialogue::connect(plain());
    d.sends(syn()).at(100).gets(answer).sends(ack(301)).silent();
    assert_eq!((d.conn.state(), d.conn.readable()), (State::Established, 300));
    d.gets(Seg { seq: 301, len: 200, ..ACK }).sends(ack(501)).silent();
    let mut d = Dialogue::connect(plain());
    d.sends(syn())
        .at(100)
        .gets(Seg { flags: Flags::SYN.with(Flags::FIN), ..answer })
        .sends(ack(302))
        .silent();
    assert_eq!((d.conn.state(), d.conn.readable()), (State::CloseWait, 300));
    assert_eq!((d.event(), d.event()), (Some(Event::Established), Some(Event::PeerClosed)));
    let mut d = Dialogue::connect(plain().on(Stack::Linux));
    d.sends(syn()).at(100).gets(answer).sends(ack(1)).silent();
    assert_eq!((d.conn.state(), d.conn.readable()), (State::Established, 0));
}

/// RFC 9293, section 3.10.7.3: data beyond the window that our SYN offered is not accepted.
#[test]
fn text_on_the_syn_ack_keeps_to_the_window() {
    let receive_buffer = bentpipe_tcp::ReceiveBuffer::Fixed(bentpipe_base::Size(1000));
    let mut d = Dialogue::connect(Config { receive_buffer, ..plain() });
    d.sends(syn()).at(100).gets(Seg { len: 1460, ..SYN_ACK }).sends(Want { win: Some(0), ..ack(1001) });
    assert_eq!(d.conn.readable(), 1000);
}

/// RFC 9293, section 3.10.7.3: data on the SYN of a simultaneous open may be kept until ESTABLISHED; here it
/// is dropped, and the peer retransmits it.
#[test]
fn text_on_a_crossing_syn_waits() {
    let mut d = Dialogue::connect(plain());
    d.sends(syn()).at(50).gets(Seg { len: 300, ..SYN }).sends(syn_ack()).silent();
    assert_eq!((d.conn.state(), d.conn.readable()), (State::SynReceived, 0));
    d.gets(Seg { len: 300, ..ACK }).sends(ack(301)).silent();
    assert_eq!((d.conn.state(), d.conn.readable()), (State::Established, 300));
}

/// RFC 9293, section 3.10.7.1: the RST for a segment without a connection; a RST is never answered.
#[test]
fn a_segment_without_connection_is_reset() {
    let mut world = World::new(1);
    let mut cx = world.cx(Instant::ZERO, NodeId(0));
    let rst = reset_for(&mut cx, &packet_of(&Seg { ack: Some(77), ..ACK })).expect("an answer");
    assert_eq!((rst.tcp.flags, position(OURS, rst.tcp.seq)), (Flags::RST, 77));
    let rst = reset_for(&mut cx, &packet_of(&Seg { len: 10, ack: None, ..FIN })).expect("an answer");
    assert_eq!((rst.tcp.flags, rst.tcp.seq.0), (Flags::RST.with(Flags::ACK), 0));
    assert_eq!(position(PEERS, rst.tcp.ack), 12);
    assert!(reset_for(&mut cx, &packet_of(&RST)).is_none());
}

/// RFC 9293, section 3.5, figure 7: two SYNs cross, each end answers with SYN/ACK, and each SYN/ACK opens.
#[test]
fn a_simultaneous_open_meets_in_syn_received() {
    let mut d = Dialogue::connect(plain());
    d.sends(syn()).at(50).gets(SYN).sends_at(50, syn_ack()).silent();
    assert_eq!(d.conn.state(), State::SynReceived);
    d.at(100).gets(SYN_ACK);
    assert_eq!((d.conn.state(), d.event()), (State::Established, Some(Event::Established)));
    d.sends(ack(1)).silent().write(1000).sends(data(1, 1000));
}

/// The same when the peer's SYN/ACK is lost: its plain ACK opens as well.
#[test]
fn a_simultaneous_open_is_finished_by_a_plain_ack() {
    let mut d = Dialogue::connect(plain());
    d.sends(syn()).at(50).gets(SYN).sends(syn_ack()).at(100).gets(ACK).silent();
    assert_eq!(d.conn.state(), State::Established);
}

/// RFC 6298, sections 2.1 and 5.5: the SYN is retransmitted after 1 s, then after another 2 s and 4 s.
#[test]
fn a_lost_syn_is_sent_again() {
    let mut d = Dialogue::connect(plain());
    d.sends_at(0, syn()).at(7000);
    d.sends_at(1000, syn()).sends_at(3000, syn()).sends_at(7000, syn()).silent();
    d.at(7100).gets(SYN_ACK).sends(ack(1)).at(60_000).silent();
    assert_eq!(d.conn.state(), State::Established);
}

/// RFC 9293, section 3.8.3: after R2 the open has failed.
#[test]
fn an_open_without_answer_is_given_up() {
    let mut d = Dialogue::connect(Config { max_timeouts: 3, ..plain() });
    d.at(14_999).sends(syn()).sends(syn()).sends(syn()).sends_at(7000, syn()).silent();
    assert_eq!((d.conn.state(), d.event()), (State::SynSent, None));
    d.at(15_000).silent();
    assert_eq!((d.conn.state(), d.event()), (State::Closed, Some(Event::TimedOut)));
    assert_eq!(d.conn.next_timer(), None);
}

/// RFC 6298, section 5: a SYN/ACK is retransmitted like any other segment.
#[test]
fn a_lost_syn_ack_is_sent_again() {
    let mut d = Dialogue::accept(plain(), SYN);
    d.at(3000).sends_at(0, syn_ack()).sends_at(1000, syn_ack()).sends_at(3000, syn_ack()).silent();
}

/// RFC 9293, section 3.10.7.4, first check: a repeated SYN of the peer is an old segment and causes an ACK.
#[test]
fn a_repeated_syn_in_syn_received_is_acknowledged() {
    let mut d = Dialogue::accept(plain(), SYN);
    d.sends(syn_ack()).at(500).gets(SYN).sends_at(500, ack(1)).silent();
    assert_eq!(d.conn.state(), State::SynReceived);
}

/// RFC 9293, section 3.10.7.3, second check: a RST that acknowledges our SYN refuses the connection.
#[test]
fn a_rst_that_acknowledges_the_syn_refuses() {
    let mut d = Dialogue::connect(plain());
    d.sends(syn()).at(50).gets(Seg { seq: 0, ack: Some(1), ..RST }).silent();
    assert_eq!((d.conn.state(), d.event()), (State::Closed, Some(Event::Reset)));
}

/// RFC 9293, section 3.10.7.3: a RST with a wrong acknowledgment or none is dropped.
#[test]
fn another_rst_does_not_refuse() {
    let mut d = Dialogue::connect(plain());
    d.sends(syn()).gets(RST).gets(Seg { ack: Some(2), ..RST }).gets(Seg { ack: Some(0), ..RST }).silent();
    assert_eq!((d.conn.state(), d.event()), (State::SynSent, None));
}

/// RFC 9293, section 3.10.7.3, first check: a wrong acknowledgment in SYN-SENT causes a RST with that number
/// as its sequence number.
#[test]
fn a_wrong_ack_in_syn_sent_draws_a_rst() {
    for wrong in [0, 2] {
        let mut d = Dialogue::connect(plain());
        d.sends(syn()).gets(Seg { ack: Some(wrong), ..SYN_ACK });
        d.sends(Want { seq: Some(wrong), flags: Some(Flags::RST), ..Want::default() }).silent();
        assert_eq!((d.conn.state(), d.event()), (State::SynSent, None));
    }
}

/// RFC 9293, section 3.10.7.4, fifth check: the same in SYN-RECEIVED.
#[test]
fn a_wrong_ack_in_syn_received_draws_a_rst() {
    for wrong in [0, 2] {
        let mut d = Dialogue::accept(plain(), SYN);
        d.sends(syn_ack()).gets(Seg { ack: Some(wrong), ..ACK });
        d.sends(Want { seq: Some(wrong), flags: Some(Flags::RST), ..Want::default() }).silent();
        assert_eq!((d.conn.state(), d.event()), (State::SynReceived, None));
    }
}

/// RFC 9293, section 3.10.4: a close in SYN-SENT deletes the connection.
#[test]
fn closing_in_syn_sent_ends_silently() {
    let mut d = Dialogue::connect(plain());
    d.sends(syn()).close().silent().at(10_000).silent();
    assert_eq!(d.conn.state(), State::Closed);
}

/// RFC 9293, section 3.10.4: in SYN-RECEIVED the FIN after data waits for the handshake.
#[test]
fn closing_in_syn_received_waits_for_the_handshake() {
    let mut d = Dialogue::accept(plain(), SYN);
    d.sends(syn_ack()).write(500).close().silent();
    d.at(100).gets(ACK).sends(Want { flags: Some(Flags::FIN), ..data(1, 500) }).silent();
    assert_eq!((d.conn.state(), d.event()), (State::FinWait1, Some(Event::Established)));
}

/// RFC 6298, section 5.7: after a timeout of the SYN, data starts with an RTO of 3 s.
#[test]
fn after_a_lost_syn_the_first_rto_is_three_seconds() {
    let mut d = Dialogue::connect(plain());
    d.at(1100).sends(syn()).sends_at(1000, syn()).gets(SYN_ACK).sends(ack(1)).write(1000);
    d.sends_at(1100, data(1, 1000)).at(4099).silent().at(4100).sends_at(4100, data(1, 1000));
}

/// RFC 6928, section 2, and RFC 5681, section 3.1: after one lost SYN the initial window is unchanged, after
/// two it is one segment.
#[test]
fn after_two_lost_syns_the_initial_window_is_one_segment() {
    for (lost, segments) in [(1000, 4), (3000, 1)] {
        let mut d = Dialogue::connect(plain());
        d.at(lost).gets(SYN_ACK);
        while d.take().1.tcp.flags.has(Flags::SYN) {}
        d.write(10_000);
        for i in 0..segments {
            d.sends(data(1 + i * 1000, 1000));
        }
        d.silent();
    }
}
