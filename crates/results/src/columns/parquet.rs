// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Writes and reads columns in Parquet files; one row group for each part.

use super::Column;
use crate::error::{Error, Result};
use crate::files::whole;
use ::parquet::basic::Compression;
use ::parquet::column::reader::ColumnReader;
use ::parquet::data_type::{BoolType, ByteArrayType, DataType, DoubleType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use ::parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use ::parquet::schema::parser::parse_message_type;
use onramp_scenario::quietly;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A text.
pub use ::parquet::data_type::ByteArray as Cell;

/// Writes row groups of columns that fit `schema`, atomically.
pub fn write(
    path: &Path,
    schema: &str,
    groups: impl IntoIterator<Item = Result<Vec<Column>>>,
) -> Result<()> {
    whole(path, |part| write_groups(part, schema, groups))
}

fn write_groups(
    path: &Path,
    schema: &str,
    groups: impl IntoIterator<Item = Result<Vec<Column>>>,
) -> Result<()> {
    let bad = |error: ParquetError| bad(path, error);
    let file = File::create(path).map_err(|error| Error::File {
        path: path.to_owned(),
        error,
    })?;
    let schema = Arc::new(parse_message_type(schema).map_err(bad)?);
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .build();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties)).map_err(bad)?;
    for group in groups {
        let mut rows = writer.next_row_group().map_err(bad)?;
        for column in group? {
            write_column(&mut rows, column).map_err(bad)?;
        }
        rows.close().map_err(bad)?;
    }
    writer.close().map_err(bad)?;
    Ok(())
}

fn write_column(
    rows: &mut SerializedRowGroupWriter<'_, File>,
    column: Column,
) -> Result<(), ParquetError> {
    match column {
        Column::Bool(values) => put::<BoolType>(rows, &values, None),
        Column::Int(values) => put::<Int64Type>(rows, &values, None),
        Column::OptInt(values) => put_some::<Int64Type>(rows, values),
        Column::Double(values) => put::<DoubleType>(rows, &values, None),
        Column::OptDouble(values) => put_some::<DoubleType>(rows, values),
        Column::Text(values) => {
            let values: Vec<Cell> = values.into_iter().map(Cell::from).collect();
            put::<ByteArrayType>(rows, &values, None)
        }
        Column::Bytes(values) => put::<ByteArrayType>(rows, &values, None),
        Column::OptBytes(values) => put_some::<ByteArrayType>(rows, values),
    }
}

fn put_some<T: DataType>(
    rows: &mut SerializedRowGroupWriter<'_, File>,
    values: Vec<Option<T::T>>,
) -> Result<(), ParquetError> {
    let levels: Vec<i16> = values.iter().map(|v| i16::from(v.is_some())).collect();
    let present: Vec<T::T> = values.into_iter().flatten().collect();
    put::<T>(rows, &present, Some(&levels))
}

fn put<T: DataType>(
    rows: &mut SerializedRowGroupWriter<'_, File>,
    values: &[T::T],
    levels: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let Some(mut column) = rows.next_column()? else {
        return Err(ParquetError::General(
            "more columns than the schema has".into(),
        ));
    };
    column.typed::<T>().write_batch(values, levels, None)?;
    column.close()
}

