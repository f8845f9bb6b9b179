//! Keys of what changes on a link during a run.

use crate::form::{either, table, words};
use crate::lists::{Millis, Pairs, Path, Range, RateOrNone};
use crate::measure::{Decibel, Degrees, Kilometres, PerSecond};
use crate::scalars::{MarginForm, Name};
use bentpipe_base::{Duration, Instant, Probability, Rate};

table! {
    /// How much the link carries, and when. Exactly one of `steps`, `file`, `mahimahi` and
    /// `opportunities_ms`.
    struct CapacityKeys "capacity" {
        optional {
            /// From each instant on this rate; before the first the link's own. `"none"` carries nothing:
            /// packets wait.
            steps: Pairs<Instant, RateOrNone> = "not given",
            /// The same from a CSV file with the columns `time_s,rate_bps`; a rate of 0 carries nothing.
            file: Path = "not given",
            /// A mahimahi trace: in each line the millisecond at which one packet of 1504 B may leave. It
            /// starts over when it ends.
            mahimahi: Path = "not given",
            /// A mahimahi trace written out.
            opportunities_ms: Millis = "not given",
            /// Steps start over after this time, which is later than the last.
            repeat: Duration = "they do not",
        }
    }
}

table! {
    /// Satellites that move. Exactly one key.
    struct OrbitKeys "orbit" {
        optional {
            /// One satellite after another passes through the zenith on a circular orbit, as in MEO: the
            /// delay of the two hops is added to the link's own.
            pass: PassKeys = "not given",
            /// Another satellite in every slot, as in LEO: the slot's delay replaces the link's own.
            slots: SlotsKeys = "not given",
        }
    }
}

table! {
    /// Passes of satellites; the terminal changes over at the lowest elevation.
    struct PassKeys "pass" {
        required {
            /// Altitude above a sphere of 6378 km radius, 160 to 100000 km.
            altitude: Kilometres,
        }
        optional {
            /// Lowest elevation in use, 0 to 85 degrees.
            min_elevation: Degrees = "`\"10 deg\"`",
            /// Time between computations of the delay.
            every: Duration = "`\"1 s\"`",
        }
    }
}

table! {
    /// A schedule of slots.
    struct SlotsKeys "slots" {
        required {
            /// One-way delay of a slot, uniform between these.
            delay: Range<Duration>,
        }
        optional {
            /// Length of a slot.
            period: Duration = "`\"15 s\"`",
            /// Beginning of the first full slot, less than `period`.
            offset: Duration = "`\"0 s\"`",
            /// Directions of the same `pair` draw the same places in their ranges.
            pair: Name = "the link's name",
            /// Scale of the Laplace-distributed jitter of the one-way delay.
            jitter: Duration = "`\"0 s\"`",
            /// How long one value of the jitter holds.
            jitter_step: Duration = "`\"10 ms\"`",
            /// Rate of a slot, uniform between these.
            rate: Range<Rate> = "the link's own",
            /// What happens between two slots.
            handover: HandoverForm = "`\"seamless\"`",
            /// Packets may overtake each other when the delay drops.
            reorder: bool = "`false`",
        }
    }
}

table! {
    /// What happens between two slots: an outage, or `loss` for a `time`.
    struct HandoverKeys "handover" {
        optional {
            /// Everything sent is lost for a time, uniform between these.
            outage: Range<Duration> = "not given",
            /// Packets are lost with this probability.
            loss: Probability = "not given",
            /// For so long.
            time: Duration = "not given",
        }
    }
}

table! {
    /// Attenuation over time and what it does. Its source is `profile` or `rain`; its effect is `coding` with
    /// `clear` or `anchor`, or `acm`.
    struct FadeKeys "fade" {
        optional {
            /// Attenuation at instants, with straight lines between.
            profile: Pairs<Instant, Decibel> = "not given",
            /// The random series of Recommendation ITU-R P.1853.
            rain: RainKeys = "not given",
            /// Bit errors of a fixed coding.
            coding: CodingForm = "not given",
            /// Eb/N0 under clear sky, with `coding`.
            clear: Decibel = "not given",
            /// Instead of `clear`: the bit error rate at a known fade.
            anchor: AnchorKeys = "not given",
            /// Adaptive coding and modulation of DVB-S2: the link gets slower.
            acm: AcmKeys = "not given",
            /// Time between computations.
            every: Duration = "`\"1 s\"`",
        }
    }
}

