//! `pages`: checks the pages that bentpipe writes in a real browser: narrow and wide, light and dark, without
//! scripts, with them, and printed.
//!
//! Faults are: texts that overlap or are cut off, pages wider than the window, too little contrast, axes
//! without a unit; and pictures that do not show values where one points, do not zoom, or do not hide a
//! curve. With `--shots DIR` it keeps a screenshot of every view.

use crate::item::{Item, Verdict};
use crate::{Outcome, bench, metadata, program};
use lab::once::output;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
const SCRIPT: &str = include_str!("check.js");
const USE: &str = include_str!("use.js");
/// Lets timers of scripts run before the page is read, in milliseconds.
const PATIENCE: &str = "--virtual-time-budget=20000";
/// Options that keep a browser from using the network at start.
const QUIET: &str = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
    --disable-background-networking --disable-component-update --disable-sync";
/// Widths of a phone and of a desktop.
const WIDTHS: [u32; 2] = [400, 1400];
/// Width of a sheet between its margins.
const PAPER: u32 = 700;

/// Begins the name of a page made before, which stands for its folder.
const BEFORE: char = '@';
/// The pages to make: folder name, file, and the command that writes it.
const RUNS: [(&str, &str, &[&str]); 9] = [
    ("faded", "report.html", &["sim", "scenarios/faded.toml", "--set", "ber=1e-7"]),
    ("fade-2h", "report.html", &["sim", "scenarios/fade-2h.toml"]),
    ("sharing", "report.html", &["sim", "scenarios/sharing.toml", "--set", "duration=60 s"]),
    ("rate", "report.html", &["sim", "scenarios/rate-transfer.toml"]),
    ("leo", "report.html", &["sim", "scenarios/leo.toml"]),
    (
        "many",
        "report.html",
        &["sim", "scenarios/sharing.toml", "--set", "flows=12", "--set", "duration=40 s"],
    ),
    ("show", "show.html", &["show", "@faded", "@sharing", "@many"]),
    ("sweep", "report.html", &["sweep", "scenarios/faded.toml", "--seeds", "5"]),
    ("papers", "index.html", &["papers", "002/window", "004/table-2", "003/figure-7"]),
];

/// A page with every known fault, to test the check itself.
const BAD: &str = "<!doctype html><meta charset=utf-8><style>:root{color-scheme:light dark}</style><p style='width:3000px'>wide</p>\
    <p style='color:#888;background:#999'>faint</p><svg width=300 height=100><text x=10 y=50>one text</text><text x=20 y=52>another</text>\
    <text x=280 y=20>cut off here</text><text x=10 y=90 font-size=4>tiny</text><text x=100 y=90 fill=#777 style='fill:#808080'>.</text>\
    <text class=axis-label x=150 y=70>bare</text></svg>";
/// The faults that must be found there.
const KNOWN: &str = "wider than the window, has no title, texts overlap, is cut off, less than 8 px, hard to read, has no unit";

pub(crate) fn command(args: &[String]) -> Outcome {
    let shots = match args {
        [] => None,
        [option, folder] if option == "--shots" => Some(PathBuf::from(folder)),
        _ => return Err("pages: only --shots DIR is an option".to_owned()),
    };
    let item = item(shots.as_deref())?;
    println!("{item}");
    if item.verdict == Verdict::Miss { Err("pages: a page has faults".to_owned()) } else { Ok(()) }
}

/// The check as an item of a result list.
pub(crate) fn item(shots: Option<&Path>) -> Result<Item, String> {
    let what = "pages in a browser: 400 and 1400 px, light, dark and printed; hover, zoom, hide";
    let browser = match program::find(&BROWSERS, "chromium") {
        Ok(path) => path,
        Err(reason) => return Ok(Item::new(what, reason, Verdict::Skipped)),
    };
    let folder = std::env::temp_dir().join(format!("bentpipe-pages-{}", std::process::id()));
    let looked = look_at_all(&browser, &folder, shots);
    let _ = fs::remove_dir_all(&folder);
    let (views, texts, faults) = looked?;
    for fault in &faults {
        println!("  {fault}");
    }
    let figure = format!("{views} views, {texts} texts in pictures, {} faults", faults.len());
    Ok(Item::new(what, figure, faults.is_empty() && views > 0 && texts > 0))
}

fn look_at_all(browser: &Path, folder: &Path, shots: Option<&Path>) -> Outcome<(usize, u64, Vec<String>)> {
    let root = metadata::root();
    let bentpipe = bench::build("bentpipe")?;
    fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let (mut views, mut texts, mut faults) = (0, 0, undetected_faults(browser, folder)?);
    for (name, file, args) in RUNS {
        let out = folder.join(name);
        let mut command = Command::new(&bentpipe);
        let folder_of = |arg: &&str| {
            arg.strip_prefix(BEFORE).map_or_else(|| PathBuf::from(arg), |name| folder.join(name))
        };
        command.args(args.iter().map(folder_of)).arg("--out").arg(&out).current_dir(&root);
        output(&format!("bentpipe {}", args.join(" ")), &mut command)?;
        let page = fs::read_to_string(out.join(file)).map_err(|e| format!("{name}: {e}"))?;
        let screens = WIDTHS.into_iter().flat_map(|width| [(width, Mode::Still), (width, Mode::Live)]);
        for (width, mode) in screens.chain([(PAPER, Mode::Printed)]) {
            for dark in [false, true] {
                let view = View { browser, folder, name, width, dark, mode, shots };
                let seen = view.look(&page)?;
                views += 1;
                texts += seen["texts"].as_u64().unwrap_or(0);
                faults.extend(view.faults(&seen, page.contains("class=\"live\"")));
            }
        }
    }
    Ok((views, texts, faults))
}

