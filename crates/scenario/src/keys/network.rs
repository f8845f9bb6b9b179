//! Keys of networks: nodes, links and the properties of a link.

use crate::form::{At, OrTable, table, words};
use crate::keys::{
    BurstKeys, CapacityKeys, DamaKeys, DisciplineKeys, FadeKeys, IdleReleaseKeys, MAX_PAIRS, MAX_STATIONS,
    OrbitKeys, OutageKeys,
};
use crate::lists::{Pairs, Path};
use crate::measure::Degrees;
use crate::scalars::{Name, Whole};
use bentpipe_base::{Duration, Instant, Probability, Rate, Size};
use bentpipe_link::{Capacity, Discipline, Longer, LossDraw};

table! {
    /// Hosts `src1`, `src2`, ... on the left and `dst1`, `dst2`, ... on the right, routers `left` and
    /// `right`, and between the routers a link `bottleneck`, whose other direction is `bottleneck-return`.
    /// Access links are called `src1-access`, `dst1-access`, ... in the direction of the data, and
    /// `src1-access-return`, ... in the direction of the ACKs. Channel keys such as rate, buffer, loss, ber
    /// and framing are those of the bottleneck from left to right.
    struct DumbbellKeys "[dumbbell]" {
        /// All access links, in both directions.
        access: DirectionKeys,
        /// Two-way propagation delay between a source and its destination. The bottleneck gets the part that
        /// the access links leave: `rtt/2 - 2 * access.delay` in each direction.
        rtt: Duration = "must be given, unless there is a `profile`: then the bottleneck has its delays",
        /// A ready-made satellite link (see `bentpipe links`). Keys here or in `return` override it.
        profile: Name = "none",
        /// Number of sources, and number of destinations.
        pairs: Whole<1, MAX_PAIRS> = "`1`",
        /// The bottleneck link from right to left.
        r#return: ChannelKeys = "the profile's, or rate, buffer, framing, mtu and orbit as forward and nothing else",
        ..channel: ChannelKeys,
    }

    /// Users behind the ground stations of one satellite: hosts `user1`, `user2`, ... and routers
    /// `station1`, `station2`, ..., connected by `user1-access`, ... (from the station to the user:
    /// `user1-access-return`, ...). In a `"star"` the satellite is a bent pipe, and a router `hub` on the
    /// ground forwards, so a packet from user to user takes two satellite hops: `station1-uplink` leads
    /// through the satellite to the hub, and `station1-downlink` from the hub through the satellite to the
    /// station. In a `"mesh"` a router `satellite` forwards on board, so a packet takes one hop:
    /// `station1-uplink` leads up to the satellite and `station1-downlink` down to the station, with an
    /// on-board queue before each downlink.
    struct SatelliteKeys "[satellite]" {
        /// Where packets are forwarded: at the hub on the ground, or on board the satellite.
        topology: Topology,
        /// Two-way propagation delay between two users over one satellite hop, access links included. In a
        /// star, the path between two users has two hops.
        rtt: Duration,
        /// Channel from each station up.
        uplink: ChannelKeys,
        /// Channel down to each station. In a star, its buffer is at the hub.
        downlink: ChannelKeys,
        /// All access links, in both directions.
        access: DirectionKeys,
        /// Number of stations, each with one user.
        stations: Whole<2, MAX_STATIONS> = "`2`",
        /// On-board buffer before each downlink of a mesh. It fills only if uplinks deliver more than the
        /// downlink carries. A star has no queue on board.
        onboard_buffer: Capacity = "as `downlink.buffer`",
    }
}

/// Where a satellite network forwards packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Topology {
    Star,
    Mesh,
}

words!(LossDraw { "packet" => Packet, "gap" => Gap, });
words!(Longer { "refuse" => Refuse, "fragment" => Fragment, });
words!(Topology { "star" => Star, "mesh" => Mesh, });

