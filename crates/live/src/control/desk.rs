//! Answers control requests, on the data thread, which owns the network.

use super::act::{Act, Made};
use super::messages::{Changed, Command, Done, LinkState, On, Reply, Request, State, Values, Way};
use super::words::{Seen, words};
use bentpipe_base::names::nearest;
use bentpipe_base::{Duration, Instant, NodeId, Rate};
use bentpipe_driver::{Attendant, Core, Journal, LiveNetwork};
use bentpipe_link::Capacity;
use bentpipe_scenario::Scenario;
use bentpipe_service::Refusal;
use std::collections::VecDeque;
use std::sync::mpsc::Receiver;

/// Throughput is averaged over at least this time.
const SPAN: Duration = Duration::from_millis(200);
/// Number of earlier counter readings kept for this.
const MARKS: usize = 16;
/// Most names listed in a message.
const LISTED: usize = 20;

/// A direction of a link, with its name.
#[derive(Clone, Debug)]
struct NamedDirection {
    name: String,
    id: NodeId,
    link: String,
    backward: bool,
    from: String,
    to: String,
}

/// Answers commands on the data thread.
#[derive(Debug)]
pub struct Commands {
    commands: Receiver<Command>,
    desk: Desk,
}

impl Commands {
    /// `links` are those of the built network of `scenario`: forward and backward of each in turn.
    pub fn new(commands: Receiver<Command>, scenario: &Scenario, links: Vec<(String, NodeId)>) -> Self {
        Self { commands, desk: Desk::new(scenario, links) }
    }
}

impl Attendant for Commands {
    fn attend(&mut self, core: &mut Core) -> bool {
        while let Ok(Command { request, reply }) = self.commands.try_recv() {
            // the client may have given up waiting
            let _ = reply.try_send(self.desk.answer(core, &request));
        }
        true
    }

    fn next(&self) -> Option<Instant> {
        None
    }
}

/// Answers requests; knows the links by name.
#[derive(Debug)]
pub struct Desk {
    places: Vec<NamedDirection>,
    /// Time and bytes sent on each direction, at earlier readings; oldest first.
    marks: VecDeque<(Instant, Vec<u64>)>,
}

impl Desk {
    /// As [`Commands::new`].
    pub fn new(scenario: &Scenario, links: Vec<(String, NodeId)>) -> Self {
        let node = |i: usize| scenario.nodes.get(i).map(|n| n.name.clone()).unwrap_or_default();
        let places = links.into_iter().enumerate().filter_map(|(i, (name, id))| {
            let spec = scenario.links.get(i / 2)?;
            let backward = i % 2 == 1;
            let (from, to) = if backward { (spec.b, spec.a) } else { (spec.a, spec.b) };
            Some(NamedDirection {
                name,
                id,
                link: spec.name.clone(),
                backward,
                from: node(from),
                to: node(to),
            })
        });
        Self { places: places.collect(), marks: VecDeque::new() }
    }

    /// Answers a request; makes the change if it asks for one.
    pub fn answer(&mut self, core: &mut Core, request: &Request) -> Reply {
        match request {
            Request::Show => {
                let links = self.links(&mut core.net);
                match core.timing() {
                    Ok(timing) => {
                        let uptime_s = core.net.now().as_secs_f64();
                        Reply::State(Box::new(State { uptime_s, links, timing, ..State::default() }))
                    }
                    Err(error) => Reply::refused(format!("a port is gone: {error}")),
                }
            }
            _ => self.change(&mut core.net, core.journal.as_mut(), request),
        }
    }

    /// Makes a change and writes it to the journal.
    pub fn change(&self, net: &mut LiveNetwork, journal: Option<&mut Journal>, request: &Request) -> Reply {
        let (on, act) = match request {
            Request::Show => return Reply::refused("this changes nothing"),
            Request::Set { on, values } => (on, Act::Set(values.clone())),
            Request::Outage { on, length_ns } => (on, Act::OutageNs(*length_ns)),
            Request::Reset { on } => (on, Act::Reset),
        };
        let chosen =
            match self.find(on).and_then(|chosen| act.check().map(|()| chosen).map_err(Reply::refused)) {
                Ok(chosen) => chosen,
                Err(refusal) => return refusal,
            };
        let at = net.now();
        if let Some(journal) = journal {
            let made = Made { on: chosen.iter().map(|p| p.name.clone()).collect(), act: act.clone() };
            let written =
                serde_json::to_string(&made).map_err(Into::into).and_then(|json| journal.change(at, &json));
            if let Err(error) = written {
                return Reply::refused(format!(
                    "nothing was changed, since the journal cannot be written: {error}"
                ));
            }
        }
        make(net, &chosen, &act)
    }

    /// Returns the state of each direction.
    pub fn links(&mut self, net: &mut LiveNetwork) -> Vec<LinkState> {
        let now = net.now();
        let mut all: Vec<LinkState> = self.places.iter().filter_map(|place| look(net, place)).collect();
        let bytes: Vec<u64> = all.iter().map(|l| l.bytes).collect();
        let before = self.marks.iter().rev().find(|m| now.since(m.0) >= SPAN);
        let (since, earlier) = before.map_or((Instant::ZERO, &[][..]), |m| (m.0, &m.1));
        let seconds = now.since(since).as_secs_f64();
        for (i, link) in all.iter_mut().enumerate() {
            let more = link.bytes.saturating_sub(earlier.get(i).copied().unwrap_or(0));
            link.throughput_bps = if seconds > 0.0 { more as f64 * 8.0 / seconds } else { 0.0 };
        }
        // readings that are close together count as one
        if self.marks.back().is_none_or(|m| now.since(m.0) >= SPAN / 4) {
            if self.marks.len() >= MARKS {
                self.marks.pop_front();
            }
            self.marks.push_back((now, bytes));
        }
        all
    }

