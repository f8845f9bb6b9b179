//! Results folders: contents, reproducibility, and no incomplete files after errors.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use bentpipe_report::TcpReport;
use bentpipe_results::{Error, Formats, Outcome, run, run_with, write};
use bentpipe_scenario::{Scenario, Source};
use bentpipe_sim::{RecordOptions, run_recorded};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn scenario(name: &str, sets: &[(&str, &str)]) -> Scenario {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(name);
    let source = Source::from_bytes(name.to_owned(), &fs::read(path).unwrap()).unwrap();
    let sets: Vec<_> = sets.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    bentpipe_scenario::load(&source, &sets, None).unwrap_or_else(|e| panic!("{e}"))
}

fn folder(test: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = fs::remove_dir_all(&dir);
    let _ = fs::remove_file(&dir);
    dir
}

fn contents(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entry = |e: fs::DirEntry| (e.file_name().into_string().unwrap(), fs::read(e.path()).unwrap());
    fs::read_dir(dir).unwrap().map(|e| entry(e.unwrap())).collect()
}

#[test]
fn the_same_scenario_gives_the_same_bytes_and_other_files_stay() {
    let (first, second) = (folder("same_first"), folder("same_second"));
    fs::create_dir_all(&second).unwrap();
    fs::write(second.join("notes.txt"), "mine").unwrap();
    fs::write(second.join("flows.csv"), "old").unwrap();
    let scenario = scenario("fade-2h.toml", &[]);
    let (report, files) = run(&first, &scenario).unwrap();
    run(&second, &scenario).unwrap();
    let (first, mut second) = (contents(&first), contents(&second));
    assert_eq!(second.remove("notes.txt").as_deref(), Some(&b"mine"[..]));
    assert!(first == second, "two runs differ");
    let mut named: Vec<String> =
        files.iter().map(|f| f.file_name().unwrap().to_string_lossy().into_owned()).collect();
    assert_eq!(named[0], "report.html");
    named.sort();
    assert!(named.iter().eq(first.keys()), "{named:?}");
    assert_eq!(first.keys().filter(|k| k.starts_with("instrument-")).count(), report.instruments.len());
    let manifest: serde_json::Value = serde_json::from_slice(&first["manifest.json"]).unwrap();
    let mut listed: Vec<&str> =
        manifest["files"].as_array().unwrap().iter().map(|f| f.as_str().unwrap()).collect();
    listed.sort_unstable();
    assert!(listed.iter().eq(first.keys()), "{listed:?}");
}

#[test]
fn every_row_of_a_table_has_every_column_and_the_sums_are_those_of_the_report() {
    let dir = folder("tables");
    let (report, _) = run(&dir, &scenario("sharing.toml", &[("flows", "12"), ("duration", "40 s")])).unwrap();
    for (name, bytes) in contents(&dir).iter().filter(|(name, _)| name.rsplit('.').next() == Some("csv")) {
        let text = std::str::from_utf8(bytes).unwrap();
        let columns = text.lines().next().unwrap().split(',').count();
        assert!(text.lines().all(|l| l.split(',').count() == columns), "{name}");
        assert!(!text.contains("NaN") && !text.contains("inf"), "{name}");
    }
    let series = fs::read_to_string(dir.join("series.csv")).unwrap();
    let head: Vec<&str> = series.lines().next().unwrap().split(',').collect();
    assert_eq!(head[..4], ["time_s", "kind", "name", "goodput_bps"]);
    let place = head.iter().position(|h| *h == "retransmits").unwrap();
    let cells = series.lines().skip(1).map(|l| l.split(',').collect::<Vec<_>>());
    // cells are empty before a flow starts
    let counts = cells.filter(|c| c[1] == "flow" && !c[place].is_empty());
    let resent: f64 = counts.map(|c| c[place].parse::<f64>().unwrap()).sum();
    let all: u64 = report.flows.iter().map(|f| f.tcp_or_zeros().retransmits).sum();
    assert!(all > 0 && (resent - all as f64).abs() < 0.5, "{resent} of {all}");
}

