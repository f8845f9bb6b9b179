//! QUIC over the hosts of a [`Chain`]: a stack that is not bentpipe's (picoquic), and single datagrams. Both
//! sides of what is between the hosts are captured.

use crate::Outcome;
use crate::chain::{Chain, SENDER};
use crate::datagrams::{Changes, compare, read};
use crate::passage::Host;
use crate::rig::{Running, wait_for};
use rustix::process::Signal;
use std::fmt;
use std::fs;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(90);
/// Time for what is still on its way, and for tcpdump to write what it has seen.
const LINGER: Duration = Duration::from_millis(500);
/// The port of the host on the LAN.
const PORT: u16 = 4433;
/// Addresses of the host behind the link.
const RECEIVER: [&str; 2] = ["10.55.0.2", "fd55::2"];
/// The file that the client asks for.
const FILE: &str = "file.bin";
/// Longest packet of picoquic, bytes: with the SCONE packet, which picoquic does not count, there is still
/// room for it in IPv6 packets of 1500 bytes.
const LONGEST: u16 = 1400;
/// What picoquic logs before the rate, in bit/s, that a SCONE packet has told it.
const HEARD: &str = "Scone advice received, ";

/// Which IP version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ip {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// Both.
pub const BOTH: [Ip; 2] = [Ip::V4, Ip::V6];

impl Ip {
    /// The addresses of the host on the LAN and of the one behind the link.
    const fn addresses(self) -> [&'static str; 2] {
        [SENDER[self as usize], RECEIVER[self as usize]]
    }
}

impl fmt::Display for Ip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::V4 { "IPv4" } else { "IPv6" })
    }
}

/// Gives each frame one datagram with its own checksum, on the interfaces of both hosts.
pub fn without_offloads(chain: &Chain) -> Outcome<()> {
    [Host::Sender, Host::Receiver].into_iter().try_for_each(|host| {
        let line = format!("ethtool -K {} tx off gso off tso off gro off", chain.interface(host));
        chain.shell(host, &line, LIMIT).map(drop)
    })
}

/// Captures on the interfaces of both hosts.
struct Captures([(PathBuf, Running); 2]);

impl Captures {
    fn start(chain: &Chain) -> Outcome<Self> {
        let start = |host| {
            let file = chain.rig().path(&format!("quic-{host:?}.pcap"));
            let (interface, name) = (chain.interface(host), file.display().to_string());
            let words = ["tcpdump", "-Z", "root", "-i", interface, "-w", &name, "-s", "0", "-B", "32768"];
            let more = ["--time-stamp-precision=nano", "--immediate-mode", "udp", "port"];
            let mut running = chain.start(host, &[&words[..], &more, &[&PORT.to_string()]].concat())?;
            running.wait_for_stderr("listening on")?;
            Ok::<_, String>((file, running))
        };
        Ok(Self([start(Host::Sender)?, start(Host::Receiver)?]))
    }

    fn end(self) -> Outcome<Changes> {
        std::thread::sleep(LINGER);
        let [one, other] = self.0.map(|(file, mut running)| {
            running.signal(Signal::INT);
            running.wait(LIMIT)?;
            read(&file)
        });
        compare(&one?, &other?)
    }
}

/// Sends these payloads from one host to the other over UDP; returns what arrived, and what changed between
/// the interfaces of the hosts.
pub fn send(chain: &Chain, from: Host, ip: Ip, payloads: &[Vec<u8>]) -> Outcome<(Vec<Vec<u8>>, Changes)> {
    let captures = Captures::start(chain)?;
    let [lan, link] = ip.addresses();
    let socket = |host, address: &str, port: u16| {
        chain.at(host, || {
            let socket = UdpSocket::bind((address, port)).map_err(|e| format!("{address} {port}: {e}"))?;
            socket.set_read_timeout(Some(LINGER)).map_err(|e| e.to_string())?;
            Ok(socket)
        })
    };
    let (near, far) = (socket(Host::Sender, lan, PORT)?, socket(Host::Receiver, link, PORT + 1)?);
    let (source, sink, to) =
        if from == Host::Sender { (near, far, (link, PORT + 1)) } else { (far, near, (lan, PORT)) };
    let mut arrived = Vec::new();
    let mut buffer = vec![0; 1 << 16];
    for payload in payloads {
        source.send_to(payload, to).map_err(|e| format!("{to:?}: {e}"))?;
        // one that is lost is missing in the result
        if let Ok(len) = sink.recv(&mut buffer) {
            arrived.push(buffer[..len].to_vec());
        }
    }
    Ok((arrived, captures.end()?))
}

/// A build of picoquic.
#[derive(Debug)]
pub struct Picoquic(PathBuf);

