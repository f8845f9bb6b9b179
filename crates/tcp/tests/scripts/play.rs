//! Runs a script: its segments arrive, and segments sent are compared with it, in order and with their times;
//! none may be left over.

use crate::parse::{Act, Fault, Line, Script, Start};
use crate::script::{ACK, Dialogue, OURS, SYN, SYN_ACK, Seg, packet_of};
use crate::segment::{Said, Text, written};
use crate::settings::{Profile, config};
use bentpipe_base::{Flags, Instant, NodeId, Packet, World};
use bentpipe_tcp::timers::Timer;
use bentpipe_tcp::{Config, EcnUse, Event, Offer, State, reset_in_listen};
use std::collections::VecDeque;
use std::sync::Arc;

/// The state of a running script.
struct Stage {
    config: Config,
    dialogue: Option<Dialogue>,
    /// Timestamp of our last segment with timestamps, which a peer would echo.
    stamp: u32,
    /// Answers of a listener to segments that open no connection.
    answers: VecDeque<(Instant, Packet)>,
}

/// Runs `script` in `profile`.
pub(crate) fn play(script: &Script, profile: Profile) -> Result<(), Fault> {
    let config = config(&script.settings, profile)?;
    let mut stage = Stage { config, dialogue: None, stamp: 0, answers: VecDeque::new() };
    stage.begin(script.start)?;
    let mut last = 0;
    for line in script.lines.iter().filter(|l| l.is_for(profile)) {
        stage.line(line, Instant(line.at(profile) * 1000)).map_err(|f| f.on(line.number))?;
        last = line.number;
    }
    stage.silent().map_err(|f| f.on(last))
}

/// The state that an `unmoved` line must not change: positions, windows, state, estimates, timers, and what
/// the application sees.
fn snapshot(d: &Dialogue) -> Vec<(&'static str, String)> {
    let (conn, board, rcv) = (&d.conn, d.conn.scoreboard(), d.conn.receiver());
    let timer = conn.next_timer().filter(|(_, timer)| *timer != Timer::DelayedAck);
    vec![
        ("state", format!("{:?}", conn.state())),
        ("una", board.una().to_string()),
        ("next", board.next().to_string()),
        ("sacked", board.sacked().to_string()),
        ("lost", board.lost().to_string()),
        ("expected", rcv.next().to_string()),
        ("held", format!("{:?}", rcv.out_of_order())),
        ("readable", conn.readable().to_string()),
        ("received", conn.received().to_string()),
        ("peer's window", conn.path().peer_window.to_string()),
        ("mss", conn.agreed().mss.to_string()),
        ("cwnd", conn.cwnd().to_string()),
        ("ssthresh", format!("{:?}", conn.ssthresh())),
        ("srtt", format!("{:?}", conn.rtt().srtt())),
        ("rto", format!("{:?}", conn.rtt().rto())),
        ("retransmits", conn.stats().retransmits.to_string()),
        ("timeouts", conn.stats().timeouts.to_string()),
        ("undone", conn.stats().undone.to_string()),
        ("timer", format!("{timer:?}")),
    ]
}

/// The first difference between two snapshots.
fn moved(before: &[(&'static str, String)], after: &[(&'static str, String)]) -> Result<(), Fault> {
    let changed = before.iter().zip(after).find(|(b, a)| b != a);
    changed.map_or(Ok(()), |((name, was), (_, is))| {
        Err(Fault::new(format!("nothing may change, but {name} was {was} and is {is}")))
    })
}

