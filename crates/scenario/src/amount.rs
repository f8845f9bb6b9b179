//! Quantities outside scenario files, as for `--expect`: `1 Mbit/s`, `500 ms`, `3 packets`, `-3 dB`, `5 %`,
//! `0.9`.

use crate::diagnostic::shortened;
use crate::measure;
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

/// Splits an amount into its number and the name of its unit, which may be empty. The number is empty if the
/// text does not begin with one.
pub fn amount_parts(text: &str) -> (&str, &str) {
    let text = text.trim();
    let sign = usize::from(text.starts_with('-'));
    let (number, name) = split_unit(&text[sign..]);
    if number.is_empty() { ("", text) } else { (&text[..sign + number.len()], name) }
}

/// Parses an amount. Only numbers without a unit and decimal quantities may be negative.
///
/// # Errors
/// One line: the text is not a number, or the unit is unknown.
pub fn parse_amount(text: &str) -> Result<Amount, String> {
    let text = text.trim();
    let (number, name) = amount_parts(text);
    let decimals = || measure::ALL.into_iter().flat_map(|m| m.units);
    let signed = matches!(name, "" | "%") || decimals().any(|unit| unit.0 == name);
    let parsed = number.parse::<f64>().ok().filter(|value| value.is_finite());
    let Some(value) = parsed.filter(|_| signed || !number.starts_with('-')) else {
        let text = shortened(text, EXCERPT);
        return Err(format!("`{text}` is not a number with a unit: write it as 1 Mbit/s, 500 ms or 0.9"));
    };
    match name {
        "" => return Ok(Amount { value, dimension: Dimension::Bare }),
        "%" => return Ok(Amount { value: value / 100.0, dimension: Dimension::Bare }),
        _ => {}
    }
    for measure in measure::ALL {
        if let Some((_, scale)) = measure.units.iter().find(|unit| unit.0 == name) {
            let dimension = Dimension::Decimal(measure.units[0].0);
            return Ok(Amount { value: value * scale, dimension });
        }
    }
    let units = || [RATE, TIME, WINDOW, BUFFER].into_iter().flat_map(|q| q.units);
    let unit: &Unit = units().find(|u| u.name == name).ok_or_else(|| {
        let mut once: Vec<&str> = Vec::new();
        for name in units().filter(|u| u.listed).map(|u| u.name).chain(decimals().map(|u| u.0)) {
            if !once.contains(&name) {
                once.push(name);
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
    fn parts_of_an_amount() {
        for (text, parts) in [
            (" 1e-3Mbit/s ", ("1e-3", "Mbit/s")),
            ("-3 dB", ("-3", "dB")),
            ("0.9", ("0.9", "")),
            ("-", ("", "-")),
            ("fast", ("", "fast")),
        ] {
            assert_eq!(amount_parts(text), parts, "{text}");
        }
    }

    #[test]
    fn amounts_have_units() {
        for (text, value, measures) in [
            ("1.5 Mbit/s", 1.5e6, Dimension::Rate),
            ("500 ms", 0.5, Dimension::Time),
            ("2 kB", 2000.0, Dimension::Bytes),
            ("3 packets", 3.0, Dimension::Pieces),
            ("5 %", 0.05, Dimension::Bare),
            ("0.9", 0.9, Dimension::Bare),
            ("-3", -3.0, Dimension::Bare),
            ("-2.5 dB", -2.5, Dimension::Decimal("dB")),
            ("500 m", 0.5, Dimension::Decimal("km")),
        ] {
            assert_eq!(parse_amount(text), Ok(Amount { value, dimension: measures }), "{text}");
        }
        for text in ["", "fast", "-1 s", "1e999 s"] {
            assert!(parse_amount(text).unwrap_err().contains("not a number"), "{text}");
        }
        let error = parse_amount("1 parsec").unwrap_err();
        assert!(error.starts_with("unknown unit `parsec`; units: bit/s,"), "{error}");
        assert!(error.ends_with(", dB, deg, km, m, cm, 1/s, GHz, MHz, %"), "{error}");
    }
}
