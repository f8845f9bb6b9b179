//! The table of schemes: name -> loss recovery and growth law.
//!
//! A new scheme is a file in `cc/`, its `mod` line there, and one line here; CONTRIBUTING shows how.

use crate::cc;
use crate::cc::law::{Algorithm, Growth};
use crate::config::Stack;
use std::sync::{PoisonError, RwLock};

/// How losses are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Detection {
    /// Three duplicate ACKs; the first new ACK ends recovery (RFC 5681).
    Reno,
    /// Three duplicate ACKs; partial ACKs keep recovery going (RFC 6582).
    NewReno,
    /// Vegas' fine-grained timer besides three duplicate ACKs (Brakmo et al., 1994).
    Vegas,
    /// SACK scoreboard (RFC 6675); falls back to NewReno when the peer has no SACK.
    Sack,
    /// Time-based (RFC 8985), with its tail loss probe; falls back to NewReno without SACK.
    Rack,
}

impl Detection {
    /// True if it works by SACK.
    #[inline]
    pub const fn by_sack(self) -> bool {
        matches!(self, Self::Sack | Self::Rack)
    }
}

/// How the window is reduced during recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// At once to the scheme's window (RFC 5681, 6582, 6675).
    AtOnce,
    /// One segment for every two that are delivered (Mathis et al., 1999).
    RateHalving,
    /// Proportional rate reduction (RFC 9937).
    Prr,
    /// At once, with the in-flight count of speedy recovery (TCP-Swift): the first lost segment counts as in
    /// flight until it is repaired.
    Speedy,
}

/// The recovery half of a scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RecoveryParams {
    /// How losses are found.
    pub detection: Detection,
    /// How the window is reduced.
    pub reduction: Reduction,
    /// Detect spurious timeouts (F-RTO, RFC 5682).
    pub frto: bool,
}

impl RecoveryParams {
    /// Current practice: RACK, PRR, F-RTO.
    pub const MODERN: Self = Self { detection: Detection::Rack, reduction: Reduction::Prr, frto: true };
    /// The same for schemes that set the window themselves while losses are repaired.
    pub const OWN_WINDOW: Self = Self { reduction: Reduction::AtOnce, ..Self::MODERN };

    /// TCP-Peach: counts duplicate ACKs.
    const RAPID: Self = Self { detection: Detection::NewReno, reduction: Reduction::Speedy, frto: true };
    /// TCP-Swift: uses SACK.
    const SPEEDY: Self = Self { detection: Detection::Sack, reduction: Reduction::Speedy, frto: true };

    /// Creates a recovery half without detection of spurious timeouts.
    const fn plain(detection: Detection, reduction: Reduction) -> Self {
        Self { detection, reduction, frto: false }
    }
}

impl Default for RecoveryParams {
    fn default() -> Self {
        Self::MODERN
    }
}

/// A row of the table: name, recovery half, growth half.
type Row = (&'static str, RecoveryParams, &'static Algorithm);

/// The table, in the order of the documentation.
const TABLE: &[Row] = &[
    ("reno", RecoveryParams::plain(Detection::Reno, Reduction::AtOnce), &cc::reno::ALGORITHM),
    ("newreno", RecoveryParams::plain(Detection::NewReno, Reduction::AtOnce), &cc::reno::ALGORITHM),
    ("sack", RecoveryParams::plain(Detection::Sack, Reduction::AtOnce), &cc::reno::ALGORITHM),
    ("rate-halving", RecoveryParams::plain(Detection::Sack, Reduction::RateHalving), &cc::reno::ALGORITHM),
    ("vegas", RecoveryParams::plain(Detection::Vegas, Reduction::AtOnce), &cc::vegas::ALGORITHM),
    ("cubic", RecoveryParams::MODERN, &cc::cubic::ALGORITHM),
    ("hybla", RecoveryParams::MODERN, &cc::hybla::ALGORITHM),
    ("westwood", RecoveryParams::MODERN, &cc::westwood::ALGORITHM),
    ("bic", RecoveryParams::MODERN, &cc::bic::ALGORITHM),
    ("htcp", RecoveryParams::MODERN, &cc::htcp::ALGORITHM),
    ("fast", RecoveryParams::MODERN, &cc::fast::ALGORITHM),
    ("bbr", RecoveryParams::OWN_WINDOW, &cc::bbr::ALGORITHM),
    ("bbr3", RecoveryParams::OWN_WINDOW, &cc::bbr3::ALGORITHM),
    ("careful-resume", RecoveryParams::MODERN, &cc::careful_resume::ALGORITHM),
    ("peach", RecoveryParams::RAPID, &cc::peach::ALGORITHM),
    ("peach-plus", RecoveryParams::SPEEDY, &cc::peach::PLUS),
    ("swift-sat", RecoveryParams::SPEEDY, &cc::swift::ALGORITHM),
    ("swift-faithful", RecoveryParams::SPEEDY, &cc::swift::FAITHFUL),
    ("parallel", RecoveryParams::MODERN, &cc::parallel::ALGORITHM),
    ("explicit-rate", RecoveryParams::OWN_WINDOW, &cc::explicit_rate::ALGORITHM),
];

