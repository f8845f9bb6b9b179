//! A flood of SYNs beside established connections (6).

use crate::accept::List;
use crate::accept::place::{Place, judge};
use lab::Who;
use lab::flood::flood;
use lab::passage::{Carrier, Host, Kind, Passage};

/// The flood.
const SYNS_PER_S: u32 = 200_000;

/// What the connections beside it send at.
const LINK_BPS: u64 = 100_000_000;

/// From the hop, where the gateway paces what goes the other way at the link's rate; and from the LAN, where a hop of that rate could not carry both.
pub(super) fn check(place: &Place, list: &mut List) {
    let passage = place.rig(Who::Ourselves).and_then(Passage::new);
    let by_gateway = Carrier::Accelerated(Kind::Routed);
    for (from, carrier, hop, words) in [
        (
            Host::Receiver,
            by_gateway,
            "rate = \"100 Mbit/s\"",
            "from the hop, paced at 100 Mbit/s: within 10 %",
        ),
        (Host::Sender, by_gateway, "", "from the LAN, connections of 100 Mbit/s: within 10 %"),
        (Host::Sender, Carrier::Kernel, "", "from the LAN, without a gateway (reported)"),
    ] {
        let flooded = passage
            .as_ref()
            .map_err(Clone::clone)
            .and_then(|passage| flood(passage, carrier, hop, from, (LINK_BPS, SYNS_PER_S)));
        list.line(
            6,
            &judge(&format!("200 000 SYN/s {words}"), flooded, |f| {
                let share = f.beside_bps / f.before_bps;
                let figure = format!(
                    "{:.1} of {:.1} Mbit/s, {:+.1} %, {:.0} SYN/s",
                    f.beside_bps / 1e6,
                    f.before_bps / 1e6,
                    (share - 1.0) * 100.0,
                    f.syns_per_s
                );
                let met = share >= 0.9 && f.syns_per_s >= 0.95 * f64::from(SYNS_PER_S);
                (figure, met || carrier == Carrier::Kernel)
            }),
        );
    }
}
