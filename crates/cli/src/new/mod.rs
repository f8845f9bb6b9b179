//! `bentpipe new`: writes a scenario file of one's own, from flags or from answers to questions.

mod ask;
mod text;

use crate::options::OptionValue;
use crate::outcome::{Failure, print, print_message};
use bentpipe_link::{Orbit, Slots};
use bentpipe_scenario::{Diagnostic, Profile, Source, profiles};
use clap::Args;
use std::fs::File;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

pub(crate) const EXAMPLES: &str = "Examples:
  bentpipe new mine.toml
  bentpipe new mine.toml --link leo --tcp cubic,bbr --flows 4 --duration '120 s'
  bentpipe new mine.toml --rate '20 Mbit/s' --rtt '600 ms' --loss 1e-3 --size '10 MB'
  bentpipe new mine.toml --scenario sharing";

/// Options of `bentpipe new`.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct New {
    /// The file to write; `-` prints it.
    pub(crate) file: PathBuf,
    /// A named link (`bentpipe links`), with its rates, delays and orbit [default: geo-10m, or a link with
    /// the --rate and --rtt given].
    #[arg(long, value_name = "NAME")]
    link: Option<String>,
    /// Rate of the satellite hop in the direction of the data, as in '20 Mbit/s'.
    #[arg(long)]
    rate: Option<String>,
    /// Rate of the way back [default: that of the named link, or as --rate].
    #[arg(long, value_name = "RATE")]
    return_rate: Option<String>,
    /// Round trip without queues, as in '600 ms'.
    #[arg(long, value_name = "TIME")]
    rtt: Option<String>,
    /// Probability that the hop loses a packet of the data, as in 1e-3.
    #[arg(long, value_name = "P")]
    loss: Option<String>,
    /// Queue before the hop, as in '50 packets' or '100 kB' [default: that of the named link, or what the
    /// rate carries in a round trip].
    #[arg(long)]
    buffer: Option<String>,
    /// Discipline of that queue: fifo, codel, `fq_codel` and others.
    #[arg(long, value_name = "DISCIPLINE")]
    queue: Option<String>,
    /// Congestion control; several, with commas, share the link [default: cubic].
    #[arg(long, value_name = "SCHEMES", value_delimiter = ',')]
    tcp: Vec<String>,
    /// Connections of each scheme [default: 1].
    #[arg(long, value_name = "N")]
    flows: Option<String>,
    /// Each connection transfers a file of this size, as in '10 MB'; without it, it sends until the end.
    #[arg(long)]
    size: Option<String>,
    /// Length of the run, as in '2 min' [default: 60 s, or as long as the files take, 1000 s at most].
    #[arg(long, value_name = "TIME")]
    duration: Option<String>,
    /// Title of the report.
    #[arg(long)]
    title: Option<String>,
    /// Write a copy of a scenario that comes with the program (`bentpipe scenarios`).
    #[arg(long, value_name = "NAME", conflicts_with_all = ["link", "rate", "return_rate", "rtt", "loss",
        "buffer", "queue", "tcp", "flows", "size", "duration", "title"])]
    scenario: Option<String>,
    /// Replace a file that exists.
    #[arg(long)]
    force: bool,
}

/// Writes the file. Without options, on a terminal, it asks.
pub(crate) fn run(new: &New) -> Result<(), Failure> {
    let printed = new.file == Path::new("-");
    if !printed && !new.force && new.file.exists() {
        return Err(exists(&new.file));
    }
    let asked = (new.is_bare() && io::stdin().is_terminal())
        .then(|| ask::ask(new, &mut io::stdin().lock(), &mut io::stderr()))
        .transpose()
        .map_err(|error| Failure::input(format!("the questions: {error}")))?;
    let text = contents(asked.as_ref().unwrap_or(new))?;
    if printed {
        return print(&text);
    }
    write(&new.file, new.force, &text)?;
    let file = new.file.display();
    print_message(&format!("wrote {file}; to run it: bentpipe sim {file}"));
    Ok(())
}

/// Returns the text of the file, which `bentpipe check` accepts.
fn contents(new: &New) -> Result<String, Failure> {
    if let Some(name) = &new.scenario {
        return copied(name, &new.file);
    }
    checked(new)?;
    Ok(text::text(new, true))
}

impl New {
    /// True if no option says what to write.
    fn is_bare(&self) -> bool {
        self.scenario.is_none() && self.title.is_none() && self.tcp.is_empty() && self.values().is_empty()
    }

