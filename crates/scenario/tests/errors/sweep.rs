//! Invalid sweeps: the full text of each error. Valid sweeps: their contents.

use crate::support::{DUMBBELL, loads, refuses};
use bentpipe_scenario::{Precision, Source, SweepSpec, load, sweep};

fn with(table: &str) -> String {
    format!("{DUMBBELL}\n[sweep]\n{table}\n")
}

fn read(text: &str) -> Option<SweepSpec> {
    sweep(&Source::new("test.toml", text)).unwrap_or_else(|error| panic!("{error}"))
}

/// Checks that both the single run and the sweep refuse the table with the same error.
#[track_caller]
fn refused(table: &str, picture: &str) {
    let text = with(table);
    refuses(&text, &[], picture);
    let error = sweep(&Source::new("test.toml", text)).expect_err("this is refused");
    assert_eq!(format!("error: {error}"), picture.trim_matches('\n'));
}

#[test]
fn a_sweep_is_read_and_a_single_run_is_the_same_without_it() {
    assert_eq!(read(DUMBBELL), None);
    let text = with("axes = { loss = [0, 1e-7, 0.5], window = [\"10 segments\", \"1 MB\"] }");
    let axes = vec![
        ("loss".to_owned(), vec!["0".to_owned(), "1e-7".to_owned(), "0.5".to_owned()]),
        ("window".to_owned(), vec!["10 segments".to_owned(), "1 MB".to_owned()]),
    ];
    let plain = SweepSpec { axes, seeds: 5, measure: vec!["goodput".to_owned()], precision: None };
    assert_eq!(read(&text).as_ref(), Some(&plain));
    assert_eq!(loads(&text, &[]), loads(DUMBBELL, &[]));
    // `--set` must accept every value.
    for (name, values) in &plain.axes {
        for value in values {
            let set = [(name.clone(), value.clone())];
            assert!(load(&Source::new("test.toml", text.as_str()), &set, None).is_ok(), "{name}={value}");
        }
    }
    let text = with(
        "axes = { loss = [1e-3] }\nseeds = 60\nmeasure = [\"goodput[flow1]\", \"queue_peak[bottleneck]\"]\nprecision = { of = \"goodput[flow1]\", relative = 0.05 }",
    );
    let precision = Precision { of: "goodput[flow1]".into(), relative: 0.05, max_seeds: 60 };
    assert_eq!(read(&text).and_then(|s| s.precision), Some(precision));
}

#[test]
fn an_axis_that_is_no_parameter() {
    refused(
        "axes = { los = [1e-3] }",
        "
error: there is no parameter `los`
  --> test.toml:29:10
   |
29 | axes = { los = [1e-3] }
   |          ^^^ did you mean `loss`?
   = help: parameters: loss, window
",
    );
}

#[test]
fn axes_of_the_wrong_shape() {
    for (table, line) in [
        ("axes = [1]", "error: `axes` is a table"),
        ("axes = {}", "error: this is not a set of axes"),
        ("axes = { loss = 1 }", "error: `loss` is a list of values"),
        ("axes = { loss = [] }", "error: `loss` is empty"),
        ("axes = { loss = [[1]] }", "error: `loss` is a list of single values"),
        ("axes = { loss = [nan] }", "error: this number must be finite"),
        ("axes = { loss = [1, 1] }", "error: axis `loss` has this value twice"),
        ("axes = { loss = [\"$window\"] }", "error: the value of an axis cannot refer to a parameter"),
        ("axes = { loss = [1] }\nseeds = 0", "error: `seeds` is too small"),
        ("axes = { loss = [1] }\nmeasure = []", "error: `measure` is empty"),
        ("axes = { loss = [1] }\nmeasure = \"goodput\"", "error: `measure` is a list of texts"),
        ("axes = { loss = [1] }\nmeasure = [\"a\", \"a\"]", "error: `measure` says this twice"),
        ("axes = { loss = [1] }\nmeasure = [\" \"]", "error: `measure` holds an empty text"),
        ("seeds = 1", "error: [sweep] has no `axes`"),
        ("axes = { loss = [1] }\nseed = 1", "error: unknown key `seed` in [sweep]"),
    ] {
        let error = sweep(&Source::new("test.toml", with(table))).unwrap_err();
        assert!(format!("error: {error}").starts_with(line), "{table}: {error}");
        assert!(error.place.line >= 28, "{error}");
    }
}

#[test]
fn a_precision_of_what_is_not_measured() {
    refused(
        "axes = { loss = [1] }\nprecision = { of = \"goodputs\", relative = 0.1 }",
        "
error: `goodputs` is not measured
  --> test.toml:30:20
   |
30 | precision = { of = \"goodputs\", relative = 0.1 }
   |                    ^^^^^^^^^^ did you mean `goodput`?
   = help: measured are goodput
",
    );
}

#[test]
fn a_precision_out_of_range() {
    refused(
        "axes = { loss = [1] }\nprecision = { of = \"goodput\", relative = 5 }",
        "
error: `relative` is out of range
  --> test.toml:30:42
   |
30 | precision = { of = \"goodput\", relative = 5 }
   |                                          ^ more than 0 and less than 1
",
    );
    refused(
        "axes = { loss = [1] }\nprecision = { of = \"goodput\", relative = 0.5, max_seeds = 2 }",
        "
error: `max_seeds` is less than `seeds`
  --> test.toml:30:59
   |
30 | precision = { of = \"goodput\", relative = 0.5, max_seeds = 2 }
   |                                                           ^ that is 5
",
    );
}

#[test]
fn too_many_combinations() {
    let many: Vec<String> = (0..1000).map(|n| n.to_string()).collect();
    let many = many.join(", ");
    let text = format!("{DUMBBELL}\n[sweep]\n[sweep.axes]\nloss = [{many}]\nwindow = [{many}, 1000]\n");
    let error = sweep(&Source::new("test.toml", text)).unwrap_err();
    assert_eq!(error.message, "`window` is too long");
    let text = format!("{DUMBBELL}\n[sweep.axes]\nloss = [{many}]\nwindow = [{many}]\n")
        .replace("[parameters]", "[parameters]\nx = 1");
    let text = format!("{text}x = [1, 2]\n");
    let error = sweep(&Source::new("test.toml", text)).unwrap_err();
    assert_eq!(
        (error.message.as_str(), error.label.as_str()),
        ("there are too many combinations", "these are 2000000, the limit is 1000000")
    );
}
