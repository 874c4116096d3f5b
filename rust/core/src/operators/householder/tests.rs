//! Against the textbook in double precision: one reflection at a time, Algorithm 1 in its symmetric complex form.

use super::*;
use crate::scalar::{Real, c32, c64};
use num_traits::One;

/// Deterministic numbers in (-1, 1).
struct Random(u64);
impl Random {
    fn number(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
    fn array<T: Scalar>(&mut self, n: usize) -> Vec<T> {
        (0..n).map(|_| T::new(T::Real::of(self.number()), T::Real::of(self.number()))).collect()
    }
    fn reals<R: Real>(&mut self, n: usize) -> Vec<R> {
        (0..n).map(|_| R::of(3.0 * self.number())).collect()
    }
}

fn widen<T: Scalar>(x: &[T]) -> Vec<T::Wide> {
    x.iter().map(|x| x.widen()).collect()
}

/// One matrix in double precision: columns of U, diagonal of E.
struct Textbook<W> {
    columns: Vec<Vec<W>>,
    e: Vec<W>,
}

impl<W: Scalar<Real = f64, Wide = W>> Textbook<W> {
    fn new<T: Scalar<Wide = W>>(op: &Householder<'_, T>, b: usize) -> Self {
        let (n, m) = (op.n, op.m);
        let at = |i: usize, j: usize| op.vectors[(b * n + i) * m + j].widen();
        let columns = (0..m).map(|j| (0..n).map(|i| at(i, j)).collect()).collect();
        let mut e = vec![W::one(); n];
        match op.last {
            Last::None | Last::Signs(_) => {}
            Last::Sign(sign) => e[n - 1] = W::real(sign[b].f64()),
            Last::Phases(phases) => {
                for (e, angle) in e.iter_mut().zip(&phases[b * n..]) {
                    *e = W::cis(angle.f64());
                }
            }
        }
        Textbook { columns, e }
    }

    /// (2 / ||u||^2) u^H x
    fn coefficient(u: &[W], x: &[W]) -> W {
        let norm: f64 = u.iter().map(|u| u.abs2()).sum();
        u.iter().zip(x).map(|(u, x)| u.conj() * *x).sum::<W>().scale(2.0 / norm)
    }

    fn reflect(u: &[W], x: &mut [W]) -> W {
        let f = Self::coefficient(u, x);
        for (x, u) in x.iter_mut().zip(u) {
            *x -= f * *u;
        }
        f
    }

    fn forward(&self, x: &[W]) -> Vec<W> {
        let mut y: Vec<W> = x.iter().zip(&self.e).map(|(x, e)| *x * *e).collect();
        for u in self.columns.iter().rev() {
            Self::reflect(u, &mut y);
        }
        y
    }

    fn adjoint(&self, x: &[W]) -> Vec<W> {
        let mut y = x.to_vec();
        for u in &self.columns {
            Self::reflect(u, &mut y);
        }
        y.iter().zip(&self.e).map(|(y, e)| *y * e.conj()).collect()
    }

