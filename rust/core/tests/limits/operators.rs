//! The operators.

use crate::{LENGTHS, SIDES, THREADS, choices, expect, fits, never, ones, real, returns};
use isometry_core::Operator;
use isometry_core::Side;
use isometry_core::operators::cayley::{self, Cayley};
use isometry_core::operators::dense::Dense;
use isometry_core::operators::householder::{self, Householder};
use isometry_core::scalar::Scalar;
use isometry_core::sizes::triangles;

pub fn dense<T: Scalar>() {
    for sizes @ [batch, p, q, rows] in choices() {
        for (weights, len) in LENGTHS.into_iter().flat_map(|a| LENGTHS.map(|b| (a, b))) {
            let (weight, x) = (ones::<T>(weights), ones::<T>(len));
            let (mut bar, mut out) = (ones::<T>(weights), ones::<T>(len));
            let good = fits(weights, &[batch, p, q]);
            if rows == 0 {
                expect("Dense::new", &sizes, good, || Dense::new(&weight, batch, p, q));
            }
            let Ok(op) = Dense::new(&weight, batch, p, q) else { continue };
            expect("matrix", &sizes, true, || op.matrix(&mut bar, THREADS));
            expect("matrix", &sizes, false, || op.matrix(&mut ones(weights + 1), THREADS));
            for side in SIDES {
                let good = fits(len, &[batch, rows, p]) && fits(len, &[batch, rows, q]);
                expect("apply", &sizes, good, || op.apply(&x, rows, side, &mut out, THREADS));
                expect("apply_vjp", &sizes, good, || {
                    let (bar, out) = (Some(&mut bar[..]), Some(&mut out[..]));
                    op.apply_vjp(&x, &x, rows, side, bar, out, THREADS)
                });
                for (from, into) in [(len, len + 1), (len + 1, len)] {
                    let (a, b) = if side == Side::Forward { (q, p) } else { (p, q) };
                    let good = fits(from, &[batch, rows, a]) && fits(into, &[batch, rows, b]);
                    let (x, mut out) = (ones::<T>(from), ones::<T>(into));
                    expect("apply", &sizes, good, || op.apply(&x, rows, side, &mut out, THREADS));
                }
            }
        }
    }
}

/// The gradient of the vectors alone.
pub fn gradients<T: Scalar>(bar: &mut [T]) -> householder::Gradients<'_, T> {
    householder::Gradients { vectors: Some(bar), ..Default::default() }
}

