//! Do the packet scripts notice what they say they notice?
//!
//! Each script in `crates/tcp/tests/scripts` names a file of the engine and a mutant of it, as `cargo mutants --list` (of crates.io) names it. Here a copy of the engine
//! is made in `target/mutants` in which every mutant can be switched on by a number (see `switch.rs`), built once, and the scripts are played against one mutant after
//! the other. A script that holds although its mutant is on, or whose mutant is not there any more, is a miss.

mod switch;

use crate::metadata::root;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use switch::Mutant;

/// Seconds that all scripts may take with one mutant.
const PATIENCE: &str = "20";

/// A script: its name, the file it guards, and its mutant.
struct Script {
    name: String,
    path: PathBuf,
    guards: String,
    mutant: String,
}

/// The scripts that fail with a mutant, and whether the engine panicked; `None` where it never came to an end.
type Failing = Option<BTreeMap<String, bool>>;
type Caught = BTreeMap<usize, Failing>;

/// `cargo xtask mutants [--find [FILE]..]`.
pub(crate) fn command(args: &[String]) -> Result<(), String> {
    let find = match args {
        [] => None,
        [first, files @ ..] if first == "--find" => Some(files),
        _ => return Err("usage: cargo xtask mutants [--find [FILE]..]".to_owned()),
    };
    let scripts = scripts()?;
    let mutants = listed(&scripts)?;
    let (program, left) = build(&mutants)?;
    let (sound, all) = play(&program, None);
    if !sound.as_ref().is_some_and(BTreeMap::is_empty) {
        return Err(format!("the scripts do not hold without a mutant: {sound:?} {all}"));
    }
    if let Some(files) = find {
        let wanted = |m: &&Mutant| left.contains(&m.number) && (files.is_empty() || files.contains(&m.file));
        let caught: Caught =
            mutants.iter().filter(wanted).map(|m| (m.number, play(&program, Some(m.number)).0)).collect();
        return write(&scripts, &mutants, &caught);
    }
    let mut misses = 0;
    for script in &scripts {
        let mutant = mutants.iter().find(|m| m.file == script.guards && m.name == script.mutant);
        let verdict = match mutant {
            None => Some("cargo-mutants lists no such mutant"),
            Some(m) if !left.contains(&m.number) => {
                Some("the mutant does not compile, or cannot be switched")
            }
            Some(m) => match play(&program, Some(m.number)).0 {
                Some(failing) if failing.contains_key(&script.name) => None,
                Some(_) => Some("it holds although the mutant is on"),
                None => Some("with its mutant the engine never comes to an end"),
            },
        };
        if let Some(why) = verdict {
            misses += 1;
            println!("MISS {}: {}: {}: {why}", script.name, script.guards, script.mutant);
        }
    }
    let figure = format!("{} of {} scripts notice their mutants", scripts.len() - misses, scripts.len());
    if misses == 0 {
        println!("{figure}");
        return Ok(());
    }
    Err(figure)
}

fn scripts() -> Result<Vec<Script>, String> {
    let folder = root().join("crates/tcp/tests/scripts");
    let mut scripts = Vec::new();
    for topic in entries(&folder)?.into_iter().filter(|p| p.is_dir()) {
        for path in entries(&topic)?.into_iter().filter(|p| p.extension().is_some_and(|e| e == "tcp")) {
            let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
            let value = |key: &str| {
                let line = text.lines().take_while(|l| !l.is_empty()).find_map(|l| l.strip_prefix(key));
                line.map(|l| l.trim_start_matches(':').trim().to_owned()).unwrap_or_default()
            };
            let name = path.strip_prefix(&folder).unwrap_or(&path).to_string_lossy().into_owned();
            scripts.push(Script { name, guards: value("guards"), mutant: value("mutant"), path });
        }
    }
    Ok(scripts)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let read = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut paths: Vec<_> = read.filter_map(Result::ok).map(|e| e.path()).collect();
    paths.sort();
    Ok(paths)
}