#[test]
fn what_applications_measured_stands_in_the_table_of_flows_and_on_the_page() {
    let dir = folder("applications");
    let (report, _) = run(&dir, &scenario("dama.toml", &[])).unwrap();
    let flows = fs::read_to_string(dir.join("flows.csv")).unwrap();
    let mut lines = flows.lines().map(|l| l.split(',').collect::<Vec<_>>());
    let head = lines.next().unwrap();
    let rows: Vec<Vec<&str>> = lines.collect();
    let cell = |flow: usize, column: &str| rows[flow][head.iter().position(|h| *h == column).unwrap()];
    let flow = |i: usize| report.flows[i].tcp_or_zeros();
    let place = |has: fn(&TcpReport) -> bool| (0..report.flows.len()).find(|i| has(flow(*i))).unwrap();
    let (web, typing) = (place(|f| f.requests.is_some()), place(|f| f.telnet.is_some()));
    let requests = flow(web).requests.as_ref().unwrap();
    assert_eq!(cell(web, "requests_completed"), requests.completed.to_string());
    assert_eq!(cell(web, "response_p99_ms").parse::<f64>().ok(), requests.response_ms.p99);
    let telnet = flow(typing).telnet.as_ref().unwrap();
    assert_eq!(cell(typing, "writes_acknowledged"), telnet.acknowledged.to_string());
    assert_eq!((cell(typing, "requests_completed"), cell(web, "ack_p50_ms")), ("", ""));
    assert!(!head.contains(&"datagrams_sent"), "no flow has datagrams");
    let page = fs::read_to_string(dir.join("report.html")).unwrap();
    assert!(page.contains("<h2>Requests</h2>") && page.contains("response median, ms"));
    assert!(page.contains("<h2>Typing</h2>") && !page.contains("<h2>Datagrams</h2>"));
}

#[test]
fn gateways_and_figures_of_others_have_tables_where_there_are_any() {
    let dir = folder("gateways");
    let (report, files) = run(&dir, &scenario("supercharger.toml", &[])).unwrap();
    let files: Vec<_> = files.iter().map(|f| f.file_name().unwrap().to_str().unwrap()).collect();
    assert!(files.contains(&"gateways.csv") && files.contains(&"references.csv"), "{files:?}");
    let text = |name: &str| fs::read_to_string(dir.join(name)).unwrap();
    let rows =
        |name: &str| text(name).lines().skip(1).map(|l| l.split(',').map(str::to_owned).collect()).collect();
    let references: Vec<Vec<String>> = rows("references.csv");
    assert_eq!(references.len(), 5);
    assert_eq!(
        references[2][..4],
        ["carried[hop-1024k]", "bit/s", &report.references[2].value.unwrap().to_string(), "8690000"]
    );
    let gateways: Vec<Vec<String>> = rows("gateways.csv");
    assert_eq!((gateways.len(), gateways[0][0].as_str()), (1, "gateway"));
    assert_eq!(gateways[0][8], report.gateways[0].held_peak_bytes.to_string());
    assert!(text("links.csv").lines().next().unwrap().contains(",carried_bps"));
    let page = text("report.html");
    assert!(page.contains("<h2>Beside what others found</h2>") && page.contains("<td>23.670</td>"));
    assert!(page.contains("<h2>Gateways</h2>") && page.contains("flows accelerated"));
    // the table appears once and is not repeated in the text
    assert_eq!(
        page.matches("TCP-SuperCharger, table 2: 4096 KB").count(),
        2,
        "in the table and in the resolved scenario"
    );

    let plain = folder("gateways_off");
    run(&plain, &scenario("window.toml", &[("duration", "5 s")])).unwrap();
    let names = contents(&plain);
    assert!(!names.contains_key("gateways.csv") && !names.contains_key("references.csv"));
}