    /// Algorithm 1 for one column: adds to u_bar (by columns) and returns (x_bar, conj(e) * gradient of e before Im or Re).
    fn pull(&self, x: &[W], ct: &[W], u_bar: &mut [Vec<W>]) -> (Vec<W>, Vec<W>, Vec<W>) {
        let y: Vec<W> = x.iter().zip(&self.e).map(|(x, e)| *x * *e).collect();
        let (mut states, mut h) = (vec![y.clone()], vec![]);
        for u in self.columns.iter().rev() {
            let mut next = states[states.len() - 1].clone();
            h.push(Self::reflect(u, &mut next));
            states.push(next);
        }
        let mut g = ct.to_vec();
        for (j, u) in self.columns.iter().enumerate() {
            let depth = self.columns.len() - j;
            let (above, below, hj) = (&states[depth], &states[depth - 1], h[depth - 1]);
            let before = g.clone();
            let c = Self::reflect(u, &mut g);
            for i in 0..g.len() {
                u_bar[j][i] -= (hj.conj() * (before[i] + g[i]) + c.conj() * (above[i] + below[i])).scale(0.5);
            }
        }
        let x_bar = g.iter().zip(&self.e).map(|(g, e)| *g * e.conj()).collect();
        (x_bar, g, y)
    }
}

struct Answers<W> {
    out: Vec<W>,
    vectors: Vec<W>,
    last: Vec<f64>,
    x_bar: Vec<W>,
}

fn reference<T: Scalar>(
    op: &Householder<'_, T>,
    x: &[T],
    ct: &[T],
    rows: usize,
    side: Side,
) -> Answers<T::Wide> {
    let (n, m) = (op.n, op.m);
    let mut all = Answers { out: vec![], vectors: vec![], last: vec![], x_bar: vec![] };
    for b in 0..op.batch {
        let book = Textbook::new(op, b);
        let mut u_bar = vec![vec![T::Wide::default(); n]; m];
        let mut last = vec![0.0; if matches!(op.last, Last::Phases(_)) { n } else { 1 }];
        for r in b * rows..(b + 1) * rows {
            let (x, ct) = (widen(&x[r * n..(r + 1) * n]), widen(&ct[r * n..(r + 1) * n]));
            let (into, from) = if side == Side::Forward { (&x, &ct) } else { (&ct, &x) };
            let (x_bar, g, y) = book.pull(into, from, &mut u_bar);
            match side {
                Side::Forward => {
                    all.out.extend(book.forward(&x));
                    all.x_bar.extend(x_bar);
                }
                Side::Adjoint => {
                    all.out.extend(book.adjoint(&x));
                    all.x_bar.extend(book.forward(&ct));
                }
            }
            match op.last {
                Last::None | Last::Signs(_) => {}
                Last::Sign(_) => last[0] += (g[n - 1].conj() * into[n - 1]).re(),
                Last::Phases(_) => {
                    for j in 0..n {
                        last[j] += (g[j] * y[j].conj()).im();
                    }
                }
            }
        }
        for i in 0..n {
            all.vectors.extend((0..m).map(|j| u_bar[j][i]));
        }
        if op.has_last() {
            all.last.extend(last);
        }
    }
    all
}

/// ||a - ref|| / max(||ref||, 1e-3); for float32 gradients also against a fraction of the cotangent.
fn distance<T: Scalar>(a: &[T], expected: &[T::Wide], floor: f64) -> f64 {
    assert_eq!(a.len(), expected.len());
    let (mut off, mut size) = (0.0, 0.0);
    for (a, e) in a.iter().zip(expected) {
        off += (a.widen() - *e).abs2();
        size += e.abs2();
    }
    off.sqrt() / size.sqrt().max(floor).max(1e-3)
}

/// A slice with guards on both sides.
struct Guarded<T: Scalar>(Vec<T>);
impl<T: Scalar> Guarded<T> {
    const GUARD: usize = 19;
    fn new(n: usize) -> Self {
        let nan = T::Real::of(f64::NAN);
        let mut all = vec![T::new(nan, nan); n + 2 * Self::GUARD];
        let canary = T::real(T::Real::of(123.0));
        all[..Self::GUARD].fill(canary);
        all[n + Self::GUARD..].fill(canary);
        Guarded(all)
    }
    fn out(&mut self) -> &mut [T] {
        let end = self.0.len() - Self::GUARD;
        &mut self.0[Self::GUARD..end]
    }
    fn read(&self) -> &[T] {
        let (canary, end) = (T::real(T::Real::of(123.0)), self.0.len() - Self::GUARD);
        assert!(
            self.0[..Self::GUARD].iter().chain(&self.0[end..]).all(|x| *x == canary),
            "guard overwritten"
        );
        &self.0[Self::GUARD..end]
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    None,
    Sign,
    Phases,
}

/// Thread counts tried for a shape: barriers are slow on busy cores, so not all for every shape.
fn teams(n: usize, m: usize) -> &'static [usize] {
    match (n + 3 * m) % 8 {
        0 => &[1, 2, 3],
        1 | 2 => &[1, 2],
        _ => &[1],
    }
}

/// Values and gradients of one shape against the textbook, bitwise equal for 1, 2 and 3 threads.
fn check<T: Scalar>(batch: usize, n: usize, m: usize, rows: usize, kind: Kind) {
    if !crate::testing::within_work(&[batch, n, m, n + rows]) {
        return;
    }
    let mut random = Random((n * 1000 + m * 10 + rows) as u64 * 0x9e3779b97f + 77);
    let mut vectors: Vec<T> = random.array(batch * n * m);
    check_vectors(&vectors, &mut random, (batch, n, m), rows, kind, batch == 0 && n > 0 && m > 1);
    if 1 < m && m <= n && (n + rows).is_multiple_of(2) {
        for (at, entry) in vectors.iter_mut().enumerate() {
            if at % m > at / m % n {
                *entry = T::zero();
            }
        }
        check_vectors(&vectors, &mut random, (batch, n, m), rows, kind, true);
    }
}

fn check_vectors<T: Scalar>(
    vectors: &[T],
    random: &mut Random,
    (batch, n, m): (usize, usize, usize),
    rows: usize,
    kind: Kind,
    trapezoid: bool,
) {
    let (sign, phases) = (random.reals::<T::Real>(batch), random.reals::<T::Real>(batch * n));
    let last = match kind {
        Kind::None => Last::None,
        Kind::Sign => Last::Sign(&sign),
        Kind::Phases => Last::Phases(&phases),
    };
    let op = Householder::new(vectors, last, batch, n, m).unwrap();
    assert_eq!(trapezoidal(vectors, n, m), trapezoid);
    let lasts = if kind == Kind::Phases { batch * n } else { batch };
    let size = batch * rows * n;
    let (x, ct): (Vec<T>, Vec<T>) = (random.array(size), random.array(size));
    let eps = T::Real::EPS.f64();
    let growth = (1.0 + m as f64).sqrt() * (1.0 + rows as f64).sqrt().min(4.0) * 12.0;
    let what = if trapezoid { "trapezoid" } else { "full" };
    let name =
        format!("{what} batch {batch} n {n} m {m} rows {rows} {kind:?} {}", std::any::type_name::<T>());

    for side in [Side::Forward, Side::Adjoint] {
        let expected = reference(&op, &x, &ct, rows, side);
        let mut first: Option<[Vec<T>; 3]> = None;
        let mut first_last: Option<Vec<T::Real>> = None;
        for &threads in teams(n, m) {
            let (mut out, mut u_bar, mut x_bar) =
                (Guarded::<T>::new(size), Guarded::new(batch * n * m), Guarded::new(size));
            let mut last_bar = Guarded::<T::Real>::new(lasts);
            op.apply(&x, rows, side, out.out(), None, &Budget::of(threads)).unwrap();
            let bars = &mut bars(Bar::Own(u_bar.out()), kind, last_bar.out());
            let budget = Budget::of(threads);
            op.apply_vjp(None, &x, &ct, rows, side, bars, Some(x_bar.out()), &budget).unwrap();
            let got = [out.read().to_vec(), u_bar.read().to_vec(), x_bar.read().to_vec()];
            let got_last = last_bar.read().to_vec();
            match (&first, &first_last) {
                (Some(first), Some(first_last)) => {
                    assert_eq!(first, &got, "{name} {side:?}: {threads} threads differ");
                    if kind != Kind::None {
                        assert_eq!(first_last, &got_last, "{name} {side:?}: {threads} threads differ");
                    }
                    continue;
                }
                _ => (first, first_last) = (Some(got), Some(got_last)),
            }
            let got = first.as_ref().unwrap();
            let norm = ct.iter().map(|x| x.widen().abs2()).sum::<f64>().sqrt();
            let off = distance(&got[0], &expected.out, 0.0) / eps;
            assert!(off < growth, "{name} {side:?} out: {off:.1} eps");
            let off = distance(&got[2], &expected.x_bar, 0.0) / eps;
            assert!(off < growth, "{name} {side:?} x_bar: {off:.1} eps");
            // gradients cancel (Re u^H U_bar = 0), so errors are also measured against the cotangent
            let off = distance(&got[1], &expected.vectors, norm) / eps;
            assert!(off < 8.0 * growth, "{name} {side:?} vectors: {off:.1} eps");
            if kind != Kind::None {
                let wide: Vec<f64> = expected.last.clone();
                let got: Vec<f64> = first_last.as_ref().unwrap().iter().map(|x| x.f64()).collect();
                let off = distance::<f64>(&got, &wide, norm) / eps;
                assert!(off < 8.0 * growth, "{name} {side:?} last: {off:.1} eps");
            }
        }
        keeping_changes_no_bit(&op, (&x, &ct, rows), side, first.as_ref().unwrap(), &name);
        // a gradient requested alone equals the one requested with others
        if let (Some(all), Some(last)) = (&first, &first_last) {
            let (mut u_bar, mut x_bar, mut last_bar) =
                (Guarded::<T>::new(batch * n * m), Guarded::<T>::new(size), Guarded::<T::Real>::new(lasts));
            let (one, two) = (Budget::of(1), Budget::of(2));
            op.apply_vjp(None, &x, &ct, rows, side, &mut [Bar::Own(u_bar.out())], None, &two).unwrap();
            op.apply_vjp(None, &x, &ct, rows, side, &mut [], Some(x_bar.out()), &one).unwrap();
            assert_eq!((u_bar.read(), x_bar.read()), (&all[1][..], &all[2][..]), "{name} {side:?} alone");
            if kind == Kind::None {
                continue;
            }
            let only = &mut bars(Bar::None, kind, last_bar.out());
            op.apply_vjp(None, &x, &ct, rows, side, only, None, &two).unwrap();
            assert_eq!(last_bar.read(), &last[..], "{name} {side:?} last alone");
        }
    }
    check_matrix(&op, kind, &name, growth);
}

/// Room for the gradients of the vectors and of the last factor.
fn bars<'a, T: Scalar>(vectors: Bar<'a, T>, kind: Kind, last: &'a mut [T::Real]) -> [Bar<'a, T>; 3] {
    match kind {
        Kind::None => [vectors, Bar::None, Bar::None],
        Kind::Sign => [vectors, Bar::Real(last), Bar::None],
        Kind::Phases => [vectors, Bar::None, Bar::Real(last)],
    }
}

