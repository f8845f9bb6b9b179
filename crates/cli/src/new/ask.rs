//! The questions of `bentpipe new`. A wrong answer is asked again.

use super::{New, checked};
use bentpipe_scenario::profiles;
use bentpipe_tcp::Scheme;
use std::io::{self, BufRead, Write};

/// The answer for a link that has no name.
const OWN: &str = "own";

/// A question, the answer of an empty line, and where the answer goes.
type Question = (String, &'static str, fn(&mut New, String));

/// Returns `new` with the answers.
pub(super) fn ask(new: &New, input: &mut dyn BufRead, output: &mut dyn Write) -> io::Result<New> {
    let mut new = new.clone();
    writeln!(output, "An empty line takes the answer in brackets.")?;
    let links: Vec<&str> = profiles().iter().map(|p| p.name.as_str()).collect();
    let link = format!("Link: {}, or {OWN}", links.join(", "));
    let link: Question = (link, "geo-10m", |n, a| n.link = Some(a));
    answer(&mut new, &link, input, output)?;
    if new.link.as_deref() == Some(OWN) {
        new.link = None;
        let rate: Question = ("Its rate".into(), "10 Mbit/s", |n, a| n.rate = Some(a));
        let rtt: Question = ("Its round trip".into(), "600 ms", |n, a| n.rtt = Some(a));
        for question in [rate, rtt] {
            answer(&mut new, &question, input, output)?;
        }
    }
    let schemes = format!("Congestion control, several with commas: {}", Scheme::NAMES.join(", "));
    let all: [Question; 5] = [
        ("Probability that it loses a packet, as 1e-3".into(), "none", |n, a| n.loss = Some(a)),
        (schemes, "cubic", |n, a| n.tcp = a.split(',').map(|s| s.trim().to_owned()).collect()),
        ("Connections of each".into(), "1", |n, a| n.flows = Some(a)),
        ("Size of a file, as 10 MB, or until the end".into(), "until the end", |n, a| n.size = Some(a)),
        ("Length of the run".into(), "60 s", |n, a| n.duration = Some(a)),
    ];
    for question in all.iter().take(4) {
        answer(&mut new, question, input, output)?;
    }
    // files end by themselves
    if new.size.is_none() {
        answer(&mut new, &all[4], input, output)?;
    }
    Ok(new)
}

/// Asks until the answer is right.
fn answer(
    new: &mut New,
    (text, usual, set): &Question,
    input: &mut dyn BufRead,
    output: &mut dyn Write,
) -> io::Result<()> {
    loop {
        write!(output, "{text} [{usual}]: ")?;
        output.flush()?;
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the input ended before the last answer",
            ));
        }
        let line = line.trim();
        if line.is_empty() || line == *usual {
            // what is usual is what the file has without the option; a link without a name has to be told
            if text.starts_with("Its") {
                set(new, (*usual).to_owned());
            }
            return Ok(());
        }
        let mut next = new.clone();
        set(&mut next, line.to_owned());
        if next.link.as_deref() == Some(OWN) {
            *new = next;
            return Ok(());
        }
        match checked(&next) {
            Ok(()) => {
                *new = next;
                return Ok(());
            }
            Err(error) => writeln!(output, "error: {error}")?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(lines: &str) -> (New, String) {
        let mut output = Vec::new();
        let new = ask(&New::default(), &mut lines.as_bytes(), &mut output).expect("all are answered");
        (new, String::from_utf8(output).expect("UTF-8"))
    }

    #[test]
    fn empty_lines_take_what_is_usual() {
        let (new, _) = answered("\n\n\n\n\n\n");
        assert!(new.is_bare(), "{new:?}");
    }

    #[test]
    fn a_wrong_answer_is_asked_again() {
        let (new, said) = answered("geo-10\nleo\n150%\n1e-3\ncubik\ncubic, bbr\n4\n10 MB\n");
        assert!(said.contains("did you mean `geo-10m`?") && said.contains("did you mean `cubic`?"), "{said}");
        assert!(said.contains("--loss 150%"), "{said}");
        assert_eq!((new.link.as_deref(), new.loss.as_deref()), (Some("leo"), Some("1e-3")));
        assert_eq!(
            (new.tcp, new.size.as_deref()),
            (vec!["cubic".to_owned(), "bbr".to_owned()], Some("10 MB"))
        );
    }

    #[test]
    fn a_link_without_a_name_has_a_rate_and_a_round_trip() {
        let (new, _) = answered("own\n2 Mbit/s\n\n\n\n\n\n10 s\n");
        assert_eq!((new.rate.as_deref(), new.rtt.as_deref()), (Some("2 Mbit/s"), Some("600 ms")));
        assert_eq!((new.link, new.duration.as_deref()), (None, Some("10 s")));
    }

    #[test]
    fn an_input_that_ends_is_an_error() {
        let ended = ask(&New::default(), &mut "geo-10m\n".as_bytes(), &mut Vec::new());
        assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
