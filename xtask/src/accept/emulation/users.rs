//! Checks that an ordinary user can do everything, and that wrong input is refused.

use crate::Outcome;
use crate::accept::list::List;
use crate::accept::setup::Setup;
use lab::{Who, features, refused};

pub(super) fn check(setup: &Setup, list: &mut List) -> Outcome {
    for step in features::walk(&setup.rig(Who::Ordinary)?) {
        list.judge(format!("ordinary user: {}", step.what), step.outcome, |t| (t, true));
    }
    for (who, name) in [(Who::Ourselves, "root"), (Who::Ordinary, "ordinary user")] {
        for refusal in refused::all(&setup.rig(who)?)? {
            let what = format!("{name}: {} is refused, nothing left", refusal.what);
            list.judge(what, refusal.outcome, |t| (t, true));
        }
    }
    Ok(())
}
