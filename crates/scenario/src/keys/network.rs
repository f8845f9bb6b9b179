//! Keys of networks: nodes, links and what a link does.

use crate::form::{At, either, table, words};
use crate::keys::{
    BurstKeys, CapacityKeys, DamaKeys, DisciplineForm, FadeKeys, IdleReleaseKeys, MAX_PAIRS, MAX_STATIONS,
    OrbitKeys, OutageKeys,
};
use crate::lists::{Pairs, Path};
use crate::measure::Degrees;
use crate::scalars::{Name, Whole};
use bentpipe_base::{Duration, Instant, Probability, Rate, Size};
use bentpipe_link::Capacity;

table! {
    /// Hosts `src1`, `src2`, ... on the left, `dst1`, `dst2`, ... on the right, routers `left` and `right`,
    /// and between these a link named `bottleneck`; its other direction is `bottleneck-return`. Access links
    /// are named `src1-access`, `dst1-access`, ..., in the direction of the data, and `src1-access-return`,
    /// ... in the direction of the ACKs. Keys for rate, buffer, loss, ber and framing are those of the
    /// bottleneck from left to right.
    struct DumbbellKeys "[dumbbell]" {
        required {
            /// Every access link, both directions.
            access: DirectionKeys,
        }
        optional {
            /// Two-way propagation delay from a source to its destination and back. The bottleneck gets what
            /// the access links leave: `rtt/2 - 2 * access.delay` each way.
            rtt: Duration = "must be given, unless there is a `profile`: then the bottleneck has its delays",
            /// A ready-made satellite link for the bottleneck; every key given here or in `return` goes
            /// before it. See `bentpipe links`.
            profile: Name = "none",
            /// Number of sources, and of destinations.
            pairs: Whole<1, MAX_PAIRS> = "`1`",
            /// The bottleneck from right to left.
            r#return: ChannelKeys = "the profile's, or rate, buffer, framing and orbit as forward and nothing else",
        }
        include { channel: ChannelKeys, }
    }
}

table! {
    /// Users behind stations of one satellite: hosts `user1`, `user2`, ... and routers `station1`,
    /// `station2`, ..., joined by `user1-access`, ... (and `user1-access-return`, ... from the station to the
    /// user). In a `"star"` the satellite is a bent pipe and a router `hub` on the ground switches: from user
    /// to user are two hops. `station1-uplink` leads through the satellite to the hub, `station1-downlink`
    /// from the hub through the satellite to the station. In a `"mesh"` a router `satellite` switches on
    /// board: `station1-uplink` leads up to it and `station1-downlink` down, from user to user is one hop,
    /// and what waits on board waits before a downlink.
    struct SatelliteKeys "[satellite]" {
        required {
            /// Who switches: the hub on the ground, or the satellite.
            topology: Topology,
            /// Two-way propagation delay from a user over one hop to another and back, access links included.
            /// In a star, user to user takes two hops.
            rtt: Duration,
            /// From each station up.
            uplink: ChannelKeys,
            /// Down to each station; its buffer is on the ground at the hub.
            downlink: ChannelKeys,
            /// Every access link, both directions.
            access: DirectionKeys,
        }
        optional {
            /// Number of stations, each with a user.
            stations: Whole<2, MAX_STATIONS> = "`2`",
            /// In a mesh, the buffer on board before each downlink. It is only used when uplinks bring more
            /// than a downlink takes. Nothing waits on board in a star.
            onboard_buffer: Capacity = "as `downlink.buffer`",
        }
    }
}

/// Where a satellite network switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Topology {
    Star,
    Mesh,
}

words!(Topology { "star" => Star, "mesh" => Mesh, });

table! {
    /// How a link carries packets in one direction. Order of effects: queue, serialise, errors, propagate.
    /// What changes during a run acts in the order timeline, `capacity`, `delay` and `loss` over time,
    /// `orbit`, `fade`, `bursts`, `outages`; `dama` and `idle_release`, of which there is at most one, decide
    /// when a packet may begin.
    struct ChannelKeys "a channel" {
        optional {
            /// Rate at which IP bytes plus `framing` are sent. In `backward` and `return` a table may derive
            /// it from the forward rate.
            rate: RateForm = "must be given",
            /// What may wait: packets, or bytes. The packet being sent does not count.
            buffer: Capacity = "must be given",
            /// Who is served next, and who is dropped; see [Queues](queues.md). First in, first out: a full
            /// queue drops the arrival (`"fifo"`) or the oldest (`"drop-head"`), or what waits too long is
            /// dropped or marked (`"codel"`), and that for each flow apart (`"fq_codel"`). The others concern
            /// packets marked as lower effort (LE, RFC 8622), as probe segments are: they are served last and
            /// others push them out; are refused when more than one packet waits; or are refused the more
            /// often the fuller the queue, and all from a quarter of the buffer on.
            discipline: DisciplineForm = "`\"fifo\"`",
            /// Probability that a packet is lost, each independently, after the queue; or one over time.
            loss: LossForm = "`0`",
            /// Bit error rate over IP bytes plus `framing`; a packet survives when all its bits do.
            ber: Probability = "`0`",
            /// Bytes that the link adds to each packet.
            framing: Size = "`\"0 B\"`",
            /// Rate over time, or instants at which packets may leave.
            capacity: CapacityKeys = "constant",
            /// Satellites that move.
            orbit: OrbitKeys = "none",
            /// Attenuation over time and what it does.
            fade: FadeKeys = "none",
            /// Errors in bursts.
            bursts: BurstKeys = "none",
            /// Times in which nothing gets through.
            outages: OutageKeys = "none",
            /// Demand assignment of the return link.
            dama: DamaKeys = "none",
            /// A channel that is released when idle.
            idle_release: IdleReleaseKeys = "none",
        }
    }
}

