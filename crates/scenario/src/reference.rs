//! Generates the reference page of the manual from the tables of keys.

use crate::form::{Form, Keys as _, TableInfo};
use crate::keys::FileKeys;
use crate::measure;
use crate::quantity;
use crate::schema::{paragraph, plain_title};
use core::fmt::Write as _;

const HEAD: &str = include_str!("reference.md");

/// Returns the reference page of scenario files in Markdown, ending in a newline.
pub fn reference() -> String {
    page(HEAD, FileKeys::REF)
}

/// Returns a page: `head` with the units in place of `@UNITS@`, then `root` and all tables reachable from it.
pub(crate) fn page(head: &str, root: &'static TableInfo) -> String {
    let quantities = [quantity::RATE, quantity::TIME, quantity::SIZE, quantity::WINDOW, quantity::BUFFER];
    let row = |what: &str, units: Vec<&str>, example: &str| {
        format!("| {} | `{}` | `\"{example}\"` |", plain_what(what), units.join("` `"))
    };
    let exact = quantities.iter().map(|q| row(q.what, q.listed().collect(), q.example));
    let decimal = measure::ALL.iter().map(|m| row(m.what, m.units.iter().map(|u| u.0).collect(), m.example));
    let mut out = head.replace("@UNITS@", &exact.chain(decimal).collect::<Vec<_>>().join("\n"));
    let mut tables = Vec::new();
    visit(root, &mut tables);
    for info in tables {
        write_table(&mut out, info);
    }
    out
}

/// Adds a table and all tables reachable from it to `seen`, each once.
fn visit(info: &'static TableInfo, seen: &mut Vec<&'static TableInfo>) {
    if seen.iter().any(|s| s.title == info.title) {
        return;
    }
    seen.push(info);
    // Required keys come last, so that the flows follow the network that they use.
    let keys = |required: bool| (info.keys)().iter().filter(move |k| k.default.is_none() == required);
    keys(false).chain(keys(true)).for_each(|key| visit_form(&key.form, seen));
    for included in info.includes {
        visit(included, seen);
    }
}

fn visit_form(form: &Form, seen: &mut Vec<&'static TableInfo>) {
    match form {
        Form::Table(info) | Form::List(info) | Form::OpenList(info) => visit(info, seen),
        Form::Either(forms) => forms.iter().for_each(|f| visit_form(f, seen)),
        _ => {}
    }
}

fn write_table(out: &mut String, info: &'static TableInfo) {
    let heading = if info.title.starts_with('[') {
        format!("`{}`", info.title)
    } else {
        let title = plain_title(info);
        if title == "file" { "Top of the file".into() } else { format!("`{title}`") }
    };
    let _ = write!(out, "\n## {heading}\n\n{}\n", paragraph(info.doc));
    let keys = (info.keys)();
    if !keys.is_empty() {
        out.push_str("\n| key | value | default | meaning |\n|---|---|---|---|\n");
    }
    for key in keys {
        let default = key.default.unwrap_or("must be given");
        let _ =
            writeln!(out, "| `{}` | {} | {default} | {} |", key.name, form(&key.form), paragraph(key.doc));
    }
    for included in info.includes {
        let _ = write!(out, "\nAnd every key of {}.\n", link(included));
    }
    if let Some(below) = info.below {
        let _ = write!(out, "\n{}", below());
    }
}

fn link(info: &TableInfo) -> String {
    let title = plain_title(info);
    format!("[`{title}`](#{title})")
}

fn plain_what(what: &str) -> &str {
    what.strip_prefix("a ").or_else(|| what.strip_prefix("an ")).unwrap_or(what)
}

/// Returns a short description of the values that a key takes.
pub(crate) fn form(form: &Form) -> String {
    match form {
        Form::Fixed(name, _) | Form::Scalar(name, _) => (*name).into(),
        Form::Name => "name".into(),
        Form::Whole(least, u64::MAX) => format!("whole number from {least}"),
        Form::Whole(least, most) => format!("whole number, {least} to {most}"),
        Form::Quantity(quantity) => plain_what(quantity.what).into(),
        Form::Words(words) => words.iter().map(|w| format!("`\"{w}\"`")).collect::<Vec<_>>().join(", "),
        Form::Table(info) => format!("table, see {}", link(info)),
        Form::List(info) | Form::OpenList(info) => format!("tables, see {}", link(info)),
        Form::Measure(measure) => plain_what(measure.what).into(),
        Form::Pairs(a, b) => format!("list of `[`{}`, `{}`]`", self::form(a), self::form(b)),
        Form::Range(of) => format!("{0}, or `[`lowest`, `highest`]`", self::form(of)),
        Form::Either(forms) => forms.iter().map(self::form).collect::<Vec<_>>().join(", or "),
        Form::Special(special) => special.what.into(),
        Form::Many(of) => format!("{}, or a list", self::form(of)),
    }
}
