//! Against the definition in double precision: values and gradients of both sides, through the factors and through W, on 1, 2
//! and 3 threads.

use super::*;
use crate::budget::Budget;
use crate::cpu::Cpu;
use crate::operator::Saves;
use crate::scalar::{c32, c64};
use crate::testing::{near, numbers};

/// One matrix, and what its definition says.
struct Single<W> {
    w: Vec<W>,
    u: Vec<W>,
    v: Vec<W>,
    logits: Vec<f64>,
    margin: f64,
    sizes: (usize, usize, usize),
}

impl<W: Scalar<Real = f64, Wide = W>> Single<W> {
    fn sigma(&self, i: usize) -> f64 {
        1.0 + self.margin * (self.logits[i] / 2.0).tanh()
    }

    fn formed(mut self) -> Self {
        let (n, k, r) = self.sizes;
        for (i, j) in (0..n).flat_map(|i| (0..k).map(move |j| (i, j))) {
            let terms = (0..r).map(|q| self.u[i * r + q] * self.v[j * r + q].conj() * W::real(self.sigma(q)));
            let entry = terms.sum::<W>();
            self.w.push(entry);
        }
        self
    }

    /// Gradients of u, logits and v.
    fn pulled(&self, w_bar: &[W]) -> (Vec<W>, Vec<W>, Vec<W>) {
        let (n, k, r) = self.sizes;
        let (mut u_bar, mut v_bar) = (vec![W::zero(); n * r], vec![W::zero(); k * r]);
        let mut p_bar = vec![W::zero(); r];
        for (i, j) in (0..n).flat_map(|i| (0..k).map(move |j| (i, j))) {
            for q in 0..r {
                let (bar, u, v) = (w_bar[i * k + j], self.u[i * r + q], self.v[j * r + q]);
                u_bar[i * r + q] += bar * v * W::real(self.sigma(q));
                v_bar[j * r + q] += bar.conj() * u * W::real(self.sigma(q));
                let tanh = (self.logits[q] / 2.0).tanh();
                p_bar[q] += W::real((u.conj() * bar * v).re() * self.margin / 2.0 * (1.0 - tanh * tanh));
            }
        }
        (u_bar, p_bar, v_bar)
    }
}

