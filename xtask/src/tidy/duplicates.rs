//! Finds equal lines in two product files; ignores comments, blank lines, indentation and `use`.

use super::tree::File;
use std::collections::{BTreeMap, BTreeSet};

/// Fewest equal lines that count as a duplicate.
const LEAST: usize = 6;

/// Where the same lines occur: file, first and last line, in the order of the files.
type Duplicate = Vec<(String, usize, usize)>;

/// The relevant lines of a file: each as a number for its text, and its line number.
struct Code {
    name: String,
    lines: Vec<(usize, usize)>,
}

/// All duplicates.
pub(super) fn find(files: &[File]) -> Vec<Duplicate> {
    let code = code(files);
    let mut places: BTreeMap<Vec<usize>, Vec<(usize, usize)>> = BTreeMap::new();
    for (f, file) in code.iter().enumerate() {
        for (i, window) in file.lines.windows(LEAST).enumerate() {
            places.entry(window.iter().map(|l| l.0).collect()).or_default().push((f, i));
        }
    }
    let mut groups: Vec<Places> = Vec::new();
    for same in places.values().filter(|same| same.iter().any(|place| place.0 != same[0].0)) {
        let window = same.iter().flat_map(|&(file, i)| (i..i + LEAST).map(move |at| (file, at)));
        join(&mut groups, window.collect());
    }
    let mut all: Vec<Duplicate> = groups.iter().map(|g| named(&code, g)).collect();
    all.sort();
    all
}

fn code(files: &[File]) -> Vec<Code> {
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    let mut all = Vec::new();
    for file in files {
        let mut lines = Vec::new();
        for (at, line) in file.product(false) {
            let line: String = without_comment(line).split_whitespace().collect();
            if !line.is_empty() {
                let next = numbers.len();
                lines.push((*numbers.entry(line).or_insert(next), at));
            }
        }
        all.push(Code { name: file.name(), lines });
    }
    all
}

fn without_comment(line: &str) -> &str {
    let begins = |(at, _): &(usize, &str)| !line[..*at].ends_with(|c: char| !c.is_whitespace());
    line.match_indices("//").find(begins).map_or(line, |(at, _)| &line[..at])
}

/// Lines by their file and their position in its relevant lines.
type Places = BTreeSet<(usize, usize)>;

/// Adds the places of a window to the group that they overlap; merges groups that they connect.
fn join(groups: &mut Vec<Places>, mut window: Places) {
    let (apart, touched): (Vec<_>, Vec<_>) = groups.drain(..).partition(|group| group.is_disjoint(&window));
    window.extend(touched.into_iter().flatten());
    *groups = apart;
    groups.push(window);
}

fn named(code: &[Code], group: &Places) -> Duplicate {
    let mut ranges: Duplicate = Vec::new();
    for &(file, i) in group {
        let line = code[file].lines[i].1;
        match ranges.last_mut() {
            Some(last) if i > 0 && group.contains(&(file, i - 1)) => last.2 = line,
            _ => ranges.push((code[file].name.clone(), line, line)),
        }
    }
    ranges
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
        let place = |name: &str| (format!("crates/x/src/{name}.rs"), 2, 8);
        assert_eq!(found, [[place("a"), place("b"), place("c")]]);
    }

    #[test]
    fn a_url_is_no_comment() {
        assert_eq!(without_comment("f(\"http://x\") // y"), "f(\"http://x\") ");
        assert_eq!(without_comment("// y"), "");
    }
}