/// Faults of the bad page that the check does not find.
fn undetected_faults(browser: &Path, folder: &Path) -> Result<Vec<String>, String> {
    let mode = Mode::Still;
    let view = View { browser, folder, name: "bad page", width: 400, dark: false, mode, shots: None };
    let found = view.look(BAD)?["faults"].to_string();
    let missed = KNOWN.split(", ").filter(|k| !found.contains(k));
    Ok(missed.map(|k| format!("the check is blind: `{k}` was not found on the bad page: {found}")).collect())
}

/// How a page is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Without scripts.
    Still,
    /// With scripts, after use by a script: pointing, zooming, hiding.
    Live,
    /// As on paper.
    Printed,
}

impl Mode {
    const fn word(self) -> &'static str {
        match self {
            Self::Still => "still",
            Self::Live => "live",
            Self::Printed => "printed",
        }
    }
}

/// One page with a width and a colour scheme.
struct View<'a> {
    browser: &'a Path,
    folder: &'a Path,
    name: &'a str,
    width: u32,
    dark: bool,
    mode: Mode,
    shots: Option<&'a Path>,
}

impl View<'_> {
    /// The faults that were seen. `reacts` is true for pages with pictures that react.
    fn faults(&self, seen: &Value, reacts: bool) -> Vec<String> {
        let mode = if self.dark { "dark" } else { "light" };
        let place = format!("{}, {} px, {mode}, {}", self.name, self.width, self.mode.word());
        let found = seen["faults"].as_array().cloned().unwrap_or_default();
        let mut faults: Vec<String> =
            found.iter().map(|f| format!("{place}: {}", f.as_str().unwrap_or_default())).collect();
        if seen["dark"].as_bool() != Some(self.dark) || seen["svgs"].as_u64() == Some(0) {
            faults.push(format!("{place}: the browser did not show it so, or there is no picture"));
        }
        let used = seen["used"].as_u64().unwrap_or(0);
        if (used > 0) != (reacts && self.mode == Mode::Live) {
            faults.push(format!("{place}: {used} pictures reacted"));
        }
        faults
    }

    fn look(&self, page: &str) -> Result<Value, String> {
        let file = self.folder.join("view.html");
        fs::write(&file, self.wrapper(page)).map_err(|e| format!("{}: {e}", file.display()))?;
        let seen = self.browse(&file, &[PATIENCE, "--dump-dom"])?;
        if let Some(shots) = self.shots {
            fs::create_dir_all(shots).map_err(|e| format!("{}: {e}", shots.display()))?;
            let mode = if self.dark { "dark" } else { "light" };
            let shot = shots.join(format!("{}-{}-{mode}-{}.png", self.name, self.width, self.mode.word()));
            let size = format!("--window-size={},{}", self.width.max(500) + 40, 6000);
            self.browse(&file, &[PATIENCE, &format!("--screenshot={}", shot.display()), &size])?;
        }
        let json =
            seen.split("id=\"result\">").nth(1).and_then(|r| r.split("</pre>").next()).unwrap_or_default();
        let json = json.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
        serde_json::from_str(&json)
            .map_err(|e| format!("{}: what the browser found cannot be read: {e}: {json}", self.name))
    }

    /// Puts the page into a frame, which can be narrower than any browser window.
    fn wrapper(&self, page: &str) -> String {
        let text = page.replace('&', "&amp;").replace('<', "&lt;");
        format!(
            "<!doctype html><meta charset=utf-8><meta name=color-scheme content='light dark'><style>body{{margin:0}}iframe{{border:0;width:{}px;height:6000px}}\
             #page,#result{{display:none}}</style><iframe></iframe><pre id=result></pre><pre id=page>{text}</pre><script>{USE}</script><script>const mode = \"{}\";{SCRIPT}</script>",
            self.width,
            self.mode.word()
        )
    }

    fn browse(&self, file: &Path, args: &[&str]) -> Result<String, String> {
        let mut command = Command::new(self.browser);
        command
            .args(QUIET.split(' '))
            .arg(format!("--user-data-dir={}", self.folder.join("profile").display()));
        if self.dark {
            command.arg("--blink-settings=preferredColorScheme=0");
        }
        command.args(args).arg(format!("file://{}", file.display()));
        output(&self.browser.display().to_string(), &mut command)
    }
}
