//! The states of a gated unit.

use super::UNIT;
use crate::Array;
use crate::cell::{Cell, Pass, States, of};
use crate::device::Record;
use crate::product::{Base, Operand, Product};
use crate::shader::arrays;
use isometry_core::Result;

/// The states, (T, B, n); zeros past the ends of sequences.
pub(crate) fn forward(record: &mut Record<'_>, cell: &Cell<'_>) -> Result<States> {
    let (batch, n, wide, after) = (cell.batch, cell.n, cell.wide, cell.flag(0));
    let x = cell.inputs(record)?;
    let inputs = cell.drive(record, &x)?;
    let states = cell.of_rows(n)?;
    let (state, products) = (cell.of_step(n)?, cell.of_step(wide)?);
    let (z, reset) = match after {
        true => (cell.room(&[1])?, cell.room(&[1])?),
        false => (cell.of_step(n)?, cell.of_step(n)?),
    };
    record.fill(&state, cell.some("h0"))?;
    let hidden = cell.some("hidden_bias").map(|bias| behind(record, cell, bias)).transpose()?;
    let arrays = arrays![own = cell.own()?, inputs, products, state, z, reset, states];
    let pass = Pass { count: cell.pairs(batch), ..Pass::default() };
    for k in 0..cell.steps {
        let into = of(&products, wide);
        if after {
            Product::new(1, (batch, wide, n), of(&state, n), cell.w(0)?.t(), into)
                .plus(hidden.as_ref().map_or(Base::Nothing, |bias| Base::Array(Operand::row(bias))))
                .record(record, cell.field)?;
            cell.run(record, &UNIT, &arrays, Pass { k, ..pass })?;
            continue;
        }
        Product::new(1, (batch, 2 * n, n), of(&state, n), cell.w(0)?.t(), into).record(record, cell.field)?;
        cell.run(record, &UNIT, &arrays, Pass { k, ..pass })?;
        Product::new(1, (batch, n, n), of(&reset, n), cell.w(2 * n)?.t(), into.from(0, 2 * n))
            .record(record, cell.field)?;
        cell.run(record, &UNIT, &arrays, Pass { k, phase: 1, ..pass })?;
    }
    Ok((states, None))
}

/// Zeros for the products with W_z and W_r, then c_h.
fn behind(record: &mut Record<'_>, cell: &Cell<'_>, bias: &Array) -> Result<Array> {
    let (zeros, all) = (cell.room(&[2 * cell.n])?, cell.room(&[3 * cell.n])?);
    record.fill(&zeros, None)?;
    record.join(&[&zeros, bias], &all)?;
    Ok(all)
}
