//! Keys of link properties that change during a run.

use crate::form::{OrTable, read_words, table};
use crate::lists::{MinMax, OpportunityTimes, Pairs, Path};
use crate::measure::{Decibel, Degrees, Gigahertz, Kilometres, Metres, PerSecond};
use crate::scalars::Name;
use bentpipe_base::{Duration, Instant, Probability, Rate};
use bentpipe_link::{Coding, Handover};

table! {
    /// Capacity of the link over time. Exactly one of `steps`, `file`, `mahimahi` and `opportunities_ms`.
    struct CapacityKeys "capacity" {
        /// Times and the rate from each time on. Before the first, the link's own rate holds. With `"none"`
        /// the link sends nothing and packets wait.
        steps: Pairs<Instant, Option<Rate>> = "not given",
        /// The same from a CSV file with the columns `time_s,rate_bps`. Rate 0: nothing is sent.
        file: Path = "not given",
        /// A mahimahi trace: each line is a time in milliseconds at which one packet of 1504 B may leave. The
        /// trace repeats when it ends.
        mahimahi: Path = "not given",
        /// A mahimahi trace given in place, as a list of times.
        opportunities_ms: OpportunityTimes = "not given",
        /// Time after which the steps repeat, later than the last step.
        repeat: Duration = "they do not",
    }

    /// Moving satellites. Exactly one key.
    struct OrbitKeys "orbit" {
        /// Satellites on a circular orbit that pass through the zenith one after another, as in MEO. The
        /// propagation delay of the two hops is added to the link's own delay.
        pass: PassKeys = "not given",
        /// A new satellite in every time slot, as in LEO. Its delay replaces the link's own.
        slots: SlotsKeys = "not given",
    }

    /// Satellite passes. The terminal switches to the next satellite at the minimum elevation.
    struct PassKeys "pass" {
        /// Altitude above a sphere of 6378 km radius, 160 km to 100000 km.
        altitude: Kilometres,
        /// Minimum elevation, 0 to 85 degrees.
        min_elevation: Degrees = "`\"10 deg\"`",
        /// Interval at which the delay is recomputed.
        every: Duration = "`\"1 s\"`",
    }

    /// Time slots, each with its own satellite.
    struct SlotsKeys "slots" {
        /// One-way delay of a slot, drawn uniformly from this range.
        delay: MinMax<Duration>,
        /// Length of a slot.
        period: Duration = "`\"15 s\"`",
        /// Start of the first full slot, less than `period`.
        offset: Duration = "`\"0 s\"`",
        /// Directions with the same `pair` draw the same relative positions in their ranges.
        pair: Name = "the link's name",
        /// Scale of the Laplace-distributed jitter of the one-way delay.
        jitter: Duration = "`\"0 s\"`",
        /// Time for which one jitter value holds.
        jitter_step: Duration = "`\"10 ms\"`",
        /// Rate of a slot, drawn uniformly from this range.
        rate: MinMax<Rate> = "the link's own",
        /// What happens at the change from one slot to the next.
        handover: OrTable<Handover, HandoverKeys> = "`\"seamless\"`",
        /// `true`: packets may overtake each other when the delay drops.
        reorder: bool = "`false`",
    }

    /// Effect of a handover: an outage, or `loss` for `time`.
    struct HandoverKeys "handover" {
        /// Duration for which all packets are lost, drawn uniformly from this range.
        outage: MinMax<Duration> = "not given",
        /// Loss probability of a packet.
        loss: Probability = "not given",
        /// Duration for which `loss` holds.
        time: Duration = "not given",
    }

    /// Attenuation over time and its effect. The source is `profile`, `rain` or `pointing`. The effect is
    /// either `coding` with `clear` or `anchor`, or `acm`.
    struct FadeKeys "fade" {
        /// Times and the attenuation at each, linearly interpolated.
        profile: Pairs<Instant, Decibel> = "not given",
        /// Random rain attenuation of Recommendation ITU-R P.1853.
        rain: RainKeys = "not given",
        /// Dish that does not follow its satellite.
        pointing: PointingKeys = "not given",
        /// Bit errors with a fixed coding.
        coding: OrTable<Coding, ThresholdKeys> = "not given",
        /// Eb/N0 under clear sky, for `coding`.
        clear: Decibel = "not given",
        /// In place of `clear`: the bit error rate at a known attenuation.
        anchor: AnchorKeys = "not given",
        /// Slow change of the Eb/N0 under clear sky, for `coding`.
        drift: DriftKeys = "none",
        /// Adaptive coding and modulation of DVB-S2, which reduces the rate of the link.
        acm: AcmKeys = "not given",
        /// Interval at which attenuation and effect are recomputed.
        every: Duration = "`\"1 s\"`",
    }

    /// Rain attenuation as a time series, ITU-R P.1853-1. Defaults: 20 GHz, temperate climate.
    struct RainKeys "rain" {
        /// Mean of ln A, with A in dB; -20 to 20.
        m: f64 = "`-3.26`",
        /// Standard deviation of ln A, more than 0 and at most 10.
        sigma: f64 = "`1.65`",
        /// Fraction of time in which it rains, more than 0 and less than 1.
        p0: f64 = "`0.05`",
        /// Inverse of the correlation time.
        beta: PerSecond = "`\"2e-4 1/s\"`",
        /// Sampling interval of the series.
        step: Duration = "`\"1 s\"`",
        /// Standard deviation of the scintillation.
        scintillation: Decibel = "`\"0 dB\"`",
        /// Name of the station. Directions with the same station have the same rain.
        station: Name = "the link's name",
        /// Attenuation of this direction relative to that of the station: about 1.9 for 30 GHz relative to 20
        /// GHz. More than 0 and at most 100.
        scale: f64 = "`1`",
    }

    /// A dish that points in one direction while its satellite moves in an inclined geosynchronous orbit.
    /// The attenuation is that of the main lobe, `2.5e-3 (phi D / lambda)^2` dB at `phi` degrees off the axis
    /// (ITU-R S.1428-1). Defaults: the Ka-band terminal in Athens, Ohio, of Kruse, Ostermann and Allman
    /// (2000), and ACTS: 5 dB at the start, 0 dB after two hours, 0.9 dB after three.
    struct PointingKeys "pointing" {
        /// Diameter of the dish.
        dish: Metres = "`\"1.2 m\"`",
        /// Carrier frequency of this direction.
        frequency: Gigahertz = "`\"20 GHz\"`",
        /// Inclination of the orbit, 0 to 90 degrees.
        inclination: Degrees = "`\"1 deg\"`",
        /// Longitude at which the satellite crosses the equator. East is positive.
        satellite: Degrees = "`\"-100 deg\"`",
        /// Latitude of the station. North is positive.
        latitude: Degrees = "`\"39.3 deg\"`",
        /// Longitude of the station. East is positive.
        longitude: Degrees = "`\"-82.1 deg\"`",
        /// Time at which the satellite crosses the equator northwards.
        node: Instant = "`\"0 s\"`",
        /// Time at which the satellite is where the dish points.
        aim: Instant = "`\"7200 s\"`",
    }

    /// A sine over time that is subtracted from the Eb/N0 under clear sky, and is not part of the recorded
    /// fade: a description of how the errors of a direction drift against the fade that a terminal
    /// measures, not a derivation.
    struct DriftKeys "drift" {
        /// Amplitude. Negative: the Eb/N0 rises first.
        amplitude: Decibel,
        /// Period.
        period: Duration = "`\"24 h\"`",
        /// Time at which the drift is zero.
        start: Instant = "`\"0 s\"`",
    }

    /// A coding that corrects all errors above a threshold and loses every packet below, such as turbo
    /// codes, LDPC or concatenated Reed-Solomon.
    struct ThresholdKeys "coding" {
        /// Eb/N0 at which half of the packets are lost.
        threshold: Decibel,
    }

    /// Determines the Eb/N0 under clear sky from one known pair of attenuation and bit error rate.
    struct AnchorKeys "anchor" {
        /// Attenuation of the known pair.
        fade: Decibel,
        /// Bit error rate at that attenuation, more than 0 and less than 0.5.
        ber: Probability,
    }

    /// Adaptive coding and modulation. The link's rate is that of the fastest mode under clear sky.
    struct AcmKeys "acm" {
        /// Es/N0 under clear sky. QPSK 1/4 needs -2.35 dB.
        clear: Decibel,
        /// Es/N0 beyond threshold and margin that is needed to switch to a faster mode.
        hysteresis: Decibel = "`\"0.5 dB\"`",
        /// Margin above the threshold of a mode. `"auto"`: 1 dB plus the increase of the attenuation during
        /// the last `delay`. With `"0 dB"`, all packets are lost for a `delay` before each switch to a slower
        /// mode.
        margin: Option<Decibel> = "`\"auto\"`",
        /// Time from a change of the signal to the change of the mode.
        delay: Duration = "`\"1 s\"`",
    }

    /// Bursts of losses: a continuous-time Gilbert-Elliott channel, by `good` and `bad` or `loss` and
    /// `burst`.
    struct BurstKeys "bursts" {
        /// Mean duration of the good state.
        good: Duration = "not given",
        /// Mean duration of the bad state.
        bad: Duration = "not given",
        /// Loss probability in the good state.
        loss_good: Probability = "`0`",
        /// Loss probability in the bad state.
        loss_bad: Probability = "`1`",
        /// Mean loss probability, more than 0 and less than 1. All losses happen in the bad state.
        loss: Probability = "not given",
        /// With `loss`: mean bad duration. The mean good duration is `burst * (1 - loss) / loss`.
        burst: Duration = "not given",
    }

    /// Periods in which all packets are lost, for instance because of shadowing.
    struct OutageKeys "outages" {
        /// Time from the end of an outage to the start of the next.
        every: Duration,
        /// Duration of an outage, drawn uniformly from this range.
        length: MinMax<Duration>,
        /// `true`: time between outages exponentially distributed with mean `every`; `false`: constant.
        random: bool = "`true`",
    }

    /// Demand-assigned capacity (RBDC and VBDC of DVB-RCS2). At the start of each frame the terminal
    /// requests capacity for the packets in its queue.
    struct DamaKeys "dama" {
        /// Length of a frame.
        frame: Duration = "`\"26.5 ms\"`",
        /// Time from a request to the first frame in which it is granted.
        latency: Duration = "twice the link's delay and two frames",
        /// Rate that is available without a request.
        free: Rate = "none",
    }

    /// A channel that is released after `idle` without packets. The next packet waits for `setup`.
    struct IdleReleaseKeys "idle_release" {
        /// Time without a packet after which the channel is released.
        idle: Duration,
        /// Time to set up the channel again.
        setup: Duration,
    }
}

read_words!(Coding { "uncoded" => Uncoded, "viterbi" => Viterbi, } or r#"{ threshold = "1.5 dB" }"#);
read_words!(Handover {
    "seamless" => Seamless,
} or r#"{ outage = "50 ms" }"# or r#"{ loss = 0.01, time = "1 s" }"#);
