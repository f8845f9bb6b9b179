//! Figure files: contents of valid ones, and the text of the errors of invalid ones.

use bentpipe_scenario::Source;
use bentpipe_scenario::figure_file::{
    Accept, Claim, Cost, FigureFile, Over, Scale, ScenarioRef, Tolerance, load, reference, schema,
};

const LEAST: &str = "schema = 1\ntitle = \"t\"\nscenario = \"window\"\n[[curves]]\nname = \"a\"\n";
const CURVES: &str = "schema = 1\ntitle = \"t\"\nscenario = \"window\"\n[x]\nparameter = \"loss\"\nvalues = [\"1e-3\", 0.1]\n\
    [[curves]]\nname = \"a\"\n[[curves]]\nname = \"b\"\nset = { tcp = \"sack\", flows = 2 }\n";

fn read(text: &str) -> Result<FigureFile, String> {
    load(&Source::new("f.toml", text)).map_err(|d| format!("error: {d}"))
}

fn loads(text: &str) -> FigureFile {
    read(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[track_caller]
fn refuses(more: &str, wanted: &str) {
    let error = read(&format!("{CURVES}{more}")).unwrap_err();
    assert_eq!(error.trim(), wanted.trim_matches('\n'), "\n{error}");
}

#[test]
fn the_least_file_has_every_default() {
    let file = loads(LEAST);
    assert_eq!((file.seeds, file.cost, file.scale), (5, Cost::Normal, Scale::Linear));
    assert!(file.across.is_none() && file.quick.is_none() && file.paper.is_none());
    let [curve] = &file.curves[..] else { panic!("{file:?}") };
    assert_eq!((curve.name.value.as_str(), curve.measure.value.as_str(), curve.run), ("a", "goodput", true));
    assert!(
        matches!(&file.scenario, ScenarioRef::Named(name) if name.value == "window" && name.place.line == 3)
    );
}

#[test]
fn values_names_and_units_are_resolved() {
    let file = loads(&format!(
        "{CURVES}[[references]]\ncurve = \"b\"\nunit = \"Mbit/s\"\npoints = [[\"1 %\", 9.5], [0.001, \"900 kbit/s\"]]\n\
         source = \"read off\"\n\
         [[statements]]\ntext = \"s\"\ncurve = \"b\"\nover = \"a\"\nat = [\"0.1\", 0.001]\nexpect = 2\ntolerance = \"5 %\"\n\
         [[statements]]\ntext = \"o\"\norder = [\"b\", \"a\"]\ntolerance = \"0 %\"\n\
         [[statements]]\ntext = \"m\"\ncurve = \"a\"\nbetween = [\"1 Mbit/s\", \"2 Mbit/s\"]\n"
    ));
    let across = file.across.as_ref().unwrap();
    assert_eq!((across.scale, &across.positions[..]), (Scale::Log, &[1e-3, 0.1][..]));
    assert_eq!(across.values[1].place.column, 19);
    let sets: Vec<(&str, &str)> =
        file.curves[1].sets.iter().map(|s| (s.name.value.as_str(), s.value.value.as_str())).collect();
    assert_eq!(sets, [("tcp", "sack"), ("flows", "2")]);
    let points = file.references[0].points.iter();
    let printed: Vec<(f64, &str, f64)> =
        points.map(|p| (p.place, p.x.as_str(), p.value.value.amount.value)).collect();
    assert_eq!(printed, [(0.01, "1 %", 9.5e6), (1e-3, "1e-3", 9e5)], "an equal value of x gives its text");
    let [ratio, order, between] = &file.statements[..] else { panic!("{file:?}") };
    assert_eq!((&ratio.at[..], &order.at[..]), (&[1, 0][..], &[0, 1][..]));
    let Claim::Value { curve: 1, over: Some(Over { curve: 0, at: None }), accept } = &ratio.claim else {
        panic!("{ratio:?}")
    };
    let Accept::Near { expect, tolerance } = &**accept else { panic!("{ratio:?}") };
    assert_eq!((expect.value.text.as_str(), tolerance.value), ("2", Tolerance::Share(0.05)));
    assert_eq!(order.claim, Claim::Order { curves: vec![1, 0], tolerance: 0.0 });
    let Claim::Value { accept, .. } = &between.claim else { panic!("{between:?}") };
    assert!(matches!(**accept, Accept::Range { low: Some(_), high: Some(_), expect: None }), "{between:?}");
}

/// Values that are not numbers stand side by side; points and statements name them.
#[test]
fn rows_and_words_have_places_too() {
    let text = CURVES.replace("[\"1e-3\", 0.1]", "[\"reno\", \"sack\"]");
    let points = "[[references]]\npoints = [[\"sack\", 3]]\nsource = \"s\"\n";
    let file = loads(&format!("{text}{points}"));
    let across = file.across.as_ref().unwrap();
    assert_eq!(
        (across.dimension, across.scale, &across.positions[..]),
        (None, Scale::Linear, &[1.0, 2.0][..])
    );
    let table = loads(&format!("{LEAST}{}", points.replace("sack", "a")));
    let [word, row] = [&file, &table].map(|f| &f.references[0].points[0]);
    assert_eq!((word.place.to_string(), word.x.as_str()), ("2".to_owned(), "sack"));
    assert_eq!((row.place.to_string(), row.x.as_str()), ("1".to_owned(), "a"));
}

#[test]
fn a_scenario_in_the_file_keeps_its_places() {
    let text =
        "schema = 1\ntitle = \"t\"\nscenario = '''\nschema = 1\nbad = 3\n'''\n[[curves]]\nname = \"a\"\n";
    let ScenarioRef::Inline(scenario) = loads(text).scenario else { panic!("it is inline") };
    let error = bentpipe_scenario::load(&scenario, &[], None).unwrap_err();
    assert_eq!(
        (error.place.name.as_str(), error.place.line, error.place.column),
        ("f.toml", 5, 1),
        "{error}"
    );
}

#[test]
fn what_cannot_be_checked_is_refused_at_its_place() {
    refuses(
        "[[statements]]\ntext = \"s\"\ncurve = \"a\"\nexpect = \"1 Mbit/s\"\n",
        r#"
error: the statement has no `tolerance`
  --> f.toml:12:1
   |
12 | [[statements]]
   | ^^^^^^^^^^^^^^ without one nothing is checked
   = help: write tolerance = "5 %", or an amount
"#,
    );
    refuses(
        "[[statements]]\ntext = \"s\"\ncurve = \"a\"\nexpect = \"1 Mbit/s\"\ntolerance = \"none\"\n",
        r#"
error: `tolerance` cannot be "none"
  --> f.toml:16:13
   |
16 | tolerance = "none"
   |             ^^^^^^ without a tolerance nothing is checked
   = help: write a share, as in "5 %", or an amount with its unit, as in "0.1 Mbit/s"
"#,
    );
    refuses(
        "[[statements]]\ntext = \"s\"\norder = [\"a\", \"c\"]\ntolerance = \"0 %\"\n",
        r#"
error: there is no curve `c`
  --> f.toml:14:15
   |
14 | order = ["a", "c"]
   |               ^^^ did you mean `a`?
   = help: curves: a, b
"#,
    );
    refuses(
        "[[references]]\npoints = [[0.01, 3]]\n",
        r"
error: [[references]] has no `source`
  --> f.toml:12:1
   |
12 | [[references]]
   | ^^^^^^^^^^^^^^ `source` must be given
",
    );
    refuses(
        "[[statements]]\ntext = \"s\"\ncurve = \"a\"\nat = \"1e-4\"\nexpect = \"1 Mbit/s\"\ntolerance = \"5 %\"\n",
        r#"
error: there is no value `1e-4`
  --> f.toml:15:6
   |
15 | at = "1e-4"
   |      ^^^^^^ did you mean `1e-3`?
   = help: values: 1e-3, 0.1
   = help: these are the values of `[x]`
"#,
    );
}

#[test]
fn statements_answer_items_and_know_why_they_differ() {
    let file = loads(&format!(
        "paper = \"000\"\nitem = [3, 4]\n{CURVES}[[statements]]\ntext = \"s\"\nitem = 5\ncurve = \"a\"\nat_least = \"1 Mbit/s\"\n\
         [[statements]]\ntext = \"t\"\ncurve = \"a\"\nat_most = 2\nexpect = 1\ndiffers = \"why\"\nturn = {{ tcp = \"sack\", loss = 0 }}\n"
    ));
    let [first, second] = &file.statements[..] else { panic!("{file:?}") };
    assert_eq!((&file.items[..], &first.items[..], &second.items[..]), (&[3, 4][..], &[5][..], &[3, 4][..]));
    let Claim::Value { accept, .. } = &first.claim else { panic!("{first:?}") };
    assert!(
        matches!(&**accept, Accept::Range { low: Some(low), high: None, expect: None } if low.value.text == "1 Mbit/s")
    );
    let Claim::Value { accept, .. } = &second.claim else { panic!("{second:?}") };
    assert!(matches!(&**accept, Accept::Range { low: None, high: Some(_), expect: Some(_) }));
    assert!(first.known.is_none());
    let known = second.known.as_ref().unwrap();
    let turn: Vec<(&str, &str)> =
        known.turn.iter().map(|s| (s.name.value.as_str(), s.value.value.as_str())).collect();
    assert_eq!((known.why.as_str(), &turn[..]), ("why", &[("tcp", "sack"), ("loss", "0")][..]));
}

#[test]
fn trends_and_ratios_to_another_x_know_their_points() {
    let file = loads(&format!(
        "{CURVES}[[statements]]\ntext = \"s\"\ncurve = \"a\"\nfalls = true\nat = [0.1, \"1e-3\"]\ntolerance = \"0 %\"\n\
         [[statements]]\ntext = \"t\"\ncurve = \"a\"\nat = 0.1\nover_at = \"1e-3\"\nat_least = 2\n\
         [[statements]]\ntext = \"u\"\ncurve = \"a\"\nat = 0.1\nover = \"b\"\nover_at = 0.1\nat_least = 2\n"
    ));
    let [trend, own, other] = &file.statements[..] else { panic!("{file:?}") };
    assert_eq!(trend.claim, Claim::Trend { curve: 0, rises: false, tolerance: 0.0 });
    assert_eq!(trend.points(), [(0, 0), (0, 1)], "in the order of x");
    assert_eq!(own.points(), [(0, 1), (0, 0)]);
    assert_eq!(other.points(), [(0, 1), (1, 1)]);
}

#[test]
fn time_is_cut_into_steps() {
    let time = |more: &str| CURVES.replace("parameter = \"loss\"\nvalues = [\"1e-3\", 0.1]", more);
    let file = loads(&format!(
        "{}[[statements]]\ntext = \"s\"\ncurve = \"a\"\nat = \"180 s\"\nexpect = 1\ntolerance = \"1 %\"\n",
        time("time = \"1 min\"\nfrom = \"2 min\"\nto = \"300 s\"")
    ));
    let across = file.across.as_ref().unwrap();
    assert_eq!(
        (across.name(), &across.positions[..], across.scale),
        ("time", &[180.0, 240.0, 300.0][..], Scale::Linear)
    );
    assert_eq!(file.statements[0].at, [0]);
    for (more, says) in [
        ("", "[x] has no `parameter`"),
        ("parameter = \"loss\"", "[x] has no `values`"),
        ("time = \"1 s\"", "[x] has no `to`"),
        ("time = \"0 s\"\nto = \"1 s\"", "`time` must be more than zero"),
        ("time = \"1 s\"\nto = \"1.5 s\"", "`to` is not at the end of a step"),
        ("time = \"1 s\"\nfrom = \"2 s\"\nto = \"2 s\"", "`to` is not at the end of a step"),
        ("time = \"1 s\"\nfrom = \"0.5 s\"\nto = \"2.5 s\"", "`from` is not a multiple of `time`"),
        ("time = \"1 ms\"\nto = \"2 s\"", "steps"),
        ("time = \"1 s\"\nto = \"2 s\"\nparameter = \"loss\"", "a parameter or `time`, not both"),
        ("parameter = \"loss\"\nvalues = 1\nto = \"2 s\"", "`to` has no effect without `time`"),
    ] {
        let refused = read(&time(more)).unwrap_err();
        assert!(refused.contains(says), "{says}: {refused}");
    }
}

#[test]
fn a_known_difference_needs_a_reason_and_what_turns_it() {
    refuses(
        "[[statements]]\ntext = \"s\"\ncurve = \"a\"\nat_least = 1\ndiffers = \"it does\"\n",
        r#"
error: `differs` has no `turn`
  --> f.toml:16:11
   |
16 | differs = "it does"
   |           ^^^^^^^^^ nothing says what turns it
   = help: write differs = "why" and turn = { name = value }, with which the statement holds
"#,
    );
}

#[test]
fn errors_say_what_to_write() {
    let statement = |rest: &str| format!("{CURVES}[[statements]]\ntext = \"s\"\n{rest}\n");
    let with = |from: &str, to: &str| CURVES.replace(from, to);
    for (text, says) in [
        (with("values = [\"1e-3\", 0.1]", "values = []"), "`values` is empty"),
        (with("values = [\"1e-3\", 0.1]\n", ""), "`values` must be given"),
        (with("0.1]", "1e-3]"), "has 0.001 twice"),
        (with("0.1]", "0.1]\nscale = \"logarithmic\""), "`scale` cannot be"),
        (with("0.1]", "0]\nscale = \"log\""), "these values have no logarithm"),
        (with("name = \"b\"", "name = \"a\""), "two curves are called `a`"),
        (with("tcp = \"sack\"", "tcp = [1]"), "`tcp` is a list of single values"),
        (with("\"window\"", "\" \""), "`scenario` names no scenario"),
        (statement(""), "the statement says nothing that can be checked"),
        (statement("curve = \"a\"\norder = [\"a\", \"b\"]"), "`curve` or `order`, not both"),
        (statement("curve = \"a\"\ntolerance = \"5 %\""), "the statement expects nothing"),
        (
            statement("order = [\"a\", \"b\"]"),
            "\"0 %\", or the share by which a curve may be below the one after it",
        ),
        (statement("order = [\"a\", \"a\"]\ntolerance = \"0 %\""), "a curve is not above itself"),
        (statement("order = [\"a\"]\ntolerance = \"0 %\""), "an order has at least two curves"),
        (
            statement("order = [\"a\", \"b\"]\ntolerance = \"1 Mbit/s\""),
            "the tolerance of an order is a share",
        ),
        (statement("order = [\"a\", \"b\"]\nover = \"a\""), "`over` has no effect beside `order`"),
        (statement("curve = \"a\"\nbetween = [\"2 s\", \"1 s\"]"), "ends below its beginning"),
        (statement("curve = \"a\"\nbetween = [\"2 s\"]"), "write [lowest, highest]"),
        (
            statement("curve = \"a\"\nexpect = \"1 s\"\ntolerance = \"1 kB\""),
            "`tolerance` does not fit `expect`",
        ),
        (statement("curve = \"a\"\nexpect = \"fast\""), "`fast` is not a number with a unit"),
        (
            format!(
                "{LEAST}[[statements]]\ntext = \"s\"\ncurve = \"a\"\nat = 1\nexpect = 1\ntolerance = \"5 %\"\n"
            ),
            "there is no `[x]`",
        ),
        (
            format!("{CURVES}[[references]]\nunit = \"parsec\"\npoints = [[1, 1]]\nsource = \"s\"\n"),
            "unknown unit `parsec`",
        ),
        (
            format!("{CURVES}[[references]]\npoints = [[\"1 s\", 1]]\nsource = \"s\"\n"),
            "this is no value of `[x]`",
        ),
        (
            format!("{CURVES}[[references]]\npoints = [[0, 1]]\nsource = \"s\"\n"),
            "a logarithmic axis has no place",
        ),
        (format!("{CURVES}[[references]]\npoints = [[1, 1]]\nsource = \"\"\n"), "`source` is empty"),
        (format!("{CURVES}[quick]\nseeds = 1\n"), "has no `tolerance`"),
        (format!("{CURVES}[quick]\ntolerance = \"1 s\"\n"), "the tolerance of `quick` is a share"),
        (format!("{CURVES}[quick]\ntolerance = \"100 %\"\n"), "the tolerance of `quick` is below 100 %"),
        (format!("{CURVES}[quick]\ntolerance = \"-1 %\"\n"), "`tolerance` is negative"),
        (statement("curve = \"a\"\nexpect = 1\ntolerance = \"-5 %\""), "write how far a mean may be"),
        (statement("order = [\"a\", \"b\"]\ntolerance = \"-5 %\""), "f.toml:15:13"),
    ] {
        let refused = read(&text).unwrap_err();
        assert!(refused.contains(says), "{says}: {refused}");
    }
}

/// A statement of a reference is one for each of its points that a curve has.
#[test]
fn what_a_source_prints_is_expected_point_by_point() {
    let references = "[[references]]\nname = \"r\"\ncurve = \"a\"\nunit = \"Mbit/s\"\nsource = \"s\"\n\
                      points = [[0.001, 2], [0.01, 9], [0.1, 3]]\n";
    let with =
        |rest: &str| format!("{CURVES}{references}[[statements]]\ntext = \"s\"\nreference = \"r\"\n{rest}\n");
    let file = loads(&with("tolerance = \"5 %\""));
    let [first, second] = &file.statements[..] else { panic!("{file:?}") };
    assert_eq!((&first.at[..], &second.at[..]), (&[0][..], &[1][..]), "0.01 is no value of x");
    let Claim::Value { curve: 0, over: None, accept } = &second.claim else { panic!("{second:?}") };
    assert_eq!(accept.expect().unwrap().text, "3 Mbit/s");
    assert_eq!(loads(&with("at = 0.1\ntolerance = \"5 %\"")).statements.len(), 1);
    for (text, says) in [
        (with(""), "the statement has no `tolerance`"),
        (with("tolerance = \"1 s\""), "`tolerance` does not fit `expect`"),
        (with("expect = 1"), "`expect` has no effect beside `reference`"),
        (with("falls = true"), "a reference has neither order nor trend"),
        (with("curve = \"b\"\ntolerance = \"5 %\""), "no point of the reference is that of a curve"),
        (
            with("tolerance = \"5 %\"").replace("reference = \"r\"", "reference = \"q\""),
            "there is no reference `q`",
        ),
    ] {
        let refused = read(&text).unwrap_err();
        assert!(refused.contains(says), "{says}: {refused}");
    }
    let points = vec!["[0.1, 1]"; 998].join(", ");
    let many = with("tolerance = \"5 %\"").replace("[0.001, 2]", &points);
    let statement = "\n[[statements]]\ntext = \"s\"\nreference = \"r\"\ntolerance = \"5 %\"\n";
    let refused = read(&format!("{many}{}", statement.repeat(2))).unwrap_err();
    assert!(refused.contains("there are too many points in statements"), "{refused}");
}

#[test]
fn what_a_statement_cannot_have_together_is_refused() {
    let statement = |rest: &str| format!("{CURVES}[[statements]]\ntext = \"s\"\n{rest}\n");
    let with = |from: &str, to: &str| CURVES.replace(from, to);
    for (text, says) in [
        (statement("order = [\"a\", \"b\"]\nfalls = true"), "an order has no trend"),
        (statement("curve = \"a\"\nfalls = true\nover = \"b\""), "`over` has no effect beside `falls`"),
        (statement("curve = \"a\"\nfalls = true\nrises = true"), "a mean does not rise and fall"),
        (statement("curve = \"a\"\nfalls = true"), "or the share by which a step may go the other way"),
        (
            statement("curve = \"a\"\nfalls = true\nat = 0.1\ntolerance = \"0 %\""),
            "one value of x has no trend",
        ),
        (statement("curve = \"a\"\nover_at = 0.1\nat_least = 1"), "`over_at` has no `at`"),
        (
            statement("curve = \"a\"\nat = 0.1\nover_at = 0.1\nat_least = 1"),
            "a mean is not compared with itself",
        ),
        (
            statement("curve = \"a\"\nat_least = 1\nat_most = 2"),
            "for both ends write between = [lowest, highest]",
        ),
        (
            statement("curve = \"a\"\nexpect = 1\nat_least = 1\ntolerance = \"1 %\""),
            "`tolerance` or `at_least`, not both",
        ),
        (statement("curve = \"a\"\nat_least = 1\ndiffers = \" \"\nturn = { a = 1 }"), "`differs` is empty"),
        (statement("curve = \"a\"\nat_least = 1\ndiffers = \"x\"\nturn = {}"), "`turn` is empty"),
        (statement("curve = \"a\"\nat_least = 1\nturn = { a = 1 }"), "`turn` has no `differs`"),
        (
            with("name = \"a\"", "name = \"a\"\nmeasure = \"goodput\"\nformula = \"f\""),
            "`measure` has no effect beside `formula`",
        ),
        (
            with("name = \"a\"", "name = \"a\"\nrun = true\nformula = \"f\""),
            "`run` has no effect beside `formula`",
        ),
    ] {
        let refused = read(&text).unwrap_err();
        assert!(refused.contains(says), "{says}: {refused}");
    }
}

#[test]
fn the_example_of_the_manual_is_read() {
    let (_, example) =
        reference().split_once("```toml\n").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    let file = loads(example.split("```").next().unwrap());
    assert_eq!((file.curves.len(), file.references.len(), file.statements.len()), (2, 1, 2));
}

#[test]
fn schema_and_reference_are_up_to_date() {
    let committed = include_str!("../../../../schema/figure.schema.json");
    assert!(schema() == committed, "run: bentpipe generate figure-schema > schema/figure.schema.json");
    let committed = include_str!("../../../../docs/src/figures.md");
    assert!(reference() == committed, "run: bentpipe generate figure-reference > docs/src/figures.md");
}
