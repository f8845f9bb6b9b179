//! The command line in the first minutes: files of one's own, live links, what a terminal shows, answers to
//! wrong words, and the board for Grafana with a real Prometheus.

use crate::accept::list::{List, Outcome, Setup, Tests};
use crate::metadata;
use lab::rig::{Running, has, wait_for};
use lab::{Rig, Who};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::time::Duration;

use super::super::Part;

pub(super) const PARTS: [Part; 2] = [("words", words), ("board", board)];

/// Addresses of the metrics of a gateway and of a link, and of Prometheus, in the namespace of the test.
const ADDRESSES: [&str; 2] = ["127.0.0.1:9464", "127.0.0.1:9465"];
const PROMETHEUS: &str = "127.0.0.1:9090";
const LIMIT: Duration = Duration::from_secs(120);
/// Metrics of the board that are absent: too few connections to compare, and a link without a fade.
const ABSENT: [&str; 4] = ["gain_ratio{", "gain_ratio_low{", "gain_ratio_high{", "fade_decibels{"];
/// What promtool says of rates in bit/s, which is what people of this field count in.
const OF_UNITS: &str = "use base unit \"bytes\" instead of \"bits\"";

/// Interfaces of a gateway.
const MACHINE: &str = "for name in lan sat; do
    ip link add ${name}0 type veth peer name ${name}1
    ip link set ${name}0 up; ip link set ${name}1 up
done
ip addr add 10.77.1.1/24 dev lan0
ip addr add 10.77.2.1/24 dev sat0
ip route add default via 10.77.2.2
echo 1 > /proc/sys/net/ipv4/ip_forward
echo 1 > /proc/sys/net/ipv6/conf/all/forwarding";

const GATEWAY: &str = "schema = 1
[satellite]
rate = \"24 Mbit/s\"
[deploy]
kind = \"routed\"
lan = \"lan0\"
satellite = \"sat0\"
watch = \"0 s\"
[status]
prometheus = \"127.0.0.1:9464\"
";

const TESTS: &str = "-p bentpipe-cli -p bentpipe-emulate -p bentpipe-scenario -p bentpipe-sweep -p bentpipe-accelerate \
    -p bentpipe-live -p bentpipe-os -p bentpipe-results --lib --test new --test far --test uplink --test locale --test board --test cli \
    --test expect --test sweep --test show --test folder --test errors --test sessions";

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
  programs_outside_path_are_found_where_distributions_keep_them
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
* gateway status: no RTT of 0 ms
  an_rtt_is_never_said_to_be_zero
* show nothing
  a_run_that_is_not_there_is_answered_with_what_a_run_is_and_with_those_that_are
* pictures by flag: sim, show, emulate, sweep
  pictures_are_files_if_asked_for pictures_of_a_live_run_are_files_if_asked_for curves_are_png_files_if_asked_for
* show of saved runs: what limited the flows over time
  a_saved_run_shows_what_limited_its_flows
* sweep --measure a,b
  several_metrics_in_one_option_are_answered_with_one_each
* the board names what gateways and links export
  every_metric_and_label_of_the_board_is_exported panels_have_places_of_their_own";

fn words(_: &Setup, list: &mut List) -> Outcome {
    list.proofs(&Tests::of(TESTS, &[])?, WORDS);
    Ok(())
}