table! {
    /// Rain attenuation as a time series, ITU-R P.1853-1; the defaults are like a temperate 20 GHz link.
    struct RainKeys "rain" {
        optional {
            /// Mean of ln A, A in dB; -20 to 20.
            m: f64 = "`-3.26`",
            /// Standard deviation of ln A; more than 0, at most 10.
            sigma: f64 = "`1.65`",
            /// Share of time in which it rains; more than 0, less than 1.
            p0: f64 = "`0.05`",
            /// Inverse correlation time.
            beta: PerSecond = "`\"2e-4 1/s\"`",
            /// Time between samples.
            step: Duration = "`\"1 s\"`",
            /// Standard deviation of the scintillation.
            scintillation: Decibel = "`\"0 dB\"`",
            /// Whose weather: directions that name the same station see the same rain.
            station: Name = "the link's name",
            /// Attenuation of this direction over that of the station; about 1.9 for 30 GHz over 20 GHz. More
            /// than 0, at most 100.
            scale: f64 = "`1`",
        }
    }
}

table! {
    /// A coding without errors above a threshold and without packets below: turbo, LDPC, concatenated
    /// Reed-Solomon.
    struct ThresholdKeys "coding" {
        required {
            /// Eb/N0 at which half the packets are lost.
            threshold: Decibel,
        }
    }
}

table! {
    /// Fixes the Eb/N0 under clear sky by one known point.
    struct AnchorKeys "anchor" {
        required {
            /// At this attenuation,
            fade: Decibel,
            /// the bit error rate is this: more than 0 and less than 0.5.
            ber: Probability,
        }
    }
}

table! {
    /// Adaptive coding and modulation. The link's own rate is that of the best mode that clear sky allows
    /// with the margin.
    struct AcmKeys "acm" {
        required {
            /// Es/N0 under clear sky; QPSK 1/4 needs -2.35 dB.
            clear: Decibel,
        }
        optional {
            /// What a faster mode needs beyond its threshold and the margin before it is taken.
            hysteresis: Decibel = "`\"0.5 dB\"`",
            /// Distance that is kept to the threshold of a mode; `"auto"`: 1 dB, and what the fade grew by in
            /// the last `delay`. With `"0 dB"` every step down is preceded by a `delay` in which all packets
            /// are lost.
            margin: MarginForm = "`\"auto\"`",
            /// From a change of the signal to the change of the mode.
            delay: Duration = "`\"1 s\"`",
        }
    }
}

table! {
    /// Errors in bursts: a Gilbert-Elliott channel in time. Either `good` and `bad`, or `loss` and `burst`.
    struct BurstKeys "bursts" {
        optional {
            /// Mean length of a good spell.
            good: Duration = "not given",
            /// Mean length of a bad spell.
            bad: Duration = "not given",
            /// Loss probability in good spells.
            loss_good: Probability = "`0`",
            /// Loss probability in bad spells.
            loss_bad: Probability = "`1`",
            /// Mean loss, all of it in bad spells: more than 0 and less than 1.
            loss: Probability = "not given",
            /// With `loss`: mean length of a bad spell. Good ones last `burst * (1 - loss) / loss`.
            burst: Duration = "not given",
        }
    }
}

table! {
    /// Times in which nothing gets through: shadowing, a terminal that loses its satellite.
    struct OutageKeys "outages" {
        required {
            /// From the end of one to the beginning of the next.
            every: Duration,
            /// How long one lasts, uniform between these.
            length: Range<Duration>,
        }
        optional {
            /// Gaps are exponential with the mean `every`; otherwise equal.
            random: bool = "`true`",
        }
    }
}

table! {
    /// Demand assignment (RBDC and VBDC of DVB-RCS2): what waits is asked for at the start of each frame.
    struct DamaKeys "dama" {
        optional {
            /// Length of a frame.
            frame: Duration = "`\"26.5 ms\"`",
            /// From the request to the first frame that serves it.
            latency: Duration = "twice the link's delay and two frames",
            /// What may be sent without asking.
            free: Rate = "none",
        }
    }
}

table! {
    /// A channel that carried nothing for `idle` is released; the next packet waits `setup`.
    struct IdleReleaseKeys "idle_release" {
        required {
            /// Time without a packet after which the channel is released.
            idle: Duration,
            /// Time to set it up again.
            setup: Duration,
        }
    }
}

/// A coding with a bit error rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlainCoding {
    Uncoded,
    Viterbi,
}

/// The word `seamless`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Seamless {
    Seamless,
}

words!(PlainCoding { "uncoded" => Uncoded, "viterbi" => Viterbi, } or r#"{ threshold = "1.5 dB" }"#);
words!(Seamless { "seamless" => Seamless, } or r#"{ outage = "50 ms" }"# or r#"{ loss = 0.01, time = "1 s" }"#);

either! {
    /// A coding by name, or its threshold.
    CodingForm { Plain(PlainCoding), Table(ThresholdKeys) }
}
either! {
    /// `"seamless"` or a table.
    HandoverForm { Plain(Seamless), Table(HandoverKeys) }
}
