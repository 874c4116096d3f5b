//! The transition of an operator, checked.

use crate::cpu::Cpu;
use crate::error::{Error, Result};
use crate::operator::Operator;
use crate::scalar::Scalar;
use crate::sizes::check_len;
use crate::transition::Transition;

/// The transition of an operator of n states.
pub fn transition<T: Scalar>(operator: &dyn Cpu<T>, n: usize) -> Result<Transition<'_, T>> {
    one_of(operator, n)?;
    let lacking = || Error::Unsupported("this operator serves a recurrence through its matrix only".into());
    let transition = operator.transition().ok_or_else(lacking)?;
    match transition {
        Transition::Dense(weight) => check_len("weight", weight.len(), &[n, n])?,
        Transition::Rows(rows) => one_of(rows, n)?,
        Transition::Own(own) => one_of(own, n)?,
    }
    Ok(transition)
}

/// Refuses anything but a single operator n x n.
fn one_of<T: Scalar>(operator: &dyn Operator<T>, n: usize) -> Result<()> {
    let (batch, shape) = (operator.batch(), operator.shape());
    if batch != 1 || shape != (n, n) {
        let got = format!("{batch} of {} x {}", shape.0, shape.1);
        return Err(Error::shape("transition", format!("one operator {n} x {n}"), got));
    }
    Ok(())
}
