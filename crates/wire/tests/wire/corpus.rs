//! The committed packets: hex text with a comment on top, one packet per file.

use std::fs;
use std::path::Path;

/// All packets of the corpus with their names, in the order of the names.
pub(crate) fn load() -> Vec<(String, Vec<u8>)> {
    // the fuzzer in `fuzz/` uses it too
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = here.ancestors().map(|folder| folder.join("crates/wire/corpus"));
    let folder = folders.find(|folder| folder.is_dir()).expect("the corpus is in the workspace");
    let mut packets = Vec::new();
    for entry in fs::read_dir(folder).expect("the corpus lies beside the tests") {
        let path = entry.expect("a readable folder").path();
        let name = path.file_stem().and_then(|s| s.to_str()).unwrap_or_default().to_owned();
        let text = fs::read_to_string(&path).expect("a readable file");
        packets.push((name, parse_hex(&text).expect("hex digits and comments")));
    }
    packets.sort();
    packets
}

/// Converts hex digits to bytes; ignores blanks and `#` comments. `None` for anything else.
pub(crate) fn parse_hex(text: &str) -> Option<Vec<u8>> {
    let code = text.lines().map(|l| l.split('#').next().unwrap_or_default());
    let digits: Vec<u8> =
        code.flat_map(str::chars).filter(|c| !c.is_whitespace()).map(hex).collect::<Option<_>>()?;
    let (pairs, rest) = digits.as_chunks::<2>();
    rest.is_empty().then(|| pairs.iter().map(|[high, low]| high << 4 | low).collect())
}

fn hex(c: char) -> Option<u8> {
    c.to_digit(16).map(|d| d as u8)
}
