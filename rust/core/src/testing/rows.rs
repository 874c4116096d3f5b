//! Operators on rows against their dense matrix.

use super::{fill, near, numbers};
use crate::argument::{Array, Bar};
use crate::budget::Budget;
use crate::cpu::Cpu;
use crate::operator::Saves;
use crate::scalar::{Real, Scalar, parts};
use crate::side::Side;

/// The real parts of every argument, in double precision; none of an argument that is not given or not trained.
pub type Numbers = Vec<Vec<f64>>;

fn arguments<T: Scalar>(op: &dyn Cpu<T>) -> Numbers {
    let list = op.arguments();
    let mut found = Vec::new();
    for i in 0.. {
        let Some(argument) = list.get(i).or(list.last().filter(|last| last.list)) else { break };
        let wide = |x: &[T::Real]| x.iter().map(|x| x.f64()).collect();
        found.push(match op.argument(i) {
            Array::Own(x) if argument.trained => wide(parts(x)),
            Array::Real(x) if argument.trained => wide(x),
            Array::None if argument.list => break,
            _ => Vec::new(),
        });
    }
    found
}

/// Arrays of ones for the gradients, which the calls overwrite.
struct Gradients<T: Scalar>(Vec<(Vec<T>, Vec<T::Real>)>);

impl<T: Scalar> Gradients<T> {
    fn of(op: &dyn Cpu<T>, arguments: &Numbers) -> Self {
        let one = |(i, numbers): (usize, &Vec<f64>)| match op.argument(i) {
            Array::Own(_) => (vec![T::one(); numbers.len() / T::PARTS], vec![]),
            _ => (vec![], vec![T::Real::of(1.0); numbers.len()]),
        };
        Gradients(arguments.iter().enumerate().map(one).collect())
    }

    fn bars(&mut self) -> Vec<Bar<'_, T>> {
        let mut bars = Vec::new();
        for (own, real) in &mut self.0 {
            bars.push(match (own.is_empty(), real.is_empty()) {
                (false, _) => Bar::Own(own),
                (_, false) => Bar::Real(real),
                _ => Bar::None,
            });
        }
        bars
    }

    /// All arguments together: where the gradient of one vanishes, rounding errors have the size of the others.
    fn near(&self, ways: &[Vec<f64>], expected: &[f64], tolerance: f64, what: &str) {
        let all = self.0.iter().flat_map(|(own, real)| [parts(own), real].concat());
        let found: Vec<f64> = all.map(|x| x.f64()).collect();
        let along: Vec<f64> = ways.iter().map(|way| dot(&found, way)).collect();
        near(&along, expected, tolerance, format!("gradients, {what}"));
    }
}

