//! An ordinary user can do everything, and wrong input is refused.

use crate::accept::List;
use crate::accept::place::{Place, judge};
use crate::item::Item;
use lab::{Outcome, Who, features, refused};

pub(super) fn check(place: &Place, list: &mut List) {
    match place.rig(Who::Ordinary) {
        Ok(rig) => {
            for step in features::walk(&rig) {
                list.line(4, &judge(&format!("ordinary user: {}", step.what), step.outcome, |t| (t, true)));
            }
        }
        Err(why) => list.line(4, &fault("ordinary user", why)),
    }
    for (who, name) in [(Who::Ourselves, "root"), (Who::Ordinary, "ordinary user")] {
        match place.rig(who).and_then(|rig| refused::all(&rig)) {
            Ok(all) => {
                for refusal in all {
                    let what = format!("{name}: {} is refused, nothing left", refusal.what);
                    list.line(8, &judge(&what, refusal.outcome, |t| (t, true)));
                }
            }
            Err(why) => list.line(8, &fault("refused input", why)),
        }
    }
}

fn fault(what: &str, why: String) -> Item {
    judge(what, Outcome::<()>::Err(why), |()| (String::new(), false))
}
