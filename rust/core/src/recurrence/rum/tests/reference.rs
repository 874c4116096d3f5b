//! The textbook rotational unit in double precision: a loop over sequences, steps and elements, with dense rotations.

use crate::activation::Activation;
use crate::activation::tests::value;

/// Arrays as in [`super::super::Rum`]; absent ones are zeros, and identities.
#[derive(Clone)]
pub struct Problem {
    pub steps: usize,
    pub batch: usize,
    pub d: usize,
    pub n: usize,
    /// x, w, u, b, h0, r0, activation_bias
    pub arrays: [Vec<f64>; 7],
    pub memory: bool,
    pub eta: Option<f64>,
    pub activation: Activation,
    pub lengths: Vec<usize>,
    pub reverse: bool,
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// A x for A with rows as long as x.
fn times(a: &[f64], x: &[f64]) -> Vec<f64> {
    a.chunks(x.len().max(1)).map(|row| dot(row, x)).collect()
}

/// R = I + K + K^2 / (1 + c), K = bh ah^T - ah bh^T; I if a or b is zero, or n = 1.
pub fn rotation(a: &[f64], b: &[f64]) -> Vec<f64> {
    let n = a.len();
    let identity: Vec<f64> = (0..n * n).map(|at| f64::from(u8::from(at % (n + 1) == 0))).collect();
    let (len_a, len_b) = (dot(a, a).sqrt(), dot(b, b).sqrt());
    if n == 1 || len_a == 0.0 || len_b == 0.0 {
        return identity;
    }
    let unit = |v: &[f64], len: f64| v.iter().map(|v| v / len).collect::<Vec<f64>>();
    let (a, b) = (unit(a, len_a), unit(b, len_b));
    let k: Vec<f64> = (0..n * n).map(|at| b[at / n] * a[at % n] - a[at / n] * b[at % n]).collect();
    let squared = product(&k, &k, n);
    let c = dot(&a, &b);
    (0..n * n).map(|at| identity[at] + k[at] + squared[at] / (1.0 + c)).collect()
}

fn product(a: &[f64], b: &[f64], n: usize) -> Vec<f64> {
    (0..n * n).map(|at| (0..n).map(|k| a[at / n * n + k] * b[k * n + at % n]).sum()).collect()
}

impl Problem {
    /// The states (T, B, n), and the memory (B, n, n) after them.
    pub fn forward(&self) -> [Vec<f64>; 2] {
        let [x, w, u, bias, h0, r0, own] = &self.arrays;
        let (n, d) = (self.n, self.d);
        let mut states = vec![0.0; self.steps * self.batch * n];
        let mut last = r0.clone();
        for b in 0..self.batch {
            let mut h = h0[b * n..(b + 1) * n].to_vec();
            let r = &mut last[b * n * n..(b + 1) * n * n];
            for k in 0..self.lengths[b] {
                let t = if self.reverse { self.lengths[b] - 1 - k } else { k };
                let row = t * self.batch + b;
                let mut drive = if d == 0 { vec![0.0; 3 * n] } else { times(u, &x[row * d..(row + 1) * d]) };
                drive.iter_mut().zip(bias).for_each(|(z, b)| *z += b);
                drive.iter_mut().zip(times(w, &h)).for_each(|(z, wh)| *z += wh);
                let (keep, rest) = drive.split_at(n);
                let (tau, e) = rest.split_at(n);
                let q = rotation(e, tau);
                let turned = if self.memory {
                    r.copy_from_slice(&product(r, &q, n));
                    times(r, &h)
                } else {
                    times(&q, &h)
                };
                let z: Vec<f64> = e.iter().zip(&turned).map(|(e, y)| e + y).collect();
                let c = value(&z, self.activation, own);
                let sigma = |z: f64| 1.0 / (1.0 + (-z).exp());
                h = (0..n).map(|i| sigma(keep[i]) * h[i] + (1.0 - sigma(keep[i])) * c[i]).collect();
                if let Some(eta) = self.eta {
                    let length = dot(&h, &h).sqrt();
                    h.iter_mut().for_each(|h| *h *= if length > 0.0 { eta / length } else { 0.0 });
                }
                states[row * n..(row + 1) * n].copy_from_slice(&h);
            }
        }
        [states, last]
    }
}