/// The mutants of all files that scripts guard, numbered from 1.
fn listed(scripts: &[Script]) -> Result<Vec<Mutant>, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut list = Command::new(cargo);
    list.args(["mutants", "--list", "--json", "--package", "bentpipe-tcp"]).current_dir(root());
    let files: BTreeSet<_> = scripts.iter().map(|s| s.guards.as_str()).collect();
    for file in &files {
        list.args(["--file", &format!("crates/tcp/src/{file}")]);
    }
    let done = list.output().map_err(|e| e.to_string())?;
    let hint = "cargo-mutants is not there: cargo install --locked cargo-mutants";
    let json: serde_json::Value = serde_json::from_slice(&done.stdout).map_err(|_| hint.to_owned())?;
    let mut seen: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut mutants = Vec::new();
    for (i, m) in json.as_array().into_iter().flatten().enumerate() {
        let text = |v: &serde_json::Value| v.as_str().unwrap_or_default().to_owned();
        let file = text(&m["file"]).trim_start_matches("crates/tcp/src/").to_owned();
        let name = text(&m["name"]).splitn(4, ':').last().unwrap_or_default().trim().to_owned();
        let count = seen.entry((file.clone(), name.clone())).or_default();
        *count += 1;
        let name = if *count > 1 { format!("{name} #{count}") } else { name };
        let place = |key: &str| m["span"]["start"][key].as_u64().unwrap_or_default() as usize;
        let at = proc_macro2::LineColumn { line: place("line"), column: place("column").saturating_sub(1) };
        let (genre, replacement) = (text(&m["genre"]), text(&m["replacement"]));
        mutants.push(Mutant { number: i + 1, name, file, genre, replacement, at });
    }
    Ok(mutants)
}

/// What answers `crate::mutant()` in the copy.
const CHOICE: &str = "
pub(crate) fn mutant() -> u32 {
    static CHOSEN: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    *CHOSEN.get_or_init(|| std::env::var(\"BENTPIPE_MUTANT\").ok().and_then(|v| v.parse().ok()).unwrap_or(0))
}
";

/// Builds the copy; the program that plays the scripts, and the mutants that are in it.
fn build(mutants: &[Mutant]) -> Result<(PathBuf, BTreeSet<usize>), String> {
    let copy = root().join("target/mutants");
    for part in ["crates/base", "crates/tcp"] {
        mirror(&root().join(part), &copy.join(part))?;
    }
    let manifest = fs::read_to_string(root().join("Cargo.toml")).map_err(|e| e.to_string())?;
    let members = r#"members = ["crates/*", "xtask"]"#;
    let manifest = manifest.replace(members, r#"members = ["crates/base", "crates/tcp"]"#);
    let manifest =
        manifest.replace("[profile.dev.package.bentpipe-scenario]", "[profile.dev.package.bentpipe-tcp]");
    save(&copy.join("Cargo.toml"), &manifest)?;
    let lock = fs::read_to_string(root().join("Cargo.lock")).map_err(|e| e.to_string())?;
    if !copy.join("Cargo.lock").exists() {
        save(&copy.join("Cargo.lock"), &lock)?;
    }
    let mut left: BTreeSet<usize> = mutants.iter().map(|m| m.number).collect();
    let mut last = "check";
    loop {
        switch_all(&copy, mutants, &left)?;
        match compile(&copy, last)? {
            Ok(_) if last == "check" => last = "test",
            Ok(program) => return Ok((program, present(&copy, mutants, &left)?)),
            Err(wrong) => {
                let before = left.len();
                left.retain(|n| !wrong.contains(n));
                println!("{} mutants do not compile", before - left.len());
                if left.len() == before {
                    return Err("the copy does not compile, and no mutant is to blame".to_owned());
                }
            }
        }
    }
}

/// Copies what differs, so that cargo builds no more than it must.
fn mirror(from: &Path, to: &Path) -> Result<(), String> {
    fs::create_dir_all(to).map_err(|e| format!("{}: {e}", to.display()))?;
    let there: BTreeSet<_> =
        entries(from)?.iter().filter_map(|p| p.file_name().map(Into::into)).collect::<BTreeSet<PathBuf>>();
    for old in entries(to)?.iter().filter(|p| p.file_name().is_none_or(|n| !there.contains(Path::new(n)))) {
        let gone = if old.is_dir() { fs::remove_dir_all(old) } else { fs::remove_file(old) };
        gone.map_err(|e| format!("{}: {e}", old.display()))?;
    }
    for path in entries(from)? {
        let target = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            mirror(&path, &target)?;
        } else {
            let text = fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))?;
            save_bytes(&target, &text)?;
        }
    }
    Ok(())
}

