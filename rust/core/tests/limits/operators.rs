//! The operators.

use crate::{LENGTHS, SIDES, THREADS, any, choices, expect, fits, never, ones, real, returns};
use isometry_core::argument::Bar;
use isometry_core::internal::sizes::{size, triangles};
use isometry_core::operators::fourier::FourierProduct;
use isometry_core::operators::householder::crowd;
use isometry_core::operators::kronecker::{Factor, Kronecker};
use isometry_core::operators::{
    Last, cayley, cayley::Cayley, dense::Dense, exponential, exponential::Exponential, householder,
    householder::Householder, rotation::Rotation,
};
use isometry_core::scalar::Scalar;
use isometry_core::{Budget, Cpu, Side};

pub fn dense<T: Scalar>() {
    let budget = Budget::of(THREADS);
    for sizes @ [batch, p, q, rows] in choices() {
        for (weights, len) in LENGTHS.into_iter().flat_map(|a| LENGTHS.map(|b| (a, b))) {
            let (weight, x) = (ones::<T>(weights), ones::<T>(len));
            let (mut bar, mut out) = (ones::<T>(weights), ones::<T>(len));
            let good = fits(weights, &[batch, p, q]);
            if rows == 0 {
                expect("Dense::new", &sizes, good, || Dense::new(&weight, batch, p, q));
            }
            let Ok(op) = Dense::new(&weight, batch, p, q) else { continue };
            expect("matrix", &sizes, true, || op.matrix(&mut bar, None, &budget));
            expect("matrix", &sizes, false, || op.matrix(&mut ones(weights + 1), None, &budget));
            for side in SIDES {
                let good = fits(len, &[batch, rows, p]) && fits(len, &[batch, rows, q]);
                expect("apply", &sizes, good, || op.apply(&x, rows, side, &mut out, None, &budget));
                expect("apply_vjp", &sizes, good, || {
                    let (bars, out) = (&mut [Bar::Own(&mut bar)], Some(&mut out[..]));
                    op.apply_vjp(None, &x, &x, rows, side, bars, out, &budget)
                });
                for (from, into) in [(len, len + 1), (len + 1, len)] {
                    let (a, b) = if side == Side::Forward { (q, p) } else { (p, q) };
                    let good = fits(from, &[batch, rows, a]) && fits(into, &[batch, rows, b]);
                    let (x, mut out) = (ones::<T>(from), ones::<T>(into));
                    expect("apply", &sizes, good, || op.apply(&x, rows, side, &mut out, None, &budget));
                }
            }
        }
    }
}

