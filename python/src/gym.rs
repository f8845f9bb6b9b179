//! A simulated connection whose window or pace somebody outside decides, step by step, as an environment of
//! `gymnasium` does.
//!
//! The network lives in a thread of its own, since it cannot be moved between threads. A step is one message
//! to it and one back.

use crate::error;
use crate::scenario::Scenario;
use bentpipe_base::{Cx, Duration, Instant, Rate, Size};
use bentpipe_scenario::App;
use bentpipe_sim::Steps;
use bentpipe_tcp::cc::law::{Algorithm, ControllerStart, Values};
use bentpipe_tcp::cc::{Ack, CongestionControl, Loss, LossCause, Path, Plan};
use bentpipe_tcp::{Growth, RecoveryParams, Scheme};
use pyo3::prelude::*;
use std::cell::RefCell;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

/// What the agent decides, and what the connection saw since the last step.
#[derive(Debug, Default)]
struct Agent {
    /// Bytes; 0 until the connection starts.
    window: u64,
    pace: Option<Rate>,
    seen: Seen,
}

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    mss: u64,
    acks: u64,
    /// Bytes.
    delivered: u64,
    rtt_sum: Duration,
    rtt_samples: u64,
    losses: u64,
    timeouts: u64,
    /// Bytes ever delivered, lost, and in flight at the last event.
    lost: u64,
    in_flight: u64,
    rtt_min: Duration,
    srtt: Duration,
}

impl Seen {
    const fn look(&mut self, path: &Path) {
        self.lost = path.lost;
        self.in_flight = path.in_flight.0;
        self.rtt_min = path.rtt_min;
        self.srtt = path.srtt;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    /// The agent of the network that runs in this thread.
    static AGENT: RefCell<Option<Arc<Mutex<Agent>>>> = const { RefCell::new(None) };
}

/// Sends what the agent says.
#[derive(Debug)]
struct Obedient(Arc<Mutex<Agent>>);

static OBEDIENT: Algorithm = Algorithm::new("agent", build);

fn build(start: &ControllerStart<'_>, _: &Values) -> Box<dyn CongestionControl> {
    let agent = AGENT.with_borrow(Clone::clone).unwrap_or_default();
    {
        let mut agent = lock(&agent);
        agent.window = start.window().cwnd();
        agent.seen.mss = start.mss.0;
    }
    Box::new(Obedient(agent))
}

impl CongestionControl for Obedient {
    fn on_ack(&mut self, _: &mut Cx<'_>, path: &Path, ack: &Ack) {
        let seen = &mut lock(&self.0).seen;
        seen.look(path);
        seen.acks += 1;
        seen.delivered += ack.delivered.0;
        if let Some(rtt) = ack.rtt {
            seen.rtt_sum += rtt;
            seen.rtt_samples += 1;
        }
    }

    fn on_loss(&mut self, _: &mut Cx<'_>, path: &Path, loss: &Loss) {
        let seen = &mut lock(&self.0).seen;
        seen.look(path);
        seen.losses += 1;
        seen.timeouts += u64::from(matches!(loss.cause, LossCause::Timeout | LossCause::RepeatedTimeout));
    }

