//! Accuracy by the norm of A, and sizes beside the ordinary; results are compared in `hosted/tests.rs`.

use super::*;
use crate::device::Context;
use crate::testing::{M, complex, device, fetched, flat, near, never, numbers, of_parts, sent, widened};
use isometry_core::operators::{Last as CoreLast, cayley};
use isometry_core::scalar::{Scalar, c64};
use isometry_core::{Budget, Cpu, Side};
use std::sync::Arc;

const EPS: f64 = f32::EPSILON as f64;

/// Arguments of a batch on the device.
struct Sent {
    upper: Array,
    diagonal: Option<Array>,
    last: Option<Last>,
    n: usize,
}

impl Sent {
    /// With a last factor of phases where the field has them, or of signs.
    fn new(context: &Arc<Context>, field: Field, batch: usize, n: usize) -> Self {
        let draw = |field, len: usize, seed| numbers(field, batch * len, seed);
        let real = |seed, change: fn(c64) -> c64| {
            let drawn: Vec<c64> = draw(Field::Real, n, seed).into_iter().map(change).collect();
            sent(context, Field::Real, &[batch, n], &drawn)
        };
        let len = n * (n - 1) / 2;
        let upper: Vec<c64> = draw(field, len, n as u64).iter().map(|x| x * 0.5).collect();
        let signs = || Last::signs(field, &real(13, |x| c64::from(x.re.signum())), n).unwrap();
        Sent {
            upper: sent(context, field, &[batch, len], &upper),
            diagonal: (field == Field::Complex).then(|| real(11, |x| x)),
            last: Some(if field == Field::Real {
                signs()
            } else {
                Last::phases(&real(13, |x| x), n).unwrap()
            }),
            n,
        }
    }

    fn view(&self) -> Cayley<'_> {
        Cayley::new(&self.upper, self.diagonal.as_ref(), self.last.clone(), self.n).unwrap()
    }
}

/// The gradient is the same with W and without.
#[test]
fn gradients_with_and_without_the_matrix() {
    let Some(context) = device() else { return };
    for field in [Field::Real, Field::Complex] {
        for n in [7, 33, 70] {
            let own = Sent::new(&context, field, 2, n);
            let (view, ct) = (own.view(), sent(&context, field, &[2, n, n], &numbers(field, 2 * n * n, 77)));
            let w = view.matrix(&never).unwrap();
            let [with, without] =
                [Some(&w), None].map(|w| view.matrix_vjp(w, &ct, &[true; 4], &never).unwrap());
            for (bar, anew) in with.iter().zip(&without) {
                assert_eq!(bar.as_ref().map(fetched), anew.as_ref().map(fetched), "{field:?} {n}");
            }
        }
    }
}

/// Skew matrices of one norm, in shapes that are easy and hard for elimination.
const SHAPES: [&str; 5] = ["full", "corner", "graded", "rank two", "quarters"];

/// A skew matrix as single precision has it, by its entries above the diagonal and on it.
struct Skew {
    field: Field,
    n: usize,
    upper: Vec<c64>,
    diagonal: Vec<c64>,
}

impl Skew {
    /// X - X^H times a number.
    fn of(field: Field, x: &M, norm: f64) -> Self {
        let (n, a) = (x.rows, x.plus(&x.h(), -1.0));
        let by = norm / size(&a).max(1e-30);
        let single = |x: f64| f64::from((x * by) as f32);
        let at = |i: usize, j: usize| c64::new(single(a.at(i, j).re), single(a.at(i, j).im));
        let upper = (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j))).map(|(i, j)| at(i, j)).collect();
        Skew { field, n, upper, diagonal: (0..n).map(|i| c64::from(at(i, i).im)).collect() }
    }

    /// W by the core.
    fn w(&self) -> M {
        fn by_core<T: Scalar<Real = f64>>(own: &Skew) -> Vec<c64> {
            let upper = of_parts::<T>(&flat(own.field, &own.upper));
            let diagonal: Vec<f64> = own.diagonal.iter().map(|x| x.re).collect();
            let diagonal = (T::PARTS == 2).then_some(&diagonal[..]);
            let view = cayley::Cayley::new(&upper, diagonal, CoreLast::None, 1, own.n).unwrap();
            let mut w = vec![T::zero(); own.n * own.n];
            view.matrix(&mut w, None, &Budget::of(1)).unwrap();
            complex(own.field, &widened(&w))
        }
        let by_core = if self.field == Field::Real { by_core::<f64> } else { by_core::<c64> };
        M { rows: self.n, columns: self.n, data: by_core(self) }
    }
}

fn shaped(field: Field, n: usize, shape: &str, norm: f64, seed: u64) -> Skew {
    let g = M { rows: n, columns: n, data: numbers(field, n * n, seed) };
    let h = n / 2;
    // the last columns of a matrix in the upper right corner
    let corner = |x: &M| {
        M::new(n, n, |i, j| if i < h && j >= h { x.at(i, j + x.columns - n) } else { c64::default() })
    };
    let x = match shape {
        "full" => g,
        // only the corner block: pivots of 1 for half of the steps
        "corner" => corner(&g),
        // the same between the first two quarters
        "quarters" => {
            let quarter = n.div_ceil(4);
            M::new(n, n, |i, j| if i < quarter && j / quarter == 1 { g.at(i, j) } else { c64::default() })
        }
        // singular values of the corner from 1 to 1e-4
        "graded" => {
            let power = |i: usize| 10f64.powf(-4.0 * i as f64 / h as f64);
            let left = shaped(field, h, "full", 1.0, seed + 1).w();
            let right = shaped(field, n - h, "full", 1.0, seed + 2).w();
            let middle = M::new(h, n - h, |i, j| c64::from(if i == j { power(i) } else { 0.0 }));
            corner(&left.times(&middle).times(&right))
        }
        _ => M::new(n, n, |i, j| c64::from(g.at(0, i).re * g.at(h, j).re)),
    };
    Skew::of(field, &x, norm)
}

