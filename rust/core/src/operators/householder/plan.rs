//! The route of a product of reflections inside a recurrence.
//!
//! Factored steps cost 4 n m per state, dense ones 2 n^2; the shorter inner products of the former put the measured
//! crossover at m = 0.4 n, nearly independent of batch and n. Forming W and pulling W_bar back cost about n steps, which
//! moves it to n/2 if T B < 2 n.

use crate::argument::tail;
use crate::transition::{Route, Workload};

/// The cheaper route for m reflections in n dimensions over T steps of B sequences.
fn plan(m: usize, n: usize, steps: usize, batch: usize) -> Route {
    // u128: the products below cannot overflow
    let [m, n, steps, batch] = [m, n, steps, batch].map(|count| count as u128);
    let few = steps * batch < 2 * n;
    let factored = m == 0 || if few { 2 * m < n } else { 5 * m < 2 * n };
    if factored { Route::Factored } else { Route::Dense }
}

/// The route in a recurrence; a gated cell does not take the steps of reflections.
pub fn route(shapes: &[&[usize]], workload: Workload) -> Route {
    let [n, m] = tail(shapes[0]);
    if workload.gated { Route::Dense } else { plan(m, n, workload.steps, workload.batch) }
}
