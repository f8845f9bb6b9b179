//! Delay, rate and loss are right.

use crate::accept::List;
use crate::accept::place::{Place, judge};
use lab::datagrams::{Stream, Tally, send};
use lab::scenario::OneLink;
use lab::{Outcome, Rig, Who, change, delay, winds};

/// Both ways of `geo-10m`, and 84 bytes each way at its rate.
const GEO_MS: f64 = 550.0 + 2.0 * 84.0 * 8.0 / 10e6 * 1e3;
/// Rate of `geo-10m`.
const GEO_BPS: f64 = 10e6;
/// Share of honest runs that lie outside an interval.
const OUTSIDE: f64 = 0.05;
/// Packets of a run that counts losses.
const PACKETS: f64 = 1e5;

pub(super) fn check(place: &Place, list: &mut List) {
    for who in [Who::Ourselves, Who::Ordinary] {
        let name = if who == Who::Ordinary { ", ordinary user" } else { "" };
        for far in ["-4 far", "-6 far"] {
            list.line(1, &pings(place, who, far, &format!("ping {far} over geo-10m{name}")));
        }
    }
    let rig = place.rig(Who::Ourselves);
    let with = |f: &dyn Fn(&Rig) -> Outcome<String>| rig.as_ref().map_err(Clone::clone).and_then(f);
    let seconds = if place.long { 60 } else { 20 };
    let rate =
        rig.as_ref().map_err(Clone::clone).and_then(|r| delay::rate(r, &["geo-10m"], 1.3 * GEO_BPS, seconds));
    list.line(
        1,
        &judge(&format!("rate over {seconds} s, saturated, within 0.1 %"), rate, |bps| {
            let off = bps / GEO_BPS - 1.0;
            (format!("{:.4} Mbit/s, {:+.3} %", bps / 1e6, off * 100.0), off.abs() <= 1e-3)
        }),
    );
    let text = |o: Outcome<String>| judge("lost of 1e5 packets at half rate, loss 1e-2", o, |t| (t, true));
    list.line(1, &text(with(&half_rate)));
    for (len, what) in [(1500, "1500 B"), (100, "100 B")] {
        let what = format!("lost of 1e5 packets of {what}, bit error rate 2e-6");
        list.line(1, &judge(&what, with(&|r| bits(r, len)), |t| (t, true)));
    }
    list.line(1, &changes(&rig));
    list_winds(place, list);
}

/// A change of a running link: 20 of them, the worst.
fn changes(rig: &Outcome<Rig>) -> crate::item::Item {
    let measured = rig.as_ref().map_err(Clone::clone).and_then(|rig| change::delays(rig, 20));
    judge("`link set` takes effect within 10 ms (part 5)", measured, |ms| {
        let worst = ms.iter().copied().fold(0.0, f64::max);
        let figure = format!("median {:.1} ms, worst {worst:.1} of {}", lab::stats::median(&ms), ms.len());
        (figure, ms.len() == 20 && worst <= 10.0)
    })
}

fn pings(place: &Place, who: Who, far: &str, what: &str) -> crate::item::Item {
    let measured = place.rig(who).and_then(|rig| delay::pings(&rig, &["geo-10m"], far, 500, 40));
    // IPv6 has 20 bytes more of header each way
    let expected = GEO_MS + if far.starts_with("-6") { 2.0 * 20.0 * 8.0 / 10e6 * 1e3 } else { 0.0 };
    judge(&format!("{what}: median within 0.2 ms, p99 within 1 ms"), measured, |p| {
        let [median, p99] = [p.median_ms - expected, p.p99_ms - expected];
        let figure = format!(
            "{:+.3} ms, p99 {:+.3}, max {:+.3}, {}/{}",
            median,
            p99,
            p.max_ms - expected,
            p.came,
            p.sent
        );
        (figure, median.abs() <= 0.2 && p99.abs() <= 1.0 && p.came == p.sent)
    })
}

/// A figure with its interval, or the same as a fault.
fn within(tally: Tally, p: f64) -> Outcome<String> {
    let (low, high, inside) = tally.within(p, OUTSIDE);
    let figure = format!("{} of {}, 95 % interval {low} to {high}", tally.lost, tally.sent);
    if inside { Ok(figure) } else { Err(figure) }
}

fn half_rate(rig: &Rig) -> Outcome<String> {
    let link =
        OneLink { rate: "10 Mbit/s", delay: "275 ms", buffer: "687500 B", loss: 1e-2, ber: 0.0, seed: 4 };
    let scenario = rig.file("half.toml", &link.toml())?;
    let rate_bps = GEO_BPS / 2.0;
    let ip_len = 200;
    let seconds = (PACKETS * f64::from(ip_len) * 8.0 / rate_bps).ceil() as u32 + 1;
    within(send(rig, &[&scenario], &Stream { ip_len, rate_bps, seconds })?, 1e-2)
}

/// A packet of n bits is lost with probability 1 - (1 - ber)^n.
fn bits(rig: &Rig, ip_len: u32) -> Outcome<String> {
    const BER: f64 = 2e-6;
    let link = OneLink { rate: "100 Mbit/s", delay: "10 ms", buffer: "2 MB", loss: 0.0, ber: BER, seed: 4 };
    let scenario = rig.file("bits.toml", &link.toml())?;
    let packets_per_s = 4000.0;
    let rate_bps = packets_per_s * f64::from(ip_len) * 8.0;
    let seconds = (PACKETS / packets_per_s).ceil() as u32 + 1;
    let all_right = (0..ip_len * 8).fold(1.0, |p, _| p * (1.0 - BER));
    within(send(rig, &[&scenario], &Stream { ip_len, rate_bps, seconds })?, 1.0 - all_right)
}

fn list_winds(place: &Place, list: &mut List) {
    let seconds = if place.long { 600 } else { 180 };
    let short = if place.long { "" } else { " (short: 180 s)" };
    match place.rig(Who::Ourselves).and_then(|rig| winds::rows(&rig, seconds)) {
        Ok(rows) => {
            for row in rows {
                let cure = if row.number == 5 { ", with the keep-alive" } else { "" };
                let what = format!("WINDS row {}{cure}, within 30 %{short}", row.number);
                let figure = format!(
                    "{:.3} Mbit/s, measured {:.2}: {:+.0} %",
                    row.goodput_bps / 1e6,
                    row.measured_bps / 1e6,
                    row.difference() * 100.0
                );
                list.line(1, &judge(&what, Ok(()), |()| (figure, row.difference().abs() <= 0.3)));
            }
        }
        Err(why) => {
            list.line(1, &judge::<()>("WINDS rows 2, 3 and 5", Err(why), |()| (String::new(), false)));
        }
    }
}
