//! Against the product of reflections in double precision, and gradients against differences.

use super::*;
use crate::testing::{C, M, device, fetched, near, numbers, sent};
use isometry_core::Side;

/// What E is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    None,
    Sign,
    Phases,
}

/// A product of reflections in double precision.
#[derive(Clone)]
struct Reference {
    u: M,
    end: End,
    angles: Vec<f64>,
}

impl Reference {
    fn draw(field: Field, n: usize, m: usize, end: End, seed: u64) -> Self {
        let u = M { rows: n, columns: m, data: numbers(field, n * m, seed) };
        let angles = numbers(Field::Real, if end == End::Sign { 1 } else { n }, seed + 50)
            .iter()
            .map(|x| x.0)
            .collect();
        Reference { u, end, angles }
    }

    fn matrix(&self) -> M {
        let n = self.u.rows;
        let e = |j: usize| match self.end {
            End::None => C(1.0, 0.0),
            End::Sign => C(if j + 1 == n { self.angles[0] } else { 1.0 }, 0.0),
            End::Phases => C(self.angles[j].cos(), self.angles[j].sin()),
        };
        let mut w = M::eye(n);
        for j in 0..self.u.columns {
            let column = M::new(n, 1, |i, _| self.u.at(i, j));
            w = w.times(&M::eye(n).plus(&column.times(&column.h()), -2.0 / column.norm().powi(2)));
        }
        M::new(n, n, |i, j| w.at(i, j).times(e(j)))
    }

    /// Derivatives of a real function of W with respect to all entries: of U (conjugate derivative), then of the angles.
    fn gradients(&self, field: Field, loss: impl Fn(&M) -> f64) -> (Vec<C>, Vec<C>) {
        let step = 1e-5;
        let change = |f: &dyn Fn(&mut Reference, f64)| {
            let at = |h: f64| {
                let mut own = self.clone();
                f(&mut own, h);
                loss(&own.matrix())
            };
            (at(step) - at(-step)) / (2.0 * step)
        };
        let entry = |k: usize| {
            let re = change(&|own, h| own.u.data[k].0 += h);
            let im = if field == Field::Complex { change(&|own, h| own.u.data[k].1 += h) } else { 0.0 };
            C(re, im)
        };
        let angles = if self.end == End::None { 0 } else { self.angles.len() };
        (
            (0..self.u.data.len()).map(entry).collect(),
            (0..angles).map(|k| C(change(&|own, h| own.angles[k] += h), 0.0)).collect(),
        )
    }
}

fn inner(a: &M, b: &M) -> f64 {
    a.data.iter().zip(&b.data).map(|(a, b)| a.0 * b.0 + a.1 * b.1).sum()
}

const SIZES: [(usize, usize, usize, usize); 9] = [
    (1, 1, 1, 2),
    (2, 5, 3, 4),
    (1, 7, 7, 1),
    (3, 6, 9, 2),
    (1, 40, 33, 3),
    (1, 20, 70, 2),
    (2, 12, 70, 1),
    // two pairs of blocks beside a part of one
    (1, 12, 165, 1),
    // sums over rows in parts
    (1, 3, 2, 600),
];

fn each(test: impl Fn(&Arc<Context>, Field, End, &[Reference], usize)) {
    let Some(context) = device() else { return };
    for field in [Field::Real, Field::Complex] {
        for end in [End::None, End::Sign, End::Phases] {
            if end == End::Phases && field == Field::Real {
                continue;
            }
            for (batch, n, m, rows) in SIZES {
                let all: Vec<_> =
                    (0..batch).map(|b| Reference::draw(field, n, m, end, 3 + b as u64)).collect();
                test(&context, field, end, &all, rows);
            }
        }
    }
}

/// The arrays of the operators.
fn held(context: &Arc<Context>, field: Field, all: &[Reference]) -> (Array, Option<Last>) {
    let (n, m) = (all[0].u.rows, all[0].u.columns);
    let vectors: Vec<C> = all.iter().flat_map(|r| r.u.data.clone()).collect();
    let vectors = sent(context, field, &[all.len(), n, m], &vectors);
    let angles: Vec<C> = all.iter().flat_map(|r| r.angles.iter().map(|&x| C(x, 0.0))).collect();
    let last = match all[0].end {
        End::None => None,
        End::Sign => Some(Last::sign(field, &sent(context, Field::Real, &[all.len()], &angles), n).unwrap()),
        End::Phases => Some(Last::phases(&sent(context, Field::Real, &[all.len(), n], &angles), n).unwrap()),
    };
    (vectors, last)
}

fn units(n: usize, m: usize) -> f64 {
    20.0 + 4.0 * (n.max(m) as f64)
}