    /// Returns the directions that the request names.
    fn find(&self, on: &On) -> Result<Vec<NamedDirection>, Reply> {
        let of_way = |place: &&NamedDirection| match on.way {
            Way::Both => true,
            Way::Forward => !place.backward,
            Way::Backward => place.backward,
        };
        let name = match &on.link {
            Some(name) => name,
            None => self.only()?,
        };
        // a link has the name of its forward direction; the backward one has a name of its own
        let is_link = self.places.iter().any(|p| p.link == *name);
        let named = |p: &&NamedDirection| if is_link { p.link == *name } else { p.name == *name };
        let all: Vec<&NamedDirection> = self.places.iter().filter(named).collect();
        if all.is_empty() {
            return Err(self.unknown(name));
        }
        let chosen: Vec<NamedDirection> = all.into_iter().filter(of_way).cloned().collect();
        if chosen.is_empty() {
            return Err(Reply::refused(format!("`{name}` is one direction, and not that one")));
        }
        Ok(chosen)
    }

    /// Returns the link to use when the request names none.
    fn only(&self) -> Result<&String, Reply> {
        let names = self.names();
        if let [name] = names[..] {
            return Ok(name);
        }
        names.iter().find(|n| **n == "bottleneck").copied().ok_or_else(|| {
            let message = format!("there are {} links: name one with --link", names.len());
            Reply::Refused(Refusal { message, help: vec![self.listed()] })
        })
    }

    fn names(&self) -> Vec<&String> {
        self.places.iter().filter(|p| !p.backward).map(|p| &p.link).collect()
    }

    fn unknown(&self, name: &str) -> Reply {
        let shown: String = name.chars().take(64).filter(|c| !c.is_control()).collect();
        let all = self.places.iter().flat_map(|p| [p.link.as_str(), p.name.as_str()]);
        let near = nearest(&shown, all).map(|n| format!("did you mean `{n}`?"));
        let help = near.into_iter().chain([self.listed()]).collect();
        Reply::Refused(Refusal { message: format!("there is no link `{shown}`"), help })
    }

    fn listed(&self) -> String {
        let names = self.names();
        let shown: Vec<&str> = names.iter().take(LISTED).map(|n| n.as_str()).collect();
        let more =
            if names.len() > LISTED { format!(", ... ({} in all)", names.len()) } else { String::new() };
        format!("links: {}{more}", shown.join(", "))
    }
}

/// Makes a change and returns a description of it.
fn make(net: &mut LiveNetwork, chosen: &[NamedDirection], act: &Act) -> Reply {
    let mut changes = Vec::new();
    for place in chosen {
        let before = glance(net, place.id);
        if let Err(message) = act.apply(net, &place.name, place.id) {
            return Reply::refused(message);
        }
        let (Some(before), Some(after)) = (before, glance(net, place.id)) else { continue };
        changes.push(Changed { name: place.name.clone(), what: words(act, &before, &after) });
    }
    Reply::Done(Done { at_ns: net.now().0, changes })
}

fn glance(net: &mut LiveNetwork, id: NodeId) -> Option<Seen> {
    let now = net.now();
    let (link, mut cx) = net.network.link(id)?;
    Some(Seen { look: link.look(&mut cx), user: link.by_user(now) })
}

fn look(net: &mut LiveNetwork, place: &NamedDirection) -> Option<LinkState> {
    let now = net.now();
    let (link, mut cx) = net.network.link(place.id)?;
    let look = link.look(&mut cx);
    let by_user = link.by_user(now);
    let stats = link.stats(&mut cx);
    let (limit_packets, limit_bytes) = match look.queue_limit {
        Capacity::Packets(n) => (Some(u64::from(n)), None),
        Capacity::Bytes(n) => (None, Some(n.0)),
    };
    Some(LinkState {
        name: place.name.clone(),
        link: place.link.clone(),
        backward: place.backward,
        from: place.from.clone(),
        to: place.to.clone(),
        rate_bps: look.rate.map(Rate::bps),
        one_way_ms: look.one_way.as_millis_f64(),
        loss: look.packet_loss,
        ber: look.ber,
        fade_db: look.fade_db,
        up: look.rate.is_some() && !look.dark && look.packet_loss < 1.0,
        queue_packets: look.queue_packets as u64,
        queue_bytes: look.queue_bytes.0,
        limit_packets,
        limit_bytes,
        throughput_bps: 0.0,
        packets: stats.served.packets,
        bytes: stats.served.bytes.0,
        drops: stats.drops().map(|(cause, n)| (cause.key().to_owned(), n)).collect(),
        set: Values::from(&by_user.change),
        outage_until_s: by_user.outage_until.map(Instant::as_secs_f64),
    })
}
