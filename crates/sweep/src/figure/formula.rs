//! Formulas that curves can have in place of runs. Each has named arguments in base units: bit/s, s, B.

use bentpipe_report::Unit;
use bentpipe_scenario::Dimension;

/// An argument of a formula, named as scenarios name their parameters.
#[derive(Debug)]
pub(crate) struct Argument {
    pub(crate) name: &'static str,
    pub(crate) dimension: Dimension,
    /// Taken if nobody gives it.
    pub(crate) default: Option<f64>,
    /// How it is written: `a rate`.
    pub(crate) words: &'static str,
}

/// A formula.
#[derive(Debug)]
pub(crate) struct Formula {
    pub(crate) name: &'static str,
    pub(crate) unit: Unit,
    pub(crate) arguments: &'static [&'static Argument],
    /// The equation.
    pub(crate) equation: &'static str,
    pub(crate) source: &'static str,
    value: fn(&Arguments) -> f64,
}

/// Values of arguments, in base units.
pub(crate) struct Arguments(pub(crate) Vec<(&'static str, f64)>);

impl Arguments {
    fn of(&self, argument: &Argument) -> f64 {
        self.0.iter().find(|(name, _)| *name == argument.name).map_or(f64::NAN, |(_, value)| *value)
    }

    /// Bits of payload among the bits of a full segment.
    fn payload(&self) -> f64 {
        self.of(&MSS) / (self.of(&MSS) + self.of(&HEADERS))
    }

    /// Half of the round trip in ms, or all of it.
    fn delay_ms(&self, share: f64) -> f64 {
        self.of(&RTT) * 1e3 * share
    }
}

const fn needed(name: &'static str, dimension: Dimension, words: &'static str) -> Argument {
    Argument { name, dimension, default: None, words }
}

const fn with_default(name: &'static str, dimension: Dimension, value: f64, words: &'static str) -> Argument {
    Argument { name, dimension, default: Some(value), words }
}

static RATE: Argument = needed("rate", Dimension::Rate, "the link's rate, as in 10 Mbit/s");
static RTT: Argument = needed("rtt", Dimension::Time, "the round trip, as in 550 ms");
static LOSS: Argument = needed("loss", Dimension::Bare, "a probability, as in 0.01");
static BER: Argument = needed("ber", Dimension::Bare, "a bit error rate, as in 1e-6");
static SIZE: Argument = needed("size", Dimension::Bytes, "of the transfer, as in 8 MiB");
static WINDOW: Argument = needed("window", Dimension::Bytes, "a size, as in 64 KiB");
static MSS: Argument = with_default("mss", Dimension::Bytes, 1460.0, "payload of a segment; 1460 B");
static HEADERS: Argument =
    with_default("headers", Dimension::Bytes, 0.0, "headers of a segment, if the rate has them; 0 B");
static FLOWS: Argument = with_default("flows", Dimension::Bare, 1.0, "a number; 1");
static PACKET: Argument = with_default("packet", Dimension::Bytes, 1500.0, "size with headers; 1500 B");
static IW: Argument = needed("iw", Dimension::Bare, "the initial window in segments, as in 10");

const EXPLICIT_RATE: &[&Argument] = &[&RATE, &RTT, &LOSS];
const EXPLICIT_RATE_TIME: &[&Argument] = &[&SIZE, &RATE, &RTT, &LOSS];

/// Factors of the paper on explicit rate: 2 ms and 0.007 for normal TCP, 60 ms and 0.12 for explicit rate.
/// `share` of the round trip is the delay.
fn empirical(a: &Arguments, share: f64, delay_ms: f64, loss: f64) -> f64 {
    a.of(&RATE) / (1.0 + a.delay_ms(share) / delay_ms) / (1.0 + a.of(&LOSS) / loss)
}

const ONE_WAY: f64 = 0.5;
const ROUND_TRIP: f64 = 1.0;

fn normal(a: &Arguments, share: f64) -> f64 {
    empirical(a, share, 2.0, 0.007)
}

fn explicit(a: &Arguments, share: f64) -> f64 {
    empirical(a, share, 60.0, 0.12)
}

/// Time to send at this rate.
fn time(a: &Arguments, rate: f64) -> f64 {
    a.of(&SIZE) * 8.0 / rate
}

/// Share of packets with bit errors.
fn packet_error(a: &Arguments, bytes: f64) -> f64 {
    -libm::expm1(bytes * 8.0 * libm::log1p(-a.of(&BER)))
}

/// The inverse-square-root law, up to the payload rate of the link.
fn mathis(a: &Arguments, loss: f64) -> f64 {
    let law = libm::sqrt(1.5) * a.of(&MSS) * 8.0 / (a.of(&RTT) * libm::sqrt(loss));
    (a.of(&FLOWS) * law).min(a.of(&RATE) * a.payload())
}

/// Handshake, k rounds for n segments with an initial window of w, and the packets before the last one of
/// its round: k = ceil(log2(n / w + 1)).
fn slow_start(a: &Arguments) -> f64 {
    let (rtt, w) = (a.of(&RTT), a.of(&IW));
    let n = (a.of(&SIZE) / a.of(&MSS)).ceil();
    let rounds = libm::ceil(libm::log2(n / w + 1.0));
    let place = n - w * (libm::exp2(rounds - 1.0) - 1.0);
    let of = |bytes: f64| bytes * 8.0 / a.of(&RATE);
    let (headers, packet) = (of(a.of(&HEADERS)), of(a.of(&MSS) + a.of(&HEADERS)));
    rtt + 2.0 * headers + rounds * (rtt + packet + headers) + (place - 1.0) * packet
}

const fn row(
    name: &'static str,
    unit: Unit,
    arguments: &'static [&'static Argument],
    (equation, source): (&'static str, &'static str),
    value: fn(&Arguments) -> f64,
) -> Formula {
    Formula { name, unit, arguments, equation, source, value }
}

use Unit::{Rate, Ratio, Seconds};

const NORMAL: &str = "Explicit rate with TIA-1039, formula 1";
const EXPLICIT: &str = "Explicit rate with TIA-1039, formula 2";

/// Every formula.
#[rustfmt::skip]
static FORMULAS: [Formula; 17] = [
    row("normal-rate-one-way", Rate, EXPLICIT_RATE,
        ("rate / (1 + rtt/2 / 2 ms) / (1 + loss / 0.007)", NORMAL), |a| normal(a, ONE_WAY)),
    row("normal-rate-round-trip", Rate, EXPLICIT_RATE,
        ("rate / (1 + rtt / 2 ms) / (1 + loss / 0.007)", NORMAL), |a| normal(a, ROUND_TRIP)),
    row("normal-time-one-way", Seconds, EXPLICIT_RATE_TIME,
        ("size / normal-rate-one-way", NORMAL), |a| time(a, normal(a, ONE_WAY))),
    row("normal-time-round-trip", Seconds, EXPLICIT_RATE_TIME,
        ("size / normal-rate-round-trip", NORMAL), |a| time(a, normal(a, ROUND_TRIP))),
    row("explicit-rate-one-way", Rate, EXPLICIT_RATE,
        ("rate / (1 + rtt/2 / 60 ms) / (1 + loss / 0.12)", EXPLICIT), |a| explicit(a, ONE_WAY)),
    row("explicit-rate-round-trip", Rate, EXPLICIT_RATE,
        ("rate / (1 + rtt / 60 ms) / (1 + loss / 0.12)", EXPLICIT), |a| explicit(a, ROUND_TRIP)),
    row("explicit-time-one-way", Seconds, EXPLICIT_RATE_TIME,
        ("size / explicit-rate-one-way", EXPLICIT), |a| time(a, explicit(a, ONE_WAY))),
    row("explicit-time-round-trip", Seconds, EXPLICIT_RATE_TIME,
        ("size / explicit-rate-round-trip", EXPLICIT), |a| time(a, explicit(a, ROUND_TRIP))),
    row("future-rate", Rate, &[&RATE, &LOSS],
        ("rate / (1 + loss)", "Explicit rate with TIA-1039, future work"), |a| a.of(&RATE) / (1.0 + a.of(&LOSS))),
    row("future-time", Seconds, &[&SIZE, &RATE, &LOSS],
        ("size / future-rate", "Explicit rate with TIA-1039, future work"),
        |a| time(a, a.of(&RATE) / (1.0 + a.of(&LOSS)))),
    row("ceiling-rate", Rate, &[&RATE, &LOSS, &MSS, &HEADERS],
        ("rate (1 - loss) mss / (mss + headers)", "each packet is sent 1 / (1 - loss) times"),
        |a| a.of(&RATE) * (1.0 - a.of(&LOSS)) * a.payload()),
    row("window-rate", Rate, &[&WINDOW, &RTT, &RATE, &FLOWS, &MSS, &HEADERS],
        ("flows window / rtt, at most rate mss / (mss + headers)", "a window in each round trip"),
        |a| (a.of(&FLOWS) * a.of(&WINDOW) * 8.0 / a.of(&RTT)).min(a.of(&RATE) * a.payload())),
    row("bandwidth-delay", Unit::Bytes, &[&RATE, &RTT],
        ("rate rtt", "the window that fills a link"), |a| a.of(&RATE) * a.of(&RTT) / 8.0),
    row("mathis-rate", Rate, &[&RTT, &LOSS, &RATE, &FLOWS, &MSS, &HEADERS],
        ("flows 1.22 mss / (rtt sqrt(loss)), at most rate mss / (mss + headers)",
         "Mathis et al., The macroscopic behavior of the TCP congestion avoidance algorithm, 1997, equation 3"),
        |a| mathis(a, a.of(&LOSS))),
    row("mathis-rate-ber", Rate, &[&RTT, &BER, &RATE, &FLOWS, &MSS, &HEADERS],
        ("mathis-rate with the loss of packet-error, packet = mss + headers", "the same"),
        |a| mathis(a, packet_error(a, a.of(&MSS) + a.of(&HEADERS)))),
    row("packet-error", Ratio, &[&BER, &PACKET],
        ("1 - (1 - ber)^(8 packet)", "a packet arrives when all its bits do"),
        |a| packet_error(a, a.of(&PACKET))),
    row("slow-start-time", Seconds, &[&SIZE, &RTT, &RATE, &IW, &MSS, &HEADERS],
        ("n = size / mss segments in k = ceil(log2(n / iw + 1)) rounds: a round trip for the handshake, k for the \
          rounds, and the packets before the last one of its round",
         "slow start, RFC 5681, section 3.1, with an ACK for each segment"),
        slow_start),
];

impl Formula {
    /// Returns the formula of this name.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        FORMULAS.iter().find(|f| f.name == name)
    }

    /// Returns the names of all formulas.
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        FORMULAS.iter().map(|f| f.name)
    }

    /// Returns its value; `None` if it has none there, as by a loss of 0 in a denominator.
    pub(crate) fn value(&self, arguments: &Arguments) -> Option<f64> {
        Some((self.value)(arguments)).filter(|v| v.is_finite())
    }

    /// Returns all arguments in words, for errors.
    pub(crate) fn arguments_in_words(&self) -> String {
        let one = |a: &&Argument| format!("{} ({})", a.name, a.words);
        self.arguments.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(name: &str, arguments: &[(&'static str, f64)]) -> f64 {
        let formula = Formula::named(name).unwrap();
        let one = |a: &&Argument| {
            let given = arguments.iter().find(|(name, _)| *name == a.name).map(|g| g.1);
            (a.name, given.or(a.default).unwrap())
        };
        formula.value(&Arguments(formula.arguments.iter().map(one).collect())).unwrap()
    }

    #[track_caller]
    fn near(value: f64, wanted: f64, tolerance: f64) {
        assert!((value / wanted - 1.0).abs() < tolerance, "{value}, not {wanted}");
    }

    /// Numbers that the paper prints, and what its formulas give in the other reading.
    #[test]
    fn worked_numbers_of_the_paper_need_the_one_way_reading() {
        let ratio = |reading: &str, rtt: f64, loss: f64| {
            let a = [("rate", 1e8), ("rtt", rtt), ("loss", loss)];
            value(&format!("explicit-rate-{reading}"), &a) / value(&format!("normal-rate-{reading}"), &a)
        };
        near(ratio("one-way", 1.0, 0.1), 224.0, 0.002);
        near(ratio("round-trip", 1.0, 0.1), 236.0, 0.002);
        near(ratio("one-way", 0.04, 0.01), 18.5, 0.01);
        near(ratio("one-way", 0.04, 0.002), 10.4, 0.01);
        let a = [("size", 8e6), ("rate", 1e8), ("rtt", 0.04), ("loss", 0.02)];
        near(value("normal-time-one-way", &a), 27.2, 0.002);
        near(value("normal-time-round-trip", &a), 51.8, 0.002);
        near(value("explicit-time-one-way", &a), 1.0, 0.01);
        near(value("explicit-time-round-trip", &a), 1.24, 0.01);
        near(value("future-rate", &a), 98.04e6, 1e-3);
        near(value("future-time", &a), 0.653, 1e-3);
        near(value("ceiling-rate", &a), 98e6, 1e-9);
    }

    #[test]
    fn windows_and_losses_give_rates() {
        let t1 = [("rate", 1.544e6), ("rtt", 0.585), ("mss", 1000.0), ("headers", 40.0)];
        let with = |name: &str, more: &[(&'static str, f64)]| value(name, &[&t1[..], more].concat());
        near(with("window-rate", &[("window", 65_536.0)]), 896_219.0, 1e-5);
        near(with("window-rate", &[("window", 65_536.0), ("flows", 3.0)]), 1.544e6 / 1.04, 1e-9);
        near(with("bandwidth-delay", &[]), 112_905.0, 1e-9);
        // 1.2247 x 8000 bit / (0.585 s x 0.1)
        near(with("mathis-rate", &[("loss", 1e-2)]), 167_488.0, 1e-4);
        near(with("mathis-rate", &[("loss", 0.0)]), 1.544e6 / 1.04, 1e-9);
        // 8320 bits at 1e-6: a loss of 0.00828549
        near(with("mathis-rate-ber", &[("ber", 1e-6)]), 167_488.0 * (1e-2_f64 / 0.008_285_49).sqrt(), 1e-4);
        near(value("packet-error", &[("ber", 1e-6)]), 0.011_928, 1e-4);
    }

    /// Ten segments with an initial window of 1: 1, 2, 4 and the third of the next 8.
    #[test]
    fn rounds_of_slow_start() {
        let a = [("size", 10e3), ("rtt", 0.5), ("rate", 1e6), ("iw", 1.0), ("mss", 1000.0)];
        near(value("slow-start-time", &a), 0.5 + 4.0 * (0.5 + 0.008) + 2.0 * 0.008, 1e-12);
    }

    #[test]
    fn a_value_without_a_bound_is_none() {
        let formula = Formula::named("normal-time-one-way").unwrap();
        let none = Arguments(vec![("size", 1.0), ("rate", 0.0), ("rtt", 0.0), ("loss", 0.0)]);
        assert_eq!(formula.value(&none), None);
    }

    #[test]
    fn the_manual_has_every_formula() {
        let manual = include_str!("../../../../docs/src/figures.md");
        for f in &FORMULAS {
            let arguments: Vec<String> = f.arguments.iter().map(|a| format!("`{}`", a.name)).collect();
            let row = format!("| `{}` | {} | {} | {} |", f.name, arguments.join(", "), f.equation, f.source);
            assert!(manual.contains(&row), "the table of formulas in reference.md needs:\n{row}");
        }
        for row in super::super::course::rows() {
            assert!(manual.contains(&row), "the table of quantities in reference.md needs:\n{row}");
        }
    }
}
