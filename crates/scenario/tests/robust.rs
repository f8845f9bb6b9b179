//! `load` returns for any input either a scenario that can be written and loaded again, or a diagnostic.

mod support;

use bentpipe_scenario::figure_file::{self, FigureFile, ScenarioRef};
use bentpipe_scenario::{Diagnostic, Files, Source, load, load_with, to_toml};
use proptest::prelude::*;
use support::{DUMBBELL, GRAPH, RICH, SATELLITE, edit, refuses};

const BASES: [&str; 6] = [
    RICH,
    SATELLITE,
    DUMBBELL,
    GRAPH,
    include_str!("../../../scenarios/demo.toml"),
    include_str!("../../../scenarios/sharing.toml"),
];

const FIGURES: [&str; 3] = [
    include_str!("../../../papers/000/figure-3.toml"),
    include_str!("../../../papers/003/figure-5.toml"),
    include_str!("../../../papers/004/table-2.toml"),
];

/// Tokens with a meaning in scenario files.
const PIECES: [&str; 40] = [
    "\"",
    "'",
    "\"\"\"",
    "[",
    "]",
    "[[",
    "]]",
    "{",
    "}",
    "=",
    ".",
    ",",
    "#",
    "\n",
    "\r\n",
    "\t",
    "$",
    "$loss",
    "\"$loss\"",
    "\"$window\"",
    "0",
    "-1",
    "1e308",
    "nan",
    "inf",
    "99999999999999999999",
    "0.1",
    "true",
    "\"0 s\"",
    "\"1 h\"",
    "\"8760 h\"",
    "\"1 packet\"",
    "\"1 GiB\"",
    "\"1 Gbit/s\"",
    "\"off\"",
    "\"vegas\"",
    "é",
    "\u{0}",
    "\u{feff}",
    "[resolved]\nx = 1\n",
];

#[derive(Clone, Debug)]
enum Mutation {
    Cut(f64, usize),
    Copy(f64, f64, usize),
    Insert(f64, usize),
    Replace(f64, usize, usize),
}

fn place() -> impl Strategy<Value = f64> {
    0.0..1.0_f64
}

fn mutation() -> impl Strategy<Value = Mutation> {
    prop_oneof![
        (place(), 1..40_usize).prop_map(|(at, n)| Mutation::Cut(at, n)),
        (place(), place(), 1..80_usize).prop_map(|(from, to, n)| Mutation::Copy(from, to, n)),
        (place(), 0..PIECES.len()).prop_map(|(at, piece)| Mutation::Insert(at, piece)),
        (place(), 1..12_usize, 0..PIECES.len()).prop_map(|(at, n, piece)| Mutation::Replace(at, n, piece)),
    ]
}

fn mutate(text: &str, mutations: &[Mutation]) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    for mutation in mutations {
        let at = |f: f64| (f * chars.len() as f64) as usize;
        let range = |f: f64, n: usize| at(f)..(at(f) + n).min(chars.len());
        match *mutation {
            Mutation::Cut(from, n) => drop(chars.drain(range(from, n))),
            Mutation::Copy(from, to, n) => {
                let (piece, to) = (chars[range(from, n)].to_vec(), at(to));
                chars.splice(to..to, piece);
            }
            Mutation::Insert(from, piece) => drop(chars.splice(at(from)..at(from), PIECES[piece].chars())),
            Mutation::Replace(from, n, piece) => drop(chars.splice(range(from, n), PIECES[piece].chars())),
        }
    }
    chars.into_iter().collect()
}

/// Loads the text and checks the result.
fn answers(text: &str, sets: &[(String, String)]) {
    match load(&Source::new("fuzz.toml", text), sets, None) {
        Ok(scenario) => {
            let printed = to_toml(&scenario);
            let again = load(&Source::new("printed.toml", printed.as_str()), &[], None);
            assert_eq!(again.as_ref(), Ok(&scenario), "{printed}");
        }
        Err(error) => makes_sense(&error, text),
    }
}

