//! Evaluates the rules of a gateway file for connections.

use bentpipe_gateway::{Action, Policy, Side, SynProperties};
use bentpipe_scenario::Source;
use bentpipe_scenario::gateway_file::load;

const HEAD: &str = "schema = 1\n[satellite]\n[deploy]\nkind = \"routed\"\nlan = \"a\"\nsatellite = \"b\"\n";

fn policy(rules: &str) -> Policy {
    load(&Source::new("t", format!("{HEAD}{rules}"))).unwrap().policy
}

fn opening(from: &str, to: &str, port: u16) -> SynProperties {
    let (from, to) = (from.parse().unwrap(), to.parse().unwrap());
    SynProperties { from, to, from_port: 40_000, port, dscp: 0, side: Side::Lan }
}

#[test]
fn the_first_rule_that_matches_decides() {
    let policy = policy(
        "[[rules]]\naction = \"pass\"\nport = [22, \"8000-8100\"]\n[[rules]]\naction = \"accelerate\"\nfrom = [\"10.0.0.0/8\", \"2001:db8::/32\"]\n[policy]\notherwise = \"pass\"\n",
    );
    for (from, to, port, wanted) in [
        ("10.1.2.3", "192.0.2.1", 80, Action::Accelerate),
        ("10.1.2.3", "192.0.2.1", 22, Action::Pass),
        ("10.1.2.3", "192.0.2.1", 8100, Action::Pass),
        ("10.1.2.3", "192.0.2.1", 8101, Action::Accelerate),
        ("11.1.2.3", "10.0.2.1", 80, Action::Pass),
        ("2001:db8:1::1", "2001:db9::1", 443, Action::Accelerate),
        ("2001:db9::1", "2001:db8::1", 443, Action::Pass),
    ] {
        assert_eq!(policy.decide(&opening(from, to, port)), wanted, "{from} -> {to}:{port}");
    }
}

#[test]
fn every_condition_must_hold() {
    let policy = policy(
        "[[rules]]\naction = \"pass\"\nto = \"192.0.2.1\"\nfrom_port = 40000\ndscp = [\"ef\", 8]\nopened_from = \"satellite\"\n",
    );
    let all = SynProperties { dscp: 46, side: Side::Satellite, ..opening("10.0.0.1", "192.0.2.1", 1) };
    assert_eq!(policy.decide(&all), Action::Pass);
    for other in [
        SynProperties { dscp: 9, ..all },
        SynProperties { side: Side::Lan, ..all },
        SynProperties { from_port: 40_001, ..all },
        SynProperties { to: "192.0.2.2".parse().unwrap(), ..all },
    ] {
        assert_eq!(policy.decide(&other), Action::Accelerate, "{other:?}");
    }
}

#[test]
fn subscribers_are_prefixes() {
    let text = format!("{HEAD}[policy]\nsubscriber_prefix = {{ v4 = 24, v6 = 48 }}\n");
    let file = load(&Source::new("t", text)).unwrap();
    let of = |text: &str| file.subscriber(text.parse().unwrap()).unwrap().to_string();
    assert_eq!(of("10.1.2.3"), "10.1.2.0/24");
    assert_eq!(of("2001:db8:1:2::3"), "2001:db8:1::/48");
}
