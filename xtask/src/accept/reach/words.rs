//! The command line in the first minutes: files of one's own, live links, what a terminal shows, answers to
//! wrong words, and the board for Grafana with a real Prometheus.

use crate::accept::list::{List, Outcome, Setup, Tests};
use crate::metadata;
use lab::rig::{has, wait_for};
use lab::{Rig, Who};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::time::Duration;

use super::super::Part;

pub(super) const PARTS: [Part; 2] = [("words", words), ("board", board)];

/// Addresses of the metrics of a link and of Prometheus, in the namespace of the test.
const METRICS: &str = "127.0.0.1:9465";
const PROMETHEUS: &str = "127.0.0.1:9090";
const LIMIT: Duration = Duration::from_secs(120);
/// Fewest expressions of the board that must have values with a link and without a gateway.
const OF_A_LINK: usize = 8;

const TESTS: &str = "-p bentpipe-cli -p bentpipe-emulate -p bentpipe-scenario -p bentpipe-sweep -p bentpipe-accelerate \
    -p bentpipe-live -p bentpipe-os --lib --test new --test far --test uplink --test locale --test board --test cli \
    --test expect --test sweep --test errors --test sessions";

const WORDS: &str = "
* new: what it writes is accepted and runs, for 54 combinations of flags
  every_file_checks_and_runs every_named_link_and_scheme_has_a_file
* new: asks on a terminal; a wrong answer is asked again; a file that exists is kept
  a_wrong_answer_is_asked_again without_a_terminal_nothing_is_asked a_file_that_exists_is_kept
* new: slips are shown in their option
  slips_are_shown_in_their_option
* --expect of emulate and compare, with the exit status 3
  a_live_link_is_judged_by_its_report both_runs_of_a_comparison_are_judged
* --far waits for a port, says if it was not opened, and how the program ended
  the_command_starts_when_the_far_program_listens a_far_program_that_does_not_listen_is_named the_end_of_the_far_program_is_reported
* captures by flag, the ends by default
  packets_are_captured_where_the_flag_says
* --uplink of an ordinary user, through pasta and slirp4netns
  an_ordinary_users_link_leads_to_the_internet without_a_connector_or_a_device_it_says_what_to_install a_killed_sessions_connector_is_ended
* top at 80 and at 40 columns cuts no figure
  narrow_screens_have_every_figure forty_columns_as_a_picture
* LC_ALL=C gets ASCII, and programs get UTF-8
  text_in_the_c_locale_is_ascii results_for_programs_are_the_same_in_every_locale text_is_ascii_and_as_wide_as_before
* loss=150%, a larger unit, a title without quotes
  values_that_people_write_are_answered_with_what_to_write
* link outage 2
  an_outage_without_a_unit_is_answered_with_both
* emulate geo-10m ping far, without --
  a_command_needs_no_dashes
* sim geo-10m, sim demo.toml, sim examples/gateway.toml
  a_file_that_is_not_there_or_of_another_kind_is_answered_with_what_to_write
* an interface that is used is no hint
  an_interface_that_is_used_is_no_hint
* --expect answers with the digits that decide
  values_are_shown_in_the_unit_of_the_condition_with_the_digits_that_decide
* emulate --json -- true
  json_of_a_command_is_refused
* replay of a cut journal
  a_journal_that_was_cut_is_no_success only_the_same_output_is_a_success
* receive 5000 as an ordinary user
  a_port_of_an_ordinary_user_is_not_said_to_be_for_root an_ordinary_user_is_told_what_is_for_root
* doctor where PATH lacks sbin
  doctor_finds_nft_outside_path programs_outside_path_are_found_where_distributions_keep_them
* sweeps without a terminal and after a signal
  without_a_terminal_there_is_a_line_every_half_minute an_interrupted_sweep_says_what_is_kept_and_how_to_go_on
* percentiles are said to be rounded
  the_report_says_how_percentiles_are_rounded
* Jain's axis ends at 1
  intervals_of_shares_end_at_0_and_1
* half-widths have the digits that are known
  figures_are_rounded_to_what_is_known
* numbers of an axis have one notation
  numbers_of_an_axis_have_one_notation
* gateway status: ended connections, and what a killed gateway has left
  ended_connections_do_not_pass one_name_runs_once_and_leaves_nothing
* sweep --measure a,b
  several_metrics_in_one_option_are_answered_with_one_each
* the board names what gateways and links export
  every_metric_and_label_of_the_board_is_exported panels_have_places_of_their_own";

fn words(_: &Setup, list: &mut List) -> Outcome {
    list.proofs(&Tests::of(TESTS, &[])?, WORDS);
    Ok(())
}