/// The forward pass that keeps, and the gradient from what it kept, equal those without.
fn keeping_changes_no_bit<T: Scalar>(
    op: &Householder<'_, T>,
    (x, ct, rows): (&[T], &[T], usize),
    side: Side,
    [out, u_bar, x_bar]: &[Vec<T>; 3],
    name: &str,
) {
    let len = op.batch * apply_keep_len(op.n, op.m, rows, op.has_last()).unwrap();
    if side == Side::Adjoint || len == 0 {
        return;
    }
    for &threads in teams(op.n, op.m) {
        let (mut got, mut keep) = (Guarded::<T>::new(out.len()), Guarded::<T>::new(len));
        let budget = Budget::of(threads);
        op.apply(x, rows, side, got.out(), Some(keep.out()), &budget).unwrap();
        assert_eq!(got.read(), &out[..], "{name}: keeping, {threads} threads");
        let (mut u, mut bar) = (Guarded::<T>::new(u_bar.len()), Guarded::<T>::new(x_bar.len()));
        let only = &mut [Bar::Own(u.out())];
        op.apply_vjp(Some(keep.read()), x, ct, rows, side, only, Some(bar.out()), &budget).unwrap();
        assert_eq!((u.read(), bar.read()), (&u_bar[..], &x_bar[..]), "{name}: kept, {threads} threads");
    }
}

