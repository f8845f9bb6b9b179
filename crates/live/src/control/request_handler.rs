//! Answers control requests, on the data thread, which owns the network.

use super::describe::{Observation, describe};
use super::link_change::{LinkChange, RecordedChange};
use super::messages::{
    ChangesMade, Command, DirectionChange, Directions, LinkState, LinkValues, Reply, Request, State, Target,
};
use bentpipe_base::names::nearest;
use bentpipe_base::{Duration, Instant, NodeId, Rate};
use bentpipe_driver::{Core, Journal, LiveNetwork, TurnHook};
use bentpipe_link::Capacity;
use bentpipe_report::rate_bps;
use bentpipe_scenario::Scenario;
use bentpipe_service::Refusal;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

/// Throughput is averaged over at least this time.
const THROUGHPUT_INTERVAL: Duration = Duration::from_millis(200);
/// Number of earlier counter readings kept for this.
const MAX_READINGS: usize = 16;
/// Most names listed in a message.
const LISTED: usize = 20;

/// Answers the commands of a channel on the data thread.
#[derive(Debug)]
pub struct Commands(pub Receiver<Command>, pub RequestHandler);

impl TurnHook for Commands {
    fn on_turn(&mut self, core: &mut Core) -> bool {
        while let Ok(Command { request, reply }) = self.0.try_recv() {
            // the client may have given up waiting
            let _ = reply.try_send(self.1.answer(core, &request));
        }
        true
    }
}

/// Answers requests; knows the links by name.
#[derive(Debug)]
pub struct RequestHandler {
    /// Directions of links with their names; the figures of these states are not set.
    directions: Vec<(NodeId, LinkState)>,
    /// Time and bytes sent on each direction, at earlier readings; oldest first.
    readings: VecDeque<(Instant, Vec<u64>)>,
}

impl RequestHandler {
    /// `links` are those of the built network of `scenario`: forward and backward of each in turn.
    pub fn new(scenario: &Scenario, links: Vec<(Arc<str>, NodeId)>) -> Self {
        let node = |i: usize| scenario.nodes.get(i).map(|n| n.name.to_string()).unwrap_or_default();
        let directions = links.into_iter().enumerate().filter_map(|(i, (name, id))| {
            let spec = scenario.links.get(i / 2)?;
            let backward = i % 2 == 1;
            let (from, to) = if backward { (spec.b, spec.a) } else { (spec.a, spec.b) };
            let (name, link) = (name.to_string(), spec.name.to_string());
            let (from, to) = (node(from), node(to));
            Some((id, LinkState { name, link, backward, from, to, ..LinkState::default() }))
        });
        Self { directions: directions.collect(), readings: VecDeque::new() }
    }

    /// Answers a request; makes the change if it asks for one.
    ///
    /// # Errors
    /// If the link or the change does not exist or is not possible, or a port is gone.
    pub fn answer(&mut self, core: &mut Core, request: &Request) -> Result<Reply, Refusal> {
        if *request != Request::Show {
            return self.change(&mut core.net, core.journal.as_mut(), request).map(Reply::Done);
        }
        let links = self.links(&mut core.net);
        let timing = core.timing().map_err(|error| format!("a port is gone: {error}"))?;
        let uptime_s = core.net.now().as_secs_f64();
        Ok(Reply::State(Box::new(State { uptime_s, links, timing, ..State::default() })))
    }

    /// Writes a change to the journal and makes it; returns a description of it.
    ///
    /// # Errors
    /// When a value is out of range, or nothing is given.
    pub fn change(
        &self,
        net: &mut LiveNetwork,
        journal: Option<&mut Journal>,
        request: &Request,
    ) -> Result<ChangesMade, Refusal> {
        let (on, act) = match request {
            Request::Show => return Err("this changes nothing".into()),
            Request::Set { on, values } => (on, LinkChange::Set(values.clone())),
            Request::Outage { on, length_ns } => (on, LinkChange::OutageNs(*length_ns)),
            Request::Reset { on } => (on, LinkChange::Reset),
        };
        let chosen = self.find(on)?;
        act.check()?;
        let at = net.now();
        if let Some(journal) = journal {
            let on = chosen.iter().map(|(_, names)| names.name.clone()).collect();
            let json = serde_json::to_string(&RecordedChange { on, act: act.clone() });
            let written = json.map_err(Into::into).and_then(|json| journal.change(at, &json));
            written.map_err(|error| {
                format!("nothing was changed, since the journal cannot be written: {error}")
            })?;
        }
        let mut changes = Vec::new();
        for (id, LinkState { name, .. }) in chosen {
            let before = observe(net, *id);
            act.apply(net, name, *id)?;
            let (Some(before), Some(after)) = (before, observe(net, *id)) else { continue };
            changes.push(DirectionChange { name: name.clone(), what: describe(&act, &before, &after) });
        }
        Ok(ChangesMade { at_ns: at.0, changes })
    }

