//! Rules for one source file, applied to its syntax, so that comments and strings do not matter.

use super::tree::{File, attributes, is_test_only};
use super::{COMMENT_COLUMNS, FILE_LINES, FUNCTION_LINES, Finding, Longest};
use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Ident, Item, UseName, UsePath, UseRename, UseTree};

/// The role of a file, which selects its rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// No clock, file, socket or thread.
    Engine,
    /// May use the outside world.
    Driver,
    /// Runs in tests only.
    Test,
}

/// Modules of std that access the outside world.
const SYSTEM_MODULES: [&str; 7] = ["env", "fs", "io", "net", "process", "thread", "time"];

/// Words that mark unfinished work. Concatenated, so that this file passes its own rule.
const UNFINISHED_WORDS: [&str; 5] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("todo", "!("),
    concat!("unimplemented", "!("),
];

/// Applies the rules to one file.
pub(super) struct Checker {
    name: String,
    role: Role,
    pub findings: Vec<Finding>,
    /// The longest function outside tests.
    pub function: Longest,
}

pub(super) fn check(file: &File, role: Role) -> Checker {
    let mut checker = Checker { name: file.name(), role, findings: Vec::new(), function: Longest::default() };
    checker.check_text(&file.text);
    match &file.syntax {
        Some(Ok(syntax)) if role != Role::Test => checker.visit_file(syntax),
        Some(Err(e)) => checker.finding(e.span().start().line, format!("does not parse: {e}")),
        _ => {}
    }
    checker
}

impl Checker {
    fn finding(&mut self, line: usize, text: String) {
        self.findings.push(Finding { place: self.name.clone(), line, text });
    }

    fn check_text(&mut self, text: &str) {
        let lines = text.lines().count();
        if lines > FILE_LINES {
            self.finding(1, format!("{lines} lines, at most {FILE_LINES}: split it by what its parts do"));
        }
        for (i, line) in text.lines().enumerate() {
            if line.trim_start().starts_with("//") && line.chars().count() > COMMENT_COLUMNS {
                self.finding(i + 1, format!("a comment of more than {COMMENT_COLUMNS} columns"));
            }
            for word in UNFINISHED_WORDS.iter().filter(|w| contains_word(line, w)) {
                let text = format!("`{word}`: finish it, or write down the limit where the reader needs it");
                self.finding(i + 1, text);
            }
        }
    }

    fn function(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let first = signature.fn_token.span.start().line;
        let last = block.brace_token.span.close().end().line;
        let lines = last - first + 1;
        let what = format!("{} in {}", signature.ident, self.name);
        if lines > FUNCTION_LINES {
            self.finding(first, format!("`{}` has {lines} lines, at most {FUNCTION_LINES}", signature.ident));
        }
        self.function = std::mem::take(&mut self.function).max(Longest { lines, what });
    }

    fn check_module(&mut self, module: &Ident) {
        if self.role == Role::Engine && SYSTEM_MODULES.iter().any(|name| module == name) {
            let text = format!("std::{module} below the drivers: time, randomness and I/O come through Cx");
            self.finding(module.span().start().line, text);
        }
    }

    /// Checks what a `use std::...` imports.
    fn imports(&mut self, tree: &UseTree) {
        match tree {
            UseTree::Path(UsePath { ident, .. })
            | UseTree::Name(UseName { ident })
            | UseTree::Rename(UseRename { ident, .. }) => self.check_module(ident),
            UseTree::Glob(g) if self.role == Role::Engine => {
                let line = g.star_token.spans[0].start().line;
                self.finding(line, "use std::* hides what it brings in".to_owned());
            }
            UseTree::Glob(_) => {}
            UseTree::Group(g) => g.items.iter().for_each(|t| self.imports(t)),
        }
    }

    /// Checks the paths `std::...` in the arguments of a macro, which have no syntax tree.
    fn macro_arguments(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        for (i, token) in tokens.iter().enumerate() {
            match (token, tokens.get(i + 3)) {
                (TokenTree::Group(group), _) => self.macro_arguments(group.stream()),
                // two colons lie between them
                (TokenTree::Ident(std), Some(TokenTree::Ident(module))) if std == "std" => {
                    self.check_module(module);
                }
                _ => {}
            }
        }
    }
}

impl<'ast> Visit<'ast> for Checker {
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
            UseTree::Rename(r) if r.ident == "std" && self.role == Role::Engine => {
                self.finding(r.ident.span().start().line, "std under another name".to_owned());
            }
            _ => {}
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let mut parts = path.segments.iter();
        if parts.next().is_some_and(|first| first.ident == "std")
            && let Some(module) = parts.next()
        {
            self.check_module(&module.ident);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, mac: &'ast syn::Macro) {
        self.macro_arguments(mac.tokens.clone());
        visit::visit_macro(self, mac);
    }
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
