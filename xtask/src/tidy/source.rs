//! Rules for one source file, applied to its syntax, so that comments and strings do not matter.

use super::tree::{File, attributes, is_test_only};
use super::{COMMENT_COLUMNS, FILE_LINES, FUNCTION_LINES, Finding, Longest};
use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Item, UseTree};

/// The role of a file, which selects its rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// No clock, file, socket, thread or platform mathematics.
    Engine,
    /// May use the outside world.
    Driver,
    /// Runs in tests only.
    Test,
}

/// Path and role of a source text.
pub(super) struct Origin<'a> {
    /// Path relative to the workspace.
    pub name: &'a str,
    pub role: Role,
    /// True in the only crate that may use unsafe code, which calls the operating system.
    pub unsafe_allowed: bool,
}

/// Findings of one file.
#[derive(Debug, Default)]
pub(super) struct Checked {
    pub findings: Vec<Finding>,
    /// Its longest function outside tests.
    pub function: Longest,
}

/// Modules of std that access the outside world.
const WORLD: [&str; 7] = ["env", "fs", "io", "net", "process", "thread", "time"];

/// Functions of f64 whose last bits differ between platforms; those of libm do not.
const PLATFORM_MATHS: [&str; 21] = [
    "acos", "asin", "atan", "atan2", "cbrt", "cos", "cosh", "exp", "exp2", "exp_m1", "hypot", "ln", "ln_1p",
    "log10", "log2", "powf", "powi", "sin", "sin_cos", "tan", "tanh",
];

/// Words that mark unfinished work. Concatenated, so that this file passes its own rule.
const OPEN_ENDS: [&str; 5] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("todo", "!("),
    concat!("unimplemented", "!("),
];

pub(super) fn check(place: &Origin<'_>, file: &File) -> Checked {
    let mut walk = Walk { place, checked: Checked::default() };
    walk.check_text(&file.text);
    match &file.syntax {
        Some(Ok(syntax)) => {
            walk.check_unsafe(&file.text);
            if place.role != Role::Test {
                walk.visit_file(syntax);
            }
        }
        Some(Err(e)) => walk.finding(e.span().start().line, format!("does not parse: {e}")),
        None => {}
    }
    walk.checked
}

/// True for a file whose head says that it is generated.
pub(super) fn is_generated(text: &str) -> bool {
    text.lines().take(5).any(|l| l.starts_with("//") && l.contains("@generated"))
}

struct Walk<'a> {
    place: &'a Origin<'a>,
    checked: Checked,
}

impl Walk<'_> {
    fn finding(&mut self, line: usize, text: String) {
        self.checked.findings.push(Finding { place: self.place.name.to_owned(), line, text });
    }

    fn check_text(&mut self, text: &str) {
        let lines = text.lines().count();
        if lines > FILE_LINES && !is_generated(text) {
            self.finding(1, format!("{lines} lines, at most {FILE_LINES}: split it by what its parts do"));
        }
        for (i, line) in text.lines().enumerate() {
            if line.trim_start().starts_with("//") && line.chars().count() > COMMENT_COLUMNS {
                self.finding(i + 1, format!("a comment of more than {COMMENT_COLUMNS} columns"));
            }
            for word in OPEN_ENDS.iter().filter(|w| contains_word(line, w)) {
                let text = format!("`{word}`: finish it, or write down the limit where the reader needs it");
                self.finding(i + 1, text);
            }
        }
    }

    /// Checks every token, including those in macros and tests.
    fn check_unsafe(&mut self, text: &str) {
        if self.place.unsafe_allowed {
            return;
        }
        let Ok(tokens) = text.parse::<TokenStream>() else { return };
        for token in flatten(tokens) {
            if let Token::Word(word, line) = token
                && word == concat!("un", "safe")
            {
                self.finding(line, format!("`{word}`: only crates/os may use it"));
            }
        }
    }

    fn function(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let first = signature.fn_token.span.start().line;
        let last = block.brace_token.span.close().end().line;
        let lines = last - first + 1;
        let what = format!("{} in {}", signature.ident, self.place.name);
        if lines > FUNCTION_LINES {
            self.finding(first, format!("`{}` has {lines} lines, at most {FUNCTION_LINES}", signature.ident));
        }
        let longest = Longest { lines, what };
        if longest > self.checked.function {
            self.checked.function = longest;
        }
    }

    fn world(&mut self, line: usize, module: &str) {
        if self.place.role == Role::Engine && WORLD.contains(&module) {
            let text =
                format!("std::{module} below the drivers: time, randomness and I/O come in through Cx");
            self.finding(line, text);
        }
    }

    fn maths(&mut self, line: usize, name: &str) {
        if self.place.role == Role::Engine && PLATFORM_MATHS.contains(&name) {
            self.finding(line, format!("f64::{name} differs between platforms: use libm"));
        }
    }

    /// Checks what a `use std::...` imports.
    fn imports(&mut self, tree: &UseTree) {
        match tree {
            UseTree::Path(p) => self.world(p.ident.span().start().line, &p.ident.to_string()),
            UseTree::Name(n) => self.world(n.ident.span().start().line, &n.ident.to_string()),
            UseTree::Rename(r) => self.world(r.ident.span().start().line, &r.ident.to_string()),
            UseTree::Glob(g) if self.place.role == Role::Engine => {
                let line = g.star_token.spans[0].start().line;
                self.finding(line, "use std::* hides what it brings in".to_owned());
            }
            UseTree::Glob(_) => {}
            UseTree::Group(g) => g.items.iter().for_each(|t| self.imports(t)),
        }
    }
}

