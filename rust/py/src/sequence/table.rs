//! The table of cells, from which Python makes its declarations.

use isometry_core::recurrence::CELLS;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// `CELLS`: the name of every cell -> its arrays as (name, axes, optional), settings, width, saved, saves_more, memory, operator, dense, and the arrays
/// whose matrices may be packed, each with the rows of its matrices in n.
pub fn cells(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let table = PyDict::new(module.py());
    for cell in CELLS {
        let arrays: Vec<_> = cell.arguments.iter().map(|a| (a.name, a.axes, a.optional)).collect();
        let packs = cell.packs.iter().map(|(at, rows)| (cell.arguments[*at].name, rows.to_vec()));
        let row = (
            PyTuple::new(module.py(), arrays)?,
            PyTuple::new(module.py(), cell.settings)?,
            cell.width,
            cell.saved,
            cell.saves_more,
            cell.memory,
            cell.operator,
            cell.dense,
            PyTuple::new(module.py(), packs.collect::<Vec<_>>())?,
        );
        table.set_item(cell.name, row)?;
    }
    module.add("CELLS", table)
}
