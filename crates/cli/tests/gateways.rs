//! Scenarios with gateways: the printed comparison with the paper's figures, and the rejected inputs.

#![allow(clippy::unwrap_used, reason = "a test may say what it takes for granted")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn scenarios() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

fn bentpipe(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bentpipe")).args(arguments).current_dir(scenarios()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn the_five_cases_of_table_2_stand_beside_the_papers_figures() {
    let out = bentpipe(&["sim", "supercharger.toml"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let said = text(&out.stdout);
    let rows: Vec<&str> = said.lines().filter(|line| line.starts_with("carried[hop-")).collect();
    assert_eq!(rows.len(), 5, "{said}");
    for (row, paper) in rows.iter().zip(["23.67", "530", "8.69", "17.39", "23.72"]) {
        assert!(row.contains(&format!("  {paper} ")) && row.contains("TCP-SuperCharger, table 2"), "{row}");
    }
}

#[test]
fn a_gateway_that_is_off_is_not_in_the_report() {
    let json = |set: &str| {
        let out = bentpipe(&["sim", "supercharger.toml", "--json", "--set", set]);
        serde_json::from_slice::<serde_json::Value>(&out.stdout).unwrap()
    };
    let (on, off) = (json("gateway=on"), json("gateway=off"));
    assert_eq!(on["gateways"][0]["name"], "gateway");
    assert!(off.get("gateways").is_none());
    let goodput = |report: &serde_json::Value, n: usize| report["flows"][n]["goodput_bps"].as_f64().unwrap();
    // the same host behind the same hop, as the first case without its gateway and as the second case
    assert!((goodput(&off, 0) - goodput(&off, 1)).abs() < 1.0);
}

#[test]
fn a_reference_to_nothing_is_shown_where_it_stands() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("a_reference_to_nothing.toml");
    let file = std::fs::read_to_string(scenarios().join("window.toml")).unwrap();
    let with = |metric: &str, value: &str| {
        let reference =
            format!("\n[[references]]\nmetric = \"{metric}\"\nvalue = \"{value}\"\nsource = \"a paper\"\n");
        std::fs::write(&path, format!("{file}{reference}")).unwrap();
        let out = bentpipe(&["sim", path.to_str().unwrap(), "--set", "duration=1 s"]);
        assert_eq!(out.status.code(), Some(2));
        text(&out.stderr)
    };
    let said = with("goodput[flwo1]", "1 Mbit/s");
    assert!(said.contains("the run has no flow `flwo1`: did you mean `flow1`?"), "{said}");
    assert!(
        said.contains("| metric = \"goodput[flwo1]\"\n") && said.contains("                   ^^^^^"),
        "{said}"
    );
    let said = with("goodput", "3 packets");
    assert!(said.contains("`3 packets` does not fit `goodput`, which is a rate"), "{said}");
    assert!(said.contains("| value = \"3 packets\"\n") && said.contains("^^^^^^^^^"), "{said}");
}
