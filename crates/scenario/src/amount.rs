//! Quantities outside scenario files, as for `--expect`: `1 Mbit/s`, `500 ms`, `3 packets`, `5 %`, `0.9`.

use crate::diagnostic::shortened;
use crate::quantity::{BUFFER, Dimension, RATE, TIME, Unit, WINDOW, split_unit};

/// Maximum length of a quoted text in an error, in characters.
const EXCERPT: usize = 60;

/// A number with its dimension.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Amount {
    /// Value in the unit that [`Dimension`] names.
    pub value: f64,
    /// Dimension.
    pub dimension: Dimension,
}

/// Parses an amount.
///
/// # Errors
/// One line: the text is not a number, or the unit is unknown.
pub fn parse_amount(text: &str) -> Result<Amount, String> {
    let text = text.trim();
    let (number, name) = split_unit(text);
    let Some(value) = number.parse::<f64>().ok().filter(|value| value.is_finite()) else {
        let text = shortened(text, EXCERPT);
        return Err(format!("`{text}` is not a number with a unit: write it as 1 Mbit/s, 500 ms or 0.9"));
    };
    match name {
        "" => return Ok(Amount { value, dimension: Dimension::Bare }),
        "%" => return Ok(Amount { value: value / 100.0, dimension: Dimension::Bare }),
        _ => {}
    }
    let units = || [RATE, TIME, WINDOW, BUFFER].into_iter().flat_map(|q| q.units);
    let unit: &Unit = units().find(|u| u.name == name).ok_or_else(|| {
        let mut once: Vec<&str> = Vec::new();
        for unit in units().filter(|u| u.listed) {
            if !once.contains(&unit.name) {
                once.push(unit.name);
            }
        }
        format!("unknown unit `{}`; units: {}, %", shortened(name, EXCERPT), once.join(", "))
    })?;
    let value = value * unit.scale as f64;
    let value = if unit.dimension == Dimension::Time { value / 1e9 } else { value };
    Ok(Amount { value, dimension: unit.dimension })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_units() {
        for (text, value, measures) in [
            ("1.5 Mbit/s", 1.5e6, Dimension::Rate),
            ("500 ms", 0.5, Dimension::Time),
            ("2 kB", 2000.0, Dimension::Bytes),
            ("3 packets", 3.0, Dimension::Pieces),
            ("5 %", 0.05, Dimension::Bare),
            ("0.9", 0.9, Dimension::Bare),
        ] {
            assert_eq!(parse_amount(text), Ok(Amount { value, dimension: measures }), "{text}");
        }
        for text in ["", "fast", "-1 s", "1e999 s"] {
            assert!(parse_amount(text).unwrap_err().contains("not a number"), "{text}");
        }
        assert!(parse_amount("1 parsec").unwrap_err().contains("unknown unit `parsec`; units: bit/s,"));
    }
}