/// Reads the columns `names` of a file that [`write`] wrote, one row group at a time. An unreadable file
/// is one error.
pub fn read(path: PathBuf, names: &[&'static str]) -> impl Iterator<Item = Result<Vec<Column>>> {
    let names = names.to_vec();
    let (reader, failure) = match open(&path) {
        Ok(reader) => (Some(reader), None),
        Err(error) => (None, Some(Err(error))),
    };
    let groups = reader.into_iter().flat_map(move |reader| {
        let (path, names, count) = (path.clone(), names.clone(), reader.num_row_groups());
        let group = move |index| read_group(&*reader.get_row_group(index)?, &names);
        (0..count).map(move |index| guarded(&path, || group(index)))
    });
    failure.into_iter().chain(groups)
}

fn open(path: &Path) -> Result<SerializedFileReader<File>> {
    let file = File::open(path).map_err(|error| Error::File {
        path: path.to_owned(),
        error,
    })?;
    guarded(path, || SerializedFileReader::new(file))
}

/// The result of `read`. The library panics on some damaged files; that becomes an error.
fn guarded<T>(path: &Path, read: impl FnOnce() -> Result<T, ParquetError>) -> Result<T> {
    let damaged = || ParquetError::General("the pages of the file are damaged".into());
    let read = quietly(read).unwrap_or_else(|| Err(damaged()));
    read.map_err(|error| bad(path, error))
}

fn bad(path: &Path, error: ParquetError) -> Error {
    Error::Format {
        path: path.to_owned(),
        reason: error.to_string(),
    }
}

fn read_group(
    group: &dyn RowGroupReader,
    names: &[&'static str],
) -> Result<Vec<Column>, ParquetError> {
    let rows = group.metadata().num_rows() as usize;
    let schema = group.metadata().schema_descr_ptr();
    let read = |name: &&str| {
        let index = schema.columns().iter().position(|c| c.name() == *name);
        let index = index.ok_or_else(|| {
            let reason =
                "its columns are not those that this onramp writes: run the scenario again";
            ParquetError::General(format!("it has no column {name}; {reason}"))
        })?;
        read_column(group.get_column_reader(index)?, rows)
    };
    names.iter().map(read).collect()
}

fn read_column(reader: ColumnReader, rows: usize) -> Result<Column, ParquetError> {
    let mut levels = Vec::new();
    match reader {
        ColumnReader::BoolColumnReader(mut reader) => {
            let mut values = Vec::new();
            reader.read_records(rows, None, None, &mut values)?;
            Ok(Column::Bool(values))
        }
        ColumnReader::Int64ColumnReader(mut reader) => {
            let mut values = Vec::new();
            reader.read_records(rows, Some(&mut levels), None, &mut values)?;
            Ok(match levels.is_empty() {
                true => Column::Int(values),
                false => Column::OptInt(with_gaps(levels, values)),
            })
        }
        ColumnReader::DoubleColumnReader(mut reader) => {
            let mut values = Vec::new();
            reader.read_records(rows, Some(&mut levels), None, &mut values)?;
            Ok(match levels.is_empty() {
                true => Column::Double(values),
                false => Column::OptDouble(with_gaps(levels, values)),
            })
        }
        ColumnReader::ByteArrayColumnReader(mut reader) => {
            let mut values = Vec::new();
            reader.read_records(rows, Some(&mut levels), None, &mut values)?;
            Ok(match levels.is_empty() {
                true => Column::Bytes(values),
                false => Column::OptBytes(with_gaps(levels, values)),
            })
        }
        _ => Err(ParquetError::General("a type that no world writes".into())),
    }
}

/// The values at the levels that mean present; nulls elsewhere.
fn with_gaps<T>(levels: Vec<i16>, values: Vec<T>) -> Vec<Option<T>> {
    let mut present = values.into_iter();
    let fill = |level: i16| if level > 0 { present.next() } else { None };
    levels.into_iter().map(fill).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_file_is_an_error_or_other_values() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.parquet");
        let schema = "message t { optional int64 a; }";
        let column = Column::OptInt(vec![Some(1), None, Some(3)]);
        write(&path, schema, [Ok(vec![column])]).unwrap();
        let whole = std::fs::read(&path).unwrap();
        let mut refused = 0;
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0xff;
            std::fs::write(&path, damaged).unwrap();
            let groups: Vec<_> = read(path.clone(), &["a"]).collect();
            refused += usize::from(groups.iter().any(Result::is_err));
        }
        assert!(refused > 0);
    }

    #[test]
    fn what_cannot_be_written_leaves_nothing_behind() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.parquet");
        let schema = "message t { required int64 a; }";
        let group = || Ok(vec![Column::Int(vec![1])]);
        write(&path, schema, [group()]).unwrap();
        let before = std::fs::read(&path).unwrap();
        // The second group has a column too many: what was there stays.
        let wide = Ok(vec![Column::Int(vec![1]), Column::Int(vec![2])]);
        let error = write(&path, schema, [group(), wide])
            .unwrap_err()
            .to_string();
        assert!(error.contains("t.parquet"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), before);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
        let nowhere = path.join("below-a-file.parquet");
        let error = write(&nowhere, schema, [group()]).unwrap_err().to_string();
        assert!(error.contains("below-a-file.parquet"), "{error}");
    }

    #[test]
    fn what_is_written_is_read() {
        let schema = "message t { required int64 a; optional int64 b; required double c; required binary d (UTF8); optional double e; optional binary f (UTF8); required boolean g; }";
        let path =
            std::env::temp_dir().join(format!("onramp-columns-{}.parquet", std::process::id()));
        let group = vec![
            Column::Int(vec![1, 2, 3]),
            Column::OptInt(vec![None, Some(5), None]),
            Column::Double(vec![0.5, 1.5, -2.0]),
            Column::Text(vec!["x", "", "yz"]),
            Column::OptDouble(vec![Some(0.25), None, None]),
            Column::OptBytes(vec![None, Some("p q".into()), None]),
            Column::Bool(vec![true, false, true]),
        ];
        write(&path, schema, [Ok(group.clone()), Ok(group.clone())]).unwrap();
        let groups: Vec<Vec<Column>> = read(path.clone(), &["a", "b", "c", "d", "e", "f", "g"])
            .collect::<Result<_>>()
            .unwrap();
        let some: Vec<Vec<Column>> = read(path.clone(), &["g", "a"])
            .collect::<Result<_>>()
            .unwrap();
        assert_eq!(some[0], [group[6].clone(), group[0].clone()]);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(groups.len(), 2);
        assert_eq!(groups[1][..3], group[..3]);
        assert_eq!(groups[1][4..], group[4..]);
        let Column::Bytes(texts) = &groups[0][3] else {
            panic!("texts are bytes")
        };
        assert_eq!(texts[2].as_utf8().unwrap(), "yz");
    }
}
