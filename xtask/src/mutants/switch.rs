//! All mutants of a file in one text: each is an arm that a number of the environment chooses, so that one build holds them all.
//!
//! A mutant is where `cargo mutants --list` says. An operator becomes `(match crate::mutant() { 7_u32 => (a - b), _ => (a + b) })`; a body begins with
//! `if crate::mutant() == 8_u32 { return ..; }`; a match arm gets a guard. Lines stay where they are, so that an error of the compiler finds its mutant.

use core::fmt::Write as _;
use proc_macro2::{LineColumn, Span};
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};

/// A mutant as `cargo mutants --list --json` describes it.
#[derive(Clone, Debug)]
pub(super) struct Mutant {
    pub number: usize,
    /// Without its place: `replace < with <= in f`, and `#2` for the second of that name in the file.
    pub name: String,
    pub file: String,
    pub genre: String,
    pub replacement: String,
    /// Line from 1, column from 0.
    pub at: LineColumn,
}

/// What stands in place of a range of the source.
#[derive(Clone, Debug)]
struct Site {
    start: usize,
    end: usize,
    /// Numbers and texts of the mutants; none: the range goes.
    arms: Vec<(usize, String)>,
    /// Put in as it is, in place of arms.
    text: Option<String>,
}

struct Finder<'a> {
    source: &'a str,
    mutants: Vec<&'a Mutant>,
    sites: Vec<Site>,
}

/// `source` with those of `mutants` that can be switched.
pub(super) fn switchable(source: &str, mutants: &[&Mutant]) -> Result<String, String> {
    let file = syn::parse_file(source).map_err(|e| e.to_string())?;
    let mut finder = Finder { source, mutants: mutants.to_vec(), sites: Vec::new() };
    finder.visit_file(&file);
    let mut sites = finder.sites;
    // what is put in before an operator stands before its switch
    sites.sort_by_key(|s| (s.start, s.start != s.end, core::cmp::Reverse(s.end)));
    Ok(emit(source, 0, source.len(), &mut sites.into_iter().peekable()))
}

/// The text of `from..to`, with the sites in it.
fn emit(source: &str, from: usize, to: usize, sites: &mut Sites) -> String {
    let (mut text, mut at) = (String::new(), from);
    while let Some(mut site) = sites.next_if(|s| s.end <= to && s.start < to.max(from + 1)) {
        text += &source[at..site.start];
        at = site.end;
        if let Some(put) = &site.text {
            text += put;
            continue;
        }
        // a guard that is an operator: one switch
        while let Some(same) =
            sites.next_if(|s| (s.start, s.end) == (site.start, site.end) && s.text.is_none())
        {
            site.arms.extend(same.arms);
        }
        let inner = emit(source, site.start, site.end, sites);
        text += "(match crate::mutant() { ";
        for (number, arm) in &site.arms {
            _ = write!(text, "{number}_u32 => ({arm}), ");
        }
        _ = write!(text, "_ => ({inner}) }})");
    }
    text + &source[at..to]
}

type Sites = core::iter::Peekable<std::vec::IntoIter<Site>>;

impl Finder<'_> {
    fn at(&self, span: Span) -> Vec<Mutant> {
        self.mutants.iter().filter(|m| m.at == span.start()).map(|m| (*m).clone()).collect()
    }

    /// The source of a span in one line, without comments.
    fn text(&self, span: Span) -> String {
        let lines = self.source[span.byte_range()].lines();
        lines.map(|l| l.split_once("//").map_or(l, |(code, _)| code).trim()).collect::<Vec<_>>().join(" ")
    }

    fn wrap(&mut self, span: Span, arms: Vec<(usize, String)>) {
        if !arms.is_empty() {
            let range = span.byte_range();
            self.sites.push(Site { start: range.start, end: range.end, arms, text: None });
        }
    }

    fn put(&mut self, at: usize, text: String) {
        self.sites.push(Site { start: at, end: at, arms: Vec::new(), text: Some(text) });
    }

    fn function(&mut self, signature: &syn::Signature, block: &syn::Block) {
        if let Some(constant) = &signature.constness {
            let range = constant.span().byte_range();
            self.sites.push(Site {
                start: range.start,
                end: range.end,
                arms: vec![],
                text: Some(String::new()),
            });
        }
        let Some(first) = block.stmts.first() else { return };
        let mut text = String::new();
        for m in self.at(first.span()) {
            if m.genre == "FnValue" && !m.replacement.contains("Default::default") {
                _ = write!(text, "if crate::mutant() == {}_u32 {{ return {}; }} ", m.number, m.replacement);
            }
        }
        if !text.is_empty() {
            self.put(first.span().byte_range().start, text);
        }
    }
}

