//! Statements that are known to differ, and what turns them.

use super::super::{Verdict, turned, verdict_text};
use super::{SCENARIO, folder, make, read, with_job};

const WITH: &str = r#"
[x]
parameter = "loss"
values = ["0", "0.02"]

[[curves]]
name = "NewReno"

[[statements]]
text = "2 Mbit/s in spite of losses"
item = [7, 8]
curve = "NewReno"
at = "0.02"
expect = "2.1 Mbit/s"
at_least = "2 Mbit/s"
differs = "The printed setting has no losses."
turn = { loss = 0 }

[[statements]]
text = "not without losses"
curve = "NewReno"
at = 0
at_most = "3 Mbit/s"
differs = "it is said to be faster"
turn = { loss = 0.02 }
"#;

fn file() -> String {
    format!("paper = \"000\"\nitem = 3\n{SCENARIO}{WITH}")
}

#[test]
fn a_known_difference_is_judged_but_no_error() {
    let made = make(&file(), "known", false).unwrap();
    let [first, second] = &made.verdicts[..] else { panic!("two") };
    assert_eq!((first.verdict, second.verdict), (Verdict::Differs, Verdict::Agrees));
    assert!(!made.differs());
    assert_eq!((&first.items[..], &second.items[..]), (&[7, 8][..], &[3][..]));
    assert_eq!((first.paper_value.as_str(), first.accepted.as_str()), ("2.1 Mbit/s", "at least 2 Mbit/s"));
    assert_eq!(
        (second.paper_value.as_str(), second.accepted.as_str()),
        ("at most 3 Mbit/s", "at most 3 Mbit/s")
    );
    let note =
        "\"2 Mbit/s in spite of losses\" differs: The printed setting has no losses; it holds with loss = 0";
    let notes: Vec<String> =
        made.to_text().lines().filter_map(|line| Some(line.strip_prefix("note: ")?.to_owned())).collect();
    assert_eq!(notes, [note], "one that agrees has no note");
    assert!(read("known", "index.html").contains(&note.replace('"', "&quot;")));
    let rows = read("known", "verdicts.csv");
    let items: Vec<&str> = rows.lines().skip(1).map(|row| &row[..6]).collect();
    assert_eq!(items, ["000,7,", "000,8,", "000,3,"], "{rows}");
    std::fs::remove_dir_all(folder("known")).unwrap_or_default();
}

#[test]
fn what_turns_a_statement_comes_after_x() {
    let out = folder("turned");
    with_job(&file(), false, |job| {
        let (runs, verdict) = turned(job, 0, &out, &|_| {}).unwrap().unwrap();
        assert_eq!((runs.executed, verdict.verdict, verdict.ours), (2, Verdict::Agrees, Some(2.484_768)));
        assert_eq!(verdict_text(&[verdict]).lines().count(), 2, "no note");
        let (runs, _) = turned(job, 0, &out, &|_| {}).unwrap().unwrap();
        assert_eq!((runs.executed, runs.already_stored), (0, 2));
    })
    .unwrap();
    let plain = file().replace("differs = \"it is said to be faster\"\nturn = { loss = 0.02 }\n", "");
    with_job(&plain, false, |job| assert_eq!(turned(job, 1, &out, &|_| {}).unwrap(), None)).unwrap();
    std::fs::remove_dir_all(out).unwrap();
}

#[test]
fn errors_of_a_turn_are_found_before_the_first_run() {
    let line = file().lines().position(|l| l.starts_with("turn")).unwrap() + 1;
    for (turn, place, says) in [
        ("{ los = 0 }", "10", "did you mean `loss`?"),
        ("{ loss = 2 }", "17", "`loss` is a probability"),
        ("{ tcp = \"sakc\" }", "16", "did you mean `sack`?"),
    ] {
        let error = make(&file().replace("{ loss = 0 }", turn), "turn", false).unwrap_err().to_string();
        assert!(error.contains(says) && error.contains(&format!("f.toml:{line}:{place}")), "{error}");
        assert!(!folder("turn").exists());
    }
}