#[test]
fn matrices_and_their_gradients() {
    each(|context, field, end, all, _| {
        let (vectors, last) = held(context, field, all);
        let (n, m) = (all[0].u.rows, all[0].u.columns);
        let own = Householder::new(&vectors, last).unwrap();
        let what = format!("{field:?} {end:?} {} x {n} x {m}", all.len());
        let w = own.matrix().unwrap();
        let expected: Vec<C> = all.iter().flat_map(|r| r.matrix().data).collect();
        near(&fetched(&w), &expected, units(n, m), &what);
        if n * m > 300 {
            return;
        }
        let cts: Vec<M> = (0..all.len())
            .map(|b| M { rows: n, columns: n, data: numbers(field, n * n, 90 + b as u64) })
            .collect();
        let ct: Vec<C> = cts.iter().flat_map(|ct| ct.data.clone()).collect();
        let ct = sent(context, field, &[all.len(), n, n], &ct);
        let found = own.matrix_vjp(Some(&w), &ct, &[true; 3]).unwrap();
        let pairs: Vec<_> =
            all.iter().zip(&cts).map(|(r, ct)| r.gradients(field, |w| inner(ct, w))).collect();
        check(&found, end, &pairs, units(n, m), &what);
    });
}

fn check(found: &[Option<Array>], end: End, pairs: &[(Vec<C>, Vec<C>)], units: f64, what: &str) {
    let vectors: Vec<C> = pairs.iter().flat_map(|(vectors, _)| vectors.clone()).collect();
    near(&fetched(found[0].as_ref().unwrap()), &vectors, 10.0 * units, &format!("{what}: vectors"));
    let angles: Vec<C> = pairs.iter().flat_map(|(_, angles)| angles.clone()).collect();
    let place = [None, Some(1), Some(2)][end as usize];
    for at in [1, 2] {
        assert_eq!(found[at].is_some(), place == Some(at), "{what}");
    }
    if let Some(place) = place {
        near(&fetched(found[place].as_ref().unwrap()), &angles, 10.0 * units, &format!("{what}: last"));
    }
}

#[test]
fn rows_and_their_gradients() {
    each(|context, field, end, all, rows| {
        let (vectors, last) = held(context, field, all);
        let (n, m) = (all[0].u.rows, all[0].u.columns);
        let own = Householder::new(&vectors, last).unwrap();
        let draw = |seed: u64| -> Vec<M> {
            (0..all.len())
                .map(|b| M { rows, columns: n, data: numbers(field, rows * n, seed + b as u64) })
                .collect()
        };
        let send = |all: &[M]| {
            sent(
                context,
                field,
                &[all.len(), rows, n],
                &all.iter().flat_map(|x| x.data.clone()).collect::<Vec<_>>(),
            )
        };
        let (xs, cts) = (draw(7), draw(70));
        let (x, ct) = (send(&xs), send(&cts));
        for side in [Side::Forward, Side::Adjoint] {
            let what = format!("{field:?} {end:?} {side:?} {} x {n} x {m}", all.len());
            let turned = |w: &M, x: &M, adjoint: bool| x.times(&if adjoint { w.conj() } else { w.t() });
            let adjoint = side == Side::Adjoint;
            let expected = |x: &[M], adjoint| -> Vec<C> {
                all.iter().zip(x).flat_map(|(r, x)| turned(&r.matrix(), x, adjoint).data).collect()
            };
            near(&fetched(&own.apply(&x, side).unwrap()), &expected(&xs, adjoint), units(n, m), &what);
            if n * m > 300 {
                continue;
            }
            let pulled = own.apply_vjp(&x, &ct, side, &[true; 3], true).unwrap();
            near(&fetched(&pulled.x.unwrap()), &expected(&cts, !adjoint), units(n, m), &format!("{what}: x"));
            let pairs: Vec<_> = all
                .iter()
                .zip(xs.iter().zip(&cts))
                .map(|(r, (x, ct))| r.gradients(field, |w| inner(ct, &turned(w, x, adjoint))))
                .collect();
            check(&pulled.arguments, end, &pairs, units(n, m), &what);
        }
    });
}

#[test]
fn lengths_of_the_vectors_do_not_matter() {
    let Some(context) = device() else { return };
    for length in [1e-18f32, 1.0, 3e18] {
        let u: Vec<C> =
            numbers(Field::Real, 12, 5).iter().map(|x| C(f64::from(x.0 as f32 * length), 0.0)).collect();
        let reference =
            Reference { u: M { rows: 4, columns: 3, data: u.clone() }, end: End::None, angles: vec![] };
        let vectors = sent(&context, Field::Real, &[1, 4, 3], &u);
        let own = Householder::new(&vectors, None).unwrap();
        let w = own.matrix().unwrap();
        near(&fetched(&w), &reference.matrix().data, 30.0, &format!("length {length}"));
    }
}

