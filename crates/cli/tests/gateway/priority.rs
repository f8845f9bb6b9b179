//! Without permission for real time the data thread has ordinary priority, and this is reported.

use crate::figures;
use crate::lab::{Lab, out};
use rustix::process::Signal;

#[test]
fn a_priority_that_is_refused_is_said() {
    let Some(lab) = Lab::new("priority", true) else { return };
    let without = ["setpriv", "--bounding-set=-sys_nice"];
    let file = lab.file("");
    let checked = lab.start_as_output(&["check", &file], &without);
    assert!(
        checked.contains("--  priority")
            && checked.contains("ordinary priority for the data thread, real time is refused"),
        "{checked}"
    );
    assert!(out(&lab.gateway(&["check", &file])).contains("ok  priority"));
    for (under, wanted) in
        [(&without[..], "ordinary priority (real time refused"), (&[], "real-time priority 10")]
    {
        let gateway = lab.start_as(&["run", &file], under);
        let is_refused = !under.is_empty();
        assert_eq!(
            gateway.lines.contains("event=\"priority\" text=\"the data thread has ordinary"),
            is_refused,
            "{}",
            gateway.lines
        );
        let status = out(&lab.gateway(&["status"]));
        assert!(status.contains(&format!("data thread  {wanted}")), "{status}");
        assert!(figures(&lab)["priority"].as_str().is_some_and(|p| p.starts_with(wanted)));
        gateway.end(Signal::TERM);
    }
}