#[test]
fn granted_rates_and_flow_routers_have_tables_where_there_are_any() {
    let dir = folder("rates");
    let (report, _) = run(&dir, &scenario("rate-negotiation.toml", &[])).unwrap();
    let text = |name: &str| fs::read_to_string(dir.join(name)).unwrap();
    let routers = text("flow-routers.csv");
    let cells: Vec<&str> = routers.lines().nth(1).unwrap().split(',').collect();
    let first = &report.flow_routers[0];
    assert_eq!((cells[0], first.name.as_str(), report.flow_routers.len()), ("first", "first", 2));
    assert_eq!((cells[2], cells[8]), (&*first.requests.to_string(), &*first.given_bps.to_string()));
    let flows = text("flows.csv");
    let (head, row) = flows.split_once('\n').unwrap();
    let place = head.split(',').position(|h| h == "granted_bps").unwrap();
    assert_eq!(row.trim_end().split(',').nth(place), Some("29984000"));
    let page = text("report.html");
    assert!(page.contains("<h2>Flow routers</h2>") && page.contains("<h2>Granted rates</h2>"));
    let words = report.to_text();
    assert!(words.contains("granted 29.984 Mbit/s") && words.contains("flow router first: "), "{words}");
}

#[test]
fn the_page_is_whole_and_fetches_nothing() {
    let dir = folder("page");
    let mut scenario = scenario("demo.toml", &[]);
    scenario.title = "<script>alert('&')</script>".to_owned();
    run(&dir, &scenario).unwrap();
    let page = fs::read_to_string(dir.join("report.html")).unwrap();
    for fetches in ["<link", "@import", "url(", "<script src", "<script>alert"] {
        assert!(!page.contains(fetches), "{fetches}");
    }
    // the values of the pictures, and one script for all
    let live = page.matches("<figure class=\"live\">").count();
    assert_eq!(
        (page.matches("<script type=\"application/json\">").count(), page.matches("<script>").count()),
        (live, 1)
    );
    assert!(live > 4 && page.matches("<svg xmlns").count() > live, "the SVG stays without scripts");
    assert!(!page.contains("src=") && !page.contains("NaN"));
    for name in [
        "Goodput",
        "Congestion window",
        "Round-trip time",
        "Throughput and rate",
        "Queue",
        "Time and sequence",
    ] {
        assert!(page.contains(&format!("<title>{name}")), "no picture of {name}");
    }
    assert_eq!(page.matches("<svg xmlns").count(), page.matches("role=\"img\"").count());
    assert!(page.contains("<details>") && page.trim_end().ends_with("</html>"));
}

#[test]
fn the_headline_and_what_limited_the_flow_come_first() {
    let dir = folder("headline");
    let (report, _) = run(&dir, &scenario("window.toml", &[("duration", "60 s")])).unwrap();
    let headline = report.headline();
    assert!(
        headline.starts_with("The flow uses ") && headline.contains("; the receiver's window of "),
        "{headline}"
    );
    assert!(report.to_text().starts_with(&format!("{headline}\n")));
    let page = fs::read_to_string(dir.join("report.html")).unwrap();
    let (before, after) = page.split_once("<p class=\"headline\">").unwrap();
    assert!(before.trim_end().ends_with("</h1>") && after.starts_with(&headline.replace('\'', "&#39;")));
    let strip = after.find("What limited the flows over time").unwrap();
    assert!(strip < after.find("<title>Goodput</title>").unwrap(), "the strip is beside the goodput");
    assert!(after.contains("<title>receiver&#39;s window: "));
}

#[test]
fn a_fade_and_an_outage_are_marked_on_the_goodput() {
    let goodput = |test: &str, scenario: &Scenario| {
        let dir = folder(test);
        run(&dir, scenario).unwrap();
        let page = fs::read_to_string(dir.join("report.html")).unwrap();
        let svg = page.split("<svg xmlns").find(|svg| svg.contains("<title>Goodput</title>")).unwrap();
        svg.to_owned()
    };
    assert!(goodput("mark_fade", &scenario("fade-2h.toml", &[])).contains(">fade of 2.5 dB or more<"));
    let text = include_str!("../../../scenarios/window.toml");
    let outages = "[dumbbell]\noutages = { every = \"8 s\", length = \"2 s\", random = false }";
    let source = Source::new("dark.toml", text.replace("[dumbbell]", outages));
    let sets = [("duration".to_owned(), "20 s".to_owned())];
    let dark = bentpipe_scenario::load(&source, &sets, None).unwrap_or_else(|e| panic!("{e}"));
    let svg = goodput("mark_outage", &dark);
    assert!(svg.contains(">outage<"), "{svg}");
    assert!(!goodput("mark_none", &scenario("window.toml", &[("duration", "20 s")])).contains(">outage<"));
}