#[test]
fn more_matrices_than_a_dispatch_has() {
    let Some(context) = device() else { return };
    let (batch, n) = (65535 + 2, 2);
    let u: Vec<C> = numbers(Field::Real, batch * n, 5);
    let vectors = sent(&context, Field::Real, &[batch, n, 1], &u);
    let expected: Vec<C> = u
        .chunks(2)
        .flat_map(|u| {
            let (a, b) = (u[0].0, u[1].0);
            let by = a * a + b * b;
            [(b * b - a * a) / by, -2.0 * a * b / by, -2.0 * a * b / by, (a * a - b * b) / by]
                .map(|x| C(x, 0.0))
        })
        .collect();
    let w = Householder::new(&vectors, None).unwrap().matrix().unwrap();
    near(&fetched(&w), &expected, 8.0, "reflections");
}

#[test]
fn empty_sizes() {
    let Some(context) = device() else { return };
    for (batch, n, m, rows) in [(0, 3, 2, 2), (1, 3, 0, 2), (1, 3, 2, 0), (1, 0, 0, 1)] {
        let vectors = sent(&context, Field::Real, &[batch, n, m], &numbers(Field::Real, batch * n * m, 1));
        let sign = sent(&context, Field::Real, &[batch], &vec![C(-1.0, 0.0); batch]);
        let last = Last::sign(Field::Real, &sign, n).unwrap();
        let x = numbers(Field::Real, batch * rows * n, 2);
        let own = Householder::new(&vectors, None).unwrap();
        let out = own.apply(&sent(&context, Field::Real, &[batch, rows, n], &x), Side::Forward).unwrap();
        assert_eq!(out.shape(), [batch, rows, n]);
        if m == 0 {
            near(&fetched(&out), &x, 0.0, "no reflections");
        }
        let own = Householder::new(&vectors, Some(last)).unwrap();
        let rows = Array::room(&context, Field::Real, &[batch, rows, n]).unwrap();
        let pulled = own.apply_vjp(&rows, &rows, Side::Forward, &[true; 3], true).unwrap();
        let shapes: Vec<_> = pulled.arguments.iter().flatten().map(|bar| bar.shape().to_vec()).collect();
        assert_eq!(shapes, [vec![batch, n, m], vec![batch]]);
    }
}

#[test]
fn inverses_of_triangles_of_all_sizes() {
    let Some(context) = device() else { return };
    for field in [Field::Real, Field::Complex] {
        for (batch, m) in [(1, 31), (3, 33), (2, 100), (1, 165), (2, 300), (1, 530)] {
            // far from singular: the diagonal outweighs the rows
            let grams: Vec<M> = (0..batch)
                .map(|b| {
                    let data = numbers(field, m * m, 9 + b as u64);
                    M::new(m, m, |i, j| if i == j { C(2.0 * m as f64, 0.0) } else { data[i * m + j] })
                })
                .collect();
            let all: Vec<C> = grams.iter().flat_map(|gram| gram.data.clone()).collect();
            let gram = sent(&context, field, &[batch, m, m], &all);
            let mut record = Record::new(&context).unwrap();
            let out = inverse::inverse(&mut record, &gram).unwrap();
            record.submit().unwrap();
            for (gram, found) in grams.iter().zip(fetched(&out).chunks(m * m)) {
                let x = M { rows: m, columns: m, data: found.to_vec() };
                let zero = (0..m * m).all(|at| at / m <= at % m || x.data[at] == C::default());
                assert!(zero, "{field:?} {m}: below the diagonal");
                let t = |i: usize, j: usize| gram.at(i, j).scaled(if i == j { 0.5 } else { 1.0 });
                let product = M::new(m, m, |i, j| {
                    (i..=j).fold(C::default(), |sum, k| sum.plus(t(i, k).times(x.at(k, j))))
                });
                near(&product.data, &M::eye(m).data, 8.0, &format!("{field:?} {m}"));
            }
        }
    }
}

/// What a call keeps serves the same arrays alone, and changes no bit.
#[test]
fn gradients_from_what_was_kept() {
    each(|context, field, end, all, rows| {
        let n = all[0].u.rows;
        let draw =
            |seed| sent(context, field, &[all.len(), rows, n], &numbers(field, all.len() * rows * n, seed));
        let (x, ct, others) = (draw(7), draw(70), draw(8));
        let pulled = |arrays: &(Array, Option<Last>), side| {
            let own = Householder::new(&arrays.0, arrays.1.clone()).unwrap();
            let pulled = own.apply_vjp(&x, &ct, side, &[true; 3], true).unwrap();
            let all: Vec<_> = pulled.arguments.into_iter().flatten().chain(pulled.x).collect();
            all.iter().map(|array| array.download().unwrap()).collect::<Vec<_>>()
        };
        for side in [Side::Forward, Side::Adjoint] {
            let (fresh, again) = (held(context, field, all), held(context, field, all));
            let expected = pulled(&fresh, side);
            let own = Householder::new(&again.0, again.1.clone()).unwrap();
            for kept in [&x, &others] {
                own.apply(kept, side).unwrap();
                assert!(own.kept_rows(kept, side).is_some());
                assert!(own.kept_rows(&ct, side).is_none());
                assert!(pulled(&again, side) == expected, "{field:?} {end:?} {side:?}");
            }
        }
    });
}
