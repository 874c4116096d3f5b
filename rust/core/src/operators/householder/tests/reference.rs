//! The textbook: one reflection at a time, Algorithm 1 in its symmetric complex form.

use super::*;
use crate::scalar::parts;
use crate::testing::rows::{Numbers, Pull};

/// One matrix in double precision: columns of U, diagonal of E.
struct Textbook<W> {
    columns: Vec<Vec<W>>,
    e: Vec<W>,
}

impl<W: Scalar<Real = f64, Wide = W>> Textbook<W> {
    fn new<T: Scalar<Wide = W>>(op: &Householder<'_, T>, b: usize) -> Self {
        let (n, m) = (op.n, op.m);
        let at = |i: usize, j: usize| op.vectors[(b * n + i) * m + j].widen();
        let columns = (0..m).map(|j| (0..n).map(|i| at(i, j)).collect()).collect();
        let factor = |j: usize| match op.last {
            Last::Phases(phases) => W::cis(phases[b * n + j].f64()),
            last => last.factor::<T>(b, j, n).widen(),
        };
        Textbook { columns, e: (0..n).map(factor).collect() }
    }

    /// Reflects x, and returns (2 / ||u||^2) u^H x.
    fn reflect(u: &[W], x: &mut [W]) -> W {
        let norm: f64 = u.iter().map(|u| u.abs2()).sum();
        let f = u.iter().zip(&*x).map(|(u, x)| u.conj() * *x).sum::<W>().scale(2.0 / norm);
        x.iter_mut().zip(u).for_each(|(x, u)| *x -= f * *u);
        f
    }

    /// Column j of the matrix and what precedes it, before every reflection, with the coefficients of these.
    fn column(&self, j: usize) -> (Vec<Vec<W>>, Vec<W>) {
        let mut y = vec![W::zero(); self.e.len()];
        y[j] = self.e[j];
        let (mut states, mut h) = (vec![y.clone()], vec![]);
        for u in self.columns.iter().rev() {
            h.push(Self::reflect(u, &mut y));
            states.push(y.clone());
        }
        (states, h)
    }

    /// Algorithm 1 for column j: adds to u_bar (by columns) and returns the cotangent of e_j.
    fn pull(&self, j: usize, mut g: Vec<W>, u_bar: &mut [Vec<W>]) -> W {
        let (states, h) = self.column(j);
        for (k, u) in self.columns.iter().enumerate() {
            let depth = self.columns.len() - k;
            let (above, below, hk) = (&states[depth], &states[depth - 1], h[depth - 1]);
            let before = g.clone();
            let c = Self::reflect(u, &mut g);
            for i in 0..g.len() {
                u_bar[k][i] -= (hk.conj() * (before[i] + g[i]) + c.conj() * (above[i] + below[i])).scale(0.5);
            }
        }
        g[j]
    }
}

/// Matrix b of a stack, and its gradients.
pub fn definition<'a, T: Scalar>(op: &Householder<'a, T>, b: usize) -> (Vec<T::Wide>, Pull<'a, T::Wide>) {
    let (n, m, last, book) = (op.n, op.m, op.last, Textbook::new(op, b));
    let columns: Vec<_> = (0..n).map(|j| book.column(j).0.pop().expect("a state")).collect();
    let w = (0..n * n).map(|at| columns[at % n][at / n]).collect();
    let pull = move |w_bar: &[T::Wide]| -> Numbers {
        let mut u_bar = vec![vec![T::Wide::default(); n]; m];
        let ct = |j: usize| (0..n).map(|i| w_bar[i * n + j]).collect();
        let e_bar: Vec<_> = (0..n).map(|j| book.pull(j, ct(j), &mut u_bar)).collect();
        let vectors: Vec<_> = (0..n * m).map(|at| u_bar[at % m][at / m]).collect();
        let sign = e_bar.last().map(|e_bar| e_bar.re()).filter(|_| matches!(last, Last::Sign(_)));
        let phases = e_bar.iter().zip(&book.e).map(|(bar, e)| (*bar * e.conj()).im());
        let phases = if matches!(last, Last::Phases(_)) { phases.collect() } else { vec![] };
        vec![parts(&vectors).to_vec(), sign.into_iter().collect(), phases]
    };
    (w, Box::new(pull))
}