fn save(path: &Path, text: &str) -> Result<(), String> {
    save_bytes(path, text.as_bytes())
}

fn save_bytes(path: &Path, bytes: &[u8]) -> Result<(), String> {
    if fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    fs::write(path, bytes).map_err(|e| format!("{}: {e}", path.display()))
}

/// Files whose `const fn` constants of the crate need.
const CONSTANT: [&str; 2] = ["scheme.rs", "cc/law.rs"];

fn switch_all(copy: &Path, mutants: &[Mutant], left: &BTreeSet<usize>) -> Result<(), String> {
    let source = root().join("crates/tcp/src");
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for path in entries(&source.join(&folder))? {
            let inner = folder.join(path.file_name().unwrap_or_default());
            let name = inner.to_string_lossy().into_owned();
            if path.is_dir() {
                folders.push(inner);
                continue;
            }
            let own: Vec<_> = mutants.iter().filter(|m| m.file == name && left.contains(&m.number)).collect();
            let text = fs::read_to_string(&path).map_err(|e| format!("{name}: {e}"))?;
            let constant = CONSTANT.contains(&name.as_str());
            let mut text = if constant {
                text
            } else {
                switch::switchable(&text, &own).map_err(|e| format!("{name}: {e}"))?
            };
            if name == "lib.rs" {
                text += CHOICE;
            }
            save(&copy.join("crates/tcp/src").join(inner), &text)?;
        }
    }
    Ok(())
}

/// The program, or the mutants that are no Rust.
fn compile(copy: &Path, verb: &str) -> Result<Result<PathBuf, BTreeSet<usize>>, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args([verb, "--message-format=json", "--package", "bentpipe-tcp"]);
    match verb {
        "test" => build.args(["--no-run", "--test", "scripts"]),
        _ => build.arg("--lib"),
    };
    // a folder of its own: cargo takes packages at the same place in two workspaces for one
    build.env("CARGO_TARGET_DIR", copy.join("target")).env_remove("CARGO_MANIFEST_DIR").current_dir(copy);
    let done = build.output().map_err(|e| e.to_string())?;
    let (mut program, mut wrong) = (None, BTreeSet::new());
    for line in String::from_utf8_lossy(&done.stdout).lines() {
        let Ok(said) = serde_json::from_str::<serde_json::Value>(line) else { continue };
        if let Some(path) = said["executable"].as_str().filter(|_| said["target"]["name"] == "scripts") {
            program = Some(PathBuf::from(path));
        }
        if said["message"]["level"] == "error" {
            let found = blame(copy, &said["message"]["spans"])?;
            if found.is_empty() && said["message"]["spans"].as_array().is_some_and(|s| !s.is_empty()) {
                println!("{}", said["message"]["rendered"].as_str().unwrap_or_default());
            }
            wrong.extend(found);
        }
    }
    match wrong {
        _ if done.status.success() => Ok(Ok(program.unwrap_or_default())),
        wrong if wrong.is_empty() => Err(String::from_utf8_lossy(&done.stderr).into_owned()),
        wrong => Ok(Err(wrong)),
    }
}