/// A real Prometheus reads a gateway and a link, and the board's expressions have values there.
fn board(setup: &Setup, list: &mut List) -> Outcome {
    for (program, package) in [("prometheus", "prometheus"), ("promtool", "prometheus"), ("curl", "curl")] {
        if !has(program) {
            list.skip(
                "the board with a real Prometheus",
                &format!("{program} is missing (package {package})"),
            );
            return Ok(());
        }
    }
    let rig = setup.rig(Who::CurrentUser)?;
    rig.shell(MACHINE, LIMIT)?;
    let (file, run) = (rig.file("gateway.toml", GATEWAY)?, rig.path("gateway").display().to_string());
    let mut gateway = rig.start(&["gateway", "run", &file, "--run-dir", &run])?;
    let link = ["emulate", "terrestrial", "--metrics", ADDRESSES[1], "--far", "iperf3 -s >/dev/null", "--"];
    let mut link = rig.start(&[&link[..], &["iperf3", "-c", "far", "-R", "-t", "100"]].concat())?;
    for (address, service) in ADDRESSES.into_iter().zip([&mut gateway, &mut link]) {
        wait_for(&format!("metrics at {address}"), || {
            if service.has_ended()? {
                return Err(service.err());
            }
            Ok(rig.shell(&page(address), LIMIT).is_ok())
        })?;
        let said = rig.run_shell(&format!("{} | promtool check metrics", page(address)), LIMIT);
        list.judge(format!("promtool check metrics, {address}"), said, |done| {
            let said = done.out + &done.err;
            let wrong: Vec<&str> = said.lines().filter(|line| !line.contains(OF_UNITS)).collect();
            (wrong.join("; "), wrong.is_empty())
        });
    }
    let _server = prometheus(&rig)?;
    asked(&rig, list)?;
    for service in [&mut link, &mut gateway] {
        service.signal(rustix::process::Signal::TERM);
    }
    Ok(())
}

/// Starts Prometheus, and waits until it has read both for some seconds.
fn prometheus(rig: &Rig) -> Outcome<Running> {
    let config = format!(
        "global: {{ scrape_interval: 1s }}\nscrape_configs:\n- job_name: bentpipe\n  static_configs:\n  - targets: {ADDRESSES:?}\n"
    );
    let config = rig.file("prometheus.yml", &config)?;
    let words = [
        format!("--config.file={config}"),
        format!("--storage.tsdb.path={}", rig.path("prometheus").display()),
        format!("--web.listen-address={PROMETHEUS}"),
    ];
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let program = lab::rig::find("prometheus").unwrap_or_default();
    let server = rig.spawn(rig.command(&program, &words), "prometheus")?;
    let up =
        |answer: Value| answer["data"]["result"].as_array().is_some_and(|all| all.len() == ADDRESSES.len());
    wait_for("prometheus to find both", || Ok(ask(rig, "up == 1").is_ok_and(up)))?;
    // rates need some seconds of samples
    std::thread::sleep(Duration::from_secs(6));
    Ok(server)
}

/// Asks for everything that the board shows.
fn asked(rig: &Rig, list: &mut List) -> Outcome {
    let (mut refused, mut empty) = (Vec::new(), Vec::new());
    let all = expressions()?;
    for expression in &all {
        let expression = expression.replace("$__rate_interval", "5s");
        let answer = ask(rig, &expression.replace("$session", ".*").replace("$gateway", ".*"))?;
        let found = answer["data"]["result"].as_array().map_or(0, Vec::len);
        if answer["status"] != "success" {
            refused.push(format!("{expression}: {}", answer["error"]));
        } else if found == 0 && !ABSENT.iter().any(|metric| expression.contains(metric)) {
            empty.push(expression);
        }
    }
    let what = format!("the {} expressions of the board are understood", all.len());
    list.line(what, refused.join(", "), refused.is_empty() && !all.is_empty());
    let what = format!("and have values, but for {}", ABSENT.len());
    list.line(what, empty.join(", "), empty.is_empty());
    let rate = ask(rig, "sum(rate(bentpipe_link_bytes_total[5s])) * 8").map(|answer| {
        let text = answer["data"]["result"][0]["value"][1].as_str().unwrap_or_default().to_owned();
        text.parse::<f64>().unwrap_or_default()
    });
    list.judge("100 Mbit/s as Prometheus sees it: 50 to 110 Mbit/s", rate, |bps| {
        (format!("{:.1} Mbit/s", bps / 1e6), (50e6..110e6).contains(&bps))
    });
    Ok(())
}

fn page(address: &str) -> String {
    format!("curl -sf -m 5 http://{address}/metrics")
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