    fn plan(&self, _: &Path) -> Plan {
        let agent = lock(&self.0);
        Plan { pace: agent.pace, ..Plan::window(Size(agent.window)) }
    }
}

/// What a connection saw in one step.
#[pyclass(frozen, get_all, module = "bentpipe._native")]
#[derive(Debug)]
pub(crate) struct Step {
    /// Simulated time, s.
    now_s: f64,
    /// Segment size, bytes.
    mss: u64,
    /// Length of the step, s.
    length_s: f64,
    /// Bytes acknowledged or SACKed in it.
    delivered: u64,
    /// Bytes found to be lost in it.
    lost: u64,
    /// Congestion signals in it, and how many of them were timeouts.
    losses: u64,
    timeouts: u64,
    /// Mean of the round-trip times measured in it, s.
    rtt_s: Option<f64>,
    /// Smallest round-trip time and smoothed one, s.
    rtt_min_s: f64,
    srtt_s: f64,
    /// Bytes in flight at the end.
    in_flight: u64,
    /// The window, bytes.
    window: u64,
    /// Bytes delivered to the application since the start.
    received: u64,
    /// All data was transferred.
    finished: bool,
    /// The scenario's time is over.
    over: bool,
}

/// Window in bytes, pace, and length of the step; the first question has no length: up to the first
/// acknowledgment.
struct Ask {
    window: u64,
    pace: Option<Rate>,
    length: Option<Duration>,
}

/// A run of a scenario in steps.
#[pyclass(frozen, module = "bentpipe._native")]
pub(crate) struct Episode {
    asks: Sender<Ask>,
    answers: Mutex<Receiver<Step>>,
}

#[pymethods]
impl Episode {
    /// The sender of `flow` obeys; without a name, that of the first flow of TCP.
    #[new]
    fn new(py: Python<'_>, scenario: &Scenario, seed: u64, flow: Option<&str>) -> PyResult<Self> {
        let mut scenario = (*scenario.resolved).clone();
        scenario.seed = seed;
        let is_it = |name: &str| flow.is_none_or(|wanted| wanted == name);
        let tcp = |app: &App| !matches!(app, App::Udp { .. });
        let found = scenario.flows.iter().position(|f| tcp(&f.app) && is_it(&f.name));
        let Some(flow) = found else {
            let names: Vec<&str> = scenario.flows.iter().filter(|f| tcp(&f.app)).map(|f| &*f.name).collect();
            let wanted = flow.map_or_else(String::new, |name| format!(" called `{name}`"));
            let text = format!("the scenario has no flow of TCP{wanted}: it has {}", names.join(", "));
            return Err(error::input(py, &text));
        };
        Arc::make_mut(&mut scenario.flows[flow].sender).scheme =
            Scheme { name: "agent", recovery: RecoveryParams::OWN_WINDOW, growth: Growth::of(&OBEDIENT) };
        let (asks, to_do) = channel();
        let (done, answers) = channel();
        let run = move || serve(&scenario, flow, &to_do, &done);
        let started = thread::Builder::new().name("bentpipe-gym".to_owned()).spawn(run);
        started.map_err(|e| error::system(&format!("a thread could not be started: {e}")))?;
        Ok(Self { asks, answers: Mutex::new(answers) })
    }

    /// Runs until the connection's first acknowledgment of data.
    fn begin(&self, py: Python<'_>) -> PyResult<Step> {
        self.ask(py, Ask { window: 0, pace: None, length: None })
    }

    /// Sets the window in bytes and the pace in bit/s, and runs for `length_s` seconds.
    fn step(&self, py: Python<'_>, window: f64, pace_bps: Option<f64>, length_s: f64) -> PyResult<Step> {
        let pace = pace_bps.and_then(|bps| Rate::from_bps(bps as u64));
        self.ask(py, Ask { window: window as u64, pace, length: Some(Duration((length_s * 1e9) as u64)) })
    }
}

impl Episode {
    fn ask(&self, py: Python<'_>, ask: Ask) -> PyResult<Step> {
        let answer = py.detach(|| {
            let answers = lock(&self.answers);
            self.asks.send(ask).ok().and_then(|()| answers.recv().ok())
        });
        answer.ok_or_else(|| error::bug(py, "the simulation of an episode has ended"))
    }
}

/// Runs the network, in its own thread, until nobody asks any more.
fn serve(scenario: &bentpipe_scenario::Scenario, flow: usize, asks: &Receiver<Ask>, answers: &Sender<Step>) {
    let agent = Arc::new(Mutex::new(Agent::default()));
    AGENT.set(Some(Arc::clone(&agent)));
    let mut steps = Steps::new(scenario);
    let mut lost = 0;
    for ask in asks {
        let start = steps.now();
        if let Some(length) = ask.length {
            {
                let mut agent = lock(&agent);
                agent.window = ask.window.max(agent.seen.mss);
                agent.pace = ask.pace;
            }
            steps.run_until(start + length, || false);
        } else {
            steps.run_until(Instant::NEVER, || lock(&agent).seen.acks > 0);
        }
        let step = answer(&steps, flow, start, (&mut lock(&agent), &mut lost));
        if answers.send(step).is_err() {
            return;
        }
    }
}

fn answer(steps: &Steps, flow: usize, start: Instant, (agent, lost): (&mut Agent, &mut u64)) -> Step {
    let seen = agent.seen;
    agent.seen =
        Seen { delivered: 0, rtt_sum: Duration::ZERO, rtt_samples: 0, losses: 0, timeouts: 0, ..seen };
    let lost_before = std::mem::replace(lost, seen.lost);
    let now = steps.now();
    Step {
        now_s: now.since(Instant::ZERO).as_secs_f64(),
        mss: seen.mss,
        length_s: now.since(start).as_secs_f64(),
        delivered: seen.delivered,
        lost: seen.lost - lost_before,
        losses: seen.losses,
        timeouts: seen.timeouts,
        rtt_s: (seen.rtt_samples > 0).then(|| seen.rtt_sum.as_secs_f64() / seen.rtt_samples as f64),
        rtt_min_s: seen.rtt_min.as_secs_f64(),
        srtt_s: seen.srtt.as_secs_f64(),
        in_flight: seen.in_flight,
        window: agent.window,
        received: steps.delivered(flow),
        finished: steps.is_finished(flow),
        over: steps.is_over(),
    }
}
