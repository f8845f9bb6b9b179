//! Words that no tracked file may contain: folders of one machine, and references to work orders.

use super::Finding;
use super::tree::File;

/// Folders that exist on one machine only. Concatenated, so that this file passes its own rule.
const FOLDERS: [&str; 4] =
    [concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/wo", "rk/"), concat!("/Us", "ers/")];

/// Phrases that refer to a work order, in lower case, separated by commas; `#` stands for a number.
const WORK_ORDERS: &str = "issue #, issues #, acceptance #, the issue, this issue, an issue, each issue, accept issue, \
     work order, work orders, first issue, second issue, third issue, fourth issue, fifth issue, \
     sixth issue, seventh issue, eighth issue, ninth issue, tenth issue, last issue";
/// Files that may contain them: the list itself, and the history.
const EXEMPT: [&str; 2] = ["xtask/src/tidy/words.rs", "CHANGELOG.md"];

pub(super) fn check(files: &[File]) -> Vec<Finding> {
    files.iter().flat_map(|f| check_text(&f.name(), &f.text)).collect()
}

fn check_text(name: &str, text: &str) -> Vec<Finding> {
    let finding = |line, text| Finding { place: name.to_owned(), line, text };
    let mut findings = Vec::new();
    for (i, line) in text.lines().enumerate() {
        for folder in FOLDERS.iter().filter(|f| has_absolute(line, f)) {
            findings.push(finding(i + 1, format!("a path below {folder} exists on one machine only")));
        }
    }
    if !EXEMPT.contains(&name) {
        let orders = work_orders(text).into_iter();
        findings.extend(orders.map(|(line, phrase)| {
            finding(line, format!("`{phrase}`: say what is meant; a reader has no work order"))
        }));
    }
    findings
}

/// True if `folder` starts an absolute path in `line`.
fn has_absolute(line: &str, folder: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | '}' | ')');
    line.match_indices(folder).any(|(at, _)| !line[..at].chars().next_back().is_some_and(is_part))
}

/// The phrases of [`WORK_ORDERS`] in a text, with their lines. A phrase may span two lines.
fn work_orders(text: &str) -> Vec<(usize, &'static str)> {
    let mut words: Vec<(usize, String)> = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let line = line.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty());
        words.extend(line.map(|w| (i + 1, w.to_lowercase())));
    }
    let is = |word: &str, asked: &str| match asked {
        "#" => word.chars().all(|c| c.is_ascii_digit()),
        _ => word == asked,
    };
    let mut found = Vec::new();
    for phrase in WORK_ORDERS.split(", ") {
        let asked: Vec<&str> = phrase.split(' ').collect();
        let here = words.windows(asked.len()).filter(|w| w.iter().zip(&asked).all(|((_, w), a)| is(w, a)));
        found.extend(here.map(|w| (w[0].0, phrase)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_a_machine_are_found() {
        let [root, home, ..] = FOLDERS;
        for bad in [
            format!("cd {home}me/bentpipe"),
            format!("\"{root}x\""),
            format!("CARGO={home}x"),
            format!("`{root}`"),
        ] {
            assert_eq!(check_text("a.md", &bad).len(), 1, "{bad}");
        }
        for good in
            ["https://example.invalid/home/x", "../work/x", "homework", "$HOME/x", "/usr/bin/env", "a/root/b"]
        {
            assert_eq!(check_text("a.md", good).len(), 0, "{good}");
        }
    }

    #[test]
    fn work_orders_are_found() {
        for bad in ["Issue 6, part 1", "as the\n//! issue asks", "make accept ISSUE=x", "(acceptance 9)"] {
            assert_eq!(check_text("a.rs", bad).len(), 1, "{bad}");
            assert_eq!(check_text(EXEMPT[1], bad).len(), 0, "{bad}");
        }
        for good in ["an acceptance list", "it issues commands", "issue tracking", "the issuer"] {
            assert_eq!(check_text("a.rs", good).len(), 0, "{good}");
        }
    }
}
