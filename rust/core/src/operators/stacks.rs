//! Stacks of every object: every call has the same bits on any number of threads; arguments of another batch.

use super::view;
use crate::budget::Budget;
use crate::cpu::Cpu;
use crate::scalar::{Real, Scalar, c32, parts};
use crate::side::Side;
use crate::testing::drawn::{Drawn, Held};
use crate::testing::fill;
use crate::testing::threads::same_bits;

/// W, W x, x_bar, x_bar alone, and the gradients from those of W and of W x, all as real numbers.
fn outcome<T: Scalar>(
    op: &dyn Cpu<T>,
    drawn: &Drawn<T>,
    [w_bar, x, ct]: [&[T]; 3],
    rows: usize,
    side: Side,
    threads: usize,
) -> Vec<Vec<f64>> {
    let budget = Budget::of(threads);
    let [mut w, mut y, mut x_bar, mut alone] = [w_bar, ct, x, x].map(|like| vec![T::one(); like.len()]);
    let (mut of_w, mut of_x) = (drawn.rooms(), drawn.rooms());
    op.matrix(&mut w, None, &budget).unwrap();
    op.matrix_vjp(None, w_bar, &mut of_w.bars(), &budget).unwrap();
    op.apply(x, rows, side, &mut y, None, &budget).unwrap();
    op.apply_vjp(None, x, ct, rows, side, &mut of_x.bars(), Some(&mut x_bar), &budget).unwrap();
    op.apply_vjp(None, x, ct, rows, side, &mut [], Some(&mut alone), &budget).unwrap();
    let wide = |x: Vec<T>| parts(&x).iter().map(|x| x.f64()).collect();
    let mut all: Vec<Vec<f64>> = [w, y, x_bar, alone].map(wide).into();
    all.extend([of_w, of_x].iter().flat_map(Drawn::numbers));
    all
}

/// The objects, and shapes of the arguments of one matrix; an entry of a list is a factor.
pub const SHAPES: &[(&str, &[&[usize]])] = &[
    ("bounded_svd", &[&[20, 9], &[9], &[12, 9], &[]]),
    ("cayley", &[&[20 * 19 / 2], &[20], &[20], &[20]]),
    ("cayley", &[&[70 * 69 / 2], &[70], &[70], &[70]]),
    ("circulant", &[&[36]]),
    ("circulant", &[&[37]]),
    ("dense", &[&[40, 33]]),
    ("exponential", &[&[20 * 19 / 2], &[20]]),
    ("exponential", &[&[50 * 49 / 2], &[50]]),
    ("fourier", &[&[3, 36], &[2, 36], &[36]]),
    ("fourier", &[&[3, 37], &[2, 37], &[37]]),
    ("givens", &[&[9, 0], &[30], &[30, 2]]),
    ("hadamard", &[&[2, 24]]),
    ("householder", &[&[20, 7], &[], &[20]]),
    ("householder", &[&[70, 66], &[], &[70]]),
    ("kronecker", &[&[17, 5], &[3, 3], &[2, 2]]),
    ("kronecker", &[&[2, 3], &[4, 1], &[1, 2]]),
    ("mesh", &[&[5, 3, 2, 0], &[6], &[6], &[5], &[5]]),
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

/// Every object with every stack; large matrices are shared by blocks of their own, which one stack shows.
fn same<T: Scalar>() {
    for (object, sizes) in SHAPES {
        let large = sizes[0].iter().product::<usize>() > 1000;
        for (batch, rows) in if large { &STACKS[..1] } else { &STACKS[..] }.iter().copied() {
            let Some(drawn) = Drawn::<T>::stack(object, sizes, batch) else { continue };
            let given = drawn.given();
            let op = view(object, &given).unwrap();
            let (p, q) = op.shape();
            let side = if rows % 2 == 0 { Side::Forward } else { Side::Adjoint };
            let (from, into) = side.features((p, q));
            let w_bar = fill::<T>(batch * p * q, 1.0, 1);
            let [x, ct] = [(from, 2), (into, 3)].map(|(n, seed)| fill::<T>(batch * rows * n, 1.0, seed));
            same_bits(&format!("{object} {sizes:?}, {batch} of {rows} rows"), |threads| {
                outcome(&*op, &drawn, [&w_bar, &x, &ct], rows, side, threads)
            });
        }
    }
}

mod threads {
    use super::*;

    #[test]
    fn calls_have_the_bits_of_one_thread() {
        same::<f32>();
        same::<c32>();
    }
}

#[test]
fn a_batch_that_an_argument_lacks_is_refused() {
    fn check<T: Scalar>() {
        for (object, sizes) in SHAPES {
            let [drawn, fewer] = [3, 2].map(|batch| Drawn::<T>::stack(object, sizes, batch));
            let (Some(drawn), Some(fewer)) = (drawn, fewer) else { continue };
            let given = |own: &Drawn<T>| -> Vec<_> {
                (0..own.held.len()).filter(|&i| !matches!(own.held[i].1, Held::None)).collect()
            };
            for &i in given(&drawn).iter().filter(|_| given(&drawn).len() > 1) {
                let mut wrong = drawn.clone();
                wrong.held[i] = fewer.held[i].clone();
                assert!(view(object, &wrong.given()).is_err(), "{object} {sizes:?}, argument {i}");
            }
        }
    }
    check::<f32>();
    check::<c32>();
}