fn check_matrix<T: Scalar>(op: &Householder<'_, T>, kind: Kind, name: &str, growth: f64) {
    let (batch, n, m, eps) = (op.batch, op.n, op.m, T::Real::EPS.f64());
    // columns of W as rows of x: apply to the transposed identity
    let mut identity = vec![T::default(); batch * n * n];
    for b in 0..batch {
        for i in 0..n {
            identity[(b * n + i) * n + i] = T::one();
        }
    }
    let transposed = |x: &[T]| -> Vec<T> {
        (0..batch * n * n).map(|at| x[at / (n * n) * n * n + at % n * n + at / n % n]).collect()
    };
    let ct: Vec<T> = Random(99 + n as u64).array(batch * n * n);
    let expected = reference(op, &identity, &transposed(&ct), n, Side::Forward);
    type All<T> = (Vec<T>, Vec<T>, Vec<<T as Scalar>::Real>);
    let mut first: Option<All<T>> = None;
    for &threads in teams(n, m) {
        let (mut w, mut u_bar) = (Guarded::<T>::new(batch * n * n), Guarded::<T>::new(batch * n * m));
        let mut last_bar = Guarded::<T::Real>::new(if kind == Kind::Phases { batch * n } else { batch });
        op.matrix(w.out(), None, &Budget::of(threads)).unwrap();
        if kind == Kind::None {
            last_bar.out().fill(T::Real::of(0.0));
        }
        let budget = Budget::of(threads);
        let both = &mut bars(Bar::Own(u_bar.out()), kind, last_bar.out());
        op.matrix_vjp(None, &ct, both, &budget).unwrap();
        let got = (w.read().to_vec(), u_bar.read().to_vec(), last_bar.read().to_vec());
        let saves = if m > 4 * n { 0 } else { m * (m + n) };
        assert_eq!(op.matrix_saves().unwrap(), Saves::Elements(saves));
        let (mut keep, mut again) = (Guarded::<T>::new(batch * saves), Guarded::<T>::new(batch * n * m));
        let room = (saves > 0).then(|| keep.out());
        op.matrix(w.out(), room, &budget).unwrap();
        let kept = (saves > 0).then(|| keep.read());
        op.matrix_vjp(kept, &ct, &mut [Bar::Own(again.out())], &budget).unwrap();
        assert!(got.0 == w.read() && got.1 == again.read(), "{name} kept");
        if let Some(first) = &first {
            assert!(*first == got, "{name} matrix: {threads} threads differ");
            continue;
        }
        let norm = ct.iter().map(|x| x.widen().abs2()).sum::<f64>().sqrt();
        let off = distance(&transposed(&got.0), &expected.out, 0.0) / eps;
        assert!(off < growth, "{name} matrix: {off:.1} eps");
        let off = distance(&got.1, &expected.vectors, norm) / eps;
        assert!(off < 8.0 * growth, "{name} matrix vectors: {off:.1} eps");
        if kind != Kind::None {
            let last: Vec<f64> = got.2.iter().map(|x| x.f64()).collect();
            let off = distance::<f64>(&last, &expected.last, norm) / eps;
            assert!(off < 8.0 * growth, "{name} matrix last: {off:.1} eps");
        }
        first = Some(got);
    }
    // scale invariance: Re(u_j^H U_bar_j) = 0
    let (_, u_bar, _) = first.unwrap();
    for b in 0..batch {
        for j in 0..m {
            let (mut inner, mut size) = (0.0, 0.0);
            for i in 0..n {
                let at = (b * n + i) * m + j;
                let (u, g) = (op.vectors[at].widen(), u_bar[at].widen());
                inner += (u.conj() * g).re();
                size += u.modulus() * g.modulus();
            }
            assert!(inner.abs() <= 1e3 * growth * eps * size.max(1.0), "{name}: Re u^H u_bar = {inner:e}");
        }
    }
}

