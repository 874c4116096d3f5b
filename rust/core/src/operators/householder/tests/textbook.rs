//! Values and gradients of every kind of shape against the textbook.

use super::super::cpu::trapezoidal;
use super::reference::definition;
use super::*;
use crate::testing::rows::{Definition, check_defined};

/// Thread counts tried for a shape: barriers are slow on busy cores, so not all for every shape.
fn thread_counts(n: usize, m: usize) -> &'static [usize] {
    match (n + 3 * m) % 8 {
        0 => &[1, 2, 3],
        1 | 2 => &[1, 2],
        _ => &[1],
    }
}

/// One shape with a last factor (0: none, 1: a sign, 2: phases), and where its columns may be those of a trapezoid, this too.
fn check<T: Scalar>(batch: usize, n: usize, m: usize, rows: usize, factor: usize) {
    if !within_work(&[batch, n, m, n + rows]) {
        return;
    }
    let mut random = Random::new((n * 1000 + m * 10 + rows) as u64 * 0x9e3779b97f + 77);
    let mut vectors: Vec<T> = random.array(batch * n * m, 1.0);
    let (sign, phases) = (random.array::<T::Real>(batch, 3.0), random.array::<T::Real>(batch * n, 3.0));
    let last = [Last::None, Last::Sign(&sign), Last::Phases(&phases)][factor];
    let growth = (1.0 + m as f64).sqrt() * (1.0 + rows as f64).sqrt().min(4.0) * 12.0;
    let eps = T::Real::EPS.f64();
    for trapezoid in [false, true] {
        if trapezoid && !(1 < m && m <= n && (n + rows).is_multiple_of(2)) {
            continue;
        }
        let zeros = vectors.iter_mut().enumerate().filter(|(at, _)| trapezoid && at % m > at / m % n);
        zeros.for_each(|(_, entry)| *entry = T::zero());
        let op = Householder::new(&vectors, last, batch, n, m).unwrap();
        assert_eq!(trapezoidal(&vectors, n, m), trapezoid || batch == 0 && n > 0 && m > 1);
        let saves = if m > 4 * n { 0 } else { m * (m + n) };
        assert_eq!(op.matrix_saves().unwrap(), Saves::Elements(saves));
        let definition = Definition {
            matrices: (0..batch).map(|b| definition(&op, b)).collect(),
            tolerances: [growth * eps, 8.0 * growth * eps],
            // gradients cancel (Re u^H U_bar = 0), so errors are also measured against the cotangent
            floor: (3.0 / n as f64).sqrt().min(1.0),
            scale: &|_| 1.0,
            every: 1,
            threads: thread_counts(n, m),
        };
        let what =
            format!("trapezoid {trapezoid} batch {batch} n {n} m {m} rows {rows} last factor {factor}");
        check_defined(&op, rows, &definition, &what);
    }
}

fn every_shape<T: Scalar>() {
    for n in 1..=40 {
        for m in [0, 1, 2, n / 2, n - 1, n, n + 3] {
            let rows = [0, 1, 2, 3, 7, 12, 50][(n + m) % 7];
            check::<T>(1 + (n + m) % 2, n, m, rows, (n * 7 + m) % (1 + T::PARTS));
        }
    }
    for rows in [0, 1, 2, 3, 7, 9, 50] {
        for factor in 0..=T::PARTS {
            check::<T>(3, 8, 2, rows, factor);
            check::<T>(1, 17, 19, rows, factor);
            check::<T>(1, 70, 66, rows, factor);
        }
    }
    for n in [63, 64, 65, 130] {
        for m in [5, n - 1, n, n + 3] {
            check::<T>(1, n, m, 10, T::PARTS);
        }
    }
    check::<T>(1, 130, 10, 300, 1);
    check::<T>(1, 40, 150, 140, 1);
    check::<T>(1, 9, 7, 1100, 0);
    check::<T>(9, 20, 6, 5, 0);
    check::<T>(40, 33, 33, 2, 1);
    for (n, m) in [(1, 5), (2, 9), (3, 40), (16, 70)] {
        for rows in [1, 12, 90] {
            check::<T>(2, n, m, rows, T::PARTS);
        }
    }
    check::<T>(0, 4, 3, 2, 0);
    check::<T>(2, 1, 0, 2, 1);
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
