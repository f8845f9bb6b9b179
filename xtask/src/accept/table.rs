//! CSV tables: results of a sweep, and time series.

use crate::Outcome;

/// A CSV table with column names in the first line.
#[derive(Clone, Debug)]
pub(super) struct Table {
    columns: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

impl Table {
    /// Reads a table that bentpipe wrote, which has no quoted fields.
    pub(super) fn read(text: &str) -> Outcome<Self> {
        let fields = |line: &str| line.split(',').map(str::to_owned).collect::<Vec<_>>();
        let mut lines = text.lines();
        let columns = lines.next().map(fields).ok_or("a table without a line")?;
        let rows: Vec<_> = lines.map(fields).collect();
        match rows.iter().position(|row| row.len() != columns.len()) {
            Some(wrong) => {
                Err(format!("line {}: {} columns, not {}", wrong + 2, rows[wrong].len(), columns.len()))
            }
            None => Ok(Self { columns, rows }),
        }
    }

    pub(super) fn column(&self, name: &str) -> Outcome<usize> {
        let found = self.columns.iter().position(|c| c == name);
        found.ok_or_else(|| format!("no column {name} among {}", self.columns.join(", ")))
    }

    /// Numbers of column `name` in the rows that match `at`, in row order. An error if there are none.
    pub(super) fn numbers(&self, at: &[(&str, &str)], name: &str) -> Outcome<Vec<f64>> {
        let column = self.column(name)?;
        let at: Vec<_> =
            at.iter().map(|(axis, value)| Ok((self.column(axis)?, *value))).collect::<Outcome<_>>()?;
        let rows = self.rows.iter().filter(|row| at.iter().all(|(axis, value)| row[*axis] == *value));
        let number = |row: &Vec<String>| {
            row[column].parse().map_err(|_| format!("{name}: {:?} is no number", row[column]))
        };
        let all: Vec<f64> = rows.map(number).collect::<Outcome<_>>()?;
        if all.is_empty() { Err(format!("{name}: no row")) } else { Ok(all) }
    }
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn a_table_is_read_by_its_axes() {
        let table =
            Table::read("tcp,loss,seed,x\na,1e-3,1,2\na,1e-3,2,3.5\nb,1e-3,1,7\na,1e-4,1,\n").unwrap();
        assert_eq!(table.numbers(&[("tcp", "a"), ("loss", "1e-3")], "x"), Ok(vec![2.0, 3.5]));
        assert_eq!(table.numbers(&[("tcp", "b")], "x"), Ok(vec![7.0]));
        assert_eq!(table.numbers(&[("tcp", "c")], "x"), Err("x: no row".to_owned()));
        assert_eq!(table.numbers(&[("loss", "1e-4")], "x"), Err("x: \"\" is no number".to_owned()));
        assert!(table.numbers(&[("tcp", "a")], "y").unwrap_err().contains("no column y"));
        assert!(table.numbers(&[("scheme", "a")], "x").unwrap_err().contains("no column scheme"));
    }

    #[test]
    fn a_table_has_the_same_columns_everywhere() {
        assert!(Table::read("").is_err());
        assert_eq!(Table::read("a,b\n1,2\n1\n").unwrap_err(), "line 3: 1 columns, not 2");
    }
}
