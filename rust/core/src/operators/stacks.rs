//! Stacks of operators on rows against their matrices one by one: every call, one thread and several.

use super::view;
use crate::argument::{Array, Given};
use crate::budget::Budget;
use crate::cpu::Cpu;
use crate::scalar::{Real, Scalar, c64, parts};
use crate::side::Side;
use crate::testing::drawn::{Drawn, part};
use crate::testing::{every_type, fill, near};

/// W, W x, x_bar, x_bar alone, and the gradients from those of W and of W x, all as real numbers.
pub fn outcome<T: Scalar>(
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

/// The stack against its matrices.
fn check<T: Scalar>(drawn: &Drawn<T>, rows: usize) {
    let given = drawn.given();
    let op = view(drawn.object, &given).unwrap();
    let (batch, (p, q)) = (op.batch(), op.shape());
    for side in [Side::Forward, Side::Adjoint] {
        let (from, into) = side.features((p, q));
        let w_bar = fill::<T>(batch * p * q, 1.0, 1);
        let (x, ct) = (fill::<T>(batch * rows * from, 1.0, 2), fill::<T>(batch * rows * into, 1.0, 3));
        let all = outcome(&*op, drawn, [&w_bar, &x, &ct], rows, side, 1);
        for threads in [2, 3] {
            let again = outcome(&*op, drawn, [&w_bar, &x, &ct], rows, side, threads);
            assert!(again == all, "{threads} threads differ");
        }
        for k in 0..batch {
            let member = drawn.member(k);
            let one = member.given();
            let one = view(drawn.object, &one).unwrap();
            let arrays = [&w_bar, &x, &ct].map(|x| part(x, k, batch));
            for (got, expected) in all.iter().zip(outcome(&*one, &member, arrays, rows, side, 1)) {
                // the same numbers, up to the order of summation
                near(part(got, k, batch), &expected, 100.0 * T::Real::EPS.f64(), drawn.object);
            }
        }
    }
}

/// (batch, rows): less and more rows than a block, few and many matrices.
const STACKS: [(usize, usize); 6] = [(1, 40), (3, 1), (2, 7), (5, 40), (20, 3), (3, 0)];

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

#[test]
fn stacks_equal_their_matrices() {
    fn all<T: Scalar>() {
        for (object, sizes) in OBJECTS {
            for (batch, rows) in STACKS {
                if let Some(drawn) = Drawn::<T>::stack(object, sizes, batch) {
                    check(&drawn, rows);
                }
            }
        }
    }
    every_type!(all());
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
