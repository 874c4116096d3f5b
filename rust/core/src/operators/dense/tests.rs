//! Against sums in double precision, for every type and side and 1, 2 and 3 threads.

use super::*;
use crate::scalar::{Real, c32, c64};
use crate::testing::{near, numbers};

fn check<T: Scalar>(batch: usize, p: usize, q: usize, rows: usize) {
    let weight: Vec<T> = numbers(batch * p * q, 1);
    let op = Dense::new(&weight, batch, p, q).unwrap();
    let mut copy = vec![T::default(); weight.len()];
    op.matrix(&mut copy, None, &Budget::of(1)).unwrap();
    assert_eq!(copy, weight);
    for side in [Side::Forward, Side::Adjoint] {
        let (from, into) = op.features(side);
        let (x, ct): (Vec<T>, Vec<T>) = (numbers(batch * rows * from, 2), numbers(batch * rows * into, 3));
        let zero = T::Wide::default();
        let (mut out, mut x_bar) = (vec![zero; ct.len()], vec![zero; x.len()]);
        let mut weight_bar = vec![zero; weight.len()];
        for b in 0..batch {
            for r in b * rows..(b + 1) * rows {
                for i in 0..p {
                    for j in 0..q {
                        let at = (b * p + i) * q + j;
                        let w = weight[at].widen();
                        if side == Side::Forward {
                            let (x, ct) = (x[r * q + j].widen(), ct[r * p + i].widen());
                            out[r * p + i] += w * x;
                            x_bar[r * q + j] += w.conj() * ct;
                            weight_bar[at] += ct * x.conj();
                        } else {
                            let (x, ct) = (x[r * p + i].widen(), ct[r * q + j].widen());
                            out[r * q + j] += w.conj() * x;
                            x_bar[r * p + i] += w * ct;
                            weight_bar[at] += x * ct.conj();
                        }
                    }
                }
            }
        }
        let mut first = None;
        for threads in [1, 2, 3] {
            let (mut a, mut b, mut c) =
                (vec![T::one(); ct.len()], vec![T::one(); x.len()], vec![T::one(); weight.len()]);
            let budget = &Budget::of(threads);
            op.apply(&x, rows, side, &mut a, None, budget).unwrap();
            op.apply_vjp(None, &x, &ct, rows, side, &mut [Bar::Own(&mut c)], Some(&mut b), budget).unwrap();
            near(&a, &out, 8.0 * T::Real::EPS.f64(), "out");
            near(&b, &x_bar, 8.0 * T::Real::EPS.f64(), "x_bar");
            near(&c, &weight_bar, 8.0 * T::Real::EPS.f64(), "weight_bar");
            let got = (a, b, c);
            assert!(*first.get_or_insert_with(|| got.clone()) == got, "{threads} threads differ");
        }
    }
}

#[test]
fn products_and_gradients() {
    fn all<T: Scalar>() {
        for (batch, p, q, rows) in
            [(1, 5, 3, 4), (3, 16, 33, 7), (1, 1, 1, 0), (2, 40, 7, 1), (0, 3, 3, 3), (1, 150, 130, 90)]
        {
            check::<T>(batch, p, q, rows);
        }
    }
    all::<f32>();
    all::<f64>();
    all::<c32>();
    all::<c64>();
}

#[test]
fn sizes_are_checked() {
    assert!(Dense::new(&[0f32; 5], 1, 2, 3).is_err());
    let weight = [0f32; 6];
    let op = Dense::new(&weight, 1, 2, 3).unwrap();
    let one = Budget::of(1);
    assert!(op.apply(&[0.0; 2], 1, Side::Forward, &mut [0.0; 2], None, &one).is_err());
    assert!(op.apply(&[0.0; 2], 1, Side::Adjoint, &mut [0.0; 3], None, &one).is_ok());
    let short = &mut [Bar::Own(&mut [0.0; 5])];
    let bad = op.apply_vjp(None, &[0.0; 3], &[0.0; 2], 1, Side::Forward, short, None, &one);
    assert!(bad.unwrap_err().to_string().starts_with("weight_bar: expected 6"));
}
