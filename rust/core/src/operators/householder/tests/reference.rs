//! The textbook: one reflection at a time, Algorithm 1 in its symmetric complex form.

use super::*;

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
        let mut e = vec![W::one(); n];
        match op.last {
            Last::None | Last::Signs(_) => {}
            Last::Sign(sign) => e[n - 1] = W::real(sign[b].f64()),
            Last::Phases(phases) => {
                for (e, angle) in e.iter_mut().zip(&phases[b * n..]) {
                    *e = W::cis(angle.f64());
                }
            }
        }
        Textbook { columns, e }
    }

    /// (2 / ||u||^2) u^H x
    fn coefficient(u: &[W], x: &[W]) -> W {
        let norm: f64 = u.iter().map(|u| u.abs2()).sum();
        u.iter().zip(x).map(|(u, x)| u.conj() * *x).sum::<W>().scale(2.0 / norm)
    }

    fn reflect(u: &[W], x: &mut [W]) -> W {
        let f = Self::coefficient(u, x);
        for (x, u) in x.iter_mut().zip(u) {
            *x -= f * *u;
        }
        f
    }

    fn forward(&self, x: &[W]) -> Vec<W> {
        let mut y: Vec<W> = x.iter().zip(&self.e).map(|(x, e)| *x * *e).collect();
        for u in self.columns.iter().rev() {
            Self::reflect(u, &mut y);
        }
        y
    }

    fn adjoint(&self, x: &[W]) -> Vec<W> {
        let mut y = x.to_vec();
        for u in &self.columns {
            Self::reflect(u, &mut y);
        }
        y.iter().zip(&self.e).map(|(y, e)| *y * e.conj()).collect()
    }

    /// Algorithm 1 for one column: adds to u_bar (by columns) and returns (x_bar, conj(e) * gradient of e before Im or Re).
    fn pull(&self, x: &[W], ct: &[W], u_bar: &mut [Vec<W>]) -> (Vec<W>, Vec<W>, Vec<W>) {
        let y: Vec<W> = x.iter().zip(&self.e).map(|(x, e)| *x * *e).collect();
        let (mut states, mut h) = (vec![y.clone()], vec![]);
        for u in self.columns.iter().rev() {
            let mut next = states[states.len() - 1].clone();
            h.push(Self::reflect(u, &mut next));
            states.push(next);
        }
        let mut g = ct.to_vec();
        for (j, u) in self.columns.iter().enumerate() {
            let depth = self.columns.len() - j;
            let (above, below, hj) = (&states[depth], &states[depth - 1], h[depth - 1]);
            let before = g.clone();
            let c = Self::reflect(u, &mut g);
            for i in 0..g.len() {
                u_bar[j][i] -= (hj.conj() * (before[i] + g[i]) + c.conj() * (above[i] + below[i])).scale(0.5);
            }
        }
        let x_bar = g.iter().zip(&self.e).map(|(g, e)| *g * e.conj()).collect();
        (x_bar, g, y)
    }
}

pub struct Answers<W> {
    pub out: Vec<W>,
    pub vectors: Vec<W>,
    pub last: Vec<f64>,
    pub x_bar: Vec<W>,
}

pub fn reference<T: Scalar>(
    op: &Householder<'_, T>,
    x: &[T],
    ct: &[T],
    rows: usize,
    side: Side,
) -> Answers<T::Wide> {
    let (n, m) = (op.n, op.m);
    let mut all = Answers { out: vec![], vectors: vec![], last: vec![], x_bar: vec![] };
    for b in 0..op.batch {
        let book = Textbook::new(op, b);
        let mut u_bar = vec![vec![T::Wide::default(); n]; m];
        let mut last = vec![0.0; if matches!(op.last, Last::Phases(_)) { n } else { 1 }];
        for r in b * rows..(b + 1) * rows {
            let (x, ct) = (wide(&x[r * n..(r + 1) * n]), wide(&ct[r * n..(r + 1) * n]));
            let (into, from) = if side == Side::Forward { (&x, &ct) } else { (&ct, &x) };
            let (x_bar, g, y) = book.pull(into, from, &mut u_bar);
            match side {
                Side::Forward => {
                    all.out.extend(book.forward(&x));
                    all.x_bar.extend(x_bar);
                }
                Side::Adjoint => {
                    all.out.extend(book.adjoint(&x));
                    all.x_bar.extend(book.forward(&ct));
                }
            }
            match op.last {
                Last::None | Last::Signs(_) => {}
                Last::Sign(_) => last[0] += (g[n - 1].conj() * into[n - 1]).re(),
                Last::Phases(_) => {
                    for j in 0..n {
                        last[j] += (g[j] * y[j].conj()).im();
                    }
                }
            }
        }
        for i in 0..n {
            all.vectors.extend((0..m).map(|j| u_bar[j][i]));
        }
        if op.has_last() {
            all.last.extend(last);
        }
    }
    all
}

/// ||a - ref|| / max(||ref||, 1e-3); for float32 gradients also against a fraction of the cotangent.
pub fn distance<T: Scalar>(a: &[T], expected: &[T::Wide], floor: f64) -> f64 {
    assert_eq!(a.len(), expected.len());
    let (mut off, mut size) = (0.0, 0.0);
    for (a, e) in a.iter().zip(expected) {
        off += (a.widen() - *e).abs2();
        size += e.abs2();
    }
    off.sqrt() / size.sqrt().max(floor).max(1e-3)
}
