//! Delay and loss from recordings: resolved values, and the errors of files and keys.

use crate::support::{GRAPH, edit, points_at};
use bentpipe_scenario::{Files, Source, load_with};

/// Recordings by name.
struct Recordings;

impl Files for Recordings {
    fn read(&self, path: &str) -> Result<String, String> {
        match path {
            "delay.txt" => Ok("20\n20\n31.5\n-1\n".to_owned()),
            "bad.txt" => Ok("20\nx\n".to_owned()),
            "lost.txt" => Ok("-1\n-1\n".to_owned()),
            "loss.txt" => Ok("0\n0.5\n".to_owned()),
            "bad-loss.txt" => Ok("0\n0.5\n1.5\n".to_owned()),
            "irtt.csv" => Ok(
                "timestamp,rtt,uplink,downlink\n1705744800000000000,50,20,30\n1705744800010000000,0,-1,0\n\
                              1705744800020000000,60,25,35\n"
                    .to_owned(),
            ),
            "bad.csv" => Ok("timestamp,rtt\n1705744800000000000,50\n1705744800010000000,fast\n".to_owned()),
            _ => Err("No such file".to_owned()),
        }
    }
}

fn with_delay(delay: &str) -> Result<bentpipe_scenario::Scenario, Box<bentpipe_scenario::Diagnostic>> {
    let text = edit(GRAPH, "delay = \"270 ms\"", delay);
    load_with(&Source::new("test.toml", text), &[], None, &Recordings)
}

#[test]
fn recordings_are_read_as_the_steps_that_they_are() {
    for (trace, steps) in [
        (
            "delay = { trace = \"delay.txt\" }",
            "delay = { steps = [[\"0 s\", \"20 ms\"], [\"20 ms\", \"31.5 ms\"]], repeat = \"40 ms\" }",
        ),
        (
            "delay = { trace = \"delay.txt\", every = \"1 s\" }",
            "delay = { steps = [[\"0 s\", \"20 ms\"], [\"2 s\", \"31.5 ms\"]], repeat = \"4 s\" }",
        ),
        (
            "delay = { trace = \"irtt.csv\" }",
            "delay = { steps = [[\"0 s\", \"25 ms\"], [\"20 ms\", \"30 ms\"]], repeat = \"30 ms\" }",
        ),
        (
            "delay = { trace = \"irtt.csv\", column = \"uplink\" }\nloss = { trace = \"irtt.csv\", column = \"uplink\" }",
            "delay = { steps = [[\"0 s\", \"20 ms\"], [\"20 ms\", \"25 ms\"]], repeat = \"30 ms\" }\n\
             loss = { steps = [[\"0 s\", 0], [\"10 ms\", 1], [\"20 ms\", 0]], repeat = \"30 ms\" }",
        ),
        (
            "delay = \"1 ms\"\nloss = { trace = \"irtt.csv\", column = \"downlink\" }",
            "delay = \"1 ms\"\nloss = { steps = [[\"0 s\", 0]], repeat = \"30 ms\" }",
        ),
        (
            "delay = \"1 ms\"\nloss = { trace = \"loss.txt\" }",
            "delay = \"1 ms\"\nloss = { steps = [[\"0 s\", 0], [\"10 ms\", 0.5]], repeat = \"20 ms\" }",
        ),
    ] {
        let edited = |line: &str| with_delay(line).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(edited(trace), edited(steps), "{trace}");
    }
    // where a single delay is needed, it is the mean over time
    let s = with_delay("delay = { trace = \"delay.txt\" }").unwrap();
    let mean = s.links.iter().find(|l| *l.name == *"r12").unwrap().forward.delay;
    assert_eq!(mean.0, (2 * 20_000_000 + 2 * 31_500_000) / 4);
}

