//! The textbook GRU in double precision: a loop over sequences, steps and elements, and its gradient.

use super::super::Reset;
use crate::activation::Activation;
use crate::activation::tests::{pull, value};

/// Arrays as in [`super::super::Gru`]; absent ones are zeros.
#[derive(Clone)]
pub struct Problem {
    pub steps: usize,
    pub batch: usize,
    pub d: usize,
    pub n: usize,
    /// x, w, u, b, h0, hidden_bias, activation_bias
    pub arrays: [Vec<f64>; 7],
    pub reset: Reset,
    pub activation: Activation,
    pub lengths: Vec<usize>,
    pub reverse: bool,
}

/// What one step of one sequence knows.
struct Step {
    row: usize,
    previous: Vec<f64>,
    z: Vec<f64>,
    r: Vec<f64>,
    product: Vec<f64>,
    argument: Vec<f64>,
    c: Vec<f64>,
}

fn sigma(z: f64) -> f64 {
    1.0 / (1.0 + (-z).exp())
}

impl Problem {
    /// row of a gate times the vector
    fn times(&self, weights: &[f64], gate: usize, y: &[f64]) -> Vec<f64> {
        let (n, k) = (self.n, y.len());
        let row = |i: usize| &weights[(gate * n + i) * k..(gate * n + i + 1) * k];
        (0..n).map(|i| row(i).iter().zip(y).map(|(a, b)| a * b).sum()).collect()
    }

    fn walk(&self, b: usize) -> Vec<Step> {
        let [x, w, u, bias, h0, hidden, own] = &self.arrays;
        let (n, d, length) = (self.n, self.d, self.lengths[b]);
        let mut h = h0[b * n..(b + 1) * n].to_vec();
        let mut steps = vec![];
        for k in 0..length {
            let t = if self.reverse { length - 1 - k } else { k };
            let row = t * self.batch + b;
            let x = &x[row * d..(row + 1) * d];
            let drive = |gate: usize| {
                let ux = self.times(u, gate, x);
                (0..n).map(|i| ux[i] + bias[gate * n + i]).collect::<Vec<f64>>()
            };
            let gate = |gate: usize| {
                let (wh, drive) = (self.times(w, gate, &h), drive(gate));
                (0..n).map(|i| sigma(wh[i] + drive[i])).collect::<Vec<f64>>()
            };
            let (z, r, mut argument) = (gate(0), gate(1), drive(2));
            let reset: Vec<f64> = r.iter().zip(&h).map(|(r, h)| r * h).collect();
            let product: Vec<f64> = match self.reset {
                Reset::Before => self.times(w, 2, &reset),
                Reset::After => self.times(w, 2, &h).iter().zip(hidden).map(|(p, c)| p + c).collect(),
            };
            for i in 0..n {
                argument[i] += if self.reset == Reset::After { r[i] * product[i] } else { product[i] };
            }
            let c = value(&argument, self.activation, own);
            let next = (0..n).map(|i| z[i] * h[i] + (1.0 - z[i]) * c[i]).collect();
            let previous = std::mem::replace(&mut h, next);
            steps.push(Step { row, previous, z, r, product, argument, c });
        }
        steps
    }

    pub fn forward(&self) -> Vec<f64> {
        let n = self.n;
        let mut states = vec![0.0; self.steps * self.batch * n];
        for b in 0..self.batch {
            for Step { row, previous: h, z, c, .. } in self.walk(b) {
                for i in 0..n {
                    states[row * n + i] = z[i] * h[i] + (1.0 - z[i]) * c[i];
                }
            }
        }
        states
    }

    /// The gradients of the arrays, in their order.
    pub fn backward(&self, ct: &[f64]) -> [Vec<f64>; 7] {
        let (n, d) = (self.n, self.d);
        let [x, w, u, ..] = &self.arrays;
        let mut bars = self.arrays.each_ref().map(|array| vec![0.0; array.len()]);
        for b in 0..self.batch {
            let mut g = vec![0.0; n];
            for step in self.walk(b).into_iter().rev() {
                let Step { row, previous: h, z, r, product, argument, c } = step;
                (0..n).for_each(|i| g[i] += ct[row * n + i]);
                let c_bar: Vec<f64> = (0..n).map(|i| g[i] * (1.0 - z[i])).collect();
                let (c_arg, own) = pull(&argument, self.activation, &self.arrays[6], &c_bar);
                bars[6].iter_mut().zip(own).for_each(|(sum, b)| *sum += b);
                let z_arg: Vec<f64> = (0..n).map(|i| g[i] * (h[i] - c[i]) * z[i] * (1.0 - z[i])).collect();
                let mut next: Vec<f64> = (0..n).map(|i| g[i] * z[i]).collect();
                let after = self.reset == Reset::After;
                // the cotangent of W_h y, and y
                let own: Vec<f64> = (0..n).map(|i| if after { c_arg[i] * r[i] } else { c_arg[i] }).collect();
                let y: Vec<f64> = (0..n).map(|i| if after { h[i] } else { r[i] * h[i] }).collect();
                let turned = |gate: usize, bar: &[f64]| -> Vec<f64> {
                    (0..n).map(|j| (0..n).map(|i| bar[i] * w[(gate * n + i) * n + j]).sum()).collect()
                };
                let y_bar = turned(2, &own);
                let mut r_arg = vec![0.0; n];
                for i in 0..n {
                    let r_bar = if after { c_arg[i] * product[i] } else { y_bar[i] * h[i] };
                    r_arg[i] = r_bar * r[i] * (1.0 - r[i]);
                    next[i] += if after { y_bar[i] } else { y_bar[i] * r[i] };
                    bars[5][i] += if after { own[i] } else { 0.0 };
                }
                for (gate, bar) in [&z_arg, &r_arg].into_iter().enumerate() {
                    next.iter_mut().zip(turned(gate, bar)).for_each(|(sum, b)| *sum += b);
                }
                for (gate, (bar, of_w, y)) in
                    [(&z_arg, &z_arg, &h), (&r_arg, &r_arg, &h), (&c_arg, &own, &y)].into_iter().enumerate()
                {
                    for i in 0..n {
                        bars[3][gate * n + i] += bar[i];
                        for j in 0..n {
                            bars[1][(gate * n + i) * n + j] += of_w[i] * y[j];
                        }
                        for j in 0..d {
                            bars[2][(gate * n + i) * d + j] += bar[i] * x[row * d + j];
                            bars[0][row * d + j] += bar[i] * u[(gate * n + i) * d + j];
                        }
                    }
                }
                g = next;
            }
            bars[4][b * n..(b + 1) * n].copy_from_slice(&g);
        }
        bars
    }
}
