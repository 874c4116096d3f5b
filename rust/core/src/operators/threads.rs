//! Every object on any number of threads: the same bits of W, W x and all gradients, for one matrix and for stacks.

use super::stacks::outcome;
use super::view;
use crate::scalar::{Scalar, c32};
use crate::side::Side;
use crate::testing::drawn::Drawn;
use crate::testing::fill;
use crate::testing::threads::same_bits;

/// The objects, and shapes of the arguments of one matrix.
const SHAPES: &[(&str, &[&[usize]])] = &[
    ("bounded_svd", &[&[20, 9], &[9], &[12, 9], &[]]),
    ("cayley", &[&[20 * 19 / 2], &[20], &[20], &[20]]),
    ("cayley", &[&[70 * 69 / 2], &[70], &[70], &[70]]),
    ("circulant", &[&[36]]),
    ("dense", &[&[40, 33]]),
    ("exponential", &[&[20 * 19 / 2], &[20]]),
    ("exponential", &[&[50 * 49 / 2], &[50]]),
    ("fourier", &[&[3, 36], &[2, 36], &[36]]),
    ("givens", &[&[9, 0], &[30], &[30, 2]]),
    ("hadamard", &[&[2, 24]]),
    ("householder", &[&[20, 7], &[], &[20]]),
    ("householder", &[&[70, 66], &[], &[70]]),
    ("kronecker", &[&[17, 5], &[3, 3], &[2, 2]]),
    ("mesh", &[&[8, 3, 3, 0], &[12], &[12], &[8], &[8]]),
    ("rotation", &[&[17], &[17]]),
];
/// (batch, rows): one matrix; fewer matrices than threads, and more.
const STACKS: [(usize, usize); 3] = [(1, 70), (3, 20), (70, 3)];

#[test]
fn every_object_has_shapes() {
    for (object, _) in super::OBJECTS {
        assert!(SHAPES.iter().any(|(name, _)| name == object), "{object}");
    }
}

#[test]
fn calls_have_the_bits_of_one_thread() {
    fn all<T: Scalar>() {
        for (object, sizes) in SHAPES {
            // Large matrices are shared by blocks of their own: one stack shows it.
            let large = sizes[0].iter().product::<usize>() > 1000;
            for (batch, rows) in if large { &STACKS[..1] } else { &STACKS[..] }.iter().copied() {
                let Some(drawn) = Drawn::<T>::stack(object, sizes, batch) else { continue };
                let given = drawn.given();
                let op = view(object, &given).unwrap();
                let (p, q) = op.shape();
                let w_bar = fill::<T>(batch * p * q, 1.0, 1);
                let side = if rows % 2 == 0 { Side::Forward } else { Side::Adjoint };
                let (from, into) = side.features((p, q));
                let [x, ct] = [(from, 2), (into, 3)].map(|(n, seed)| fill::<T>(batch * rows * n, 1.0, seed));
                same_bits(&format!("{object} {sizes:?}, {batch} of {rows} rows"), |threads| {
                    outcome(&*op, &drawn, [&w_bar, &x, &ct], rows, side, threads)
                });
            }
        }
    }
    all::<f32>();
    all::<c32>();
}