fn blame(copy: &Path, spans: &serde_json::Value) -> Result<BTreeSet<usize>, String> {
    let mut wrong = BTreeSet::new();
    for span in spans.as_array().into_iter().flatten().filter(|s| s["is_primary"] == true) {
        let file = copy.join(span["file_name"].as_str().unwrap_or_default());
        let text = fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        let place = |key: &str| span[key].as_u64().unwrap_or(1) as usize;
        let lines: Vec<_> = text.lines().skip(place("line_start") - 1).collect();
        match switch::mutant_at(lines.first().unwrap_or(&""), place("column_start")) {
            Some(number) => _ = wrong.insert(number),
            None => wrong.extend(switch::arms_of(&lines)),
        }
    }
    Ok(wrong)
}

/// The mutants that the copy holds: some stand where nothing can be switched.
fn present(copy: &Path, mutants: &[Mutant], left: &BTreeSet<usize>) -> Result<BTreeSet<usize>, String> {
    let mut present = BTreeSet::new();
    for file in mutants.iter().map(|m| &m.file).collect::<BTreeSet<_>>() {
        let text = fs::read_to_string(copy.join("crates/tcp/src").join(file)).map_err(|e| e.to_string())?;
        let own = mutants.iter().filter(|m| m.file == *file && left.contains(&m.number));
        present.extend(own.filter(|m| text.contains(&format!(" {}_u32", m.number))).map(|m| m.number));
    }
    Ok(present)
}

/// Plays all scripts with a mutant; those that fail, and the last line that was printed.
fn play(program: &Path, mutant: Option<usize>) -> (Failing, String) {
    let mut run = Command::new("timeout");
    run.arg(PATIENCE).arg(program).args(["--nocapture", "--test-threads=1"]);
    run.env("BENTPIPE_MUTANT", mutant.unwrap_or(0).to_string()).env("RUST_BACKTRACE", "0");
    let Ok(done) = run.output() else { return (None, "timeout(1) is missing".to_owned()) };
    if done.status.code().is_none_or(|code| code == 124) {
        return (None, "it took too long".to_owned());
    }
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    let mut failing = BTreeMap::new();
    for (name, fault) in text.lines().filter_map(|l| l.split_once("FAULT ")?.1.split_once(".tcp")) {
        *failing.entry(format!("{name}.tcp")).or_default() |= fault.ends_with("the engine panicked");
    }
    (Some(failing), text.lines().last().unwrap_or_default().to_owned())
}

/// Writes into each script the mutant of its file that the fewest others notice.
fn write(scripts: &[Script], mutants: &[Mutant], caught: &Caught) -> Result<(), String> {
    let mut used: BTreeMap<usize, usize> = BTreeMap::new();
    let mut nothing = 0;
    for script in scripts {
        let own = mutants.iter().filter(|m| m.file == script.guards);
        let best = own
            .filter_map(|m| Some((m, caught.get(&m.number)?.as_ref()?)))
            .filter_map(|(m, failing)| Some((m, failing, *failing.get(&script.name)?)))
            .min_by_key(|(m, failing, panicked)| {
                let taken = used.get(&m.number).copied().unwrap_or_default();
                (*panicked, failing.len() + 3 * taken, m.genre == "FnValue", m.number)
            });
        let Some((best, failing, _)) = best else {
            if caught.keys().any(|n| mutants.iter().any(|m| m.number == *n && m.file == script.guards)) {
                nothing += 1;
                println!("NOTHING {}: it notices no mutant of {}", script.name, script.guards);
            }
            continue;
        };
        *used.entry(best.number).or_default() += 1;
        println!("{}: {} ({} scripts notice it)", script.name, best.name, failing.len());
        let text = fs::read_to_string(&script.path).map_err(|e| e.to_string())?;
        save(
            &script.path,
            &text.replacen(&format!("mutant: {}", script.mutant), &format!("mutant: {}", best.name), 1),
        )?;
    }
    let never = caught.values().filter(|c| c.is_none()).count();
    let unseen = caught.values().flatten().filter(|f| f.is_empty()).count();
    println!("{} mutants: {unseen} are noticed by no script, {never} never come to an end", caught.len());
    if nothing == 0 {
        Ok(())
    } else {
        Err(format!("{nothing} scripts notice no mutant of the file they guard"))
    }
}
