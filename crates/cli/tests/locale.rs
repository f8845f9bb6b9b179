//! The locale decides what text for people consists of; results for programs are UTF-8 in every locale.

mod support;

use support::{err, folder, program};

/// Standard output and standard error of a command in a locale.
fn in_locale(locale: &str, args: &[&str]) -> (String, String) {
    let mut command = program();
    command.env_remove("LC_CTYPE").env_remove("LANG").env("LC_ALL", locale);
    let output = command.args(args).output().expect("it starts");
    // a search may find no crossing
    assert!(matches!(output.status.code(), Some(0 | 4)), "{args:?}: {}", err(&output));
    (String::from_utf8(output.stdout.clone()).expect("UTF-8"), err(&output))
}

fn words<'a>(command: &[&'a str], out: &'a str) -> Vec<&'a str> {
    [command, &["--out", out]].concat()
}

/// Lossy runs with several seeds have intervals, and the title has a letter that is not ASCII.
#[test]
fn text_in_the_c_locale_is_ascii() {
    let dir = folder("locale");
    std::fs::create_dir_all(&dir).expect("a folder");
    let file = dir.join("titled.toml");
    let scenario = String::from_utf8(in_locale("C", &["new", "-", "--loss", "1e-3"]).0.into_bytes());
    let scenario = scenario.expect("UTF-8").replace("title = \"", "title = \"Na\u{ef}ve \u{2192} ");
    std::fs::write(&file, scenario).expect("a file");
    let (file, out) = (file.to_str().expect("UTF-8"), |name: &str| dir.join(name).display().to_string());
    let (sweep, found) = (out("sweep"), out("found"));
    let short = ["--set", "duration=3 s"];
    let sim = [&["sim", file][..], &short, &["--expect", "goodput > 1 bit/s"]].concat();
    let swept =
        words(&[&["sweep", file, "--axis", "loss=1e-3,1e-2", "--seeds", "3"][..], &short].concat(), &sweep);
    let find = [
        &["find", file, "--vary", "loss=1e-4..0.5", "--until", "goodput < 1 Mbit/s", "--seeds", "2"][..],
        &short,
    ];
    let find = words(&find.concat(), &found);
    for args in [&sim, &swept, &find] {
        let (text, said) = in_locale("C", args);
        assert!(text.is_ascii() && said.is_ascii() && !text.is_empty(), "{args:?}\n{text}\n{said}");
    }
    let (table, _) = in_locale("C", &swept);
    let (other, _) = in_locale("C.UTF-8", &swept);
    assert!(table.contains("+/-") && other.contains(" \u{b1} "), "{table}\n{other}");
    // the columns stand below each other in both
    let widths = |text: &str| text.lines().map(|line| line.chars().count()).collect::<Vec<_>>();
    assert_eq!(widths(&table), widths(&other));
    let (text, _) = in_locale("C", &sim);
    assert!(text.contains("Na?ve -> "), "{text}");
}

#[test]
fn results_for_programs_are_the_same_in_every_locale() {
    let dir = folder("locale-data");
    std::fs::create_dir_all(&dir).expect("a folder");
    let file = dir.join("titled.toml");
    let text = in_locale("C", &["new", "-", "--title", "Na\u{ef}ve", "--duration", "1 s"]).0;
    std::fs::write(&file, text).expect("a file");
    let file = file.to_str().expect("UTF-8");
    for args in [&["sim", file, "--json"][..], &["check", file]] {
        let (text, _) = in_locale("C", args);
        assert_eq!(text, in_locale("C.UTF-8", args).0);
        assert!(text.contains("Na\u{ef}ve"), "{text}");
    }
}
