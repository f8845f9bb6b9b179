//! Checks after the start whether the machine's traffic still flows. If anything stops it (a firewall,
//! another kind of filter, or a fault of the gateway), all changes are undone.
//!
//! Before the start, rules of the gateway's table record the traffic between LAN and satellite: remote
//! endpoints (address, protocol, port) to which packets go, those from which packets come, those to which
//! connections are opened, and peers that answer. After the start, counters show two things:
//!
//! * **Dropped here.** Packets of these endpoints are counted where they enter each of the four sections of
//!   the new path (LAN to TUN, TUN to satellite, and back), and again behind all other forwarding rules.
//!   Between the two only this machine can lose packets. Packets dropped already before the start are not
//!   counted, nor are packets whose TTL expires.
//! * **Not answered.** Peers that answered just before the start and from which nothing comes any more,
//!   although requests (packets that call for an answer) went to them through the gateway. Peers that get no
//!   request or never answered do not count. A hop that loses a fifth of the packets each way leaves a third
//!   of the requests unanswered, so 15 in a row are needed, or 8 to each peer.
//!
//! ```text
//! dropping: a section that lost at least 3 packets and more than half of those that entered it, for 0.5 s
//! silent:   a peer that got 3 requests since its last packet, for 3 s
//! undone:   if a section drops; or if at least 3 peers are silent, no known peer has answered a request for
//!           3 s, and the silent peers got at least 15 requests in total since then; or if at least 3
//!           silent peers got 8 requests each
//! ```

use super::watch_rules::{PathSection, counting_rules, observation_rules, removal_rules};
use bentpipe_base::{Duration, Instant};
use bentpipe_os::nft;
use bentpipe_scenario::gateway_file::Deploy;
use std::collections::{BTreeMap, BTreeSet};

/// Interval between checks.
pub(super) const CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// Time of observation before the start: the maximum, the minimum if something is forwarded, and the minimum
/// if nothing is. Connections opened meanwhile are not accelerated.
pub(super) const MAX_OBSERVATION: Duration = Duration::from_secs(2);
const LEAST_BEFORE: Duration = Duration::from_secs(1);
const IDLE: Duration = Duration::from_millis(250);
/// Number of peers needed for a decision.
const PEERS: usize = 3;
/// Number of dropped packets needed, and for how long.
const DROPPED: u64 = 3;
const DROPS: Duration = Duration::from_millis(500);
/// Number of unanswered requests needed: to one peer, to all silent peers together, and to one peer while
/// others answer; and the maximum time for an answer.
const ASKED: u64 = 3;
const ASKED_ALL: u64 = 15;
const ASKED_OFTEN: u64 = 8;
const ANSWER: Duration = Duration::from_secs(3);

/// Counters and sets of the gateway's table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Counts {
    counters: BTreeMap<String, u64>,
    sets: BTreeMap<String, BTreeMap<String, u64>>,
}

impl Counts {
    fn look(table: &str) -> Result<Self, String> {
        nft::list_table(table).map(|text| Self::read(&text))
    }

    /// Parses the output of `nft list table`.
    fn read(text: &str) -> Self {
        let mut counts = Self::default();
        let mut lines = text.lines().map(str::trim);
        let (mut counter, mut set) = (None, None);
        while let Some(line) = lines.next() {
            if let Some(name) = line.strip_prefix("counter ").and_then(|rest| rest.strip_suffix(" {")) {
                counter = Some(name.to_owned());
            } else if let Some(name) = line.strip_prefix("set ").and_then(|rest| rest.strip_suffix(" {")) {
                set = Some(name.to_owned());
                counts.sets.entry(name.to_owned()).or_default();
            } else if let Some(rest) = line.strip_prefix("packets ") {
                if let Some(name) = counter.take() {
                    counts.counters.insert(name, number(rest));
                }
            } else if let Some(rest) = line.strip_prefix("elements = {") {
                let mut all = rest.to_owned();
                while !all.contains('}') {
                    let Some(more) = lines.next() else { break };
                    all.push(' ');
                    all += more;
                }
                let all = all.split('}').next().unwrap_or_default();
                for item in all.split(',').map(str::trim) {
                    let key = item.split(' ').next().unwrap_or_default();
                    let count = item.split_once("packets ").map_or(0, |(_, rest)| number(rest));
                    if let Some(set) = set.as_ref().and_then(|name| counts.sets.get_mut(name)) {
                        set.insert(key.to_owned(), count);
                    }
                }
            }
        }
        counts
    }

