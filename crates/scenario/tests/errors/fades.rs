//! Invalid fades: the message, position and label of each error.

use crate::support::{bottleneck, points_at, refused};
use bentpipe_scenario::{Source, load};

#[test]
fn an_unknown_word_is_told_of_tables_too() {
    for (line, help) in [
        (
            "fade = { profile = [[\"0 s\", \"5 dB\"]], coding = \"turbo\", clear = \"9 dB\" }",
            "help: it can be uncoded, viterbi, { threshold = \"1.5 dB\" }",
        ),
        (
            "orbit = { slots = { delay = \"9 ms\", handover = \"hard\" } }",
            "help: it can be seamless, { outage = \"50 ms\" }, { loss = 0.01, time = \"1 s\" }",
        ),
    ] {
        let error = load(&Source::new("test.toml", bottleneck(line)), &[], None).expect_err("no such word");
        assert_eq!(error.help, [help], "{line}");
    }
}

#[test]
fn codings() {
    let profile = "profile = [[\"0 s\", \"5 dB\"]]";
    let fade = |rest: &str| format!("fade = {{ {profile}, {rest} }}");
    let whole = |rest: &str| format!("{{ {profile}, {rest} }}");
    for (rest, message, underlined, label) in [
        (
            "coding = \"uncoded\"",
            "`coding` needs one Eb/N0 under clear sky",
            None,
            "write either `clear` or `anchor`",
        ),
        ("coding = \"turbo\", clear = \"9 dB\"", "`coding` cannot be \"turbo\"", Some("\"turbo\""), ""),
        (
            "coding = \"uncoded\", clear = 9",
            "`clear` needs a unit",
            Some("9"),
            "write \"9 dB\" if that is meant",
        ),
        (
            "coding = \"uncoded\", clear = \"9 db\"",
            "`clear` has an unknown unit, `db`",
            Some("\"9 db\""),
            "did you mean \"9 dB\"?",
        ),
        (
            "coding = \"uncoded\", clear = \"999 dB\"",
            "`clear` is out of range",
            Some("\"999 dB\""),
            "from -200 to 200 dB",
        ),
        (
            "coding = \"uncoded\", anchor = { fade = \"-5 dB\", ber = 1e-5 }",
            "`fade` is an attenuation",
            Some("\"-5 dB\""),
            "it is not less than 0 dB",
        ),
        (
            "coding = \"viterbi\", anchor = { fade = \"5 dB\", ber = 0.5 }",
            "no Eb/N0 has this bit error rate",
            Some("0.5"),
            "more than 0 and less than 0.5",
        ),
        (
            "coding = { threshold = \"1 dB\" }, anchor = { fade = \"5 dB\", ber = 1e-5 }",
            "`anchor` needs a coding with bit errors",
            Some("{ fade = \"5 dB\", ber = 1e-5 }"),
            "give `clear`: a threshold has no bit error rate",
        ),
    ] {
        let underlined = underlined.map_or_else(|| whole(rest), str::to_owned);
        points_at(&bottleneck(&fade(rest)), message, &underlined, label);
    }
}

#[test]
fn sources_and_effects() {
    let profile = "profile = [[\"0 s\", \"5 dB\"]]";
    let fade = |rest: &str| format!("fade = {{ {profile}, {rest} }}");
    let whole = |rest: &str| format!("{{ {profile}, {rest} }}");
    for (rest, message, underlined, label) in [
        ("clear = \"9 dB\"", "a fade has one effect", None, "write either `coding` or `acm`"),
        (
            "acm = { clear = \"16 dB\" }, clear = \"9 dB\"",
            "this goes with `coding`",
            Some("\"9 dB\""),
            "write it into `acm` as `clear`",
        ),
        (
            "acm = { clear = \"-3 dB\" }",
            "no mode works under clear sky",
            Some("\"-3 dB\""),
            "QPSK 1/4 needs -2.35 dB",
        ),
        (
            "acm = { clear = \"16 dB\", margin = \"-1 dB\" }",
            "`margin` cannot be negative",
            Some("\"-1 dB\""),
            "from 0 dB, or \"auto\"",
        ),
        (
            "rain = {}, acm = { clear = \"16 dB\" }",
            "a fade has one source",
            None,
            "write one of `profile`, `rain` and `pointing`",
        ),
    ] {
        let underlined = underlined.map_or_else(|| whole(rest), str::to_owned);
        points_at(&bottleneck(&fade(rest)), message, &underlined, label);
    }
}

