//! Text: escaping, widths and line breaks. Widths are generous estimates, because fonts differ.

use core::fmt;

/// Font size in user units.
pub(crate) const SIZE: f64 = 13.0;

/// Escapes text for the content of an element or attribute. Characters not allowed in XML become spaces.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// Estimated width of a line of text in user units.
pub(crate) fn width(text: &str) -> f64 {
    let ems: f64 = text
        .chars()
        .map(|c| match c {
            'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' => 0.32,
            ' ' | 'f' | 't' | 'r' | '(' | ')' | '/' | 'I' | '-' => 0.42,
            'm' | 'w' | 'M' | 'W' | '%' => 0.92,
            'A'..='Z' | '×' | '−' | '=' => 0.7,
            c if c as u32 >= 0x2e80 => 1.05,
            _ => 0.62,
        })
        .sum();
    ems * SIZE
}

/// Breaks text at spaces into lines no wider than `most`. Wider words are split.
pub(crate) fn lines(text: &str, most: f64) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let wide = width(word);
        if !line.is_empty() && width(&line) + wide + 6.0 > most {
            lines.push(core::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        for c in word.chars() {
            if wide > most && width(&line) + SIZE > most && !line.is_empty() {
                lines.push(core::mem::take(&mut line));
            }
            line.push(c);
        }
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

/// Truncates text to the width `most`, with an ellipsis.
pub(crate) fn cut(text: &str, most: f64) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let mut out = String::new();
    for c in text.chars() {
        if width(&out) + 2.0 * SIZE > most {
            break;
        }
        out.push(c);
    }
    out.push('…');
    out
}

/// A coordinate, written with at most one decimal.
pub(crate) struct Coordinate(pub(crate) f64);

impl fmt::Display for Coordinate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // whole tenths have no negative zero
        let tenths = libm::round(self.0 * 10.0) as i64;
        write!(f, "{}", tenths as f64 / 10.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_break_out_of_the_markup() {
        assert_eq!(escape("<a b='\"&\u{7}"), "&lt;a b=&#39;&quot;&amp; ");
    }

    #[test]
    fn long_text_is_broken_and_long_words_too() {
        let broken = lines("several words that need two lines", 120.0);
        assert!(broken.len() >= 2 && broken.iter().all(|l| width(l) <= 120.0), "{broken:?}");
        assert_eq!(broken.join(" "), "several words that need two lines");
        let whole = lines(&"word of ".repeat(40), 150.0);
        assert!(whole.iter().flat_map(|l| l.split(' ')).all(|w| w == "word" || w == "of"), "{whole:?}");
        let word = "x".repeat(100);
        assert_eq!(lines(&word, 100.0).concat(), word);
        assert!(width(&cut(&word, 100.0)) <= 100.0);
    }

    #[test]
    fn coordinates_are_short() {
        assert_eq!([1.0, -0.04, -1.25, 7.14].map(|v| Coordinate(v).to_string()), ["1", "0", "-1.3", "7.1"]);
    }
}