    fn counter(&self, name: &str) -> u64 {
        self.counters.get(name).copied().unwrap_or_default()
    }

    /// True if observation for the time `gone` before the start suffices: either nothing is forwarded, or
    /// enough peers have answered.
    fn suffice(&self, gone: Duration) -> bool {
        let answered = self.both("answered").len();
        let is_idle = answered == 0 && self.both("reached").is_empty();
        gone >= if is_idle { IDLE } else { LEAST_BEFORE } && (is_idle || answered >= PEERS)
    }

    /// The combined contents of the sets for IPv4 and IPv6.
    fn both(&self, name: &str) -> BTreeMap<&str, u64> {
        let of = |v: u8| self.sets.get(&format!("{name}{v}")).into_iter().flatten();
        of(4).chain(of(6)).map(|(key, n)| (&**key, *n)).collect()
    }
}

fn number(text: &str) -> u64 {
    text.split(|c: char| !c.is_ascii_digit()).next().and_then(|n| n.parse().ok()).unwrap_or_default()
}

/// A peer that answered before the start.
#[derive(Clone, Copy, Debug, Default)]
struct Peer {
    /// Number of answers, and number of requests at the time of the last answer.
    answers: u64,
    asked: u64,
    /// Number of requests to it at the time of the last answer from any known peer.
    before: u64,
    /// Since when there are unanswered requests.
    since: Option<Instant>,
}

#[derive(Debug)]
pub(super) struct Watch {
    table: String,
    sections: Vec<PathSection>,
    known: BTreeMap<String, Peer>,
    /// Time of the last answer from any known peer that got requests.
    last_answer: Instant,
    /// Per section: since when it has been dropping packets.
    drops: BTreeMap<usize, Instant>,
    begun: Instant,
    ends: Instant,
    pub(super) next: Instant,
}

impl Watch {
    /// Starts to observe, before the gateway's start.
    pub(super) fn begin(deploy: &Deploy, now: Instant) -> Result<Self, String> {
        nft::run(&observation_rules(deploy))?;
        let table = deploy.nft_table.clone();
        Ok(Self {
            table,
            sections: PathSection::all(deploy),
            known: BTreeMap::new(),
            last_answer: now,
            drops: BTreeMap::new(),
            begun: now,
            ends: Instant::NEVER,
            next: now + CHECK_INTERVAL,
        })
    }

    /// True if enough has been observed, or the time is over.
    pub(super) fn is_ready(&mut self, now: Instant) -> bool {
        self.next = now + CHECK_INTERVAL;
        let gone = now.since(self.begun);
        gone >= MAX_OBSERVATION || Counts::look(&self.table).is_ok_and(|counts| counts.suffice(gone))
    }

    /// Takes the peers that have answered so far as the known ones and starts to count packets; returns the
    /// number of peers.
    pub(super) fn start(&mut self, deploy: &Deploy, now: Instant) -> Result<usize, String> {
        let counts = Counts::look(&self.table)?;
        self.known =
            counts.both("answered").into_keys().map(|peer| (peer.to_owned(), Peer::default())).collect();
        nft::run(&counting_rules(deploy))?;
        (self.begun, self.last_answer) = (now, now);
        (self.next, self.ends) = (now + CHECK_INTERVAL, now + deploy.watch);
        Ok(self.known.len())
    }

    /// Checks the traffic; returns a description of the traffic that has stopped, if any.
    pub(super) fn look(&mut self, now: Instant) -> Option<String> {
        self.next = now + CHECK_INTERVAL;
        // if a read fails, try again at the next check
        let counts = Counts::look(&self.table).ok()?;
        self.judge(&counts, now)
    }

    fn judge(&mut self, counts: &Counts, now: Instant) -> Option<String> {
        for (i, section) in self.sections.iter().enumerate() {
            let (came, went) = (counts.counter(&format!("came{i}")), counts.counter(&format!("went{i}")));
            let dropped = came.saturating_sub(went);
            if dropped < DROPPED || dropped * 2 <= came {
                self.drops.remove(&i);
            } else if now.since(*self.drops.entry(i).or_insert(now)) >= DROPS {
                return Some(format!(
                    "this machine dropped {dropped} of {came} packets {section}, to peers that were reachable before the start"
                ));
            }
        }
        self.unanswered(counts, now)
    }

