//! All values of a figure.

use super::super::{FigureJob, PointResult, Verdict, evaluate};
use super::SCENARIO;
use bentpipe_scenario::figure_file::{self, ScenarioRef};
use bentpipe_scenario::{NoFiles, Source};

const CURVES: &str = r#"
[x]
parameter = "loss"
values = ["0", "0.02"]

[[curves]]
name = "a"

[[curves]]
name = "b"
set = { tcp = "sack" }

[[references]]
name = "theirs"
curve = "a"
unit = "kbit/s"
points = [["0", 3000], ["0.02", 1]]
source = "made up"

[[statements]]
text = "as theirs"
reference = "theirs"
tolerance = "60 %"

[[statements]]
text = "no more"
curve = "b"
over = "a"
at = "0"
at_most = 3.0
"#;

#[test]
fn every_value_is_in_the_table_with_its_verdict() {
    let file = figure_file::load(&Source::new("f.toml", format!("{SCENARIO}{CURVES}"))).unwrap();
    let ScenarioRef::Inline(scenario) = &file.scenario else { panic!() };
    let files = &NoFiles;
    let job = FigureJob { file: &file, scenario, files, quick: false, threads: 1, command: String::new() };
    let folder = std::env::temp_dir().join(format!("bentpipe-evaluate-{}", std::process::id()));
    let all = evaluate(&[job], 1, &folder).unwrap().remove(0);
    std::fs::remove_dir_all(folder).unwrap();
    assert_eq!((all.unit.as_str(), &all.sources[..]), ("Mbit/s", &["theirs".to_owned()][..]));
    let rows: Vec<_> = all.points.iter().map(|p| (p.statement, p.name.as_str(), p.runs, p.verdict)).collect();
    assert_eq!(
        rows,
        [
            (Some(0), "a, loss = 0", 2, Some(Verdict::Agrees)),
            (Some(1), "a, loss = 0.02", 2, Some(Verdict::Differs)),
            (Some(2), "b over a, loss = 0", 2, Some(Verdict::Agrees)),
            (None, "b, loss = 0", 2, None),
            (None, "b, loss = 0.02", 2, None),
        ]
    );
    let [first, second, ratio, ..] = &all.points[..] else { panic!("{all:?}") };
    assert_eq!((&first.printed[..], first.expected), (&[Some(3.0)][..], Some(3.0)));
    assert!(first.bounds.is_some_and(|(low, high)| (low - 1.2).abs() < 1e-9 && (high - 4.8).abs() < 1e-9));
    assert!(first.mean.is_some_and(|mean| mean > 1.2 && mean < 4.8), "{first:?}");
    assert_eq!(second.printed, [Some(0.001)]);
    let known = |mean, half_width| PointResult { mean, half_width, ..ratio.clone() }.ours();
    assert_eq!(known(Some(1.234_567_8), Some(0.056)).as_deref(), Some("1.235 ± 0.056"));
    assert_eq!(known(Some(1.234_567_8), None).as_deref(), Some("1.23457"), "more than a sweep shows");
    assert_eq!(known(None, None), None);
    assert_eq!(ratio.printed, [None], "a ratio is nothing that the source prints");
    assert!(all.svg.contains("<svg"));
}
