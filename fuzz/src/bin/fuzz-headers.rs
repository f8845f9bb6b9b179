//! Fuzzes the header code with random, nearly valid packets until the time is up or something is found.
//!
//! `cargo run --release --bin fuzz-headers -- --seconds 60 [--seed N] [--cases N]`, and for a finding
//! `... -- --reproduce HEX`. Exit status 1 means a finding; its packet is printed as hex and belongs into
//! `crates/wire/corpus` together with the fix.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool talks to its user")]
#![expect(clippy::disallowed_types, clippy::disallowed_methods, reason = "a driver: it ends by the clock")]

#[path = "../../../crates/wire/tests/wire/check.rs"]
mod check;
#[path = "../../../crates/wire/tests/wire/corpus.rs"]
mod corpus;
#[path = "../../../crates/wire/tests/wire/mutate.rs"]
mod mutate;
#[path = "../../../crates/wire/tests/wire/oracle.rs"]
mod oracle;

use mutate::{Random, mutate};
use std::fmt::Write as _;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime};

/// The packet under test, for the panic hook: a release build aborts, so a panic cannot be caught.
static CURRENT: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// Size of the pool of mutated packets that parse; they are mutated further.
const POOL: usize = 512;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| args.iter().position(|a| a == name).and_then(|i| args.get(i + 1));
    std::panic::set_hook(Box::new(|info| {
        let packet = CURRENT.lock().map_or_else(|_| String::new(), |p| hex(&p));
        eprintln!("fuzz-headers: PANIC {info}\nfuzz-headers: reproduce with --reproduce {packet}");
    }));
    if let Some(text) = value("--reproduce") {
        let Some(packet) = corpus::parse_hex(text) else {
            eprintln!("fuzz-headers: --reproduce takes hex digits");
            return ExitCode::from(2);
        };
        return report(try_one(&packet), &packet);
    }
    let seconds = value("--seconds").and_then(|s| s.parse().ok()).unwrap_or(60);
    let seed = value("--seed").and_then(|s| s.parse().ok()).unwrap_or_else(seed_of_now);
    let most = value("--cases").and_then(|s| s.parse().ok()).unwrap_or(u64::MAX);
    run(Duration::from_secs(seconds), most, seed)
}

/// A seed from the clock; it is printed, so a run can be repeated.
fn seed_of_now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(1, |d| d.as_secs())
}

fn run(limit: Duration, most: u64, seed: u64) -> ExitCode {
    println!("fuzz-headers: seed {seed}");
    let committed: Vec<Vec<u8>> = corpus::load().into_iter().map(|(_, bytes)| bytes).collect();
    let mut pool = committed.clone();
    let mut random = Random::new(seed);
    let (start, mut execs, mut read) = (Instant::now(), 0u64, 0u64);
    while execs < most && (execs % 256 != 0 || start.elapsed() < limit) {
        let packet = mutate(&mut random, &pool);
        execs += 1;
        let outcome = try_one(&packet);
        if outcome.is_err() {
            return report(outcome, &packet);
        }
        if bentpipe_wire::parse(&packet).is_ok() {
            read += 1;
            if packet.len() < 2000 && random.below(16) == 0 {
                keep(&mut pool, &committed, packet, &mut random);
            }
        }
    }
    let rate = execs as f64 / start.elapsed().as_secs_f64().max(1e-9);
    println!("fuzz-headers: {execs} execs, {rate:.0}/s, {read} of them readable, 0 findings");
    ExitCode::SUCCESS
}

/// Adds a packet to the pool; the committed seeds always stay.
fn keep(pool: &mut Vec<Vec<u8>>, committed: &[Vec<u8>], packet: Vec<u8>, random: &mut Random) {
    if pool.len() < committed.len() + POOL {
        pool.push(packet);
    } else {
        let at = committed.len() + random.below(POOL);
        pool[at] = packet;
    }
}

fn try_one(packet: &[u8]) -> Result<(), String> {
    if let Ok(mut current) = CURRENT.lock() {
        current.clear();
        current.extend_from_slice(packet);
    }
    check::all(packet)
}

fn report(outcome: Result<(), String>, packet: &[u8]) -> ExitCode {
    match outcome {
        Ok(()) => {
            println!("fuzz-headers: no finding");
            ExitCode::SUCCESS
        }
        Err(text) => {
            eprintln!(
                "fuzz-headers: FINDING {text}\nfuzz-headers: reproduce with --reproduce {}",
                hex(packet)
            );
            ExitCode::FAILURE
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, b| {
        let _ = write!(text, "{b:02x}");
        text
    })
}
