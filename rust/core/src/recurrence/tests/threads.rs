//! The affine cell on any number of threads: every kind of step, few sequences and many; ensembles.

use super::super::*;
use super::shears::Shears;
use crate::activation::Activation;
use crate::argument::Bar;
use crate::budget::Budget;
use crate::cpu::Cpu;
use crate::operators::Last;
use crate::operators::dense::Dense;
use crate::operators::householder::Householder;
use crate::scalar::{Scalar, c32};
use crate::testing::fill;
use crate::testing::threads::same_bits;

/// States and all gradients.
fn results<T: Scalar>(op: &dyn Cpu<T>, parameters: usize, batch: usize, threads: usize) -> Vec<Vec<T>> {
    let (n, features, steps, budget) = (op.shape().0, 3, 6, Budget::of(threads));
    let (x, v) = (fill::<T>(steps * batch * features, 1.0, 1), fill::<T>(n * features, 1.0, 2));
    let (h0, bias) = (fill::<T>(batch * n, 1.0, 3), fill::<T>(n, 0.3, 4));
    let run =
        Run { h0: Some(&h0), activation: Activation::Tanh, ..Run::new([steps, batch, features, n], &x) };
    let sequence = Sequence { run, input_weight: &v, bias: Some(&bias), on_input: true };
    let mut states = vec![T::one(); steps * batch * n];
    forward(op, &sequence, &mut states, &budget).unwrap();
    let ct = fill::<T>(states.len(), 1.0, 5);
    let [mut own, mut xb, mut vb, mut hb, mut bb] =
        [parameters, x.len(), v.len(), h0.len(), n].map(|len| vec![T::one(); len]);
    let bars = &mut [&mut xb, &mut vb, &mut hb, &mut bb].map(|bar| Bar::Own(bar));
    backward(op, &mut [Bar::Own(&mut own)], &sequence, &states, &ct, bars, &budget).unwrap();
    vec![states, own, xb, vb, hb, bb]
}

fn steps<T: Scalar>() {
    let n = 34;
    for batch in [1, 5, 70] {
        let w = fill::<T>(n * n, 0.2, 6);
        let dense = Dense::new(&w, 1, n, n).unwrap();
        same_bits(&format!("a matrix, {batch}"), |threads| results(&dense, n * n, batch, threads));
        // only the columns of a matrix are shared
        if batch > 1 {
            let vectors = &w[..7 * n];
            let reflections = Householder::new(vectors, Last::None, 1, n, 7).unwrap();
            same_bits(&format!("reflections, {batch}"), |threads| {
                results(&reflections, 7 * n, batch, threads)
            });
            let parameters = &w[..2 * (n - 1)];
            let shears = Shears::new(parameters, n);
            same_bits(&format!("rows, {batch}"), |threads| {
                results(&shears, parameters.len(), batch, threads)
            });
        }
    }
}

#[test]
fn any_number_of_threads_has_the_same_bits() {
    steps::<f32>();
    steps::<c32>();
}