/// A real Prometheus reads a running link, and the board's expressions have values there.
fn board(setup: &Setup, list: &mut List) -> Outcome {
    for (program, package) in [("prometheus", "prometheus"), ("promtool", "prometheus"), ("curl", "curl")] {
        if !has(program) {
            list.skip("the board with a real Prometheus", &format!("{program} is missing (package {package})"));
            return Ok(());
        }
    }
    let rig = setup.rig(Who::CurrentUser)?;
    let session = ["emulate", "terrestrial", "--metrics", METRICS, "--far", "iperf3 -s >/dev/null", "--"];
    let mut link = rig.start(&[&session[..], &["iperf3", "-c", "far", "-R", "-t", "100"]].concat())?;
    wait_for("metrics of the link", || {
        if link.has_ended()? {
            return Err(link.err());
        }
        Ok(get(&rig, &format!("http://{METRICS}/metrics")).is_ok())
    })?;
    list.judge("promtool: metrics of a link are without fault", checked(&rig), |said| {
        (said.replace('\n', " "), said.trim().is_empty())
    });
    let config = format!(
        "global: {{ scrape_interval: 1s }}\nscrape_configs:\n- job_name: bentpipe\n  static_configs:\n  - targets: ['{METRICS}']\n"
    );
    let config = rig.file("prometheus.yml", &config)?;
    let data = rig.path("prometheus");
    let words = [
        format!("--config.file={config}"),
        format!("--storage.tsdb.path={}", data.display()),
        format!("--web.listen-address={PROMETHEUS}"),
    ];
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let program = lab::rig::find("prometheus").unwrap_or_default();
    let _server = rig.spawn(rig.command(&program, &words), "prometheus")?;
    let up = |value: &Value| value["data"]["result"][0]["value"][1] == "1";
    wait_for("prometheus to find the link", || Ok(ask(&rig, "bentpipe_link_up").is_ok_and(|v| up(&v))))?;
    // rates need some seconds of samples
    std::thread::sleep(Duration::from_secs(6));
    let (mut with_values, mut wrong) = (0, Vec::new());
    let all = expressions()?;
    for expression in &all {
        let asked = expression.replace("$__rate_interval", "5s").replace("$session", ".*").replace("$gateway", ".*");
        match ask(&rig, &asked) {
            Ok(answer) if answer["status"] == "success" => {
                let found = answer["data"]["result"].as_array().is_some_and(|all| !all.is_empty());
                with_values += usize::from(found);
            }
            other => wrong.push(format!("{expression}: {other:?}")),
        }
    }
    list.line(
        format!("{} expressions of the board are understood", all.len()),
        format!("{} refused {}", wrong.len(), wrong.join(", ")),
        wrong.is_empty() && !all.is_empty(),
    );
    let what = format!("and have values, of a link alone: at least {OF_A_LINK}");
    list.line(what, with_values.to_string(), with_values >= OF_A_LINK);
    let rate = ask(&rig, "sum(rate(bentpipe_link_bytes_total[5s])) * 8").map(|answer| {
        let text = answer["data"]["result"][0]["value"][1].as_str().unwrap_or_default().to_owned();
        text.parse::<f64>().unwrap_or_default()
    });
    list.judge("the throughput of 100 Mbit/s, as Prometheus sees it: 50 to 110 Mbit/s", rate, |bps| {
        (format!("{:.1} Mbit/s", bps / 1e6), (50e6..110e6).contains(&bps))
    });
    link.signal(rustix::process::Signal::TERM);
    Ok(())
}

fn get(rig: &Rig, url: &str) -> Outcome<String> {
    rig.shell(&format!("curl -sf -m 5 '{url}'"), LIMIT)
}

/// What `promtool check metrics` says of the link's page: nothing, if all is well.
fn checked(rig: &Rig) -> Outcome<String> {
    let done = rig.run_shell(&format!("curl -sf -m 5 http://{METRICS}/metrics | promtool check metrics"), LIMIT)?;
    Ok(done.out + &done.err)
}

fn ask(rig: &Rig, query: &str) -> Outcome<Value> {
    let script = format!("curl -s -m 5 -G --data-urlencode 'query={query}' http://{PROMETHEUS}/api/v1/query");
    serde_json::from_str(&rig.shell(&script, LIMIT)?).map_err(|e| format!("prometheus: {e}"))
}

fn expressions() -> Outcome<Vec<String>> {
    let path: &Path = &metadata::root().join("packaging/grafana/bentpipe.json");
    let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let board: Value = serde_json::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))?;
    let panels = board["panels"].as_array().cloned().unwrap_or_default();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().cloned().unwrap_or_default());
    Ok(targets.filter_map(|target| Some(target["expr"].as_str()?.to_owned())).collect())
}