fn kinds<T: Scalar>() -> &'static [Kind] {
    if T::PARTS == 1 { &[Kind::None, Kind::Sign] } else { &[Kind::None, Kind::Sign, Kind::Phases] }
}

fn every_shape<T: Scalar>() {
    for n in 1..=40 {
        for m in [0, 1, 2, n / 2, n - 1, n, n + 3] {
            let rows = [0, 1, 2, 3, 7, 12, 50][(n + m) % 7];
            let kinds = kinds::<T>();
            check::<T>(1 + (n + m) % 2, n, m, rows, kinds[(n * 7 + m) % kinds.len()]);
        }
    }
    for rows in [0, 1, 2, 3, 7, 9, 50] {
        for kind in kinds::<T>() {
            check::<T>(3, 8, 2, rows, *kind);
            check::<T>(1, 17, 19, rows, *kind);
            check::<T>(1, 70, 66, rows, *kind);
        }
    }
    for n in [63, 64, 65, 130] {
        for m in [5, n - 1, n, n + 3] {
            check::<T>(1, n, m, 10, *kinds::<T>().last().unwrap());
        }
    }
    check::<T>(1, 130, 10, 300, Kind::Sign);
    check::<T>(1, 40, 150, 140, Kind::Sign);
    check::<T>(1, 9, 7, 1100, Kind::None);
    check::<T>(9, 20, 6, 5, Kind::None);
    check::<T>(40, 33, 33, 2, Kind::Sign);
    for (n, m) in [(1, 5), (2, 9), (3, 40), (16, 70)] {
        for rows in [1, 12, 90] {
            check::<T>(2, n, m, rows, *kinds::<T>().last().unwrap());
        }
    }
    check::<T>(0, 4, 3, 2, Kind::None);
    check::<T>(2, 1, 0, 2, Kind::Sign);
}

#[test]
fn textbook_f32() {
    every_shape::<f32>();
}
#[test]
fn textbook_f64() {
    every_shape::<f64>();
}
#[test]
fn textbook_c32() {
    every_shape::<c32>();
}
#[test]
fn textbook_c64() {
    every_shape::<c64>();
}

