//! Numbers with units, read exactly: `"1.544 Mbit/s"` becomes 1544000 without floating point.

use crate::diagnostic::{Fault, Result, bail, nearest};
use crate::scalars::excerpt;
use crate::value::Value;

/// A unit and the number of base units (bit/s, ns, byte, piece) in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unit {
    pub(crate) name: &'static str,
    pub(crate) scale: u64,
    pub(crate) dimension: Dimension,
    /// False for spellings that are accepted but not shown in documentation and errors.
    pub(crate) listed: bool,
}

/// What a quantity measures, and the unit of an [`Amount`](crate::Amount) of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dimension {
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
    /// A decimal quantity in this unit: dB, deg, km, m, 1/s or GHz.
    Decimal(&'static str),
}

/// A kind of quantity: its units and its range in base units.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quantity {
    /// Name with its article: `a rate`.
    pub(crate) what: &'static str,
    pub(crate) example: &'static str,
    pub(crate) units: &'static [Unit],
    /// Maximum value, and its usual spelling.
    pub(crate) most: (u64, &'static str),
    pub(crate) positive: bool,
}

const fn unit(name: &'static str, scale: u64, dimension: Dimension) -> Unit {
    Unit { name, scale, dimension, listed: true }
}

const fn unlisted_unit(name: &'static str, scale: u64, dimension: Dimension) -> Unit {
    Unit { name, scale, dimension, listed: false }
}

const RATES: [Unit; 8] = [
    unit("bit/s", 1, Dimension::Rate),
    unit("kbit/s", 1_000, Dimension::Rate),
    unit("Mbit/s", 1_000_000, Dimension::Rate),
    unit("Gbit/s", 1_000_000_000, Dimension::Rate),
    unlisted_unit("bps", 1, Dimension::Rate),
    unlisted_unit("kbps", 1_000, Dimension::Rate),
    unlisted_unit("Mbps", 1_000_000, Dimension::Rate),
    unlisted_unit("Gbps", 1_000_000_000, Dimension::Rate),
];
const TIMES: [Unit; 6] = [
    unit("ns", 1, Dimension::Time),
    unit("us", 1_000, Dimension::Time),
    unit("ms", 1_000_000, Dimension::Time),
    unit("s", 1_000_000_000, Dimension::Time),
    unit("min", 60_000_000_000, Dimension::Time),
    unit("h", 3_600_000_000_000, Dimension::Time),
];
const BYTES: [Unit; 7] = [
    unit("B", 1, Dimension::Bytes),
    unit("kB", 1_000, Dimension::Bytes),
    unit("MB", 1_000_000, Dimension::Bytes),
    unit("GB", 1_000_000_000, Dimension::Bytes),
    unit("KiB", 1 << 10, Dimension::Bytes),
    unit("MiB", 1 << 20, Dimension::Bytes),
    unit("GiB", 1 << 30, Dimension::Bytes),
];
const WINDOWS: [Unit; 9] = with_pieces("segments", "segment");
const BUFFERS: [Unit; 9] = with_pieces("packets", "packet");

const fn with_pieces(many: &'static str, one: &'static str) -> [Unit; 9] {
    let [b, kb, mb, gb, kib, mib, gib] = BYTES;
    [b, kb, mb, gb, kib, mib, gib, unit(many, 1, Dimension::Pieces), unlisted_unit(one, 1, Dimension::Pieces)]
}

/// One year in nanoseconds, the longest time in a scenario.
pub(crate) const YEAR: u64 = 365 * 86_400 * 1_000_000_000;

pub(crate) const RATE: Quantity = Quantity {
    what: "a rate",
    example: "10 Mbit/s",
    units: &RATES,
    most: (100_000_000_000_000, "100000 Gbit/s"),
    positive: true,
};
pub(crate) const TIME: Quantity =
    Quantity { what: "a time", example: "500 ms", units: &TIMES, most: (YEAR, "8760 h"), positive: false };
pub(crate) const SIZE: Quantity = Quantity {
    what: "a size",
    example: "50 kB",
    units: &BYTES,
    most: (1 << 50, "1048576 GiB"),
    positive: false,
};
pub(crate) const WINDOW: Quantity =
    Quantity { what: "a window", example: "64 segments", units: &WINDOWS, positive: true, ..SIZE };
pub(crate) const BUFFER: Quantity =
    Quantity { what: "a buffer", example: "50 packets", units: &BUFFERS, ..SIZE };

