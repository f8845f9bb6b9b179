use super::*;
use serde_json::json;

fn report() -> Value {
    json!({
        "simulated_s": 9.0, "total": { "jain": null },
        "flows": [
            { "name": "x1", "goodput_bps": 1e6, "finished_s": 3.0, "rtt_ms": { "p50": 10.0 },
              "limited_by": { "application": 0.25 } },
            { "name": "x2", "goodput_bps": 2e6, "finished_s": null, "rtt_ms": { "p50": null },
              "limited_by": { "application": 0.75 } },
            { "name": "y1", "goodput_bps": 4e6, "finished_s": 5.0, "rtt_ms": { "p50": 30.0 },
              "limited_by": { "application": 0.5 } },
        ],
        "links": [{ "name": "b", "utilisation": 0.5, "drops": { "queue_full": 3, "bit_error": 4 } }],
    })
}

fn value(text: &str) -> Option<f64> {
    Metric::parse(text).unwrap().of_json(&report()).unwrap()
}

#[test]
fn figures_are_read_and_put_together() {
    for (text, wanted) in [
        ("goodput", Some(7e6)),
        ("goodput[x1]", Some(1e6)),
        ("goodput[x*]", Some(3e6)),
        ("finished", None),
        ("finished[y1]", Some(5.0)),
        ("rtt_p50", Some(20.0)),
        ("rtt_p50[x2]", None),
        ("jain", None),
        ("simulated", Some(9.0)),
        ("drops[b]", Some(7.0)),
        ("drops.bit_error", Some(4.0)),
        ("drops[b].burst", Some(0.0)),
        ("limited_by[x*].application", Some(0.5)),
        ("lost", None),
    ] {
        assert_eq!(value(text), wanted, "{text}");
    }
}

#[test]
fn slips_are_answered() {
    for (text, words) in [
        ("godput", "did you mean `goodput`?"),
        ("", "help: metrics: goodput"),
        ("goodput[x1", "not closed"),
        ("goodput[]", "name something"),
        ("jain[x1]", "whole run"),
        ("goodput.x", "write it as"),
        ("limited_by", "name the cause"),
    ] {
        let error = Metric::parse(text).unwrap_err().to_string();
        assert!(error.contains(words), "{text}: {error}");
    }
    for (text, words) in [
        ("goodput[z]", "no flow `z`"),
        ("drops[b].rain", "no cause `rain`\nhelp: it has queue_full, "),
        ("limited_by.windo", "no cause"),
    ] {
        let error = Metric::parse(text).unwrap().of_json(&report()).unwrap_err().to_string();
        assert!(error.contains(words), "{text}: {error}");
    }
}

/// Before any run: names are the scenario's.
#[test]
fn names_that_no_run_will_have_are_refused() {
    let text = include_str!("../../../scenarios/fairness.toml");
    let source = bentpipe_scenario::Source::new("fairness.toml", text);
    let scenario = bentpipe_scenario::load(&source, &[], None).unwrap();
    let check = |text: &str| Metric::parse(text).unwrap().check(&scenario).map_err(|e| e.to_string());
    for good in
        ["goodput", "jain", "goodput[x1]", "goodput[y*]", "drops[shared]", "drops[shared-return].burst"]
    {
        assert_eq!(check(good), Ok(()), "{good}");
    }
    let report = report_of(&scenario);
    for (text, words) in [
        ("goodput[x9]", "no flow `x9`"),
        ("goodput[z*]", "no flow `z*`\nhelp: it has x1, "),
        ("drops[share]", "no link `share`: did you mean `shared`?"),
        ("drops[shared].ful", "no cause `ful`"),
        ("limited_by[x1].windows", "no cause `windows`\nhelp: it has handshake, "),
    ] {
        let error = check(text).unwrap_err();
        assert!(error.contains(words), "{text}: {error}");
        assert_eq!(Metric::parse(text).unwrap().of(&report).map_err(|e| e.to_string()), Err(error), "{text}");
    }
}

/// The report of a moment of it: it has the same names.
fn report_of(scenario: &Scenario) -> Report {
    crate::run(&Scenario { duration: bentpipe_base::Duration::from_millis(1), ..scenario.clone() })
}

#[test]
fn columns_and_labels_say_the_unit() {
    let metric = Metric::parse("goodput[x1]").unwrap();
    assert_eq!(
        (metric.column().as_str(), metric.label().as_str()),
        ("goodput[x1]_bps", "goodput of x1, bit/s")
    );
}

/// The documentation's table names every metric.
#[test]
fn the_documentation_has_them_all() {
    let page = include_str!("../../../docs/src/sweeps.md");
    for row in METRICS {
        let line = format!("| `{}` | {} |", row.name, row.words);
        assert!(page.contains(&line), "docs/src/sweeps.md lacks: {line}");
    }
}