/// Key and value, message, underlined text, label.
const WRONG: &[(&str, &str, &str, &str)] = &[
    (
        "delay = { trace = \"bad.txt\" }",
        "bad.txt:2: \"x\" is not a delay",
        "\"bad.txt\"",
        "each line holds a one-way delay in milliseconds, or -1 for a lost packet",
    ),
    ("delay = { trace = \"lost.txt\" }", "lost.txt holds no delay", "\"lost.txt\"", "all packets were lost"),
    ("delay = { trace = \"none\" }", "none cannot be read", "\"none\"", "No such file"),
    (
        "delay = { trace = \"bad.csv\" }",
        "bad.csv:3: \"fast\" is not a delay",
        "\"bad.csv\"",
        "`rtt` is in milliseconds, or -1 for a lost packet",
    ),
    (
        "delay = { trace = \"bad.csv\", column = \"up\" }",
        "bad.csv:1: there is no column `up`",
        "\"bad.csv\"",
        "its columns are rtt",
    ),
    (
        "delay = { trace = \"irtt.csv\", every = \"1 s\" }",
        "`every` does not go with a table",
        "\"1 s\"",
        "irtt.csv is a table with times of its own",
    ),
    (
        "delay = { trace = \"delay.txt\", column = \"rtt\" }",
        "`column` goes with a table",
        "\"rtt\"",
        "this file has a number in each line",
    ),
    (
        "delay = { trace = \"delay.txt\", repeat = \"1 s\" }",
        "`repeat` goes with `steps`",
        "\"1 s\"",
        "a recording starts over when it ends",
    ),
    (
        "delay = { steps = [[\"0 s\", \"1 ms\"]], every = \"1 s\" }",
        "`every` goes with `trace`",
        "\"1 s\"",
        "steps say their times",
    ),
    (
        "delay = { steps = [[\"0 s\", \"1 ms\"], [\"1 us\", \"2 ms\"]] }",
        "this step comes too soon",
        "\"1 us\"",
        "at least 0.1 ms after the one before",
    ),
    ("delay = {}", "`delay` takes exactly one of steps, trace", "{}", ""),
    (
        "delay = { satellite = \"0 deg\" }",
        "`delay` has no `stations`",
        "{ satellite = \"0 deg\" }",
        "`stations` must be given",
    ),
    (
        "delay = { satellite = \"0 deg\", repeat = \"1 s\" }",
        "`repeat` does not go with `satellite` and `stations`",
        "\"1 s\"",
        "these follow from geometry, and do not change",
    ),
    (
        "delay = \"1 ms\"\nloss = { trace = \"bad-loss.txt\" }",
        "bad-loss.txt:3: \"1.5\" is not a probability",
        "\"bad-loss.txt\"",
        "each line holds a probability of loss, from 0 to 1",
    ),
    (
        "delay = \"1 ms\"\nloss = { steps = [[\"0 s\", 2]] }",
        "`steps` is a probability between 0 and 1",
        "2",
        "greater than 1",
    ),
    (
        "delay = { steps = [[\"0 s\", \"1 ms\"]] }\norbit = { slots = { delay = \"2 ms\" } }",
        "a delay over time and slots exclude each other",
        "{ steps = [[\"0 s\", \"1 ms\"]] }",
        "the slots of an orbit say the delay, too",
    ),
];

#[test]
fn wrong_recordings() {
    for &(line, message, underlined, label) in WRONG {
        let error = with_delay(line).expect_err(line);
        let text = edit(GRAPH, "delay = \"270 ms\"", line);
        let place = text.find(line).unwrap() + line.find(underlined).unwrap();
        assert_eq!((error.message.as_str(), error.label.as_str()), (message, label), "{line}");
        let column = text[..place].rsplit('\n').next().unwrap().chars().count() + 1;
        assert_eq!(error.place.column, column, "{line}: {error}");
        assert_eq!(error.place.width, underlined.chars().count().max(1), "{line}: {error}");
    }
    let text = edit(
        GRAPH,
        "delay = \"270 ms\"",
        "delay = { steps = [[\"0 s\", \"1 ms\"]] }\nloss = { steps = [[\"0 s\", 0]] }",
    );
    for (key, value) in [("delay", "\"2 ms\""), ("loss", "0.1")] {
        let timeline = format!("\n[[timeline]]\nat = \"1 s\"\nlink = \"r12-return\"\n{key} = {value}\n");
        let why = format!("its own `{key}` changes over time");
        points_at(
            &format!("{text}{timeline}"),
            &format!("`{key}` has no effect on `r12-return`"),
            value,
            &why,
        );
    }
}