fn makes_sense(error: &Diagnostic, text: &str) {
    let place = &error.place;
    assert!(place.line >= 1 && place.column >= 1 && place.width >= 1, "{error}");
    if place.name == "fuzz.toml" {
        assert!(place.line <= text.matches('\n').count() + 1, "{error}");
    }
    assert!(place.offset <= 140 && place.width <= 140, "{error}");
    assert!(
        !error.message.is_empty() && !error.message.contains('\n') && !error.label.contains('\n'),
        "{error}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(3000), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_files_are_answered(
        base in 0..BASES.len(),
        mutations in prop::collection::vec(mutation(), 1..4),
        set in prop::option::of(("loss|window|jitter", "[ -~]{0,12}")),
    ) {
        let sets: Vec<_> = set.into_iter().collect();
        answers(&mutate(BASES[base], &mutations), &sets);
    }

    #[test]
    fn mutated_figures_are_answered(
        base in 0..FIGURES.len(),
        mutations in prop::collection::vec(mutation(), 1..4),
    ) {
        let text = mutate(FIGURES[base], &mutations);
        let refused = match figure_file::load(&Source::new("fuzz.toml", text.as_str())) {
            Ok(FigureFile { scenario: ScenarioRef::Inline(scenario), .. }) => load(&scenario, &[], None).err(),
            Ok(_) => None,
            Err(error) => Some(error),
        };
        if let Some(error) = refused {
            makes_sense(&error, &text);
        }
    }

    #[test]
    fn arbitrary_text_is_answered(text in "\\PC{0,200}", value in "\\PC{0,40}") {
        answers(&text, &[]);
        answers(DUMBBELL, &[("window".to_owned(), value)]);
    }

    #[test]
    fn arbitrary_values_are_answered(key in 0..25_usize, piece in 0..PIECES.len(), number in "[0-9]{1,22}(\\.[0-9]{1,22})?(e-?[0-9]{1,4})?", unit in 0..9_usize) {
        let units = ["", " B", " GiB", " s", " ns", " Mbit/s", " segments", " packets", " h"];
        let line = GRAPH.lines().filter(|l| l.contains(" = ")).nth(key).unwrap_or("seed = 1");
        let name = line.split(" = ").next().unwrap_or("");
        for value in [PIECES[piece].to_owned(), format!("\"{number}{}\"", units[unit]), number] {
            answers(&edit(GRAPH, line, &format!("{name} = {value}")), &[]);
        }
    }

    #[test]
    fn arbitrary_trace_files_are_answered(text in "(time_s,rate_bps\n)?([0-9.,x\n-]{0,60}|\\PC{0,60})", csv in any::<bool>()) {
        struct One(String);
        impl Files for One {
            fn read(&self, _: &str) -> Result<String, String> {
                Ok(self.0.clone())
            }
        }
        let key = if csv { "file" } else { "mahimahi" };
        let file = edit(DUMBBELL, "pairs = 2", &format!("pairs = 2\ncapacity = {{ {key} = \"a.trace\" }}"));
        match load_with(&Source::new("fuzz.toml", file.as_str()), &[], None, &One(text.clone())) {
            Ok(scenario) => {
                let printed = to_toml(&scenario);
                assert_eq!(load(&Source::new("printed.toml", printed), &[], None), Ok(scenario));
            }
            Err(error) => {
                makes_sense(&error, &file);
                assert!(error.message.starts_with("a.trace:"), "{text:?}: {error}");
            }
        }
    }

    #[test]
    fn arbitrary_recordings_are_answered(
        text in "(timestamp,(rtt|uplink|downlink)(,rtt|,uplink|,downlink)?\n)?([0-9.,x\n-]{0,60}|(([0-9]{1,3}(.[0-9])?|-1)(,[0-9-]{1,3})?\n){1,6}|\\PC{0,60})",
        losses in any::<bool>(),
        column in prop::sample::select(vec!["", ", column = \"uplink\"", ", every = \"20 ms\""]),
    ) {
        struct One(String);
        impl Files for One {
            fn read(&self, _: &str) -> Result<String, String> {
                Ok(self.0.clone())
            }
        }
        let series = format!("{{ trace = \"a.trace\"{column} }}");
        let line = if losses { format!("delay = \"1 ms\"\nloss = {series}") } else { format!("delay = {series}") };
        let file = edit(GRAPH, "delay = \"270 ms\"", &line);
        match load_with(&Source::new("fuzz.toml", file.as_str()), &[], None, &One(text.clone())) {
            Ok(scenario) => {
                let printed = to_toml(&scenario);
                assert_eq!(load(&Source::new("printed.toml", printed), &[], None), Ok(scenario));
            }
            Err(error) => {
                makes_sense(&error, &file);
                let of_the_file = error.message.starts_with("a.trace");
                assert!(of_the_file || error.message.ends_with("a table"), "{text:?}: {error}");
            }
        }
    }

    #[test]
    fn arbitrary_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let mut file = DUMBBELL.as_bytes().to_vec();
        file.extend(&bytes);
        match Source::from_bytes("fuzz.toml", &file) {
            Ok(source) => answers(source.text(), &[]),
            Err(error) => assert!(error.place.line >= DUMBBELL.lines().count()),
        }
    }
}