/// True when `let` stands somewhere in a condition: it cannot be wrapped.
fn has_let(expr: &syn::Expr) -> bool {
    match expr {
        syn::Expr::Let(_) => true,
        syn::Expr::Binary(b) => has_let(&b.left) || has_let(&b.right),
        _ => false,
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    /// Nothing is chosen at compile time.
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}

    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_expr_binary(&mut self, expr: &'ast syn::ExprBinary) {
        let whole = syn::Expr::Binary(expr.clone());
        if !has_let(&whole) {
            let (left, right) = (self.text(expr.left.span()), self.text(expr.right.span()));
            let found = self.at(expr.op.span());
            let arms = found.iter().filter(|m| m.genre == "BinaryOperator");
            let arms = arms.map(|m| (m.number, format!("{left} {} {right}", m.replacement))).collect();
            self.wrap(whole.span(), arms);
        }
        visit::visit_expr_binary(self, expr);
    }

    fn visit_expr_unary(&mut self, expr: &'ast syn::ExprUnary) {
        let operand = self.text(expr.expr.span());
        let found = self.at(expr.op.span());
        let arms = found.iter().filter(|m| m.genre == "UnaryOperator");
        let arms = arms.map(|m| (m.number, format!("{}{operand}", m.replacement))).collect();
        self.wrap(expr.span(), arms);
        visit::visit_expr_unary(self, expr);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        let gone: Vec<_> = self.at(arm.span()).into_iter().filter(|m| m.genre == "MatchArm").collect();
        if let Some((_, guard)) = &arm.guard {
            let found = self.at(guard.span());
            let arms = found.iter().filter(|m| m.genre == "MatchArmGuard");
            let mut arms: Vec<_> = arms.map(|m| (m.number, m.replacement.clone())).collect();
            arms.extend(gone.iter().map(|m| (m.number, "false".to_owned())));
            if !has_let(guard) {
                self.wrap(guard.span(), arms);
            }
        } else if let Some(m) = gone.first() {
            self.put(arm.pat.span().byte_range().end, format!(" if crate::mutant() != {}_u32", m.number));
        }
        visit::visit_arm(self, arm);
    }
}

/// Numbers of the arms that a match beginning in `lines` may lose: where it is not complete without one, they are to blame.
pub(super) fn arms_of(lines: &[&str]) -> Vec<usize> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let Some(first) = lines.first() else { return Vec::new() };
    let inner =
        lines.iter().skip(1).take_while(|l| !(l.trim_start().starts_with('}') && indent(l) <= indent(first)));
    inner
        .filter_map(|l| l.split_once("if crate::mutant() != ")?.1.split_once("_u32")?.0.parse().ok())
        .collect()
}

/// The number of the mutant in whose text column `column` (from 1) of a line lies.
pub(super) fn mutant_at(line: &str, column: usize) -> Option<usize> {
    let before: String = line.chars().take(column).collect();
    let (head, _) = before.rsplit_once("_u32")?;
    let digits = head.len() - head.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    head[head.len() - digits..].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mutant(number: usize, genre: &str, replacement: &str, line: usize, column: usize) -> Mutant {
        Mutant {
            number,
            name: String::new(),
            file: String::new(),
            genre: genre.to_owned(),
            replacement: replacement.to_owned(),
            at: LineColumn { line, column },
        }
    }

    #[test]
    fn mutants_become_arms() {
        let source = "const fn f(a: u8) -> bool {\n    !g(a + 1) && a < 3 // why\n}\n";
        let all = [
            mutant(1, "FnValue", "true", 2, 4),
            mutant(2, "UnaryOperator", "", 2, 4),
            mutant(3, "BinaryOperator", "-", 2, 9),
            mutant(4, "BinaryOperator", "||", 2, 14),
            mutant(5, "BinaryOperator", "<=", 2, 19),
        ];
        let text = switchable(source, &all.iter().collect::<Vec<_>>()).unwrap();
        assert_eq!(
            text,
            " fn f(a: u8) -> bool {\n    if crate::mutant() == 1_u32 { return true; } \
             (match crate::mutant() { 4_u32 => (!g(a + 1) || a < 3), _ => \
             ((match crate::mutant() { 2_u32 => (g(a + 1)), _ => (!g((match crate::mutant() { 3_u32 => (a - 1), _ => (a + 1) }))) }) && \
             (match crate::mutant() { 5_u32 => (a <= 3), _ => (a < 3) })) }) // why\n}\n"
        );
        assert!(syn::parse_file(&text).is_ok());
        let line = text.lines().nth(1).unwrap();
        assert_eq!(mutant_at(line, line.find("a - 1").unwrap()), Some(3));
        assert_eq!(mutant_at(line, 3), None);
    }

    #[test]
    fn arms_and_guards_are_switched() {
        let source = "fn f(a: u8) -> u8 {\n    match a {\n        1 => 2,\n        b if b > 4 => 3,\n        _ => 4,\n    }\n}\n";
        let all = [
            mutant(1, "MatchArm", "", 3, 8),
            mutant(2, "MatchArmGuard", "true", 4, 13),
            mutant(3, "BinaryOperator", "<", 4, 15),
        ];
        let text = switchable(source, &all.iter().collect::<Vec<_>>()).unwrap();
        assert!(text.contains("1 if crate::mutant() != 1_u32 => 2,"), "{text}");
        assert!(
            text.contains(
                "b if (match crate::mutant() { 2_u32 => (true), 3_u32 => (b < 4), _ => (b > 4) }) => 3,"
            ),
            "{text}"
        );
    }
}
