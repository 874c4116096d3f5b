//! Products of reflections in LAPACK's storage, and QR factorisations.

use crate::{LENGTHS, SIZES, THREADS, choices, expect, fits, ones};
use isometry_core::linalg::{
    Bars, Order, Reflectors, apply, apply_vjp, geqrf, geqrf_vjp, procrustes, procrustes_vjp, product,
    product_vjp,
};
use isometry_core::scalar::Scalar;

pub fn reflectors<T: Scalar>() {
    for sizes @ [batch, m, k] in choices() {
        for (given, taus) in LENGTHS.into_iter().flat_map(|a| LENGTHS.map(|b| (a, b))) {
            let (a, tau) = (ones::<T>(given), ones::<T>(taus));
            let good = k <= m && fits(given, &[batch, m, k]) && fits(taus, &[batch, k]);
            expect("Reflectors::new", &sizes, good, || Reflectors::new(&a, &tau, batch, m, k));
            let Ok(of) = Reflectors::new(&a, &tau, batch, m, k) else { continue };
            for len in LENGTHS {
                let x = ones::<T>(len);
                expect("linalg::product", &sizes, len == given, || product(&of, &mut ones(len), THREADS));
                for (a_bar, tau_bar) in [(given, taus), (given + 1, taus), (given, taus + 1), (0, 0)] {
                    let good = (len, a_bar, tau_bar) == (given, given, taus);
                    let (mut a_bar, mut tau_bar) = (ones(a_bar), ones(tau_bar));
                    expect("linalg::product_vjp", &sizes, good, || {
                        product_vjp(&of, &x, &mut a_bar, &mut tau_bar, THREADS)
                    });
                }
                for columns in SIZES {
                    products(&of, &x, (given, taus), &[batch, m, columns]);
                }
            }
        }
    }
}

/// Q X and the like, and every choice of gradients, empty ones where they are not.
fn products<T: Scalar>(of: &Reflectors<'_, T>, x: &[T], (given, taus): (usize, usize), sizes: &[usize; 3]) {
    let (columns, good) = (sizes[2], fits(x.len(), sizes));
    for (left, adjoint) in [(true, false), (true, true), (false, false), (false, true)] {
        let order = Order { left, adjoint, columns };
        for len in [x.len(), x.len() + 1, 0] {
            let good = good && len == x.len();
            expect("linalg::apply", sizes, good, || apply(of, x, order, &mut ones(len), THREADS));
            for own in [None, Some((given, taus)), Some((given + 1, taus)), Some((0, 0))] {
                let good = good && own.is_none_or(|own| own == (given, taus));
                for wanted in [false, true] {
                    let (mut a_bar, mut tau_bar) =
                        own.map_or_else(Default::default, |(a, tau)| (ones(a), ones(tau)));
                    let mut x_bar = ones(len);
                    let bars = Bars {
                        reflectors: own.map(|_| (&mut a_bar[..], &mut tau_bar[..])),
                        x: wanted.then_some(&mut x_bar[..]),
                    };
                    let good = if wanted {
                        good
                    } else {
                        fits(x.len(), sizes) && own.is_none_or(|own| own == (given, taus))
                    };
                    expect("linalg::apply_vjp", sizes, good, || apply_vjp(of, x, x, order, bars, THREADS));
                }
            }
        }
    }
}

pub fn factorisations<T: Scalar>() {
    for sizes @ [batch, m, n] in choices() {
        for (len, taus) in LENGTHS.into_iter().flat_map(|a| LENGTHS.map(|b| (a, b))) {
            let (a, tau) = (ones::<T>(len), ones::<T>(taus));
            let own = fits(len, &sizes) && fits(taus, &[batch, m.min(n)]);
            for other in [len, len + 1, 0] {
                let (good, shape) = (own && other == len, (batch, m, n));
                expect("linalg::geqrf", &sizes, good, || {
                    geqrf(&a, shape, &mut ones(other), &mut ones(taus), THREADS)
                });
                expect("linalg::geqrf_vjp", &sizes, good, || {
                    geqrf_vjp((&a, &tau), (&a, &tau), shape, &mut ones(other), THREADS)
                });
            }
        }
    }
}

pub fn nearest<T: Scalar>() {
    for sizes @ [batch, m, n] in choices() {
        for (len, special) in LENGTHS.into_iter().flat_map(|len| [(len, false), (len, true)]) {
            let (a, shape) = (ones::<T>(len), (batch, m, n));
            for other in [len, len + 1, 0] {
                let square = !special || (T::PARTS == 1 && m == n);
                let good = fits(len, &sizes) && other == len && square;
                expect("linalg::procrustes", &sizes, good, || {
                    procrustes(&a, shape, special, &mut ones(other), THREADS)
                });
                expect("linalg::procrustes_vjp", &sizes, good, || {
                    procrustes_vjp((&a, &a, &a), shape, special, &mut ones(other), THREADS)
                });
            }
        }
    }
}
