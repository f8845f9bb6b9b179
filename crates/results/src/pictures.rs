//! The pictures of a page as files.

use crate::capture::safe_file_name;
use crate::file::{Error, write_file};
use crate::{exchange, figures, limits};
use bentpipe_plot::{Formats, Ladder, Mode, Plot, Strip};
use bentpipe_report::Report;
use bentpipe_sim::Record;
use std::io;
use std::path::{Path, PathBuf};

/// A picture of any kind.
pub(crate) enum Picture {
    Plot(Plot),
    Strip(Strip),
    Ladder(Ladder),
}

impl Picture {
    fn to_svg(&self, mode: Mode) -> String {
        match self {
            Self::Plot(plot) => plot.to_svg(mode),
            Self::Strip(strip) => strip.to_svg(mode),
            Self::Ladder(ladder) => ladder.to_svg(mode),
        }
    }
}

/// All pictures of a run with the names of their files, without extension.
pub(crate) fn of_run(report: &Report, record: &Record) -> Vec<(String, Picture)> {
    let mut all: Vec<(String, Picture)> = Vec::new();
    all.extend(limits::strip(&[("", record)]).map(|strip| ("limits".to_owned(), Picture::Strip(strip))));
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
        let files = formats.files(&name, |mode| picture.to_svg(mode));
        let files =
            files.map_err(|e| Error::io(&dir.join(&name), "draw the picture", io::Error::other(e)))?;
        for (file, bytes) in files {
            paths.push(write_file(dir, &file, &bytes)?);
        }
        taken.push(name);
    }
    Ok(paths)
}
