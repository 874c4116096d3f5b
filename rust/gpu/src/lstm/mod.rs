//! The LSTM over a sequence, real numbers, of `isometry_core::recurrence::lstm`: a state is (h, c), the order of the gates is i, f, g, o.
//!
//! Forward, a step is a product with all matrices and a pass over its rows. Backward computes the arguments of the gates of all steps by one
//! product, from the states alone; a step is then a pass, which replaces them by their cotangents, and a product, and products over
//! all rows give the gradients.

use crate::cell::{Cell, Gradients, Outcome, Pass, States, of};
use crate::device::Record;
use crate::product::Product;
use crate::shader::{arrays, shaders};
use isometry_core::activation::Activation;
use isometry_core::{Error, Result};

shaders! {
    UNIT "lstm" "unit.wgsl",
    UNIT_VJP "lstm_vjp" "unit_vjp.wgsl",
}

/// Nothing but tanh.
pub(crate) fn setting(cell: &Cell<'_>) -> Result<u32> {
    if cell.activation != Activation::Tanh {
        return Err(Error::value("activation", "must be tanh"));
    }
    Ok(0)
}

/// The states, (T, B, 2n); zeros past the ends of sequences.
pub(crate) fn forward(record: &mut Record<'_>, cell: &Cell<'_>) -> Result<States> {
    let (batch, n, wide) = (cell.batch, cell.n, cell.wide);
    let x = cell.inputs(record)?;
    let inputs = cell.drive(record, &x)?;
    let states = cell.of_rows(cell.state)?;
    let (state, products) = (cell.of_step(cell.state)?, cell.of_step(wide)?);
    record.fill(&state, cell.some("h0"))?;
    let arrays = [("inputs", &inputs), ("products", &products), ("state", &state), ("states", &states)];
    for k in 0..cell.steps {
        Product::new(1, (batch, wide, n), of(&state, cell.state), cell.w(0)?.t(), of(&products, wide))
            .record(record, cell.field)?;
        cell.run(record, &UNIT, &arrays, Pass { count: batch * n, k, ..Pass::default() })?;
    }
    Ok((states, None))
}

/// The gradients.
pub(crate) fn backward(
    record: &mut Record<'_>,
    cell: &Cell<'_>,
    Outcome { states, ct, .. }: &Outcome,
    out: &mut Gradients,
) -> Result<()> {
    let (batch, n, wide, state, rows) = (cell.batch, cell.n, cell.wide, cell.state, cell.rows());
    let x = cell.inputs(record)?;
    let previous = cell.previous(record, states)?;
    let gates = cell.drive(record, &x)?;
    Product::new(1, (rows, wide, n), of(&previous, state), cell.w(0)?.t(), of(&gates, wide))
        .add()
        .record(record, cell.field)?;
    let (g, now) = (cell.of_step(state)?, cell.of_step(wide)?);
    record.fill(&g, None)?;
    let arrays = arrays![states, previous, ct, gates, g, now];
    for k in (0..cell.steps).rev() {
        cell.run(record, &UNIT_VJP, &arrays, Pass { count: batch * n, k, ..Pass::default() })?;
        cell.through_products(record, k, (&now, wide), (&g, state), out)?;
    }
    cell.input_gradients(record, &gates, &x, out)?;
    if out.wants("w") {
        out.put("w", cell.weight_gradient(record, wide, of(&gates, wide), of(&previous, state))?);
    }
    out.put("h0", g);
    Ok(())
}
