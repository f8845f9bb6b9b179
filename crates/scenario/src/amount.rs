//! Quantities outside scenario files, as for `--expect`: `1 Mbit/s`, `500 ms`, `3 packets`, `5 %`, `0.9`.

use crate::quantity::{BUFFER, Dimension, RATE, TIME, Unit, WINDOW, split};

/// Dimension of an amount, and the unit of its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AmountUnit {
    /// In bit/s.
    Rate,
    /// In seconds.
    Time,
    /// In bytes.
    Bytes,
    /// In packets or segments.
    Pieces,
    /// A number without a unit, or a percentage as a fraction of 1.
    Bare,
}

/// A number with its dimension.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Amount {
    /// Value in the unit that [`AmountUnit`] names.
    pub value: f64,
    /// Dimension.
    pub measures: AmountUnit,
}

/// Parses an amount.
///
/// # Errors
/// One line: the text is not a number, or the unit is unknown.
pub fn amount(text: &str) -> Result<Amount, String> {
    let text = text.trim();
    let (number, name) = split(text);
    let Some(value) = number.parse::<f64>().ok().filter(|value| value.is_finite()) else {
        let text = cut(text);
        return Err(format!("`{text}` is not a number with a unit: write it as 1 Mbit/s, 500 ms or 0.9"));
    };
    match name {
        "" => return Ok(Amount { value, measures: AmountUnit::Bare }),
        "%" => return Ok(Amount { value: value / 100.0, measures: AmountUnit::Bare }),
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
        format!("unknown unit `{}`; units: {}, %", cut(name), once.join(", "))
    })?;
    let scale = unit.scale as f64;
    let (value, measures) = match unit.dimension {
        Dimension::Rate => (value * scale, AmountUnit::Rate),
        Dimension::Time => (value * scale / 1e9, AmountUnit::Time),
        Dimension::Bytes => (value * scale, AmountUnit::Bytes),
        Dimension::Pieces => (value, AmountUnit::Pieces),
    };
    Ok(Amount { value, measures })
}

fn cut(text: &str) -> String {
    text.chars().take(60).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_units() {
        for (text, value, measures) in [
            ("1.5 Mbit/s", 1.5e6, AmountUnit::Rate),
            ("500 ms", 0.5, AmountUnit::Time),
            ("2 kB", 2000.0, AmountUnit::Bytes),
            ("3 packets", 3.0, AmountUnit::Pieces),
            ("5 %", 0.05, AmountUnit::Bare),
            ("0.9", 0.9, AmountUnit::Bare),
        ] {
            assert_eq!(amount(text), Ok(Amount { value, measures }), "{text}");
        }
        for text in ["", "fast", "-1 s", "1e999 s"] {
            assert!(amount(text).unwrap_err().contains("not a number"), "{text}");
        }
        assert!(amount("1 parsec").unwrap_err().contains("unknown unit `parsec`; units: bit/s,"));
    }
}
