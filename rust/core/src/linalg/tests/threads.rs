//! Every function on any number of threads, for one matrix and for batches.

use super::problem;
use crate::linalg::{
    Bars, Order, Reflectors, apply, apply_vjp, geqrf, geqrf_vjp, procrustes, procrustes_vjp, product,
    product_vjp,
};
use crate::scalar::{Scalar, c64};
use crate::testing::numbers;
use crate::testing::threads::same_bits;

const SIZES: [(usize, usize, usize); 3] = [(1, 90, 70), (3, 30, 20), (70, 6, 4)];

fn of_reflectors<T: Scalar>(sizes: (usize, usize, usize)) {
    let (batch, m, k) = sizes;
    let (a, tau) = problem::<T>(sizes, 0);
    let of = Reflectors::new(&a, &tau, batch, m, k).unwrap();
    let ones = |len: usize| vec![T::one(); len];
    let (ct, columns) = (numbers::<T>(a.len(), 3), 40);
    same_bits(&format!("products, {sizes:?}"), |threads| {
        let [mut out, mut a_bar, mut tau_bar] = [a.len(), a.len(), tau.len()].map(ones);
        product(&of, &mut out, threads).unwrap();
        product_vjp(&of, &ct, &mut a_bar, &mut tau_bar, threads).unwrap();
        [out, a_bar, tau_bar]
    });
    let (x, ct) = (numbers::<T>(batch * m * columns, 4), numbers::<T>(batch * m * columns, 5));
    for left in [true, false] {
        let order = Order { left, adjoint: false, columns };
        same_bits(&format!("application, {sizes:?}, left: {left}"), |threads| {
            let [mut out, mut a_bar, mut tau_bar, mut x_bar] =
                [x.len(), a.len(), tau.len(), x.len()].map(ones);
            apply(&of, &x, order, &mut out, threads).unwrap();
            let bars = Bars { reflectors: Some((&mut a_bar, &mut tau_bar)), x: Some(&mut x_bar) };
            apply_vjp(&of, &x, &ct, order, bars, threads).unwrap();
            [out, a_bar, tau_bar, x_bar]
        });
    }
}

fn of_matrices<T: Scalar>(sizes: (usize, usize, usize)) {
    let (batch, m, n) = sizes;
    let (x, ct) = (numbers::<T>(batch * m * n, 6), numbers::<T>(batch * m * n, 7));
    let ones = |len: usize| vec![T::one(); len];
    same_bits(&format!("geqrf, {sizes:?}"), |threads| {
        let [mut a, mut tau, mut bar] = [x.len(), batch * n, x.len()].map(ones);
        geqrf(&x, sizes, &mut a, &mut tau, threads).unwrap();
        geqrf_vjp((&a, &tau), (&ct, &numbers::<T>(tau.len(), 8)), sizes, &mut bar, threads).unwrap();
        [a, tau, bar]
    });
    same_bits(&format!("procrustes, {sizes:?}"), |threads| {
        let [mut out, mut bar] = [x.len(), x.len()].map(ones);
        procrustes(&x, sizes, false, &mut out, threads).unwrap();
        procrustes_vjp((&x, &out, &ct), sizes, false, &mut bar, threads).unwrap();
        [out, bar]
    });
}

#[test]
fn any_number_of_threads_has_the_same_bits() {
    fn all<T: Scalar>() {
        for sizes in SIZES {
            of_reflectors::<T>(sizes);
            of_matrices::<T>(sizes);
        }
    }
    all::<f32>();
    all::<c64>();
}
