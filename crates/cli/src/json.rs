//! Writes JSON to standard output as it is made: a report of a hundred thousand flows is never there as text.

use crate::outcome::{Failure, printed};
use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use std::io::{self, BufWriter, Write};

/// What is written at once.
const CHUNK: usize = 1 << 16;
/// A comma, the end of a line, and the most that begins the next one; what lies deeper is indented in parts.
const LINE: &[u8] = b",\n                                ";
/// How far it can indent.
const DEEPEST: usize = (LINE.len() - 2) / 2;

/// Prints a value as pretty JSON: the same bytes as [`serde_json::to_string_pretty`].
pub(crate) fn print(value: &impl Serialize) -> Result<(), Failure> {
    let mut out = BufWriter::with_capacity(CHUNK, io::stdout().lock());
    printed(write(value, &mut out).and_then(|()| out.flush()))
}

fn write(value: &impl Serialize, mut out: impl Write) -> io::Result<()> {
    value.serialize(&mut Serializer::with_formatter(&mut out, Pretty::default()))?;
    out.write_all(b"\n")
}

/// The layout of [`serde_json::ser::PrettyFormatter`], which begins a line with a write for each level of
/// depth; this one does it with one.
#[derive(Default)]
struct Pretty {
    depth: usize,
    has_value: bool,
}

impl Pretty {
    fn begin<W: ?Sized + Write>(&mut self, out: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth += 1;
        self.has_value = false;
        out.write_all(bracket)
    }

    fn end<W: ?Sized + Write>(&mut self, out: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth -= 1;
        if self.has_value {
            self.line(out, true)?;
        }
        out.write_all(bracket)
    }

    /// Ends a line, with a comma if something came before, and begins the next one.
    fn line<W: ?Sized + Write>(&self, out: &mut W, is_first: bool) -> io::Result<()> {
        let depth = self.depth.min(DEEPEST);
        out.write_all(&LINE[usize::from(is_first)..2 + 2 * depth])?;
        (depth..self.depth).try_for_each(|_| out.write_all(b"  "))
    }
}

impl Formatter for Pretty {
    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.begin(out, b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.end(out, b"]")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.line(out, first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.has_value = true;
        Ok(())
    }

    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.begin(out, b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.end(out, b"}")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.line(out, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.has_value = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn written(value: &Value) -> String {
        let mut out = Vec::new();
        write(value, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_bytes_are_those_of_serde_json() {
        let plain = json!({
            "empty": [{}, [], [[]], {"a": {}}, ""],
            "text": "quotes \" and \u{7} and \u{1f6f0}",
            "numbers": [0, -1, 0.1, 1e300, null, true],
            "nested": {"a": [{"b": [1, [2, 3], {"c": []}]}, 4]},
        });
        // deeper than one line's beginning can indent
        let deep = (0..3 * DEEPEST).fold(plain.clone(), |inner, n| json!({"n": n, "inner": [inner, n]}));
        for value in [plain, deep, json!(1), json!([]), json!({})] {
            assert_eq!(written(&value), serde_json::to_string_pretty(&value).unwrap() + "\n");
        }
    }
}
