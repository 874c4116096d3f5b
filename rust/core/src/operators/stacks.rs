//! Stacks of operators on rows against their matrices one by one: every call, one thread and several.

use super::view;
use crate::argument::{Argument, Array, Bar, Given, Kind};
use crate::budget::Budget;
use crate::cpu::Cpu;
use crate::scalar::{Real, Scalar, c32, c64};
use crate::side::Side;
use crate::testing::{fill, wide};
use num_traits::Float;

/// The numbers of an argument, (batch, each).
#[derive(Clone, Debug, PartialEq)]
pub enum Numbers<T: Scalar> {
    Own(Vec<T>),
    Real(Vec<T::Real>),
    /// Without gradient.
    Fixed,
}

impl<T: Scalar> Numbers<T> {
    fn of(array: Array<'_, T>, trained: bool) -> Self {
        match array {
            Array::Own(x) if trained => Numbers::Own(x.to_vec()),
            Array::Real(x) if trained => Numbers::Real(x.to_vec()),
            _ => Numbers::Fixed,
        }
    }

    fn bar(&mut self) -> Bar<'_, T> {
        match self {
            Numbers::Own(x) => Bar::Own(x),
            Numbers::Real(x) => Bar::Real(x),
            Numbers::Fixed => Bar::None,
        }
    }

    /// Those of matrix k of `batch`.
    fn one(&self, k: usize, batch: usize) -> Self {
        match self {
            Numbers::Own(x) => Numbers::Own(part(x, k, batch).to_vec()),
            Numbers::Real(x) => Numbers::Real(part(x, k, batch).to_vec()),
            Numbers::Fixed => Numbers::Fixed,
        }
    }

    fn near(&self, other: &Self, what: &str) {
        match (self, other) {
            (Numbers::Own(a), Numbers::Own(b)) => near(a, b, what),
            (Numbers::Real(a), Numbers::Real(b)) => near(a, b, what),
            _ => assert_eq!(self, other),
        }
    }
}

/// The same numbers, up to the order of summation.
#[track_caller]
fn near<T: Scalar>(got: &[T], expected: &[T], what: &str) {
    crate::testing::near(got, &wide(expected), 100.0 * T::Real::EPS.f64(), what);
}

/// W, the gradients from that of W, W x, the gradients from that of W x, x_bar; and x_bar alone.
pub type Outcome<T> = (Vec<T>, Vec<Numbers<T>>, Vec<T>, Vec<Numbers<T>>, [Vec<T>; 2]);

pub fn outcome<T: Scalar>(
    op: &dyn Cpu<T>,
    [w_bar, x, ct]: [&[T]; 3],
    rows: usize,
    side: Side,
    threads: usize,
) -> Outcome<T> {
    let (budget, count) = (Budget::of(threads), 9);
    let room = || -> Vec<Numbers<T>> {
        let trained =
            |i: usize| op.arguments().get(i).or(op.arguments().last()).is_some_and(|own| own.trained);
        let listed = |i: usize| i < op.arguments().len() || op.arguments().iter().any(|own| own.list);
        (0..count).filter(|&i| listed(i)).map(|i| Numbers::of(op.argument(i), trained(i))).collect()
    };
    let mut w = vec![T::one(); w_bar.len()];
    op.matrix(&mut w, None, &budget).unwrap();
    let (mut of_w, mut of_x) = (room(), room());
    let views = |all: &'_ mut Vec<Numbers<T>>, f: &mut dyn FnMut(&mut [Bar<'_, T>])| {
        f(&mut all.iter_mut().map(Numbers::bar).collect::<Vec<_>>());
    };
    views(&mut of_w, &mut |bars| op.matrix_vjp(None, w_bar, bars, &budget).unwrap());
    let (mut y, mut x_bar, mut alone) =
        (vec![T::one(); ct.len()], vec![T::one(); x.len()], vec![T::one(); x.len()]);
    op.apply(x, rows, side, &mut y, None, &budget).unwrap();
    views(&mut of_x, &mut |bars| {
        op.apply_vjp(None, x, ct, rows, side, bars, Some(&mut x_bar), &budget).unwrap();
    });
    op.apply_vjp(None, x, ct, rows, side, &mut [], Some(&mut alone), &budget).unwrap();
    (w, of_w, y, of_x, [x_bar, alone])
}

