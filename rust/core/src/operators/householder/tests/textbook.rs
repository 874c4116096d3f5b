//! Values and gradients of every kind of shape against the textbook.

use super::super::cpu::trapezoidal;
use super::super::trail::apply_keep_len;
use super::reference::{distance, reference};
use super::*;

#[derive(Clone, Copy, Debug, PartialEq)]
enum LastFactor {
    None,
    Sign,
    Phases,
}

/// Thread counts tried for a shape: barriers are slow on busy cores, so not all for every shape.
fn thread_counts(n: usize, m: usize) -> &'static [usize] {
    match (n + 3 * m) % 8 {
        0 => &[1, 2, 3],
        1 | 2 => &[1, 2],
        _ => &[1],
    }
}

/// Values and gradients of one shape against the textbook, bitwise equal for 1, 2 and 3 threads.
fn check<T: Scalar>(batch: usize, n: usize, m: usize, rows: usize, factor: LastFactor) {
    if !within_work(&[batch, n, m, n + rows]) {
        return;
    }
    let mut random = Random::new((n * 1000 + m * 10 + rows) as u64 * 0x9e3779b97f + 77);
    let mut vectors: Vec<T> = random.array(batch * n * m, 1.0);
    check_vectors(&vectors, &mut random, (batch, n, m), rows, factor, batch == 0 && n > 0 && m > 1);
    if 1 < m && m <= n && (n + rows).is_multiple_of(2) {
        for (at, entry) in vectors.iter_mut().enumerate() {
            if at % m > at / m % n {
                *entry = T::zero();
            }
        }
        check_vectors(&vectors, &mut random, (batch, n, m), rows, factor, true);
    }
}

