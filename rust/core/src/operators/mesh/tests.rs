//! Against the blocks written out pair by pair in double precision: values, gradients of both sides, 1, 2 and 3 threads.

use super::*;
use crate::argument::Bar;
use crate::budget::Budget;
use crate::scalar::{c32, c64};
use crate::side::Side;
use crate::testing::{near, numbers};

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

struct Reference<W> {
    pairs: Vec<Vec<(usize, usize)>>,
    theta: Vec<f64>,
    phi: Vec<f64>,
    last: Vec<W>,
}

impl<W: Scalar<Real = f64>> Reference<W> {
    /// W x, with the blocks of one angle (0 theta, 1 phi) in their derivative and all else of its layer gone.
    fn apply(&self, x: &[W], changed: Option<(usize, usize)>) -> Vec<W> {
        let (mut y, mut at) = (x.to_vec(), self.theta.len());
        for layer in self.pairs.iter().rev() {
            at -= layer.len();
            let before = y.clone();
            let inside = changed.is_some_and(|(_, which)| (at..at + layer.len()).contains(&which));
            if inside {
                y.fill(W::zero());
            }
            for (k, &(i, j)) in layer.iter().enumerate() {
                let (own, angle) = (changed.map(|c| c.0), at + k);
                if inside && changed.map(|c| c.1) != Some(angle) {
                    continue;
                }
                let (mut s, mut c) = self.theta[angle].sin_cos();
                let (mut a, mut b) = (W::cis(-self.phi[angle]) * before[i], before[j]);
                match own.filter(|_| inside) {
                    Some(0) => (s, c) = (c, -s),
                    Some(_) => (a, b) = (W::new(0.0, -1.0) * a, W::zero()),
                    None => {}
                }
                y[i] = a.scale(s) + b.scale(c);
                y[j] = a.scale(c) - b.scale(s);
            }
        }
        y.iter().zip(&self.last).map(|(y, d)| *y * *d).collect()
    }
}

