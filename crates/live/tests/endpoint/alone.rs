//! One endpoint, and packets made by hand: its answers to them.

use crate::duel::{End, RIGHT, addresses};
use crate::hostile::{flush, packet, syn_of_a_host, too_big, victim};
use bentpipe_base::{Duration, Flags, Instant, SackList, Seq, TcpHeader};
use bentpipe_live::endpoint::{ConnId, Ending, EndpointError, Settings};
use bentpipe_tcp::{Config, KeepAlive, Stack, State};
use bentpipe_wire::offload::VnetHeader;
use bentpipe_wire::parse;

const NOW: Instant = Instant::ZERO;
const SYN_FIN: Flags = Flags(0x03);

fn gets(end: &mut End, now: Instant, tcp: TcpHeader, payload: &[u8]) -> Vec<TcpHeader> {
    let bytes = packet(false, 1000, tcp, payload);
    end.with(now, |e, cx| e.packet(cx, &bytes, &VnetHeader::default()));
    flush(end, now).iter().map(|p| parse(p).unwrap().tcp).collect()
}

/// A connection opened by a peer at port 1000, and the next sequence numbers of both streams.
fn opened(end: &mut End) -> (ConnId, TcpHeader) {
    let answer = gets(end, NOW, syn_of_a_host(), &[]);
    let next = TcpHeader {
        flags: Flags::ACK,
        seq: Seq(100),
        ack: answer[0].seq.at(1),
        window: 65_535,
        ..TcpHeader::default()
    };
    gets(end, NOW, next.clone(), &[]);
    (end.endpoint.accept(80).unwrap(), next)
}

fn with_listener(stack: Stack) -> End {
    let mut end = End::new(1, Settings { addresses: addresses(RIGHT).to_vec(), ..Settings::default() });
    end.endpoint.listen(80, &Config::default().on(stack), 4).unwrap();
    end
}

/// Beside a kernel the ports of others are the kernel's: there is no answer, not even a reset.
#[test]
fn ports_of_others_are_left_alone() {
    for (ports, answers) in [(vec![], 1), (vec![80, 81], 1), (vec![81, 1000], 0)] {
        let ports = ports.into_iter().collect();
        let mut end =
            End::new(1, Settings { addresses: addresses(RIGHT).to_vec(), ports, ..Settings::default() });
        assert_eq!(gets(&mut end, NOW, syn_of_a_host(), &[]).len(), answers);
        assert_eq!(end.endpoint.counters().not_ours, 1 - answers as u64);
    }
}

/// RFC 9293, section 3.10.7.2: a listener drops segments with neither SYN nor ACK, and resets those with an
/// ACK; a closed port resets both (section 3.10.7.1).
#[test]
fn a_listener_is_no_closed_port() {
    for stack in [Stack::Rfc, Stack::Linux] {
        let mut listening = with_listener(stack);
        let mut closed = victim(1, 1000);
        closed.endpoint.stop_listening(80);
        for flags in [Flags(0), Flags::FIN, Flags(0x08)] {
            let tcp = TcpHeader { flags, seq: Seq(5), ..TcpHeader::default() };
            assert_eq!(gets(&mut listening, NOW, tcp.clone(), b"text"), []);
            assert!(gets(&mut closed, NOW, tcp, b"text")[0].flags.has(Flags::RST));
        }
        let tcp = TcpHeader { flags: Flags::ACK, ack: Seq(77), ..TcpHeader::default() };
        for end in [&mut listening, &mut closed] {
            let rst = gets(end, NOW, tcp.clone(), &[]);
            assert_eq!((rst[0].flags, rst[0].seq), (Flags::RST, Seq(77)));
        }
        assert_eq!((listening.endpoint.connections(), listening.endpoint.counters().refused), (0, 1));
    }
}

/// RFC 9293, section 3.10.7.2: a SYN with a FIN is accepted as a SYN; Linux drops it.
#[test]
fn a_syn_with_a_fin_opens_or_is_dropped() {
    let syn = TcpHeader { flags: SYN_FIN, ..syn_of_a_host() };
    let answer = gets(&mut with_listener(Stack::Rfc), NOW, syn.clone(), &[]);
    assert_eq!((answer[0].flags, answer[0].ack), (Flags::SYN.with(Flags::ACK), Seq(100)));
    let mut linux = with_listener(Stack::Linux);
    assert_eq!(gets(&mut linux, NOW, syn, &[]), []);
    assert_eq!(linux.endpoint.connections(), 0);
}

