//! `bentpipe generate`: files made from the program's own tables: schemas, pages of the manual, manual pages,
//! completions.

use crate::args::Args;
use crate::outcome::Failure;
use bentpipe_scenario::{agent_file, figure_file, gateway_file};
use clap::{Command, CommandFactory as _, Subcommand};
use clap_complete::Shell;
use std::fs;
use std::path::{Path, PathBuf};

/// A generated file, or several.
#[derive(Debug, Subcommand)]
pub(crate) enum Page {
    /// schema/scenario.schema.json
    Schema,
    /// docs/src/scenario-file.md
    Reference,
    /// schema/gateway.schema.json
    GatewaySchema,
    /// docs/src/gateway-file.md
    GatewayReference,
    /// schema/agent.schema.json
    AgentSchema,
    /// docs/src/rate/agent-file.md
    AgentReference,
    /// schema/figure.schema.json
    FigureSchema,
    /// docs/src/figures.md
    FigureReference,
    /// A manual page for each command.
    Man {
        /// Folder for the pages.
        dir: PathBuf,
    },
    /// Completions for a shell.
    Completions {
        /// The shell.
        shell: Shell,
    },
}

/// Returns the text of a page; manual pages are written to their folder.
pub(crate) fn run(page: &Page) -> Result<String, Failure> {
    Ok(match page {
        Page::Schema => bentpipe_scenario::schema(),
        Page::Reference => bentpipe_scenario::reference(),
        Page::GatewaySchema => gateway_file::schema(),
        Page::GatewayReference => gateway_file::reference(),
        Page::AgentSchema => agent_file::schema(),
        Page::AgentReference => agent_file::reference(),
        Page::FigureSchema => figure_file::schema(),
        Page::FigureReference => figure_file::reference(),
        Page::Man { dir } => {
            man(dir).map_err(|e| Failure::run(format!("{}: {e}", dir.display())))?;
            String::new()
        }
        Page::Completions { shell } => completions(*shell)?,
    })
}

fn man(folder: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    clap_mangen::generate_to(Args::command(), folder)
}

fn completions(shell: Shell) -> Result<String, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut without_hidden(&Args::command()), "bentpipe", &mut text);
    String::from_utf8(text).map_err(Failure::run)
}

/// Returns the command without what is hidden, which completions would offer all the same.
fn without_hidden(command: &Command) -> Command {
    let shown = command.get_subcommands().filter(|c| !c.is_hide_set()).map(without_hidden);
    let mut copy = Command::new(command.get_name().to_owned())
        .about(command.get_about().cloned().unwrap_or_default())
        .args(command.get_arguments().filter(|a| !a.is_hide_set()).cloned())
        .subcommands(shown);
    if let Some(version) = command.get_version() {
        copy = copy.version(version.to_owned());
    }
    copy
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::process::{Command as Process, Stdio};

    /// Names of all commands that are shown, as `bentpipe-gateway-run`.
    fn shown(command: &Command, above: &str) -> Vec<String> {
        let name = format!("{above}{}", command.get_name());
        let below = command.get_subcommands().filter(|c| !c.is_hide_set());
        let below: Vec<String> = below.flat_map(|c| shown(c, &format!("{name}-"))).collect();
        [vec![name], below].concat()
    }

    #[test]
    fn every_command_has_a_manual_page() {
        let folder = std::env::temp_dir().join(format!("bentpipe-man-{}", std::process::id()));
        assert!(run(&Page::Man { dir: folder.clone() }).is_ok_and(|text| text.is_empty()));
        let mut wanted: Vec<String> = shown(&Args::command(), "").into_iter().map(|n| n + ".1").collect();
        let pages = fs::read_dir(&folder).unwrap().map(|f| f.unwrap().file_name().into_string().unwrap());
        let mut pages: Vec<String> = pages.collect();
        wanted.sort();
        pages.sort();
        assert!(wanted.len() > 30, "{wanted:?}");
        assert_eq!(pages, wanted);
        for page in &pages {
            let text = fs::read_to_string(folder.join(page)).unwrap();
            assert!(text.contains(".SH SYNOPSIS") && text.contains(".SH DESCRIPTION"), "{page}: {text}");
            assert!(!text.contains("__run") && !text.contains("bentpipe\\-generate"), "{page}: {text}");
        }
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn completions_offer_what_is_shown_and_bash_can_read_them() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let Ok(text) = completions(shell) else { panic!("{shell}") };
            let has = |word: &str| {
                text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-')
                    .any(|w| w.trim_start_matches('-') == word)
            };
            for wanted in ["emulate", "gateway", "undo", "run-dir"] {
                assert!(has(wanted), "{shell}: {wanted}");
            }
            for hidden in ["__run", "__measure", "__mourn", "generate", "bare"] {
                assert!(!has(hidden), "{shell}: {hidden}");
            }
            // another shell is only parsed where it is installed
            let Ok(mut parser) = Process::new(shell.to_string()).arg("-n").stdin(Stdio::piped()).spawn()
            else {
                assert_ne!(shell, Shell::Bash, "bash is on every machine with bentpipe's tests");
                continue;
            };
            parser.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
            assert!(parser.wait().unwrap().success(), "{shell}");
        }
    }
}
