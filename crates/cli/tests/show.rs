//! What a run prints first, and several runs on one page.

#![allow(clippy::unwrap_used, reason = "a test may say what it takes for granted")]

mod support;

use std::fs;
use std::path::Path;
use support::{bentpipe, contents, err, folder, program};

/// Runs a scenario in the locale, and returns what it prints.
fn printed(locale: &str, args: &[&str]) -> String {
    let done = program().args(args).env("LC_ALL", locale).output().unwrap();
    assert!(done.status.success(), "{}", err(&done));
    String::from_utf8(done.stdout).unwrap()
}

#[test]
fn the_headline_is_first_and_the_line_below_it_fits_the_locale() {
    let args = ["sim", "window", "--set", "duration=30 s"];
    let text = printed("C.UTF-8", &args);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("The flow uses ") && lines[0].ends_with(" holds it back."), "{text}");
    assert!(
        lines[1].starts_with("  |·") && lines[1].contains('▒') && lines[1].chars().count() == 64,
        "{text}"
    );
    assert!(lines[2].starts_with("  limits from 0 to 30 s: · opening the connection"), "{text}");
    let ascii = printed("C", &args);
    assert!(ascii.is_ascii() && ascii.lines().nth(1).unwrap().starts_with("  |o"), "{ascii}");
    // the report as data does not depend on any of this
    assert_eq!(
        printed("C", &[&args[..], &["--json"]].concat()),
        printed("C.UTF-8", &[&args[..], &["--json"]].concat())
    );
}

/// Writes the results of a short run into a folder.
fn saved(name: &str, sets: &[&str]) -> String {
    let dir = folder(name).to_str().unwrap().to_owned();
    let sets = sets.iter().flat_map(|set| ["--set", *set]);
    let args: Vec<&str> = ["sim", "sharing"].into_iter().chain(sets).chain(["--out", &dir]).collect();
    let done = bentpipe(&args);
    assert!(done.status.success(), "{}", err(&done));
    dir
}

#[test]
fn runs_are_on_one_page_with_what_differs() {
    let cubic = saved("show_cubic", &["flows=2", "duration=20 s", "tcp=cubic"]);
    let bbr = saved("show_bbr", &["flows=2", "duration=20 s", "tcp=bbr"]);
    let out = folder("show_both");
    let done = bentpipe(&["show", &cubic, &bbr, "--out", out.to_str().unwrap(), "--png"]);
    let text = String::from_utf8(done.stdout.clone()).unwrap();
    assert!(done.status.success(), "{}", err(&done));
    assert!(
        text.starts_with("show_cubic: The 2 flows use ") && text.contains("\nshow_bbr: The 2 flows use "),
        "{text}"
    );
    let row = text.lines().find(|line| line.starts_with("tcp ")).unwrap();
    assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["tcp", "cubic", "bbr"]);
    assert!(
        !text.lines().any(|line| line.starts_with("duration ")),
        "what is the same is not listed: {text}"
    );
    let files = contents(&out);
    let page = std::str::from_utf8(&files["show.html"]).unwrap();
    for title in [
        "What limited the flows over time",
        "Goodput",
        "Round-trip time",
        "Goodput: distribution",
        "Round-trip time: boxes",
        "Goodput of a flow, by scheme",
    ] {
        assert!(page.contains(&format!("<title>{title}</title>")), "no picture {title}");
    }
    assert!(page.contains("cubic, show_cubic") && page.contains("bbr, show_bbr"));
    for picture in ["picture-goodput.png", "picture-limits.png"] {
        assert!(files[picture].starts_with(b"\x89PNG"), "{picture}");
    }
    // the goodput of a run is that of its own page, over the same times
    let again = folder("show_again");
    bentpipe(&["show", &cubic, &bbr, "--out", again.to_str().unwrap(), "--png"]);
    assert!(contents(&again) == files, "two pages differ");
}

