//! Every call of a stack of every object against its matrices one by one, which are unitary, at sizes on both sides of every
//! way to compute them. What the matrices are is a law in Python.

use super::stacks::SHAPES;
use super::view;
use crate::argument::Array;
use crate::budget::Budget;
use crate::scalar::{Real, Scalar};
use crate::testing::drawn::Drawn;
use crate::testing::rows::{self, Numbers};
use crate::testing::square::unitarity;
use crate::testing::{Random, every_type, members, within_work};

/// An object, and the shapes of the arguments of one matrix, without those that are not given; matrices, rows.
type Case<'a> = (&'static str, &'a [&'a [usize]], [usize; 2]);

/// Objects without a limit on the values of their arguments are no unitary matrices.
const FREE: [&str; 4] = ["bounded_svd", "dense", "hadamard", "kronecker"];

fn skew(case: &mut dyn FnMut(Case<'_>)) {
    for n in (1..=40).chain([48, 63, 64, 65, 66, 70, 100, 150]) {
        let triangle = [n * (n - 1) / 2];
        let batches = if n <= 40 { [[1, 17], [3, 33]][n % 2] } else { [1, 3] };
        for (i, &batch) in batches.iter().enumerate().take(if n < 100 { 2 } else { 1 }) {
            let sizes = [batch, (n + i) % 4];
            case(("cayley", &[&triangle[..], &[n], &[n], &[n]][..[1, 3, 4][(n + i) % 3]], sizes));
            case(("exponential", &[&triangle[..], &[n]][..1 + (n + i) % 2], sizes));
        }
    }
    case(("cayley", &[&[70 * 69 / 2], &[70], &[70], &[70]], [1, 90]));
}

fn reflections(case: &mut dyn FnMut(Case<'_>)) {
    let mut shape = |batch, n, m, rows, factors| {
        case(("householder", &[&[n, m][..], &[], &[n]][..factors], [batch, rows]));
    };
    for n in 1..=40 {
        for m in [0, 1, 2, n / 2, n - 1, n, n + 3] {
            shape(1 + (n + m) % 2, n, m, [0, 1, 2, 3, 7, 12, 50][(n + m) % 7], 1 + (n * 7 + m) % 3);
        }
    }
    for rows in [0, 1, 2, 3, 7, 9, 50] {
        for factors in 1..=3 {
            shape(3, 8, 2, rows, factors);
            shape(1, 17, 19, rows, factors);
            shape(1, 70, 66, rows, factors);
        }
    }
    for n in [63, 64, 65, 130] {
        for m in [5, n - 1, n, n + 3] {
            shape(1, n, m, 10, 3);
        }
    }
    for (n, m) in [(1, 5), (2, 9), (3, 40), (16, 70)] {
        for rows in [1, 12, 90] {
            shape(2, n, m, rows, 3);
        }
    }
    for (batch, n, m, rows) in [
        (1, 130, 10, 300),
        (1, 40, 150, 140),
        (1, 9, 7, 1100),
        (9, 20, 6, 5),
        (40, 33, 33, 2),
        (0, 4, 3, 2),
        (2, 1, 0, 2),
    ] {
        shape(batch, n, m, rows, 2);
    }
}

fn transforms(case: &mut dyn FnMut(Case<'_>)) {
    for n in [1, 2, 3, 4, 5, 6, 7, 8, 12, 15, 16, 17, 31, 37, 41, 62, 64, 74, 97, 128] {
        for rows in [0, 1, 5, 19] {
            case(("circulant", &[&[n]], [1 + n % 3, rows]));
            case(("fourier", &[&[3, n], &[2, n], &[n]], [1 + n % 3, rows]));
        }
    }
    for n in [1, 2, 4, 8, 12, 16, 20, 24, 28, 32, 36, 64, 96, 128, 160, 256, 512] {
        for rounds in [1, 2, 3] {
            case(("hadamard", &[&[rounds, n]], [1, if n < 20 { 5 } else { 2 }]));
        }
    }
    for (sizes, shape) in [
        ([3, 3], [2, 8]),
        ([5, 1], [1, 12]),
        ([4, 3], [0, 4]),
        ([0, 2], [2, 4]),
        ([2, 0], [1, 20]),
        ([17, 7], [1, 2]),
    ] {
        case(("hadamard", &[&shape], sizes));
    }
}

fn rotations(case: &mut dyn FnMut(Case<'_>)) {
    for (n, m, rows) in [(1, 0, 2), (2, 3, 1), (5, 9, 0), (7, 20, 11), (17, 40, 5)] {
        case(("givens", &[&[n, 0], &[m], &[m, 2]], [1 + rows % 3, rows]));
    }
    for (n, rows) in [(2, 1), (2, 3), (3, 1), (5, 0), (5, 1), (7, 11), (16, 3), (17, 5), (33, 1), (100, 3)] {
        case(("rotation", &[&[n], &[n]], [1 + rows % 3, rows]));
    }
    let bricks = [(1, 3), (2, 1), (2, 4), (3, 2), (5, 5), (16, 2), (23, 3), (38, 4)];
    let bricks = bricks.iter().flat_map(|&(n, count)| [(n, count, 1), (n, count, 2)]);
    for (n, count, kind) in bricks.chain((0..7).map(|q| (1 << q, q, 3))) {
        let layer = |l: usize| {
            if kind == 3 { n / 2 } else { (n - (if kind == 1 { l } else { count - 1 - l }) % 2) / 2 }
        };
        let (frame, pairs) = ([n, count, kind, 0], (0..count).map(layer).sum::<usize>());
        for (rows, given) in [(0, 5), (1, 3), (7, 5), (5, 2)] {
            case(("mesh", &[&frame[..], &[pairs], &[pairs], &[n], &[n]][..given], [1 + n % 3, rows]));
        }
    }
}

fn products(case: &mut dyn FnMut(Case<'_>)) {
    for (batch, p, q, rows) in
        [(1, 5, 3, 4), (3, 16, 33, 7), (1, 1, 1, 0), (2, 40, 7, 1), (0, 3, 3, 3), (1, 150, 130, 90)]
    {
        case(("dense", &[&[p, q]], [batch, rows]));
    }
    for (batch, [n, k, r], rows) in [
        (1, [5, 5, 5], 2),
        (2, [6, 4, 3], 1),
        (1, [4, 7, 2], 40),
        (3, [5, 5, 5], 30),
        (2, [1, 1, 1], 2),
        (1, [3, 2, 2], 0),
        (1, [9, 40, 300], 2),
    ] {
        case(("bounded_svd", &[&[n, r], &[r], &[k, r], &[]], [batch, rows]));
    }
    let factors: [&[&[usize]]; 7] = [
        &[&[2, 2][..]; 7],
        &[&[2, 3], &[4, 1], &[1, 2]],
        &[&[5, 4]],
        &[&[1, 1], &[1, 3]],
        &[&[3, 3], &[17, 5], &[2, 2]],
        &[&[20, 18], &[3, 2]],
        &[&[2, 5], &[33, 2], &[3, 40]],
    ];
    for (factors, rows) in factors.into_iter().flat_map(|factors| [0, 1, 7].map(|rows| (factors, rows))) {
        case(("kronecker", factors, [1 + rows % 3, rows]));
    }
}

/// The matrices of a stack, each by itself.
fn matrices<T: Scalar>(drawn: &Drawn<T>, batch: usize) -> Vec<T> {
    let one = |k: usize| {
        let member = drawn.member(k);
        let given = member.given();
        let op = view(drawn.object, &given).unwrap();
        let (p, q) = op.shape();
        let mut w = vec![T::zero(); p * q];
        op.matrix(&mut w, None, &Budget::of(1)).unwrap();
        w
    };
    (0..batch).flat_map(one).collect()
}

fn check<T: Scalar>((object, shapes, [batch, rows]): Case<'_>) {
    let Some(drawn) = Drawn::<T>::stack(object, shapes, batch) else { return };
    let given = drawn.given();
    let op = view(object, &given).unwrap();
    let (n, what) = (op.shape().0, format!("{object} {shapes:?}, {batch} of {rows} rows"));
    if !within_work(&[batch, n, n, shapes[0].iter().product::<usize>() + rows]) {
        return;
    }
    // a sign other than +1 and -1 scales
    let scaled = object == "householder" && matches!(op.argument(1), Array::Real(_));
    if !FREE.contains(&object) && !scaled {
        // every one of m reflections rounds
        let bound =
            if object == "householder" { 20.0 * (1.0 + shapes[0][1] as f64 / n as f64) } else { 20.0 };
        // all together: matrices of a stack may be computed in another way than one
        let unitary = |drawn: &Drawn<T>| {
            let mut all = vec![T::zero(); batch * n * n];
            view(object, &drawn.given()).unwrap().matrix(&mut all, None, &Budget::of(members(2))).unwrap();
            for w in all.chunks(n * n) {
                assert!(unitarity(w, n) < bound, "{what}: not unitary");
            }
            all
        };
        unitary(&drawn);
        if object == "cayley" {
            // A of many orders of magnitude, which elimination takes in another order; of small entries beside larger ones
            let mut random = Random::new(n as u64);
            let mut magnitudes = || (9.0 * random.number()).exp();
            for small in [false, true] {
                let mut spread = drawn.clone();
                for (i, (_, held)) in spread.held.iter_mut().enumerate().take(2) {
                    let by = |_: &f64| match (small, magnitudes()) {
                        (false, size) => [size, 1.0][i],
                        (true, size) => [1e-3, 0.1][usize::from(i == 1 || size > 1e3)],
                    };
                    let numbers = held.numbers();
                    let by: Vec<f64> = numbers.iter().map(by).collect();
                    held.set(&numbers.iter().zip(by).map(|(x, by)| x * by).collect::<Vec<_>>());
                }
                let (all, each) = (unitary(&spread), matrices(&spread, batch));
                let near = |(x, y): (&T, &T)| {
                    (*x - *y).widen().abs2().sqrt() < 100.0 * n as f64 * T::Real::EPS.f64()
                };
                assert!(
                    !small || all.iter().zip(&each).all(near),
                    "{what}: the matrices of a stack are not those of each"
                );
            }
        }
    }
    let dense = |numbers: &Numbers| {
        let mut moved = drawn.wide();
        moved.held.iter_mut().zip(numbers).for_each(|((_, held), numbers)| held.set(numbers));
        matrices(&moved, batch)
    };
    let threads = [&[1][..], &[1, 2], &[1, 2, 3]][(n + batch) % members(3)];
    rows::check(&*op, rows, threads, &dense, &what);
}

/// In the four types of numbers.
fn all(sizes: impl Fn(&mut dyn FnMut(Case<'_>))) {
    sizes(&mut |case| {
        every_type!(check(case));
    });
}

#[test]
fn every_object() {
    all(|case| SHAPES.iter().for_each(|(object, shapes)| case((object, shapes, [3, 20]))));
}
#[test]
fn functions_of_skew_matrices() {
    all(skew);
}
#[test]
fn products_of_reflections() {
    all(reflections);
}
#[test]
fn products_of_transforms() {
    all(transforms);
}
#[test]
fn products_of_rotations() {
    all(rotations);
}
#[test]
fn matrices_and_their_products() {
    all(products);
}
