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
    let mut groups: Vec<Vec<Range>> = Vec::new();
    for same in places.values() {
        for (n, a) in same.iter().enumerate() {
            for b in same[n + 1..].iter().filter(|b| b.0 != a.0) {
                if let Some(pair) = whole(&code, *a, *b) {
                    join(&mut groups, pair);
                }
            }
        }
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

/// File, and start and end in its relevant lines.
type Range = (usize, usize, usize);

/// The whole range of equal lines around a pair of windows; `None` if the range starts earlier.
fn whole(code: &[Code], a: (usize, usize), b: (usize, usize)) -> Option<[Range; 2]> {
    let line = |(file, i): (usize, usize)| code[file].lines.get(i).map(|l| l.0);
    if a.1 > 0 && b.1 > 0 && line((a.0, a.1 - 1)) == line((b.0, b.1 - 1)) {
        return None;
    }
    let same = |n: &usize| line((a.0, a.1 + n)).is_some_and(|l| Some(l) == line((b.0, b.1 + n)));
    let len = (0..code[a.0].lines.len()).take_while(same).count();
    Some([(a.0, a.1, a.1 + len - 1), (b.0, b.1, b.1 + len - 1)])
}

/// Adds a pair to the group that it overlaps; merges groups that it connects.
fn join(groups: &mut Vec<Vec<Range>>, pair: [Range; 2]) {
    let overlap = |x: &Range, y: &Range| x.0 == y.0 && x.1 <= y.2 && y.1 <= x.2;
    let (touched, apart): (Vec<_>, Vec<_>) =
        groups.drain(..).partition(|g| g.iter().any(|r| pair.iter().any(|p| overlap(r, p))));
    *groups = apart;
    groups.push(touched.into_iter().flatten().chain(pair).collect());
}

fn named(code: &[Code], group: &[Range]) -> Duplicate {
    let mut merged: Vec<Range> = Vec::new();
    for &(file, from, to) in group.iter().collect::<BTreeSet<_>>() {
        match merged.last_mut() {
            Some(last) if last.0 == file && from <= last.2 + 1 => last.2 = last.2.max(to),
            _ => merged.push((file, from, to)),
        }
    }
    let at = |file: usize, i: usize| code[file].lines[i].1;
    merged.iter().map(|&(f, from, to)| (code[f].name.clone(), at(f, from), at(f, to))).collect()
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
