//! Values with the digits that are known.

use crate::table::CellStatistics;

/// Most digits of a value.
const DIGITS: i32 = 6;
/// Half-widths below this share of the mean are not seen in these digits. Many are only the rounding of sums.
const NO_WIDTH: f64 = 1e-6;
/// Digits of a value without an interval.
const DIGITS_WITHOUT_INTERVAL: i32 = 4;
/// Powers of ten of the first digit that are written without an exponent.
const PLAIN: core::ops::Range<i32> = -3..7;

/// Formats `1.234 ± 0.056`, with two digits of the half-width and at most six of the mean. A value of a
/// single run has four digits.
pub(crate) fn mean_and_half_width(figure: &CellStatistics, scale: f64) -> String {
    let Some(mean) = figure.mean.map(|m| m * scale) else { return "no value".to_owned() };
    let Some(half) = figure.half_width.map(|w| w * scale) else {
        return with_digits(mean, DIGITS_WITHOUT_INTERVAL);
    };
    if half.is_nan() || half <= NO_WIDTH * mean.abs() {
        return format!("{} ± 0", rounded(mean));
    }
    let largest = exponent(mean.abs().max(half));
    let step = (exponent(half) - 1).max(largest - (DIGITS - 1));
    if PLAIN.contains(&largest) {
        return format!("{} ± {}", at_step(mean, step), at_step(half, step));
    }
    let [mean, half] = [mean, half].map(|v| at_step(v / power_of_ten(largest), step - largest));
    format!("({mean} ± {half})e{largest}")
}

/// Formats six digits without trailing zeros.
pub fn rounded(value: f64) -> String {
    with_digits(value, DIGITS)
}

/// Formats at most so many digits without trailing zeros; whole numbers in full.
fn with_digits(value: f64, digits: i32) -> String {
    let largest = exponent(value);
    if !PLAIN.contains(&largest) && value != 0.0 {
        let places = (digits - 1).max(0) as usize;
        let text = format!("{value:.places$e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let mantissa = mantissa.trim_end_matches('0').trim_end_matches('.');
        return format!("{mantissa}e{exponent}");
    }
    bentpipe_report::decimals(value, (digits - 1 - largest).max(0) as usize)
}

/// Formats a value rounded to ten to the power of `step`. Zero has no sign.
pub(crate) fn at_step(value: f64, step: i32) -> String {
    let text = if step > 0 {
        let step = power_of_ten(step);
        format!("{:.0}", (value / step).round() * step)
    } else {
        format!("{value:.places$}", places = step.unsigned_abs() as usize)
    };
    let is_zero = text.parse() == Ok(0.0);
    if is_zero { text.trim_start_matches('-').to_owned() } else { text }
}

/// The power of ten of the first digit; 0 for zero and for what is no number.
pub(crate) fn exponent(value: f64) -> i32 {
    let text = format!("{value:e}");
    text.split_once('e').and_then(|(_, e)| e.parse().ok()).unwrap_or(0)
}

fn power_of_ten(exponent: i32) -> f64 {
    // exact, unlike products of ten
    format!("1e{exponent}").parse().unwrap_or(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_rounded_to_what_is_known() {
        let figure = |mean: f64, half_width| CellStatistics { mean: Some(mean), half_width, n: 5 };
        for (mean, width, text) in [
            (1.234_567, Some(0.056_7), "1.235 ± 0.057"),
            (1_234_567.0, Some(5432.1), "1234600 ± 5400"),
            (12.345_678, Some(1.5e-7), "12.3457 ± 0"),
            (12.345_678, Some(6e-5), "12.3457 ± 0.0001"),
            (0.1, Some(0.25), "0.10 ± 0.25"),
            (-1e-9, Some(0.5), "0.00 ± 0.50"),
            (1.574_3e-7, Some(1.2e-8), "(1.57 ± 0.12)e-7"),
            (3e-9, Some(2e-7), "(0.0 ± 2.0)e-7"),
            (1.234e9, Some(5.67e6), "(1.2340 ± 0.0057)e9"),
            (0.5, Some(0.0), "0.5 ± 0"),
            (0.1, Some(1.5e-16), "0.1 ± 0"),
            (0.000_123_456_789, None, "1.235e-4"),
            (0.123_456_789, None, "0.1235"),
            (123_456.0, None, "123456"),
            (0.0, None, "0"),
            (3.0, None, "3"),
        ] {
            assert_eq!(mean_and_half_width(&figure(mean, width), 1.0), text);
        }
        assert_eq!(mean_and_half_width(&CellStatistics::default(), 1.0), "no value");
        for (value, text) in
            [(1.23e-7, "1.23e-7"), (0.001_234_567_8, "0.00123457"), (1e7, "1e7"), (1_234_567.8, "1234568")]
        {
            assert_eq!(rounded(value), text);
        }
    }
}
