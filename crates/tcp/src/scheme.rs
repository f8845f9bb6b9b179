//! The one table: a scheme's name and parameters -> loss recovery and congestion control.

use crate::cc::cubic::CubicParams;
use crate::cc::vegas::VegasParams;
use crate::config::Stack;

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

/// How the window comes down during recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// At once to the scheme's window (RFC 5681, 6582, 6675).
    AtOnce,
    /// One segment for every two that are delivered (Mathis et al., 1999).
    RateHalving,
    /// Proportional rate reduction (RFC 9937).
    Prr,
}

/// The recovery half of a scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RecoveryParams {
    /// How losses are found.
    pub detection: Detection,
    /// How the window comes down.
    pub reduction: Reduction,
    /// Detect spurious timeouts (F-RTO, RFC 5682).
    pub frto: bool,
}

/// The growth half of a scheme.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Growth {
    /// RFC 5681.
    Reno,
    /// Brakmo, O'Malley, Peterson 1994.
    Vegas(VegasParams),
    /// RFC 9438, with HyStart++ (RFC 9406).
    Cubic(CubicParams),
}

/// Loss recovery and window growth: separate axes, named together.
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
    pub const NAMES: [&'static str; 6] = ["reno", "newreno", "sack", "rate-halving", "vegas", "cubic"];

    /// The scheme called `name`, with its default parameters.
    pub fn named(name: &str) -> Option<Self> {
        use Detection as D;
        use Reduction as R;
        let (detection, reduction, frto, growth) = match name {
            "reno" => (D::Reno, R::AtOnce, false, Growth::Reno),
            "newreno" => (D::NewReno, R::AtOnce, false, Growth::Reno),
            "sack" => (D::Sack, R::AtOnce, false, Growth::Reno),
            "rate-halving" => (D::Sack, R::RateHalving, false, Growth::Reno),
            "vegas" => (D::Vegas, R::AtOnce, false, Growth::Vegas(VegasParams::default())),
            "cubic" => (D::Rack, R::Prr, true, Growth::Cubic(CubicParams::default())),
            _ => return None,
        };
        let name = Self::NAMES.into_iter().find(|n| *n == name)?;
        Some(Self { name, recovery: RecoveryParams { detection, reduction, frto }, growth })
    }

    /// The scheme as `stack` has it. Linux finds losses by RACK with SACK and as NewReno without, reduces by PRR and doubts every timeout, whatever the
    /// window grows by.
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

    /// True when the scheme is of no use without SACK.
    pub const fn wants_sack(&self) -> bool {
        matches!(self.recovery.detection, Detection::Sack | Detection::Rack)
    }
}

impl Default for Scheme {
    fn default() -> Self {
        Self::named("cubic").expect("the table holds its own default")
    }
}
