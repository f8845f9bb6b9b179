//! Runs the engine without Python's lock, and lets Python interrupt it.

use crate::{error, scheme};
use bentpipe_os::Clock;
use pyo3::prelude::*;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration as Time;

/// Time between two looks at Python's signals. Each needs Python's lock.
const LOOK: u64 = 50_000_000;

/// Tells runs in other threads to stop.
#[pyclass(frozen, from_py_object, module = "bentpipe._native")]
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

#[pymethods]
impl Stop {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Stops all runs that were given this object.
    fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Stop {
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Says whether a run goes on: until Python's main thread gets a signal, such as that of Ctrl-C, or
/// [`Stop`] is set.
pub(crate) struct Watch {
    clock: Option<Clock>,
    next: u64,
    stop: Option<Stop>,
    error: Option<PyErr>,
}

impl Watch {
    /// `signals`: this is the main thread, whose handlers of signals must be called.
    pub(crate) fn new(signals: bool, stop: Option<Stop>) -> Self {
        Self { clock: signals.then(Clock::start), next: LOOK, stop, error: None }
    }

    pub(crate) fn go_on(&mut self) -> bool {
        if self.error.is_some() || scheme::has_failed() || self.stop.as_ref().is_some_and(Stop::is_set) {
            return false;
        }
        if let Some(now) = self.clock.map(|clock| clock.now().0).filter(|now| *now >= self.next) {
            self.next = now + LOOK;
            self.error = Python::attach(|py| py.check_signals().err());
        }
        self.error.is_none()
    }

    /// The exception of a signal's handler, which ended the run.
    pub(crate) fn error(self) -> Option<PyErr> {
        self.error
    }
}

/// Calls the engine without Python's lock. A panic is a bug of bentpipe, and becomes an exception. An
/// exception of a scheme that is written in Python is passed on.
pub(crate) fn engine<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    let done = py.detach(|| catch_unwind(AssertUnwindSafe(work)));
    scheme::take_failure().map_or(Ok(()), Err)?;
    done.map_err(|panic| error::bug(py, words(&*panic)))
}

/// Calls `work` in another thread, without Python's lock, and lets a signal end it: `work` asks the
/// function that it is given, at times, whether to go on.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    signals: bool,
    work: impl FnOnce(&(dyn Fn() -> bool + Sync)) -> T + Send,
) -> PyResult<T> {
    let stop = Stop::default();
    // the work may have threads of its own, each with a run whose scheme may raise an exception
    let raised = Mutex::new(None);
    let go_on = &|| {
        if let Some(error) = scheme::take_failure() {
            raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            stop.set();
        }
        !stop.is_set()
    };
    let (mut watch, look) = (Watch::new(signals, None), Time::from_nanos(LOOK));
    let done = py.detach(|| {
        std::thread::scope(|scope| {
            let (over, ended) = channel();
            let worker = scope.spawn(move || {
                let done = catch_unwind(AssertUnwindSafe(|| work(go_on)));
                // the other end waits for it
                let _ = over.send(());
                done
            });
            while ended.recv_timeout(look) == Err(RecvTimeoutError::Timeout) {
                if !watch.go_on() {
                    stop.set();
                }
            }
            worker.join().and_then(|done| done)
        })
    });
    watch.error().map_or(Ok(()), Err)?;
    raised.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)?;
    done.map_err(|panic| error::bug(py, words(&*panic)))
}

fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("the engine panicked")
}
