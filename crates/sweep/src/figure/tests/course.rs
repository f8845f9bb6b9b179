//! Figures over time.

use super::{SCENARIO, folder, make, read};
use std::fs;

const STEPS: &str = r#"
[x]
time = "500 ms"
to = "2 s"

[[curves]]
name = "goodput"
measure = "goodput[flow]"

[[curves]]
name = "carried"
measure = "carried[bottleneck]"

[[statements]]
text = "the goodput is below the link's rate"
curve = "goodput"
at_most = "10 Mbit/s"

[[statements]]
text = "slow start doubles it"
curve = "goodput"
at = "1 s"
over_at = "500 ms"
at_least = 1.5
"#;

fn values(curve: &str, of: &str) -> Vec<f64> {
    let points = read(of, "points.csv");
    let rows = points.lines().filter(|row| row.starts_with(curve)).map(|row| row.split(',').nth(3).unwrap());
    rows.map(|v| v.parse().unwrap()).collect()
}

/// Seeds make no difference without loss, so means are those of one run.
#[test]
fn means_of_steps_add_up_to_the_whole_run() {
    let made = make(&format!("{SCENARIO}{STEPS}"), "course", false).unwrap();
    assert_eq!(made.runs.executed, 2, "both curves are from the same runs");
    assert!(!made.differs(), "{}", made.to_text());
    let whole = make(&format!("{SCENARIO}[[curves]]\nname = \"all\"\n"), "course-whole", false).unwrap();
    assert_eq!(whole.runs.executed, 2);
    let (steps, all) = (values("goodput,", "course"), values("all,", "course-whole"));
    assert_eq!(steps.len(), 4);
    let mean = steps.iter().sum::<f64>() / 4.0;
    assert!((mean / all[0] - 1.0).abs() < 1e-9, "{steps:?} {all:?}");
    let carried = values("carried,", "course");
    assert!(carried.iter().zip(&steps).all(|(link, flow)| link > flow), "{carried:?} {steps:?}");
    for name in ["course", "course-whole"] {
        fs::remove_dir_all(
            std::env::temp_dir().join(format!("bentpipe-figure-{name}-{}", std::process::id())),
        )
        .unwrap();
    }
}

#[test]
fn a_resumed_figure_over_time_has_the_same_bytes() {
    let text = format!("{SCENARIO}{STEPS}").replace("to = \"2 s\"", "from = \"1 s\"\nto = \"2 s\"");
    let text = text.split("[[statements]]").next().unwrap().to_owned();
    let job = |f: &dyn Fn(&super::FigureJob<'_>)| super::with_job(&text, false, f).unwrap();
    let out = folder("course-resumed");
    let make = |executed: usize| {
        job(&|job| assert_eq!(super::figure(job, &out, &|_| {}).unwrap().runs.executed, executed));
        ["points.csv", "index.html", "figure.svg"].map(|name| fs::read_to_string(out.join(name)).unwrap())
    };
    let first = make(2);
    assert_eq!(first[0].lines().count(), 5, "two steps of two curves");
    let one = fs::read_dir(out.join("runs")).unwrap().next().unwrap().unwrap().path();
    fs::remove_file(one).unwrap();
    assert_eq!(make(1), first);
    assert_eq!(make(0), first);
    fs::remove_dir_all(out).unwrap();
}

#[test]
fn what_a_run_has_no_course_of_is_refused() {
    let text = format!("{SCENARIO}{STEPS}");
    for (from, to, says) in [
        ("goodput[flow]", "goodputt", "did you mean `goodput`?"),
        ("goodput[flow]", "finished", "unknown metric `finished`"),
        ("goodput[flow]", "goodput[flaw]", "the run has no flow `flaw`: did you mean `flow`?"),
        ("goodput[flow]", "cwnd[flow", "the `[` is not closed by `]`"),
        ("goodput[flow]", "cwnd[flow].x", "write it as name or name[flow, link or instrument]"),
        ("carried[bottleneck]", "queue[bottleneck]", "all curves of a figure have the same unit"),
        (
            "time = \"500 ms\"\nto = \"2 s\"",
            "time = \"0.9 ms\"\nto = \"0.9 s\"",
            "a step is too short for runs of 2 s",
        ),
    ] {
        refused(&text.replace(from, to), says);
    }
    let of_instrument = text.replace("goodput[flow]", "measured_ber").replace("carried[bottleneck]", "ber");
    refused(&of_instrument, "the run has no instrument `*`\n");
}

fn refused(text: &str, says: &str) {
    let text = text.split("[[statements]]").next().unwrap();
    let error = make(text, "course-refused", false).unwrap_err().to_string();
    assert!(error.contains(says) && error.contains("f.toml:"), "{says}:\n{error}");
}
