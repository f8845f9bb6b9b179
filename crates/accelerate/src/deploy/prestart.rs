//! Steps before a start: replaces a running gateway, and observes the traffic without a gateway.

use super::check::check;
use super::deployment::Deployment;
use super::divert::Scope;
use super::error::Error;
use super::record_file::SavedRecords;
use super::session::{self, Session};
use super::stop::stop;
use super::watch::{self, Watch};
use bentpipe_base::Duration;
use bentpipe_os::clock::monotonic;
use bentpipe_os::{Clock, wait};
use bentpipe_scenario::gateway_file::{GatewayFile, Kind};
use bentpipe_service::{Lock, Signals};
use rustix::process::Signal;

/// Stops the running gateway of this name after checking that nothing else prevents the start.
pub(super) fn replace(deployment: &mut Deployment<'_>, file: &GatewayFile) -> Result<Lock, Error> {
    let name = &file.deploy.name;
    check(file, &deployment.registry).besides_running().refuse()?;
    deployment.inform("replacing", format!("asking gateway {name} to stop and to hand over its connections"));
    stop(&deployment.registry, Some(name), true)?;
    session::lock(&deployment.registry, name)?.ok_or_else(|| Error::Runs { name: name.clone(), pid: 0 })
}

/// Observes the traffic before anything is diverted. Returns no watch if the file wants none or a gateway was
/// running just before, and true if a signal asked to stop.
pub(super) fn observe_traffic(
    deployment: &mut Deployment<'_>,
    file: &GatewayFile,
    session: &Session,
    (signals, clock): (&mut Signals, &Clock),
) -> Result<(Option<Watch>, bool), Error> {
    let place = session::record_file(&deployment.registry, &session.name, session.undo.network);
    let is_wanted =
        file.deploy.kind == Kind::Routed && !file.deploy.watch.is_zero() && Scope::of(file) != Scope::Nothing;
    if !is_wanted || SavedRecords::is_there(&place, monotonic()) {
        return Ok((None, false));
    }
    let mut watch = match Watch::begin(&file.deploy, clock.now()) {
        Ok(watch) => watch,
        Err(why) => return Ok(not_watched(deployment, why)),
    };
    let at_most = watch::MAX_OBSERVATION.as_secs_f64();
    deployment.inform("watching", format!("which peers answer before the start, for up to {at_most} s"));
    while !watch.is_ready(clock.now()) {
        wait::wait(&[signals.fd()], Some(watch.next), clock, Duration::ZERO)
            .map_err(|e| Error::system("waiting", e))?;
        if signals.take().iter().any(|signal| *signal != Signal::HUP) {
            return Ok((None, true));
        }
    }
    match watch.start(&file.deploy, clock.now()) {
        Ok(peers) => {
            deployment.inform("watching", format!("{peers} peers answered just before the start"));
            Ok((Some(watch), false))
        }
        Err(why) => Ok(not_watched(deployment, why)),
    }
}

fn not_watched(deployment: &mut Deployment<'_>, why: String) -> (Option<Watch>, bool) {
    deployment.warn("not watched", why);
    (None, false)
}
