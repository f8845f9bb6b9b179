//! A study of 2002 with ns-2: TCP over a GEO link of 1.544 Mbit/s and 585 ms (Shao and Zhang, ENSC 835, Simon
//! Fraser University).

mod burst;
mod flavours;
mod segments;
mod window;

use crate::prelude::*;

/// The study.
pub static SECTION: Section = Section {
    title: "The ns-2 study of 2002",
    intro: "Shao and Zhang, *TCP performance over satellite links* (ENSC 835, 2002), ran ns-2 over a GEO satellite \
        with 1.544 Mbit/s and a round trip of 585 ms: packets of 1000 B, an ACK for each. The slides state what \
        came out, in words and plots without tables; their statements are checked here. Where a statement has a \
        number, the number of the formula behind it is expected. A loss rate is a share of packets: at the bit \
        error rates printed there no packet would arrive.",
    pictures: &[
        ("validation-windows.svg", "Throughput over receive window"),
        ("validation-connections.svg", "Throughput over the number of connections with windows of 40 KB"),
        ("validation-iw.svg", "Completion time over transfer size for three initial windows"),
        ("validation-segments.svg", "Throughput over bit error rate for three sizes of segments"),
        ("validation-flavours.svg", "Throughput of Reno, SACK and Vegas over loss"),
        ("validation-queue.svg", "Queue over time for four sizes of the on-board buffer"),
        ("validation-peaks.svg", "Longest queue over the on-board buffer for both ACK policies"),
        ("validation-buffers.svg", "Throughput over the on-board buffer for both ACK policies"),
    ],
    tables: &[
        &window::WINDOWS,
        &window::CONNECTIONS,
        &window::MULTIPLE_LOSSES,
        &segments::INITIAL_WINDOW,
        &segments::SEGMENT_SIZE,
        &segments::SEGMENTS_AND_ERRORS,
        &flavours::FLAVOURS,
        &flavours::ORDER,
        &burst::PEAK,
        &burst::LATER,
        &burst::OVERFLOW,
        &burst::THROUGHPUT,
        &burst::HOPS,
        &burst::DROPS,
    ],
    checks: || [window::all(), segments::all(), flavours::all(), burst::all()].concat(),
};

pub(crate) use burst::{SIZES, burst_job};
pub(crate) use flavours::FLAVOURS;
pub(crate) use segments::{segments_job, transfer_job};
pub(crate) use window::{CONNECTIONS, WINDOWS};

/// Rate of the link, bit/s.
const T1: f64 = 1.544e6;
/// Two-way propagation delay, s.
pub(crate) const RTT: f64 = 0.585;
