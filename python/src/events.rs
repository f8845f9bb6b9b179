//! What a scheme written in Python is told: objects that are filled anew for each call.

use bentpipe_base::{Duration, Instant, Size};
use bentpipe_tcp::cc::law::ControllerStart;
use bentpipe_tcp::cc::{self, Episode, LossCause, ProbeSignal};
use bentpipe_tcp::limits::Limit;
use pyo3::prelude::*;

/// What a connection has when it starts.
#[pyclass(frozen, get_all, module = "bentpipe._native")]
#[derive(Debug)]
pub(crate) struct Start {
    mss: u64,
    window: u64,
    /// Infinite if unlimited.
    ssthresh: f64,
}

impl Start {
    pub(crate) fn of(start: &ControllerStart<'_>) -> Self {
        let window = start.window();
        Self {
            mss: start.mss.0,
            window: window.cwnd(),
            ssthresh: window.threshold().map_or(f64::INFINITY, |s| s.0 as f64),
        }
    }
}

/// What the connection knows about the path.
#[pyclass(subclass, module = "bentpipe._native")]
#[derive(Debug)]
pub(crate) struct Path {
    now: Instant,
    path: cc::Path,
}

impl Path {
    pub(crate) fn fill(&mut self, now: Instant, path: &cc::Path) {
        self.now = now;
        self.path = *path;
    }

    /// Values before the first event, which nobody sees.
    const fn blank() -> Self {
        let path = cc::Path {
            mss: Size::ZERO,
            in_flight: Size::ZERO,
            flight: Size::ZERO,
            peer_window: Size::ZERO,
            srtt: Duration::ZERO,
            rttvar: Duration::ZERO,
            rtt_min: Duration::ZERO,
            round: 0,
            una: 0,
            next: 0,
            delivered: 0,
            lost: 0,
            unsent: None,
            probes: ProbeSignal::None,
        };
        Self { now: Instant::ZERO, path }
    }
}

/// A time that is zero before the first sample.
fn sampled(time: Duration) -> Option<f64> {
    (!time.is_zero()).then(|| time.as_secs_f64())
}

#[pymethods]
impl Path {
    #[getter]
    fn now_s(&self) -> f64 {
        self.now.since(Instant::ZERO).as_secs_f64()
    }
    #[getter]
    fn mss(&self) -> u64 {
        self.path.mss.0
    }
    #[getter]
    fn in_flight(&self) -> u64 {
        self.path.in_flight.0
    }
    #[getter]
    fn flight(&self) -> u64 {
        self.path.flight.0
    }
    #[getter]
    fn peer_window(&self) -> u64 {
        self.path.peer_window.0
    }
    #[getter]
    fn srtt_s(&self) -> Option<f64> {
        sampled(self.path.srtt)
    }
    #[getter]
    fn rttvar_s(&self) -> Option<f64> {
        sampled(self.path.rttvar)
    }
    #[getter]
    fn rtt_min_s(&self) -> Option<f64> {
        sampled(self.path.rtt_min)
    }
    #[getter]
    fn round(&self) -> u64 {
        self.path.round
    }
    #[getter]
    fn una(&self) -> u64 {
        self.path.una
    }
    #[getter]
    fn next(&self) -> u64 {
        self.path.next
    }
    #[getter]
    fn delivered_total(&self) -> u64 {
        self.path.delivered
    }
    #[getter]
    fn lost_total(&self) -> u64 {
        self.path.lost
    }
    #[getter]
    fn unsent(&self) -> Option<u64> {
        self.path.unsent.map(|s| s.0)
    }
}

/// An acknowledgment that delivered data.
#[pyclass(extends = Path, module = "bentpipe._native")]
#[derive(Debug)]
pub(crate) struct Ack(pub(crate) cc::Ack);

impl Ack {
    pub(crate) fn blank(py: Python<'_>) -> PyResult<Py<Self>> {
        let ack = cc::Ack {
            delivered: Size::ZERO,
            acked: Size::ZERO,
            rtt: None,
            rate: None,
            round_ended: false,
            episode: Episode::Open,
            limited_by: Limit::Application,
            probes: 0,
        };
        Py::new(py, PyClassInitializer::from(Path::blank()).add_subclass(Self(ack)))
    }
}

#[pymethods]
impl Ack {
    #[getter]
    fn acked(&self) -> u64 {
        self.0.acked.0
    }
    #[getter]
    fn delivered(&self) -> u64 {
        self.0.delivered.0
    }
    #[getter]
    fn rtt_s(&self) -> Option<f64> {
        self.0.rtt.map(Duration::as_secs_f64)
    }
    #[getter]
    fn rate_bps(&self) -> Option<u64> {
        Some(self.0.rate?.rate()?.bps())
    }
    #[getter]
    fn app_limited(&self) -> bool {
        self.0.rate.is_some_and(|rate| rate.app_limited)
    }
    #[getter]
    fn round_ended(&self) -> bool {
        self.0.round_ended
    }
    #[getter]
    fn may_grow(&self) -> bool {
        self.0.may_grow()
    }
    #[getter]
    fn limited_by(&self) -> &'static str {
        self.0.limited_by.key()
    }
    #[getter]
    fn episode(&self) -> &'static str {
        match self.0.episode {
            Episode::Open => "open",
            Episode::Fast => "fast",
            Episode::Timeout => "timeout",
            Episode::Ended => "ended",
        }
    }
}

/// A loss or mark.
#[pyclass(extends = Path, module = "bentpipe._native")]
#[derive(Debug)]
pub(crate) struct Loss(pub(crate) cc::Loss);

impl Loss {
    pub(crate) fn blank(py: Python<'_>) -> PyResult<Py<Self>> {
        let loss = cc::Loss { cause: LossCause::Fast, last_sent: Instant::ZERO, resends: 0 };
        Py::new(py, PyClassInitializer::from(Path::blank()).add_subclass(Self(loss)))
    }
}

#[pymethods]
impl Loss {
    #[getter]
    fn cause(&self) -> &'static str {
        match self.0.cause {
            LossCause::Fast => "fast",
            LossCause::Timeout => "timeout",
            LossCause::RepeatedTimeout => "repeated-timeout",
            LossCause::Mark => "mark",
        }
    }
    #[getter]
    fn last_sent_s(&self) -> f64 {
        self.0.last_sent.since(Instant::ZERO).as_secs_f64()
    }
    #[getter]
    fn resends(&self) -> u32 {
        self.0.resends
    }
}
