//! `bentpipe show`: saved runs side by side.

use crate::locale;
use crate::outcome::{Failure, print_message};
use bentpipe_results::Formats;
use bentpipe_results::show::{self, SavedRun};
use clap::Args;
use std::path::PathBuf;

pub(crate) const EXAMPLES: &str = "Examples:
  bentpipe sim scenarios/sharing.toml --set tcp=cubic --out cubic/
  bentpipe sim scenarios/sharing.toml --set tcp=bbr --out bbr/
  bentpipe show cubic/ bbr/ --out both/";

/// Files of pictures beside a page.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Pictures {
    /// Also write each picture of the page as an SVG file.
    #[arg(long, requires = "out")]
    svg: bool,
    /// Also write each picture of the page as a PNG file.
    #[arg(long, requires = "out")]
    png: bool,
}

impl Pictures {
    pub(crate) const fn formats(self) -> Formats {
        Formats { svg: self.svg, png: self.png }
    }
}

/// Options of `bentpipe show`.
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// Folders of runs, or saved reports; the first one gives the order.
    #[arg(required = true, value_name = "RUN", num_args = 1..)]
    runs: Vec<PathBuf>,
    /// Write the page `show.html` into this folder.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    pictures: Pictures,
}

/// Writes the page; returns the comparison as text.
pub(crate) fn run(options: &Show) -> Result<String, Failure> {
    let runs: Vec<SavedRun> = show::read_all(&options.runs).map_err(Failure::input)?;
    if let Some(dir) = &options.out {
        let files = show::write(dir, &runs, options.pictures.formats()).map_err(Failure::run)?;
        print_message(&format!("{} files in {}: {}", files.len(), dir.display(), show::PAGE));
    }
    Ok(show::in_words(&runs, !locale::is_utf8()))
}
