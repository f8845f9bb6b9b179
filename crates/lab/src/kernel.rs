//! The kernel's own forwarding between two veth pairs: what a relay in user space is measured against, in the same run.

use crate::Outcome;
use crate::rig::{Rig, json};
use crate::speed::received_bps;
use std::time::Duration;

/// Sender, router and receiver as namespaces that live as long as their sleepers, then iperf3 through the router.
const FORWARD: &str = "
hold() { unshare --net -- sleep 1000 & }
hold; s=$!; hold; r=$!; hold; c=$!
trap 'kill $s $r $c' EXIT
at() { p=$1; shift; nsenter --target $p --net -- \"$@\"; }
sleep 0.3
ip link add name ls netns $s type veth peer name rs netns $r
ip link add name lc netns $c type veth peer name rc netns $r
at $s ip addr add 10.9.1.1/24 dev ls; at $r ip addr add 10.9.1.2/24 dev rs
at $c ip addr add 10.9.2.1/24 dev lc; at $r ip addr add 10.9.2.2/24 dev rc
at $s ip link set ls up; at $r ip link set rs up; at $c ip link set lc up; at $r ip link set rc up
at $s ip route add default via 10.9.1.2; at $c ip route add default via 10.9.2.2
at $r sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
at $s iperf3 -s -1 >/dev/null & i=$!
sleep 0.5
at $c iperf3 -c 10.9.1.1 -R -C cubic -P $STREAMS -t $SECONDS_ -J >$FILE; code=$?
kill $i 2>/dev/null
exit $code";

/// Bit/s of payload that the kernel forwards in `streams` TCP connections with CUBIC.
///
/// # Errors
/// When a program fails; it needs root.
pub fn forwarding(rig: &Rig, streams: u32, seconds: u32) -> Outcome<f64> {
    let file = rig.path("kernel.json");
    let script = format!("FILE='{}'; STREAMS={streams}; SECONDS_={seconds}\n{FORWARD}", file.display());
    rig.shell(&script, Duration::from_secs(u64::from(seconds) + 30))?;
    let result = json(&file);
    let _ = std::fs::remove_file(&file);
    received_bps(&result?)
}