pub fn householder<T: Scalar>() {
    for sizes @ [batch, n, m, rows] in choices() {
        for (given, len) in LENGTHS.into_iter().flat_map(|a| LENGTHS.map(|b| (a, b))) {
            let (vectors, x) = (ones::<T>(given), ones::<T>(len));
            let (mut bar, mut out) = (ones::<T>(given), ones::<T>(len));
            let none = householder::Last::None;
            if rows == 0 {
                let good = fits(given, &[batch, n, m]);
                expect("Householder::new", &sizes, good, || Householder::new(&vectors, none, batch, n, m));
                let numbers = real::<T>(len);
                for last in [householder::Last::Sign(&numbers), householder::Last::Phases(&numbers)] {
                    returns("Householder::new", &sizes, || Householder::new(&vectors, last, batch, n, m));
                }
            }
            let Ok(op) = Householder::new(&vectors, none, batch, n, m) else { continue };
            let square = fits(len, &[batch, n, n]);
            expect("check", &sizes, true, || op.check());
            expect("matrix", &sizes, square, || op.matrix(&mut out, THREADS));
            expect("matrix_vjp", &sizes, square, || op.matrix_vjp(&x, gradients(&mut bar), THREADS));
            returns("keep_len", &sizes, || op.keep_len());
            for kept in [0, 1, 2, 6, 8] {
                let good = square && fits(kept, &[batch, m, m.saturating_add(n)]);
                let mut keep = ones::<T>(kept);
                expect("matrix_keeping", &sizes, good, || op.matrix_keeping(&mut out, &mut keep, THREADS));
                expect("matrix_vjp_kept", &sizes, good, || {
                    op.matrix_vjp_kept(&keep, &x, gradients(&mut bar), THREADS)
                });
                returns("apply_keeping", &sizes, || op.apply_keeping(&x, rows, &mut out, &mut keep, THREADS));
            }
            let good = fits(len, &[batch, rows, n]);
            for side in SIDES {
                expect("apply", &sizes, good, || op.apply(&x, rows, side, &mut out, THREADS));
                expect("apply_vjp", &sizes, good, || {
                    let out = Some(&mut out[..]);
                    op.apply_vjp(None, &x, &x, rows, side, gradients(&mut bar), out, THREADS)
                });
                returns("apply_vjp", &sizes, || {
                    op.apply_vjp(Some(&x), &x, &x, rows, side, gradients(&mut bar), None, THREADS)
                });
            }
        }
        for last in [false, true] {
            returns("apply_keep_len", &sizes, || householder::apply_keep_len(n, m, rows, last));
        }
    }
    for sizes @ [batch, n] in choices() {
        for (len, given) in LENGTHS.into_iter().flat_map(|a| LENGTHS.map(|b| (a, b))) {
            let numbers = if T::PARTS == 1 { [batch, usize::from(n > 0)] } else { [batch, n] };
            let good = fits(len, &[batch, n, n]) && fits(given, &[batch, n, n.saturating_sub(1)]);
            for lasts in LENGTHS {
                let good = good && fits(lasts, &numbers);
                let (mut vectors, mut last) = (ones::<T>(given), real::<T>(lasts));
                // one entry of modulus 1 is an orthogonal matrix
                expect("householder::from_matrix", &sizes, good, || {
                    householder::from_matrix(&ones(len), batch, n, 1e-3, &mut vectors, &mut last, &never)
                });
            }
        }
    }
}

pub fn cayley<T: Scalar>() {
    for sizes @ [batch, n, rows] in choices() {
        for (packed, len) in LENGTHS.into_iter().flat_map(|a| LENGTHS.map(|b| (a, b))) {
            let (upper, x) = (ones::<T>(packed), ones::<T>(len));
            let (mut bar, mut out) = (ones::<T>(packed), ones::<T>(len));
            let none = cayley::Last::None;
            let good = fits(packed, &triangles(batch, n));
            if rows == 0 {
                expect("Cayley::new", &sizes, good, || Cayley::new(&upper, None, none, batch, n));
                let numbers = real::<T>(len);
                for last in [cayley::Last::Signs(&numbers), cayley::Last::Phases(&numbers)] {
                    returns("Cayley::new", &sizes, || Cayley::new(&upper, Some(&numbers), last, batch, n));
                }
                let square = fits(len, &[batch, n, n]);
                expect("cayley::matrix_vjp", &sizes, square && good, || {
                    let gradients = cayley::Gradients { upper: Some(&mut bar), ..Default::default() };
                    cayley::matrix_vjp(&x, none, &x, gradients, batch, n, THREADS)
                });
                for lasts in LENGTHS {
                    let mut last = vec![<T::Real as num_traits::Zero>::zero(); lasts];
                    let good = good && square && fits(lasts, &[batch, n]);
                    expect("cayley::from_matrix", &sizes, good, || {
                        let sizes = (batch, n);
                        let last = &mut last;
                        cayley::from_matrix(&x, last, true, &mut bar, None, sizes, 1e-3, THREADS, &never)
                    });
                }
            }
            let Ok(op) = Cayley::new(&upper, None, none, batch, n) else { continue };
            expect("matrix", &sizes, fits(len, &[batch, n, n]), || op.matrix(&mut out, THREADS));
            for side in SIDES {
                let good = fits(len, &[batch, rows, n]);
                expect("apply", &sizes, good, || op.apply(&x, rows, side, &mut out, THREADS));
            }
        }
    }
}
