//! Whether the terminal shows more than ASCII.

use std::env;

/// True if the locale has UTF-8. The first of the variables that is set counts (POSIX, XBD 8.2).
pub(crate) fn is_utf8() -> bool {
    names_utf8(["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(|name| env::var(name).ok()))
}

fn names_utf8(mut values: impl Iterator<Item = String>) -> bool {
    let first = values.find(|value| !value.is_empty()).unwrap_or_default();
    let letters: String = first.to_lowercase().chars().filter(char::is_ascii_alphanumeric).collect();
    letters.contains("utf8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_variable_that_is_set_counts() {
        let of = |values: &[&str]| names_utf8(values.iter().map(|v| (*v).to_owned()));
        assert!(of(&["en_US.UTF-8"]) && of(&["", "C.utf8"]) && of(&["de_DE.UTF-8@euro", "C"]));
        assert!(!of(&["C", "en_US.UTF-8"]) && !of(&["POSIX"]) && !of(&["", ""]) && !of(&[]));
    }
}
