//! Finds equal lines in two product files; ignores comments, blank lines, indentation and `use`.

use super::Finding;
use super::tree::File;
use std::collections::{BTreeMap, BTreeSet};

/// Fewest equal lines that count as a duplicate.
const LEAST: usize = 6;

/// A finding for each duplicate: the places where it begins.
pub(super) fn find(files: &[File]) -> Vec<Finding> {
    let code: Vec<_> = files.iter().map(relevant_lines).collect();
    let mut places: BTreeMap<Vec<&str>, Vec<(usize, usize)>> = BTreeMap::new();
    for (f, lines) in code.iter().enumerate() {
        for (i, window) in lines.windows(LEAST).enumerate() {
            places.entry(window.iter().map(|(_, text)| text.as_str()).collect()).or_default().push((f, i));
        }
    }
    let is_in_two_files = |same: &&Vec<(usize, usize)>| same.iter().any(|(f, _)| *f != same[0].0);
    let repeated: Vec<_> = places.values().filter(is_in_two_files).collect();
    // a longer duplicate consists of several windows, of which only the first is reported
    let later: BTreeSet<_> = repeated.iter().copied().flatten().map(|&(f, i)| (f, i + 1)).collect();
    let first = repeated.into_iter().filter(|same| same.iter().any(|place| !later.contains(place)));
    let finding = |same: &Vec<(usize, usize)>| {
        let places = same.iter().map(|&(f, i)| (files[f].name(), code[f][i].0));
        let list: Vec<_> = places.clone().map(|(name, line)| format!("{name}:{line}")).collect();
        let text = format!("the same {LEAST} lines or more begin at {}", list.join("  "));
        let (place, line) = places.min().unwrap_or_default();
        Finding { place, line, text }
    };
    first.map(finding).collect()
}

/// Number and text of each product line that has code, without blanks.
fn relevant_lines(file: &File) -> Vec<(usize, String)> {
    let text = |line: &str| without_comment(line).split_whitespace().collect::<String>();
    let lines = file.product(false).into_iter().map(|(at, line)| (at, text(line)));
    lines.filter(|(_, text)| !text.is_empty()).collect()
}

fn without_comment(line: &str) -> &str {
    let begins = |(at, _): &(usize, &str)| !line[..*at].ends_with(|c: char| !c.is_whitespace());
    line.match_indices("//").find(begins).map_or(line, |(at, _)| &line[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_lines_are_found_in_two_files() {
        let body = "fn f() {\n    a();\n    b(); // why\n\n    c();\n    d();\n}\n";
        let file = |name: &str, text: String| File::new(format!("crates/x/src/{name}.rs").into(), text);
        let a = file("a", format!("use a::b;\n{body}struct A;\n"));
        let b = file("b", format!("struct B;\n{}", body.replace(" // why", "").replace("    ", "  ")));
        let c = file("c", format!("struct C;\n{body}"));
        let short = file("d", body.replace("    d();\n", ""));
        let test = file("e", format!("#[cfg(test)]\nmod tests {{\n{body}}}\n"));
        let found = find(&[a, b, c, short, test]);
        let places = ["a", "b", "c"].map(|name| format!("crates/x/src/{name}.rs:2"));
        let [finding] = &found[..] else { panic!("{found:?}") };
        assert_eq!((finding.line, finding.text.ends_with(&places.join("  "))), (2, true), "{finding}");
    }

    #[test]
    fn a_url_is_no_comment() {
        assert_eq!(without_comment("f(\"http://x\") // y"), "f(\"http://x\") ");
        assert_eq!(without_comment("// y"), "");
    }
}
