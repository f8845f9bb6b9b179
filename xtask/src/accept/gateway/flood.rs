//! Established connections during a SYN flood from random addresses to an unused address.

use crate::accept::list::{List, Outcome, Setup};
use lab::passage::{Forwarding, GatewayKind, Host, RouterTestbed};
use lab::stats::{Random, median};
use lab::{Who, join};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, ipproto, sendto, socket_with};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

/// Rate of the flood, and total rate of the established connections.
const SYNS_PER_S: u32 = 200_000;
const LINK_BPS: u64 = 100_000_000;
/// Seconds without the flood, and with it.
const HALF: u32 = 8;
/// Seconds ignored at the start and after a change.
const SETTLE: u32 = 2;
/// Length of a SYN with its IP header, without options, bytes.
const SYN: usize = 40;
/// Interval for pacing the flood.
const STEP: Duration = Duration::from_millis(1);

/// Floods from the hop, where the gateway paces the opposite direction at the link's rate, and from the
/// LAN, where a hop of that rate could not carry both.
pub(super) fn check(setup: &Setup, list: &mut List) -> Outcome {
    let passage = RouterTestbed::new(setup.rig(Who::CurrentUser)?)?;
    let by_gateway = Forwarding::Accelerated(GatewayKind::Routed);
    let rate = "rate = \"100 Mbit/s\"";
    for (from, carrier, hop, words) in [
        (Host::Receiver, by_gateway, rate, "from the hop, paced at 100 Mbit/s: within 10 %"),
        (Host::Sender, by_gateway, "", "from the LAN, connections of 100 Mbit/s: within 10 %"),
        (Host::Sender, Forwarding::Kernel, "", "from the LAN, without a gateway (reported)"),
    ] {
        let flooded = flood(&passage, carrier, hop, from);
        list.judge(format!("200 000 SYN/s {words}"), flooded, |(before_bps, beside_bps, syns_per_s)| {
            let share = beside_bps / before_bps;
            let [before, beside] = [before_bps, beside_bps].map(|bps| bps / 1e6);
            let change = (share - 1.0) * 100.0;
            let figure = format!("{beside:.1} of {before:.1} Mbit/s, {change:+.1} %, {syns_per_s:.0} SYN/s");
            let met = share >= 0.9 && syns_per_s >= 0.95 * f64::from(SYNS_PER_S);
            (figure, met || carrier == Forwarding::Kernel)
        });
    }
    Ok(())
}

/// Eight connections from sender to receiver, and a flood: their rates before and during it, bit/s, and its
/// SYN/s. `hop` holds the gateway's satellite settings.
fn flood(passage: &RouterTestbed, carrier: Forwarding, hop: &str, from: Host) -> Outcome<(f64, f64, f64)> {
    let gateway = passage.start_forwarding(carrier, hop)?;
    let (is_over, seconds) = (AtomicBool::new(false), 2 * HALF);
    let words = format!("-P 8 -b {} -l 16K -t {seconds} -i 1", LINK_BPS / 8);
    let (report, sent) = scope(|scope| {
        let flood = scope.spawn(|| {
            sleep(Duration::from_secs(u64::from(HALF)));
            passage.within(from, || send(from, &is_over))
        });
        let report = passage.iperf_report(carrier, &words, seconds);
        is_over.store(true, Ordering::Relaxed);
        (report, join(flood))
    });
    gateway.end()?;
    let report = report?;
    let intervals = report["intervals"].as_array().into_iter().flatten();
    let rates: Vec<f64> = intervals.filter_map(|i| i["sum"]["bits_per_second"].as_f64()).collect();
    let between = |from: u32, to: u32| rates.get(from as usize..to as usize).unwrap_or_default();
    if rates.len() < seconds as usize {
        return Err(format!("iperf3 tells of {} seconds of {seconds}", rates.len()));
    }
    Ok((median(between(SETTLE, HALF)), median(between(HALF + SETTLE, 2 * HALF - 1)), sent?))
}

/// Sends the flood until `is_over`; returns packets per second.
fn send(from: Host, is_over: &AtomicBool) -> Outcome<f64> {
    let text = |e: rustix::io::Errno| format!("a raw socket: {e}");
    // the kernel fills in the checksum of the IP header (raw(7))
    let socket = socket_with(AddressFamily::INET, SocketType::RAW, SocketFlags::CLOEXEC, Some(ipproto::RAW))
        .map_err(text)?;
    let net = if from == Host::Sender { [1, 2] } else { [2, 1] };
    let to = SocketAddrV4::new(Ipv4Addr::new(10, 9, net[1], 200), 0);
    let (since, mut sent, mut dice) = (Instant::now(), 0u64, Random::new(1));
    while !is_over.load(Ordering::Relaxed) {
        let due = (since.elapsed().as_secs_f64() * f64::from(SYNS_PER_S)) as u64;
        for _ in 0..due.saturating_sub(sent) {
            // a random source
            let bits = dice.below(1 << 40);
            let source = Ipv4Addr::new(10, 9, net[0], 3 + (bits % 190) as u8);
            // only SYNs that were sent count
            let done = sendto(&socket, &syn(source, *to.ip(), (bits >> 8) as u32), SendFlags::DONTWAIT, &to);
            sent += u64::from(done.is_ok());
        }
        sleep(STEP);
    }
    Ok(sent as f64 / since.elapsed().as_secs_f64())
}

/// A SYN with port and sequence number from `bits`.
fn syn(src: Ipv4Addr, dst: Ipv4Addr, bits: u32) -> [u8; SYN] {
    let mut packet = [0; SYN];
    packet[..10].copy_from_slice(&[0x45, 0, 0, SYN as u8, 0, 0, 0x40, 0, 64, 6]);
    packet[12..16].copy_from_slice(&src.octets());
    packet[16..20].copy_from_slice(&dst.octets());
    packet[20..22].copy_from_slice(&(1024 | bits as u16).to_be_bytes());
    packet[22..24].copy_from_slice(&80u16.to_be_bytes());
    packet[24..28].copy_from_slice(&bits.to_be_bytes());
    packet[32..36].copy_from_slice(&[0x50, 0x02, 0xff, 0xff]);
    // pseudo-header and TCP header (RFC 9293, section 3.1)
    let words = packet[12..].chunks_exact(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])));
    let sum = words.sum::<u32>() + 6 + (SYN as u32 - 20);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    packet[36..38].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    packet
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_syn_is_sound() {
        for bits in [0, 0x8000_0001, u32::MAX] {
            let packet = syn(Ipv4Addr::new(10, 9, 1, 3), Ipv4Addr::new(10, 9, 2, 200), bits);
            let words = packet[12..].chunks_exact(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])));
            let sum = words.sum::<u32>() + 6 + 20;
            assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff, "{bits:x}");
        }
    }
}
