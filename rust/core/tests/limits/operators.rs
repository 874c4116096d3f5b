//! The objects, and the functions beside them.

use crate::any::operator;
use crate::{LENGTHS, SIDES, THREADS, choices, expect, fits, never, ones, real, returns};
use isometry_core::argument::{Array, Given};
use isometry_core::internal::sizes::triangles;
use isometry_core::operators::fourier::FourierProduct;
use isometry_core::operators::hadamard;
use isometry_core::operators::householder::{self, Householder, crowd};
use isometry_core::operators::kronecker::{Factor, Kronecker};
use isometry_core::operators::mesh::{Layout, Mesh};
use isometry_core::operators::{Last, cayley, exponential, view};
use isometry_core::scalar::Scalar;

/// Objects whose arrays have more elements than two.
pub fn larger<T: Scalar>() {
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