#[test]
fn a_saved_run_shows_what_limited_its_flows() {
    let dir = folder("show_limits");
    let of_run = printed(
        "C",
        &["sim", "window", "--set", "duration=30 s", "--seed", "4", "--out", dir.to_str().unwrap()],
    );
    let strip: Vec<&str> = of_run.lines().skip(1).take(2).collect();
    assert!(strip[0].starts_with("  |o") && strip[1].starts_with("  limits from 0 to 30 s: o "), "{of_run}");
    let one = printed("C", &["show", dir.to_str().unwrap()]);
    assert!(one.starts_with("show_limits: The flow uses "), "{one}");
    assert!(one.lines().skip(1).take(2).eq(strip.iter().copied()), "{one}\n{of_run}");
    // a folder of an older version has no limits, and shows the rest
    let old = folder("show_limits_old");
    fs::create_dir_all(&old).unwrap();
    fs::copy(dir.join("report.json"), old.join("report.json")).unwrap();
    let series = fs::read_to_string(dir.join("series.csv")).unwrap();
    let kept: Vec<usize> = (series.lines().next().unwrap().split(',').enumerate())
        .filter(|(_, key)| !key.starts_with("limit_") && *key != "dark_share")
        .map(|(i, _)| i)
        .collect();
    let cut = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        kept.iter().map(|i| cells[*i]).collect::<Vec<_>>().join(",") + "\n"
    };
    fs::write(old.join("series.csv"), series.lines().map(cut).collect::<String>()).unwrap();
    let page = folder("show_limits_page");
    let both = ["show", old.to_str().unwrap(), dir.to_str().unwrap(), "--out", page.to_str().unwrap()];
    let text = printed("C", &both);
    let of = |name: &str| text.lines().skip_while(|l| !l.starts_with(&format!("{name}: "))).nth(1).unwrap();
    assert_eq!(of("show_limits"), strip[0]);
    assert!(of("show_limits_old").starts_with("show_limits: "), "{text}");
    let page = String::from_utf8(contents(&page)["show.html"].clone()).unwrap();
    assert_eq!(page.matches("<title>What limited the flows over time</title>").count(), 1);
}

#[test]
fn a_saved_report_alone_has_no_course_but_its_bars() {
    let cubic = saved("show_alone", &["flows=1", "duration=5 s"]);
    let report = folder("show_alone_report");
    fs::create_dir_all(&report).unwrap();
    let copy = report.join("first.json");
    fs::copy(Path::new(&cubic).join("report.json"), &copy).unwrap();
    let out = folder("show_alone_page");
    let done = bentpipe(&["show", copy.to_str().unwrap(), &cubic, "--out", out.to_str().unwrap()]);
    assert!(done.status.success(), "{}", err(&done));
    let page = String::from_utf8(contents(&out)["show.html"].clone()).unwrap();
    assert!(page.contains("<strong>first</strong>: ") && page.contains("newreno, first"), "{page:.3000}");
}

#[test]
fn a_run_that_is_not_there_is_answered_with_what_a_run_is_and_with_those_that_are() {
    let dir = folder("show_nothing");
    fs::create_dir_all(&dir).unwrap();
    let said = |run: &str| {
        let done = program().args(["show", run]).current_dir(&dir).output().unwrap();
        assert_eq!(done.status.code(), Some(2));
        err(&done)
    };
    let help = "\
error: nothing: there is no such folder or file
help: a run is a folder with report.json, as `bentpipe sim FILE --out FOLDER` writes it (emulate and compare, too),
      or a saved report, as in `bentpipe sim FILE --json > run.json`
";
    assert_eq!(said("nothing"), help);
    for name in ["a", "b", "cubic", "d", "e", "f", "no-run"] {
        fs::create_dir(dir.join(name)).unwrap();
        if name != "no-run" {
            fs::write(dir.join(name).join("report.json"), "{}").unwrap();
        }
    }
    assert_eq!(said("nothing"), format!("{help}help: runs there are: a, b, cubic, d, e and 1 more\n"));
    assert!(said("cubik").ends_with("\nhelp: runs there are: cubic, a, b, d, e and 1 more\n"));
    assert!(said("no-run").contains("no-run: there is no report.json in it\n"));
    // what `compare` has written is two runs
    fs::create_dir_all(dir.join("both/simulated")).unwrap();
    fs::write(dir.join("both/simulated/report.json"), "{}").unwrap();
    assert!(said("both").ends_with("\nhelp: runs there are: both/simulated\n"), "{}", said("both"));
}

#[test]
fn what_cannot_be_shown_is_named() {
    let refused = |path: &Path| {
        let done = bentpipe(&["show", path.to_str().unwrap()]);
        assert_eq!(done.status.code(), Some(2));
        err(&done)
    };
    let dir = folder("show_refused");
    fs::create_dir_all(&dir).unwrap();
    assert!(refused(&dir).contains("there is no report.json in it\nhelp: a run is a "), "{}", refused(&dir));
    fs::write(dir.join("runs.csv"), "").unwrap();
    assert!(refused(&dir).contains("this is a sweep, whose own page has all runs"));
    fs::write(dir.join("report.json"), "{").unwrap();
    assert!(refused(&dir).contains("report.json: not a report of bentpipe: "));
    let report = saved("show_damaged", &["flows=1", "duration=5 s"]);
    let series = Path::new(&report).join("series.csv");
    fs::write(&series, "time_s,kind,name,goodput_bps\n1,flow,a\n").unwrap();
    assert!(refused(Path::new(&report)).contains("series.csv:2: 3 cells in place of 4"));
}