/// RFC 9293, section 3.10.7.4, fourth check: only a plain SYN ends TIME-WAIT. One with a FIN gets a challenge
/// ACK, and nothing is reset.
#[test]
fn a_syn_with_a_fin_does_not_end_time_wait() {
    for stack in [Stack::Rfc, Stack::Linux] {
        let mut end = with_listener(stack);
        let (id, next) = opened(&mut end);
        end.endpoint.shutdown(id).unwrap();
        flush(&mut end, NOW);
        let fin = TcpHeader { flags: Flags::FIN.with(Flags::ACK), ack: next.ack.at(1), ..next };
        gets(&mut end, NOW, fin, &[]);
        let state = |end: &End| end.endpoint.connection(id).map(bentpipe_tcp::Connection::state);
        assert_eq!(state(&end), Some(State::TimeWait));
        let beyond = TcpHeader { seq: Seq(5000), ..syn_of_a_host() };
        let answer = gets(&mut end, NOW, TcpHeader { flags: SYN_FIN, ..beyond.clone() }, &[]);
        assert_eq!((answer.len(), answer[0].flags, answer[0].ack), (1, Flags::ACK, Seq(101)));
        assert_eq!(state(&end), Some(State::TimeWait));
        let answer = gets(&mut end, NOW, beyond, &[]);
        assert_eq!((answer[0].flags, answer[0].ack), (Flags::SYN.with(Flags::ACK), Seq(5001)));
    }
}

/// RFC 1122, section 4.2.2.13: data that arrives after the application closed causes a RST, and no
/// acknowledgment before it.
#[test]
fn what_nobody_will_read_is_not_acknowledged() {
    for stack in [Stack::Rfc, Stack::Linux] {
        let mut end = with_listener(stack);
        let (id, next) = opened(&mut end);
        end.endpoint.close(id);
        let fin = flush(&mut end, NOW);
        assert!(parse(&fin[0]).unwrap().tcp.flags.has(Flags::FIN));
        let answer = gets(&mut end, NOW, TcpHeader { ack: next.ack.at(1), ..next }, b"anybody?");
        assert_eq!(answer.len(), 1, "{answer:?}");
        assert_eq!((answer[0].flags.has(Flags::RST), answer[0].seq), (true, next.ack.at(1)));
        assert_eq!(end.endpoint.connections(), 0);
    }
}

/// RFC 9293, section 3.10.7.3: data in the SYN-ACK is delivered first.
#[test]
fn text_behind_a_syn_is_read() {
    let mut end = with_listener(Stack::Rfc);
    let to = (addresses(1 - RIGHT)[0], 1000).into();
    let id = end.with(NOW, |e, cx| e.connect_from(cx, 80, to, &Config::default())).unwrap();
    let syn = parse(&flush(&mut end, NOW)[0]).unwrap().tcp;
    let answer = TcpHeader { flags: Flags::SYN.with(Flags::ACK), ack: syn.seq.at(1), ..syn_of_a_host() };
    let now = NOW + Duration::from_millis(10);
    assert_eq!(gets(&mut end, now, answer, b"hello, ")[0].ack, Seq(107));
    let next =
        TcpHeader { flags: Flags::ACK, seq: Seq(107), ack: syn.seq.at(1), window: 9, ..TcpHeader::default() };
    gets(&mut end, now, next, b"caller");
    let mut heard = [0; 20];
    assert_eq!(end.endpoint.read(now, id, &mut heard), Ok(13));
    assert_eq!(&heard[..13], b"hello, caller");
    assert_eq!(end.endpoint.read(now, id, &mut heard), Err(EndpointError::WouldBlock));
}

/// RFC 9293, section 3.9.2.2: a connection attempt ends on "port unreachable" from the host; a router's "no
/// route" must not end it, though in Linux it does. An ICMP message that quotes a segment not in flight has
/// no effect (RFC 5927, section 4.1).
#[test]
fn a_call_ends_when_it_is_hopeless() {
    let ended = |stack, v6: bool, kind: [u8; 2], forged: bool| {
        let mut end = with_listener(stack);
        let to = (addresses(1 - RIGHT)[usize::from(v6)], 80).into();
        let id = end.with(NOW, |e, cx| e.connect(cx, to, &Config::default().on(stack))).unwrap();
        let mut says = too_big(&flush(&mut end, NOW)[0], 1400);
        let at = if v6 { 40 } else { 20 };
        says[at..at + 2].copy_from_slice(&kind);
        says[2 * at + 8 + 7] ^= u8::from(forged); // the sequence number of the quoted header
        for cut in 0..=says.len() {
            end.with(NOW, |e, cx| e.packet(cx, &says[..cut], &VnetHeader::default()));
        }
        flush(&mut end, NOW);
        let at_once = end.endpoint.ending(id);
        let now = NOW + Duration::from_secs(131);
        flush(&mut end, now);
        (at_once, end.endpoint.ending(id))
    };
    let hopeless = (Some(Ending::Unreachable), Some(Ending::Unreachable));
    for stack in [Stack::Rfc, Stack::Linux] {
        for (v6, hard, soft) in [(false, [3, 3], [3, 1]), (true, [1, 4], [1, 0])] {
            assert_eq!(ended(stack, v6, hard, false), hopeless, "{stack:?}");
            let told = if stack == Stack::Linux { hopeless } else { (None, Some(Ending::Unreachable)) };
            assert_eq!(ended(stack, v6, soft, false), told, "{stack:?}");
            assert_eq!(ended(stack, v6, hard, true), (None, Some(Ending::TimedOut)), "{stack:?}");
        }
    }
}

