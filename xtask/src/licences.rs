//! Licences and sources of everything the lock file names.

use crate::Outcome;
use crate::metadata::{self, Package};

/// Licences that may be combined with ours and shipped in a binary. `deny.toml` holds the same list.
const ALLOWED: [&str; 11] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Zlib",
];

/// The only place packages may come from.
const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Checks the resolved graph; prints one line per package that may not be used.
pub(crate) fn command(_args: &[String]) -> Outcome {
    let packages = metadata::packages()?;
    let faults: Vec<String> = packages.iter().filter_map(fault).collect();
    if faults.is_empty() {
        println!("licences: {} packages, all allowed", packages.len());
        return Ok(());
    }
    Err(faults.join("\n"))
}

/// Why a package may not be used, if so.
fn fault(package: &Package) -> Option<String> {
    let Package { name, version, licence, source, .. } = package;
    if source.as_deref().is_some_and(|s| s != CRATES_IO) {
        return Some(format!("{name} {version}: comes from {}", source.as_deref().unwrap_or_default()));
    }
    match licence {
        None => Some(format!("{name} {version}: no licence expression")),
        Some(expression) if !allowed(expression) => Some(format!("{name} {version}: licence {expression}")),
        Some(_) => None,
    }
}

/// True when the SPDX expression can be met with allowed licences only. What cannot be read is not allowed.
fn allowed(expression: &str) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut parser = Parser { words: &words };
    parser.any().is_some_and(|ok| ok && parser.words.is_empty())
}

struct Parser<'a> {
    words: &'a [&'a str],
}

impl<'a> Parser<'a> {
    fn take(&mut self) -> Option<&'a str> {
        let (first, rest) = self.words.split_first()?;
        self.words = rest;
        Some(first)
    }
    fn take_if(&mut self, word: &str) -> bool {
        let found = self.words.first() == Some(&word);
        if found {
            self.words = &self.words[1..];
        }
        found
    }
    /// One side of an OR is enough.
    fn any(&mut self) -> Option<bool> {
        let mut ok = self.all()?;
        while self.take_if("OR") {
            ok |= self.all()?;
        }
        Some(ok)
    }
    /// Every side of an AND counts.
    fn all(&mut self) -> Option<bool> {
        let mut ok = self.one()?;
        while self.take_if("AND") {
            ok &= self.one()?;
        }
        Some(ok)
    }
    fn one(&mut self) -> Option<bool> {
        if self.take_if("(") {
            let ok = self.any()?;
            return self.take_if(")").then_some(ok);
        }
        let name = self.take()?;
        if self.take_if("WITH") {
            let full = format!("{name} WITH {}", self.take()?);
            return Some(ALLOWED.contains(&full.as_str()));
        }
        Some(ALLOWED.contains(&name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_met_or_not() {
        for good in [
            "MIT",
            "MIT/Apache-2.0",
            "MIT OR GPL-3.0",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR MIT",
        ] {
            assert!(allowed(good), "{good}");
        }
        for bad in [
            "GPL-3.0",
            "MIT AND GPL-3.0",
            "",
            "(MIT",
            "MIT)",
            "MIT OR",
            "Apache-2.0 WITH GPL-exception",
            "MIT MIT",
        ] {
            assert!(!allowed(bad), "{bad}");
        }
    }

    #[test]
    fn a_package_needs_a_licence_and_the_registry() {
        let mut package = Package {
            name: "a".into(),
            version: "1".into(),
            licence: Some("MIT".into()),
            source: Some(CRATES_IO.into()),
            dependencies: Vec::new(),
        };
        assert_eq!(fault(&package), None);
        package.licence = None;
        assert!(fault(&package).is_some());
        package.licence = Some("MIT".into());
        package.source = Some("git+https://example.invalid/a".into());
        assert!(fault(&package).is_some());
    }
}
