//! A deployed flow router between two agents, over a link that is not bentpipe's own: a program from outside
//! that makes the namespaces `-snd`, `-gwa`, `-gwb` and `-rcv`, runs a gateway in the second, and serves the
//! link between the second and the third.

use super::agents::{GEO_BYTES, L_BYTES, L_LOSS, L_SHARE, geo_bps, judge_turns, since_first_byte, turns};
use super::bed::{agents, port, transfer};
use super::{MBIT_S, SHARE};
use crate::accept::list::{Bound, List, Outcome, Setup};
use lab::chain::{Chain, pid};
use lab::{Rig, Who};
use std::path::Path;

/// The variable with the path of that program.
const VARIABLE: &str = "BENTPIPE_FIELD_BED";
/// The sender's address in it, and the interfaces of sender and receiver.
const NAMES: [&str; 3] = ["10.72.1.2", "eth0", "eth0"];

pub(super) fn check(setup: &Setup, list: &mut List) -> Outcome {
    let what = "a deployed flow router, over a link from outside";
    let Some(bed) = std::env::var_os(VARIABLE) else {
        list.skip(what, &format!("{VARIABLE} is not set to its program"));
        return Ok(());
    };
    let case_l = format!("RATE=100e6 DELAY=20 LOSS={L_LOSS} QUEUE=1500000");
    let times =
        hosts(setup, Path::new(&bed), &case_l, ("100 Mbit/s", L_SHARE)).and_then(|chain| turns(&chain));
    judge_turns(list, &format!("{what}: {L_BYTES} B"), &times);
    let geo = "RATE=24e6 DELAY=500 LOSS=0.01 QUEUE=3000000 OLD=xp";
    let chain = hosts(setup, Path::new(&bed), geo, ("24 Mbit/s", SHARE));
    let bps = chain.and_then(|chain| {
        let _agents = agents(&chain)?;
        transfer(&chain, port(0), "cubic", 1, GEO_BYTES).map(|record| since_first_byte(&record))
    });
    let what = "the same, 24 Mbit/s, 1000 ms, loss 0.01, old receiver";
    list.figure(what, bps, Bound::Least(geo_bps()), MBIT_S);
    Ok(())
}

/// Starts the program with these values, and a gateway that divides this share of a rate.
fn hosts(setup: &Setup, bed: &Path, values: &str, (rate, share): (&str, f64)) -> Outcome<Chain> {
    let rig = Rig::new(setup.bentpipe()?, Who::CurrentUser)?;
    let conf = format!(
        "schema = 1\n[satellite]\n[deploy]\nkind = \"routed\"\nlan = \"west\"\nsatellite = \"tuna\"\n[policy]\notherwise = \"pass\"\n[rate]\nencodings = [\"tia-1039\"]\nrate = \"{rate}\"\nutilisation = {share:?}\n"
    );
    let conf = rig.file("flow-router.toml", &conf)?;
    let files = ["snd", "gwa", "rcv"].map(|name| rig.path(name));
    let [sender, others @ ..] = &files;
    let others = others.each_ref().map(|file| {
        let name = file.file_name().unwrap_or_default().display().to_string();
        format!(
            "ip netns exec ${{net%-snd}}-{name} sh -c 'echo $$ >{}; exec sleep infinity' & ",
            file.display()
        )
    });
    let script = format!(
        "net=$(ip netns identify $$)\n{}echo $$ >{}; exec sleep infinity\n",
        others.concat(),
        sender.display()
    );
    let script = rig.file("hold.sh", &script)?;
    let program = format!("BIN={}", rig.program().display());
    let conf = format!("CONF={conf}");
    let words: Vec<&str> = [&*program, &conf].into_iter().chain(values.split(' ')).collect();
    let words = [&words[..], &["--", "sh", &script]].concat();
    let session = rig.spawn_group(rig.command(bed, &words), "the bed from outside")?;
    let [sender, router, receiver] = files.each_ref().map(|file| pid(file));
    Ok(Chain::of(rig, session, [sender?, router?, receiver?], NAMES))
}