table! {
    /// The rate of a return direction from RFC 3449's normalised bandwidth ratio:
    /// `k = (forward rate / return rate) / (data / ack)`.
    struct AsymmetryKeys "rate" {
        required {
            /// More than one ACK per `k` data packets fills the return direction. More than 0.
            k: f64,
            /// Size of a data packet on the link.
            data: Size,
            /// Size of an ACK on the link.
            ack: Size,
        }
    }
}

table! {
    /// One-way delay: that of a hop over a geostationary satellite, by `satellite` and `stations` (straight
    /// lines over a spherical Earth of 6378 km, 299792.458 km/s); or over time, by `steps` or a `trace`.
    /// Where one delay is wanted, as for the latency of `dama`, that is the mean over time.
    struct DelayKeys "delay" {
        optional {
            /// Longitude of the satellite; east is positive.
            satellite: Degrees = "not given",
            /// Latitude and longitude of the two ground stations; north and east are positive.
            stations: Pairs<Degrees, Degrees> = "not given",
            /// From each instant on this delay; the first holds before it, too.
            steps: Pairs<Instant, Duration> = "not given",
            /// A recording: in each line a one-way delay in milliseconds, or -1 for a packet that was lost,
            /// whose delay is that of the line before. Or a table with the header
            /// `timestamp,rtt,uplink,downlink` or some of it, as LENS has of IRTT. It starts over when it
            /// ends.
            trace: Path = "not given",
            /// Column of a table. Of `rtt` half is taken.
            column: Name = "`\"rtt\"`",
            /// Time that a line stands for; a table has times of its own.
            every: Duration = "`\"10 ms\"`",
            /// Steps start over after this time, which is later than the last.
            repeat: Duration = "they do not",
        }
    }
}

table! {
    /// Loss over time, by `steps` or a `trace`.
    struct LossKeys "loss" {
        optional {
            /// From each instant on this probability; the first holds before it, too.
            steps: Pairs<Instant, Probability> = "not given",
            /// A recording: in each line a probability. Or a table as for [`delay`](#delay): -1 is 1,
            /// anything else 0; -1 in `rtt` counts for every column, and with `rtt` that of any column. It
            /// starts over when it ends.
            trace: Path = "not given",
            /// Column of a table.
            column: Name = "`\"rtt\"`",
            /// Time that a line stands for; a table has times of its own.
            every: Duration = "`\"10 ms\"`",
            /// Steps start over after this time, which is later than the last.
            repeat: Duration = "they do not",
        }
    }
}

either! {
    /// A rate, or one that follows from the other direction's.
    RateForm { Fixed(Rate), Table(AsymmetryKeys) }
}
either! {
    /// A delay, the places from which it follows, or delays over time.
    DelayForm { Fixed(Duration), Table(DelayKeys) }
}
either! {
    /// A probability, or one over time.
    LossForm { Fixed(Probability), Table(LossKeys) }
}

table! {
    /// One direction of a link.
    struct DirectionKeys "a direction" {
        optional {
            /// One-way propagation delay.
            delay: DelayForm = "must be given, unless the orbit has slots",
        }
        include { channel: ChannelKeys, }
    }
}

table! {
    /// A host: the end of flows. It has exactly one link.
    struct HostKeys "[[hosts]]" {
        required {
            /// Unique among hosts and routers.
            name: Name,
        }
    }
}

table! {
    /// A router. Packets take the path with the fewest hops (the first link in the file on ties) unless
    /// `routes` says otherwise.
    struct RouterKeys "[[routers]]" {
        required {
            /// Unique among hosts and routers.
            name: Name,
        }
        optional {
            /// Routes that differ from the fewest hops.
            routes: Vec<At<RouteKeys>> = "none",
        }
    }
}

table! {
    /// Sends packets for one host over one link.
    struct RouteKeys "routes" {
        required {
            /// A host.
            to: Name,
            /// A link of this router, by the name of either direction.
            via: Name,
        }
    }
}

table! {
    /// A link. Keys of a direction given here hold for both directions, unless `forward` or `backward` says
    /// otherwise; rate, delay and buffer must be given one way or the other, or come from `profile`.
    struct LinkKeys "[[links]]" {
        required {
            /// Name of the direction from `from` to `to`, unique among links.
            name: Name,
            /// A host or router.
            from: Name,
            /// Another host or router.
            to: Name,
        }
        optional {
            /// A ready-made satellite link; every key given here, in `forward` or in `backward` goes before
            /// it. See `bentpipe links`.
            profile: Name = "none",
            /// Name of the other direction.
            reverse_name: Name = "the name and `-return`",
            /// From `from` to `to`.
            forward: DirectionKeys = "as the link",
            /// From `to` to `from`.
            backward: DirectionKeys = "as the link",
        }
        include { both: DirectionKeys, }
    }
}
