// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Lists of flows in Parquet files.

use super::{
    field, is_size, listed, push, read_start, whole, FlowListError, ListedFlow, NUMBER, SIZE, START,
};
use crate::guard::quietly;
use ::parquet::errors::ParquetError;
use ::parquet::file::reader::{FileReader, SerializedFileReader};

/// The library panics on some damaged files.
pub(super) fn read_parquet(bytes: &[u8]) -> Result<Vec<ListedFlow>, FlowListError> {
    let damaged = || FlowListError::Parquet {
        message: "the pages of the file are damaged".to_owned(),
    };
    quietly(|| parquet_flows(bytes)).ok_or_else(damaged)?
}

fn parquet_flows(bytes: &[u8]) -> Result<Vec<ListedFlow>, FlowListError> {
    let bad = |error: ParquetError| FlowListError::Parquet {
        message: error.to_string(),
    };
    let file = SerializedFileReader::new(bytes::Bytes::copy_from_slice(bytes)).map_err(bad)?;
    let mut flows = Vec::new();
    for (line, row) in (1..).zip(file.get_row_iter(None).map_err(bad)?) {
        let row = row.map_err(bad)?;
        let number = |name: &'static str| {
            let column = row.get_column_iter().find(|(column, _)| *column == name);
            let found = column.map_or(String::new(), |(_, value)| value.to_string());
            let read = |word: &str| whole(word)?.parse::<i64>().ok();
            field(line, name, &found, NUMBER, read).map(|n| (n, found))
        };
        let host = |name| {
            let (host, found) = number(name)?;
            field(line, name, &found, NUMBER, |_| u32::try_from(host).ok())
        };
        let (src, dst) = (host("src")?, host("dst")?);
        let (size, found) = number("size_bytes")?;
        let size = field(line, "size_bytes", &found, SIZE, |_| {
            u64::try_from(size).ok().filter(|&size| is_size(size))
        })?;
        let (start, found) = number("start_ns")?;
        let at = field(line, "start_ns", &found, START, |_| read_start(start))?;
        let flow = listed(line, src, dst, size, at)?;
        push(&mut flows, line, flow)?;
    }
    Ok(flows)
}
