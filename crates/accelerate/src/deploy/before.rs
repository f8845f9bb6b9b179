//! What a start waits for: a gateway that is to leave, and a look at the traffic that goes on without one.

use super::check::check;
use super::divert::Scope;
use super::error::Error;
use super::kept::Kept;
use super::run::{Level, Running};
use super::session::{Locked, Session};
use super::signals::{Signals, Wish};
use super::stop;
use super::watch::{self, Watch};
use bentpipe_base::Duration;
use bentpipe_os::clock::monotonic;
use bentpipe_os::{Clock, wait};
use bentpipe_scenario::gateway_file::{GatewayFile, Kind};

/// Has the gateway of this name stop, once it is certain that nothing else is in the way.
pub(super) fn replace(running: &mut Running<'_>, file: &GatewayFile) -> Result<Locked, Error> {
    let name = &file.deploy.name;
    let found = check(file, &running.sessions, running.inline.is_some());
    found.refuse_beside_running()?;
    running.say(
        Level::Info,
        "replacing",
        format!("gateway {name} is asked to stop and leave its connections"),
    );
    stop::stop(&running.sessions, Some(name), true)?;
    running.sessions.make()?;
    running.sessions.lock(name)?.ok_or_else(|| Error::Runs { name: name.clone(), pid: 0 })
}

/// Looks at what goes on before anything is diverted; none when that is not wanted, or a gateway was there just now. Says when it is told to stop.
pub(super) fn look(
    running: &mut Running<'_>,
    file: &GatewayFile,
    session: &Session,
    (signals, clock): (&mut Signals, &Clock),
) -> Result<(Option<Watch>, bool), Error> {
    let place = running.sessions.place(&session.name, session.network);
    let is_wanted =
        file.deploy.kind == Kind::Routed && !file.deploy.watch.is_zero() && Scope::of(file) != Scope::Nothing;
    if !is_wanted || Kept::is_there(&place, monotonic()) {
        return Ok((None, false));
    }
    let mut watch = match Watch::begin(&file.deploy, clock.now()) {
        Ok(watch) => watch,
        Err(why) => {
            running.say(Level::Warning, "not watched", why);
            return Ok((None, false));
        }
    };
    running.say(
        Level::Info,
        "watching",
        format!("for up to {} s, who answers before the start", watch::BEFORE.as_secs_f64()),
    );
    while !watch.is_ready(clock.now()) {
        wait::wait(&[signals.fd()], Some(watch.next), clock, Duration::ZERO)
            .map_err(|e| Error::system("waiting", e))?;
        if signals.take().contains(&Wish::Stop) {
            return Ok((None, true));
        }
    }
    match watch.start(&file.deploy, clock.now()) {
        Ok(peers) => {
            running.say(Level::Info, "watching", format!("{peers} peers answered just before the start"));
            Ok((Some(watch), false))
        }
        Err(why) => {
            running.say(Level::Warning, "not watched", why);
            Ok((None, false))
        }
    }
}
