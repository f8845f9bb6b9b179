//! The pictures of a page as files.

use crate::capture::safe_file_name;
use crate::file::{Error, write_file};
use crate::{exchange, figures, limits};
use bentpipe_plot::{Ladder, Mode, Plot, PngError, Strip};
use bentpipe_report::Report;
use bentpipe_sim::Record;
use std::io;
use std::path::{Path, PathBuf};

/// Kinds of files of pictures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Formats {
    /// SVG, which follows light and dark mode.
    pub svg: bool,
    /// PNG, in light colours.
    pub png: bool,
}

/// A picture of any kind.
pub(crate) enum Picture {
    Plot(Plot),
    Strip(Strip),
    Ladder(Ladder),
}

impl Picture {
    pub(crate) fn to_svg(&self, mode: Mode) -> String {
        match self {
            Self::Plot(plot) => plot.to_svg(mode),
            Self::Strip(strip) => strip.to_svg(mode),
            Self::Ladder(ladder) => ladder.to_svg(mode),
        }
    }

    fn to_png(&self) -> Result<Vec<u8>, PngError> {
        match self {
            Self::Plot(plot) => plot.to_png(),
            Self::Strip(strip) => strip.to_png(),
            Self::Ladder(ladder) => ladder.to_png(),
        }
    }
}

/// All pictures of a run with the names of their files, without extension.
pub(crate) fn of_run(report: &Report, record: &Record) -> Vec<(String, Picture)> {
    let mut all: Vec<(String, Picture)> = Vec::new();
    all.extend(limits::strip(record).map(|strip| ("limits".to_owned(), Picture::Strip(strip))));
    for (heading, plots) in figures::all(report, record) {
        // "Flow: a", "Link: hop"; what all flows have in common needs no such word
        let of = heading.split_once(": ").map_or_else(String::new, |(kind, name)| format!("{kind}-{name}-"));
        all.extend(plots.into_iter().map(|plot| (format!("{of}{}", plot.title), Picture::Plot(plot))));
    }
    let ladders = exchange::ladders(report, record);
    all.extend(ladders.into_iter().map(|ladder| ("signalling".to_owned(), Picture::Ladder(ladder))));
    all
}

/// Writes the pictures into `dir`, as `picture-NAME.svg` and `.png`. Returns the paths.
pub(crate) fn write(
    dir: &Path,
    pictures: &[(String, Picture)],
    formats: Formats,
) -> Result<Vec<PathBuf>, Error> {
    let (mut taken, mut paths): (Vec<String>, _) = (Vec::new(), Vec::new());
    for (name, picture) in pictures {
        let mut name = format!("picture-{}", safe_file_name(&name.to_lowercase()));
        while taken.contains(&name) {
            name.push('-');
        }
        if formats.svg {
            let svg = picture.to_svg(Mode::Standalone);
            paths.push(write_file(dir, &format!("{name}.svg"), svg.as_bytes())?);
        }
        if formats.png {
            let file = format!("{name}.png");
            let png = picture.to_png();
            let png =
                png.map_err(|e| Error::io(&dir.join(&file), "draw the picture", io::Error::other(e)))?;
            paths.push(write_file(dir, &file, &png)?);
        }
        taken.push(name);
    }
    Ok(paths)
}