impl<'ast> Visit<'ast> for Walk<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if !attributes(item).iter().any(is_test_only) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_fn(&mut self, f: &'ast syn::ItemFn) {
        self.function(&f.sig, &f.block);
        visit::visit_item_fn(self, f);
    }

    fn visit_impl_item_fn(&mut self, f: &'ast syn::ImplItemFn) {
        if !f.attrs.iter().any(is_test_only) {
            self.function(&f.sig, &f.block);
            visit::visit_impl_item_fn(self, f);
        }
    }

    fn visit_trait_item_fn(&mut self, f: &'ast syn::TraitItemFn) {
        if let Some(block) = &f.default {
            self.function(&f.sig, block);
        }
        visit::visit_trait_item_fn(self, f);
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        match &item.tree {
            UseTree::Path(p) if p.ident == "std" => self.imports(&p.tree),
            UseTree::Rename(r) if r.ident == "std" && self.place.role == Role::Engine => {
                self.finding(r.ident.span().start().line, "std under another name".to_owned());
            }
            _ => {}
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let mut parts = path.segments.iter();
        if let (Some(first), Some(second)) = (parts.next(), parts.next()) {
            let line = first.ident.span().start().line;
            if first.ident == "std" {
                self.world(line, &second.ident.to_string());
            } else if first.ident == "f64" || first.ident == "f32" {
                self.maths(line, &second.ident.to_string());
            }
        }
        visit::visit_path(self, path);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        self.maths(call.method.span().start().line, &call.method.to_string());
        visit::visit_expr_method_call(self, call);
    }

    fn visit_macro(&mut self, mac: &'ast syn::Macro) {
        let tokens = flatten(mac.tokens.clone());
        for window in tokens.windows(4) {
            if let [Token::Word(a, line), Token::Sign(':'), Token::Sign(':'), Token::Word(b, _)] = window {
                match a.as_str() {
                    "std" => self.world(*line, b),
                    "f64" | "f32" => self.maths(*line, b),
                    _ => {}
                }
            }
        }
        for window in tokens.windows(3) {
            if let [Token::Sign('.'), Token::Word(name, line), Token::Open] = window {
                self.maths(*line, name);
            }
        }
        visit::visit_macro(self, mac);
    }
}

/// A token of a flattened stream.
enum Token {
    Word(String, usize),
    Sign(char),
    Open,
    Other,
}

fn flatten(tokens: TokenStream) -> Vec<Token> {
    let mut out = Vec::new();
    for tree in tokens {
        match tree {
            TokenTree::Ident(i) => out.push(Token::Word(i.to_string(), i.span().start().line)),
            TokenTree::Punct(p) => out.push(Token::Sign(p.as_char())),
            TokenTree::Literal(_) => out.push(Token::Other),
            TokenTree::Group(g) => {
                out.push(Token::Open);
                out.extend(flatten(g.stream()));
                out.push(Token::Other);
            }
        }
    }
    out
}

/// True if `line` contains `word` as a whole word.
fn contains_word(line: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, found)| {
        let before = line[..at].chars().next_back();
        let after = line[at + found.len()..].chars().next();
        !before.is_some_and(is_part) && (word.ends_with('(') || !after.is_some_and(is_part))
    })
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