table! {
    /// Properties of one direction of a link. A packet is queued, serialised, exposed to errors and then
    /// propagated. If several keys change the same property during a run, they apply in the order timeline,
    /// `capacity`, `delay` and `loss` over time, `orbit`, `fade`, `bursts`, `outages`. `dama` and
    /// `idle_release` decide when a packet may start; at most one of them can be given.
    struct ChannelKeys "a channel" {
        /// Rate at which IP bytes plus `framing` are sent. In `backward` and `return`, a table can derive it
        /// from the forward rate.
        rate: OrTable<Rate, AsymmetryKeys> = "must be given",
        /// Size of the queue, in packets or bytes. The packet in transmission does not count.
        buffer: Capacity = "must be given",
        /// Queue discipline; see [Queues](queues.md). First in, first out: a full queue drops the arriving
        /// packet (`"fifo"`) or the oldest (`"drop-head"`), or packets that wait too long are dropped or
        /// marked (`"codel"`), also with a queue for each flow (`"fq_codel"`). The other three treat packets
        /// marked as lower effort (LE, RFC 8622), such as probe segments, differently: `"pushout"` serves
        /// them last and drops them to make room for other packets; `"threshold"` drops them on arrival when
        /// more than one packet waits; `"wred"` drops them with a probability that grows with the queue and
        /// is 1 from a quarter of the buffer on. `"flow-priority"` serves packets of flows with a reserved
        /// rate first, then those of higher delay priority, as a flow router has marked them.
        discipline: OrTable<Discipline, DisciplineKeys> = "`\"fifo\"`",
        /// Loss probability of each packet, independent, after the queue; or loss over time.
        loss: OrTable<Probability, LossKeys> = "`0`",
        /// How losses with the probability `loss` are drawn. `"packet"`: a random number for each packet.
        /// `"gap"`: one for each loss, which says how many packets pass before it. Both have the same
        /// distribution, but other packets are lost. With gaps, what repeats itself between two losses is
        /// skipped (see [Exact fast-forward](commands.md#exact-fast-forward)). They do not go with `ber`.
        loss_draw: LossDraw = "`\"packet\"`",
        /// Bit error rate over IP bytes plus `framing`. A packet with at least one wrong bit is lost.
        ber: Probability = "`0`",
        /// Bytes that the link layer adds to each packet.
        framing: Size = "`\"0 B\"`",
        /// Longest packet, IP header included and `framing` not. Longer packets are dropped, and their
        /// sender is told so and makes its segments shorter (RFC 1191, RFC 8201). A table can have them cut.
        /// In simulated time only.
        mtu: OrTable<Option<Size>, MtuKeys> = "`\"unlimited\"`",
        /// Rate over time, or times at which packets may leave.
        capacity: CapacityKeys = "constant",
        /// Delay, and rate, of moving satellites.
        orbit: OrbitKeys = "none",
        /// Attenuation over time and its effect.
        fade: FadeKeys = "none",
        /// Losses in bursts.
        bursts: BurstKeys = "none",
        /// Periods in which all packets are lost.
        outages: OutageKeys = "none",
        /// Demand-assigned capacity of a return link.
        dama: DamaKeys = "none",
        /// A channel that is released when idle.
        idle_release: IdleReleaseKeys = "none",
    }

    /// The longest packet of a link.
    struct MtuKeys "mtu" {
        /// Length, IP header included and `framing` not, 68 B to 65535 B.
        size: Option<Size>,
        /// What happens to longer packets. `"refuse"`: they are dropped, and their sender is told.
        /// `"fragment"`: they are cut into fragments with a header each, of which none may be lost. IPv6
        /// packets are refused in both cases.
        longer: Longer = "`\"refuse\"`",
    }

    /// Rate of a return direction, given by the normalised bandwidth ratio of RFC 3449: `k = (forward rate
    /// / return rate) / (data / ack)`.
    struct AsymmetryKeys "rate" {
        /// Normalised bandwidth ratio, more than 0. The return direction is saturated if there is more than
        /// one ACK for `k` data packets.
        k: f64,
        /// Size of a data packet on the link.
        data: Size,
        /// Size of an ACK on the link.
        ack: Size,
    }

    /// One-way delay of a hop over a geostationary satellite, computed from `satellite` and `stations`
    /// (straight lines, spherical Earth of 6378 km radius, 299792.458 km/s); or delay over time, from
    /// `steps` or a `trace`. Where a single delay is needed, such as for the latency of `dama`, the mean
    /// over time is used.
    struct DelayKeys "delay" {
        /// Longitude of the satellite. East is positive.
        satellite: Degrees = "not given",
        /// Latitude and longitude of the two ground stations. North and east are positive.
        stations: Pairs<Degrees, Degrees> = "not given",
        /// Times and the delay from each time on. The first delay also holds before its time.
        steps: Pairs<Instant, Duration> = "not given",
        /// Recording of delays. In each line a one-way delay in milliseconds, or -1 for a lost packet, which
        /// gets the delay of the line before. Or a table with some of the columns
        /// `timestamp,rtt,uplink,downlink`, such as IRTT data of LENS. The recording repeats at its end.
        trace: Path = "not given",
        /// Column of a table to use. Half of `rtt` is used as the one-way delay.
        column: Name = "`\"rtt\"`",
        /// Time that each line covers. Tables have their own times.
        every: Duration = "`\"10 ms\"`",
        /// Time after which `steps` repeat, later than the last step.
        repeat: Duration = "they do not",
    }

    /// Loss over time, by `steps` or a `trace`.
    struct LossKeys "loss" {
        /// Times and the loss probability from each time on. The first also holds before its time.
        steps: Pairs<Instant, Probability> = "not given",
        /// Recording of losses. In each line a probability. Or a table as for [`delay`](#delay): -1 means
        /// lost, any other value not lost. A -1 in `rtt` counts for every column, and column `rtt` counts a
        /// -1 in any column. The recording repeats when it ends.
        trace: Path = "not given",
        /// Column of a table to use.
        column: Name = "`\"rtt\"`",
        /// Time that each line covers. Tables have their own times.
        every: Duration = "`\"10 ms\"`",
        /// Time after which `steps` repeat, later than the last step.
        repeat: Duration = "they do not",
    }

    /// One direction of a link.
    struct DirectionKeys "a direction" {
        /// One-way propagation delay.
        delay: OrTable<Duration, DelayKeys> = "must be given, unless the orbit has slots",
        ..channel: ChannelKeys,
    }

    /// A host: an end of flows. It has exactly one link.
    struct HostKeys "[[hosts]]" {
        /// Unique among hosts and routers.
        name: Name,
    }

    /// A router. Packets take the route with the fewest hops unless `routes` says otherwise. Among equal
    /// routes, the link that comes first in the file wins.
    struct RouterKeys "[[routers]]" {
        /// Unique among hosts and routers.
        name: Name,
        /// Routes that differ from the route with the fewest hops.
        routes: Vec<At<RouteKeys>> = "none",
    }

    /// Sends the packets for one host over the given link.
    struct RouteKeys "routes" {
        /// Name of the destination host.
        to: Name,
        /// Name of a link of this router, in either direction.
        via: Name,
    }

    /// A link. Direction keys given here hold for both directions unless `forward` or `backward` overrides
    /// them. Rate, delay and buffer must be given for each direction, or come from `profile`.
    struct LinkKeys "[[links]]" {
        /// Name of the direction from `from` to `to`, unique among links.
        name: Name,
        /// A host or router.
        from: Name,
        /// Another host or router.
        to: Name,
        /// A ready-made satellite link (see `bentpipe links`). Keys of this table override it.
        profile: Name = "none",
        /// Name of the other direction.
        reverse_name: Name = "the name and `-return`",
        /// Direction from `from` to `to`.
        forward: DirectionKeys = "as the link",
        /// Direction from `to` to `from`.
        backward: DirectionKeys = "as the link",
        ..both: DirectionKeys,
    }
}
