//! Reads the files that git knows, and finds the Rust lines that are product, not test code.

use lab::once::output;
use std::collections::BTreeSet;
use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::Command;
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};
use syn::{Attribute, ImplItem, Item, Meta};

/// Folders whose Rust is not product, in a crate or the workspace.
const TEST_FOLDERS: [&str; 4] = ["tests", "benches", "examples", "fuzz"];

pub(crate) struct File {
    /// Path relative to the workspace.
    pub path: PathBuf,
    pub text: String,
    /// Its syntax tree, if it is Rust.
    pub syntax: Option<syn::Result<syn::File>>,
    /// True for Rust that runs in tests only.
    pub is_test: bool,
}

impl File {
    pub(crate) fn new(path: PathBuf, text: String) -> Self {
        let is_rust = path.extension().is_some_and(|e| e == "rs");
        let syntax = is_rust.then(|| syn::parse_file(&text));
        let mut is_test = is_in_test_folder(&path);
        if let Some(Ok(file)) = &syntax {
            is_test |= file.attrs.iter().any(is_test_only);
        }
        Self { path, text, syntax, is_test }
    }

    pub(crate) fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Number and text of its product lines; lines of `use` items only if `with_use`.
    pub(crate) fn product(&self, with_use: bool) -> Vec<(usize, &str)> {
        let Some(Ok(syntax)) = self.syntax.as_ref().filter(|_| !self.is_test) else { return Vec::new() };
        let mut left_out = LeftOut { with_use, ranges: Vec::new() };
        left_out.visit_file(syntax);
        let is_in = |n: usize| !left_out.ranges.iter().any(|r| r.contains(&n));
        self.text.lines().enumerate().map(|(i, l)| (i + 1, l)).filter(|(n, _)| is_in(*n)).collect()
    }
}

/// All text files below `root` that git tracks or would add, sorted by path.
pub(crate) fn read(root: &Path) -> Result<Vec<File>, String> {
    let args = ["ls-files", "--cached", "--others", "--exclude-standard"];
    let names = output("git ls-files", Command::new("git").args(args).current_dir(root))?;
    let names: BTreeSet<&str> = names.lines().collect();
    // skip binary files and files deleted meanwhile
    let read = |name: &&str| Some(File::new(PathBuf::from(name), fs::read_to_string(root.join(name)).ok()?));
    let mut files: Vec<File> = names.iter().filter_map(read).collect();
    let tests: BTreeSet<PathBuf> = files.iter().flat_map(test_modules).collect();
    for file in files.iter_mut().filter(|f| f.syntax.is_some()) {
        file.is_test |= file.path.with_extension("").ancestors().any(|a| tests.contains(a));
    }
    Ok(files)
}

/// Lines of Rust: product and tool lines, without test files and test modules; and all.
pub(super) fn count_lines(files: &[File]) -> (usize, usize) {
    let rust = || files.iter().filter(|f| f.syntax.is_some());
    (rust().map(|f| f.product(true).len()).sum(), rust().map(|f| f.text.lines().count()).sum())
}

fn is_in_test_folder(path: &Path) -> bool {
    let mut parts = path.iter().filter_map(|p| p.to_str());
    let top = parts.next().unwrap_or_default();
    let folder = if top == "crates" { parts.nth(1).unwrap_or_default() } else { top };
    TEST_FOLDERS.contains(&folder)
}

/// Paths (without extension) of the modules that `file` declares for tests only.
fn test_modules(file: &File) -> Vec<PathBuf> {
    let Some(Ok(syntax)) = &file.syntax else { return Vec::new() };
    let is_root = matches!(file.path.file_stem().and_then(|s| s.to_str()), Some("lib" | "main" | "mod"));
    let folder = if is_root { file.path.with_file_name("") } else { file.path.with_extension("") };
    let declared = syntax.items.iter().filter_map(|item| match item {
        Item::Mod(m) if m.content.is_none() && m.attrs.iter().any(is_test_only) => Some(m),
        _ => None,
    });
    declared
        .map(|m| match m.attrs.iter().find_map(path_attribute) {
            Some(elsewhere) => file.path.with_file_name(elsewhere).with_extension(""),
            None => folder.join(m.ident.to_string()),
        })
        .collect()
}

