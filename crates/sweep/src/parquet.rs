//! `runs.parquet` and `cells.parquet`: the columns of the CSV files with types, with the feature `parquet`.

use crate::error::Error;
use crate::table::Table;
use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use std::sync::Arc;

fn failed(error: &ParquetError) -> Error {
    Error::Input(format!("parquet: {error}"))
}

/// Returns `runs.parquet`, with one row per run.
pub(crate) fn runs(table: &Table) -> Result<Vec<u8>, Error> {
    let axis = |a: usize| table.runs.iter().map(move |(cell, ..)| table.cells[*cell][a].as_str());
    let mut columns: Vec<ArrayRef> = (0..table.axes.len()).map(|a| text(axis(a))).collect();
    columns.push(Arc::new(table.runs.iter().map(|(_, seed, _)| *seed).collect::<UInt64Array>()));
    let metrics = 0..table.metrics.len();
    columns.extend(metrics.map(|m| number(table.runs.iter().map(|(.., values)| values[m]))));
    write(table.run_columns(), columns)
}

/// Returns `cells.parquet`, with one row per cell.
pub(crate) fn cells(table: &Table) -> Result<Vec<u8>, Error> {
    let axis = |a: usize| table.cells.iter().map(move |cell| cell[a].as_str());
    let mut columns: Vec<ArrayRef> = (0..table.axes.len()).map(|a| text(axis(a))).collect();
    for m in 0..table.metrics.len() {
        let figures = || table.figures.iter().map(|f| &f[m]);
        columns.push(number(figures().map(|f| f.mean)));
        columns.push(number(figures().map(|f| f.half_width)));
        columns.push(Arc::new(figures().map(|f| f.n as u64).collect::<UInt64Array>()));
    }
    write(table.cell_columns(), columns)
}

fn text<'a>(values: impl Iterator<Item = &'a str>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(values))
}

fn number(values: impl Iterator<Item = Option<f64>>) -> ArrayRef {
    Arc::new(values.collect::<Float64Array>())
}

fn write(names: Vec<String>, columns: Vec<ArrayRef>) -> Result<Vec<u8>, Error> {
    let batch =
        RecordBatch::try_from_iter_with_nullable(names.into_iter().zip(columns).map(|(n, c)| (n, c, true)));
    let batch = batch.map_err(|error| failed(&error.into()))?;
    // the file must not depend on the machine or the date
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(format!("bentpipe {}", env!("CARGO_PKG_VERSION")))
        .build();
    let mut writer =
        ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).map_err(|e| failed(&e))?;
    writer.write(&batch).map_err(|e| failed(&e))?;
    writer.into_inner().map_err(|e| failed(&e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::tests::example;
    use arrow_array::Array;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReader;

    /// Reads a file with a single batch.
    fn read(bytes: Vec<u8>) -> RecordBatch {
        let path =
            std::env::temp_dir().join(format!("bentpipe-{}-{}.parquet", std::process::id(), bytes.len()));
        std::fs::write(&path, bytes).unwrap();
        let batch =
            ParquetRecordBatchReader::try_new(std::fs::File::open(&path).unwrap(), 1000).unwrap().next();
        std::fs::remove_file(&path).unwrap();
        batch.unwrap().unwrap()
    }

    fn names(batch: &RecordBatch) -> Vec<String> {
        batch.schema().fields().iter().map(|f| f.name().clone()).collect()
    }

    fn column<'a, T: 'static>(batch: &'a RecordBatch, name: &str) -> &'a T {
        batch.column_by_name(name).unwrap().as_any().downcast_ref().unwrap()
    }

    #[test]
    fn what_was_written_is_read_back() {
        let table = example();
        let batch = read(runs(&table).unwrap());
        assert_eq!((names(&batch), batch.num_rows()), (table.run_columns(), 3));
        assert_eq!(column::<StringArray>(&batch, "tcp").value(2), "reno, old");
        assert_eq!(column::<UInt64Array>(&batch, "seed").values(), &[1, 2, 1]);
        let goodput: &Float64Array = column(&batch, "goodput_bps");
        assert_eq!((goodput.value(1), goodput.null_count()), (3e6, 0));
        let finished: &Float64Array = column(&batch, "finished[x1]_s");
        assert!((finished.value(1) - 2.0).abs() < 1e-9 && finished.is_null(2));

        let batch = read(cells(&table).unwrap());
        assert_eq!((names(&batch), batch.num_rows()), (table.cell_columns(), 2));
        let width: &Float64Array = column(&batch, "goodput_bps_half_width_95");
        assert!((width.value(0) - 12.706e6).abs() < 1.0 && width.is_null(1));
        assert_eq!(column::<UInt64Array>(&batch, "finished[x1]_s_n").values(), &[2, 0]);
    }

    #[test]
    fn the_same_table_gives_the_same_bytes() {
        assert_eq!(runs(&example()).unwrap(), runs(&example()).unwrap());
        assert_eq!(cells(&example()).unwrap(), cells(&example()).unwrap());
    }
}
