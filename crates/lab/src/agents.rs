//! Host agents, and a gateway as flow router, on the hosts of a [`Chain`].

use crate::Outcome;
use crate::chain::{Chain, kill};
use crate::passage::Host;
use crate::rig::{Running, wait_for};
use crate::scenario::OneLink;
use rustix::process::Signal;
use serde_json::Value;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(20);

/// Rules of an agent: it takes connections to these ports, whoever opens them.
pub const SIGNALS: &str = "[[rules]]\nport = \"5300-5399\"\n";
/// Ports in them, and the same number of ports whose connections pass.
pub const PORT: u16 = 5300;
/// The first port that passes.
pub const PLAIN_PORT: u16 = 5500;

/// How an agent acts for its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// It ends the host's connections, and goes on with its own.
    Split,
    /// It signals in the packets of the host's TCP. The program must be built with the feature `bpf`.
    Kernel,
}

/// The scenario of a link with a flow router before the direction to the receiver.
pub fn scenario(link: &OneLink<'_>, utilisation: f64) -> String {
    format!(
        "{}\n[[flow_routers]]\nname = \"edge\"\nlink = \"link\"\nutilisation = {utilisation:?}\n",
        link.toml()
    )
}

/// A service of bentpipe on a host. Dropping it kills it.
#[derive(Debug)]
pub struct Service<'a> {
    chain: &'a Chain,
    host: Host,
    kind: &'static str,
    file: String,
    running: Running,
}

impl<'a> Service<'a> {
    /// Starts an agent of this method on a host with these rules.
    pub fn agent(chain: &'a Chain, host: Host, method: Method, rules: &str) -> Outcome<Self> {
        let interface = chain.interface(host);
        let method = if method == Method::Kernel { "kernel" } else { "split" };
        let text = format!(
            "schema = 1\nmethod = \"{method}\"\n[deploy]\nkind = \"host\"\nnetwork = \"{interface}\"\ndrain = \"1 s\"\n{rules}"
        );
        Self::start(chain, host, "agent", &text)
    }

    /// Starts a gateway on the router that is only a flow router, and divides `rate` towards the receiver.
    pub fn router(chain: &'a Chain, rate: &str) -> Outcome<Self> {
        Self::gateway(chain, &divides(rate))
    }

    /// Starts a gateway on the router that is only a flow router, with these keys in `[rate]`.
    pub fn gateway(chain: &'a Chain, keys: &str) -> Outcome<Self> {
        Self::start(chain, Host::Router, "gateway", &gateway_file(keys))
    }

    fn start(chain: &'a Chain, host: Host, kind: &'static str, text: &str) -> Outcome<Self> {
        let file = chain.rig().file(&format!("{kind}-{host:?}.toml"), text)?;
        let running = begin(chain, host, kind, &["run", &file])?;
        let mut service = Self { chain, host, kind, file, running };
        service.wait()?;
        Ok(service)
    }

    fn wait(&mut self) -> Outcome<()> {
        self.running.wait_for_stderr("event=\"started\"")
    }

    /// Its status.
    pub fn status(&self) -> Outcome<Value> {
        let words = ["status", "--json"];
        let done = begin(self.chain, self.host, self.kind, &words)?.wait(LIMIT)?;
        serde_json::from_str(&done.out).map_err(|_| format!("{} status: {}", self.kind, done.describe()))
    }

    /// States of its connections towards the network, such as `granted`.
    pub fn states(&self) -> Outcome<Vec<String>> {
        let status = self.status()?;
        let flows = status["flows"].as_array().into_iter().flatten();
        Ok(flows.map(|flow| flow["rate"].as_str().unwrap_or("none").to_owned()).collect())
    }

    /// Gives the flow router of [`Service::router`] another rate to divide, while it runs.
    pub fn reload(chain: &Chain, rate: &str) -> Outcome<()> {
        Self::reload_gateway(chain, &divides(rate))
    }

    /// Gives [`Service::gateway`] other keys while it runs.
    pub fn reload_gateway(chain: &Chain, keys: &str) -> Outcome<()> {
        chain.rig().file("gateway-Router.toml", &gateway_file(keys))?;
        begin(chain, Host::Router, "gateway", &["reload"])?.wait(LIMIT)?.succeeded("reload").map(drop)
    }

    /// Kills it.
    pub fn kill(&mut self) -> Outcome<()> {
        kill(&mut self.running)
    }

    /// Starts it again after it was killed.
    pub fn restart(&mut self) -> Outcome<()> {
        // it waits for the watcher of an agent, which stays for some seconds for ends that answer late
        self.running = begin(self.chain, self.host, self.kind, &["run", &self.file])?;
        self.wait()
    }
}

impl Drop for Service<'_> {
    fn drop(&mut self) {
        // one that is killed leaves a watcher behind for some seconds
        self.running.signal(Signal::TERM);
        let _ = wait_for("the end of a service", || self.running.has_ended());
    }
}

fn divides(rate: &str) -> String {
    format!("encodings = [\"tia-1039\"]\nrate = \"{rate}\"\n")
}

fn gateway_file(keys: &str) -> String {
    format!(
        "schema = 1\n[satellite]\n[deploy]\nkind = \"routed\"\nlan = \"lan0\"\nsatellite = \"bent0\"\nwatch = \"0 s\"\n[policy]\notherwise = \"pass\"\n[rate]\n{keys}"
    )
}

fn begin(chain: &Chain, host: Host, kind: &str, words: &[&str]) -> Outcome<Running> {
    let program = chain.rig().program().display().to_string();
    let folder = chain.rig().path(&format!("{kind}-{host:?}")).display().to_string();
    chain.start(host, &[&[&*program, kind], words, &["--run-dir", &folder]].concat())
}
