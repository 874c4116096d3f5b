//! The objects, and the functions beside them.

use crate::any::{object, operator};
use crate::{LENGTHS, SIDES, THREADS, choices, expect, fits, never, ones, real, returns};
use isometry_core::argument::{Array, Given};
use isometry_core::internal::sizes::{size, triangles};
use isometry_core::operators::bounded_svd::BoundedSvd;
use isometry_core::operators::circulant::Circulant;
use isometry_core::operators::fourier::FourierProduct;
use isometry_core::operators::givens::Givens;
use isometry_core::operators::hadamard::{self, Hadamard};
use isometry_core::operators::householder::crowd;
use isometry_core::operators::kronecker::{Factor, Kronecker};
use isometry_core::operators::mesh::{Layout, Mesh};
use isometry_core::operators::{
    Last, cayley, cayley::Cayley, dense::Dense, exponential, exponential::Exponential, householder,
    householder::Householder, rotation::Rotation, view,
};
use isometry_core::scalar::Scalar;
use isometry_core::{Cpu, Result};

/// Whether the sizes of a stack of n x n matrices are known.
fn known([batch, n]: [usize; 2]) -> bool {
    size("out", &[batch, n, n]).is_ok()
}

fn boxed<'a, T: Scalar>(made: Result<impl Cpu<T> + 'a>) -> Result<Box<dyn Cpu<T> + 'a>> {
    made.map(|op| Box::new(op) as Box<dyn Cpu<T> + 'a>)
}

/// Every object: whether arrays of these lengths fit its sizes, and its constructor.
pub fn objects<T: Scalar>() {
    let complex = T::PARTS == 2;
    object::<T, 3, 1>(
        "Dense::new",
        |sizes, [weight]| fits(weight, &sizes),
        |[batch, p, q], [weight], _| boxed(Dense::new(weight, batch, p, q)),
    );
    object::<T, 3, 1>(
        "Householder::new",
        |sizes, [vectors]| fits(vectors, &sizes),
        |[batch, n, m], [vectors], _| boxed(Householder::new(vectors, Last::None, batch, n, m)),
    );
    object::<T, 3, 2>(
        "Householder::new",
        |sizes @ [batch, n, _], [vectors, sign]| {
            // the sign stands beside a last entry
            (n > 0 || batch == 0) && fits(vectors, &sizes) && fits(sign, &sizes[..1])
        },
        |[batch, n, m], [vectors, _], [_, sign]| {
            boxed(Householder::new(vectors, Last::Sign(sign), batch, n, m))
        },
    );
    object::<T, 3, 2>(
        "Householder::new",
        |sizes, [vectors, phases]| complex && fits(vectors, &sizes) && fits(phases, &sizes[..2]),
        |[batch, n, m], [vectors, _], [_, phases]| {
            boxed(Householder::new(vectors, Last::Phases(phases), batch, n, m))
        },
    );
    object::<T, 2, 1>(
        "Cayley::new",
        |[batch, n], [upper]| fits(upper, &triangles(batch, n)),
        |[batch, n], [upper], _| boxed(Cayley::new(upper, None, Last::None, batch, n)),
    );
    object::<T, 2, 2>(
        "Cayley::new",
        |[batch, n], [upper, signs]| fits(upper, &triangles(batch, n)) && fits(signs, &[batch, n]),
        |[batch, n], [upper, _], [_, signs]| boxed(Cayley::new(upper, None, Last::Signs(signs), batch, n)),
    );
    object::<T, 2, 3>(
        "Cayley::new",
        |[batch, n], [upper, diagonal, phases]| {
            complex
                && fits(upper, &triangles(batch, n))
                && [diagonal, phases].iter().all(|&len| fits(len, &[batch, n]))
        },
        |[batch, n], [upper, ..], [_, diagonal, phases]| {
            boxed(Cayley::new(upper, Some(diagonal), Last::Phases(phases), batch, n))
        },
    );
    object::<T, 2, 1>(
        "Exponential::new",
        |[batch, n], [upper]| fits(upper, &triangles(batch, n)),
        |[batch, n], [upper], _| boxed(Exponential::new(upper, None, batch, n)),
    );
    object::<T, 2, 2>(
        "Exponential::new",
        |[batch, n], [upper, diagonal]| {
            complex && fits(upper, &triangles(batch, n)) && fits(diagonal, &[batch, n])
        },
        |[batch, n], [upper, _], [_, diagonal]| boxed(Exponential::new(upper, Some(diagonal), batch, n)),
    );
    object::<T, 3, 1>(
        "Kronecker::new",
        |[batch, p, q], [elements]| p > 0 && q > 0 && fits(elements, &[batch, p, q]),
        |[batch, p, q], [elements], _| boxed(Kronecker::new(&[Factor { elements, p, q }], batch)),
    );
    object::<T, 2, 2>(
        "Rotation::new",
        |sizes, both| both.iter().all(|&len| fits(len, &sizes)) && known(sizes),
        |[batch, n], _, [start, end]| boxed(Rotation::<T>::new(start, end, batch, n)),
    );
    object::<T, 3, 1>(
        "Hadamard::new",
        |sizes @ [batch, _, n], [signs]| {
            hadamard::Order::of(n).is_some() && fits(signs, &sizes) && fits(0, &[0, batch, n, n])
        },
        |[batch, rounds, n], _, [signs]| boxed(Hadamard::<T>::new(signs, (batch, rounds, n))),
    );
    object::<T, 3, 2>(
        "Givens::new",
        |[batch, n, m], [angles, planes]| {
            let fit = fits(angles, &[batch, m]) && fits(2 * planes, &[batch, m, 2]);
            fit && (planes == 0 || n >= 2)
        },
        |[batch, n, m], _, [angles, planes]| {
            let pairs = &[0, 1, 0, 1][..2 * planes.len()];
            boxed(Givens::<T>::new(angles, pairs, batch, n, m))
        },
    );
    object::<T, 4, 4>(
        "BoundedSvd::new",
        |[batch, n, k, r], [u, logits, v, margin]| {
            let fit = fits(u, &[batch, n, r]) && fits(logits, &[batch, r]) && fits(v, &[batch, k, r]);
            r > 0 && fit && fits(margin, &[batch]) && fits(0, &[0, batch, n, k])
        },
        |sizes, [u, _, v, _], [_, logits, _, margin]| {
            boxed(BoundedSvd::<T>::new((u, v), logits, margin, sizes))
        },
    );
    object::<T, 2, 1>(
        "Circulant::new",
        |sizes @ [batch, n], [phases]| complex && n > 0 && fits(phases, &sizes) && fits(0, &[0, batch, n, n]),
        |[batch, n], _, [phases]| boxed(Circulant::<T>::new(phases, batch, n)),
    );
}