/// Calls its second argument with matrix k alone.
type Single<'a, T> = &'a dyn Fn(usize, &mut dyn FnMut(&dyn Cpu<T>));

/// The stack against its matrices.
fn check<T: Scalar>(op: &dyn Cpu<T>, rows: usize, single: Single<'_, T>) {
    let (batch, (p, q)) = (op.batch(), op.shape());
    for side in [Side::Forward, Side::Adjoint] {
        let (from, into) = side.features((p, q));
        let w_bar = fill::<T>(batch * p * q, 1.0, 1);
        let (x, ct) = (fill::<T>(batch * rows * from, 1.0, 2), fill::<T>(batch * rows * into, 1.0, 3));
        let all = outcome(op, [&w_bar, &x, &ct], rows, side, 1);
        for threads in [2, 3] {
            assert!(outcome(op, [&w_bar, &x, &ct], rows, side, threads) == all, "{threads} threads differ");
        }
        for k in 0..batch {
            single(k, &mut |one| {
                let arrays = [part(&w_bar, k, batch), part(&x, k, batch), part(&ct, k, batch)];
                let expected = outcome(one, arrays, rows, side, 1);
                near(part(&all.0, k, batch), &expected.0, "W");
                near(part(&all.2, k, batch), &expected.2, "W x");
                for (got, expected) in all.4.iter().zip(&expected.4) {
                    near(part(got, k, batch), expected, "x_bar");
                }
                for (got, expected) in [(&all.1, &expected.1), (&all.3, &expected.3)] {
                    assert_eq!(got.len(), expected.len());
                    for (got, expected) in got.iter().zip(expected) {
                        got.one(k, batch).near(expected, "gradient");
                    }
                }
            });
        }
    }
}

/// (batch, rows): less and more rows than a block, few and many matrices.
const STACKS: [(usize, usize); 6] = [(1, 40), (3, 1), (2, 7), (5, 40), (20, 3), (3, 0)];

fn part<X>(x: &[X], k: usize, batch: usize) -> &[X] {
    let each = x.len() / batch;
    &x[k * each..(k + 1) * each]
}

/// Objects on rows, and the shapes of the arguments of one matrix; an entry of a list is a factor.
const OBJECTS: &[(&str, &[&[usize]])] = &[
    ("rotation", &[&[1], &[1]]),
    ("rotation", &[&[3], &[3]]),
    ("rotation", &[&[17], &[17]]),
    ("mesh", &[&[1, 2, 1, 0], &[0], &[0], &[1], &[1]]),
    ("mesh", &[&[5, 3, 2, 0], &[6], &[6], &[5], &[5]]),
    ("mesh", &[&[8, 3, 3, 0], &[12], &[12], &[8], &[8]]),
    ("kronecker", &[&[2, 3], &[4, 1], &[1, 2]]),
    ("kronecker", &[&[3, 3], &[17, 5], &[2, 2]]),
    ("kronecker", &[&[2, 2], &[2, 2], &[2, 2], &[2, 2]]),
    ("kronecker", &[&[5, 4]]),
    ("hadamard", &[&[2, 12]]),
    ("circulant", &[&[1]]),
    ("circulant", &[&[37]]),
    ("fourier", &[&[3, 1], &[2, 1], &[1]]),
    ("fourier", &[&[3, 6], &[2, 6], &[6]]),
    ("fourier", &[&[3, 37], &[2, 37], &[37]]),
];

/// The arrays of a stack, by their kinds.
pub enum Arrays<T: Scalar> {
    None,
    Own(Vec<T>),
    Real(Vec<T::Real>),
    Integers(Vec<i64>),
}

pub fn arrays<T: Scalar>(argument: &Argument, shape: &[usize], batch: usize, seed: u64) -> Arrays<T> {
    let (len, n) = (batch * shape.iter().product::<usize>(), *shape.last().unwrap());
    let numbers = || fill::<T::Real>(len, 3.0, seed);
    // multiples of k + 1 where that has an inverse modulo n
    let place = |at: usize| (at % n * if n == 37 { at / n + 1 } else { 1 } + at / n) % n;
    match argument.kind {
        Kind::Integer => Arrays::Integers((0..len).map(|at| place(at) as i64).collect()),
        Kind::Complex | Kind::Angles if T::PARTS == 1 => Arrays::None,
        Kind::Angles => Arrays::Real(numbers()),
        Kind::Real if argument.trained => Arrays::Real(numbers()),
        Kind::Real if T::PARTS == 1 => Arrays::Real(numbers().iter().map(|x| Float::signum(*x)).collect()),
        Kind::Real => Arrays::None,
        _ => Arrays::Own(fill::<T>(len, 1.0, seed)),
    }
}

