//! Kernel hosts behind two host agents, with a flow router between them, over an emulated link.

use crate::accept::list::{Outcome, Setup};
use lab::agents::{Method, PORT, SIGNALS, Service, scenario};
use lab::chain::Chain;
use lab::join;
use lab::passage::Host;
use lab::scenario::OneLink;
use lab::streams::{STACK, TransferRecord, endpoint, listen, receive, serve};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Builder};

/// The RTT of case L and its rate, with 1000 packets in the queue.
pub(super) const L: OneLink<'static> =
    OneLink { rate: "100 Mbit/s", delay: "20 ms", buffer: "1000 packets", ..OneLink::CLEAN };
/// Rules of a sender's agent that also takes connections which only the other end does not signal.
pub(super) const LONELY_PORT: u16 = 5450;
/// Transfers at the same time.
const AT_ONCE: u32 = 25;

/// The hosts.
pub(super) fn chain(setup: &Setup, link: &OneLink<'_>, share: f64, receiver: &str) -> Outcome<Chain> {
    Chain::new(setup.bentpipe()?, &scenario(link, share), receiver)
}

/// Agents on both hosts, the sender's first.
pub(super) fn agents(chain: &Chain) -> Outcome<[Service<'_>; 2]> {
    agents_of(chain, Method::Split)
}

/// Agents of this method on both hosts, the sender's first.
pub(super) fn agents_of(chain: &Chain, method: Method) -> Outcome<[Service<'_>; 2]> {
    let lonely = format!("{SIGNALS}[[rules]]\nport = {LONELY_PORT}\n");
    let agent = |host, rules: &str| Service::agent(chain, host, method, rules);
    Ok([agent(Host::Sender, &lonely)?, agent(Host::Receiver, SIGNALS)?])
}

/// One stream from the sender to the receiver, which opens the connection.
pub(super) fn transfer(
    chain: &Chain,
    port: u16,
    tcp: &str,
    number: u32,
    bytes: u64,
) -> Outcome<TransferRecord> {
    let at = endpoint(chain.sender(), port)?;
    let listener = chain.at(Host::Sender, || listen(at, tcp))?;
    let ended = AtomicBool::new(false);
    let got = thread::scope(|scope| {
        let served = scope.spawn(|| serve(&listener, 1, &ended));
        let got = chain.at(Host::Receiver, || receive(at, number, bytes).map_err(|e| e.to_string()));
        ended.store(true, Ordering::Release);
        join(served)?;
        got
    })?;
    if got.intact { Ok(got) } else { Err(format!("{} bytes of {bytes} arrived, or wrong ones", got.bytes)) }
}

/// `n` streams with these lengths in turn, some at the same time. Each must be intact. `midway` runs beside.
pub(super) fn transfers(
    chain: &Chain,
    port: u16,
    n: u32,
    lengths: &[u64],
    midway: impl FnOnce() -> Outcome<()> + Send,
) -> Outcome<Vec<TransferRecord>> {
    let at = endpoint(chain.sender(), port)?;
    let listener = chain.at(Host::Sender, || listen(at, "cubic"))?;
    let ended = AtomicBool::new(false);
    let next = Mutex::new(0..n);
    let worker = || -> Outcome<Vec<TransferRecord>> {
        let mut all = Vec::new();
        while let Some(i) = next.lock().ok().and_then(|mut next| next.next()) {
            let bytes = lengths[i as usize % lengths.len()];
            let got = receive(at, i, bytes).map_err(|e| format!("stream {i} {e}"))?;
            if !got.intact {
                return Err(format!("stream {i}: {} bytes of {bytes}, or wrong ones", got.bytes));
            }
            all.push(got);
        }
        Ok(all)
    };
    thread::scope(|scope| {
        let served = scope.spawn(|| serve(&listener, n as usize, &ended));
        let aside = scope.spawn(midway);
        let all = chain.at(Host::Receiver, || {
            thread::scope(|inner| {
                let spawn = |_| Builder::new().stack_size(4 * STACK).spawn_scoped(inner, worker);
                let threads: Vec<_> =
                    (0..AT_ONCE.min(n)).map(spawn).collect::<Result<_, _>>().map_err(|e| e.to_string())?;
                threads.into_iter().map(join).collect::<Outcome<Vec<_>>>()
            })
        });
        ended.store(true, Ordering::Release);
        join(aside)?;
        join(served)?;
        Ok(all?.concat())
    })
}

/// In how many connections of an agent the rate is in which state.
pub(super) fn states(agent: &Service<'_>) -> Outcome<BTreeMap<String, usize>> {
    let mut all = BTreeMap::new();
    for state in agent.states()? {
        *all.entry(state).or_default() += 1;
    }
    Ok(all)
}

/// These states in words.
pub(super) fn words(states: &BTreeMap<String, usize>) -> String {
    let all: Vec<String> = states.iter().map(|(state, n)| format!("{n} {state}")).collect();
    all.join(", ")
}

/// True if there are connections, and all have a rate or do without.
pub(super) fn are_settled(states: &BTreeMap<String, usize>) -> bool {
    let mut all = states.keys();
    !states.is_empty()
        && all
            .all(|state| ["granted", "reduced", "plain", "fallen-back", "refused"].contains(&state.as_str()))
}

/// The port of signalling connections with this number.
pub(super) const fn port(number: u16) -> u16 {
    PORT + number % 100
}
