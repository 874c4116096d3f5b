//! Accuracy by the norm of A, and sizes beside the ordinary; results are compared in `hosted/tests.rs`.

use super::*;
use crate::testing::{C, M, device, fetched, near, never, numbers, sent};
use isometry_core::Side;

const EPS: f64 = f32::EPSILON as f64;

/// The parameters of a batch, as single precision has them.
struct Parameters {
    field: Field,
    n: usize,
    upper: Vec<Vec<C>>,
    diagonal: Option<Vec<Vec<f64>>>,
    last: Option<Vec<Vec<f64>>>,
}

impl Parameters {
    fn new(field: Field, batch: usize, n: usize, scale: f64, some: (bool, bool)) -> Self {
        let rounded = |x: f64| f64::from((x * scale) as f32);
        let triangle = n * n.saturating_sub(1) / 2;
        let upper = (0..batch as u64)
            .map(|b| {
                let drawn = numbers(field, triangle, 3 * b + 1 + n as u64);
                drawn.iter().map(|x| C(rounded(x.0), rounded(x.1))).collect()
            })
            .collect();
        let reals = |seed: u64, f: &dyn Fn(f64) -> f64| {
            let own = |b: u64| numbers(Field::Real, n, 5 * b + seed).iter().map(|x| f(x.0)).collect();
            (0..batch as u64).map(own).collect::<Vec<_>>()
        };
        let diagonal = (some.0 && field == Field::Complex).then(|| reals(11, &rounded));
        let last = some.1.then(|| match field {
            Field::Real => reals(13, &|x| if x < 0.0 { -1.0 } else { 1.0 }),
            Field::Complex => reals(13, &|x| f64::from((3.0 * x) as f32)),
        });
        Parameters { field, n, upper, diagonal, last }
    }

    fn a(&self, b: usize) -> M {
        let at = |i: usize, j: usize| self.upper[b][i * (2 * self.n - i - 1) / 2 + j - i - 1];
        M::new(self.n, self.n, |i, j| match i.cmp(&j) {
            std::cmp::Ordering::Less => at(i, j),
            std::cmp::Ordering::Greater => at(j, i).conj().scaled(-1.0),
            std::cmp::Ordering::Equal => C(0.0, self.diagonal.as_ref().map_or(0.0, |d| d[b][i])),
        })
    }

    fn d(&self, b: usize) -> M {
        M::new(self.n, self.n, |i, j| match &self.last {
            _ if i != j => C::default(),
            None => C(1.0, 0.0),
            Some(signs) if self.field == Field::Real => C(signs[b][i], 0.0),
            Some(phases) => C(phases[b][i].cos(), phases[b][i].sin()),
        })
    }

    /// (I + A)^-1 (I - A) D
    fn w(&self, b: usize) -> M {
        let (a, eye) = (self.a(b), M::eye(self.n));
        eye.plus(&a, 1.0).inverse().times(&eye.plus(&a, -1.0)).times(&self.d(b))
    }
}

/// The same on the device.
struct Sent {
    upper: Array,
    diagonal: Option<Array>,
    last: Option<Last>,
    n: usize,
}

impl Sent {
    fn new(context: &Arc<Context>, p: &Parameters) -> Self {
        let (batch, n) = (p.upper.len(), p.n);
        let reals = |all: &Vec<Vec<f64>>| {
            let flat: Vec<C> = all.concat().into_iter().map(|x| C(x, 0.0)).collect();
            sent(context, Field::Real, &[batch, n], &flat)
        };
        let triangle = n * n.saturating_sub(1) / 2;
        let last = p.last.as_ref().map(|last| match p.field {
            Field::Real => Last::signs(p.field, &reals(last), n).unwrap(),
            Field::Complex => Last::phases(&reals(last), n).unwrap(),
        });
        Sent {
            upper: sent(context, p.field, &[batch, triangle], &p.upper.concat()),
            diagonal: p.diagonal.as_ref().map(reals),
            last,
            n,
        }
    }

    fn view(&self) -> Cayley<'_> {
        Cayley::new(&self.upper, self.diagonal.as_ref(), self.last.clone(), self.n).unwrap()
    }
}

#[test]
fn nothing_is_a_matrix_too() {
    let Some(context) = device() else { return };
    for field in [Field::Real, Field::Complex] {
        for (batch, n) in [(0, 5), (2, 0), (0, 0), (0, 100)] {
            let p = Parameters::new(field, batch, n, 1.0, (true, true));
            let sent_all = Sent::new(&context, &p);
            let w = sent_all.view().matrix(&never).unwrap();
            assert!(w.shape() == [batch, n, n] && w.is_empty());
            let bars = sent_all.view().matrix_vjp(Some(&w), &w, &[true; 4], &never).unwrap();
            let given = [true, p.diagonal.is_some(), false, p.last.is_some() && field == Field::Complex];
            assert_eq!(bars.iter().map(Option::is_some).collect::<Vec<_>>(), given);
        }
    }
}