/// Objects whose arrays have more elements than two.
pub fn larger<T: Scalar>() {
    for sizes @ [batch, n] in choices() {
        for (a, b, c) in (0..7).flat_map(|a| (0..5).flat_map(move |b| (0..3).map(move |c| (a, b, c)))) {
            let (phases, vectors, permutation) = (real::<T>(a), ones::<T>(b), vec![0; c]);
            let made = || FourierProduct::<T>::new(&phases, &vectors, &permutation, batch, n);
            let whole = fits(a, &[batch, 3, n]) && fits(b, &[batch, 2, n]) && fits(c, &[batch, n]);
            // zeros are a permutation of one element
            let good =
                T::PARTS == 2 && n > 0 && whole && (n == 1 || batch == 0) && fits(0, &[0, batch, 5, n, 2]);
            expect("FourierProduct::new", &sizes, good, || made().map(drop));
        }
    }
    for [batch, n] in [[1, 1], [1, 2], [2, 1], [0, 1], [0, 1 << 44]] {
        let permutation: Vec<i64> = (0..(batch * n).min(2)).map(|i| (i % n) as i64).collect();
        let (phases, vectors) = (real::<T>(batch * 3 * n), ones::<T>(batch * 2 * n));
        let Ok(op) = FourierProduct::<T>::new(&phases, &vectors, &permutation, batch, n) else { continue };
        operator(&op, &[batch, n]);
    }
    for sizes @ [batch, p, q] in choices() {
        for given in LENGTHS {
            let factor = Factor { elements: &ones::<T>(given), p, q };
            returns("Kronecker::new", &sizes, || Kronecker::new(&[factor; 3], batch).map(drop));
        }
    }
}