/// Schemes that the program has registered, beside those of the table.
static REGISTERED: RwLock<Vec<Row>> = RwLock::new(Vec::new());

/// Loss recovery and window growth, combined under a name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scheme {
    /// The name users write.
    pub name: &'static str,
    /// The recovery half.
    pub recovery: RecoveryParams,
    /// The growth half.
    pub growth: Growth,
}

impl Scheme {
    /// Names a user may write, in the order the documentation lists them.
    pub const NAMES: [&'static str; TABLE.len()] = {
        let mut names = [""; TABLE.len()];
        let mut i = 0;
        while i < names.len() {
            names[i] = TABLE[i].0;
            i += 1;
        }
        names
    };

    /// A second name of `swift-sat`; users are told which of the two protocols called Swift it is.
    pub const SWIFT: &'static str = "swift";

    /// Returns the scheme called `name`, with its default parameters.
    pub fn named(name: &str) -> Option<Self> {
        if name == Self::SWIFT {
            return Self::named("swift-sat").map(|swift| Self { name: Self::SWIFT, ..swift });
        }
        Self::rows().find(|row| row.0 == name).map(|row| Self::of(&row))
    }

    /// Registers schemes beside those of the table, each with a name, a recovery half and a growth half.
    /// From then on a name stands for the scheme that was registered last; names of the table stay theirs.
    pub fn register(schemes: &[(&'static str, RecoveryParams, &'static Algorithm)]) {
        let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
        for scheme in schemes {
            registered.retain(|known| known.0 != scheme.0);
            registered.push(*scheme);
        }
    }

    fn rows() -> impl Iterator<Item = Row> {
        let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner).clone();
        TABLE.iter().copied().chain(registered)
    }

    /// Returns all schemes with their defaults: the table in the order of [`Scheme::NAMES`], then the
    /// registered ones.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::rows().map(|row| Self::of(&row))
    }

    const fn of(row: &Row) -> Self {
        let (name, recovery, law) = *row;
        Self { name, recovery, growth: Growth::of(law) }
    }

    /// Returns the scheme as `stack` runs it. Linux detects losses by RACK with SACK and as NewReno without,
    /// reduces by PRR and tests timeouts with F-RTO, whatever the growth law.
    #[must_use]
    pub const fn on(self, stack: Stack) -> Self {
        match stack {
            Stack::Rfc => self,
            Stack::Linux => {
                let detection = if self.wants_sack() { Detection::Rack } else { Detection::NewReno };
                Self { recovery: RecoveryParams { detection, reduction: Reduction::Prr, frto: true }, ..self }
            }
        }
    }

    /// True when Linux's own variant of the scheme is modelled.
    pub const fn on_linux(&self) -> bool {
        self.growth.algorithm().linux.is_some() && !matches!(self.recovery.reduction, Reduction::RateHalving)
    }

    /// True when the scheme makes use of SACK; one that sends probes wants DSACKs.
    pub const fn wants_sack(&self) -> bool {
        self.recovery.detection.by_sack() || self.probes()
    }

    /// True when the scheme sends probe segments.
    pub const fn probes(&self) -> bool {
        self.growth.algorithm().probes
    }

    /// True if the copies sent are tracked: probe segments, or copies that only repair.
    pub const fn copies(&self) -> bool {
        self.probes() || self.growth.algorithm().copies
    }
}

impl Default for Scheme {
    fn default() -> Self {
        Self::named("cubic").expect("the table holds its own default")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::law::{Range, Value};
    use core::mem::discriminant;

    #[test]
    fn names_are_unique_and_defaults_are_in_range() {
        let all: Vec<Scheme> = Scheme::all().collect();
        for (i, scheme) in all.iter().enumerate() {
            assert!(all[..i].iter().all(|other| other.name != scheme.name), "{} is there twice", scheme.name);
            assert_eq!(scheme.growth.check(), Ok(()), "{}", scheme.name);
            for (param, value) in scheme.growth.params() {
                assert!(param.range.holds(value), "{}: {}", scheme.name, param.name);
            }
        }
    }

    /// A scenario key has one kind in all schemes that use it.
    #[test]
    fn a_name_of_a_parameter_has_one_kind() {
        let all: Vec<_> = Scheme::all().flat_map(|s| s.growth.algorithm().params.iter()).collect();
        for (i, a) in all.iter().enumerate() {
            for b in &all[i..] {
                assert!(a.name != b.name || discriminant(&a.range) == discriminant(&b.range), "{}", a.name);
            }
        }
    }

    #[test]
    fn a_parameter_is_set_by_name_kind_and_range() {
        let mut growth = Scheme::default().growth;
        assert!(growth.set("beta", Value::Number(0.8)));
        assert_eq!(growth.get("beta"), Some(Value::Number(0.8)));
        for (name, value) in [
            ("beta", Value::Number(1.0)),
            ("beta", Value::Number(f64::NAN)),
            ("beta", Value::Switch(true)),
            ("rtt0", Value::Number(0.8)),
        ] {
            assert!(!growth.set(name, value), "{name} = {value:?}");
        }
        assert_ne!(growth, Scheme::default().growth);
        assert!(matches!(growth.algorithm().params[0].range, Range::Number { .. }));
    }
}
