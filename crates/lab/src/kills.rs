//! Kills flow routers and agents at random instants, in the middle of a stream, while the rates of the path
//! change every round trip.
//!
//! Each trial is one stream between two kernel hosts behind agents, and one victim. If the victim is the flow
//! router, the stream goes on or is reset. If it is an agent of method `split`, its bytes are nowhere else,
//! so both ends are reset, within two seconds, unless all bytes had arrived. With the method `kernel` the
//! stream goes on as without an agent. No end may see a clean end with bytes missing, and none that goes on
//! may be silent for longer than TCP takes to send again.

use crate::agents::{Method, PORT, SIGNALS, Service, scenario};
use crate::chain::{Chain, SENDER};
use crate::passage::Host;
use crate::scenario::OneLink;
use crate::stats::Random;
use crate::streams::{Broken, TransferRecord, endpoint, listen, receive, serve};
use crate::{Outcome, join};
use std::io;
use std::net::TcpListener;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const RTT: Duration = Duration::from_millis(100);
const LINK: OneLink<'static> = OneLink {
    rate: "20 Mbit/s",
    delay: "50 ms",
    buffer: "300 kB",
    loss: 0.005,
    loss_back: 0.005,
    ..OneLink::CLEAN
};
/// The rates fall from the first to the second, by one every round trip, and then begin again; Mbit/s.
const RATES: (u64, u64) = (20, 10);
/// Bytes of a stream: more than a second.
const BYTES: u64 = 2_500_000;
/// The latest instant of a kill after the beginning of the stream: while data flows, and while the connection
/// opens, which takes a round trip or two.
pub const MIDWAY: Duration = Duration::from_millis(1600);
/// See [`MIDWAY`].
pub const OPENING: Duration = Duration::from_millis(250);
/// How long an end of a connection may wait for its reset.
const RESET_WITHIN: Duration = Duration::from_secs(2);
/// How long a stream that goes on may be without a byte, s: a SYN is sent again after 1 s and 2 s more (RFC
/// 6298, sections 2 and 5.5).
const SILENT_S: f64 = 3.5;

/// What is killed, how often, and when.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Number of kills.
    pub count: usize,
    /// Decides when they are.
    pub seed: u64,
    /// Method of the agents.
    pub method: Method,
    /// Each kill is before this time after the beginning of its stream.
    pub within: Duration,
}

/// What was seen in all trials.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Number of kills: of the flow router, of the sender's agent, of the receiver's.
    pub kills: [usize; 3],
    /// Streams that arrived whole, by victim.
    pub whole: [usize; 3],
    /// Streams that were reset, by victim.
    pub reset: [usize; 3],
    /// The longest time from the kill of an agent to the reset of an end, s.
    pub slowest_s: f64,
    /// The longest time without a byte in a stream that arrived whole, s.
    pub silent_s: f64,
    /// Reductions that the flow router of the link has told, and the gateway.
    pub reductions: [f64; 2],
    /// What must not happen.
    pub faults: Vec<String>,
}

/// How both ends of a stream ended, and when.
struct Ends {
    receiver: (Result<TransferRecord, Broken>, Instant),
    sender: (io::Result<()>, Instant),
}

/// Kills as often as `plan` says.
pub fn run(program: &Path, plan: &Plan) -> Outcome<Tally> {
    let Plan { count, seed, method, within } = *plan;
    let chain = Chain::new(program, &scenario(&OneLink { seed, ..LINK }, 0.95), "true")?;
    let mut tally = Tally::default();
    {
        let mut victims = [
            Service::router(&chain, "18 Mbit/s")?,
            Service::agent(&chain, Host::Sender, method, SIGNALS)?,
            Service::agent(&chain, Host::Receiver, method, SIGNALS)?,
        ];
        let mut dice = Random::new(seed);
        for i in 0..count {
            let after = Duration::from_millis(dice.below(within.as_millis() as u64));
            trial(&chain, &mut victims, (i, after), &mut tally)
                .map_err(|e| format!("kill {}: {e}", i + 1))?;
        }
        tally.reductions[1] += reductions(&victims[0])?;
    }
    let report = chain.report()?;
    tally.reductions[0] = report["flow_routers"][0]["reductions"].as_f64().unwrap_or(0.0);
    Ok(tally)
}

fn reductions(gateway: &Service<'_>) -> Outcome<f64> {
    let status = gateway.status()?;
    // pairs of names and values
    let counters = status["figures"]["rate"][0]["counters"].as_array().into_iter().flatten();
    let found = counters.filter(|pair| pair[0] == "reductions").find_map(|pair| pair[1].as_f64());
    found.ok_or_else(|| "no figures of the gateway's flow router".to_owned())
}

