//! Quantities outside scenario files, as for `--expect`: `1 Mbit/s`, `500 ms`, `3 packets`, `5 %`, `0.9`.

use crate::quantity::{BUFFER, Dimension, RATE, TIME, Unit, WINDOW, split};

/// Dimension of an amount, and the unit of its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measures {
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
    /// Value in the unit that [`Measures`] names.
    pub value: f64,
    /// Dimension.
    pub measures: Measures,
}

/// Parses an amount.
///
/// # Errors
/// One line: the text is not a number, or the unit is unknown.
pub fn amount(text: &str) -> Result<Amount, String> {
    let text = text.trim();
    let (number, name) = split(text);
    let value: f64 = match number.parse() {
        Ok(value) if f64::is_finite(value) => value,
        _ => {
            return Err(format!(
                "`{}` is not a number with a unit: write it as 1 Mbit/s, 500 ms or 0.9",
                cut(text)
            ));
        }
    };
    let percent = match name {
        "" => Some(1.0),
        "%" => Some(100.0),
        _ => None,
    };
    if let Some(whole) = percent {
        return Ok(Amount { value: value / whole, measures: Measures::Bare });
    }
    let units = || [RATE, TIME, WINDOW, BUFFER].into_iter().flat_map(|q| q.units);
    let unit: &Unit = units().find(|u| u.name == name).ok_or_else(|| {
        let listed: Vec<&str> = units().filter(|u| u.listed).map(|u| u.name).collect();
        let mut once: Vec<&str> = Vec::new();
        for name in listed {
            if !once.contains(&name) {
                once.push(name);
            }
        }
        format!("unknown unit `{}`; units: {}, %", cut(name), once.join(", "))
    })?;
    let scale = unit.scale as f64;
    let (value, measures) = match unit.dimension {
        Dimension::Rate => (value * scale, Measures::Rate),
        Dimension::Time => (value * scale / 1e9, Measures::Time),
        Dimension::Bytes => (value * scale, Measures::Bytes),
        Dimension::Pieces => (value, Measures::Pieces),
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
            ("1.5 Mbit/s", 1.5e6, Measures::Rate),
            ("500 ms", 0.5, Measures::Time),
            ("2 kB", 2000.0, Measures::Bytes),
            ("3 packets", 3.0, Measures::Pieces),
            ("5 %", 0.05, Measures::Bare),
            ("0.9", 0.9, Measures::Bare),
        ] {
            assert_eq!(amount(text), Ok(Amount { value, measures }), "{text}");
        }
        for text in ["", "fast", "-1 s", "1e999 s"] {
            assert!(amount(text).unwrap_err().contains("not a number"), "{text}");
        }
        assert!(amount("1 parsec").unwrap_err().contains("unknown unit `parsec`; units: bit/s,"));
    }
}
