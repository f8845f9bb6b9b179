//! What an end asks for besides an available rate, and what an answer grants.
//!
//! Source: TIA-1039 (2006), fields AR, GR, PP, DP, TP, CH and BT (L. G. Roberts' description).
//!   TP available: AR. Composite: GR and AR. Maximum and guaranteed: GR alone.
//! A router that grants a guaranteed rate in full has nothing to lower, so its answer would prove nothing.
//! Here a request for a maximum or guaranteed rate has its rate in AR too, which these types do not use: a
//! router that understands the request clears AR, and the sender sees that one was there.

use crate::rate_field::rounded;
use crate::tia1039::{Kind, RateType, Structure};
use bentpipe_base::Rate;

/// What an end asks for besides an available rate. By default nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// Which rates it asks for.
    pub rate_type: RateType,
    /// Guaranteed or maximum rate; `None` for an available rate.
    pub guaranteed: Option<Rate>,
    /// Preemption priority, 0 to 63.
    pub preemption: u8,
    /// Delay priority, 0 to 63.
    pub delay: u8,
    /// BT: how long the rate may be exceeded, 2^(-BT-1) s; 0 to 15.
    pub burst_exponent: u8,
    /// True if the receiver pays.
    pub receiver_pays: bool,
}

impl Terms {
    /// The rates for which an end asks that may want `available`; `None` if the field holds none as small.
    pub(super) fn wanted(&self, available: Rate) -> Option<Wanted> {
        let guaranteed = self.guaranteed.and_then(rounded);
        let available = match self.rate_type {
            RateType::Available | RateType::Composite => rounded(available),
            RateType::Maximum | RateType::Guaranteed => guaranteed,
        };
        let wanted = Wanted { available: available?, guaranteed };
        (self.guaranteed.is_none() || guaranteed.is_some()).then_some(wanted)
    }

    /// The rates of a wish for `total`, within those of the first request.
    pub(super) fn share(&self, total: Rate, first: Wanted) -> Wanted {
        let least = |most: Rate| total.min(most);
        match (self.rate_type, first.guaranteed) {
            (RateType::Composite, Some(guaranteed)) => {
                let rest = Rate::from_bps(total.bps().saturating_sub(guaranteed.bps())).and_then(rounded);
                let available = rest.map_or(first.available, |rest| rest.min(first.available));
                Wanted { available, ..first }
            }
            (RateType::Maximum | RateType::Guaranteed, Some(guaranteed)) => {
                let rate = rounded(least(guaranteed)).unwrap_or(guaranteed);
                Wanted { available: rate, guaranteed: Some(rate) }
            }
            _ => Wanted { available: least(first.available), guaranteed: None },
        }
    }

    /// A structure with these terms and rates.
    pub(super) fn structure(&self, kind: Kind, wanted: Wanted) -> Structure {
        let mut structure = Structure::request(wanted.available);
        structure.set_kind(kind);
        structure.set_rate_type(self.rate_type);
        structure.set_guaranteed(wanted.guaranteed);
        structure.set_preemption_priority(self.preemption);
        structure.set_delay_priority(self.delay);
        structure.set_burst_exponent(self.burst_exponent);
        structure.set_charges_receiver(self.receiver_pays);
        structure
    }

    /// The rate that a structure gives to a flow with these terms; `None` is a refusal.
    pub(super) fn rate_in(&self, structure: &Structure) -> Option<Rate> {
        let bps = |rate: Option<Rate>| rate.map_or(0, Rate::bps);
        let (available, guaranteed) = (bps(structure.available()), bps(structure.guaranteed()));
        Rate::from_bps(match self.rate_type {
            RateType::Available => available,
            RateType::Composite => available.saturating_add(guaranteed),
            RateType::Maximum | RateType::Guaranteed => guaranteed,
        })
    }
}

/// The rates of a request, as their fields hold them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    /// AR.
    pub(super) available: Rate,
    /// GR.
    pub(super) guaranteed: Option<Rate>,
}
