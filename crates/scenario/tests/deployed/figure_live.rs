//! `[live]` of figure files: its defaults, and the text of its errors.

use bentpipe_scenario::Source;
use bentpipe_scenario::figure_file::{FigureFile, Live, Tolerance, load};

const TABLE: &str = "schema = 1\ntitle = \"t\"\nscenario = \"window\"\nseeds = 3\n[[curves]]\nname = \"a\"\n\
    [[curves]]\nname = \"b\"\nrun = false\n[[curves]]\nname = \"f\"\nformula = \"window-rate\"\n";
const X: &str = "[x]\nparameter = \"loss\"\nvalues = [\"1e-3\", 0.1]\n";

fn read(text: &str) -> Result<FigureFile, String> {
    load(&Source::new("f.toml", text)).map_err(|d| format!("error: {d}"))
}

fn live(more: &str) -> Live {
    read(&format!("{TABLE}{more}")).unwrap_or_else(|error| panic!("{error}")).live.expect("it has one")
}

#[track_caller]
fn refuses(more: &str, wanted: &str) {
    let error = read(&format!("{TABLE}{more}")).unwrap_err();
    assert_eq!(error.trim(), wanted.trim_matches('\n'), "\n{error}");
}

#[test]
fn all_curves_that_are_run_are_live_at_all_values_unless_others_are_named() {
    assert_eq!(read(TABLE).unwrap().live, None);
    let least = live("[live]\n");
    assert_eq!((&least.curves[..], &least.at[..], least.runs, least.seeds), (&[0][..], &[0][..], 1, 3));
    assert_eq!((least.tolerance.value, least.place.line), (Tolerance::Share(0.05), 13));
    let most = live(&format!(
        "{X}[live]\ncurves = [\"b\", \"a\"]\nat = [\"10 %\"]\nset = {{ duration = \"60 s\" }}\nruns = 4\n\
         tolerance = \"0.1 Mbit/s\"\nnotes = \"n\"\n"
    ));
    assert_eq!((&most.curves[..], &most.at[..]), (&[0, 1][..], &[1][..]), "in the order of the file");
    assert_eq!((most.runs, most.seeds), (4, 4), "each live run has a simulated one");
    assert_eq!((most.sets[0].name.value.as_str(), most.notes.as_deref()), ("duration", Some("n")));
    assert!(matches!(most.tolerance.value, Tolerance::Amount(_)));
    assert_eq!(live(&format!("{X}[live]\nseeds = 9\n")).at, [0, 1]);
}

#[test]
fn what_cannot_be_live_is_refused_at_its_place() {
    refuses(
        "[live]\ncurves = \"c\"\n",
        r#"
error: there is no curve `c`
  --> f.toml:14:10
   |
14 | curves = "c"
   |          ^^^ did you mean `a`?
   = help: curves: a, b, f
"#,
    );
    refuses(
        "[live]\ncurves = [\"a\", \"f\"]\n",
        r#"
error: the curve `f` is computed by window-rate
  --> f.toml:14:16
   |
14 | curves = ["a", "f"]
   |                ^^^ a formula has no packets: leave it out
"#,
    );
    refuses(
        "[live]\ncurves = [\"a\", \"a\"]\n",
        r#"
error: this is named twice
  --> f.toml:14:16
   |
14 | curves = ["a", "a"]
   |                ^^^ leave it out
"#,
    );
    refuses(
        "[live]\nat = 0.1\n",
        r"
error: there is no `[x]` to be at
  --> f.toml:14:6
   |
14 | at = 0.1
   |      ^^^ a table has one value in each row: leave `at` out
",
    );
    refuses(
        &format!("{X}[live]\nat = 0.2\n"),
        r"
error: there is no value `0.2`
  --> f.toml:17:6
   |
17 | at = 0.2
   |      ^^^ did you mean `0.1`?
   = help: values: 1e-3, 0.1
   = help: these are the values of `[x]`
",
    );
    refuses(
        "[live]\nruns = 3\nseeds = 2\n",
        r"
error: `seeds` is less than `runs`
  --> f.toml:15:9
   |
15 | seeds = 2
   |         ^ each live run has a simulated one with its seed
",
    );
    refuses(
        "[live]\ntolerance = \"100 %\"\n",
        r#"
error: the tolerance of `[live]` is below 100 %
  --> f.toml:14:13
   |
14 | tolerance = "100 %"
   |             ^^^^^^^ with this one 0 is accepted
"#,
    );
}

#[test]
fn a_figure_of_which_no_curve_is_run_names_what_is_live() {
    let text = TABLE.replace("name = \"a\"\n", "name = \"a\"\nrun = false\n");
    let error = read(&format!("{text}[live]\n")).unwrap_err();
    let wanted = "error: no curve is run that could be live\n  --> f.toml:14:1\n   |\n14 | [live]\n   | ^^^^^^\n   \
                  = help: write curves = [\"...\"] with names of curves that have `run = false`";
    assert_eq!(error.trim(), wanted, "\n{error}");
}
