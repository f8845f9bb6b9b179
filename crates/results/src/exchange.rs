//! Pictures of what ends and routers said about the rate of a flow.

use bentpipe_advice::tia1039::Kind;
use bentpipe_base::{Flags, Rate};
use bentpipe_plot::{Arrow, Ladder};
use bentpipe_report::Report;
use bentpipe_sim::Record;
use bentpipe_sim::exchange::{Exchange, ExchangeHop, ExchangePacket};

/// Maximum number of arrows in a picture.
const MOST_ARROWS: usize = 40;

/// Returns a picture for each recorded exchange.
pub(crate) fn ladders(report: &Report, record: &Record) -> Vec<Ladder> {
    let named = |exchange: &Exchange| {
        let name = report.flows.get(exchange.flow).map_or("", |flow| &*flow.name);
        ladder(name, exchange)
    };
    record.exchanges.iter().filter(|exchange| !exchange.packets.is_empty()).map(named).collect()
}

fn ladder(flow: &str, exchange: &Exchange) -> Ladder {
    let mut arrows = Vec::new();
    let mut left_out = exchange.omitted;
    for packet in exchange.changes() {
        if arrows.len() + packet.hops.len() > MOST_ARROWS {
            left_out += 1;
            continue;
        }
        arrows.extend(packet.hops.iter().enumerate().map(|(i, hop)| arrow(packet, i, hop)));
    }
    let more = if left_out > 0 { " Later packets are left out." } else { "" };
    Ladder {
        title: format!("What {flow} asked, and what the network answered"),
        description:
            "Packets that open the connection or change its rate, hop by hop, with the rates in them."
                .to_owned(),
        stations: exchange.stations.clone(),
        arrows,
        note: Some(format!(
            "Rates in Mbit/s, times in s. A packet with a structure has DSCP 3. Requests that change nothing are \
             left out.{more} Distances between times are not to scale."
        )),
    }
}

fn arrow(packet: &ExchangePacket, index: usize, hop: &ExchangeHop) -> Arrow {
    let before = index.checked_sub(1).and_then(|before| packet.hops.get(before));
    let changed = before.is_some_and(|before| before.structures != hop.structures);
    let rates: Vec<String> = hop.structures.iter().map(|(kind, rate)| words(*kind, *rate)).collect();
    let label = match (before, hop.structures.is_empty()) {
        (None, true) => format!("{}, DSCP {}", name(packet), hop.dscp.get()),
        (None, false) => format!("{}: {}", name(packet), rates.join(", ")),
        (Some(_), _) if changed => rates.join(", "),
        (Some(_), _) => String::new(),
    };
    Arrow {
        from: hop.from,
        to: hop.to,
        sent_s: hop.sent_s,
        arrived_s: hop.arrived_s,
        label,
        // a router wrote into it
        is_marked: changed || index == 0 && packet.has_data && is_reduction(packet, hop),
    }
}

/// True for a structure that a router put into a data packet: it was not there where the packet was sent.
fn is_reduction(packet: &ExchangePacket, hop: &ExchangeHop) -> bool {
    packet.forward && hop.from > 0 && hop.structures.iter().any(|(kind, _)| *kind == Kind::Renegotiate)
}

fn name(packet: &ExchangePacket) -> &'static str {
    match (packet.flags.has(Flags::SYN), packet.flags.has(Flags::ACK), packet.has_data) {
        (true, false, _) => "SYN",
        (true, true, _) => "SYN/ACK",
        (false, _, true) => "data",
        (false, _, false) => "ACK",
    }
}

fn words(kind: Kind, rate: Option<Rate>) -> String {
    let verb = match kind {
        Kind::Forward => "forward",
        Kind::Request => "request",
        Kind::Response => "response",
        Kind::Confirmation => "confirmation",
        Kind::MissedStart => return "missed start".to_owned(),
        Kind::Renegotiate => "renegotiate",
        Kind::ResendStart => "request again",
        Kind::Close => return "close".to_owned(),
    };
    rate.map_or_else(|| format!("{verb} 0"), |rate| format!("{verb} {}", mbps(rate)))
}

/// In Mbit/s with four significant digits at most.
fn mbps(rate: Rate) -> String {
    let mbps = rate.bps() as f64 / 1e6;
    let digits = if mbps >= 100.0 { 1 } else { 2 };
    let text = format!("{mbps:.digits$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