/// Checks an `unmoved` arrival: no difference from `before`, and no event for the application.
fn changed(d: &mut Dialogue, before: &[(&'static str, String)], unmoved: bool) -> Result<(), Fault> {
    if !unmoved {
        return Ok(());
    }
    moved(before, &snapshot(d))?;
    match d.conn.event() {
        Some(event) => Err(Fault::new(format!("nothing may change, but the application hears {event:?}"))),
        None => Ok(()),
    }
}

impl Stage {
    fn begin(&mut self, start: Start) -> Result<(), Fault> {
        let n = match start {
            Start::Nothing => return Ok(()),
            Start::Open => 0,
            Start::Flying(n) => n,
        };
        let options = self.config.options;
        let answer = Seg {
            mss: Some(self.config.mss),
            scale: options.window_scale.then_some(0),
            sack_ok: options.sack,
            ts: options.timestamps.then_some((1, 0)),
            flags: if self.config.ecn == EcnUse::Request { Flags::SYN.with(Flags::ECE) } else { Flags::SYN },
            ..SYN_ACK
        };
        let initial_window = if n > 0 { n } else { self.config.initial_window };
        let mut d = Dialogue::answered(Config { initial_window, ..self.config.clone() }, answer);
        if n > 0 {
            let sent = d.write(1_000_000).drain().len();
            if sent != n as usize {
                return Err(Fault::new(format!("{sent} segments left at 100 ms instead of {n}")));
            }
            d.at(200);
        }
        self.stamp = 100;
        self.dialogue = Some(d);
        Ok(())
    }

    fn dialogue(&mut self) -> Result<&mut Dialogue, Fault> {
        let hint = "there is no connection yet: begin with `connect` or `listen`";
        self.dialogue.as_mut().ok_or_else(|| Fault::new(hint))
    }

    fn line(&mut self, line: &Line, at: Instant) -> Result<(), Fault> {
        match &line.act {
            Act::Connect => self.dialogue = Some(Dialogue::connect(self.config.clone())),
            Act::Listen(text) => {
                let syn = segment(text, text.range.or(Some((0, 0))), &SYN);
                self.listen(at, syn);
            }
            Act::Leaves(text) => {
                self.dialogue.as_mut().map(|d| d.at_instant(at));
                for range in text.ranges() {
                    self.leaves(at, text, range)?;
                }
            }
            Act::Anything => {
                self.dialogue()?.at_instant(at);
                while self.next_sent().is_some() {}
            }
            Act::Arrives(text) => {
                self.pass(at, false)?;
                for range in text.ranges() {
                    self.arrives(text, range)?;
                }
            }
            Act::Hears { quoted, said, unmoved } => {
                self.pass(at, false)?;
                let d = self.dialogue()?;
                let before = snapshot(d);
                d.with(|conn, cx| conn.icmp(cx, OURS.at(*quoted), *said));
                changed(d, &before, *unmoved)?;
            }
            Act::Wait(unmoved) => self.pass(at, *unmoved)?,
            Act::Verb(verb, bytes) => {
                self.pass(at, false)?;
                self.verb(verb, *bytes)?;
            }
            Act::Is(pairs) => {
                self.pass(at, false)?;
                for (key, value) in pairs {
                    self.is(key, value)?;
                }
            }
        }
        Ok(())
    }

    /// The segment arrives at a listener.
    fn listen(&mut self, at: Instant, syn: Seg) {
        let packet = packet_of(&syn);
        if Offer::new(&packet, Arc::new(self.config.clone())).is_some() {
            self.dialogue = Some(Dialogue::accept_at(at.0 / 1_000_000, self.config.clone(), syn));
        } else {
            let answer = reset_in_listen(&mut World::new(1).cx(at, NodeId(0)), &packet);
            self.answers.extend(answer.map(|rst| (at, *rst)));
        }
    }

    /// Lets time pass; nothing may be sent.
    fn pass(&mut self, at: Instant, unmoved: bool) -> Result<(), Fault> {
        self.silent()?;
        let d = self.dialogue()?;
        let before = snapshot(d);
        d.at_instant(at);
        let after = snapshot(d);
        self.silent()?;
        if unmoved { moved(&before, &after) } else { Ok(()) }
    }

    fn silent(&mut self) -> Result<(), Fault> {
        match self.next_sent() {
            Some((at, packet)) => Err(Fault::new(format!(
                "nothing more was expected before this, but at {} ms left: {}",
                millis(at),
                written(&packet)
            ))),
            None => Ok(()),
        }
    }

    fn next_sent(&mut self) -> Option<(Instant, Packet)> {
        let sent = self.answers.pop_front().or_else(|| self.dialogue.as_mut()?.next_sent());
        if let Some(ts) = sent.as_ref().and_then(|(_, packet)| packet.tcp.timestamps) {
            self.stamp = ts.value;
        }
        sent
    }

    fn leaves(&mut self, at: Instant, text: &Text, range: Option<(u64, u64)>) -> Result<(), Fault> {
        let wanted = || match range {
            Some((from, to)) if from == to => from.to_string(),
            Some((from, to)) => format!("{from}..{to}"),
            None => "an empty segment".to_owned(),
        };
        let Some((sent_at, packet)) = self.next_sent() else {
            return Err(Fault::new(format!("expected at {} ms: {}; nothing left", millis(at), wanted())));
        };
        let differs = if sent_at == at { text.differs(range, &packet) } else { Some("time".to_owned()) };
        match differs {
            None => Ok(()),
            Some(field) => Err(Fault::new(format!(
                "the {field} is another: expected at {} ms: {} as written; at {} ms left: {}",
                millis(at),
                wanted(),
                millis(sent_at),
                written(&packet)
            ))),
        }
    }

    fn arrives(&mut self, text: &Text, range: Option<(u64, u64)>) -> Result<(), Fault> {
        let stamp = self.stamp;
        let d = self.dialogue()?;
        let now = u32::try_from(d.now().0 / 1_000_000).unwrap_or(u32::MAX);
        let expected = d.conn.receiver().next();
        let stamps = d.conn.agreed().timestamps.then_some((now, stamp));
        let seg = segment(text, range.or(Some((expected, expected))), &Seg { ack: None, ts: stamps, ..ACK });
        let before = snapshot(d);
        d.gets(seg);
        changed(d, &before, text.unmoved)
    }

    fn verb(&mut self, verb: &str, bytes: u64) -> Result<(), Fault> {
        let d = self.dialogue()?;
        match verb {
            "write" => {
                let taken = d.with(|conn, _| conn.write(bytes));
                if taken != bytes {
                    return Err(Fault::new(format!("{taken} of {bytes} bytes were taken")));
                }
            }
            "read" if d.conn.readable() < bytes => {
                return Err(Fault::new(format!("only {} bytes are readable", d.conn.readable())));
            }
            "read" => _ = d.read(bytes),
            "close" => _ = d.close(),
            _ => d.with(|conn, _| conn.abort()),
        }
        Ok(())
    }

    fn is(&mut self, key: &str, value: &str) -> Result<(), Fault> {
        let d = self.dialogue()?;
        let (conn, board, stats) = (&d.conn, d.conn.scoreboard(), d.conn.stats());
        let is = match key {
            "state" => state_name(conn.state()).to_owned(),
            "event" => event_name(d.conn.event()).to_owned(),
            "cwnd" => conn.cwnd().0.to_string(),
            "ssthresh" => conn.ssthresh().map_or("none".to_owned(), |s| s.0.to_string()),
            "readable" => conn.readable().to_string(),
            "received" => conn.received().to_string(),
            "una" => board.una().to_string(),
            "next" => board.next().to_string(),
            "expected" => conn.receiver().next().to_string(),
            "sacked" => board.sacked().to_string(),
            "lost" => board.lost().to_string(),
            "in-flight" => conn.path().in_flight.0.to_string(),
            "unacked" => conn.unacknowledged().to_string(),
            "mss" => conn.agreed().mss.to_string(),
            "retransmits" => stats.retransmits.to_string(),
            "timeouts" => stats.timeouts.to_string(),
            "undone" => stats.undone.to_string(),
            "srtt" => millis(Instant(conn.rtt().srtt().0)),
            "rto" => millis(Instant(conn.rtt().rto().0)),
            "limit" => conn.limit().key().to_owned(),
            "timer" => conn.next_timer().map_or("none".to_owned(), |(at, t)| format!("{t:?} {}", millis(at))),
            _ => return Err(Fault::new(format!("`= {key}`: nothing is known by that name"))),
        };
        if is == value { Ok(()) } else { Err(Fault::new(format!("{key} is {is}, expected {value}"))) }
    }
}

/// A time in milliseconds, as scripts write it.
fn millis(at: Instant) -> String {
    let micros = at.0 / 1000;
    match micros % 1000 {
        0 => (micros / 1000).to_string(),
        part => format!("{}.{part:03}", micros / 1000).trim_end_matches('0').to_owned(),
    }
}

/// Builds the peer's segment; fields that the line leaves open are taken from `base`.
fn segment(text: &Text, range: Option<(u64, u64)>, base: &Seg) -> Seg {
    let (from, to) = range.unwrap_or_default();
    let mut seg = Seg {
        seq: from,
        len: u32::try_from(to - from).unwrap_or(u32::MAX),
        ack: text.ack.or(None),
        win: text.win.unwrap_or(base.win),
        flags: text.flags,
        ts: text.ts.or(base.ts),
        mss: text.mss.or(base.mss),
        scale: text.scale.or(base.scale),
        sack_ok: text.sackok == Said::Value(()),
        ecn: text.ecn,
        ..*base
    };
    for (to, block) in seg.sack.iter_mut().zip(&text.sack) {
        *to = *block;
    }
    seg
}

/// State names of RFC 9293, figure 5.
const fn state_name(state: State) -> &'static str {
    match state {
        State::SynSent => "SYN-SENT",
        State::SynReceived => "SYN-RECEIVED",
        State::Established => "ESTABLISHED",
        State::FinWait1 => "FIN-WAIT-1",
        State::FinWait2 => "FIN-WAIT-2",
        State::CloseWait => "CLOSE-WAIT",
        State::Closing => "CLOSING",
        State::LastAck => "LAST-ACK",
        State::TimeWait => "TIME-WAIT",
        State::Closed => "CLOSED",
    }
}

/// Names of the application's events.
const fn event_name(event: Option<Event>) -> &'static str {
    match event {
        None => "none",
        Some(Event::Established) => "established",
        Some(Event::PeerClosed) => "peer-closed",
        Some(Event::Closed) => "closed",
        Some(Event::Reset) => "reset",
        Some(Event::TimedOut) => "timed-out",
        Some(Event::Unreachable) => "unreachable",
    }
}