/// max|W^H W - I| / (n eps)
fn unitarity<T: Scalar>(w: &[T], n: usize) -> f64 {
    let mut worst = 0f64;
    let w = widen(w);
    for i in 0..n {
        let mut row = vec![T::Wide::default(); n];
        for k in 0..n {
            let f = w[k * n + i].conj();
            for j in 0..n {
                row[j] += f * w[k * n + j];
            }
        }
        row[i] -= T::Wide::one();
        worst = row.iter().fold(worst, |worst, x| worst.max(x.modulus()));
        assert!(row.iter().all(|x| x.finite()));
    }
    worst / (n as f64 * T::Real::EPS.f64())
}

#[test]
fn matrices_are_unitary_to_rounding() {
    fn one<T: Scalar>(n: usize, m: usize) {
        let vectors: Vec<T> = Random(n as u64 + 1).array(n * m);
        let op = Householder::new(&vectors, Last::None, 1, n, m).unwrap();
        let rows = 2 * n.max(m); // the identity and zeros, in the largest blocks
        let (mut w, mut x) = (vec![T::default(); n * n], vec![T::default(); rows * n]);
        x[..n * n].iter_mut().step_by(n + 1).for_each(|x| *x = T::one());
        let mut c = x.clone();
        op.matrix(&mut w, None, &Budget::of(2)).unwrap();
        op.apply(&x, rows, Side::Forward, &mut c, None, &Budget::of(2)).unwrap();
        for w in [&w, &c[..n * n]] {
            let (e, bound) = (unitarity(w, n), 20.0 * (m as f64 / n as f64).sqrt());
            assert!(e <= bound, "n {n} m {m} {}: e(W) = {e}", std::any::type_name::<T>());
        }
    }
    for n in [1, 2, 3, 5, 8, 16, 31, 64, 100, 256] {
        for m in [n, 500] {
            if crate::testing::within_work(&[n, m.max(n), n]) && m >= n {
                one::<f32>(n, m);
                one::<f64>(n, m);
                one::<c32>(n, m);
            }
        }
    }
}

#[test]
fn parallel_columns_are_harmless() {
    let (n, m) = (12, 12);
    let mut vectors: Vec<f32> = Random(4).array(n * m);
    for i in 0..n {
        for j in 1..m {
            vectors[i * m + j] = vectors[i * m] * (1.0 + j as f32) + 1e-6 * vectors[i * m + j];
        }
    }
    let op = Householder::new(&vectors, Last::None, 1, n, m).unwrap();
    let mut w = vec![0f32; n * n];
    op.matrix(&mut w, None, &Budget::of(1)).unwrap();
    assert!(unitarity(&w, n) <= 20.0);
}

/// W does not depend on the lengths of the columns; gradients scale inversely.
fn lengths<T: Scalar<Real = f64>>() {
    let (n, m) = (20, 70);
    let mut random = Random(21);
    let vectors: Vec<T> = random.array(n * m);
    let ct: Vec<T> = random.array(n * n);
    let mut scaled = vectors.clone();
    let scale = |j: usize| 2f64.powi(((j * 37) % 799) as i32 - 399);
    for i in 0..n {
        for j in 0..m {
            scaled[i * m + j] = scaled[i * m + j].scale(scale(j));
        }
    }
    let mut results = vec![];
    for vectors in [&vectors, &scaled] {
        let op = Householder::new(vectors, Last::None, 1, n, m).unwrap();
        assert_eq!(op.check(), Ok(None));
        let (mut w, mut bars) = (vec![T::default(); n * n], vec![vec![T::default(); n * m]; 3]);
        op.matrix(&mut w, None, &Budget::of(1)).unwrap();
        assert!(unitarity(&w, n) <= 20.0);
        let one = Budget::of(1);
        op.matrix_vjp(None, &ct, &mut [Bar::Own(&mut bars[0])], &one).unwrap();
        for (rows, bar) in [(3, 1), (n, 2)] {
            let only = &mut [Bar::Own(&mut bars[bar])];
            let (x, ct) = (&ct[..rows * n], &w[..rows * n]);
            op.apply_vjp(None, x, ct, rows, Side::Forward, only, None, &one).unwrap();
        }
        results.push((w, bars));
    }
    // for powers of two every rounding is the same
    assert_eq!(results[0].0, results[1].0);
    for (plain, scaled) in results[0].1.iter().zip(&results[1].1) {
        for at in 0..n * m {
            assert_eq!(plain[at], scaled[at].scale(scale(at % m)));
        }
    }
}

#[test]
fn lengths_of_columns_from_tiny_to_huge() {
    lengths::<f64>();
    lengths::<c64>();
}