/// The largest singular value.
fn size(a: &M) -> f64 {
    let mut x = M { rows: a.columns, columns: 1, data: numbers(Field::Complex, a.columns, 9) };
    let mut found = 0.0;
    for _ in 0..40 {
        x = a.h().times(&a.times(&x));
        found = x.norm().sqrt();
        x.data.iter_mut().for_each(|v| *v /= (found * found).max(1e-300));
    }
    found
}

/// e(W) = max|W^H W - I| / (n eps), and the distance from the exact W in units of eps |I + A|.
fn quality(context: &Arc<Context>, skew: &Skew, norm: f64) -> (f64, f64) {
    let n = skew.n;
    let upper = sent(context, skew.field, &[1, skew.upper.len()], &skew.upper);
    let diagonal =
        (skew.field == Field::Complex).then(|| sent(context, Field::Real, &[1, n], &skew.diagonal));
    let w = Cayley::new(&upper, diagonal.as_ref(), None, n).unwrap().matrix(&never).unwrap();
    let w = M { rows: n, columns: n, data: fetched(&w) };
    let defect = w.h().times(&w).plus(&M::eye(n), -1.0);
    let worst = defect.data.iter().map(|x| x.norm()).fold(0.0, |a, b| if b <= a { a } else { b });
    (worst / (n as f64 * EPS), w.plus(&skew.w(), -1.0).norm() / (EPS * (1.0 + norm * norm).sqrt()))
}

#[test]
fn orthogonal_up_to_the_norms_that_are_promised() {
    let Some(context) = device() else { return };
    for field in [Field::Real, Field::Complex] {
        for (n, norms) in [
            (2, [10.0, 3e4]),
            (3, [10.0, 3e4]),
            (8, [10.0, 3e4]),
            (27, [10.0, 3e4]),
            (64, [10.0, 3e4]),
            (65, [10.0, 300.0]),
            (100, [10.0, 300.0]),
            (130, [10.0, 300.0]),
        ] {
            for shape in SHAPES {
                for norm in norms {
                    let (e, off) = quality(&context, &shaped(field, n, shape, norm, n as u64), norm);
                    assert!(e < 20.0, "{field:?} {n} {shape} {norm}: e(W) = {e}");
                    assert!(
                        off < if n <= small::MOST { 40.0 } else { 300.0 },
                        "{field:?} {n} {shape} {norm}: {off} from W"
                    );
                }
            }
        }
    }
}

#[test]
fn more_matrices_than_one_row_of_workgroups() {
    let Some(context) = device() else { return };
    let (batch, n) = (4 * 32768 + 5, 2);
    let upper: Vec<c64> = numbers(Field::Real, batch, 3);
    let array = sent(&context, Field::Real, &[batch, 1], &upper);
    let w = fetched(&Cayley::new(&array, None, None, n).unwrap().matrix(&never).unwrap());
    let expected: Vec<c64> = upper
        .iter()
        .flat_map(|a| {
            let (cos, sin) = ((1.0 - a.re * a.re) / (1.0 + a.re * a.re), 2.0 * a.re / (1.0 + a.re * a.re));
            [cos, -sin, sin, cos].map(c64::from)
        })
        .collect();
    near(&w, &expected, 4.0, "rotations");
    let x = sent(&context, Field::Real, &[batch, 1, n], &[c64::from(1.0), c64::from(0.0)].repeat(batch));
    let y = Cayley::new(&array, None, None, n).unwrap().apply(&x, Side::Forward, &never).unwrap();
    let columns: Vec<c64> = expected.chunks(4).flat_map(|w| [w[0], w[2]]).collect();
    near(&fetched(&y), &columns, 4.0, "rotated");
}

#[test]
fn bad_arguments_are_named() {
    let Some(context) = device() else { return };
    let array = |field, shape: &[usize]| Array::room(&context, field, shape).unwrap();
    let (real, complex) = (array(Field::Real, &[2, 3]), array(Field::Complex, &[2, 3]));
    let phases = Last::phases(&array(Field::Real, &[2, 3]), 3).unwrap();
    let refused = |result: Result<Cayley<'_>>, name: &str| {
        let message = result.unwrap_err().to_string();
        assert!(message.starts_with(name), "{message}");
    };
    refused(Cayley::new(&real, None, None, 4), "upper");
    refused(Cayley::new(&array(Field::Real, &[6]), None, None, 3), "upper");
    refused(Cayley::new(&real, Some(&real), None, 3), "diagonal");
    refused(Cayley::new(&complex, Some(&complex), None, 3), "diagonal");
    refused(Cayley::new(&complex, Some(&array(Field::Real, &[2, 2])), None, 3), "diagonal");
    refused(Cayley::new(&real, None, Some(phases.clone()), 3), "phases");
    let view = Cayley::new(&complex, None, Some(phases.clone()), 3).unwrap();
    let w = array(Field::Complex, &[2, 3, 3]);
    assert!(view.matrix_vjp(Some(&w), &complex, &[true; 4], &never).is_err());
    assert!(view.matrix_vjp(Some(&w), &w, &[true; 3], &never).is_err());
    assert!(view.matrix_vjp(Some(&w), &array(Field::Real, &[2, 3, 3]), &[true; 4], &never).is_err());
}
