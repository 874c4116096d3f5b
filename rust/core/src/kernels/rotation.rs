//! The kernels of a rotation against R = I + K + K^2 / (1 + c) in double precision, and every degenerate pair.

use crate::scalar::Real;
use crate::testing::{near, numbers, wide};
use isometry_kernels::rotation::{Frame, Pull, Turn, Vectors, frame_len};
use std::ptr::null_mut;

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn unit(a: &[f64]) -> Vec<f64> {
    let most = a.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
    let a: Vec<f64> = a.iter().map(|x| x / most).collect();
    let len = dot(&a, &a).sqrt();
    a.iter().map(|x| x / len).collect()
}

/// R x by R = I + K + K^2 / (1 + c), K = bh ah^T - ah bh^T.
fn rotated(a: &[f64], b: &[f64], x: &[f64]) -> Vec<f64> {
    let (a, b) = (unit(a), unit(b));
    let k = |x: &[f64]| -> Vec<f64> {
        let (ax, bx) = (dot(&a, x), dot(&b, x));
        a.iter().zip(&b).map(|(a, b)| b * ax - a * bx).collect()
    };
    let (once, twice) = (k(x), k(&k(x)));
    (0..x.len()).map(|i| x[i] + once[i] + twice[i] / (1.0 + dot(&a, &b))).collect()
}

/// The derivative of <ct, R x> with respect to `which` of (a, b), by central differences.
fn difference(a: &[f64], b: &[f64], x: &[f64], ct: &[f64], which: usize) -> Vec<f64> {
    let size = dot([a, b][which], [a, b][which]).sqrt();
    let at = |i: usize, h: f64| {
        let mut pair = [a.to_vec(), b.to_vec()];
        pair[which][i] += h * size;
        dot(&rotated(&pair[0], &pair[1], x), ct)
    };
    (0..x.len()).map(|i| (at(i, 1e-6) - at(i, -1e-6)) / (2e-6 * size)).collect()
}

struct Outcome<R> {
    out: Vec<R>,
    a_bar: Vec<R>,
    b_bar: Vec<R>,
    x_bar: Vec<R>,
}

fn run<R: Real>(a: &[R], b: &[R], x: &[R], ct: &[R], forward: bool) -> Outcome<R> {
    let (n, rows) = (a.len(), x.len() / a.len());
    let mut frame = vec![R::one(); frame_len(n)];
    let mut sums = vec![R::zero(); 2 * n];
    let (mut out, mut x_bar) = (vec![R::one(); x.len()], vec![R::one(); x.len()]);
    let (mut a_bar, mut b_bar) = (vec![R::one(); n], vec![R::one(); n]);
    // SAFETY: all arrays have the sizes of the contracts and none overlap.
    unsafe {
        Frame { n, start: a.as_ptr(), end: b.as_ptr(), frame: frame.as_mut_ptr() }.call();
        let frame = frame.as_ptr();
        Turn { n, frame, forward, rows, x: x.as_ptr(), out: out.as_mut_ptr() }.call();
        let (sums, x_bar) = (sums.as_mut_ptr(), x_bar.as_mut_ptr());
        Pull { n, frame, forward, rows, x: x.as_ptr(), ct: ct.as_ptr(), sums, x_bar }.call();
        Vectors { n, frame, sums, start_bar: a_bar.as_mut_ptr(), end_bar: b_bar.as_mut_ptr() }.call();
    }
    Outcome { out, a_bar, b_bar, x_bar }
}

fn check<R: Real>(a: &[R], b: &[R], rows: usize) {
    let n = a.len();
    let (x, ct) = (numbers::<R>(rows * n, 3), numbers::<R>(rows * n, 4));
    let (wa, wb) = (wide(a), wide(b));
    let slack = 200.0 * R::EPS.f64();
    for forward in [true, false] {
        let got = run(a, b, &x, &ct, forward);
        let mut bars = [vec![0.0; n], vec![0.0; n]];
        for row in 0..rows {
            let own = row * n..(row + 1) * n;
            let (x, ct) = (wide(&x[own.clone()]), wide(&ct[own.clone()]));
            let (to, from) = if forward { (&wa, &wb) } else { (&wb, &wa) };
            near(&got.out[own.clone()], &rotated(to, from, &x), slack, "out");
            near(&got.x_bar[own], &rotated(from, to, &ct), slack, "x_bar");
            let (x, ct) = if forward { (x, ct) } else { (ct, x) };
            for (which, bar) in bars.iter_mut().enumerate() {
                let more = difference(&wa, &wb, &x, &ct, which);
                bar.iter_mut().zip(more).for_each(|(bar, more)| *bar += more);
            }
        }
        near(&got.a_bar, &bars[0], slack + 1e-8, "start_bar");
        near(&got.b_bar, &bars[1], slack + 1e-8, "end_bar");
    }
}

fn both(f: fn(), g: fn()) {
    f();
    g();
}

