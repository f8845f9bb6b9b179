//! Middleboxes: valid and invalid ones.

use crate::support::{DUMBBELL, edit, loads, points_at};
use bentpipe_base::{Dscp, Instant};
use bentpipe_nodes::{DscpRule, MiddleboxConfig, Unwanted};
use bentpipe_scenario::{Direction, MiddleboxSpec, to_toml};

/// A dumbbell with a middlebox that has these additional keys.
fn with(keys: &str) -> String {
    format!("{DUMBBELL}\n[[middleboxes]]\nname = \"box\"\nlink = \"bottleneck\"\n{keys}\n")
}

fn middlebox(keys: &str) -> MiddleboxSpec {
    loads(&with(keys), &[]).middleboxes.remove(0)
}

fn dscp(n: u8) -> Dscp {
    Dscp::new(n).expect("below 64")
}

#[test]
fn a_middlebox_does_what_its_keys_say() {
    let spec = middlebox("dscp = \"cs0\"");
    assert_eq!((spec.name.as_str(), spec.hop), ("box", Direction { link: 0, backward: false }));
    let zeroed = MiddleboxConfig { dscp: DscpRule::All(dscp(0)), ..MiddleboxConfig::default() };
    assert_eq!(spec.config, zeroed);
    let all = "dscp_map = [[3, 0], [7, \"af11\"]]\ndrop = [\"hop-by-hop\", \"syn-with-data\"]\nnat = true\n\
               from = \"5 s\"";
    let config = MiddleboxConfig {
        from: Instant(5_000_000_000),
        dscp: DscpRule::Map(vec![(dscp(3), dscp(0)), (dscp(7), dscp(10))]),
        drops: vec![Unwanted::HopByHop, Unwanted::SynWithData],
        nat: true,
    };
    assert_eq!(middlebox(all).config, config);
    assert_eq!(middlebox("drop = \"hop-by-hop\"").config.drops, [Unwanted::HopByHop]);
    assert!(loads(&with("nat = true\nenabled = false"), &[]).middleboxes.is_empty());
}

#[test]
fn a_middlebox_is_written_as_it_is_read() {
    for keys in ["dscp = 0", "dscp_map = [[3, 0]]\nfrom = \"5 s\"", "drop = \"syn-with-data\"\nnat = true"] {
        let scenario = loads(&with(keys), &[]);
        let again = loads(&to_toml(&scenario), &[]);
        let translates = keys.contains("nat").then(|| "middlebox `box`".to_owned());
        assert_eq!(again.simulated_only().map(|part| part.what), translates);
        assert_eq!(again.middleboxes, scenario.middleboxes);
    }
}

#[test]
fn what_a_middlebox_cannot_do_is_refused() {
    for (keys, message, underlined, label) in [
        (
            "nat = true\nfrom = \"100 s\"",
            "this middlebox begins after the run",
            "\"100 s\"",
            "the run lasts 100 s",
        ),
        (
            "dscp = 1\ndscp_map = [[3, 0]]",
            "`dscp` and `dscp_map` exclude each other",
            "1",
            "drop one of them",
        ),
        ("dscp = 64", "`dscp` is not a DSCP", "64", ""),
        ("dscp_map = [[3, 0], [3, 1]]", "`dscp_map` has this DSCP twice", "3", "each becomes one other"),
        (
            "drop = [\"hop-by-hop\", \"hop-by-hop\"]",
            "`drop` says this twice",
            "\"hop-by-hop\"",
            "drop one of them",
        ),
    ] {
        points_at(&with(keys), message, underlined, label);
    }
    let second = "\n[[middleboxes]]\nname = \"other\"\nlink = \"bottleneck\"\nnat = true";
    let twice = with(&format!("nat = true{second}"));
    points_at(&twice, "two middleboxes before `bottleneck`", "\"bottleneck\"", "this is the second");
    let unknown = edit(&with("nat = true"), "link = \"bottleneck\"", "link = \"bottleneckk\"");
    points_at(&unknown, "there is no link `bottleneckk`", "\"bottleneckk\"", "did you mean `bottleneck`?");
}
