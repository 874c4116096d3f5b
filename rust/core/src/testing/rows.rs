//! Operators on rows against their dense matrix.

use super::{near, numbers};
use crate::argument::{Array, Bar};
use crate::budget::Budget;
use crate::cpu::Cpu;
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
    fn near(&self, expected: &Numbers, tolerance: f64, what: &str) {
        let found: Vec<T::Real> = self.0.iter().flat_map(|(own, real)| [parts(own), real].concat()).collect();
        near(&found, &expected.concat(), tolerance, format!("gradients, {what}"));
    }
}

/// The gradients of all arguments for the cotangents of W, by central differences of the dense matrix.
fn differences<W: Scalar<Real = f64>>(
    arguments: &Numbers,
    dense: &dyn Fn(&Numbers) -> Vec<W>,
    cotangents: &[Vec<W>],
) -> Vec<Numbers> {
    let mut found = vec![arguments.clone(); cotangents.len()];
    let mut moved = arguments.clone();
    for (i, own) in arguments.iter().enumerate() {
        for (j, &number) in own.iter().enumerate() {
            let step = 1e-5;
            let mut at = |by: f64| {
                moved[i][j] = number + by;
                dense(&moved)
            };
            let (more, less) = (at(step), at(-step));
            moved[i][j] = number;
            for (found, ct) in found.iter_mut().zip(cotangents) {
                let along =
                    ct.iter().zip(more.iter().zip(&less)).map(|(c, (a, b))| (c.conj() * (*a - *b)).re());
                found[i][j] = along.sum::<f64>() / (2.0 * step);
            }
        }
    }
    found
}

/// Every call of an operator of one matrix, on so many rows of both sides and with 1, 2 and 3 threads, against the matrix W that
/// `dense` gives for the real parts of its trained arguments: W, W x, x_bar, and where `gradients`, those of the arguments.
pub fn check<T: Scalar>(
    op: &dyn Cpu<T>,
    rows: usize,
    gradients: bool,
    dense: &dyn Fn(&Numbers) -> Vec<T::Wide>,
) {
    let (arguments, (p, q)) = (arguments(op), op.shape());
    let (w, tolerance) = (dense(&arguments), 100.0 * T::Real::EPS.f64());
    let mut matrix = vec![T::one(); p * q];
    op.matrix(&mut matrix, None, &Budget::of(2)).unwrap();
    near(&matrix, &w, tolerance, "matrix");

    let entry = |side: Side, i: usize, j: usize| match side {
        Side::Forward => w[i * q + j],
        Side::Adjoint => w[j * q + i].conj(),
    };
    let product = |side: Side, x: &[T]| -> Vec<T::Wide> {
        let (from, into) = side.features((p, q));
        let one = |x: &[T], i: usize| (0..from).map(|j| entry(side, i, j) * x[j].widen()).sum();
        x.chunks_exact(from).flat_map(|x| (0..into).map(move |i| one(x, i))).collect()
    };
    // W_bar of sum Re(conj(ct) W x), or of W^H x
    let outer = |x: &[T], ct: &[T]| -> Vec<T::Wide> {
        let one = |at: usize| {
            (0..rows).map(|r| ct[r * p + at / q].widen() * x[r * q + at % q].widen().conj()).sum()
        };
        (0..p * q).map(one).collect()
    };
    let (x, ct): (Vec<T>, Vec<T>) = (numbers(rows * q, 4), numbers(rows * p, 5));
    let w_bar: Vec<T> = numbers(p * q, 6);
    // the gradient of the adjoint side is that of x and ct exchanged
    let cotangents = [outer(&x, &ct), w_bar.iter().map(|x| x.widen()).collect()];
    let expected = if gradients { differences(&arguments, dense, &cotangents) } else { vec![] };
    let close = tolerance + 1e-7;
    for side in [Side::Forward, Side::Adjoint] {
        let (x, ct) = if side == Side::Forward { (&x, &ct) } else { (&ct, &x) };
        let mut first = None;
        for threads in [1, 2, 3] {
            let budget = Budget::of(threads);
            let (mut out, mut x_bar) = (vec![T::one(); ct.len()], vec![T::one(); x.len()]);
            let mut found = Gradients::of(op, &arguments);
            op.apply(x, rows, side, &mut out, None, &budget).unwrap();
            op.apply_vjp(None, x, ct, rows, side, &mut found.bars(), Some(&mut x_bar), &budget).unwrap();
            near(&out, &product(side, x), tolerance, format!("out, {side:?}"));
            near(&x_bar, &product(side.other(), ct), tolerance, format!("x_bar, {side:?}"));
            if let Some(expected) = expected.first() {
                found.near(expected, close, &format!("{side:?}"));
            }
            let got = (out, x_bar, found.0);
            assert!(*first.get_or_insert_with(|| got.clone()) == got, "{threads} threads differ");
        }
    }
    if let Some(expected) = expected.get(1) {
        let mut found = Gradients::of(op, &arguments);
        op.matrix_vjp(None, &w_bar, &mut found.bars(), &Budget::of(2)).unwrap();
        found.near(expected, close, "of the matrix");
    }
}
