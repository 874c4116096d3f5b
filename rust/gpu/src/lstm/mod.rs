//! The LSTM over a sequence, real numbers, of `isometry_core::recurrence::lstm`: a state is (h, c), the order of the gates is i, f, g, o.
//!
//! Forward, a step is a product with all matrices and a pass over its rows. Backward computes the arguments of the gates of all steps by one
//! product, from the states alone; a step is then a pass, which replaces them by their cotangents, and a product, and products over
//! all rows give the gradients.

#[cfg(test)]
mod tests;

use crate::cell::{Arguments, Cell, Form, Gradients, Pass, Wanted, of};
use crate::device::Record;
use crate::operator::submitted;
use crate::product::Product;
use crate::shader::Shader;
use crate::{Array, Field};
use isometry_core::activation::Activation;
use isometry_core::{Error, Result};

/// unit.wgsl
pub(crate) static UNIT: Shader = Shader { name: "lstm", source: include_str!("unit.wgsl"), variants: &[&[]] };
/// unit_vjp.wgsl
pub(crate) static UNIT_VJP: Shader =
    Shader { name: "lstm_vjp", source: include_str!("unit_vjp.wgsl"), variants: &[&[]] };

const FORM: Form = Form { w: 4, u: 4, state: 2, most: 4 };

fn checked<'a>(arguments: &Arguments<'a>) -> Result<Cell<'a>> {
    if arguments.activation != Activation::Tanh {
        return Err(Error::value("activation", "must be tanh"));
    }
    Cell::new(arguments, FORM, 0)
}

/// The states, (T, B, 2n); zeros past the ends of sequences. W is (4n, n), U (4n, d), h0 (B, 2n).
pub fn forward(arguments: &Arguments<'_>) -> Result<Array> {
    submitted(arguments.x.context(), |record| record_forward(record, arguments))
}

/// The same in a call that is being recorded.
pub(crate) fn record_forward(record: &mut Record, arguments: &Arguments<'_>) -> Result<Array> {
    let cell = checked(arguments)?;
    let (batch, n, wide) = (cell.batch, cell.n, cell.wide);
    let x = cell.inputs(record)?;
    let inputs = cell.drive(record, &x)?;
    let states = cell.of_rows(cell.state)?;
    let (state, products) = (cell.of_step(cell.state)?, cell.of_step(wide)?);
    record.fill(&state, arguments.h0)?;
    let arrays = [("inputs", &inputs), ("products", &products), ("state", &state), ("states", &states)];
    for k in 0..cell.steps {
        Product::new(1, (batch, wide, n), of(&state, cell.state), cell.w(0).t(), of(&products, wide))
            .record(record, Field::Real)?;
        cell.run(record, &UNIT, &arrays, Pass { count: batch * n, k, ..Pass::default() })?;
    }
    Ok(states)
}

/// The gradients from the states, zeros past the ends of sequences, and their cotangents, (T, B, 2n), ignored there.
pub fn backward(arguments: &Arguments<'_>, states: &Array, ct: &Array, wanted: Wanted) -> Result<Gradients> {
    submitted(arguments.x.context(), |record| record_backward(record, arguments, states, ct, wanted))
}

/// The same in a call that is being recorded.
pub(crate) fn record_backward(
    record: &mut Record,
    arguments: &Arguments<'_>,
    states: &Array,
    ct: &Array,
    wanted: Wanted,
) -> Result<Gradients> {
    let cell = checked(arguments)?;
    cell.check_states("states", states)?;
    cell.check_states("ct", ct)?;
    cell.phi.check_wanted(wanted.activation_bias)?;
    let (batch, n, wide, state, rows) = (cell.batch, cell.n, cell.wide, cell.state, cell.rows());
    let x = cell.inputs(record)?;
    let previous = cell.previous(record, states)?;
    let gates = cell.drive(record, &x)?;
    Product::new(1, (rows, wide, n), of(&previous, state), cell.w(0).t(), of(&gates, wide))
        .add()
        .record(record, Field::Real)?;
    let (g, now) = (cell.of_step(state)?, cell.of_step(wide)?);
    record.fill(&g, None)?;
    let arrays = [
        ("states", states),
        ("previous", &previous),
        ("ct", ct),
        ("gates", &gates),
        ("g", &g),
        ("now", &now),
    ];
    for k in (0..cell.steps).rev() {
        cell.run(record, &UNIT_VJP, &arrays, Pass { count: batch * n, k, ..Pass::default() })?;
        Product::new(1, (batch, n, wide), of(&now, wide), cell.w(0), of(&g, state))
            .add()
            .record(record, Field::Real)?;
    }
    let mut out = cell.input_gradients(record, &gates, &x, wanted)?;
    if wanted.w {
        let bar = cell.weight_gradient(record, wide, of(&gates, wide), of(&previous, state))?;
        out.w = Some(vec![bar]);
    }
    if wanted.h0 {
        out.h0 = Some(g);
    }
    Ok(out)
}
