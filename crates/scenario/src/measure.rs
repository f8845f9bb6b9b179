//! Decimal quantities: decibels, degrees, lengths, frequencies and rates per second.
//!
//! Unlike rates, times and sizes, they are floating-point numbers and may be negative.

use crate::diagnostic::{Fault, Result, nearest};
use crate::form::{Form, Read};
use crate::quantity::split_unit;
use crate::scalars::excerpt;
use crate::value::Value;

/// A kind of decimal quantity: its units, base unit first, and its range in the base unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measure {
    /// Name with its article: `an angle`.
    pub(crate) what: &'static str,
    pub(crate) example: &'static str,
    /// Name of each unit and number of base units in it.
    pub(crate) units: &'static [(&'static str, f64)],
    pub(crate) least: f64,
    pub(crate) most: f64,
}

pub(crate) const DECIBEL: Measure = Measure {
    what: "a ratio in decibels",
    example: "5 dB",
    units: &[("dB", 1.0)],
    least: -200.0,
    most: 200.0,
};
pub(crate) const ANGLE: Measure =
    Measure { what: "an angle", example: "25 deg", units: &[("deg", 1.0)], least: -360.0, most: 360.0 };
pub(crate) const LENGTH: Measure = Measure {
    what: "a length",
    example: "8062 km",
    units: &[("km", 1.0), ("m", 1e-3)],
    least: 0.0,
    most: 1e6,
};
pub(crate) const FREQUENCY: Measure =
    Measure { what: "a frequency", example: "2e-4 1/s", units: &[("1/s", 1.0)], least: 0.0, most: 1e3 };

pub(crate) const DIAMETER: Measure = Measure {
    what: "a diameter",
    example: "1.2 m",
    units: &[("m", 1.0), ("cm", 1e-2)],
    least: 0.1,
    most: 100.0,
};
pub(crate) const CARRIER: Measure = Measure {
    what: "a carrier frequency",
    example: "20 GHz",
    units: &[("GHz", 1.0), ("MHz", 1e-3)],
    least: 0.1,
    most: 1000.0,
};
/// All kinds.
pub(crate) const ALL: [Measure; 6] = [DECIBEL, ANGLE, LENGTH, DIAMETER, FREQUENCY, CARRIER];

impl Measure {
    /// Reads `value` and returns it in the base unit.
    fn read(&self, value: &Value, key: &str) -> Result<f64> {
        let text = &*value.number_text();
        let (sign, rest) = text.strip_prefix('-').map_or((1.0, text), |rest| (-1.0, rest));
        let (number, name) = split_unit(rest);
        let units: Vec<&str> = self.units.iter().map(|u| u.0).collect();
        let refuse = |message: String, label: String| {
            Fault::new(value.span, message, label).help(format!("help: units: {}", units.join(", ")))
        };
        let Some(amount) = number.parse::<f64>().ok().filter(|n| n.is_finite()) else {
            return Err(refuse(
                format!("`{key}` is not {}", self.what),
                format!("write \"{}\" or the like", self.example),
            ));
        };
        if name.is_empty() {
            let label = format!("write \"{} {}\" if that is meant", excerpt(text), units[0]);
            return Err(refuse(format!("`{key}` needs a unit"), label));
        }
        let Some((_, scale)) = self.units.iter().find(|u| u.0 == name) else {
            let label = nearest(name, units.iter().copied())
                .map_or_else(String::new, |near| format!("did you mean \"{} {near}\"?", excerpt(number)));
            return Err(refuse(format!("`{key}` has an unknown unit, `{}`", excerpt(name)), label));
        };
        let amount = sign * amount * scale;
        if (self.least..=self.most).contains(&amount) {
            return Ok(amount);
        }
        let label = format!("from {} to {} {}", self.least, self.most, units[0]);
        Err(Fault::new(value.span, format!("`{key}` is out of range"), label))
    }
}

/// Declares types for values of a kind, in its base unit.
macro_rules! measures {
    ($($T:ident $MEASURE:ident,)+) => { $(
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $T(pub(crate) f64);

        impl Read for $T {
            const FORM: Form = Form::Measure(&$MEASURE);

            fn read(value: &Value, key: &str) -> Result<Self> {
                $MEASURE.read(value, key).map(Self)
            }
        }
    )+ };
}

measures! {
    Decibel DECIBEL, Degrees ANGLE, Kilometres LENGTH, Metres DIAMETER, PerSecond FREQUENCY,
    Gigahertz CARRIER,
}