#[test]
fn check_finds_the_first_column_that_is_no_reflection() {
    fn found<T: Scalar>(bad: f64) -> Option<(usize, usize)> {
        let (n, m) = (3, 4);
        let mut vectors: Vec<T> = Random(8).array(2 * n * m);
        for i in 0..n {
            vectors[n * m + i * m + 2] = T::real(T::Real::of(bad));
        }
        Householder::new(&vectors, Last::None, 2, n, m).unwrap().check().unwrap()
    }
    for bad in [0.0, 1e-22, 1e22] {
        assert_eq!(found::<f32>(bad), Some((1, 2)));
        assert_eq!(found::<c32>(bad), Some((1, 2)));
    }
    for bad in [0.0, 1e-170, 1e170] {
        assert_eq!(found::<f64>(bad), Some((1, 2)));
        assert_eq!(found::<c64>(bad), Some((1, 2)));
    }
    for fine in [1.0, 1e-15, 1e15, f64::NAN, f64::INFINITY] {
        assert_eq!(found::<f32>(fine), None);
        assert_eq!(found::<f64>(fine), None);
    }
    assert_eq!(Householder::<f32>::new(&[], Last::None, 2, 0, 3).unwrap().check().unwrap(), Some((0, 0)));
    assert_eq!(Householder::<f32>::new(&[], Last::None, 2, 3, 0).unwrap().check().unwrap(), None);
}

#[test]
fn sizes_and_kinds_are_checked() {
    let v = [1f32; 12];
    assert!(Householder::new(&v, Last::None, 1, 4, 2).is_err());
    assert!(Householder::new(&v, Last::Sign(&[1.0]), 2, 3, 2).is_err());
    assert!(Householder::new(&v, Last::Phases(&[0.0; 6]), 2, 3, 2).is_err());
    let op = Householder::new(&v, Last::None, 2, 3, 2).unwrap();
    let one = Budget::of(1);
    assert!(op.matrix(&mut [0.0; 17], None, &one).is_err());
    assert!(op.apply(&[0.0; 12], 2, Side::Forward, &mut [0.0; 11], None, &one).is_err());
    let mut bar = [0.0; 2];
    let wrong = &mut [Bar::None, Bar::Real(&mut bar)];
    assert!(op.matrix_vjp(None, &[0.0; 18], wrong, &one).is_err());
}

fn round_trip<T: Scalar>(w: &[T], n: usize, bound: f64) {
    let m = n - 1;
    let (mut vectors, mut last) =
        (vec![T::default(); n * m], vec![<T::Real as Default>::default(); if T::PARTS == 1 { 1 } else { n }]);
    from_matrix(w, 1, n, n as f64 * T::Real::EPS.f64().sqrt(), &mut vectors, &mut last, &|| false).unwrap();
    for i in 0..n {
        for j in i + 1..m {
            assert_eq!(vectors[i * m + j], T::default());
        }
    }
    for j in 0..m {
        let norm: f64 = (0..n).map(|i| vectors[i * m + j].widen().abs2()).sum();
        assert!((norm - 1.0).abs() < 8.0 * T::Real::EPS.f64() * n as f64);
    }
    let last = if T::PARTS == 1 { Last::Sign(&last) } else { Last::Phases(&last) };
    if let Last::Sign(sign) = last {
        assert_eq!(sign[0].f64().abs(), 1.0);
    }
    let mut back = vec![T::default(); n * n];
    Householder::new(&vectors, last, 1, n, m).unwrap().matrix(&mut back, None, &Budget::of(1)).unwrap();
    for (a, b) in back.iter().zip(w) {
        let off = (a.widen() - b.widen()).modulus() / T::Real::EPS.f64();
        assert!(off <= bound * n as f64, "n {n}: off by {off} eps");
    }
}

#[test]
fn recovered_reflections_give_the_matrix_back() {
    fn all<T: Scalar>() {
        for n in [1, 2, 3, 8, 33, 70] {
            let vectors: Vec<T> = Random(n as u64).array(n * n);
            let op = Householder::new(&vectors, Last::None, 1, n, n).unwrap();
            let mut w = vec![T::default(); n * n];
            op.matrix(&mut w, None, &Budget::of(1)).unwrap();
            round_trip(&w, n, 20.0);
            for signs in [1.0, -1.0] {
                let mut w = vec![T::default(); n * n];
                let mut shifted = w.clone();
                for i in 0..n {
                    w[i * n + i] = T::real(T::Real::of(signs));
                    shifted[i * n + (i * 3 + 1) % n] = T::real(T::Real::of(signs));
                }
                round_trip(&w, n, 20.0);
                if n % 3 != 0 {
                    round_trip(&shifted, n, 20.0);
                }
            }
        }
    }
    all::<f32>();
    all::<f64>();
    all::<c32>();
    all::<c64>();
}