fn check_vectors<T: Scalar>(
    vectors: &[T],
    random: &mut Random,
    (batch, n, m): (usize, usize, usize),
    rows: usize,
    factor: LastFactor,
    trapezoid: bool,
) {
    let (sign, phases) = (random.array::<T::Real>(batch, 3.0), random.array::<T::Real>(batch * n, 3.0));
    let last = match factor {
        LastFactor::None => Last::None,
        LastFactor::Sign => Last::Sign(&sign),
        LastFactor::Phases => Last::Phases(&phases),
    };
    let op = Householder::new(vectors, last, batch, n, m).unwrap();
    assert_eq!(trapezoidal(vectors, n, m), trapezoid);
    let lasts = if factor == LastFactor::Phases { batch * n } else { batch };
    let size = batch * rows * n;
    let (x, ct): (Vec<T>, Vec<T>) = (random.array(size, 1.0), random.array(size, 1.0));
    let eps = T::Real::EPS.f64();
    let growth = (1.0 + m as f64).sqrt() * (1.0 + rows as f64).sqrt().min(4.0) * 12.0;
    let what = if trapezoid { "trapezoid" } else { "full" };
    let name =
        format!("{what} batch {batch} n {n} m {m} rows {rows} {factor:?} {}", std::any::type_name::<T>());

    for side in [Side::Forward, Side::Adjoint] {
        let expected = reference(&op, &x, &ct, rows, side);
        let mut first: Option<[Vec<T>; 3]> = None;
        let mut first_last: Option<Vec<T::Real>> = None;
        for &threads in thread_counts(n, m) {
            let (mut out, mut u_bar, mut x_bar) =
                (Guarded::<T>::new(size), Guarded::new(batch * n * m), Guarded::new(size));
            let mut last_bar = Guarded::<T::Real>::new(lasts);
            op.apply(&x, rows, side, out.inner(), None, &Budget::of(threads)).unwrap();
            let bars = &mut bars(Bar::Own(u_bar.inner()), factor, last_bar.inner());
            let budget = Budget::of(threads);
            op.apply_vjp(None, &x, &ct, rows, side, bars, Some(x_bar.inner()), &budget).unwrap();
            let got = [out.read().to_vec(), u_bar.read().to_vec(), x_bar.read().to_vec()];
            let got_last = last_bar.read().to_vec();
            match (&first, &first_last) {
                (Some(first), Some(first_last)) => {
                    assert_eq!(first, &got, "{name} {side:?}: {threads} threads differ");
                    if factor != LastFactor::None {
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
            if factor != LastFactor::None {
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
            op.apply_vjp(None, &x, &ct, rows, side, &mut [Bar::Own(u_bar.inner())], None, &two).unwrap();
            op.apply_vjp(None, &x, &ct, rows, side, &mut [], Some(x_bar.inner()), &one).unwrap();
            assert_eq!((u_bar.read(), x_bar.read()), (&all[1][..], &all[2][..]), "{name} {side:?} alone");
            if factor == LastFactor::None {
                continue;
            }
            let only = &mut bars(Bar::None, factor, last_bar.inner());
            op.apply_vjp(None, &x, &ct, rows, side, only, None, &two).unwrap();
            assert_eq!(last_bar.read(), &last[..], "{name} {side:?} last alone");
        }
    }
    check_matrix(&op, factor, &name, growth);
}

/// Room for the gradients of the vectors and of the last factor.
fn bars<'a, T: Scalar>(vectors: Bar<'a, T>, factor: LastFactor, last: &'a mut [T::Real]) -> [Bar<'a, T>; 3] {
    match factor {
        LastFactor::None => [vectors, Bar::None, Bar::None],
        LastFactor::Sign => [vectors, Bar::Real(last), Bar::None],
        LastFactor::Phases => [vectors, Bar::None, Bar::Real(last)],
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
    for &threads in thread_counts(op.n, op.m) {
        let (mut got, mut keep) = (Guarded::<T>::new(out.len()), Guarded::<T>::new(len));
        let budget = Budget::of(threads);
        op.apply(x, rows, side, got.inner(), Some(keep.inner()), &budget).unwrap();
        assert_eq!(got.read(), &out[..], "{name}: keeping, {threads} threads");
        let (mut u, mut bar) = (Guarded::<T>::new(u_bar.len()), Guarded::<T>::new(x_bar.len()));
        let only = &mut [Bar::Own(u.inner())];
        op.apply_vjp(Some(keep.read()), x, ct, rows, side, only, Some(bar.inner()), &budget).unwrap();
        assert_eq!((u.read(), bar.read()), (&u_bar[..], &x_bar[..]), "{name}: kept, {threads} threads");
    }
}

fn check_matrix<T: Scalar>(op: &Householder<'_, T>, factor: LastFactor, name: &str, growth: f64) {
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
    let ct: Vec<T> = Random::new(99 + n as u64).array(batch * n * n, 1.0);
    let expected = reference(op, &identity, &transposed(&ct), n, Side::Forward);
    type All<T> = (Vec<T>, Vec<T>, Vec<<T as Scalar>::Real>);
    let mut first: Option<All<T>> = None;
    for &threads in thread_counts(n, m) {
        let (mut w, mut u_bar) = (Guarded::<T>::new(batch * n * n), Guarded::<T>::new(batch * n * m));
        let mut last_bar =
            Guarded::<T::Real>::new(if factor == LastFactor::Phases { batch * n } else { batch });
        op.matrix(w.inner(), None, &Budget::of(threads)).unwrap();
        if factor == LastFactor::None {
            last_bar.inner().fill(T::Real::of(0.0));
        }
        let budget = Budget::of(threads);
        let both = &mut bars(Bar::Own(u_bar.inner()), factor, last_bar.inner());
        op.matrix_vjp(None, &ct, both, &budget).unwrap();
        let got = (w.read().to_vec(), u_bar.read().to_vec(), last_bar.read().to_vec());
        let saves = if m > 4 * n { 0 } else { m * (m + n) };
        assert_eq!(op.matrix_saves().unwrap(), Saves::Elements(saves));
        let (mut keep, mut again) = (Guarded::<T>::new(batch * saves), Guarded::<T>::new(batch * n * m));
        let room = (saves > 0).then(|| keep.inner());
        op.matrix(w.inner(), room, &budget).unwrap();
        let kept = (saves > 0).then(|| keep.read());
        op.matrix_vjp(kept, &ct, &mut [Bar::Own(again.inner())], &budget).unwrap();
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
        if factor != LastFactor::None {
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

fn last_factors<T: Scalar>() -> &'static [LastFactor] {
    if T::PARTS == 1 {
        &[LastFactor::None, LastFactor::Sign]
    } else {
        &[LastFactor::None, LastFactor::Sign, LastFactor::Phases]
    }
}

fn every_shape<T: Scalar>() {
    for n in 1..=40 {
        for m in [0, 1, 2, n / 2, n - 1, n, n + 3] {
            let rows = [0, 1, 2, 3, 7, 12, 50][(n + m) % 7];
            let last_factors = last_factors::<T>();
            check::<T>(1 + (n + m) % 2, n, m, rows, last_factors[(n * 7 + m) % last_factors.len()]);
        }
    }
    for rows in [0, 1, 2, 3, 7, 9, 50] {
        for factor in last_factors::<T>() {
            check::<T>(3, 8, 2, rows, *factor);
            check::<T>(1, 17, 19, rows, *factor);
            check::<T>(1, 70, 66, rows, *factor);
        }
    }
    for n in [63, 64, 65, 130] {
        for m in [5, n - 1, n, n + 3] {
            check::<T>(1, n, m, 10, *last_factors::<T>().last().unwrap());
        }
    }
    check::<T>(1, 130, 10, 300, LastFactor::Sign);
    check::<T>(1, 40, 150, 140, LastFactor::Sign);
    check::<T>(1, 9, 7, 1100, LastFactor::None);
    check::<T>(9, 20, 6, 5, LastFactor::None);
    check::<T>(40, 33, 33, 2, LastFactor::Sign);
    for (n, m) in [(1, 5), (2, 9), (3, 40), (16, 70)] {
        for rows in [1, 12, 90] {
            check::<T>(2, n, m, rows, *last_factors::<T>().last().unwrap());
        }
    }
    check::<T>(0, 4, 3, 2, LastFactor::None);
    check::<T>(2, 1, 0, 2, LastFactor::Sign);
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
