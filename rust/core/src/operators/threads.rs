//! Every object on any number of threads: the same bits of W, W x and all gradients, for one matrix and for stacks.

use super::stacks::{Arrays, arrays, outcome};
use super::view;
use crate::argument::{Array, Given, Kind};
use crate::scalar::{Real, Scalar, c32};
use crate::side::Side;
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

/// Of the last factor only the one that the type has.
fn own<T: Scalar>(object: &str, i: usize, shape: &[usize], batch: usize) -> Arrays<T> {
    let list = super::OBJECTS.iter().find(|(name, _)| *name == object).unwrap().1;
    let argument = list.get(i).unwrap_or(list.last().unwrap());
    match (object, argument.name) {
        ("householder", "sign") if T::PARTS == 2 => Arrays::None,
        ("householder", "sign") => Arrays::Real(vec![T::Real::of(-0.5); batch]),
        ("bounded_svd", "margin") => Arrays::Real(vec![num_traits::One::one(); batch]),
        ("cayley", "diagonal") | ("exponential", "diagonal") if T::PARTS == 1 => Arrays::None,
        ("givens", "pairs") => {
            // i != j
            let pair = |at: usize| ((at / 2 % 9) + at % 2 * (1 + at / 18 % 8)) % 9;
            Arrays::Integers((0..batch * shape.iter().product::<usize>()).map(|at| pair(at) as i64).collect())
        }
        _ => arrays(argument, shape, batch, i as u64 + 7),
    }
}

fn given<'a, T: Scalar>(shape: &'a [usize], own: &'a Arrays<T>) -> Given<'a, T> {
    match own {
        Arrays::None => Given { shape: &[], array: Array::None },
        Arrays::Own(x) => Given { shape, array: Array::Own(x) },
        Arrays::Real(x) => Given { shape, array: Array::Real(x) },
        Arrays::Integers(x) => Given { shape, array: Array::Integers(x) },
    }
}

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
            let list = super::OBJECTS.iter().find(|(name, _)| name == object).unwrap().1;
            let complex =
                list.iter().any(|argument| argument.kind == Kind::Complex) || *object == "circulant";
            if T::PARTS == 1 && complex {
                continue;
            }
            // Large matrices are shared by blocks of their own: one stack shows it.
            let large = sizes[0].iter().product::<usize>() > 1000;
            for (batch, rows) in if large { &STACKS[..1] } else { &STACKS[..] }.iter().copied() {
                let shapes: Vec<Vec<usize>> = sizes.iter().map(|own| [&[batch], *own].concat()).collect();
                let held: Vec<Arrays<T>> =
                    sizes.iter().enumerate().map(|(i, shape)| own(object, i, shape, batch)).collect();
                let given: Vec<Given<'_, T>> =
                    shapes.iter().zip(&held).map(|(shape, own)| given(shape, own)).collect();
                let op = view(object, &given).unwrap();
                let (p, q) = op.shape();
                let w_bar = fill::<T>(batch * p * q, 1.0, 1);
                let side = if rows % 2 == 0 { Side::Forward } else { Side::Adjoint };
                let (from, into) = side.features((p, q));
                let [x, ct] = [(from, 2), (into, 3)].map(|(n, seed)| fill::<T>(batch * rows * n, 1.0, seed));
                same_bits(&format!("{object} {sizes:?}, {batch} of {rows} rows"), |threads| {
                    outcome(&*op, [&w_bar, &x, &ct], rows, side, threads)
                });
            }
        }
    }
    all::<f32>();
    all::<c32>();
}