#[test]
fn what_is_not_orthogonal_is_refused() {
    let mut vectors = [0f32; 2];
    for w in [[1.0f32, 0.0, 0.0, 1.1], [f32::NAN, 0.0, 0.0, 1.0]] {
        let error = from_matrix(&w, 1, 2, 1e-3, &mut vectors, &mut [0.0], &|| false).unwrap_err().to_string();
        assert!(error.starts_with("w must be orthogonal: max |W^H W - I| of matrix 0 is "), "{error}");
    }
    let w = [c32::new(2.0, 0.0)];
    let error = from_matrix(&w, 1, 1, 1e-3, &mut [], &mut [0.0], &|| false).unwrap_err().to_string();
    assert!(error.starts_with("w must be unitary") && error.ends_with("tolerance 1.0e-3"), "{error}");
}

/// Columns near the ends of the type's range, where 2 / ||u||^2 is not a normal number.
#[test]
fn extreme_lengths_leave_the_matrix_and_divide_the_gradient() {
    fn check<T: Scalar>(small: f64, large: f64) {
        let (n, m) = (9, 5);
        let mut next = Random(7);
        let u: Vec<T> = next.array(n * m);
        let ct: Vec<T> = next.array(n * n);
        let scale = [small, large, 1.0, -large, small];
        let scaled: Vec<T> = u.iter().enumerate().map(|(e, x)| x.scale(T::Real::of(scale[e % m]))).collect();
        let run = |u: &[T]| {
            let op = Householder::new(u, Last::None, 1, n, m).unwrap();
            let (mut w, mut bar) = (vec![T::default(); n * n], vec![T::default(); n * m]);
            op.matrix(&mut w, None, &Budget::of(1)).unwrap();
            op.matrix_vjp(None, &ct, &mut [Bar::Own(&mut bar)], &Budget::of(1)).unwrap();
            (w, bar)
        };
        let ((w, bar), (other, divided)) = (run(&u), run(&scaled));
        let tolerance = 200.0 * T::Real::EPS.f64();
        for (a, b) in w.iter().zip(&other) {
            assert!((*a - *b).modulus().f64() <= tolerance, "{a:?} {b:?}");
        }
        for (e, (a, b)) in bar.iter().zip(&divided).enumerate() {
            let b = b.widen().scale(scale[e % m]);
            assert!((a.widen() - b).modulus() <= tolerance * (1.0 + a.modulus().f64()), "{a:?} {b:?}");
        }
    }
    check::<f32>(2e-18, 1e18);
    check::<c32>(2e-18, 1e18);
    check::<f64>(1e-150, 1e150);
    check::<c64>(1e-150, 1e150);
}

/// Skipping known zeros does not change the matrix or its gradient, also beyond one block of k.
#[test]
fn a_trapezoid_changes_no_bit_of_the_matrix() {
    fn same<T: Scalar>(n: usize, m: usize) {
        let mut random = Random(5);
        let mut u: Vec<T> = random.array(n * m);
        u.iter_mut().enumerate().filter(|(at, _)| at % m > at / m).for_each(|(_, entry)| *entry = T::zero());
        let ct: Vec<T> = random.array(n * n);
        let full = Householder::new(&u, Last::None, 1, n, m).unwrap();
        let results = [false, true].map(|trapezoid| {
            let op = Householder { trapezoid, ..full };
            let (mut w, mut bar) = (vec![T::zero(); n * n], vec![T::zero(); n * m]);
            op.matrix_cpu(&mut w, None, 2).unwrap();
            let gradients = Gradients { vectors: Some(&mut bar), last: None };
            op.matrix_vjp_cpu(None, &ct, gradients, 2).unwrap();
            (w, bar)
        });
        assert!(results[0] == results[1], "n {n} m {m} {}", std::any::type_name::<T>());
    }
    for (n, m) in [(5, 4), (40, 40), (70, 33), (300, 290)] {
        if !crate::testing::within_work(&[n, n, m]) {
            continue;
        }
        same::<f32>(n, m);
        same::<f64>(n, m);
        same::<c32>(n, m);
    }
}
