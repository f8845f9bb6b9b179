//! `--vary 'NAME=LOW..HIGH UNIT'`.

use crate::input::{Input, name_and_value};
use crate::options::OptionValue;
use bentpipe_scenario::{Diagnostic, Files, Scenario, Source, amount_parts, load_with, parse_amount};
use bentpipe_sweep::find::Vary;

/// The range of a parameter, and where its parts are written.
pub(crate) struct Range<'a> {
    pub(crate) vary: Vary,
    option: OptionValue<'a>,
    /// Byte range of the name and of each bound.
    name: core::ops::Range<usize>,
    bounds: [core::ops::Range<usize>; 2],
    /// The bounds as `--set` takes them.
    texts: [String; 2],
}

/// A bound: number, unit, and what it is in base units.
struct Bound<'a> {
    number: &'a str,
    unit: &'a str,
}

impl<'a> Range<'a> {
    /// Parses the option; a parameter of `sets` cannot be varied too.
    pub(crate) fn parse(text: &'a str, sets: &[(String, String)]) -> Result<Self, Box<Diagnostic>> {
        let option = OptionValue { name: "--vary", value: text };
        let form = "write it as NAME=LOW..HIGH, as in ber=1e-9..1e-4 or 'rate=1..20 Mbit/s'";
        let (name, _) =
            name_and_value(text).map_err(|_| option.wrong("this is not a parameter and its range", form))?;
        let start = text.find('=').map_or(text.len(), |at| at + 1);
        let at = text.find(&name).unwrap_or(0);
        let at = at..at + name.len();
        if sets.iter().any(|(set, _)| *set == name) {
            return Err(option.fault(at, format!("`{name}` is given by --set too"), "leave one of them out"));
        }
        let Some(dots) = text[start..].find("..").map(|dots| start + dots) else {
            return Err(option.fault(start..text.len(), "the range has no `..`", form));
        };
        let places = [trimmed(text, start..dots), trimmed(text, dots + 2..text.len())];
        let [low, high] = places.clone().map(|place| {
            let (number, unit) = amount_parts(&text[place]);
            Bound { number, unit }
        });
        for (bound, place) in [(&low, &places[0]), (&high, &places[1])] {
            if bound.number.is_empty() {
                let written = &text[place.clone()];
                let message = if written.is_empty() {
                    "a bound of the range is missing".to_owned()
                } else {
                    format!("`{written}` is not a number with a unit")
                };
                return Err(option.fault(place.clone(), message, form));
            }
        }
        // a unit at the end holds for both
        let low = Bound { unit: if low.unit.is_empty() { high.unit } else { low.unit }, ..low };
        // the higher one first: it has the unit
        let to = in_unit(option, &high, high.unit, &places[1])?;
        let from = in_unit(option, &low, high.unit, &places[0])?;
        if from.partial_cmp(&to) != Some(core::cmp::Ordering::Less) {
            let whole = places[0].start..places[1].end;
            return Err(if from.total_cmp(&to).is_eq() {
                option.fault(whole, "both bounds of the range are equal", "write a lower and a higher value")
            } else {
                let [a, b] = [&low, &high].map(|bound| format!("{} {}", bound.number, bound.unit));
                let label = format!("write {name}={}..{}", b.trim(), a.trim());
                option.fault(whole, "the first bound of the range is the higher one", label)
            });
        }
        let vary = Vary::new(name, (from, to), high.unit)
            .map_err(|message| option.fault(places[1].clone(), message, ""))?;
        let texts = [&low, &high].map(|b| format!("{} {}", b.number, b.unit).trim().to_owned());
        Ok(Self { vary, option, name: at, bounds: places, texts })
    }

    /// Loads the scenario with one of the bounds, so that errors in it are shown where it is written.
    pub(crate) fn load(
        &self,
        bound: usize,
        source: &Source,
        files: &dyn Files,
        input: &Input,
    ) -> Result<Scenario, Box<Diagnostic>> {
        let mut sets = input.sets.clone();
        sets.push((self.vary.name.clone(), self.texts[bound].clone()));
        load_with(source, &sets, input.seed, files)
            .map_err(|diagnostic| self.shown_in_option(diagnostic, Some(bound)))
    }

    /// Moves a diagnostic about a value, which is parsed like `--set`, to a bound or to the range.
    pub(crate) fn shown_in_option(
        &self,
        mut diagnostic: Box<Diagnostic>,
        bound: Option<usize>,
    ) -> Box<Diagnostic> {
        let set = format!("--set {}=", self.vary.name);
        if diagnostic.place.name != "command line" || !diagnostic.place.text.starts_with(&set) {
            return diagnostic;
        }
        let place = if diagnostic.place.offset < set.chars().count() {
            self.name.clone()
        } else {
            bound.map_or(self.bounds[0].start..self.bounds[1].end, |n| self.bounds[n].clone())
        };
        diagnostic.place = self.option.fault(place, "", "").place;
        diagnostic
    }
}

/// The part of `text` in `range` without spaces around it.
fn trimmed(text: &str, range: core::ops::Range<usize>) -> core::ops::Range<usize> {
    let part = &text[range.clone()];
    let start = range.start + part.len() - part.trim_start().len();
    start..start + part.trim().len()
}

/// Returns a bound in the unit of the range.
fn in_unit(
    option: OptionValue<'_>,
    bound: &Bound<'_>,
    unit: &str,
    place: &core::ops::Range<usize>,
) -> Result<f64, Box<Diagnostic>> {
    let parse = |text: &str| parse_amount(text).map_err(|message| option.fault(place.clone(), message, ""));
    let amount = parse(&format!("{} {}", bound.number, bound.unit))?;
    if bound.unit == unit {
        // the number as it is written
        return Ok(bound.number.parse().unwrap_or(f64::NAN));
    }
    let one = parse(&format!("1 {unit}"))?;
    if amount.dimension != one.dimension {
        let message = if unit.is_empty() {
            "the bounds of the range have different units".to_owned()
        } else {
            format!("the bounds of the range have different units: this is no amount of {unit}")
        };
        return Err(option.fault(place.clone(), message, "a unit at the end holds for both"));
    }
    Ok(amount.value / one.value)
}