/// The value of `#[path = "..."]`.
fn path_attribute(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(pair) = &attribute.meta else { return None };
    let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(path), .. }) = &pair.value else { return None };
    pair.path.is_ident("path").then(|| path.value())
}

/// True for `#[test]` and for a `cfg` that is true in tests only.
pub(super) fn is_test_only(attribute: &Attribute) -> bool {
    if attribute.path().is_ident("test") {
        return true;
    }
    attribute.path().is_ident("cfg") && attribute.parse_args::<Meta>().is_ok_and(|m| needs_test(&m))
}

fn needs_test(meta: &Meta) -> bool {
    let Meta::List(list) = meta else { return meta.path().is_ident("test") };
    let inner = list.parse_args_with(syn::punctuated::Punctuated::<Meta, syn::Token![,]>::parse_terminated);
    let Ok(inner) = inner else { return false };
    if list.path.is_ident("all") {
        inner.iter().any(needs_test)
    } else {
        list.path.is_ident("any") && !inner.is_empty() && inner.iter().all(needs_test)
    }
}

pub(super) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(i) => &i.attrs,
        Item::Enum(i) => &i.attrs,
        Item::Fn(i) => &i.attrs,
        Item::Impl(i) => &i.attrs,
        Item::Macro(i) => &i.attrs,
        Item::Mod(i) => &i.attrs,
        Item::Static(i) => &i.attrs,
        Item::Struct(i) => &i.attrs,
        Item::Trait(i) => &i.attrs,
        Item::Type(i) => &i.attrs,
        Item::Use(i) => &i.attrs,
        _ => &[],
    }
}

/// Collects the lines of items that do not count.
struct LeftOut {
    with_use: bool,
    ranges: Vec<RangeInclusive<usize>>,
}

impl LeftOut {
    fn leave_out(&mut self, span: proc_macro2::Span) {
        self.ranges.push(span.start().line..=span.end().line);
    }
}

impl<'ast> Visit<'ast> for LeftOut {
    fn visit_item(&mut self, item: &'ast Item) {
        if attributes(item).iter().any(is_test_only) || (!self.with_use && matches!(item, Item::Use(_))) {
            self.leave_out(item.span());
        } else {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        match item {
            ImplItem::Fn(f) if f.attrs.iter().any(is_test_only) => self.leave_out(f.span()),
            _ => visit::visit_impl_item(self, item),
        }
    }
}

#[cfg(test)]
mod unit {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File::new(PathBuf::from(path), text.to_owned())
    }

    #[test]
    fn tests_are_no_product() {
        let text =
            "use a::b;\n\nfn f() {}\n\n/// Why.\n#[cfg(test)]\nmod tests {\n    fn g() {}\n}\nfn h() {}\n";
        let lines = |f: &File, with_use| f.product(with_use).iter().map(|(n, _)| *n).collect::<Vec<_>>();
        let product = file("crates/tcp/src/a.rs", text);
        assert_eq!(lines(&product, true), [1, 2, 3, 4, 10]);
        assert_eq!(lines(&product, false), [2, 3, 4, 10]);
        for path in
            ["crates/tcp/tests/a.rs", "crates/wire/examples/f/x.rs", "fuzz/src/main.rs", "examples/a.rs"]
        {
            assert!(file(path, text).is_test, "{path}");
        }
        assert!(file("crates/tcp/src/a.rs", "#![cfg(test)]\n").is_test);
        assert_eq!(count_lines(&[product, file("crates/a/tests/a.rs", text)]), (5, 20));
    }

    #[test]
    fn test_modules_in_files_are_known() {
        let text = "#[cfg(test)] mod dialogue; mod a; #[cfg(test)] mod inline { }";
        let of = |path: &str, text: &str| test_modules(&file(path, text));
        assert_eq!(of("crates/tcp/src/lib.rs", text), [PathBuf::from("crates/tcp/src/dialogue")]);
        assert_eq!(of("crates/tcp/src/x.rs", text), [PathBuf::from("crates/tcp/src/x/dialogue")]);
        let moved = "#[cfg(test)] #[path = \"x_tests.rs\"] mod tests;";
        assert_eq!(of("crates/tcp/src/x.rs", moved), [PathBuf::from("crates/tcp/src/x_tests")]);
    }
}