    /// Returns the state of each direction.
    pub fn links(&mut self, net: &mut LiveNetwork) -> Vec<LinkState> {
        let now = net.now();
        let mut all: Vec<LinkState> =
            self.directions.iter().filter_map(|(id, names)| link_state(net, *id, names)).collect();
        let bytes: Vec<u64> = all.iter().map(|l| l.bytes).collect();
        let before = self.readings.iter().rev().find(|m| now.since(m.0) >= THROUGHPUT_INTERVAL);
        let (since, earlier) = before.map_or((Instant::ZERO, &[][..]), |m| (m.0, &m.1));
        for (i, link) in all.iter_mut().enumerate() {
            let more = link.bytes.saturating_sub(earlier.get(i).copied().unwrap_or(0));
            link.throughput_bps = rate_bps(more, now.since(since));
        }
        // readings that are close together count as one
        if self.readings.back().is_none_or(|m| now.since(m.0) >= THROUGHPUT_INTERVAL / 4) {
            if self.readings.len() >= MAX_READINGS {
                self.readings.pop_front();
            }
            self.readings.push_back((now, bytes));
        }
        all
    }

    /// Returns the directions that the request names.
    fn find(&self, on: &Target) -> Result<Vec<&(NodeId, LinkState)>, Refusal> {
        let name = match &on.link {
            Some(name) => name,
            None => self.default_link()?,
        };
        // a link has the name of its forward direction; the backward one has a name of its own
        let is_link = self.directions.iter().any(|(_, names)| names.link == *name);
        let is_named = |names: &LinkState| if is_link { names.link == *name } else { names.name == *name };
        let mut chosen: Vec<_> = self.directions.iter().filter(|(_, names)| is_named(names)).collect();
        if chosen.is_empty() {
            return Err(self.unknown(name));
        }
        chosen.retain(|p| on.way == Directions::Both || p.1.backward == (on.way == Directions::Backward));
        if chosen.is_empty() {
            return Err(format!("`{name}` is a single direction, and not the one asked for").into());
        }
        Ok(chosen)
    }

    /// Returns the link to use when the request names none.
    fn default_link(&self) -> Result<&String, Refusal> {
        let names = self.names();
        if let [name] = names[..] {
            return Ok(name);
        }
        names.iter().find(|n| **n == "bottleneck").copied().ok_or_else(|| {
            let message = format!("there are {} links: name one with --link", names.len());
            Refusal { message, help: vec![self.listed()] }
        })
    }

    fn names(&self) -> Vec<&String> {
        self.directions.iter().map(|(_, names)| names).filter(|n| !n.backward).map(|n| &n.link).collect()
    }

    fn unknown(&self, name: &str) -> Refusal {
        let shown: String = name.chars().take(64).filter(|c| !c.is_control()).collect();
        let all = self.directions.iter().flat_map(|(_, names)| [names.link.as_str(), names.name.as_str()]);
        let near = nearest(&shown, all).map(|n| format!("did you mean `{n}`?"));
        let help = near.into_iter().chain([self.listed()]).collect();
        Refusal { message: format!("there is no link `{shown}`"), help }
    }

    fn listed(&self) -> String {
        let names = self.names();
        let shown: Vec<&str> = names.iter().take(LISTED).map(|n| n.as_str()).collect();
        let more =
            if names.len() > LISTED { format!(", ... ({} in all)", names.len()) } else { String::new() };
        format!("links: {}{more}", shown.join(", "))
    }
}

fn observe(net: &mut LiveNetwork, id: NodeId) -> Option<Observation> {
    let now = net.now();
    let (link, mut cx) = net.network.link(id)?;
    Some(Observation { snapshot: link.snapshot(&mut cx), user: link.user_changes(now) })
}

fn link_state(net: &mut LiveNetwork, id: NodeId, names: &LinkState) -> Option<LinkState> {
    let Observation { snapshot: look, user } = observe(net, id)?;
    let (link, mut cx) = net.network.link(id)?;
    let stats = link.stats(&mut cx);
    Some(LinkState {
        rate_bps: look.rate.map(Rate::bps),
        one_way_ms: look.one_way.as_millis_f64(),
        loss: look.packet_loss,
        ber: look.ber,
        fade_db: look.fade_db,
        up: look.rate.is_some() && !look.dark && look.packet_loss < 1.0,
        queue_packets: look.queue_packets as u64,
        queue_bytes: look.queue_bytes.0,
        limit_packets: if let Capacity::Packets(n) = look.queue_limit { Some(n.into()) } else { None },
        limit_bytes: if let Capacity::Bytes(n) = look.queue_limit { Some(n.0) } else { None },
        packets: stats.served.packets,
        bytes: stats.served.bytes.0,
        drops: stats.drops().map(|(cause, n)| (cause.key().to_owned(), n)).collect(),
        set: LinkValues::from(&user.change),
        outage_until_s: user.outage_until.map(Instant::as_secs_f64),
        ..names.clone()
    })
}