fn check<T: Scalar>(batch: usize, (n, k, r): (usize, usize, usize), rows: usize) {
    let (u, v): (Vec<T>, Vec<T>) = (numbers(batch * n * r, 1), numbers(batch * k * r, 2));
    let logits: Vec<T::Real> =
        numbers::<T::Real>(batch * r, 3).iter().map(|x| *x * T::Real::of(4.0)).collect();
    let margin: Vec<T::Real> = (0..batch).map(|b| T::Real::of(0.25 * b as f64)).collect();
    let given = [
        Given { shape: &[batch, n, r], array: Array::Own(&u) },
        Given { shape: &[batch, r], array: Array::Real(&logits) },
        Given { shape: &[batch, k, r], array: Array::Own(&v) },
        Given { shape: &[batch], array: Array::Real(&margin) },
    ];
    let op = BoundedSvd::<T>::of(&given).unwrap();
    let wide = |x: &[T]| -> Vec<T::Wide> { x.iter().map(|x| x.widen()).collect() };
    let singles: Vec<Single<T::Wide>> = (0..batch)
        .map(|b| {
            let own = Single {
                w: vec![],
                u: wide(&u[b * n * r..(b + 1) * n * r]),
                v: wide(&v[b * k * r..(b + 1) * k * r]),
                logits: logits[b * r..(b + 1) * r].iter().map(|x| x.f64()).collect(),
                margin: margin[b].f64(),
                sizes: (n, k, r),
            };
            own.formed()
        })
        .collect();
    let one = <T::Real as One>::one();
    let rooms = || (vec![T::one(); u.len()], vec![one; logits.len()], vec![T::one(); v.len()]);
    type Rooms<T> = (Vec<T>, Vec<<T as Scalar>::Real>, Vec<T>);
    let agree = |got: &Rooms<T>, bars: Vec<Vec<T::Wide>>| {
        let (mut u_bar, mut p_bar, mut v_bar) = (vec![], vec![], vec![]);
        for (single, bar) in singles.iter().zip(bars) {
            let (u, p, v) = single.pulled(&bar);
            u_bar.extend(u);
            p_bar.extend(p);
            v_bar.extend(v);
        }
        near(&got.0, &u_bar, 200.0 * T::Real::EPS.f64(), "u_bar");
        near(
            &got.1.iter().map(|x| T::real(*x)).collect::<Vec<_>>(),
            &p_bar,
            200.0 * T::Real::EPS.f64(),
            "logits_bar",
        );
        near(&got.2, &v_bar, 200.0 * T::Real::EPS.f64(), "v_bar");
    };
    let zero = T::Wide::default();
    for side in [Side::Forward, Side::Adjoint] {
        let (from, into) = op.features(side);
        let (x, ct): (Vec<T>, Vec<T>) = (numbers(batch * rows * from, 4), numbers(batch * rows * into, 5));
        let (mut out, mut x_bar) = (vec![zero; ct.len()], vec![zero; x.len()]);
        let mut bars = vec![vec![zero; n * k]; batch];
        for (b, row) in (0..batch).flat_map(|b| (0..rows).map(move |row| (b, row))) {
            for (i, j) in (0..n).flat_map(|i| (0..k).map(move |j| (i, j))) {
                let w = singles[b].w[i * k + j];
                let (a, c) = if side == Side::Forward { (j, i) } else { (i, j) };
                let (a, c) = ((b * rows + row) * from + a, (b * rows + row) * into + c);
                let (to, back) = if side == Side::Forward { (w, w.conj()) } else { (w.conj(), w) };
                let (x, ct) = (x[a].widen(), ct[c].widen());
                out[c] += to * x;
                x_bar[a] += back * ct;
                bars[b][i * k + j] += if side == Side::Forward { ct * x.conj() } else { x * ct.conj() };
            }
        }
        let mut first = None;
        let Ok(Saves::Elements(saves)) = op.apply_saves(rows, side) else {
            panic!("saves elements of its own")
        };
        for (threads, save) in [(1, false), (2, false), (3, false), (1, true), (2, true)] {
            let budget = Budget::of(threads);
            let (mut c, mut d) = (vec![T::one(); ct.len()], vec![T::one(); x.len()]);
            let (mut room, mut kept) = (rooms(), (save && saves > 0).then(|| vec![T::one(); batch * saves]));
            op.apply(&x, rows, side, &mut c, kept.as_deref_mut(), &budget).unwrap();
            let own = &mut [Bar::Own(&mut room.0), Bar::Real(&mut room.1), Bar::Own(&mut room.2), Bar::None];
            op.apply_vjp(kept.as_deref(), &x, &ct, rows, side, own, Some(&mut d), &budget).unwrap();
            near(&c, &out, 200.0 * T::Real::EPS.f64(), "out");
            near(&d, &x_bar, 200.0 * T::Real::EPS.f64(), "x_bar");
            agree(&room, bars.clone());
            let got = (c, d, room);
            assert!(
                *first.get_or_insert_with(|| got.clone()) == got,
                "{threads} threads, saved {save}: other bits"
            );
        }
    }
    let (mut w, mut room, budget) = (vec![T::one(); batch * n * k], rooms(), Budget::of(2));
    op.matrix(&mut w, None, &budget).unwrap();
    near(
        &w,
        &singles.iter().flat_map(|single| single.w.clone()).collect::<Vec<_>>(),
        200.0 * T::Real::EPS.f64(),
        "matrix",
    );
    let ct: Vec<T> = numbers(w.len(), 6);
    let own = &mut [Bar::Own(&mut room.0), Bar::Real(&mut room.1), Bar::Own(&mut room.2), Bar::None];
    op.matrix_vjp(None, &ct, own, &budget).unwrap();
    agree(&room, wide(&ct).chunks(n * k).map(<[_]>::to_vec).collect());
}

#[test]
fn factors_and_matrix_equal_the_definition() {
    fn all<T: Scalar>() {
        for (batch, sizes, rows) in [
            (1, (5, 5, 5), 2),
            (2, (6, 4, 3), 1),
            (1, (4, 7, 2), 40),
            (3, (5, 5, 5), 30),
            (2, (1, 1, 1), 2),
            (1, (3, 2, 2), 0),
            (1, (9, 40, 300), 2),
        ] {
            check::<T>(batch, sizes, rows);
        }
    }
    all::<f32>();
    all::<f64>();
    all::<c32>();
    all::<c64>();
}

#[test]
fn margins_outside_the_range_are_refused() {
    let refused = |margin: f64| check_margin::<f64>(&[0.5, margin]).err().map(|error| error.to_string());
    assert_eq!(refused(1.5), Some("margin must lie in [0, 1], not 1.5".into()));
    assert_eq!(refused(-0.25), Some("margin must lie in [0, 1], not -0.25".into()));
    assert_eq!((refused(0.0), refused(1.0), refused(f64::NAN)), (None, None, None));
}