impl Quantity {
    /// Returns the names of the units that documentation and errors show.
    pub(crate) fn listed(&self) -> impl Iterator<Item = &'static str> {
        self.units.iter().filter(|u| u.listed).map(|u| u.name)
    }

    /// Reads `value` and returns the amount in base units and its dimension.
    pub(crate) fn read(&self, value: &Value, key: &str) -> Result<(u64, Dimension)> {
        let refuse = |message: String, label: &str| {
            let units: Vec<_> = self.listed().collect();
            Fault::new(value.span, message, label).help(format!("help: units: {}", units.join(", ")))
        };
        let text = &*value.number_text();
        let (number, name) = split_unit(text);
        if number.is_empty() {
            return Err(match text.strip_prefix('-') {
                Some(_) => Fault::new(value.span, format!("`{key}` cannot be negative"), ""),
                None => refuse(
                    format!("`{key}` is not {}", self.what),
                    &format!("write \"{}\" or the like", self.example),
                ),
            });
        }
        if name.is_empty() {
            let unit = self.example.split(' ').next_back().unwrap_or("");
            let label = format!("write \"{} {unit}\" if that is meant", excerpt(number));
            return Err(refuse(format!("`{key}` needs a unit"), &label));
        }
        let Some(unit) = self.units.iter().find(|u| u.name == name) else {
            let message = format!("`{key}` has an unknown unit, `{}`", excerpt(name));
            return Err(refuse(message, &self.unit_hint(&excerpt(number), name)));
        };
        let (most, most_text) = self.most;
        let amount = match exact(number, unit.scale) {
            Ok(amount) if amount <= most => amount,
            Ok(_) | Err(ConversionError::TooLarge) => {
                bail!(value.span, "`{key}` is too large", "the limit is {most_text}");
            }
            Err(ConversionError::Fraction) => {
                let base = match unit.dimension {
                    Dimension::Time => "nanoseconds",
                    Dimension::Rate => "bit/s",
                    Dimension::Bytes | Dimension::Pieces | Dimension::Bare | Dimension::Decimal(_) => {
                        "bytes or pieces"
                    }
                };
                bail!(value.span, "`{key}` is not a whole number of {base}");
            }
        };
        if amount == 0 && self.positive {
            return Err(Fault::zero(value.span, key));
        }
        Ok((amount, unit.dimension))
    }

    /// Returns the label of the error for an unknown unit.
    fn unit_hint(&self, number: &str, name: &str) -> String {
        if let Some(hint) = ambiguous(self.units[0].dimension, number, name) {
            return hint;
        }
        let elsewhere = [&RATE, &TIME, &WINDOW, &BUFFER];
        if let Some(unit) = elsewhere.iter().flat_map(|q| q.units).find(|u| u.name == name) {
            return match unit.dimension {
                Dimension::Rate => "this is a rate".into(),
                Dimension::Time => "this is a time".into(),
                Dimension::Bytes => "this is a size".into(),
                Dimension::Pieces | Dimension::Bare | Dimension::Decimal(_) => {
                    "windows are counted in segments, buffers in packets".into()
                }
            };
        }
        if let Some(largest) = self.with_larger_prefix(name) {
            return format!("the largest unit is {largest}");
        }
        nearest(name, self.listed())
            .map_or_else(String::new, |near| format!("did you mean \"{number} {near}\"?"))
    }

    /// Returns the largest unit of this kind if `name` is one with a larger prefix: `Gbit/s` for `Tbit/s`.
    fn with_larger_prefix(&self, name: &str) -> Option<&'static str> {
        let rest = name.strip_prefix(['T', 'P', 'E'])?;
        self.units.iter().map(|u| u.name).find(|known| known.strip_prefix('G') == Some(rest))
    }
}

/// Returns a hint for ambiguous or informal unit names.
fn ambiguous(dimension: Dimension, number: &str, name: &str) -> Option<String> {
    let hint = match (dimension, name) {
        (Dimension::Rate, "B/s" | "kB/s" | "MB/s" | "GB/s" | "kBps" | "MBps" | "GBps") => {
            "rates are in bits: 1 MB/s is \"8 Mbit/s\"".to_owned()
        }
        (Dimension::Rate, "M" | "m" | "Mb" | "mb" | "MB" | "mB" | "Mbit" | "mbit" | "mbps") => {
            format!("it could be megabits or megabytes: write \"{number} Mbit/s\" for 10^6 bit/s")
        }
        (Dimension::Rate, "K" | "k" | "Kb" | "kb" | "KB" | "kB" | "kbit" | "Kbit" | "Kbps") => {
            format!("it could be kilobits or kilobytes: write \"{number} kbit/s\" for 1000 bit/s")
        }
        (Dimension::Bytes, "M" | "m" | "Mb" | "mb" | "Mbit" | "mB") => {
            "it could be megabits or megabytes: write MB (10^6 bytes) or MiB (2^20 bytes)".into()
        }
        (Dimension::Bytes, "G" | "g" | "Gb" | "gb" | "Gbit" | "gB") => {
            "it could be gigabits or gigabytes: write GB (10^9 bytes) or GiB (2^30 bytes)".into()
        }
        (Dimension::Bytes, "KB" | "Kb" | "kb" | "kbit" | "K" | "k") => {
            "it is ambiguous: write kB (1000 bytes) or KiB (1024 bytes)".into()
        }
        (Dimension::Time, "m" | "M") => "write ms for milliseconds, min for minutes".into(),
        (Dimension::Time, "sec" | "secs" | "second" | "seconds") => format!("write \"{number} s\""),
        (Dimension::Time, "msec" | "millis") => format!("write \"{number} ms\""),
        (Dimension::Time, "usec" | "µs" | "μs") => format!("write \"{number} us\""),
        _ => return None,
    };
    Some(hint)
}

