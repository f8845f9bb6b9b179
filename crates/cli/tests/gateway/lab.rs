//! A host, a router and a far host in separate network namespaces. Removed when the test ends.

pub(crate) use ::lab::once::ip;
use bentpipe_os::namespace;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio, id};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{self, Builder};
use std::time::Duration;

/// Indices of the namespaces.
pub(crate) const HOST: usize = 0;
pub(crate) const ROUTER: usize = 1;
pub(crate) const FAR: usize = 2;

/// Timeout for all waits.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Lab {
    nets: [OwnedFd; 3],
    pub(crate) folder: PathBuf,
    /// What runs: `gateway` or `agent`.
    pub(crate) service: &'static str,
    /// The namespace in which it runs.
    pub(crate) seat: usize,
}

impl Lab {
    /// Sets up the lab; prints a line and returns `None` if that is not possible here. `routed`: the far host
    /// has a route back.
    pub(crate) fn new(test: &str, routed: bool) -> Option<Self> {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("gateway-{test}-{}", id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder for the test");
        let place = folder.clone();
        let made = Builder::new().spawn(move || Self::build(place, routed)).expect("a thread").join();
        match made.expect("no panic while making namespaces") {
            Ok(lab) => Some(lab),
            Err(why) => {
                println!("SKIPPED {test}: {why}");
                None
            }
        }
    }

    fn build(folder: PathBuf, routed: bool) -> Result<Self, String> {
        fs::File::options().write(true).open("/dev/net/tun").map_err(|e| format!("/dev/net/tun: {e}"))?;
        let net = || namespace::new_network().map_err(|e| format!("no network namespace: {e}"));
        let lab = Self { nets: [net()?, net()?, net()?], folder, service: "gateway", seat: ROUTER };
        lab.at(ROUTER, || -> Result<(), String> {
            ip("link set lo up")?;
            for (near, far, net) in [("eth1", "a0", HOST), ("eth0", "b0", FAR)] {
                let there = format!("/proc/{}/fd/{}", id(), lab.nets[net].as_raw_fd());
                ip(&format!("link add {near} type veth peer name {far} netns {there}"))?;
                ip(&format!("link set {near} up"))?;
            }
            for (interface, n) in [("eth1", 1), ("eth0", 2)] {
                ip(&format!("addr add 10.77.{n}.1/24 dev {interface}"))?;
                ip(&format!("-6 addr add fd77:{n}::1/64 dev {interface} nodad"))?;
            }
            for name in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
                fs::write(format!("/proc/sys/net/{name}"), "1").map_err(|e| e.to_string())?;
            }
            Ok(())
        })?;
        for (net, interface, n) in [(HOST, "a0", 1), (FAR, "b0", 2)] {
            lab.at(net, || -> Result<(), String> {
                ip("link set lo up")?;
                ip(&format!("link set {interface} up"))?;
                ip(&format!("addr add 10.77.{n}.2/24 dev {interface}"))?;
                ip(&format!("-6 addr add fd77:{n}::2/64 dev {interface} nodad"))?;
                if net == FAR && !routed {
                    return Ok(());
                }
                ip(&format!("route add default via 10.77.{n}.1"))?;
                ip(&format!("-6 route add default via fd77:{n}::1"))
            })?;
        }
        Ok(lab)
    }

    /// Returns a handle to a namespace, for a test's own threads.
    pub(crate) fn net(&self, net: usize) -> OwnedFd {
        self.nets[net].try_clone().expect("a descriptor")
    }

    /// Runs `act` in a namespace.
    pub(crate) fn at<T>(&self, net: usize, act: impl FnOnce() -> T) -> T {
        namespace::in_network(&self.nets[net], act).expect("a namespace we made")
    }

    /// Writes a gateway file to the folder of the test, with `more` at its end. The watch is off.
    pub(crate) fn file(&self, more: &str) -> String {
        self.watched_file("0 s", more)
    }

    /// Writes the same file with a watch of this length.
    pub(crate) fn watched_file(&self, watch: &str, more: &str) -> String {
        let path = self.folder.join("gw.toml");
        let text = format!(
            "schema = 1\n[satellite]\n[deploy]\nkind = \"routed\"\nlan = \"eth1\"\nsatellite = \"eth0\"\nwatch = \"{watch}\"\n{more}"
        );
        fs::write(&path, text).expect("a file");
        path.display().to_string()
    }

    pub(crate) fn run_dir(&self) -> PathBuf {
        self.folder.join("run")
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bentpipe"));
        command.arg(self.service).args(args).arg("--run-dir").arg(self.run_dir());
        command
    }

    /// Runs `bentpipe gateway ARGS` on the router.
    pub(crate) fn gateway(&self, args: &[&str]) -> Output {
        self.at(self.seat, || self.command(args).output().expect("it starts"))
    }

    /// Runs it after `change` has modified the command.
    pub(crate) fn gateway_with(&self, args: &[&str], change: impl FnOnce(&mut Command)) -> Output {
        let mut command = self.command(args);
        change(&mut command);
        self.at(ROUTER, || command.output().expect("it starts"))
    }

    /// Starts a gateway and waits until it has started.
    pub(crate) fn start(&self, file: &str) -> Gateway {
        self.start_as(&["run", file], &[])
    }

    /// Returns the output of a command run under the program `under`.
    pub(crate) fn start_as_output(&self, args: &[&str], under: &[&str]) -> String {
        let inner = self.command(args);
        let mut command = Command::new(under[0]);
        command.args(&under[1..]).arg(inner.get_program()).args(inner.get_args());
        out(&self.at(ROUTER, || command.output().expect("it starts")))
    }