fn trial(
    chain: &Chain,
    victims: &mut [Service<'_>; 3],
    (i, after): (usize, Duration),
    tally: &mut Tally,
) -> Outcome<()> {
    let who = i % 3;
    let at = endpoint(SENDER[0], PORT + (i % 100) as u16)?;
    let listener = chain.at(Host::Sender, || listen(at, "cubic"))?;
    let over = AtomicBool::new(false);
    let (ends, killed, told) = thread::scope(|scope| {
        let ends = scope.spawn(|| both_ends(chain, &listener, i as u32));
        let link = |rate| {
            let words = ["link", "set", &format!("rate={rate}Mbit/s"), "--direction", "forward"];
            chain.rig().output(&words, RTT * 100).map(drop)
        };
        let gateway = |rate| {
            // it may have been killed
            let _ = Service::reload(chain, &format!("{rate} Mbit/s"));
            Ok(())
        };
        let (even, odd) = (0, 1);
        let changes = [
            scope.spawn({
                let over = &over;
                move || change_rates(even, over, link)
            }),
            scope.spawn({
                let over = &over;
                move || change_rates(odd, over, gateway)
            }),
        ];
        thread::sleep(after);
        let told = if who == 0 { reductions(&victims[0]) } else { Ok(0.0) };
        let killed = Instant::now();
        let done = victims[who].kill();
        let ends = join(ends);
        over.store(true, Ordering::Relaxed);
        changes.into_iter().try_for_each(join)?;
        done?;
        Ok::<_, String>((ends?, killed, told?))
    })?;
    tally.reductions[1] += told;
    tally.judge(who, &ends, (after, killed));
    victims[who].restart()
}

/// Sets a rate every round trip. Two of them, of which one is even and the other odd, have the lowest rate in
/// turns, so that each of them is the one that reduces.
fn change_rates(odd: u64, over: &AtomicBool, set: impl Fn(u64) -> Outcome<()>) -> Outcome<()> {
    let start = Instant::now();
    for step in 0.. {
        let fallen = step % (RATES.0 - RATES.1);
        set(RATES.0 - fallen + (fallen + odd) % 2)?;
        if over.load(Ordering::Relaxed) {
            break;
        }
        thread::sleep((RTT * (step as u32 + 1)).saturating_sub(start.elapsed()));
    }
    Ok(())
}

fn both_ends(chain: &Chain, listener: &TcpListener, number: u32) -> Outcome<Ends> {
    let to = listener.local_addr().map_err(|e| e.to_string())?;
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let sender = scope.spawn(|| -> Outcome<_> {
            // a SYN whose agent was killed before it was answered is sent again: there may be several. At
            // most one carries the stream
            let mut how = Err(io::ErrorKind::NotConnected.into());
            for served in serve(listener, usize::MAX, &ended)? {
                how = served.join().map_err(|_| "a sender panicked")?.or(how);
            }
            Ok((how, Instant::now()))
        });
        let receiver = chain.at(Host::Receiver, || Ok((receive(to, number, BYTES), Instant::now())));
        ended.store(true, Ordering::Release);
        Ok(Ends { receiver: receiver?, sender: join(sender)? })
    })
}

impl Tally {
    /// Notes how the ends of a stream ended whose victim was killed `after` its beginning.
    fn judge(&mut self, who: usize, ends: &Ends, (after, killed): (Duration, Instant)) {
        self.kills[who] += 1;
        let victim = ["the flow router", "the sender's agent", "the receiver's agent"][who];
        let number: usize = self.kills.iter().sum();
        let mut fault = |what: String| {
            self.faults.push(format!("kill {number}, of {victim} after {} ms: {what}", after.as_millis()));
        };
        let since = |at: Instant| at.saturating_duration_since(killed);
        let (receiver, at) = &ends.receiver;
        match receiver {
            Ok(record) if record.intact => {
                self.whole[who] += 1;
                self.silent_s = self.silent_s.max(record.silent);
                if record.silent > SILENT_S {
                    fault(format!("{:.2} s without a byte", record.silent));
                }
            }
            Ok(record) => fault(format!("a clean end with {} of {BYTES} bytes, or wrong ones", record.bytes)),
            Err(broken) if !broken.intact => fault(format!("wrong bytes {broken}")),
            Err(broken) if !broken.is_reset() => fault(format!("the receiver was not reset, {broken}")),
            Err(broken) => {
                self.reset[who] += 1;
                let latest = match &ends.sender {
                    (Ok(()), _) => {
                        fault(format!("a clean end at the sender, the receiver was reset {broken}"));
                        *at
                    }
                    (Err(_), sender) => *sender.max(at),
                };
                if who > 0 {
                    self.slowest_s = self.slowest_s.max(since(latest).as_secs_f64());
                    if since(latest) > RESET_WITHIN {
                        fault(format!("reset after {:.2} s", since(latest).as_secs_f64()));
                    }
                }
            }
        }
    }

    /// True if nothing was seen that must not happen, and all was seen that `plan` is for: rates that
    /// change, a stream that goes on without the router, and agents of method `kernel` nine tenths of whose
    /// streams go on, or others whose ends are reset in the middle. Three kills or more.
    pub fn is_fine(&self, plan: &Plan) -> bool {
        let agents = |of: [usize; 3]| of[1] + of[2];
        let is_ended = match plan.method {
            Method::Kernel => 10 * agents(self.whole) >= 9 * agents(self.kills),
            Method::Split => agents(if plan.within > OPENING { self.reset } else { self.whole }) > 0,
        };
        let is_tried = self.reductions.iter().all(|n| *n > 0.0) && self.whole[0] > 0;
        self.faults.is_empty() && is_tried && is_ended
    }

    /// The figures in one line.
    pub fn text(&self) -> String {
        let each = |all: [usize; 3]| all.map(|n| n.to_string()).join(" + ");
        format!(
            "{} kills: {} whole, at most {:.2} s without a byte, {} reset, at most {:.2} s after the kill; {} and {} reductions",
            each(self.kills),
            each(self.whole),
            self.silent_s,
            each(self.reset),
            self.slowest_s,
            self.reductions[0],
            self.reductions[1]
        )
    }
}