#[test]
fn stacks_equal_their_matrices() {
    fn all<T: Scalar>() {
        for (object, sizes) in OBJECTS {
            let list = super::OBJECTS.iter().find(|(name, _)| name == object).unwrap().1;
            let argument = |i: usize| list.get(i).unwrap_or(list.last().unwrap());
            // complex alone: an argument that is, or angles that must be given
            let complex =
                |i| argument(i).kind == Kind::Complex || (i == 0 && argument(i).kind == Kind::Angles);
            if T::PARTS == 1 && (0..sizes.len()).any(complex) {
                continue;
            }
            for (batch, rows) in STACKS {
                let shapes: Vec<Vec<usize>> = sizes.iter().map(|own| [&[batch], *own].concat()).collect();
                let made = (7..).zip(*sizes).enumerate();
                let own: Vec<Arrays<T>> =
                    made.map(|(i, (seed, own))| arrays(argument(i), own, batch, seed)).collect();
                let given = |(shape, own)| match own {
                    &Arrays::None => Given { shape: &[], array: Array::None },
                    Arrays::Own(x) => Given { shape, array: Array::Own(x) },
                    Arrays::Real(x) => Given { shape, array: Array::Real(x) },
                    Arrays::Integers(x) => Given { shape, array: Array::Integers(x) },
                };
                let all: Vec<Given<'_, T>> = shapes.iter().map(Vec::as_slice).zip(&own).map(given).collect();
                check(&*view(object, &all).unwrap(), rows, &|k, f| {
                    let one: Vec<_> = all.iter().map(|given| given.member(k)).collect();
                    f(&*view(object, &one).unwrap());
                });
            }
        }
    }
    all::<f32>();
    all::<f64>();
    all::<c32>();
    all::<c64>();
}

#[test]
fn a_batch_that_an_argument_lacks_is_refused() {
    let (numbers, other) = (vec![1.0; 24], vec![1.0; 24]);
    let real = |shape: &'static [usize]| Given::<c64> {
        shape,
        array: Array::Real(&numbers[..shape.iter().product()]),
    };
    let refused = |object: &str, given: &[Given<'_, c64>]| view(object, given).err().unwrap().to_string();
    assert_eq!(refused("rotation", &[real(&[3, 4]), real(&[2, 4])]), "end: expected 12 elements, got 8");
    let none = Given { shape: &[], array: Array::None };
    let frame = Given { shape: &[4, 2, 1, 0], array: Array::Own(&[]) };
    assert!(view("mesh", &[frame, real(&[2, 3]), real(&[2, 3]), real(&[2, 4]), none]).is_ok());
    assert!(refused("mesh", &[frame, real(&[2, 3]), real(&[3]), none, none]).starts_with("phi: expected 6"));
    assert!(
        refused("mesh", &[frame, real(&[2, 3]), none, real(&[4]), none]).starts_with("phases: expected 8")
    );
    let framed = Given { shape: &[3, 4, 2, 1, 0], array: Array::Own(&[]) };
    assert!(refused("mesh", &[framed, real(&[2, 3]), none, none, none]).starts_with("frame"));
    let own: Vec<c64> = other.iter().map(|&x| c64::new(x, 0.0)).collect();
    let factor = |shape: &'static [usize]| Given { shape, array: Array::Own(&own[..shape.iter().product()]) };
    assert!(view("kronecker", &[factor(&[2, 2, 3]), factor(&[2, 3, 1])]).is_ok());
    assert!(refused("kronecker", &[factor(&[2, 2, 3]), factor(&[3, 1])]).starts_with("factors: expected 2"));
    let permutation = Given { shape: &[2, 2], array: Array::Integers(&[0, 1, 1, 0]) };
    assert!(view("fourier", &[real(&[2, 3, 2]), factor(&[2, 2, 2]), permutation]).is_ok());
    assert!(
        refused("fourier", &[real(&[3, 2]), factor(&[2, 2, 2]), permutation])
            .starts_with("phases: expected 12")
    );
}