#[test]
fn rain_and_profiles() {
    refused(&[
        (
            "fade = { rain = { p0 = 0 }, acm = { clear = \"9 dB\" } }",
            "`p0` is out of range",
            "0",
            "more than 0 and less than 1",
        ),
        (
            "fade = { rain = { sigma = 11 }, acm = { clear = \"9 dB\" } }",
            "`sigma` is out of range",
            "11",
            "from 0.000000000001 to 10",
        ),
        (
            "fade = { rain = { beta = \"2e-4 Hz\" }, acm = { clear = \"9 dB\" } }",
            "`beta` has an unknown unit, `Hz`",
            "\"2e-4 Hz\"",
            "",
        ),
        (
            "fade = { rain = { beta = \"0 1/s\" }, acm = { clear = \"9 dB\" } }",
            "`beta` must be more than zero",
            "\"0 1/s\"",
            "",
        ),
        (
            "fade = { profile = [[\"1 s\", \"5 dB\"], [\"0 s\", \"5 dB\"]], acm = { clear = \"9 dB\" } }",
            "`profile` goes back in time",
            "\"0 s\"",
            "the one before is at 1 s",
        ),
        (
            "fade = { profile = [[\"1 s\", \"-5 dB\"]], acm = { clear = \"9 dB\" } }",
            "`profile` is an attenuation",
            "\"-5 dB\"",
            "it is not less than 0 dB",
        ),
    ]);
}

#[test]
fn dishes_and_drifts() {
    refused(&[
        (
            "fade = { pointing = { dish = \"200 m\" }, coding = \"uncoded\", clear = \"14 dB\" }",
            "`dish` is out of range",
            "\"200 m\"",
            "from 0.1 to 100 m",
        ),
        (
            "fade = { pointing = { frequency = \"20\" }, coding = \"uncoded\", clear = \"14 dB\" }",
            "`frequency` needs a unit",
            "\"20\"",
            "write \"20 GHz\" if that is meant",
        ),
        (
            "fade = { pointing = { inclination = \"91 deg\" }, coding = \"uncoded\", clear = \"14 dB\" }",
            "`inclination` is out of range",
            "\"91 deg\"",
            "from 0 to 90 deg",
        ),
        (
            "fade = { pointing = { latitude = \"-91 deg\" }, coding = \"uncoded\", clear = \"14 dB\" }",
            "this is not a latitude",
            "\"-91 deg\"",
            "from -90 to 90 deg",
        ),
        (
            "fade = { pointing = { satellite = \"100 deg\" }, coding = \"uncoded\", clear = \"14 dB\" }",
            "this station does not see the satellite",
            "{ satellite = \"100 deg\" }",
            "its elevation there is -55.6 deg",
        ),
        (
            "fade = { pointing = {}, rain = {}, coding = \"uncoded\", clear = \"14 dB\" }",
            "a fade has one source",
            "{ pointing = {}, rain = {}, coding = \"uncoded\", clear = \"14 dB\" }",
            "write one of `profile`, `rain` and `pointing`",
        ),
        (
            "fade = { pointing = {}, acm = { clear = \"14 dB\" }, drift = { amplitude = \"1 dB\" } }",
            "`drift` goes with `coding`",
            "{ amplitude = \"1 dB\" }",
            "leave it out, or write `coding` for `acm`",
        ),
        (
            "fade = { pointing = {}, coding = \"uncoded\", clear = \"14 dB\", drift = { amplitude = \"1 dB\", period = \"0 s\" } }",
            "`period` is too short",
            "\"0 s\"",
            "at least 0.1 ms",
        ),
    ]);
}
