//! TCP on a faded Ka-band link: Kruse, Ostermann, Allman, 2000.

mod steady;
mod two_hours;

use crate::prelude::*;

/// The experiment.
pub static SECTION: Section = Section {
    title: "The Ka-band experiment of 2000",
    intro: "Kruse, Ostermann and Allman, *On the performance of TCP-based data transfers on a faded Ka-band \
        satellite link* (2000), sent one TCP flow over NASA's ACTS while a dish that pointed ahead of the \
        satellite made a fade of 5 dB that went away in two hours. T1, 1.536 Mbit/s, of which TCP data get 185 \
        kB/s; windows of 16, 102 and 512 KB; Reno and SACK. Their statements are checked here as numbers, those \
        marked K in a table each. The round trip is not printed; 102 KB, their bandwidth-delay product, makes it \
        0.53 to 0.54 s. 560 ms are used, as in the runs of ns-2 above. Whether the receiver delayed its ACKs is \
        not said: tolerances hold for an ACK for each segment, and the other is reported beside it.",
    pictures: &[
        ("validation-fade.svg", "Fade over time"),
        ("validation-fade-errors.svg", "Bit error rate and segment error rate over time"),
        ("validation-fade-goodput.svg", "Throughput over time"),
        ("validation-fade-ber.svg", "Throughput over bit error rate for windows of 512 KB and 16 KB"),
    ],
    tables: &[
        &steady::UTILISATION,
        &steady::SMALL_WINDOW,
        &steady::RENO_AND_SACK,
        &steady::CEILING,
        &two_hours::ERRORS_PER_BIT,
        &two_hours::FADE_AND_ERRORS,
    ],
    checks: || [steady::all(), two_hours::all()].concat(),
};

pub(crate) use two_hours::fade_job;
