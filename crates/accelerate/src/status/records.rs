//! Flow records: a line in a file for each closed connection, CSV (RFC 4180) or JSON lines.
//!
//! A failed write is counted and never stops the gateway; the file is tried again at the next connection.
//! [`Records::reopen`] makes it open the file anew, so that the file can be rotated by moving it away.

use super::flow::FlowStats;
use bentpipe_base::names::csv_cell;
use bentpipe_scenario::gateway_file::RecordFormat;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// The columns of a CSV file.
const HEADING: &str = "ended_unix_s,lan,satellite,opened_from,subscriber,why_passing,end,age_s,bytes_from_lan,bytes_from_satellite,acked_bytes,goodput_bps,rtt_ms,lost,timeouts,swallowed";

/// A file of flow records.
#[derive(Debug)]
pub struct Records {
    path: PathBuf,
    format: RecordFormat,
    file: Option<File>,
    /// Records that could not be written.
    lost: u64,
}

impl Records {
    /// Opens the file for appending.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(path: &Path, format: RecordFormat) -> io::Result<Self> {
        let mut records = Self { path: path.to_owned(), format, file: None, lost: 0 };
        records.file()?;
        Ok(records)
    }

    /// Records that could not be written.
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// Reopens the file at the next record, in case it was moved away.
    pub fn reopen(&mut self) {
        self.file = None;
    }

    /// Appends closed connections; `now` is in seconds since 1970.
    pub fn add(&mut self, flows: &[FlowStats], now: u64) {
        if flows.is_empty() {
            return;
        }
        let mut text = Vec::new();
        for flow in flows {
            match self.format {
                RecordFormat::Csv => text.extend_from_slice(csv(flow, now).as_bytes()),
                RecordFormat::JsonLines => text.extend_from_slice(&json(flow, now)),
            }
            text.push(b'\n');
        }
        let written = self.file().and_then(|file| file.write_all(&text));
        if written.is_err() {
            self.lost += flows.len() as u64;
            self.file = None;
        }
    }

    fn file(&mut self) -> io::Result<&mut File> {
        if let Some(file) = self.file.take() {
            return Ok(self.file.insert(file));
        }
        let mut file = OpenOptions::new().create(true).append(true).mode(0o640).open(&self.path)?;
        if self.format == RecordFormat::Csv && file.metadata()?.len() == 0 {
            writeln!(file, "{HEADING}")?;
        }
        Ok(self.file.insert(file))
    }
}

fn csv(flow: &FlowStats, now: u64) -> String {
    let number = |n: Option<u64>| n.map_or(String::new(), |n| n.to_string());
    let text = |t: &Option<String>| t.as_deref().map_or(String::new(), csv_cell);
    [
        now.to_string(),
        csv_cell(&flow.lan),
        csv_cell(&flow.satellite),
        text(&flow.opened_from),
        text(&flow.subscriber),
        text(&flow.why_passing),
        text(&flow.end),
        format!("{:.3}", flow.age_s),
        flow.bytes[0].to_string(),
        flow.bytes[1].to_string(),
        flow.acked_bytes.to_string(),
        number(flow.goodput_bps),
        flow.rtt_ms.map_or(String::new(), |ms| format!("{ms:.3}")),
        flow.lost.to_string(),
        flow.timeouts.to_string(),
        flow.swallowed.to_string(),
    ]
    .join(",")
}

fn json(flow: &FlowStats, now: u64) -> Vec<u8> {
    let mut value = serde_json::json!({ "ended_unix_s": now });
    if let (Some(all), Ok(serde_json::Value::Object(mut flow))) =
        (value.as_object_mut(), serde_json::to_value(flow))
    {
        all.append(&mut flow);
    }
    serde_json::to_vec(&value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn flow() -> FlowStats {
        FlowStats {
            lan: "10.0.0.1:40000".to_owned(),
            satellite: "[2001:db8::1]:443".to_owned(),
            end: Some("a \"strange\", end".to_owned()),
            bytes: [1000, 2000],
            goodput_bps: Some(9_000_000),
            age_s: 1.5,
            ..FlowStats::default()
        }
    }

    fn place(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("bentpipe-records-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join(name);
        let _ = fs::remove_file(&path);
        path
    }

    #[test]
    fn csv_has_one_heading_and_is_quoted() {
        let path = place("a.csv");
        for _ in 0..2 {
            Records::open(&path, RecordFormat::Csv).unwrap().add(&[flow()], 1_700_000_000);
        }
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines.len(), lines[0]), (3, HEADING));
        let wanted = "1700000000,10.0.0.1:40000,[2001:db8::1]:443,,,,\"a \"\"strange\"\", end\",1.500,1000,2000,0,9000000,,0,0,0";
        assert_eq!(lines[1], wanted);
        assert_eq!(HEADING.split(',').count(), 16);
    }

    #[test]
    fn a_file_that_was_moved_away_is_made_anew() {
        let path = place("b.jsonl");
        let mut records = Records::open(&path, RecordFormat::JsonLines).unwrap();
        records.add(&[flow(), flow()], 7);
        let moved = path.with_extension("old");
        fs::rename(&path, &moved).unwrap();
        records.reopen();
        records.add(&[flow()], 8);
        assert_eq!(fs::read_to_string(&moved).unwrap().lines().count(), 2);
        let text = fs::read_to_string(&path).unwrap();
        let value: serde_json::Value = serde_json::from_str(text.trim()).unwrap();
        assert_eq!((value["ended_unix_s"].as_u64(), value["bytes"][1].as_u64()), (Some(8), Some(2000)));
    }

    #[test]
    fn what_cannot_be_written_is_counted() {
        let mut records = Records::open(Path::new("/dev/full"), RecordFormat::JsonLines).unwrap();
        records.add(&[flow(), flow()], 7);
        records.add(&[flow()], 7);
        assert_eq!(records.lost(), 3);
    }
}
