//! The textbook recurrence in double precision: a loop over sequences, steps and elements.

use crate::Field;
use crate::activation::tests::{pull, value};
use crate::testing::{C, numbers};
use isometry_core::activation::Activation;

/// One problem; absent arguments are zeros.
#[derive(Clone, Debug)]
pub struct Problem {
    pub field: Field,
    pub steps: usize,
    pub batch: usize,
    pub d: usize,
    pub n: usize,
    pub w: Vec<C>,
    pub x: Vec<C>,
    pub v: Vec<C>,
    pub h0: Vec<C>,
    pub bias: Vec<C>,
    pub own: Vec<C>,
    pub activation: Activation,
    pub on_input: bool,
    pub lengths: Vec<usize>,
    pub reverse: bool,
}

/// The gradients.
pub struct Bars {
    pub w: Vec<C>,
    pub x: Vec<C>,
    pub v: Vec<C>,
    pub h0: Vec<C>,
    pub bias: Vec<C>,
    pub own: Vec<C>,
}

impl Problem {
    pub fn new(field: Field, [steps, batch, d, n]: [usize; 4], activation: Activation, seed: u64) -> Self {
        let drawn = |count: usize, size: f64, seed: u64| -> Vec<C> {
            let single = |x: f64| f64::from((x * size) as f32);
            numbers(field, count, seed).iter().map(|x| C(single(x.0), single(x.1))).collect()
        };
        let own = numbers(Field::Real, activation.bias_units(n), seed + 6);
        Problem {
            field,
            steps,
            batch,
            d,
            n,
            // about an isometry
            w: drawn(n * n, (3.0 / (n * field.parts()) as f64).sqrt(), seed + 1),
            x: drawn(steps * batch * d, 1.0, seed + 2),
            v: drawn(n * d, 0.5, seed + 3),
            h0: drawn(batch * n, 1.0, seed + 4),
            bias: drawn(n, 0.5, seed + 5),
            own: own.iter().map(|b| b.scaled(0.25)).collect(),
            activation,
            on_input: false,
            lengths: vec![steps; batch],
            reverse: false,
        }
    }

    fn own(&self) -> Vec<f64> {
        self.own.iter().map(|b| b.0).collect()
    }

    /// Steps of sequence b in the order of the recurrence.
    fn order(&self, b: usize) -> Vec<usize> {
        let length = self.lengths[b];
        (0..length).map(|t| if self.reverse { length - 1 - t } else { t }).collect()
    }

    /// (states, arguments of the activation, states before each step)
    fn run(&self) -> [Vec<C>; 3] {
        let Problem { steps, batch, d, n, .. } = *self;
        let empty = vec![C::default(); steps * batch * n];
        let [mut states, mut arguments, mut previous] = [empty.clone(), empty.clone(), empty];
        let sum = |a: &[C], b: &[C]| a.iter().zip(b).map(|(&a, &b)| a.plus(b)).collect::<Vec<C>>();
        for b in 0..batch {
            let mut h = self.h0[b * n..(b + 1) * n].to_vec();
            for t in self.order(b) {
                let row = (t * batch + b) * n;
                previous[row..row + n].copy_from_slice(&h);
                let (mut turned, mut drive) = (vec![C::default(); n], self.bias.clone());
                for i in 0..n {
                    for j in 0..n {
                        turned[i] = turned[i].plus(self.w[i * n + j].times(h[j]));
                    }
                    for j in 0..d {
                        drive[i] = drive[i].plus(self.v[i * d + j].times(self.x[(t * batch + b) * d + j]));
                    }
                }
                let z = if self.on_input { drive } else { sum(&turned, &drive) };
                h = value(&z, self.activation, &self.own());
                if self.on_input {
                    h = sum(&turned, &h);
                }
                arguments[row..row + n].copy_from_slice(&z);
                states[row..row + n].copy_from_slice(&h);
            }
        }
        [states, arguments, previous]
    }

    pub fn forward(&self) -> Vec<C> {
        let [states, ..] = self.run();
        states
    }

    pub fn backward(&self, ct: &[C]) -> Bars {
        let Problem { steps, batch, d, n, .. } = *self;
        let [_, arguments, previous] = self.run();
        let zeros = |len: usize| vec![C::default(); len];
        let mut bars = Bars {
            w: zeros(n * n),
            x: zeros(steps * batch * d),
            v: zeros(n * d),
            h0: zeros(batch * n),
            bias: zeros(n),
            own: zeros(self.own.len()),
        };
        let add = |to: &mut C, a: C, b: C| *to = to.plus(a.times(b.conj()));
        for b in 0..batch {
            let mut g = zeros(n);
            for t in self.order(b).into_iter().rev() {
                let row = (t * batch + b) * n;
                (0..n).for_each(|i| g[i] = g[i].plus(ct[row + i]));
                let z = &arguments[row..row + n];
                let (input_bar, own) = pull(self.field, z, self.activation, &self.own(), &g);
                let z_bar = if self.on_input { g } else { input_bar.clone() };
                g = zeros(n);
                for i in 0..n {
                    bars.bias[i] = bars.bias[i].plus(input_bar[i]);
                    for j in 0..n {
                        add(&mut g[j], z_bar[i], self.w[i * n + j]);
                        add(&mut bars.w[i * n + j], z_bar[i], previous[row + j]);
                    }
                    for j in 0..d {
                        let at = (t * batch + b) * d + j;
                        add(&mut bars.v[i * d + j], input_bar[i], self.x[at]);
                        add(&mut bars.x[at], input_bar[i], self.v[i * d + j]);
                    }
                }
                bars.own.iter_mut().zip(own).for_each(|(sum, x)| *sum = sum.plus(C(x, 0.0)));
            }
            bars.h0[b * n..(b + 1) * n].copy_from_slice(&g);
        }
        bars
    }

    /// Re sum conj(ct) h
    fn loss(&self, ct: &[C]) -> f64 {
        self.forward().iter().zip(ct).map(|(h, ct)| ct.conj().times(*h).0).sum()
    }

    /// The gradient of one argument by central differences of the loop.
    pub fn differences(&self, ct: &[C], argument: impl Fn(&mut Problem) -> &mut Vec<C>) -> Vec<C> {
        let step = 1e-6;
        let count = argument(&mut self.clone()).len();
        let slope = |i: usize, by: C| {
            let loss = |by: C| {
                let mut moved = self.clone();
                let x = &mut argument(&mut moved)[i];
                *x = x.plus(by);
                moved.loss(ct)
            };
            (loss(by) - loss(by.scaled(-1.0))) / (2.0 * step)
        };
        (0..count).map(|i| C(slope(i, C(step, 0.0)), slope(i, C(0.0, step)))).collect()
    }
}