fn check<T: Scalar>(n: usize, count: usize, layout: Layout, given: [bool; 2], rows: usize) {
    let pairs = pairs(n, count, layout);
    let many = pairs.iter().map(Vec::len).sum();
    let real =
        |n, seed| numbers::<T::Real>(n, seed).iter().map(|x| *x * T::Real::of(3.0)).collect::<Vec<_>>();
    let complex = T::PARTS == 2;
    let (theta, phi, phases) = (real(many, 1), real(many, 2), real(n, 3));
    let signs: Vec<T::Real> = phases.iter().map(|x| T::Real::of(x.f64().signum())).collect();
    let turned = (complex && given[0]).then_some(&phi[..]);
    let last = match given[1] {
        false => Last::None,
        true if complex => Last::Phases(&phases),
        true => Last::Signs(&signs),
    };
    let wide = |x: &[T::Real]| x.iter().map(|x| x.f64()).collect::<Vec<_>>();
    let reference = Reference::<T::Wide> {
        theta: wide(&theta),
        phi: turned.map_or(vec![0.0; many], wide),
        last: (0..n).map(|i| last.factor::<T>(0, i, n).widen()).collect(),
        pairs,
    };
    let op = Mesh::<T>::new((n, count, layout), 1, &theta, turned, last).unwrap();
    let (x, ct) = (numbers::<T>(rows * n, 4), numbers::<T>(rows * n, 5));
    let unit = |i| (0..n).map(|j| T::Wide::real(f64::from(u8::from(i == j)))).collect::<Vec<_>>();
    // columns W e_j
    let columns: Vec<Vec<T::Wide>> = (0..n).map(|j| reference.apply(&unit(j), None)).collect();
    let w: Vec<T::Wide> = (0..n * n).map(|e| columns[e % n][e / n]).collect();
    let product = |x: &[T], adjoint: bool| -> Vec<T::Wide> {
        let row = |x: &[T], i: usize| {
            let entry = |j: usize| if adjoint { columns[i][j].conj() } else { columns[j][i] };
            (0..n).map(|j| entry(j) * x[j].widen()).sum::<T::Wide>()
        };
        x.chunks_exact(n).flat_map(|x| (0..n).map(move |i| row(x, i))).collect()
    };
    // Re sum conj(ct) dW x for every angle
    let slope = |which: usize, x: &[T], ct: &[T]| -> Vec<<T::Real as Scalar>::Wide> {
        let one = |angle| {
            let rows = x.chunks_exact(n).zip(ct.chunks_exact(n)).map(|(x, ct)| {
                let x: Vec<_> = x.iter().map(|x| x.widen()).collect();
                let changed = reference.apply(&x, Some((which, angle)));
                changed.iter().zip(ct).map(|(d, ct)| (ct.widen().conj() * *d).re()).sum::<f64>()
            });
            rows.sum::<f64>()
        };
        (0..many).map(one).collect()
    };
    let phase_slope = |x: &[T], ct: &[T]| -> Vec<f64> {
        let y = product(x, false);
        (0..n)
            .map(|i| (0..x.len() / n).map(|r| (ct[r * n + i].widen() * y[r * n + i].conj()).im()).sum())
            .collect()
    };
    let mut matrix = vec![T::one(); n * n];
    op.matrix(&mut matrix, None, &Budget::of(2)).unwrap();
    near(&matrix, &w, 100.0 * T::Real::EPS.f64(), "matrix");
    let phased = complex && given[1];
    for side in [Side::Forward, Side::Adjoint] {
        let (input, output) = if side == Side::Forward { (&x, &ct) } else { (&ct, &x) };
        let mut first = None;
        for threads in [1, 2, 3] {
            let budget = Budget::of(threads);
            let (mut a, mut b) = (vec![T::one(); rows * n], vec![T::one(); rows * n]);
            let (mut t, mut p) = (theta.clone(), phi.clone());
            let mut d = phases.clone();
            op.apply(input, rows, side, &mut a, None, &budget).unwrap();
            let mut bars = [Bar::None, Bar::Real(&mut t), Bar::None, Bar::None, Bar::None];
            if turned.is_some() {
                bars[2] = Bar::Real(&mut p);
            }
            if phased {
                bars[3] = Bar::Real(&mut d);
            }
            op.apply_vjp(None, input, output, rows, side, &mut bars, Some(&mut b), &budget).unwrap();
            near(&a, &product(input, side == Side::Adjoint), 100.0 * T::Real::EPS.f64(), "out");
            near(&b, &product(output, side == Side::Forward), 100.0 * T::Real::EPS.f64(), "x_bar");
            let what = format!("theta {n} {count} {layout:?}");
            near(&t, &slope(0, &x, &ct), 100.0 * T::Real::EPS.f64(), &what);
            if turned.is_some() {
                near(&p, &slope(1, &x, &ct), 100.0 * T::Real::EPS.f64(), "phi");
            }
            if phased {
                near(&d, &phase_slope(&x, &ct), 100.0 * T::Real::EPS.f64(), "phases");
            }
            let got = (a, b, t, p, d);
            assert!(*first.get_or_insert_with(|| got.clone()) == got, "{threads} threads differ");
        }
    }
    // W_bar = ct x^H of one row has the gradient of that row
    if rows == 1 {
        let w_bar: Vec<T> = (0..n * n).map(|e| ct[e / n] * x[e % n].conj()).collect();
        let mut t = theta.clone();
        op.matrix_vjp(None, &w_bar, &mut [Bar::None, Bar::Real(&mut t)], &Budget::of(2)).unwrap();
        near(&t, &slope(0, &x, &ct), 100.0 * T::Real::EPS.f64(), "theta of the matrix");
    }
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
    all::<f32>();
    all::<f64>();
    all::<c32>();
    all::<c64>();
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

#[test]
fn bad_arguments_are_refused() {
    let made = |n, count, kind, theta: &[f64]| {
        let shape = [n, count, kind, 0];
        let frame = Given { shape: &shape, array: Array::Own(&[]) };
        let own = Given { shape: &[theta.len()], array: Array::Real(theta) };
        let none = Given { shape: &[], array: Array::None };
        Mesh::<f64>::of(&[frame, own, none, none, none])
            .err()
            .map_or(String::new(), |error| error.to_string())
    };
    assert_eq!(made(4, 2, 1, &[0.0; 3]), "");
    assert_eq!(made(1, 1 << 40, 1, &[]), "");
    assert!(made(4, 2, 1, &[0.0; 4]).starts_with("theta: expected"));
    assert!(made(4, 1 << 40, 1, &[0.0; 4]).starts_with("theta: expected"));
    assert!(made(2, 1 << 40, 2, &[0.0; 4]).starts_with("theta: expected"));
    assert!(made(4, 2, 4, &[0.0; 3]).starts_with("frame must have kind"));
    assert!(made(6, 2, 3, &[0.0; 6]).contains("power of two"));
    assert!(made(0, 2, 1, &[]).starts_with("frame"));
    assert!(made(3, 0, 1, &[]).starts_with("frame must have a layer"));
}