    /// Options whose values are parameters of the file, by the name of the parameter.
    fn values(&self) -> Vec<(&'static str, &str)> {
        [
            ("link", &self.link),
            ("rate", &self.rate),
            ("return_rate", &self.return_rate),
            ("rtt", &self.rtt),
            ("loss", &self.loss),
            ("buffer", &self.buffer),
            ("queue", &self.queue),
            ("flows", &self.flows),
            ("size", &self.size),
            ("duration", &self.duration),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value.as_deref()?)))
        .collect()
    }

    /// The named link; `None` for one that has only the rate and the round trip given.
    fn named(&self) -> Option<&str> {
        let own = self.rate.is_some() || self.rtt.is_some() || self.return_rate.is_some();
        self.link.as_deref().or((!own).then_some("geo-10m"))
    }

    fn profile(&self) -> Option<&'static Profile> {
        let name = self.named()?;
        profiles().iter().find(|p| p.name == name)
    }
}

/// Checks each option at its place on the command line: the values replace those of a file that is right.
fn checked(new: &New) -> Result<(), Box<Diagnostic>> {
    moving(new)?;
    let sets: Vec<(String, String)> =
        new.values().into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let usual = New { tcp: Vec::new(), ..new.clone() };
    let usual = Source::new("new scenario", text::text(&usual, false));
    bentpipe_scenario::load(&usual, &sets, None).map_err(|fault| in_option(fault, &sets))?;
    let list = new.tcp.join(",");
    let given = OptionValue { name: "--tcp", value: &list };
    let mut at = 0;
    for scheme in &new.tcp {
        let one = New { tcp: vec![scheme.clone()], ..New::default() };
        let source = Source::new("new scenario", text::text(&one, true));
        bentpipe_scenario::load(&source, &[], None).map_err(|fault| {
            let Diagnostic { message, label, help, .. } = *fault;
            Box::new(Diagnostic { help, ..*given.fault(at..at + scheme.len(), message, label) })
        })?;
        at += scheme.len() + 1;
    }
    // with all of it: a title, and names that are given twice
    let source = Source::new("new scenario", text::text(new, true));
    bentpipe_scenario::load(&source, &[], None).map(|_| ())
}

/// Refuses to change what the satellites' motion says.
fn moving(new: &New) -> Result<(), Box<Diagnostic>> {
    let orbit = new.profile().and_then(|p| p.forward.dynamics.as_ref()?.orbit.as_ref());
    let (name, own) = (new.named().unwrap_or_default(), "leave it out, or leave out --link");
    if let (Some(value), Some(_)) = (&new.rtt, orbit) {
        let why = format!("the satellites of `{name}` move, and the round trip with them");
        return Err(OptionValue { name: "--rtt", value }.wrong(why, own));
    }
    if let Some(Orbit::Slots(Slots { rate: Some(_), .. })) = orbit {
        let rates = [("--rate", &new.rate), ("--return-rate", &new.return_rate)];
        if let Some((name_of, value)) = rates.into_iter().find_map(|(n, v)| Some((n, v.as_deref()?))) {
            let why = format!("each satellite of `{name}` has a rate of its own");
            return Err(OptionValue { name: name_of, value }.wrong(why, own));
        }
    }
    Ok(())
}

/// An error in a value, shown in the option that has it.
fn in_option(mut fault: Box<Diagnostic>, sets: &[(String, String)]) -> Box<Diagnostic> {
    let found = sets.iter().find_map(|(name, value)| {
        let before = format!("--set {name}=");
        fault.place.text.starts_with(&before).then_some((name, value, before.len()))
    });
    let Some((name, value, before)) = found else { return fault };
    let option = format!("--{}", name.replace('_', "-"));
    // characters to bytes; an excerpt of a long value is marked whole
    let byte = |n: usize| value.char_indices().nth(n).map_or(value.len(), |(at, _)| at);
    let from = fault.place.column.saturating_sub(1 + before);
    let at = byte(from)..byte(from + fault.place.width);
    let given = OptionValue { name: &option, value };
    fault.help.retain(|line| !line.starts_with("note: used at"));
    let Diagnostic { message, label, help, .. } = *fault;
    Box::new(Diagnostic { help, ..*given.fault(at, message, label) })
}

/// The text of a scenario of the program, with the commands in its comments for the new file.
fn copied(name: &str, file: &Path) -> Result<String, Failure> {
    let text = crate::scenarios::text(name)?;
    let path = text::word(file);
    // the schema lies beside the scenarios of the repository only
    let lines = text.lines().skip_while(|line| line.starts_with("#:schema") || *line == "#");
    let lines = lines.map(|line| {
        let is_comment = line.starts_with('#');
        if is_comment { line.replace(&format!("scenarios/{name}.toml"), &path) } else { line.to_owned() }
    });
    Ok(lines.map(|line| line + "\n").collect())
}

fn exists(file: &Path) -> Failure {
    let file = file.display();
    Failure::input(format!("{file} exists\nhelp: choose another name, or --force to replace it"))
}

fn write(file: &Path, force: bool, text: &str) -> Result<(), Failure> {
    let mut options = File::options();
    options.write(true).truncate(force).create(force).create_new(!force);
    let written = options.open(file).and_then(|mut open| open.write_all(text.as_bytes()));
    written.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => exists(file),
        _ => Failure::run(format!("{}: {error}", file.display())),
    })
}
