//! Tests each rule on a sample that complies and on one that does not.

use super::*;

fn checked(role: Role, text: &str) -> Checker {
    check(&File::new("sample.rs".into(), text.to_owned()), role)
}

fn findings(role: Role, text: &str) -> Vec<String> {
    checked(role, text).findings.into_iter().map(|f| f.text).collect()
}

fn engine(text: &str) -> usize {
    findings(Role::Engine, text).len()
}

#[test]
fn the_world_is_out_of_the_engines_reach() {
    for bad in [
        "use std::time::Instant;",
        "use std::{fmt, io};",
        "use std::{fs::File, fmt};",
        "use std::thread as t;",
        "use std as s;",
        "use std::*;",
        "fn f() { std::fs::read(\"x\"); }",
        "fn f(a: std::net::TcpStream) {}",
        "fn f() { assert!(std::env::var(\"x\").is_ok()); }",
        "impl From<std::io::Error> for E {}",
    ] {
        assert_eq!(engine(bad), 1, "{bad}");
        assert_eq!(findings(Role::Driver, bad), [""; 0], "{bad}");
    }
    for good in [
        "use std::collections::BTreeMap;",
        "use core::net::IpAddr;",
        "// std::time\nconst S: &str = \"std::fs\";",
        "#[cfg(test)] mod tests { use std::time::Instant; }",
        "#[cfg(all(test, unix))] fn f() { std::thread::yield_now(); }",
        "mod time {} fn f() { time::now(); }",
    ] {
        assert_eq!(engine(good), 0, "{good}");
    }
    assert_eq!(engine("#[cfg(not(test))] mod m { use std::time::Instant; }"), 1);
    assert_eq!(engine("#[cfg(any(test, unix))] mod m { use std::time::Instant; }"), 1);
}

#[test]
fn open_ends_are_found() {
    for word in UNFINISHED_WORDS {
        assert_eq!(findings(Role::Test, &format!("// {word} later")).len(), 1, "{word}");
    }
    assert_eq!(findings(Role::Test, concat!("// MAS", "TODON")).len(), 0);
}

#[test]
fn long_functions_are_found_outside_tests() {
    let body = "    let _ = 1;\n".repeat(FUNCTION_LINES - 2);
    let fits = format!("/// Doc.\n#[inline]\nfn f() {{\n{body}}}\n");
    assert_eq!(engine(&fits), 0);
    let long = format!("fn f() {{\n{body}    let _ = 2;\n}}\n");
    assert_eq!(engine(&long), 1);
    assert_eq!(engine(&format!("impl A {{ {long} }}")), 1);
    assert_eq!(engine(&format!("trait A {{ {long} }}")), 1);
    assert_eq!(engine(&format!("#[cfg(test)] mod tests {{ {long} }}")), 0);
    assert_eq!(engine(&format!("#[test]\n{long}")), 0);
    assert_eq!(findings(Role::Test, &long).len(), 0);
    let longest = Longest { lines: FUNCTION_LINES, what: "f in sample.rs".to_owned() };
    assert_eq!(checked(Role::Engine, &fits).function, longest);
}

#[test]
fn what_does_not_parse_is_a_finding() {
    assert_eq!(engine("fn f( {"), 1);
}

#[test]
fn wide_comments_are_found() {
    let wide = format!("fn f() {{}}\n    // {}\n// {}\n", "x".repeat(104), "ü".repeat(107));
    let found = checked(Role::Test, &wide).findings;
    assert_eq!(found.iter().map(|f| f.line).collect::<Vec<_>>(), [2]);
}
