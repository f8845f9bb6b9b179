//! Nothing of a developer's machine in what is committed: no absolute path of a home or working folder.

use super::Finding;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Folders in which people work. Assembled, so that this file passes its own rule.
const FOLDERS: [&str; 4] =
    [concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/wo", "rk/"), concat!("/Us", "ers/")];

/// Checks every text file that git knows or would add.
pub(super) fn check(root: &Path) -> Result<Vec<Finding>, String> {
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .map_err(|e| format!("git ls-files: {e}"))?;
    let names = String::from_utf8_lossy(&listed.stdout).into_owned();
    let mut findings = Vec::new();
    for name in names.lines() {
        // Not text, or already gone again: somebody else's concern.
        if let Ok(text) = fs::read_to_string(root.join(name)) {
            findings.extend(check_text(name, &text));
        }
    }
    Ok(findings)
}

fn check_text(name: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (i, line) in text.lines().enumerate() {
        for folder in FOLDERS.iter().filter(|f| has_absolute(line, f)) {
            let text = format!("a path below {folder} exists on one machine only");
            findings.push(Finding { place: name.to_owned(), line: i + 1, text });
        }
    }
    findings
}

/// True when `folder` begins a path: what stands in front of it is no part of one.
fn has_absolute(line: &str, folder: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | '}' | ')');
    line.match_indices(folder).any(|(at, _)| !line[..at].chars().next_back().is_some_and(is_part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_a_machine_are_found() {
        let [root, home, ..] = FOLDERS;
        for bad in [
            format!("cd {home}me/bentpipe"),
            format!("\"{root}x\""),
            format!("CARGO={home}x"),
            format!("`{root}`"),
        ] {
            assert_eq!(check_text("a.md", &bad).len(), 1, "{bad}");
        }
        for good in
            ["https://example.invalid/home/x", "../work/x", "homework", "$HOME/x", "/usr/bin/env", "a/root/b"]
        {
            assert_eq!(check_text("a.md", good).len(), 0, "{good}");
        }
    }
}
