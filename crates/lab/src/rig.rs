//! A place to run `bentpipe`: a folder, a user, a network namespace.

use crate::Outcome;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// User id of nobody, who owns nothing.
const NOBODY: u32 = 65534;
/// Interval for checking whether a program has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// Time limit for a program to start.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// Time for a program to end by itself before it is killed.
const GRACE: Duration = Duration::from_secs(10);

/// Who runs the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// The current user.
    CurrentUser,
    /// An unprivileged user: the current one, or nobody if that is root.
    Unprivileged,
}

/// Where programs run. Dropping it removes the folder.
#[derive(Debug)]
pub struct Rig {
    program: PathBuf,
    folder: PathBuf,
    ordinary: bool,
    /// Holds the network namespace that replaces the machine's.
    namespace_holder: Option<Child>,
}

/// True if the process runs as root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Path of a program on PATH.
pub fn find(program: &str) -> Option<PathBuf> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).map(|p| p.join(program)).find(|p| p.is_file())
}

/// True if a program is on PATH.
pub fn has(program: &str) -> bool {
    find(program).is_some()
}

/// Waits until `is_so` returns true; `what` is for messages.
pub fn wait_for(what: &str, mut is_so: impl FnMut() -> Outcome<bool>) -> Outcome<()> {
    let since = Instant::now();
    while !is_so()? {
        if since.elapsed() > START_TIMEOUT {
            return Err(format!("{what}: not within {} s", START_TIMEOUT.as_secs()));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}

/// Waits for the end of a child, at most `limit`; `None` if it still runs.
pub fn ended_within(child: &mut Child, limit: Duration) -> std::io::Result<Option<ExitStatus>> {
    let since = Instant::now();
    loop {
        let status = child.try_wait()?;
        if status.is_some() || since.elapsed() > limit {
            return Ok(status);
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// True if a process has become `sleep`. If `unshare` started it, it is in its new namespaces by then.
pub fn is_asleep(process: u32) -> bool {
    fs::read_to_string(format!("/proc/{process}/comm")).is_ok_and(|name| name.trim() == "sleep")
}

/// Starts a program in a thread that ends with this process: the signal that the program has asked for
/// comes at the end of the thread (prctl(2), `PR_SET_PDEATHSIG`).
fn start(command: Command) -> io::Result<Child> {
    type Order = (Command, Sender<io::Result<Child>>);
    static STARTER: OnceLock<Sender<Order>> = OnceLock::new();
    let starter = STARTER.get_or_init(|| {
        let (orders, taken) = channel::<Order>();
        thread::spawn(move || {
            for (mut command, answer) in taken {
                // who asks waits for the answer
                let _ = answer.send(command.spawn());
            }
        });
        orders
    });
    let (answer, child) = channel();
    let gone = || io::Error::other("the thread that starts programs has ended");
    starter.send((command, answer)).map_err(|_| gone())?;
    child.recv().map_err(|_| gone())?
}

impl Rig {
    /// Creates a folder with a copy of `program` and its scenarios.
    pub fn new(program: &Path, who: Who) -> Outcome<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("bentpipe-lab-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        let mut rig =
            Self { program: folder.join("bin/bentpipe"), folder, ordinary: false, namespace_holder: None };
        rig.create_files(program, who).map_err(|e| format!("{}: {e}", rig.folder.display()))?;
        if is_root() {
            let closed = rig.folder.join("closed");
            // a file that only root may open replaces the device, as on most machines
            let script = match who {
                Who::CurrentUser => "exec sleep infinity".to_owned(),
                Who::Unprivileged => {
                    format!("mount --bind '{}' /dev/net/tun; exec sleep infinity", closed.display())
                }
            };
            let words =
                ["--pdeathsig", "KILL", "--", "unshare", "--net", "--mount", "--", "sh", "-c", &script];
            let mut machine = Command::new("setpriv");
            machine.args(words).stdin(Stdio::null());
            let machine = start(machine).map_err(|e| format!("unshare: {e}"))?;
            let id = rig.namespace_holder.insert(machine).id();
            wait_for("a network namespace for the test (it takes root)", || Ok(is_asleep(id)))?;
            rig.shell("ip link set lo up", GRACE)?;
            rig.ordinary = who == Who::Unprivileged;
        }
        Ok(rig)
    }

    fn create_files(&self, program: &Path, who: Who) -> std::io::Result<()> {
        let scenarios = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
        for sub in ["bin", "scenarios", "home", "run", "tmp"] {
            fs::create_dir_all(self.folder.join(sub))?;
        }
        fs::copy(program, &self.program)?;
        for entry in fs::read_dir(scenarios)? {
            let from = entry?.path();
            if let Some(name) = from.file_name().filter(|_| from.is_file()) {
                fs::copy(&from, self.folder.join("scenarios").join(name))?;
            }
        }
        fs::set_permissions(&self.folder, Permissions::from_mode(0o755))?;
        fs::write(self.folder.join("closed"), "")?;
        fs::set_permissions(self.folder.join("closed"), Permissions::from_mode(0o600))?;
        for own in ["home", "run", "tmp"] {
            let own = self.folder.join(own);
            fs::set_permissions(&own, Permissions::from_mode(0o700))?;
            if who == Who::Unprivileged && is_root() {
                chown(&own, Some(NOBODY), Some(NOBODY))?;
            }
        }
        Ok(())
    }

    /// The folder; `home`, `run` and `tmp` in it belong to the user.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The copy of the program.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// True if programs run without privileges.
    pub fn is_unprivileged(&self) -> bool {
        self.ordinary || !is_root()
    }

    /// The path of a file that the user can write.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join("tmp").join(name)
    }

    /// Writes a file that the user can read; returns its path.
    pub fn file(&self, name: &str, text: &str) -> Outcome<String> {
        let path = self.folder.join(name);
        fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(path.display().to_string())
    }

    /// A command that runs `program` in this rig as its user.
    pub fn command(&self, program: &Path, args: &[&str]) -> Command {
        // it ends with this process, however that ends
        let mut command = Command::new("setpriv");
        // the parent may ignore signals (nohup does), and a shell cannot trap signals ignored at its start
        let words = ["--pdeathsig", "TERM", "--", "env", "--default-signal=HUP,INT,QUIT,TERM,USR1", "--"];
        command.args(words);
        if let Some(machine) = &self.namespace_holder {
            let (id, folder) = (machine.id().to_string(), format!("--chdir={}", self.folder.display()));
            command.args(["nsenter", "--target", &id, "--net", "--mount", "--", "env", &folder, "--"]);
        }
        if self.ordinary {
            let user = NOBODY.to_string();
            // another user loses what was set before
            let words = ["setpriv", "--pdeathsig", "TERM", "--reuid", &user, "--regid", &user];
            command.args(words).args(["--clear-groups", "--"]);
        }
        command.arg(program).args(args).current_dir(&self.folder).stdin(Stdio::null());
        command.env("HOME", self.folder.join("home")).env("TMPDIR", self.folder.join("tmp"));
        command.env("XDG_RUNTIME_DIR", self.folder.join("run")).env("BENTPIPE", &self.program);
        command.env("USER", "lab").env("SHELL", "/bin/sh").env("LC_ALL", "C");
        // a backtrace takes longer than the end of a process that panics
        command.env_remove("RUST_BACKTRACE");
        command.env_remove("BENTPIPE_SESSION").env_remove("BENTPIPE_FAR").env_remove("SUDO_UID");
        command
    }

    /// Starts `bentpipe ARGS`.
    pub fn start(&self, args: &[&str]) -> Outcome<Running> {
        self.spawn(self.command(&self.program, args), &format!("bentpipe {}", args.join(" ")))
    }

    /// Runs `bentpipe ARGS` until it ends.
    pub fn run(&self, args: &[&str], limit: Duration) -> Outcome<ProgramResult> {
        self.start(args)?.wait(limit)
    }

    /// Runs `bentpipe ARGS`, which must succeed; returns its standard output.
    pub fn output(&self, args: &[&str], limit: Duration) -> Outcome<String> {
        Ok(self.run(args, limit)?.succeeded(&args.join(" "))?.out)
    }

    /// Runs a shell script, which must succeed; returns its standard output.
    pub fn shell(&self, script: &str, limit: Duration) -> Outcome<String> {
        Ok(self.run_shell(script, limit)?.succeeded(script)?.out)
    }

    /// Runs a shell script until it ends.
    pub fn run_shell(&self, script: &str, limit: Duration) -> Outcome<ProgramResult> {
        self.spawn(self.command(Path::new("sh"), &["-c", script]), script)?.wait(limit)
    }

    /// Starts a `command` of [`Rig::command`]; `name` is for messages.
    pub fn spawn(&self, mut command: Command, name: &str) -> Outcome<Running> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let paths = ["out", "err"].map(|what| self.folder.join(format!("{what}-{number}")));
        let open = |path: &PathBuf| File::create(path).map_err(|e| format!("{}: {e}", path.display()));
        command.stdout(open(&paths[0])?).stderr(open(&paths[1])?);
        let child = start(command).map_err(|e| format!("{name}: {e}"))?;
        Ok(Running { child, name: name.to_owned(), paths, group: None })
    }

    /// The same for a program that starts others, and ends them when it gets SIGTERM.
    pub fn spawn_group(&self, mut command: Command, name: &str) -> Outcome<Running> {
        command.process_group(0);
        let mut running = self.spawn(command, name)?;
        running.group = Pid::from_raw(running.id() as i32);
        Ok(running)
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if let Some(machine) = &mut self.namespace_holder {
            // it only sleeps
            let _ = machine.kill();
            let _ = machine.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A running program. Dropping it kills it; a group gets SIGTERM and time before that.
#[derive(Debug)]
pub struct Running {
    child: Child,
    name: String,
    paths: [PathBuf; 2],
    /// The process group that ends with it.
    group: Option<Pid>,
}

impl Running {
    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// True if it has ended.
    pub fn has_ended(&mut self) -> Outcome<bool> {
        self.child.try_wait().map(|s| s.is_some()).map_err(|e| format!("{}: {e}", self.name))
    }

    /// Its standard error so far.
    pub fn err(&self) -> String {
        read(&self.paths[1])
    }

    /// Its standard output so far.
    pub fn out(&self) -> String {
        read(&self.paths[0])
    }

    /// Waits until its standard error contains `text`.
    pub fn wait_for_stderr(&mut self, text: &str) -> Outcome<()> {
        wait_for(&format!("{}: {text}", self.name), || {
            if self.has_ended()? {
                return Err(format!("{} has ended: {}", self.name, self.err()));
            }
            Ok(self.err().contains(text))
        })
    }

    /// Sends it a signal if it still runs.
    pub fn signal(&mut self, signal: Signal) {
        if let (Ok(None), Some(pid)) = (self.child.try_wait(), Pid::from_raw(self.child.id() as i32)) {
            let _ = kill_process(pid, signal);
        }
    }

    /// Waits for its end; kills it after `limit`.
    pub fn wait(mut self, limit: Duration) -> Outcome<ProgramResult> {
        let status = ended_within(&mut self.child, limit).map_err(|e| format!("{}: {e}", self.name))?;
        if let Some(status) = status {
            let (out, err) = (self.out(), self.err());
            return Ok(ProgramResult { code: status.code(), signal: status.signal(), out, err });
        }
        self.signal(Signal::TERM);
        // dropping it kills it
        let _ = ended_within(&mut self.child, GRACE);
        Err(format!("{}: did not end within {} s\n{}", self.name, limit.as_secs(), self.err()))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(group) = self.group {
            let _ = kill_process_group(group, Signal::TERM);
            let _ = ended_within(&mut self.child, GRACE);
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        for path in &self.paths {
            let _ = fs::remove_file(path);
        }
    }
}

fn read(path: &Path) -> String {
    fs::read(path).map(|b| String::from_utf8_lossy(&b).into_owned()).unwrap_or_default()
}

/// Result of a program that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramResult {
    /// Its exit code.
    pub code: Option<i32>,
    /// The signal that killed it.
    pub signal: Option<i32>,
    /// Its standard output.
    pub out: String,
    /// Its standard error.
    pub err: String,
}

impl ProgramResult {
    /// Returns itself if the exit code is 0, otherwise an error; `name` is for messages.
    pub fn succeeded(self, name: &str) -> Outcome<Self> {
        if self.code == Some(0) { Ok(self) } else { Err(format!("{name}: {}", self.describe())) }
    }

    /// Exit status and output, for messages.
    pub fn describe(&self) -> String {
        let killed = || format!("killed by signal {}", self.signal.unwrap_or(0));
        let how = self.code.map_or_else(killed, |code| format!("exit code {code}"));
        format!("{how}: {} {}", tail(&self.err), tail(&self.out))
    }
}

/// The end of a text, short enough for a message.
fn tail(text: &str) -> &str {
    let text = text.trim();
    let from = text.char_indices().rev().nth(600).map_or(0, |(i, _)| i);
    &text[from..]
}

/// Reads a JSON file written by a program and removes it.
pub fn take_json(path: &Path) -> Outcome<Value> {
    let read = json(path);
    let _ = fs::remove_file(path);
    read
}

/// Reads a JSON file written by a program.
pub fn json(path: &Path) -> Outcome<Value> {
    let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    serde_json::from_str(&text).map_err(|e| format!("{}: {e}: {}", path.display(), tail(&text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_run_to_their_end_or_to_their_limit() {
        let rig = Rig::new(Path::new("/bin/sh"), Who::CurrentUser);
        let rig = match rig {
            Ok(rig) => rig,
            Err(why) => return println!("SKIPPED programs_run_to_their_end_or_to_their_limit: {why}"),
        };
        let done = rig.run(&["-c", "echo out; echo err >&2; exit 7"], GRACE).unwrap();
        assert_eq!((done.code, done.out.as_str(), done.err.as_str()), (Some(7), "out\n", "err\n"));
        assert!(rig.run(&["-c", "sleep 20"], Duration::from_millis(50)).is_err());
        let folder = rig.folder().to_owned();
        drop(rig);
        assert!(!folder.exists());
    }

    #[test]
    fn nobody_is_an_ordinary_user_with_a_folder() {
        match Rig::new(Path::new("/bin/sh"), Who::Unprivileged) {
            Ok(rig) => {
                let text =
                    rig.shell("id -u; touch \"$HOME/x\" \"$XDG_RUNTIME_DIR/x\" && echo fine", GRACE).unwrap();
                assert!(!text.starts_with("0\n") && text.ends_with("fine\n"), "{text}");
            }
            Err(why) => println!("SKIPPED nobody_is_an_ordinary_user_with_a_folder: {why}"),
        }
    }
}
