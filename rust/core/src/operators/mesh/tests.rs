//! Against the blocks written out pair by pair.

use super::*;
use crate::testing::{every_type, numbers, rows};

/// The pairs of every layer, leftmost first, in the order of their angles.
fn pairs(n: usize, count: usize, layout: Layout) -> Vec<Vec<(usize, usize)>> {
    let layer = |l: usize| match layout {
        Layout::Fft => {
            let p = n >> (l + 1);
            (0..n / 2 / p).flat_map(|k| (0..p).map(move |j| (2 * p * k + j, 2 * p * k + p + j))).collect()
        }
        Layout::BrickLeft => (l % 2..n - 1).step_by(2).map(|i| (i, i + 1)).collect(),
        Layout::BrickRight => ((count - 1 - l) % 2..n - 1).step_by(2).map(|i| (i, i + 1)).collect(),
    };
    (0..count).map(layer).collect()
}

/// W x by its blocks.
fn product<W: Scalar<Real = f64>>(
    x: &[W],
    pairs: &[Vec<(usize, usize)>],
    theta: &[f64],
    phi: &[f64],
    last: &[W],
) -> Vec<W> {
    let (mut y, mut at) = (x.to_vec(), theta.len());
    for layer in pairs.iter().rev() {
        at -= layer.len();
        for (angle, &(i, j)) in (at..).zip(layer) {
            let (s, c) = theta[angle].sin_cos();
            let (a, b) = (W::cis(phi.get(angle).map_or(0.0, |phi| -phi)) * y[i], y[j]);
            (y[i], y[j]) = (a.scale(s) + b.scale(c), a.scale(c) - b.scale(s));
        }
    }
    y.iter().zip(last).map(|(y, d)| *y * *d).collect()
}

fn check<T: Scalar>(n: usize, count: usize, layout: Layout, given: [bool; 2], rows: usize) {
    let pairs = pairs(n, count, layout);
    let many = pairs.iter().map(Vec::len).sum();
    let real =
        |n, seed| numbers::<T::Real>(n, seed).iter().map(|x| *x * T::Real::of(3.0)).collect::<Vec<_>>();
    let (theta, phi, phases) = (real(many, 1), real(many, 2), real(n, 3));
    let signs: Vec<T::Real> = phases.iter().map(|x| T::Real::of(x.f64().signum())).collect();
    let last = match given[1] {
        false => Last::None,
        true if T::PARTS == 2 => Last::Phases(&phases),
        true => Last::Signs(&signs),
    };
    let turned = (T::PARTS == 2 && given[0]).then_some(&phi[..]);
    let op = Mesh::<T>::new((n, count, layout), 1, &theta, turned, last).unwrap();
    rows::check(&op, rows, true, &|arguments| {
        let [_, theta, phi, phases, _] = &arguments[..] else { unreachable!("five arguments") };
        let factor = |i: usize| match phases.get(i) {
            Some(phase) => T::Wide::cis(*phase),
            None => last.factor::<T>(0, i, n).widen(),
        };
        let last: Vec<T::Wide> = (0..n).map(factor).collect();
        let unit = |j: usize| (0..n).map(|i| T::Wide::real(f64::from(u8::from(i == j)))).collect::<Vec<_>>();
        let columns: Vec<_> = (0..n).map(|j| product(&unit(j), &pairs, theta, phi, &last)).collect();
        (0..n * n).map(|at| columns[at % n][at / n]).collect()
    });
}

#[test]
fn layers_equal_their_blocks() {
    fn all<T: Scalar>() {
        use Layout::*;
        let bricks = [(1, 3), (2, 1), (2, 4), (3, 2), (5, 5), (16, 2), (23, 3), (38, 4)];
        let mut cases: Vec<_> =
            bricks.iter().flat_map(|&(n, count)| [(n, count, BrickLeft), (n, count, BrickRight)]).collect();
        cases.extend((0..7).map(|q| (1 << q, q, Fft)));
        for (n, count, layout) in cases {
            for (rows, given) in
                [(0, [true, true]), (1, [true, false]), (7, [true, true]), (5, [false, false])]
            {
                if crate::testing::within_work(&[n, n, count, rows, 10]) {
                    check::<T>(n, count, layout, given, rows);
                }
            }
        }
    }
    every_type!(all());
}

#[test]
fn sines_and_cosines_are_right_to_the_last_bits() {
    fn all<R: Real>() {
        let mut x: Vec<R> =
            (-4000..4000).map(|i| R::of(f64::from(i) * std::f64::consts::FRAC_PI_4)).collect();
        x.extend((0..4000).map(|i| R::of(f64::from(i).powi(3) * 1e-4)));
        x.extend([0.0, -0.0, 1e-30, f64::INFINITY, f64::NAN, 1e30].map(R::of));
        let mut out = vec![R::of(7.0); 2 * x.len()];
        fill(&x, &mut out);
        let (sin, cos) = out.split_at(x.len());
        for ((x, sin), cos) in x.iter().zip(sin).zip(cos) {
            let (s, c) = x.f64().sin_cos();
            if s.is_nan() {
                assert!(sin.f64().is_nan() && cos.f64().is_nan(), "{x:?}");
                continue;
            }
            let off = (sin.f64() - s).abs().max((cos.f64() - c).abs());
            assert!(off <= 1.5 * R::EPS.f64(), "{x:?}: {off:e}");
        }
    }
    all::<f32>();
    all::<f64>();
}
