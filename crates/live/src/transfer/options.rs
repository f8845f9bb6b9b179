//! Parses `--tcp` and `--set` with the parser of scenario files, so that every scheme has the same
//! parameters, limits and errors here.

use bentpipe_scenario::{Diagnostic, Place, Scenario, Source, load};
use bentpipe_tcp::Scheme;
use core::fmt::Write as _;

/// Name of the source in error messages.
const WHERE: &str = "command line";

/// Parses a scheme and other options of `[host]`, as pairs of name and value. Parameters of the scheme are
/// named like options. Returns a scenario with one flow, which has the configurations of sender and receiver;
/// title and parameters are for the report.
///
/// # Errors
/// The first wrong name or value, with a suggestion.
pub fn parse_options(title: &str, tcp: &str, sets: &[(String, String)]) -> Result<Scenario, Box<Diagnostic>> {
    if let Some((_, value)) = sets.iter().find(|(name, _)| name == "tcp") {
        let line = format!("--set tcp={value}");
        let place = Place::find(WHERE, &line, "--set ".len(), line.len());
        let (message, help) = ("`--set` does not choose the scheme".to_owned(), Vec::new());
        return Err(Box::new(Diagnostic { message, place, label: format!("write --tcp {value}"), help }));
    }
    let text = file(title, sets);
    let source = Source::new(WHERE, text);
    let mut all = vec![("tcp".to_owned(), tcp.to_owned())];
    all.extend(sets.iter().filter(|(name, _)| is_name(name)).cloned());
    load(&source, &all, None).map_err(|fault| as_written(*fault, tcp, sets))
}

/// Moves an error to the command line option that caused it: the user has not seen the generated file.
fn as_written(mut fault: Diagnostic, tcp: &str, sets: &[(String, String)]) -> Box<Diagnostic> {
    fault.help.retain(|line| !line.contains(WHERE));
    let (line, from, to) = if fault.place.text.starts_with("--set tcp=") {
        let line = format!("--tcp {tcp}");
        let to = line.len();
        (line, "--tcp ".len(), to)
    } else if !fault.place.text.starts_with("--set ") {
        // an unknown name
        let guilty = sets.iter().find(|(name, _)| fault.message.contains(&format!("`{}`", shown(name))));
        let Some((name, value)) = guilty else { return Box::new(fault) };
        (format!("--set {name}={value}"), "--set ".len(), "--set ".len() + name.len())
    } else {
        return Box::new(fault);
    };
    fault.place = Place::find(WHERE, &line, from, to);
    Box::new(fault)
}

/// Returns a scenario file in which each `--set` is a parameter, so that errors point at the command line. An
/// invalid name is copied as it is, and rejected as an unknown key.
fn file(title: &str, sets: &[(String, String)]) -> String {
    let mut text = format!(
        "schema = 1\ntitle = \"{}\"\nduration = \"1 s\"\n[parameters]\ntcp = \"cubic\"\n",
        shown(title)
    );
    let (mut scheme, mut host) = (String::new(), String::new());
    let mut names: Vec<&str> = sets.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let of_scheme = Scheme::all().any(|s| s.growth.algorithm().params.iter().any(|p| p.name == name));
        if !is_name(name) {
            let _ = writeln!(host, "\"{}\" = 0", shown(name));
            continue;
        }
        let _ = writeln!(text, "{name} = \"\"");
        let _ = if of_scheme {
            write!(scheme, ", {name} = \"${name}\"")
        } else {
            writeln!(host, "{name} = \"${name}\"")
        };
    }
    let tcp =
        if scheme.is_empty() { "\"$tcp\"".to_owned() } else { format!("{{ scheme = \"$tcp\"{scheme} }}") };
    let _ = write!(
        text,
        "[host]\ntcp = {tcp}\n{host}[[hosts]]\nname = \"a\"\n[[hosts]]\nname = \"b\"\n\
         [[links]]\nname = \"link\"\nfrom = \"a\"\nto = \"b\"\nrate = \"1 Gbit/s\"\ndelay = \"1 ms\"\nbuffer = \"1 MB\"\n\
         [[flows]]\nname = \"flow\"\nfrom = \"a\"\nto = \"b\"\n"
    );
    text
}

/// Removes characters that a string in a scenario file cannot have.
fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() && !"\"\\".contains(*c)).collect()
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use bentpipe_base::Duration;
    use bentpipe_tcp::Encoding;

    fn set(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn every_scheme_of_the_table_can_be_chosen_and_its_parameters_set() {
        for name in Scheme::NAMES {
            let scenario = parse_options("a title", name, &[]).unwrap();
            assert_eq!((scenario.flows[0].sender.scheme.name, scenario.title.as_str()), (name, "a title"));
        }
        let sets = [set("beta", "0.8"), set("iw", "4"), set("min_rto", "300 ms"), set("timestamps", "false")];
        let scenario = parse_options("\"a\\\n", "cubic", &sets).unwrap();
        let flow = &scenario.flows[0];
        assert_ne!(flow.sender.scheme.growth, Scheme::default().growth);
        assert_eq!((flow.sender.initial_window, flow.sender.rto.min), (4, Duration::from_millis(300)));
        assert!(!flow.receiver.options.timestamps);
        assert_eq!(scenario.title, "a");
        assert_eq!(scenario.parameters.len(), 5);
    }

    #[test]
    fn an_end_may_signal() {
        let sets = [set("encoding", "tia-1039"), set("ask", "100 Mbit/s"), set("ask_fallback", "0.2")];
        let flow = parse_options("t", "newreno", &sets).unwrap().flows.remove(0);
        let signalling = flow.sender.signalling.as_ref().unwrap();
        assert_eq!(signalling.ask.ask, bentpipe_base::Rate::from_bps(100_000_000));
        assert_eq!((signalling.fallback_to.name, flow.sender.scheme.name), ("newreno", "explicit-rate"));
        assert_eq!(flow.receiver.signalling.as_ref().unwrap().ask.ask, None);
        for (word, encoding) in [("scone-tcp", Encoding::SconeTcp), ("quick-start", Encoding::QuickStart)] {
            let flow = parse_options("t", "cubic", &[set("encoding", word)]).unwrap().flows.remove(0);
            assert_eq!(
                (flow.sender.signalling.as_ref().unwrap().ask.encoding, flow.sender.scheme.name),
                (encoding, "cubic")
            );
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_what_to_write_instead() {
        for (tcp, sets, says) in [
            ("bbrr", vec![], "bbr"),
            ("cubic", vec![set("beta", "1.5")], "beta"),
            ("reno", vec![set("beta", "0.8")], "is not a parameter of reno"),
            ("cubic", vec![set("nonsense", "1")], "nonsense"),
            ("cubic", vec![set("a b\"\n[x]", "1")], "a b[x]"),
            ("cubic", vec![set("iw", "many")], "iw"),
            ("", vec![], "tcp"),
            ("swft", vec![], " --> command line:1:7\n  |\n1 | --tcp swft\n  |       ^^^^"),
            ("bbr", vec![set("tcp", "cubic")], "1 | --set tcp=cubic\n  |       ^^^^^^^^^ write --tcp cubic"),
            ("cubic", vec![set("iw", "4"), set("nonsense", "1")], "1 | --set nonsense=1\n  |       ^^^^^^^^"),
            ("cubic", vec![set("iw", "0")], "1 | --set iw=0\n  |          ^ at least 1"),
        ] {
            let error = parse_options("t", tcp, &sets).expect_err(tcp).to_string();
            assert!(error.contains(says), "{tcp}: {error}");
            assert!(!error.contains("used at"), "nobody has seen that file: {error}");
        }
    }
}