/// Who uses SCONE.
#[derive(Clone, Copy, Debug, Default)]
pub struct Speaks {
    /// The client, behind the link.
    pub client: bool,
    /// The server, on the LAN.
    pub server: bool,
}

/// A download that has ended.
#[derive(Debug)]
pub struct Download {
    /// True if the file arrived with every byte.
    pub is_exact: bool,
    /// The rates, in bit/s, that the client was told, in this order.
    pub client: Vec<u64>,
    /// The same of the server.
    pub server: Vec<u64>,
    /// What changed between the interfaces of the hosts.
    pub changes: Outcome<Changes>,
}

impl Picoquic {
    /// The build in this folder, which holds `picoquicdemo`.
    pub fn of(folder: &Path) -> Outcome<Self> {
        let demo = folder.join("picoquicdemo");
        let demo = demo.canonicalize().map_err(|e| format!("{}: {e}", demo.display()))?;
        Ok(Self(demo))
    }

    /// Downloads so many bytes from the server on the LAN; `midway` runs beside.
    pub fn download(
        &self,
        chain: &Chain,
        ip: Ip,
        speaks: Speaks,
        bytes: u64,
        midway: impl FnOnce() -> Outcome<()>,
    ) -> Outcome<Download> {
        let root = chain.rig().path("quic").display().to_string();
        let demo = self.0.display();
        let scone = |speaks: bool| if speaks { "-5" } else { "" };
        let prepare = format!(
            "rm -rf '{root}'; mkdir -p '{root}/www' '{root}/client' '{root}/server' '{root}/copy'; cd '{root}'
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=bed -keyout key.pem -out cert.pem 2>/dev/null
head -c {bytes} /dev/urandom >www/{FILE}"
        );
        chain.shell(Host::Sender, &prepare, LIMIT)?;
        let captures = Captures::start(chain)?;
        let serve = format!(
            "cd '{root}/server'; exec '{demo}' -1 -p {PORT} -c ../cert.pem -k ../key.pem -w ../www -q . -m {LONGEST} {}",
            scone(speaks.server)
        );
        let server = chain.start(Host::Sender, &["sh", "-c", &serve])?;
        wait_for("picoquic's server", || chain.at(Host::Sender, || Ok(is_bound())))?;
        let fetch = format!(
            "cd '{root}/client'; exec '{demo}' {} -n bed -q . -m {LONGEST} -o ../copy {} {PORT} /{FILE}",
            scone(speaks.client),
            ip.addresses()[0]
        );
        let client = chain.start(Host::Receiver, &["sh", "-c", &fetch])?;
        midway()?;
        client.wait(LIMIT)?.succeeded("picoquic's client")?;
        server.wait(LIMIT)?.succeeded("picoquic's server")?;
        let changes = captures.end();
        let compare = format!("cmp '{root}/www/{FILE}' '{root}/copy/{FILE}'");
        let is_exact = chain.shell(Host::Receiver, &compare, LIMIT).is_ok();
        let [client, server] = ["client", "server"].map(|end| heard(&Path::new(&root).join(end)));
        Ok(Download { is_exact, client: client?, server: server?, changes })
    }
}

/// True if a socket of this namespace has the server's port.
fn is_bound() -> bool {
    let port = format!(":{PORT:04X} ");
    let tables = ["udp", "udp6"].map(|table| fs::read_to_string(format!("/proc/thread-self/net/{table}")));
    tables.into_iter().flatten().any(|table| table.contains(&port))
}

/// The rates that an end was told, from its logs in this folder.
fn heard(folder: &Path) -> Outcome<Vec<u64>> {
    let describe = |e: std::io::Error| format!("{}: {e}", folder.display());
    let mut rates = Vec::new();
    let mut logs = 0;
    for entry in fs::read_dir(folder).map_err(describe)? {
        let path = entry.map_err(describe)?.path();
        if path.extension().is_some_and(|end| end == "qlog") {
            logs += 1;
            rates.extend(rates_in(&fs::read_to_string(&path).map_err(describe)?));
        }
    }
    if logs == 0 { Err(format!("{}: no log of picoquic", folder.display())) } else { Ok(rates) }
}

fn rates_in(log: &str) -> Vec<u64> {
    let rate = |line: &str| line.split(' ').next()?.parse().ok();
    log.split(HEARD).skip(1).filter_map(rate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_from_the_log_of_an_end() {
        let log = "[1,{ \"message\": \"Scone indicator sent\"}],\n\
                   [2,{ \"message\": \"Scone advice received, 19952623 bps.\"}],\n\
                   [3,{ \"message\": \"Scone advice received, 100000 bps.\"}],\n[4,{ \"message\": \"Scone advice received, \"}]";
        assert_eq!(rates_in(log), [19_952_623, 100_000]);
        assert!(rates_in("").is_empty());
    }
}