#[test]
fn flows_alike_are_one_row_that_opens() {
    let dir = folder("alike");
    let (report, _) = run(&dir, &scenario("sharing.toml", &[("flows", "12"), ("duration", "20 s")])).unwrap();
    let page = fs::read_to_string(dir.join("report.html")).unwrap();
    let (first, last) = (&report.flows[0].name, &report.flows[11].name);
    assert!(page.contains(&format!("<td>{first} to {last}: 12 flows</td>")), "{first} {last}");
    let each =
        page.split(&format!("<summary>Each of the 12 flows {first} to {last}</summary>")).nth(1).unwrap();
    let rows = each.split("</details>").next().unwrap();
    assert_eq!(rows.matches("<tr><td>").count(), 12);
}

#[test]
fn pictures_are_files_if_asked_for() {
    let dir = folder("pictures");
    let formats = Formats::ALL;
    let (report, record, files) = run_with(&dir, &scenario("demo.toml", &[]), formats).unwrap();
    assert_eq!((report.flows.len(), record.flows.len()), (report.flows.len(), report.flows.len()));
    let names: Vec<String> =
        files.iter().map(|f| f.file_name().unwrap().to_string_lossy().into_owned()).collect();
    for name in ["picture-limits", "picture-goodput", "picture-round-trip-time"] {
        for kind in ["svg", "png"] {
            assert!(names.contains(&format!("{name}.{kind}")), "{name}.{kind}: {names:?}");
        }
    }
    let png = fs::read(dir.join("picture-goodput.png")).unwrap();
    assert!(png.starts_with(b"\x89PNG\r\n") && png.len() > 5000, "{}", png.len());
    let svg = fs::read_to_string(dir.join("picture-goodput.svg")).unwrap();
    assert!(svg.starts_with("<svg ") && svg.contains("<style>"));
    let manifest: serde_json::Value =
        serde_json::from_slice(&fs::read(dir.join("manifest.json")).unwrap()).unwrap();
    assert!(manifest["files"].as_array().unwrap().iter().any(|f| f == "picture-limits.png"));
}

#[test]
fn faults_name_the_file_and_the_cause_and_leave_nothing_behind() {
    let scenario = scenario("window.toml", &[("duration", "10 s")]);
    let (report, record) = run_recorded(&scenario, &RecordOptions::default(), |_| None);
    let outcome = Outcome { scenario: &scenario, report: &report, record: &record, captures: &[] };
    let taken = folder("taken");
    fs::write(&taken, "a file").unwrap();
    let error = write(&taken, &outcome, Formats::default()).unwrap_err();
    assert!(matches!(error, Error::NotAFolder { .. }));
    assert!(error.to_string().ends_with("not a folder; name a new or an existing folder for the results"));
    assert!(
        write(&taken.join("below"), &outcome, Formats::default())
            .unwrap_err()
            .to_string()
            .contains("cannot create the folder: ")
    );
    let blocked = folder("blocked");
    fs::create_dir_all(blocked.join("series.csv")).unwrap();
    let error = write(&blocked, &outcome, Formats::default()).unwrap_err().to_string();
    assert!(error.contains("series.csv: cannot write: "), "{error}");
    let left: Vec<_> = fs::read_dir(&blocked).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(left.iter().all(|n| !n.to_string_lossy().contains(".part")), "{left:?}");
    assert!(!left.iter().any(|n| n == "manifest.json"), "a folder with a manifest is complete");
}