    fn unanswered(&mut self, counts: &Counts, now: Instant) -> Option<String> {
        let (asks, answers) = (counts.both("asks"), counts.both("answers"));
        let of = |counts: &BTreeMap<&str, u64>, name: &str| counts.get(name).copied().unwrap_or_default();
        let has_answered =
            |(name, peer): (&String, &Peer)| of(&answers, name) > peer.answers && of(&asks, name) > 0;
        let is_heard = self.known.iter().any(has_answered);
        if is_heard {
            self.last_answer = now;
        }
        let (mut silent, mut questions, mut often) = (BTreeSet::new(), 0, 0);
        for (name, peer) in &mut self.known {
            let (all, got) = (of(&asks, name), of(&answers, name));
            if got > peer.answers {
                *peer = Peer { answers: got, asked: all, since: None, ..*peer };
            }
            if is_heard {
                peer.before = all;
            }
            let open = all.saturating_sub(peer.asked);
            if open == 0 {
                peer.since = None;
            } else if now.since(*peer.since.get_or_insert(now)) >= ANSWER && open >= ASKED {
                silent.insert(&**name);
                questions += all - peer.before.min(all);
                often += usize::from(open >= ASKED_OFTEN);
            }
        }
        let is_all = silent.len() >= PEERS && questions >= ASKED_ALL && now.since(self.last_answer) >= ANSWER;
        let is_enough = is_all || often >= PEERS;
        let names: Vec<&str> = silent.iter().copied().take(PEERS).collect();
        is_enough.then(|| {
            format!(
                "{} peers that answered just before the start do not answer any more, after {questions} requests; among them {}",
                silent.len(),
                names.join(", ")
            )
        })
    }

    pub(super) fn is_over(&self, now: Instant) -> bool {
        now >= self.ends
    }

