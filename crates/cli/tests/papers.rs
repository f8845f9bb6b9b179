//! `bentpipe papers` from its options to its files.

mod support;

use std::fs;
use support::{bentpipe, contents, err, folder};

const NOT_MET: i32 = 3;
const BAD_INPUT: i32 = 2;

#[test]
fn figures_are_listed_and_their_files_shown() {
    let list = bentpipe(&["papers", "--list", "002"]);
    let text = String::from_utf8_lossy(&list.stdout).into_owned();
    assert!(text.lines().count() > 1 && text.lines().all(|line| line.starts_with("002/")), "{text}");
    let shown = bentpipe(&["papers", "--show", "004/table-2"]);
    assert_eq!(shown.stdout, fs::read("../../papers/004/table-2.toml").expect("it is there"));
    let wrong = bentpipe(&["papers", "--show", "004/tabel-2"]);
    assert_eq!(wrong.status.code(), Some(BAD_INPUT));
    assert!(err(&wrong).contains("did you mean `004/table-2`?"), "{}", err(&wrong));
    let without = bentpipe(&["papers", "002"]);
    assert_eq!(without.status.code(), Some(BAD_INPUT));
}

#[test]
fn papers_are_made_from_the_program_alone() {
    let out = folder("papers");
    let words = ["papers", "002/window", "004/table-2", "--out", out.to_str().expect("UTF-8")];
    let made = bentpipe(&words);
    assert_eq!(made.status.code(), Some(0), "{}", err(&made));
    let text = String::from_utf8_lossy(&made.stdout).into_owned();
    assert!(text.starts_with("paper  agrees  differs  not-run\n"), "{text}");
    let verdicts = fs::read_to_string(out.join("verdicts.csv")).expect("it is there");
    let row = verdicts.lines().find(|row| row.starts_with("004,004-19,")).expect("its row");
    assert!(row.ends_with(",agrees,bentpipe papers 004/table-2 --quick --out DIR"), "{row}");
    let first = contents(&out);
    assert!(first.contains_key("figures/004-table-2.png"), "{:?}", first.keys());
    let again = bentpipe(&words);
    assert_eq!((again.status.code(), again.stdout == made.stdout), (Some(0), true));
    assert!(contents(&out) == first, "the bytes differ");
    fs::remove_dir_all(out).expect("it can be removed");
}

#[test]
fn a_difference_that_no_file_knows_is_not_met() {
    // the statement about the longest time is known to be wrong, and its file does not say so
    let text = fs::read_to_string("../../papers/002/window.toml").expect("it is there");
    let file = folder("papers-differs.toml");
    fs::write(&file, text.replace("expect = \"225 kbit/s\"", "expect = \"100 kbit/s\""))
        .expect("it can be written");
    let out = folder("papers-differs");
    let made = bentpipe(&["figure", file.to_str().expect("UTF-8"), "--out", out.to_str().expect("UTF-8")]);
    assert_eq!(made.status.code(), Some(NOT_MET), "{}", err(&made));
}