#[test]
fn rows_are_rotated_in_the_plane() {
    fn all<R: Real>() {
        for n in [2, 3, 7, 16, 33, 100] {
            for rows in [1, 3] {
                check::<R>(&numbers(n, 1), &numbers(n, 2), rows);
            }
        }
    }
    both(all::<f32>, all::<f64>);
}

#[test]
fn lengths_of_the_vectors_do_not_matter() {
    fn all<R: Real>() {
        let (a, b) = (numbers::<R>(5, 1), numbers::<R>(5, 2));
        let scaled = |x: &[R], f: R| -> Vec<R> { x.iter().map(|x| *x * f).collect() };
        let huge = R::of(2.0).powi(if R::EPS.f64() > 1e-10 { 100 } else { 900 });
        let (x, ct) = (numbers::<R>(5, 3), numbers::<R>(5, 4));
        let one = run(&a, &b, &x, &ct, true);
        let two = run(&scaled(&a, huge), &scaled(&b, R::one() / huge), &x, &ct, true);
        near(&two.out, &wide(&one.out), 20.0 * R::EPS.f64(), "out");
        near(&scaled(&two.a_bar, huge), &wide(&one.a_bar), 200.0 * R::EPS.f64(), "start_bar");
        near(&scaled(&two.b_bar, R::one() / huge), &wide(&one.b_bar), 200.0 * R::EPS.f64(), "end_bar");
    }
    both(all::<f32>, all::<f64>);
}

#[test]
fn one_direction_has_the_limit() {
    fn all<R: Real>() {
        let a = numbers::<R>(9, 1);
        let b: Vec<R> = a.iter().map(|x| *x * R::of(3.0)).collect();
        check(&a, &b, 2);
    }
    both(all::<f32>, all::<f64>);
}

#[test]
fn degenerate_pairs_have_no_gradient() {
    fn all<R: Real>() {
        let (x, ct) = (numbers::<R>(4, 3), numbers::<R>(4, 4));
        let a = [2.0, -1.0, 0.5, 3.0].map(R::of);
        let back = a.map(|x| -R::of(3.0) * x);
        for (start, end) in [([R::zero(); 4], a), (a, [R::zero(); 4]), (a, back)] {
            for forward in [true, false] {
                let got = run(&start, &end, &x, &ct, forward);
                assert!(got.a_bar.iter().chain(&got.b_bar).all(|x| *x == R::zero()));
                if end != back {
                    assert_eq!((got.out, got.x_bar), (x.clone(), ct.clone()));
                    continue;
                }
                // by pi in the plane of ah and of the third axis, where |ah| is smallest
                let ah = unit(&wide(&a));
                let e = unit(&(0..4).map(|i| f64::from(i == 2) - ah[2] * ah[i as usize]).collect::<Vec<_>>());
                for (got, x) in [(got.out, wide(&x)), (got.x_bar, wide(&ct))] {
                    let (along, beside) = (2.0 * dot(&ah, &x), 2.0 * dot(&e, &x));
                    let expected: Vec<f64> = (0..4).map(|i| x[i] - along * ah[i] - beside * e[i]).collect();
                    near(&got, &expected, 20.0 * R::EPS.f64(), "opposite");
                }
            }
        }
        let got = run(&[R::one()], &[-R::one()], &x[..2], &ct[..2], true);
        assert_eq!((got.out, got.x_bar), (x[..2].to_vec(), ct[..2].to_vec()));
        assert_eq!((got.a_bar[0], got.b_bar[0]), (R::zero(), R::zero()));
    }
    both(all::<f32>, all::<f64>);
}

#[test]
fn gradients_may_be_left_out() {
    let (a, b, x, ct) = (numbers::<f64>(6, 1), numbers(6, 2), numbers::<f64>(6, 3), numbers(6, 4));
    let all = run(&a, &b, &x, &ct, true);
    let (mut frame, mut sums) = (vec![0.0; frame_len(6)], vec![0.0; 12]);
    let (mut x_bar, mut b_bar) = (vec![0.0; 6], vec![0.0; 6]);
    // SAFETY: all arrays have the sizes of the contracts and none overlap.
    unsafe {
        Frame { n: 6, start: a.as_ptr(), end: b.as_ptr(), frame: frame.as_mut_ptr() }.call();
        let frame = frame.as_ptr();
        let pull = |sums, x_bar| Pull {
            n: 6,
            frame,
            forward: true,
            rows: 1,
            x: x.as_ptr(),
            ct: ct.as_ptr(),
            sums,
            x_bar,
        };
        pull(null_mut(), x_bar.as_mut_ptr()).call();
        pull(sums.as_mut_ptr(), null_mut()).call();
        Vectors { n: 6, frame, sums: sums.as_mut_ptr(), start_bar: null_mut(), end_bar: b_bar.as_mut_ptr() }
            .call();
    }
    assert_eq!((x_bar, b_bar), (all.x_bar, all.b_bar));
}
