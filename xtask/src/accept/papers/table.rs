//! `verdicts.csv` and `statements.csv` of `bentpipe papers`.

use crate::Outcome;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const COLUMNS: &str = "paper,item,ours,low,high,runs,length,paper_value,verdict,command";

/// A row by the names of its columns.
pub(super) type Row = BTreeMap<String, String>;

/// Both tables.
#[derive(Debug)]
pub(super) struct Verdicts {
    items: Vec<Row>,
    statements: Vec<Row>,
}

impl Verdicts {
    /// Reads the tables in a folder.
    pub(super) fn read(folder: &Path) -> Outcome<Self> {
        let read = |name: &str| {
            let path = folder.join(name);
            fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))
        };
        Self::parse(&read("verdicts.csv")?, &read("statements.csv")?)
    }

    fn parse(items: &str, statements: &str) -> Outcome<Self> {
        let head = items.lines().next().unwrap_or_default();
        if head != COLUMNS {
            return Err(format!("the columns of verdicts.csv are {head}"));
        }
        Ok(Self { items: rows(items)?, statements: rows(statements)? })
    }

    /// Items in the order of the table.
    pub(super) fn ids(&self) -> Vec<String> {
        self.items.iter().map(|row| row["item"].clone()).collect()
    }

    /// Items with this verdict.
    pub(super) fn with(&self, verdict: &str) -> Vec<String> {
        self.items.iter().filter(|row| row["verdict"] == verdict).map(|row| row["item"].clone()).collect()
    }

    /// Items that were run and have no number, or have another verdict than the three.
    pub(super) fn without_number(&self) -> Vec<String> {
        let wrong = |row: &&Row| match row["verdict"].as_str() {
            "not-run" => false,
            "agrees" | "differs" => !row["ours"].parse::<f64>().is_ok_and(f64::is_finite),
            _ => true,
        };
        self.items.iter().filter(wrong).map(|row| row["item"].clone()).collect()
    }

    /// Rows with at least `runs` runs, and how many of them have an interval.
    pub(super) fn intervals(&self, runs: usize) -> (usize, usize) {
        let many = self.items.iter().filter(|row| row["runs"].parse::<usize>().is_ok_and(|n| n >= runs));
        many.fold((0, 0), |(all, with), row| (all + 1, with + usize::from(!row["low"].is_empty())))
    }

    /// Statements that differ without a reason and parameters in their file.
    pub(super) fn unexplained(&self) -> Vec<String> {
        let differ = self.statements.iter().filter(|row| row["verdict"] == "differs");
        let wrong = differ.filter(|row| row["reason"].is_empty() || row["turn"].is_empty());
        wrong.map(|row| format!("{} {}", row["item"], row["statement"])).collect()
    }

    /// Figures with statements that are known to differ.
    pub(super) fn known_differences(&self) -> impl Iterator<Item = &str> {
        self.statements.iter().filter(|row| !row["turn"].is_empty()).map(|row| row["figure"].as_str())
    }
}

/// Reads a table whose fields may be quoted, without line breaks inside.
pub(super) fn rows(text: &str) -> Outcome<Vec<Row>> {
    let mut lines = text.lines().map(fields);
    let columns = lines.next().ok_or("a table without a line")?;
    lines
        .map(|fields| {
            if fields.len() != columns.len() {
                return Err(format!("a row has {} columns, not {}", fields.len(), columns.len()));
            }
            Ok(columns.iter().cloned().zip(fields).collect())
        })
        .collect()
}

fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut field, mut quoted) = (Vec::new(), String::new(), false);
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            // inside of quotes a quote is written twice
            '"' if quoted && chars.next_if_eq(&'"').is_some() => field.push('"'),
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(core::mem::take(&mut field)),
            c => field.push(c),
        }
    }
    fields.push(field);
    fields
}

#[cfg(test)]
mod unit {
    use super::*;

    const STATEMENTS: &str = "item,verdict,statement,figure,reason,turn\n\
        000-1,differs,\"fast, it says\",000/a,because,loss = 0\n000-2,differs,slow,000/b,,\n000-2,agrees,x,000/b,,\n";

    fn verdicts(rows: &str) -> Verdicts {
        Verdicts::parse(&format!("{COLUMNS}\n{rows}"), STATEMENTS).unwrap()
    }

    #[test]
    fn quoted_fields_have_commas_and_quotes() {
        assert_eq!(fields("a,\"b, \"\"c\"\"\",,\"\"\"d\""), ["a", "b, \"c\"", "", "\"d"]);
    }

    #[test]
    fn what_a_row_lacks_is_found() {
        let seen = verdicts(
            "000,000-1,1.5,1,2,5,1 s,x,agrees,c\n000,000-2,,,,5,1 s,x,differs,c\n000,000-3,,,,0,,,not-run,\n\
             000,000-4,1,,,1,,,perhaps,\n",
        );
        assert_eq!(seen.ids(), ["000-1", "000-2", "000-3", "000-4"]);
        assert_eq!(seen.without_number(), ["000-2", "000-4"]);
        assert_eq!((seen.with("differs"), seen.intervals(5)), (vec!["000-2".to_owned()], (2, 1)));
        assert_eq!(seen.unexplained(), ["000-2 slow"]);
        assert_eq!(seen.known_differences().collect::<Vec<_>>(), ["000/a"]);
        assert!(Verdicts::parse("paper,item\n", STATEMENTS).unwrap_err().contains("paper,item"));
    }
}
