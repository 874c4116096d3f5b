//! Against the formulas in double precision.

use super::*;
use crate::testing::{C, M, device, fetched, near, numbers, sent};

const EPS: f64 = f32::EPSILON as f64;

/// The parameters of a batch, as single precision has them.
struct Parameters {
    kind: Kind,
    n: usize,
    upper: Vec<Vec<C>>,
    diagonal: Option<Vec<Vec<f64>>>,
    last: Option<Vec<Vec<f64>>>,
}

impl Parameters {
    fn new(kind: Kind, batch: usize, n: usize, scale: f64, some: (bool, bool)) -> Self {
        let rounded = |x: f64| f64::from((x * scale) as f32);
        let triangle = n * n.saturating_sub(1) / 2;
        let upper = (0..batch as u64)
            .map(|b| {
                let drawn = numbers(kind, triangle, 3 * b + 1 + n as u64);
                drawn.iter().map(|x| C(rounded(x.0), rounded(x.1))).collect()
            })
            .collect();
        let reals = |seed: u64, f: &dyn Fn(f64) -> f64| {
            let own = |b: u64| numbers(Kind::Real, n, 5 * b + seed).iter().map(|x| f(x.0)).collect();
            (0..batch as u64).map(own).collect::<Vec<_>>()
        };
        let diagonal = (some.0 && kind == Kind::Complex).then(|| reals(11, &rounded));
        let last = some.1.then(|| match kind {
            Kind::Real => reals(13, &|x| if x < 0.0 { -1.0 } else { 1.0 }),
            Kind::Complex => reals(13, &|x| f64::from((3.0 * x) as f32)),
        });
        Parameters { kind, n, upper, diagonal, last }
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
            Some(signs) if self.kind == Kind::Real => C(signs[b][i], 0.0),
            Some(phases) => C(phases[b][i].cos(), phases[b][i].sin()),
        })
    }

    /// (I + A)^-1 (I - A) D
    fn w(&self, b: usize) -> M {
        let (a, eye) = (self.a(b), M::eye(self.n));
        eye.plus(&a, 1.0).inverse().times(&eye.plus(&a, -1.0)).times(&self.d(b))
    }

    /// Gradients: V = (I + A)^-H G (D^* + W^H), upper = conj(V_ji) - V_ij, diagonal = -Im V_jj, and of the phases.
    fn bars(&self, b: usize, g: &M) -> (Vec<C>, Vec<f64>, Vec<f64>) {
        let (n, w) = (self.n, self.w(b));
        let s = M::eye(n).plus(&self.a(b), 1.0).inverse();
        let v = s.h().times(g).times(&self.d(b).h().plus(&w.h(), 1.0));
        let upper = (0..n).flat_map(|i| {
            let v = &v;
            (i + 1..n).map(move |j| v.at(j, i).conj().plus(v.at(i, j).scaled(-1.0)))
        });
        let phase = |j| (0..n).map(|i| g.at(i, j).times(w.at(i, j).conj()).1).sum();
        (upper.collect(), (0..n).map(|j| -v.at(j, j).1).collect(), (0..n).map(phase).collect())
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
            sent(context, Kind::Real, &[batch, n], &flat)
        };
        let triangle = n * n.saturating_sub(1) / 2;
        let last = p.last.as_ref().map(|last| match p.kind {
            Kind::Real => Last::signs(p.kind, &reals(last), batch, n).unwrap(),
            Kind::Complex => Last::phases(&reals(last), batch, n).unwrap(),
        });
        Sent {
            upper: sent(context, p.kind, &[batch, triangle], &p.upper.concat()),
            diagonal: p.diagonal.as_ref().map(reals),
            last,
            n,
        }
    }

    fn view(&self) -> Cayley<'_> {
        Cayley::new(&self.upper, self.diagonal.as_ref(), self.last.as_ref(), self.n).unwrap()
    }
}

fn check(context: &Arc<Context>, kind: Kind, batch: usize, n: usize, some: (bool, bool)) {
    let what = format!("{kind:?} {batch} of {n}, {some:?}");
    let p = Parameters::new(kind, batch, n, 2.0 / (n.max(1) as f64).sqrt(), some);
    let sent_all = Sent::new(context, &p);
    let view = sent_all.view();
    let w = view.matrix().unwrap();
    let expected: Vec<C> = (0..batch).flat_map(|b| p.w(b).data).collect();
    near(&fetched(&w), &expected, 20.0, &what);
    let g: Vec<M> =
        (0..batch).map(|b| M { rows: n, columns: n, data: numbers(kind, n * n, 77 + b as u64) }).collect();
    let ct = sent(context, kind, &[batch, n, n], &g.iter().flat_map(|g| g.data.clone()).collect::<Vec<_>>());
    let bars = view.matrix_vjp(&w, &ct, &[true; 4]).unwrap();
    let exact: Vec<_> = (0..batch).map(|b| p.bars(b, &g[b])).collect();
    let upper: Vec<C> = exact.iter().flat_map(|x| x.0.clone()).collect();
    near(&fetched(bars[0].as_ref().unwrap()), &upper, 40.0, &format!("upper of {what}"));
    let reals = |part: &dyn Fn(&(Vec<C>, Vec<f64>, Vec<f64>)) -> Vec<f64>| {
        exact.iter().flat_map(part).map(|x| C(x, 0.0)).collect::<Vec<C>>()
    };
    assert_eq!(bars[1].is_some(), p.diagonal.is_some());
    if let Some(bar) = &bars[1] {
        near(&fetched(bar), &reals(&|x| x.1.clone()), 40.0, &format!("diagonal of {what}"));
    }
    assert!(bars[2].is_none());
    assert_eq!(bars[3].is_some(), p.last.is_some() && kind == Kind::Complex);
    if let Some(bar) = &bars[3] {
        near(&fetched(bar), &reals(&|x| x.2.clone()), 40.0, &format!("phases of {what}"));
    }
}

#[test]
fn matrices_and_gradients_of_all_sizes() {
    let Some(context) = device() else { return };
    for kind in [Kind::Real, Kind::Complex] {
        for (batch, n) in
            [(1, 1), (3, 2), (5, 7), (9, 8), (2, 9), (3, 16), (2, 17), (2, 32), (1, 33), (2, 64)]
        {
            check(&context, kind, batch, n, (true, true));
            check(&context, kind, batch, n, (false, false));
        }
        for (batch, n) in [(2, 65), (1, 130)] {
            check(&context, kind, batch, n, (true, true));
        }
        check(&context, kind, 1, 66, (false, false));
    }
}

#[test]
fn nothing_is_a_matrix_too() {
    let Some(context) = device() else { return };
    for kind in [Kind::Real, Kind::Complex] {
        for (batch, n) in [(0, 5), (2, 0), (0, 0), (0, 100)] {
            check(&context, kind, batch, n, (true, true));
        }
    }
}