#[test]
fn bytes_that_are_not_utf8_are_pointed_at() {
    let error = Source::from_bytes("test.toml", b"schema = 1\ntitle = \"caf\xe9\"\nseed = 1\n").unwrap_err();
    let picture = "\
error: test.toml is not UTF-8 text
 --> test.toml:2:13
  |
2 | title = \"caf\u{fffd}\"
  |             ^ byte 0xe9 does not belong to any character
  = help: save the file as UTF-8";
    assert_eq!(format!("error: {error}"), picture);
    // A file cut inside a character.
    let error = Source::from_bytes("test.toml", b"a = \"\xe2\x82").unwrap_err();
    assert_eq!((error.place.line, error.place.column), (1, 6));
}

#[test]
fn columns_count_characters_and_tabs_are_shown_as_blanks() {
    refuses(
        &edit(DUMBBELL, "title = \"a test\"", "title = \"très\"\tseed = 0"),
        &[],
        "
error: this is not TOML
 --> test.toml:2:16
  |
2 | title = \"très\" seed = 0
  |                ^ unexpected key or value, expected newline, `#`
",
    );
}

#[test]
fn a_key_from_hell_stays_on_its_line() {
    let text = edit(DUMBBELL, "pairs", &format!("\"a\\n{}\"", "x".repeat(1000)));
    let error = load(&Source::new("test.toml", text), &[], None).unwrap_err();
    assert_eq!(error.message, format!("unknown key `a {}...", "x".repeat(285)));
    assert!(error.to_string().lines().all(|line| line.len() < 400), "{error}");
}

#[test]
fn a_long_line_is_shown_around_the_place() {
    let text = format!("schema = 1\ntitle = \"{}\" x\n", "long ".repeat(2000));
    let error = load(&Source::new("test.toml", text), &[], None).unwrap_err();
    assert_eq!((error.place.line, error.place.column), (2, 10_012));
    assert!(error.place.text.len() <= 140 && error.place.text.ends_with("long \" x"), "{error}");
}

#[test]
fn deep_nesting_is_refused_and_not_followed() {
    let keys = vec!["a"; 79].join(".");
    for text in [
        "[".repeat(100_000),
        format!("a = {}", "[".repeat(100_000)),
        format!("a = {}", "{a=".repeat(100_000)),
        format!("{} = 1", vec!["a"; 100_000].join(".")),
        format!("[{keys}]\n{keys} = {}1{}", format!("{{ {keys} = ").repeat(16), " }".repeat(16)),
    ] {
        assert!(load(&Source::new("test.toml", text), &[], None).is_err());
    }
}

#[test]
fn limits_hold() {
    let too_long = format!("schema = 1\n#{}", "x".repeat(17 << 20));
    let error = load(&Source::new("test.toml", too_long), &[], None).unwrap_err();
    assert_eq!(error.message, "the file is longer than 16 MiB");
    for (from, to, message) in [
        ("pairs = 2", "pairs = 100001", "`pairs` is too large"),
        ("count = 2", "count = 100000", "there is no host `src3` for flow 3 of 100000"),
        ("\"a test\"", &format!("\"{}\"", "x".repeat(501)), "`title` is too long"),
        ("name = \"flow\"", &format!("name = \"{}\"", "x".repeat(65)), "`name` is not a name"),
        ("name = \"flow\"", &format!("name = \"{}\"", "x".repeat(64)), "this name is too long"),
    ] {
        let error = load(&Source::new("test.toml", edit(DUMBBELL, from, to)), &[], None).unwrap_err();
        assert_eq!(error.message, message);
    }
    let long_link = edit(GRAPH, "name = \"r31\"", &format!("name = \"{}\"", "x".repeat(60)));
    let error = load(&Source::new("test.toml", long_link), &[], None).unwrap_err();
    assert_eq!(error.message, "this name is too long");
    let one_host = edit(&edit(DUMBBELL, "count = 2", "count = 50001"), "from = \"src\"", "from = \"src1\"");
    let one_host = edit(&one_host, "to = \"dst\"", "to = \"dst1\"");
    let error = load(&Source::new("test.toml", one_host), &[], None).unwrap_err();
    assert_eq!(error.message, "there are too many flows at `src1`");
    // The largest allowed scenario still loads.
    let large = edit(&edit(DUMBBELL, "pairs = 2", "pairs = 100000"), "count = 2", "count = 100000");
    assert_eq!(load(&Source::new("test.toml", large), &[], None).unwrap().nodes.len(), 200_002);
}
