//! What a terminal can show. The locale decides, as for other programs: the character set of `LC_ALL`,
//! `LC_CTYPE` or `LANG`, the first that is not empty (locale(7)); without one it is ASCII.
//!
//! All text for people passes here; results for programs (JSON, TOML) are UTF-8 in every locale.

use std::borrow::Cow;
use std::env;
use std::io::{self, IsTerminal as _};
use std::sync::OnceLock;

/// Width of text where standard output is no terminal, in columns.
const COLUMNS: usize = 100;

/// True if the locale's character set is UTF-8.
pub(crate) fn is_utf8() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER
        .get_or_init(|| decides(["LC_ALL", "LC_CTYPE", "LANG"].map(env::var).map(Result::unwrap_or_default)))
}

fn decides(variables: [String; 3]) -> bool {
    let set = variables.into_iter().find(|value| !value.is_empty()).unwrap_or_default().to_ascii_lowercase();
    set.contains("utf-8") || set.contains("utf8")
}

/// Text as the terminal can show it.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    if is_utf8() || text.is_ascii() { text.into() } else { ascii(text).into() }
}

/// Columns of standard output, or those of text in a file.
pub(crate) fn columns() -> usize {
    let size = || ratatui::crossterm::terminal::size().ok().filter(|size| size.0 > 0);
    io::stdout().is_terminal().then(size).flatten().map_or(COLUMNS, |(columns, _)| columns.into())
}

/// Replaces what is not ASCII by what looks or reads alike, or `?`.
fn ascii(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut raised = false;
    // as wide as before, so that columns stay below each other
    for c in text.replace(" \u{b1} ", "+/-").chars() {
        let exponent = superscript(c);
        if exponent.is_some() && !raised {
            out.push('^');
        }
        raised = exponent.is_some();
        match exponent.unwrap_or(c) {
            c if c.is_ascii() => out.push(c),
            other => out.push_str(alike(other)),
        }
    }
    out
}

fn superscript(c: char) -> Option<char> {
    const DIGITS: &str = "\u{2070}\u{b9}\u{b2}\u{b3}\u{2074}\u{2075}\u{2076}\u{2077}\u{2078}\u{2079}";
    if c == '\u{207b}' {
        return Some('-');
    }
    let digit = DIGITS.chars().position(|d| d == c)?;
    char::from_digit(digit as u32, 10)
}

fn alike(c: char) -> &'static str {
    match c {
        // blocks of bars and strips, from empty to full
        '\u{2581}' | '\u{2591}' | '\u{b7}' => ".",
        '\u{2582}' => "_",
        '\u{2583}' | '\u{2592}' => ":",
        '\u{2585}' => "=",
        '\u{2587}' => "*",
        '\u{2588}'..='\u{258f}' => "#",
        '\u{2584}' | '\u{2500}' | '\u{2501}' | '\u{2010}'..='\u{2013}' | '\u{2212}' => "-",
        '\u{2502}' | '\u{2503}' => "|",
        '\u{2586}' | '\u{2593}' | '\u{2504}'..='\u{257f}' => "+",
        '\u{2014}' => "--",
        '\u{b1}' => "+/-",
        '\u{d7}' => "x",
        '\u{b5}' | '\u{3bc}' => "u",
        '\u{2026}' => "...",
        '\u{2018}' | '\u{2019}' => "'",
        '\u{201c}' | '\u{201d}' => "\"",
        '\u{2190}' => "<-",
        '\u{2192}' => "->",
        '\u{2264}' => "<=",
        '\u{2265}' => ">=",
        '\u{a0}' | '\u{202f}' | '\u{2009}' => " ",
        '\u{b0}' => " deg",
        _ => "?",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_variable_that_is_set_decides() {
        for (variables, utf8) in [
            (["", "", ""], false),
            (["C", "en_US.UTF-8", "en_US.UTF-8"], false),
            (["", "de_DE.utf8", "C"], true),
            (["C.UTF-8", "", ""], true),
            (["", "", "en_US.ISO-8859-1"], false),
            (["POSIX", "", ""], false),
        ] {
            assert_eq!(decides(variables.map(str::to_owned)), utf8, "{variables:?}");
        }
    }

    #[test]
    fn text_is_ascii_and_as_wide_as_before() {
        for (text, plain) in [
            ("1.23 \u{b1} 0.05   next", "1.23+/-0.05   next"),
            ("10\u{207b}\u{b9}\u{b2} and 3\u{d7}10\u{2077}", "10^-12 and 3x10^7"),
            ("\u{2588}\u{2588}\u{2591}", "##."),
            ("\u{2212}5 \u{b5}s \u{2026}", "-5 us ..."),
            ("caf\u{e9}", "caf?"),
        ] {
            assert_eq!(ascii(text), plain);
            assert!(ascii(text).is_ascii());
        }
        let bars: String = ('\u{2500}'..='\u{259f}').collect();
        assert!(ascii(&bars).is_ascii() && ascii(&bars).chars().count() == bars.chars().count());
    }
}