/// The gradient is the same with W and without.
#[test]
fn gradients_with_and_without_the_matrix() {
    let Some(context) = device() else { return };
    for field in [Field::Real, Field::Complex] {
        for n in [7, 33, 70] {
            let sent_all = Sent::new(&context, &Parameters::new(field, 2, n, 0.5, (true, true)));
            let view = sent_all.view();
            let (w, ct) = (view.matrix(&never).unwrap(), numbers(field, 2 * n * n, 77));
            let ct = sent(&context, field, &[2, n, n], &ct);
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

fn shaped(field: Field, n: usize, shape: &str, norm: f64, seed: u64) -> Parameters {
    let g = M { rows: n, columns: n, data: numbers(field, n * n, seed) };
    let h = n / 2;
    let power = |i: usize| 10f64.powf(-4.0 * i as f64 / h as f64);
    let x = match shape {
        "full" => g,
        // only the corner block: pivots of 1 for half of the steps
        "corner" => M::new(n, n, |i, j| if i < h && j >= h { g.at(i, j) } else { C::default() }),
        // the same between the first two quarters
        "quarters" => {
            let quarter = n.div_ceil(4);
            M::new(n, n, |i, j| if i < quarter && j / quarter == 1 { g.at(i, j) } else { C::default() })
        }
        // singular values of the corner from 1 to 1e-4
        "graded" => {
            let left = shaped(field, h, "full", 1.0, seed + 1).w(0);
            let right = shaped(field, n - h, "full", 1.0, seed + 2).w(0);
            let middle = M::new(h, n - h, |i, j| C(if i == j { power(i) } else { 0.0 }, 0.0));
            let corner = left.times(&middle).times(&right);
            M::new(n, n, |i, j| if i < h && j >= h { corner.at(i, j - h) } else { C::default() })
        }
        _ => M::new(n, n, |i, j| C(g.at(0, i).0 * g.at(h, j).0, 0.0)),
    };
    let a = x.plus(&x.h(), -1.0);
    let by = norm / size(&a).max(1e-30);
    let at =
        |i: usize, j: usize| C(f64::from((a.at(i, j).0 * by) as f32), f64::from((a.at(i, j).1 * by) as f32));
    let upper = (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j))).map(|(i, j)| at(i, j)).collect();
    let diagonal = (field == Field::Complex).then(|| vec![(0..n).map(|i| at(i, i).1).collect()]);
    Parameters { field, n, upper: vec![upper], diagonal, last: None }
}

/// The largest singular value.
fn size(a: &M) -> f64 {
    let mut x = M { rows: a.columns, columns: 1, data: numbers(Field::Complex, a.columns, 9) };
    let mut found = 0.0;
    for _ in 0..40 {
        x = a.h().times(&a.times(&x));
        found = x.norm().sqrt();
        x.data.iter_mut().for_each(|v| *v = v.scaled(1.0 / (found * found).max(1e-300)));
    }
    found
}

/// e(W) = max|W^H W - I| / (n eps), and the distance from the exact W in units of eps |I + A|.
fn quality(context: &Arc<Context>, p: &Parameters, norm: f64) -> (f64, f64) {
    let sent = Sent::new(context, p);
    let w = M { rows: p.n, columns: p.n, data: fetched(&sent.view().matrix(&never).unwrap()) };
    let defect = w.h().times(&w).plus(&M::eye(p.n), -1.0);
    let worst = defect.data.iter().map(|x| x.square().sqrt()).fold(0.0, |a, b| if b <= a { a } else { b });
    (worst / (p.n as f64 * EPS), w.plus(&p.w(0), -1.0).norm() / (EPS * (1.0 + norm * norm).sqrt()))
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
    let upper: Vec<C> = numbers(Field::Real, batch, 3);
    let array = sent(&context, Field::Real, &[batch, 1], &upper);
    let w = fetched(&Cayley::new(&array, None, None, n).unwrap().matrix(&never).unwrap());
    let expected: Vec<C> = upper
        .iter()
        .flat_map(|a| {
            let (cos, sin) = ((1.0 - a.0 * a.0) / (1.0 + a.0 * a.0), 2.0 * a.0 / (1.0 + a.0 * a.0));
            [cos, -sin, sin, cos].map(|x| C(x, 0.0))
        })
        .collect();
    near(&w, &expected, 4.0, "rotations");
    let x = sent(&context, Field::Real, &[batch, 1, n], &[C(1.0, 0.0), C(0.0, 0.0)].repeat(batch));
    let y = Cayley::new(&array, None, None, n).unwrap().apply(&x, Side::Forward, &never).unwrap();
    let columns: Vec<C> = expected.chunks(4).flat_map(|w| [w[0], w[2]]).collect();
    near(&fetched(&y), &columns, 4.0, "rotated");
}

#[test]
fn signs_of_a_complex_matrix_have_no_gradient() {
    let Some(context) = device() else { return };
    let (n, field) = (3, Field::Complex);
    let p = Parameters::new(field, 1, n, 1.0, (true, false));
    let mut sent_all = Sent::new(&context, &p);
    let signs = sent(&context, Field::Real, &[1, n], &[C(1.0, 0.0), C(-1.0, 0.0), C(-1.0, 0.0)]);
    sent_all.last = Some(Last::signs(field, &signs, n).unwrap());
    let w = sent_all.view().matrix(&never).unwrap();
    let bars = sent_all.view().matrix_vjp(Some(&w), &w, &[false, true, true, true], &never).unwrap();
    assert_eq!(bars.iter().map(Option::is_some).collect::<Vec<_>>(), [false, true, false, false]);
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