    /// Starts a gateway with these arguments under the program `under`, if any, and waits until it runs.
    pub(crate) fn start_as(&self, args: &[&str], under: &[&str]) -> Gateway {
        let mut command = self.command(args);
        if let [program, words @ ..] = under {
            let inner = command;
            command = Command::new(program);
            command.args(words).arg(inner.get_program()).args(inner.get_args());
        }
        command.stdin(Stdio::null()).stderr(Stdio::piped());
        let mut child = self.at(self.seat, || command.spawn().expect("it starts"));
        let (sender, log) = channel();
        let said = BufReader::new(child.stderr.take().expect("its standard error"));
        let reader = move || {
            for line in said.lines() {
                let _ = sender.send(line.expect("its log"));
            }
        };
        Builder::new().spawn(reader).expect("a thread");
        let mut gateway = Gateway { child, log, lines: String::new() };
        gateway.wait_for("event=\"started\"");
        gateway
    }

    /// Returns everything on the router that a gateway could change.
    pub(crate) fn traces(&self) -> String {
        let mut found = String::new();
        wait_until("the links have a carrier", || {
            found = self.traces_now();
            !found.contains("NO-CARRIER")
        });
        found
    }

    fn traces_now(&self) -> String {
        self.at(self.seat, || {
            let run = |program: &str, args: &str| {
                let output = Command::new(program).args(args.split(' ')).output().expect("it runs");
                let text = String::from_utf8_lossy(&output.stdout).into_owned();
                // the kernel adds these itself some time later
                let lasting = text.lines().filter(|l| !l.contains("fe80") && !l.starts_with("anycast"));
                lasting.collect::<Vec<_>>().join("\n")
            };
            let liberal = fs::read_to_string("/proc/sys/net/netfilter/nf_conntrack_tcp_be_liberal");
            [
                run("nft", "-s list ruleset"),
                run("ip", "rule show"),
                run("ip", "-6 rule show"),
                run("ip", "-br link show"),
                run("ip", "route show table all"),
                liberal.unwrap_or_default(),
                format!("{}", self.run_dir().exists()),
            ]
            .join("\n--\n")
        })
    }

    /// Opens a connection from the host to an echo server on the far host.
    pub(crate) fn connect(&self, v6: bool) -> TcpStream {
        self.connect_to(if v6 { "fd77:2::2" } else { "10.77.2.2" })
    }

    /// Opens a connection to an echo server on an address of the far host.
    pub(crate) fn connect_to(&self, address: &str) -> TcpStream {
        let address: IpAddr = address.parse().expect("an address");
        let listener = self.at(FAR, || TcpListener::bind(SocketAddr::new(address, 0))).expect("a listener");
        let to = listener.local_addr().expect("an address");
        let answer = move || {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut buffer = vec![0; 1 << 16];
            while let Ok(n @ 1..) = stream.read(&mut buffer) {
                if stream.write_all(&buffer[..n]).is_err() {
                    return;
                }
            }
        };
        Builder::new().spawn(answer).expect("a thread");
        let stream = self.at(HOST, || TcpStream::connect_timeout(&to, PATIENCE)).expect("a way through");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
        stream
    }

    pub(crate) fn ping(&self, v6: bool) -> bool {
        let address = if v6 { "fd77:2::2" } else { "10.77.2.2" };
        let args = ["-c", "2", "-i", "0.1", "-W", "5", address];
        self.at(HOST, || Command::new("ping").args(args).output()).is_ok_and(|o| o.status.success())
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

pub(crate) struct Gateway {
    child: Child,
    /// Its log lines, until it has ended.
    log: Receiver<String>,
    pub(crate) lines: String,
}

impl Gateway {
    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a process")
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.pid()).expect("a process");
        kill_process(pid, signal).expect("it is there");
    }

    /// Reads the log up to a line that contains `word`.
    pub(crate) fn wait_for(&mut self, word: &str) {
        while !self.lines.contains(word) {
            let line = self.log.recv_timeout(PATIENCE);
            self.note(&line.unwrap_or_else(|why| panic!("no {word:?}, {why}:\n{}", self.lines)));
        }
    }

    fn note(&mut self, line: &str) {
        self.lines += line;
        self.lines.push('\n');
    }

    /// Sends a signal and waits for the end; returns exit status and log.
    pub(crate) fn end(self, signal: Signal) -> (Option<i32>, String) {
        self.signal(signal);
        self.wait()
    }

    /// Waits for the end; returns exit status and log.
    pub(crate) fn wait(mut self) -> (Option<i32>, String) {
        loop {
            match self.log.recv_timeout(PATIENCE) {
                Ok(line) => self.note(&line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(why) => panic!("it does not end, {why}:\n{}", self.lines),
            }
        }
        let status = self.child.wait().expect("it ends");
        (status.code(), core::mem::take(&mut self.lines))
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // it may have ended already
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends `bytes` bytes and checks that the same come back.
pub(crate) fn echo(stream: &mut TcpStream, bytes: usize) {
    let wanted: Vec<u8> = (0..bytes).map(|i| (i * 7 % 251) as u8).collect();
    let mut writer = stream.try_clone().expect("a second handle");
    let sent = wanted.clone();
    let sender = Builder::new().spawn(move || writer.write_all(&sent)).expect("a thread");
    let mut got = vec![0; bytes];
    stream.read_exact(&mut got).expect("everything comes back");
    sender.join().expect("no panic").expect("everything is sent");
    assert!(got == wanted, "bytes changed on the way");
}

/// Waits until a condition is true.
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    const STEP: Duration = Duration::from_millis(20);
    for _ in 0..PATIENCE.as_millis() / STEP.as_millis() {
        if is_so() {
            return;
        }
        thread::park_timeout(STEP);
    }
    panic!("{what}: not in time");
}

pub(crate) fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns the text of a file; empty if it cannot be read.
pub(crate) fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}