/// Why a number cannot be expressed in its base unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConversionError {
    TooLarge,
    Fraction,
}

/// Splits `"1.5e3 ms"` into `("1.5e3", "ms")`. The number is empty if there is none.
pub(crate) fn split_unit(text: &str) -> (&str, &str) {
    let bytes = text.as_bytes();
    let digits = |from: usize| from + bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    let mut end = digits(0);
    if end == 0 {
        return ("", text);
    }
    if bytes.get(end) == Some(&b'.') && digits(end + 1) > end + 1 {
        end = digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let from = end + 1 + sign;
        if from < bytes.len() && digits(from) > from {
            end = digits(from);
        }
    }
    (&text[..end], text[end..].trim_start())
}

/// Returns `number * scale`, which must be a whole number. `number` is the first part of a [`split_unit`].
pub(crate) fn exact(number: &str, scale: u64) -> core::result::Result<u64, ConversionError> {
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let fraction = fraction.trim_end_matches('0');
    let mut digits = 0_u128;
    for digit in whole.bytes().chain(fraction.bytes()) {
        digits = digits
            .checked_mul(10)
            .and_then(|d| d.checked_add(u128::from(digit - b'0')))
            .filter(|d| *d < 1 << 96)
            .ok_or(ConversionError::TooLarge)?;
    }
    if digits == 0 {
        return Ok(0);
    }
    // An exponent that does not fit an i32 is out of any range.
    let exponent: i32 = exponent.parse().map_err(|_| ConversionError::TooLarge)?;
    let shift = i64::from(exponent) - i64::try_from(fraction.len()).map_err(|_| ConversionError::TooLarge)?;
    let mut product = digits.checked_mul(u128::from(scale)).ok_or(ConversionError::Fraction)?;
    for _ in 0..shift.unsigned_abs().min(64) {
        product = if shift > 0 {
            product.checked_mul(10).ok_or(ConversionError::TooLarge)?
        } else if product.is_multiple_of(10) {
            product / 10
        } else {
            return Err(ConversionError::Fraction);
        };
    }
    u64::try_from(product).map_err(|_| ConversionError::TooLarge)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact() {
        for (number, scale, wanted) in [
            ("1.544", 1_000_000, Ok(1_544_000)),
            ("0.9", 1_000_000, Ok(900_000)),
            ("585", 1_000_000, Ok(585_000_000)),
            ("1e6", 1, Ok(1_000_000)),
            ("15e-1", 10, Ok(15)),
            ("0.30000000000000", 10, Ok(3)),
            ("0", 7, Ok(0)),
            ("0e999999999999", 7, Ok(0)),
            ("0.5", 1, Err(ConversionError::Fraction)),
            ("1e-70", 1, Err(ConversionError::Fraction)),
            ("1e70", 1, Err(ConversionError::TooLarge)),
            ("1e99999999999", 1, Err(ConversionError::TooLarge)),
            ("99999999999999999999999999999999999999999999", 1, Err(ConversionError::TooLarge)),
        ] {
            assert_eq!(exact(number, scale), wanted, "{number} * {scale}");
        }
    }

    #[test]
    fn numbers_and_units_part() {
        for (text, wanted) in [
            ("10 Mbit/s", ("10", "Mbit/s")),
            ("10Mbit/s", ("10", "Mbit/s")),
            ("1.5e3 ms", ("1.5e3", "ms")),
            ("3 EB", ("3", "EB")),
            ("3EB", ("3", "EB")),
            ("3e", ("3", "e")),
            ("3.", ("3", ".")),
            ("", ("", "")),
            ("ms", ("", "ms")),
        ] {
            assert_eq!(split_unit(text), wanted, "{text}");
        }
    }
}