/// Small writes under `cork` leave as one segment when it is released.
#[test]
fn pieces_under_a_cork_leave_together() {
    let mut end = with_listener(Stack::Rfc);
    let (id, _) = opened(&mut end);
    assert_eq!(end.endpoint.cork(id, true), Ok(()));
    for piece in [&b"head "[..], b"and ", b"body"] {
        assert_eq!(end.endpoint.write(id, piece), Ok(piece.len()));
        assert_eq!(flush(&mut end, NOW).len(), 0);
    }
    assert_eq!(end.endpoint.cork(id, false), Ok(()));
    let sent = flush(&mut end, NOW);
    assert_eq!((sent.len(), parse(&sent[0]).unwrap().payload), (1, &b"head and body"[..]));
}

/// With keepalive, a peer that vanished silently is given up; without it, its connection stays for ever.
#[test]
fn a_caller_that_vanished_is_given_up() {
    for asked in [true, false] {
        let mut end = End::new(1, Settings { addresses: addresses(RIGHT).to_vec(), ..Settings::default() });
        let keep_alive = asked.then(KeepAlive::default);
        end.endpoint.listen(80, &Config { keep_alive, ..Config::default() }, 4).unwrap();
        let (id, _) = opened(&mut end);
        let mut now = NOW;
        while end.endpoint.ending(id).is_none() && end.endpoint.next_at() != Instant::NEVER {
            now = end.endpoint.next_at();
            flush(&mut end, now);
        }
        let gone = Duration::from_secs(7200 + 9 * 75);
        assert_eq!(end.endpoint.ending(id), asked.then_some(Ending::TimedOut));
        assert!(!asked || now == NOW + gone, "{now}");
    }
}

/// A segment that waits behind a super-packet is acknowledged before it leaves: the original had arrived.
#[test]
fn what_is_acknowledged_before_it_leaves_is_dropped() {
    let mut end = with_listener(Stack::Rfc);
    let syn = TcpHeader { mss: Some(1000), sack_permitted: true, ..syn_of_a_host() };
    let answer = gets(&mut end, NOW, syn, &[]);
    let una = answer[0].seq.at(1);
    let ack =
        TcpHeader { flags: Flags::ACK, seq: Seq(100), ack: una, window: 65_535, ..TcpHeader::default() };
    gets(&mut end, NOW, ack.clone(), &[]);
    let id = end.endpoint.accept(80).unwrap();
    assert_eq!(end.endpoint.write(id, &[7; 10_000]), Ok(10_000));
    assert_eq!(flush(&mut end, NOW).len(), 10);
    let now = NOW + Duration::from_millis(50);
    let mut sack = SackList::default();
    sack.push(una.at(3000), una.at(10_000));
    sack.push(una.at(1000), una.at(2000));
    let bytes = packet(false, 1000, TcpHeader { sack, ..ack.clone() }, &[]);
    end.with(now, |e, cx| e.packet(cx, &bytes, &VnetHeader::default()));
    let next = |end: &mut End| end.with(now, |e, cx| e.next_super(cx, |_, parts| parts[1].len()));
    assert_eq!(next(&mut end), Some(1000), "the first hole; the other segment waits");
    let bytes = packet(false, 1000, TcpHeader { ack: una.at(10_000), ..ack }, &[]);
    end.with(now, |e, cx| e.packet(cx, &bytes, &VnetHeader::default()));
    assert_eq!(end.endpoint.write(id, &[8; 500]), Ok(500), "the write releases what is acknowledged");
    assert_eq!(next(&mut end), Some(500));
    assert_eq!(next(&mut end), None);
}
