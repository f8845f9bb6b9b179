//! Congestion control schemes written in Python, as schemes of the engine.
//!
//! A scheme's methods are called with Python's lock, which is held for the call only. What it plans is asked
//! after each event and kept, since the engine wants it before every send. An exception ends the run.

use crate::error;
use crate::events::{Ack, Loss, Start};
use bentpipe_base::{Cx, Rate, Size};
use bentpipe_tcp::cc::law::{Algorithm, ControllerStart, Growth, Values};
use bentpipe_tcp::cc::{self, CongestionControl, Plan};
use bentpipe_tcp::{RecoveryParams, Scheme};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Largest window, bytes: far more than a path holds, and sums of windows do not overflow.
const MOST_WINDOW: f64 = (1_u64 << 50) as f64;
/// Largest pace, bit/s.
const MOST_PACE: f64 = 1e15;

/// Objects by the names of their laws, each with the number of its holders.
static OBJECTS: Mutex<BTreeMap<&'static str, (usize, Py<PyAny>)>> = Mutex::new(BTreeMap::new());
/// Laws that were ever made: the engine's table holds them for good.
static LAWS: Mutex<BTreeMap<String, &'static Algorithm>> = Mutex::new(BTreeMap::new());

thread_local! {
    /// The first exception of a scheme in the run of this thread.
    static FAILURE: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn fail(error: PyErr) {
    FAILURE.with_borrow_mut(|first| {
        first.get_or_insert(error);
    });
}

/// True if a scheme has raised an exception in the run of this thread, which must end.
pub(crate) fn has_failed() -> bool {
    FAILURE.with_borrow(Option::is_some)
}

/// Takes the exception, so that the next run of this thread begins without one.
pub(crate) fn take_failure() -> Option<PyErr> {
    FAILURE.take()
}

/// Holds an object whose copies control connections, under a name for scenarios.
#[pyclass(frozen, module = "bentpipe._native")]
pub(crate) struct SchemeObject {
    name: &'static str,
    recovery: RecoveryParams,
    law: &'static Algorithm,
}

#[pymethods]
impl SchemeObject {
    /// `recovery` is the name of the scheme whose loss recovery it has. Objects with the same `identity` act
    /// alike.
    #[new]
    fn new(py: Python<'_>, name: &str, recovery: &str, identity: &str, object: Py<PyAny>) -> PyResult<Self> {
        if Scheme::NAMES.contains(&name) || name == Scheme::SWIFT {
            let text = format!("`{name}` is a scheme of bentpipe: give yours another `name`");
            return Err(error::input(py, &text));
        }
        let Some(recovers) = Scheme::named(recovery).filter(|s| Scheme::NAMES.contains(&s.name)) else {
            let text = format!(
                "recovery={recovery:?}: write the name of a scheme whose loss recovery it has: {}",
                Scheme::NAMES.join(", ")
            );
            return Err(error::input(py, &text));
        };
        let key = format!("{name} {identity}");
        let law = *lock(&LAWS).entry(key).or_insert_with_key(|key| {
            Box::leak(Box::new(Algorithm::new(Box::leak(key.clone().into_boxed_str()), build)))
        });
        lock(&OBJECTS).entry(law.name).or_insert((0, object)).0 += 1;
        let name = law.name.split(' ').next().unwrap_or_default();
        Ok(Self { name, recovery: recovers.recovery, law })
    }

    /// Lets scenarios that are read from now on find it by its name.
    fn register(&self) {
        Scheme::register(&[(self.name, self.recovery, self.law)]);
    }
}

impl Drop for SchemeObject {
    fn drop(&mut self) {
        let mut objects = lock(&OBJECTS);
        let Some((holders, _)) = objects.get_mut(self.law.name) else { return };
        *holders -= 1;
        let last = if *holders == 0 { objects.remove(self.law.name) } else { None };
        // dropping the object may run code in Python, which may come here again
        drop(objects);
        drop(last);
    }
}

/// Builds the controller of a connection: a copy of the object.
fn build(start: &ControllerStart<'_>, _: &Values) -> Box<dyn CongestionControl> {
    let fallback = start.config.signalling.as_ref().map(|s| s.fallback_to);
    let names = [Some(start.config.scheme), fallback].map(|s| s.map(|s| s.growth.algorithm().name));
    let made = Python::attach(|py| {
        let found = names.iter().flatten().find_map(|name| {
            let objects = lock(&OBJECTS);
            objects.get(name).map(|(_, object)| object.clone_ref(py))
        });
        let object = found.ok_or_else(|| error::bug(py, "the object of a scheme is gone"))?;
        Controller::new(py, &object, start)
    });
    match made {
        Ok(controller) => Box::new(controller),
        Err(error) => {
            // the run ends soon; until then anything will do
            fail(error);
            Growth::of(&cc::reno::ALGORITHM).build(start)
        }
    }
}

/// A controller written in Python: its methods, found once, and what it planned last.
#[derive(Debug)]
struct Controller {
    object: Py<PyAny>,
    plan: Py<PyAny>,
    on_ack: Py<PyAny>,
    on_loss: Py<PyAny>,
    on_undo: Option<Py<PyAny>>,
    on_restart: Option<Py<PyAny>>,
    on_jump: Option<Py<PyAny>>,
    has_threshold: bool,
    ack: Py<Ack>,
    loss: Py<Loss>,
    /// The arguments of `on_ack` and `on_loss`, which are always the same objects.
    with_ack: Py<PyTuple>,
    with_loss: Py<PyTuple>,
    mss: u64,
    planned: Plan,
    threshold: Option<Size>,
    failed: bool,
}

impl Controller {
    fn new(py: Python<'_>, template: &Py<PyAny>, start: &ControllerStart<'_>) -> PyResult<Self> {
        let object = py.import("copy")?.call_method1("deepcopy", (template,))?;
        if let Some(begin) = object.getattr_opt("on_start")? {
            begin.call1((Start::of(start),))?;
        }
        let optional = |name| object.getattr_opt(name).map(|found| found.map(Bound::unbind));
        let (ack, loss) = (Ack::blank(py)?, Loss::blank(py)?);
        let mut made = Self {
            plan: object.getattr("plan")?.unbind(),
            on_ack: object.getattr("on_ack")?.unbind(),
            on_loss: object.getattr("on_loss")?.unbind(),
            on_undo: optional("on_undo")?,
            on_restart: optional("on_restart")?,
            on_jump: optional("on_jump")?,
            has_threshold: object.hasattr("ssthresh")?,
            with_ack: PyTuple::new(py, [&ack])?.unbind(),
            with_loss: PyTuple::new(py, [&loss])?.unbind(),
            object: object.unbind(),
            ack,
            loss,
            mss: start.mss.0,
            planned: Plan::window(start.window().size()),
            threshold: None,
            failed: false,
        };
        (made.planned, made.threshold) = made.look(py)?;
        Ok(made)
    }

    /// Asks what it plans.
    fn look(&self, py: Python<'_>) -> PyResult<(Plan, Option<Size>)> {
        let planned = planned(&self.plan.bind(py).call0()?, self.mss)?;
        if !self.has_threshold {
            return Ok((planned, None));
        }
        let threshold = self.object.bind(py).getattr(intern!(py, "ssthresh"))?;
        let unlimited = threshold.extract::<f64>().is_ok_and(|bytes| bytes == f64::INFINITY);
        Ok((planned, if unlimited { None } else { Some(size(&threshold, "ssthresh")?) }))
    }

    /// Calls methods, then asks what it plans. After an exception it is not called again.
    fn call(&mut self, tell: impl FnOnce(&Self, Python<'_>) -> PyResult<()>) {
        if self.failed {
            return;
        }
        match Python::attach(|py| tell(self, py).and_then(|()| self.look(py))) {
            Ok((planned, threshold)) => (self.planned, self.threshold) = (planned, threshold),
            Err(error) => {
                self.failed = true;
                fail(error);
            }
        }
    }

    fn tell(method: Option<&Py<PyAny>>, py: Python<'_>, sizes: &[Size]) -> PyResult<()> {
        let Some(method) = method else { return Ok(()) };
        method.bind(py).call1(PyTuple::new(py, sizes.iter().map(|s| s.0))?).map(drop)
    }
}

impl CongestionControl for Controller {
    fn on_ack(&mut self, cx: &mut Cx<'_>, path: &cc::Path, ack: &cc::Ack) {
        self.call(|own, py| {
            let mut event = own.ack.bind(py).borrow_mut();
            event.0 = *ack;
            event.as_super().fill(cx.now, path);
            drop(event);
            own.on_ack.bind(py).call(own.with_ack.bind(py), None).map(drop)
        });
    }

    fn on_loss(&mut self, cx: &mut Cx<'_>, path: &cc::Path, loss: &cc::Loss) {
        self.call(|own, py| {
            let mut event = own.loss.bind(py).borrow_mut();
            event.0 = *loss;
            event.as_super().fill(cx.now, path);
            drop(event);
            own.on_loss.bind(py).call(own.with_loss.bind(py), None).map(drop)
        });
    }

    fn on_undo(&mut self, _: &mut Cx<'_>, _: &cc::Path) {
        self.call(|own, py| Self::tell(own.on_undo.as_ref(), py, &[]));
    }

    fn on_restart(&mut self, _: &mut Cx<'_>, _: &cc::Path, window: Size) {
        self.call(|own, py| Self::tell(own.on_restart.as_ref(), py, &[window]));
    }

    fn on_jump(&mut self, _: &mut Cx<'_>, _: &cc::Path, window: Size, ssthresh: Size) {
        self.call(|own, py| Self::tell(own.on_jump.as_ref(), py, &[window, ssthresh]));
    }

    fn plan(&self, _: &cc::Path) -> Plan {
        self.planned
    }

    fn ssthresh(&self) -> Option<Size> {
        self.threshold
    }
}

/// What `plan()` returned: a window, or a tuple of window and pace.
fn planned(answer: &Bound<'_, PyAny>, mss: u64) -> PyResult<Plan> {
    let Ok(pair) = answer.cast::<PyTuple>() else {
        return Ok(Plan::window(Size(size(answer, "plan()")?.0.max(mss))));
    };
    let window = size(&pair.get_item(0)?, "plan()")?;
    let pace = if pair.len() > 1 { Some(pair.get_item(1)?).filter(|p| !p.is_none()) } else { None };
    let pace = pace.map(|pace| rate(&pace)).transpose()?;
    Ok(Plan { pace, ..Plan::window(Size(window.0.max(mss))) })
}

fn rate(given: &Bound<'_, PyAny>) -> PyResult<Rate> {
    let bps = given.extract::<f64>().ok().filter(|bps| (1.0..=MOST_PACE).contains(bps));
    bps.and_then(|bps| Rate::from_bps(bps as u64)).ok_or_else(|| {
        let text = format!("the pace of plan() is {given}: write bit/s from 1 to {MOST_PACE:e}, or None");
        error::input(given.py(), &text)
    })
}

fn size(given: &Bound<'_, PyAny>, what: &str) -> PyResult<Size> {
    let bytes = given.extract::<f64>().ok().filter(|bytes| (0.0..=MOST_WINDOW).contains(bytes));
    bytes.map(|bytes| Size(bytes as u64)).ok_or_else(|| {
        let text = format!("{what} is {given}: write a window in bytes from 0 to {MOST_WINDOW:e}");
        error::input(given.py(), &text)
    })
}
