//! Queue disciplines under TCP: the cost of a standing queue, and the effect of CoDel and FQ-CoDel.

#![allow(clippy::unwrap_used, reason = "a test may say what it takes for granted")]

use bentpipe_report::Report;
use bentpipe_scenario::{Source, load};
use bentpipe_sim::run;

/// `bulk` bulk flows over 10 Mbit/s with an RTT of 50 ms and a queue of 600 ms, and beside them 64 kbit/s
/// of datagrams like those of a call.
fn report(discipline: &str, bulk: usize, ecn: bool, seed: u64) -> Report {
    let text = format!(
        "schema = 1\ntitle = \"queues\"\nduration = \"60 s\"\nmeasure = {{ from = \"10 s\", to = \"60 s\" }}\n\
         [dumbbell]\npairs = {}\nrtt = \"50 ms\"\nrate = \"10 Mbit/s\"\nbuffer = \"500 packets\"\ndiscipline = {discipline}\n\
         access = {{ rate = \"1 Gbit/s\", delay = \"1 ms\", buffer = \"10000 packets\" }}\n\
         [host]\ntcp = \"cubic\"\nwindow = \"8 MB\"\necn = {ecn}\n\
         [[flows]]\nname = \"bulk\"\nfrom = \"src1\"\nto = \"dst1\"\ncount = {bulk}\n\
         [[flows]]\nname = \"call\"\nfrom = \"src{}\"\nto = \"dst{}\"\n\
         app = {{ udp = {{ rate = \"64 kbit/s\", size = \"160 B\" }} }}\nstart = \"1 s\"\n",
        bulk + 1,
        bulk + 1,
        bulk + 1
    );
    let scenario = load(&Source::new("queues.toml", text), &[], Some(seed)).unwrap_or_else(|e| panic!("{e}"));
    run(&scenario)
}

/// 99th percentile of the one-way delay of the call's datagrams in ms, and the goodput of the other flows.
fn call(report: &Report) -> (f64, f64) {
    let call = report.flows.last().unwrap();
    let bulk: f64 = report.flows[..report.flows.len() - 1].iter().map(|f| f.goodput_bps).sum();
    (call.udp().unwrap().delay_ms.quantiles.p99.unwrap(), bulk / 1e6)
}

#[test]
fn codel_keeps_the_delay_of_one_flow_short_and_the_link_busy() {
    for seed in 1..=5 {
        let (bloated, fifo) = call(&report("\"fifo\"", 1, false, seed));
        let (delay, codel) = call(&report("\"codel\"", 1, false, seed));
        // 25 ms of propagation, and CUBIC's sawtooth above the target of 5 ms
        assert!(bloated > 300.0 && fifo > 9.3, "{bloated} ms, {fifo} Mbit/s");
        assert!(delay < 60.0 && codel > 8.5, "{delay} ms, {codel} Mbit/s");
    }
}

#[test]
fn with_ecn_codel_marks_and_nothing_is_sent_again() {
    let report = report("\"codel\"", 1, true, 1);
    let link = report.links.iter().find(|l| *l.name == *"bottleneck").unwrap();
    // datagrams are not ECN-capable: some of them may be dropped
    let retransmits = report.flows[0].tcp().unwrap().retransmits;
    let dropped = link.drops.get("aqm").copied().unwrap_or(0);
    assert!(link.marked.unwrap() > 20 && dropped < 30, "{:?} {dropped}", link.marked);
    // except for the start: slow start fills the buffer before CoDel reacts
    assert!(retransmits == 0 || link.drops.contains_key("queue_full"), "{retransmits}");
    let (delay, goodput) = call(&report);
    assert!(delay < 60.0 && goodput > 8.5, "{delay} ms, {goodput} Mbit/s");
    assert!(report.to_text().contains(" marked"), "{}", report.to_text());
}

#[test]
fn under_fq_codel_a_call_hears_nothing_of_the_others_and_they_share() {
    for seed in 1..=5 {
        let report = report("\"fq_codel\"", 4, false, seed);
        let (delay, goodput) = call(&report);
        // 25 ms, and at most one packet of each other flow ahead: 4 x 1.2 ms
        assert!((25.0..32.0).contains(&delay) && goodput > 9.0, "{delay} ms, {goodput} Mbit/s");
        assert!(report.flows[4].udp().unwrap().lost == 0);
        let rates: Vec<f64> = report.flows[..4].iter().map(|f| f.goodput_bps).collect();
        let (least, most) =
            (rates.iter().fold(f64::MAX, |a, b| a.min(*b)), rates.iter().fold(0.0, |a: f64, b| a.max(*b)));
        assert!(least / most > 0.8, "{rates:?}");
    }
}
