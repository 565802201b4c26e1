// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Tables of results for every library that reads Arrow's C stream interface: pyarrow, polars, pandas, DuckDB. Numbers are
//! not copied.

use std::ffi::CStr;
use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, StringArray,
};
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};
use onramp_results::{Cell, Column, Frame};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::errors;

/// As the interface demands.
const STREAM: &CStr = c"arrow_array_stream";

/// A table.
#[pyclass(frozen, module = "onramp._onramp")]
pub struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Table {
    /// The table of `frame`, with its buffers.
    pub fn of(frame: Frame) -> PyResult<Table> {
        let of = |frame| -> Result<Table, ArrowError> {
            let Frame { names, groups } = frame;
            let mut schema: Option<SchemaRef> = None;
            let mut batches = Vec::with_capacity(groups.len());
            for group in groups {
                let (nullable, arrays): (Vec<bool>, Vec<ArrayRef>) =
                    group.into_iter().map(array).unzip();
                let fields = || {
                    let of = names.iter().zip(&arrays).zip(&nullable);
                    let field = |((name, array), nullable): ((&String, &ArrayRef), &bool)| {
                        Field::new(name, array.data_type().clone(), *nullable)
                    };
                    Arc::new(Schema::new(of.map(field).collect::<Vec<_>>()))
                };
                let schema = schema.get_or_insert_with(fields);
                batches.push(RecordBatch::try_new(Arc::clone(schema), arrays)?);
            }
            let schema = schema.unwrap_or_else(|| Arc::new(Schema::empty()));
            Ok(Table { schema, batches })
        };
        of(frame).map_err(errors::results)
    }
}

#[pymethods]
impl Table {
    /// Rows.
    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// Arrow's PyCapsule interface. The buffers stay those of this table.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema); // The interface lets a producer ignore it.
        let batches = self.batches.clone().into_iter().map(Ok);
        let reader = RecordBatchIterator::new(batches, Arc::clone(&self.schema));
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, STREAM)
    }
}

/// Whether the column may have nulls, and its values.
fn array(column: Column) -> (bool, ArrayRef) {
    let text = |cell: &Cell| {
        let text = cell.as_utf8().unwrap_or_default();
        text.to_owned()
    };
    match column {
        Column::Bool(values) => (false, Arc::new(BooleanArray::from(values))),
        Column::Int(values) => (false, Arc::new(Int64Array::from(values))),
        Column::OptInt(values) => (true, Arc::new(Int64Array::from(values))),
        Column::Double(values) => (false, Arc::new(Float64Array::from(values))),
        Column::OptDouble(values) => (true, Arc::new(Float64Array::from(values))),
        Column::Text(values) => (false, Arc::new(StringArray::from(values))),
        Column::Bytes(values) => {
            let texts = values.iter().map(text);
            (false, Arc::new(StringArray::from_iter_values(texts)))
        }
        Column::OptBytes(values) => {
            let texts = values.iter().map(|cell| cell.as_ref().map(text));
            (true, Arc::new(StringArray::from_iter(texts)))
        }
    }
}