pub fn householder<T: Scalar>() {
    let budget = Budget::of(THREADS);
    for sizes @ [batch, n, m, rows] in choices() {
        for (given, len) in LENGTHS.into_iter().flat_map(|a| LENGTHS.map(|b| (a, b))) {
            let (vectors, x) = (ones::<T>(given), ones::<T>(len));
            let (mut bar, mut out) = (ones::<T>(given), ones::<T>(len));
            let none = Last::None;
            if rows == 0 {
                let good = fits(given, &[batch, n, m]);
                expect("Householder::new", &sizes, good, || Householder::new(&vectors, none, batch, n, m));
                let numbers = real::<T>(len);
                for last in [Last::Sign(&numbers), Last::Phases(&numbers)] {
                    returns("Householder::new", &sizes, || Householder::new(&vectors, last, batch, n, m));
                }
            }
            let Ok(op) = Householder::new(&vectors, none, batch, n, m) else { continue };
            let square = fits(len, &[batch, n, n]);
            expect("Householder::check", &sizes, true, || op.check());
            returns("householder::crowd", &sizes, || Ok(crowd(n)));
            expect("matrix", &sizes, square, || op.matrix(&mut out, None, &budget));
            expect("matrix_vjp", &sizes, square, || {
                op.matrix_vjp(None, &x, &mut [Bar::Own(&mut bar)], &budget)
            });
            returns("matrix_saves", &sizes, || op.matrix_saves());
            for kept in [0, 1, 2, 6, 8] {
                // more reflections than T serves save nothing
                let saves = 0 < m && m <= crowd(n);
                let good = square && saves && fits(kept, &[batch, m, m.saturating_add(n)]);
                let mut saved = ones::<T>(kept);
                let mut matrix = |saved| op.matrix(&mut out, Some(saved), &budget);
                expect("matrix saving", &sizes, good, || matrix(&mut saved));
                expect("matrix_vjp saved", &sizes, good, || {
                    op.matrix_vjp(Some(&saved), &x, &mut [Bar::Own(&mut bar)], &budget)
                });
                let mut apply = |saved| op.apply(&x, rows, Side::Forward, &mut out, Some(saved), &budget);
                returns("apply saving", &sizes, || apply(&mut saved));
            }
            let good = fits(len, &[batch, rows, n]);
            for side in SIDES {
                expect("apply", &sizes, good, || op.apply(&x, rows, side, &mut out, None, &budget));
                expect("apply_vjp", &sizes, good, || {
                    let out = Some(&mut out[..]);
                    op.apply_vjp(None, &x, &x, rows, side, &mut [Bar::Own(&mut bar)], out, &budget)
                });
                returns("apply_vjp", &sizes, || {
                    op.apply_vjp(Some(&x), &x, &x, rows, side, &mut [Bar::Own(&mut bar)], None, &budget)
                });
            }
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
    let budget = Budget::of(THREADS);
    for sizes @ [batch, n, rows] in choices() {
        for (packed, len) in LENGTHS.into_iter().flat_map(|a| LENGTHS.map(|b| (a, b))) {
            let (upper, x) = (ones::<T>(packed), ones::<T>(len));
            let (mut bar, mut out) = (ones::<T>(packed), ones::<T>(len));
            let none = Last::None;
            let good = fits(packed, &triangles(batch, n));
            if rows == 0 {
                expect("Cayley::new", &sizes, good, || Cayley::new(&upper, None, none, batch, n));
                let numbers = real::<T>(len);
                for last in [Last::Signs(&numbers), Last::Phases(&numbers)] {
                    returns("Cayley::new", &sizes, || Cayley::new(&upper, Some(&numbers), last, batch, n));
                }
                let vectors = T::PARTS == 1 && fits(len, &[batch, 3]) && fits(packed, &[batch, 3]);
                expect("cayley::from_rotvec", &sizes, vectors, || cayley::from_rotvec(&x, &mut bar, batch));
                let square = fits(len, &[batch, n, n]);
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
            let square = fits(len, &[batch, n, n]);
            expect("matrix", &sizes, square, || op.matrix(&mut out, None, &budget));
            for saved in [None, Some(&x[..])] {
                expect("matrix_vjp", &sizes, square, || {
                    op.matrix_vjp(saved, &x, &mut [Bar::Own(&mut bar)], &budget)
                });
            }
            for side in SIDES {
                let good = fits(len, &[batch, rows, n]);
                let known = size("saved", &[n, n]).is_ok();
                expect("apply", &sizes, good && known, || op.apply(&x, rows, side, &mut out, None, &budget));
                returns("apply_vjp", &sizes, || {
                    let (bars, out) = (&mut [Bar::Own(&mut bar)], Some(&mut out[..]));
                    op.apply_vjp(None, &x, &x, rows, side, bars, out, &budget)
                });
            }
        }
    }
}

pub fn exponential<T: Scalar>() {
    let budget = Budget::of(THREADS);
    for sizes @ [batch, n] in choices() {
        for (packed, len) in LENGTHS.into_iter().flat_map(|a| LENGTHS.map(|b| (a, b))) {
            let (upper, x, numbers) = (ones::<T>(packed), ones::<T>(len), real::<T>(len));
            let (mut bar, mut out) = (ones::<T>(packed), ones::<T>(len));
            let good = fits(packed, &triangles(batch, n));
            expect("Exponential::new", &sizes, good, || Exponential::new(&upper, None, batch, n));
            let diagonal = good && T::PARTS == 2 && fits(len, &[batch, n]);
            expect("Exponential::new", &sizes, diagonal, || {
                Exponential::new(&upper, Some(&numbers), batch, n)
            });
            let closed = T::PARTS == 1 && (n == 2 || n == 3);
            expect("exponential::from_matrix", &sizes, good && closed && fits(len, &[batch, n, n]), || {
                exponential::from_matrix(&x, &mut bar, (batch, n), 1e-3)
            });
            let Ok(op) = Exponential::new(&upper, None, batch, n) else { continue };
            let square = fits(len, &[batch, n, n]);
            expect("matrix", &sizes, square, || op.matrix(&mut out, None, &budget));
            for saved in [None, Some(&x[..])] {
                expect("matrix_vjp", &sizes, square, || {
                    op.matrix_vjp(saved, &x, &mut [Bar::Own(&mut bar)], &budget)
                });
            }
        }
    }
}

pub fn kronecker<T: Scalar>() {
    for sizes @ [batch, p, q] in choices() {
        for given in LENGTHS {
            let (elements, mut bar) = (ones::<T>(given), ones::<T>(given));
            let factor = Factor { elements: &elements, p, q };
            let good = p > 0 && q > 0 && fits(given, &[batch, p, q]);
            expect("Kronecker::new", &sizes, good, || Kronecker::new(&[factor], batch).map(drop));
            returns("Kronecker::new", &sizes, || Kronecker::new(&[factor; 3], batch).map(drop));
            if let Ok(op) = Kronecker::new(&[factor], batch) {
                any::operator(&op, &mut [Bar::Own(&mut bar)], &sizes);
            }
        }
    }
}

pub fn fourier<T: Scalar>() {
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
        any::operator(&op, &mut [], &[batch, n]);
    }
}

pub fn rotation<T: Scalar>() {
    for sizes @ [batch, n] in choices() {
        for given in LENGTHS {
            let (start, mut bar) = (real::<T>(given), real::<T>(given));
            let good = fits(given, &[batch, n]) && size("out", &[batch, n, n]).is_ok();
            expect("Rotation::new", &sizes, good, || Rotation::<T>::new(&start, &start, batch, n).map(drop));
            if let Ok(op) = Rotation::<T>::new(&start, &start, batch, n) {
                any::operator(&op, &mut [Bar::None, Bar::Real(&mut bar)], &sizes);
            }
        }
    }
}
