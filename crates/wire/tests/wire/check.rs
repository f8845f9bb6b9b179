//! Checks that must pass for any bytes. The replay of the corpus and the fuzzer use them.

use crate::oracle;
use bentpipe_wire::{Fault, Ipv4, Ipv6, Layout, Network, Options, Tcp, WireError, emit, parse};

/// Returns `Err` with a message unless the condition is true.
macro_rules! ensure {
    ($condition:expr, $($text:tt)+) => {
        if !$condition {
            return Err(format!($($text)+));
        }
    };
}

/// Runs all checks. The result depends on the bytes only.
pub(crate) fn all(bytes: &[u8]) -> Result<(), String> {
    for start in 0..bytes.len().min(64) {
        views(&bytes[start..])?;
    }
    views(&[])?;
    meaning(bytes)
}

/// A view never panics, never reaches past the bytes, and covers them without a gap.
fn views(bytes: &[u8]) -> Result<(), String> {
    if let Some(ip) = inside(Ipv4::new(bytes), bytes)? {
        let at = 20 + ip.options.len();
        ensure!(bytes.get(20..at) == Some(ip.options), "IPv4 options lie elsewhere");
        ensure!(bytes[at..].starts_with(ip.payload), "IPv4 payload lies elsewhere");
        let _ = (ip.checksum_holds(), ip.header.part());
    }
    if let Some(ip) = inside(Ipv6::new(bytes), bytes)? {
        ensure!(bytes[40..].starts_with(ip.payload), "IPv6 payload lies elsewhere");
        if let Some(chain) = inside(ip.chain(), bytes)? {
            ensure!((40..=40 + ip.payload.len()).contains(&chain.transport), "the chain leaves the packet");
        }
    }
    if let Some(tcp) = inside(Tcp::new(bytes), bytes)? {
        ensure!(20 + tcp.options.len() + tcp.payload.len() == bytes.len(), "TCP leaves a gap");
        options(tcp.options)?;
    }
    if let Some(network) = inside(Network::of(bytes), bytes)? {
        ensure!(network.transport <= network.end && network.end <= bytes.len(), "network leaves the packet");
    }
    options(bytes)
}

/// Options are in order and do not overlap, and a fault ends them.
fn options(bytes: &[u8]) -> Result<(), String> {
    let (mut end, mut ended) = (0, false);
    for option in Options::new(bytes) {
        ensure!(!ended, "an option behind a fault");
        match option {
            Ok(o) => {
                ensure!(o.at >= end && o.bytes.len() >= 2, "options overlap");
                ensure!(bytes.get(o.at..o.at + o.bytes.len()) == Some(o.bytes), "an option lies elsewhere");
                ensure!(bytes[end..o.at].iter().all(|b| *b == 1), "something was skipped that is no padding");
                end = o.at + o.bytes.len();
            }
            Err(e) => {
                ensure!(e.fault == Fault::OptionLength && e.offset < bytes.len(), "a fault without a place");
                ended = true;
            }
        }
    }
    Ok(())
}

/// Returns the value, if there is one. The offset of a fault must be in the bytes or at their end.
fn inside<T>(result: Result<T, WireError>, bytes: &[u8]) -> Result<Option<T>, String> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(e) => {
            ensure!(e.offset <= bytes.len(), "{e}, but there are {} bytes", bytes.len());
            Ok(None)
        }
    }
}

/// The parsed values are those of etherparse, and writing them loses nothing.
fn meaning(bytes: &[u8]) -> Result<(), String> {
    let segment = match parse(bytes) {
        Ok(segment) => segment,
        Err(e) => {
            if !oracle::is_tcp(bytes) {
                return inside(Err::<(), _>(e), bytes).map(|_| ());
            }
            // etherparse reads past authentication headers, and takes an IPv6 length of 0 for "all bytes"
            let zero_len = bytes[0] >> 4 == 6 && bytes[4..6] == [0, 0];
            let excused = zero_len || matches!(e.fault, Fault::OptionLength | Fault::Protocol(51));
            ensure!(excused, "we refuse ({e}) what etherparse reads");
            return Ok(());
        }
    };
    oracle::agrees(bytes, &segment)?;
    let mut first = vec![0xee; 3]; // emit appends
    match emit(&segment, &mut first) {
        Ok(()) => {
            let again = parse(&first[3..]).map_err(|e| format!("our own packet: {e}"))?;
            ensure!(again == segment, "{again:?} was {segment:?}");
            let layout = Layout::of(&first[3..]).map_err(|e| e.to_string())?;
            ensure!(layout.sum(&first[3..]).fold() == 0xffff, "our own checksum");
            let mut second = Vec::new();
            ensure!(emit(&again, &mut second).is_ok() && second == first[3..], "emit is no fixpoint");
        }
        Err(e) => {
            ensure!(matches!(e.fault, Fault::OptionSpaceFull | Fault::TooLong), "emit: {e}");
            ensure!(first == [0xee; 3], "a failed emit left something behind");
        }
    }
    Ok(())
}