/// Stacks of meshes of any layout with up to two angles.
pub fn meshes<T: Scalar>() {
    for sizes @ [batch, n, layers] in choices() {
        for (many, len) in LENGTHS.into_iter().flat_map(|a| LENGTHS.map(|b| (a, b))) {
            let (theta, numbers) = (real::<T>(many), real::<T>(len));
            for kind in 0..5 {
                // the layout as the shape of an array without elements
                let (frame, own) = ([batch, n, layers, kind, 0], [batch, many]);
                let none = Given::<T> { shape: &[], array: Array::None };
                let frame = Given { shape: &frame, array: Array::Own(&[]) };
                let theta = Given { shape: &own, array: Array::Real(&theta) };
                returns("operators::view", &sizes, || {
                    view("mesh", &[frame, theta, none, none, none]).map(drop)
                });
            }
            for layout in [Layout::BrickLeft, Layout::BrickRight, Layout::Fft] {
                for last in [Last::None, Last::Signs(&numbers), Last::Phases(&numbers)] {
                    let frame = (n, layers, layout);
                    returns("Mesh::new", &sizes, || {
                        Mesh::<T>::new(frame, batch, &theta, Some(&numbers), last).map(drop)
                    });
                    if let Ok(op) = Mesh::<T>::new(frame, batch, &theta, None, last) {
                        operator(&op, &sizes);
                    }
                }
            }
        }
    }
}

/// Parameters of matrices, the inverse maps, and what else an object's module has.
pub fn functions<T: Scalar>() {
    for sizes @ [batch, n] in choices() {
        for (len, given) in LENGTHS.into_iter().flat_map(|a| LENGTHS.map(|b| (a, b))) {
            let (x, mut upper) = (ones::<T>(len), ones::<T>(given));
            // one entry of modulus 1 is an orthogonal matrix
            let square = fits(len, &[batch, n, n]);
            let numbers = if T::PARTS == 1 { [batch, usize::from(n > 0)] } else { [batch, n] };
            let vectors = square && fits(given, &[batch, n, n.saturating_sub(1)]);
            let triangle = square && fits(given, &triangles(batch, n));
            for lasts in LENGTHS {
                let (mut vectors_of, mut last) = (ones::<T>(given), real::<T>(lasts));
                expect("householder::from_matrix", &sizes, vectors && fits(lasts, &numbers), || {
                    householder::from_matrix(&x, batch, n, 1e-3, &mut vectors_of, &mut last, &never)
                });
                let mut last = vec![<T::Real as num_traits::Zero>::zero(); lasts];
                expect("cayley::from_matrix", &sizes, triangle && fits(lasts, &[batch, n]), || {
                    let last = &mut last;
                    cayley::from_matrix(&x, last, true, &mut upper, None, (batch, n), 1e-3, THREADS, &never)
                });
            }
            let rotation = T::PARTS == 1 && fits(len, &[batch, 3]) && fits(given, &[batch, 3]);
            expect("cayley::from_rotvec", &sizes, rotation, || cayley::from_rotvec(&x, &mut upper, batch));
            let closed = triangle && T::PARTS == 1 && (n == 2 || n == 3);
            expect("exponential::from_matrix", &sizes, closed, || {
                exponential::from_matrix(&x, &mut upper, (batch, n), 1e-3)
            });
        }
    }
    for sizes @ [batch, n, m] in choices() {
        for len in LENGTHS {
            let x = ones::<T>(len);
            if let Ok(op) = Householder::new(&x, Last::None, batch, n, m) {
                expect("Householder::check", &sizes, true, || op.check());
            }
        }
    }
    for sizes @ [n] in choices() {
        returns("householder::crowd", &sizes, || Ok(crowd(n)));
        for (len, other, side) in LENGTHS.into_iter().flat_map(|len| {
            [len, len + 1, 0].into_iter().flat_map(move |other| SIDES.map(|side| (len, other, side)))
        }) {
            let (x, mut out) = (ones::<T>(len), ones::<T>(other));
            let good = hadamard::Order::of(n).is_some() && len == other && fits(len, &[1, len / n.max(1), n]);
            expect("hadamard::transform", &sizes, good, || {
                hadamard::transform(&x, n, 2.0, side, &mut out, THREADS)
            });
        }
    }
}