/// Directions in which gradients are compared: every number by itself, or where there are many, some of all together.
fn ways(count: usize) -> Vec<Vec<f64>> {
    if count <= 256 {
        return (0..count).map(|i| (0..count).map(|j| f64::from(u8::from(i == j))).collect()).collect();
    }
    (0..8).map(|seed| fill(count, 1.0 / (count as f64).sqrt(), 10 + seed)).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The derivatives in the directions `ways` for each of the cotangents of W, by central differences of the dense matrix.
fn differences<W: Scalar<Real = f64>>(
    arguments: &Numbers,
    ways: &[Vec<f64>],
    dense: &dyn Fn(&Numbers) -> Vec<W>,
    cotangents: &[Vec<W>],
) -> Vec<Vec<f64>> {
    let mut found = vec![vec![]; cotangents.len()];
    for way in ways {
        let step = 1e-5;
        let at = |by: f64| {
            let mut moved = arguments.clone();
            moved.iter_mut().flatten().zip(way).for_each(|(x, w)| *x += by * w);
            dense(&moved)
        };
        let (more, less) = (at(step), at(-step));
        for (found, ct) in found.iter_mut().zip(cotangents) {
            let along = ct.iter().zip(more.iter().zip(&less)).map(|(c, (a, b))| (c.conj() * (*a - *b)).re());
            found.push(along.sum::<f64>() / (2.0 * step));
        }
    }
    found
}

/// Every call of a stack of operators and of its adjoint, on so many rows, with 1, 2 and 3 threads and with what forward saves, against the
/// matrices W that `dense` gives for the real parts of its trained arguments: W, W x, x_bar, and where `gradients`, those of
/// the arguments.
pub fn check<T: Scalar>(
    op: &dyn Cpu<T>,
    rows: usize,
    gradients: bool,
    dense: &dyn Fn(&Numbers) -> Vec<T::Wide>,
) {
    let (arguments, (p, q), batch) = (arguments(op), op.shape(), op.batch());
    let (w, tolerance) = (dense(&arguments), 100.0 * T::Real::EPS.f64());
    let mut matrix = vec![T::one(); batch * p * q];
    op.matrix(&mut matrix, None, &Budget::of(2)).unwrap();
    near(&matrix, &w, tolerance, "matrix");

    let entry = |k: usize, side: Side, i: usize, j: usize| match side {
        Side::Forward => w[(k * p + i) * q + j],
        Side::Adjoint => w[(k * p + j) * q + i].conj(),
    };
    let product = |side: Side, x: &[T]| -> Vec<T::Wide> {
        let (from, into) = side.features((p, q));
        let one = |k: usize, x: &[T], i: usize| (0..from).map(|j| entry(k, side, i, j) * x[j].widen()).sum();
        let each = x.chunks_exact(from.max(1)).enumerate();
        each.flat_map(|(row, x)| (0..into).map(move |i| one(row / rows, x, i))).collect()
    };
    // W_bar of sum Re(conj(ct) W x), or of W^H x
    let outer = |x: &[T], ct: &[T]| -> Vec<T::Wide> {
        let one = |at: usize| {
            let (k, i, j) = (at / (p * q), at / q % p, at % q);
            (k * rows..(k + 1) * rows).map(|r| ct[r * p + i].widen() * x[r * q + j].widen().conj()).sum()
        };
        (0..batch * p * q).map(one).collect()
    };
    let (x, ct): (Vec<T>, Vec<T>) = (numbers(batch * rows * q, 4), numbers(batch * rows * p, 5));
    let w_bar: Vec<T> = numbers(batch * p * q, 6);
    // the gradient of the adjoint side is that of x and ct exchanged
    let cotangents = [outer(&x, &ct), w_bar.iter().map(|x| x.widen()).collect()];
    let ways = ways(if gradients { arguments.iter().map(Vec::len).sum() } else { 0 });
    let expected = differences(&arguments, &ways, dense, &cotangents);
    let close = tolerance + 1e-7;
    for side in [Side::Forward, Side::Adjoint] {
        let (x, ct) = if side == Side::Forward { (&x, &ct) } else { (&ct, &x) };
        let saves =
            if let Saves::Elements(each) = op.apply_saves(rows, side).unwrap() { batch * each } else { 0 };
        let mut first = None;
        for (threads, saved) in [(1, 0), (2, 0), (3, 0), (1, saves), (2, saves)] {
            let budget = Budget::of(threads);
            let (mut out, mut x_bar) = (vec![T::one(); ct.len()], vec![T::one(); x.len()]);
            let mut found = Gradients::of(op, &arguments);
            let mut kept = (saved > 0).then(|| vec![T::one(); saved]);
            op.apply(x, rows, side, &mut out, kept.as_deref_mut(), &budget).unwrap();
            let kept = kept.as_deref();
            op.apply_vjp(kept, x, ct, rows, side, &mut found.bars(), Some(&mut x_bar), &budget).unwrap();
            near(&out, &product(side, x), tolerance, format!("out, {side:?}"));
            near(&x_bar, &product(side.other(), ct), tolerance, format!("x_bar, {side:?}"));
            found.near(&ways, &expected[0], close, &format!("{side:?}"));
            let got = (out, x_bar, found.0);
            assert!(
                *first.get_or_insert_with(|| got.clone()) == got,
                "{threads} threads, {saved} saved differ"
            );
        }
    }
    let mut found = Gradients::of(op, &arguments);
    op.matrix_vjp(None, &w_bar, &mut found.bars(), &Budget::of(2)).unwrap();
    found.near(&ways, &expected[1], close, "of the matrix");
}
