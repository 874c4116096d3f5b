//! The textbook recurrence in double precision: a loop over sequences, steps and elements.

use crate::activation::Activation;
use crate::activation::tests::{pull, value};
use crate::scalar::{Scalar, c64};

/// One problem in double precision; `w` is always a matrix.
pub struct Problem<W> {
    pub steps: usize,
    pub batch: usize,
    pub d: usize,
    pub n: usize,
    pub w: Vec<W>,
    pub x: Vec<W>,
    pub v: Vec<W>,
    pub h0: Vec<W>,
    pub bias: Vec<W>,
    pub own: Vec<f64>,
    pub activation: Activation,
    pub on_input: bool,
    pub lengths: Vec<usize>,
    pub reverse: bool,
}

/// All outputs of a backward pass.
pub struct Bars<W> {
    pub w: Vec<W>,
    pub x: Vec<W>,
    pub v: Vec<W>,
    pub h0: Vec<W>,
    pub bias: Vec<W>,
    pub own: Vec<f64>,
}

impl<W: Scalar<Real = f64>> Problem<W> {
    /// Steps of sequence b in the order of the recurrence.
    fn order(&self, b: usize) -> Vec<usize> {
        let length = self.lengths[b];
        (0..length).map(|t| if self.reverse { length - 1 - t } else { t }).collect()
    }

    /// (states, arguments of the activation, states before each step)
    fn run(&self) -> (Vec<W>, Vec<W>, Vec<W>) {
        let Problem { steps, batch, d, n, .. } = *self;
        let empty = vec![W::default(); steps * batch * n];
        let (mut states, mut arguments, mut previous) = (empty.clone(), empty.clone(), empty);
        for b in 0..batch {
            let mut h = self.h0[b * n..(b + 1) * n].to_vec();
            for t in self.order(b) {
                let row = (t * batch + b) * n;
                previous[row..row + n].copy_from_slice(&h);
                let (mut turned, mut drive) = (vec![W::default(); n], self.bias.clone());
                for i in 0..n {
                    for j in 0..n {
                        turned[i] += self.w[i * n + j] * h[j];
                    }
                    for j in 0..d {
                        drive[i] += self.v[i * d + j] * self.x[(t * batch + b) * d + j];
                    }
                }
                let sum = |a: &[W], b: &[W]| a.iter().zip(b).map(|(&a, &b)| a + b).collect::<Vec<W>>();
                let z = if self.on_input { drive } else { sum(&turned, &drive) };
                h = value(&z, self.activation, &self.own);
                if self.on_input {
                    h = sum(&turned, &h);
                }
                arguments[row..row + n].copy_from_slice(&z);
                states[row..row + n].copy_from_slice(&h);
            }
        }
        (states, arguments, previous)
    }

    pub fn forward(&self) -> Vec<W> {
        self.run().0
    }

    pub fn backward(&self, ct: &[W]) -> Bars<W> {
        let Problem { steps, batch, d, n, .. } = *self;
        let (_, arguments, previous) = self.run();
        let zeros = |len: usize| vec![W::default(); len];
        let mut bars = Bars {
            w: zeros(n * n),
            x: zeros(steps * batch * d),
            v: zeros(n * d),
            h0: zeros(batch * n),
            bias: zeros(n),
            own: vec![0.0; self.own.len()],
        };
        for b in 0..batch {
            let mut g = zeros(n);
            for t in self.order(b).into_iter().rev() {
                let row = (t * batch + b) * n;
                for i in 0..n {
                    g[i] += ct[row + i];
                }
                let (input_bar, own) = pull(&arguments[row..row + n], self.activation, &self.own, &g);
                let z_bar = if self.on_input { g } else { input_bar.clone() };
                g = zeros(n);
                for i in 0..n {
                    bars.bias[i] += input_bar[i];
                    for j in 0..n {
                        g[j] += z_bar[i] * self.w[i * n + j].conj();
                        bars.w[i * n + j] += z_bar[i] * previous[row + j].conj();
                    }
                    for j in 0..d {
                        let at = (t * batch + b) * d + j;
                        bars.v[i * d + j] += input_bar[i] * self.x[at].conj();
                        bars.x[at] += input_bar[i] * self.v[i * d + j].conj();
                    }
                }
                bars.own.iter_mut().zip(own).for_each(|(sum, b)| *sum += b);
            }
            bars.h0[b * n..(b + 1) * n].copy_from_slice(&g);
        }
        bars
    }
}

/// H(U[:,0]) ... H(U[:,m-1]) E X for one column, reflection by reflection.
pub fn reflect<W: Scalar<Real = f64>>(u: &[W], m: usize, factor: &[W], x: &[W]) -> Vec<W> {
    let mut y: Vec<W> = x.iter().zip(factor).map(|(&x, &e)| e * x).collect();
    for j in (0..m).rev() {
        one(u, m, j, &mut y);
    }
    y
}

/// y <- H(u_j) y; returns the factor h_j.
fn one<W: Scalar<Real = f64>>(u: &[W], m: usize, j: usize, y: &mut [W]) -> W {
    let norm: f64 = (0..y.len()).map(|i| u[i * m + j].abs2()).sum();
    let dot: W = (0..y.len()).map(|i| u[i * m + j].conj() * y[i]).sum();
    let h = dot.scale(2.0 / norm);
    for i in 0..y.len() {
        y[i] -= h * u[i * m + j];
    }
    h
}

/// The gradients of U, s and theta from that of the matrix: Algorithm 1 of Mhammedi et al. 2017 on every column of I.
pub fn reflect_back<W: Scalar<Real = f64>>(
    u: &[W],
    m: usize,
    factor: &[W],
    w_bar: &[W],
) -> (Vec<W>, f64, Vec<f64>) {
    let n = factor.len();
    let (mut u_bar, mut s_bar, mut phases_bar) = (vec![W::default(); n * m], 0.0, vec![0.0; n]);
    for k in 0..n {
        let mut y = vec![W::default(); n];
        y[k] = factor[k];
        let mut kept = vec![];
        for j in (0..m).rev() {
            let before = y.clone();
            let h = one(u, m, j, &mut y);
            kept.push((h, before, y.clone()));
        }
        let mut g: Vec<W> = (0..n).map(|i| w_bar[i * n + k]).collect();
        for j in 0..m {
            let (h, before, after) = kept.pop().unwrap();
            let old = g.clone();
            let c = one(u, m, j, &mut g);
            for i in 0..n {
                let sum = h.conj() * (old[i] + g[i]) + c.conj() * (before[i] + after[i]);
                u_bar[i * m + j] -= sum.scale(0.5);
            }
        }
        if k == n - 1 {
            s_bar += g[k].re();
        }
        let (bar, y) = (g[k], factor[k]);
        let (bar, y) = (c64::new(bar.re(), bar.im()), c64::new(y.re(), y.im()));
        phases_bar[k] += (bar * y.conj()).im;
    }
    (u_bar, s_bar, phases_bar)
}