    pub(super) fn end(self) {
        // whatever remains is removed with the table
        let _ = nft::run(&removal_rules(&self.table, self.sections.len()));
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use bentpipe_scenario::Source;
    use bentpipe_scenario::gateway_file::load;

    pub(crate) fn deploy() -> Deploy {
        let text = "schema = 1\n[satellite]\n[deploy]\nkind = \"routed\"\nlan = [\"eth1\", \"eth2\"]\nsatellite = \"eth0\"\n";
        load(&Source::new("t", text.to_owned())).unwrap().deploy
    }

    const PACE: Duration = Duration::from_millis(250);

    fn watch(peers: usize) -> Watch {
        let known = (0..peers).map(|i| (format!("10.0.0.{i}"), Peer::default())).collect();
        Watch {
            table: String::new(),
            sections: PathSection::all(&deploy()),
            known,
            last_answer: Instant::ZERO,
            drops: BTreeMap::new(),
            begun: Instant::ZERO,
            ends: Instant::NEVER,
            next: Instant::ZERO,
        }
    }

    /// Counters from the number of requests and answers of each peer.
    fn counts(peers: impl Iterator<Item = (u64, u64)>) -> Counts {
        let mut counts = Counts::default();
        for (i, (asks, answers)) in peers.enumerate() {
            for (set, n) in [("asks4", asks), ("answers4", answers)].into_iter().filter(|p| p.1 > 0) {
                counts.sets.entry(set.to_owned()).or_default().insert(format!("10.0.0.{i}"), n);
            }
        }
        counts
    }

    #[test]
    fn counts_are_read() {
        let text = "table inet T {\n\tcounter came0 {\n\t\tpackets 7 bytes 420\n\t}\n\n\tset asks4 {\n\t\ttype ipv4_addr\n\t\telements = { 10.0.0.1 counter packets 3 bytes 5 expires 11m, 10.0.0.2 expires 11m,\n\t\t\t     10.0.7.2 counter packets 1 bytes 9 }\n\t}\n\tset asks6 {\n\t\ttype ipv6_addr\n\t}\n\tchain watch { counter packets 9 bytes 9 }\n}\n";
        let counts = Counts::read(text);
        assert_eq!((counts.counter("came0"), counts.counter("went0")), (7, 0));
        let asks = counts.both("asks");
        assert_eq!(asks.into_iter().collect::<Vec<_>>(), [("10.0.0.1", 3), ("10.0.0.2", 0), ("10.0.7.2", 1)]);
        for cut in 0..text.len() {
            Counts::read(&text[..cut]);
        }
    }

    /// An idle site starts at once: connections opened during the wait would never be accelerated.
    #[test]
    fn a_start_waits_only_for_who_answers() {
        let ms = Duration::from_millis;
        let seen = |set: &str, n: u64| Counts {
            sets: [(set.to_owned(), (0..n).map(|i| (format!("10.0.0.{i}"), 0)).collect())].into(),
            ..Counts::default()
        };
        assert!(!Counts::default().suffice(ms(240)) && Counts::default().suffice(IDLE));
        for (set, n, wanted) in [("reached4", 1, false), ("answered4", 2, false), ("answered6", 3, true)] {
            let counts = seen(set, n);
            assert_eq!((counts.suffice(ms(999)), counts.suffice(LEAST_BEFORE)), (false, wanted), "{set} {n}");
        }
    }

    #[test]
    fn a_stretch_that_drops_is_named() {
        let seen = |came: u64, went: u64| Counts {
            counters: [("came1".to_owned(), came), ("went1".to_owned(), went)].into(),
            ..Counts::default()
        };
        for (came, went, wanted) in
            [(3, 0, true), (2, 0, false), (1000, 500, false), (1000, 400, true), (900, 900, false)]
        {
            let mut watch = watch(0);
            let first = watch.judge(&seen(came, went), Instant::ZERO);
            assert_eq!(first, None, "not on one look");
            let then = watch.judge(&seen(came, went), Instant::ZERO + DROPS);
            assert_eq!(then.is_some(), wanted, "{came} {went}: {then:?}");
        }
    }

    /// Peers that become silent without requests, or that never answered, do not count.
    #[test]
    fn peers_that_are_not_asked_are_not_missed() {
        let mut watch = watch(10);
        for tick in 0..240 {
            // two peers stop answering, the others get no requests; one unknown peer gets requests all the
            // time
            let peers = (0..11).map(|i| if i < 2 || i == 10 { (tick, 0) } else { (2, 1) });
            assert_eq!(watch.judge(&counts(peers), Instant::ZERO + Duration(PACE.0 * tick)), None, "{tick}");
        }
    }

    #[test]
    fn peers_that_answer_no_more_are_noticed_within_seconds() {
        for peers in [3, 8] {
            let mut watch = watch(peers);
            let told = (0..240).find(|tick| {
                watch
                    .judge(
                        &counts((0..peers).map(|_| (1 + tick, 0))),
                        Instant::ZERO + Duration(PACE.0 * tick),
                    )
                    .is_some()
            });
            assert_eq!(told, Some(12), "3 s, {peers}");
        }
    }

    /// A fifth of the packets is lost each way: 400 starts with up to 40 peers, with requests at doubling
    /// intervals (RTO backoff) or four times a second.
    #[test]
    fn loss_is_not_silence() {
        let mut seed = 7_u64;
        let mut dice = move || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as f64 / f64::from(1_u32 << 31)
        };
        for start in 0..400 {
            let peers = [3, 4, 8, 40][start % 4];
            let mut watch = watch(peers);
            let mut state = vec![(0_u64, 0_u64, 0_u64, 1_u64); peers];
            for tick in 0..240 {
                for (asks, answers, wait, next) in &mut state {
                    if *wait > 0 {
                        *wait -= 1;
                        continue;
                    }
                    *asks += 1;
                    if dice() < 0.8 && dice() < 0.8 {
                        (*answers, *next) = (*answers + 1, 1);
                    } else if start % 2 == 0 {
                        (*wait, *next) = (*next, *next * 2);
                    }
                }
                let told = watch.judge(
                    &counts(state.iter().map(|s| (s.0, s.1))),
                    Instant::ZERO + Duration(PACE.0 * tick),
                );
                assert_eq!(told, None, "start {start}, {tick}");
            }
        }
    }
}
