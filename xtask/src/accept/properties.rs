//! Which tests are properties: those inside a `proptest!` block.

use proc_macro2::{TokenStream, TokenTree};
use std::fs;
use std::path::Path;
use syn::visit::{self, Visit};

/// Names of all property tests below `dir`.
///
/// # Errors
/// When a folder or file cannot be read.
pub(super) fn names(dir: &Path) -> Result<Vec<String>, String> {
    let mut paths = Vec::new();
    crate::tidy::collect(dir, &mut paths)?;
    let mut found = Found::default();
    for path in paths {
        let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        found.read(&text);
    }
    Ok(found.names)
}

#[derive(Default)]
struct Found {
    names: Vec<String>,
}

impl Found {
    fn read(&mut self, text: &str) {
        if let Ok(file) = syn::parse_file(text) {
            self.visit_file(&file);
        }
    }
}

impl<'ast> Visit<'ast> for Found {
    fn visit_macro(&mut self, mac: &'ast syn::Macro) {
        if mac.path.segments.last().is_some_and(|s| s.ident == "proptest") {
            self.names.extend(functions(mac.tokens.clone()));
        }
        visit::visit_macro(self, mac);
    }
}

/// Names of the functions that stand in a block, not of those inside them.
fn functions(tokens: TokenStream) -> Vec<String> {
    let mut names = Vec::new();
    let mut after_fn = false;
    for token in tokens {
        if let TokenTree::Ident(word) = &token {
            if after_fn {
                names.push(word.to_string());
            }
            after_fn = word == "fn";
        } else {
            after_fn = false;
        }
    }
    names
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn properties_are_told_from_tests() {
        let mut found = Found::default();
        found.read(
            "#[cfg(test)] mod tests {
                proptest! { #[test] fn a(x: u8) { fn inner() {} } #[test] fn b(y in 0..3) {} }
                #[test] fn c() {}
            }
            proptest::proptest! { #[test] fn d(x: u8) {} }
            vec! { fn e }",
        );
        assert_eq!(found.names, ["a", "b", "d"]);
    }
}
