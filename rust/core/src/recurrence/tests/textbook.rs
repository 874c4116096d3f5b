//! One step of every cell as the literature writes it, in double precision; gradients come from the tape.

use crate::activation::Activation;
use crate::activation::tests::value;
use crate::testing::tape::{Var, Z, sum, times};

/// What all steps have in common.
pub struct Step<'a> {
    pub n: usize,
    /// An array of the cell, zeros where it is not given.
    pub array: &'a dyn Fn(&str) -> &'a [Z],
    /// The matrix of the operator, empty without one.
    pub matrix: &'a [Z],
    pub settings: &'a [f64],
    pub activation: Activation,
    pub activation_bias: &'a [Var],
}

/// From x, the state and the memory to the state after it.
pub type Law = fn(&Step<'_>, &[Z], &[Z], &mut Vec<Z>) -> Vec<Z>;

/// A cell, and what its declaration does not say of it.
pub struct Textbook {
    pub name: &'static str,
    pub step: Law,
    /// Settings, NaN for those that are not given.
    pub settings: &'static [&'static [f64]],
    /// An argument that belongs to a setting alone.
    pub belongs: (&'static str, usize),
    /// phi is not tanh alone.
    pub activations: bool,
}

const NO: f64 = f64::NAN;

pub static CELLS: &[Textbook] = &[
    Textbook {
        name: "recurrence",
        step: affine,
        settings: &[&[NO], &[1.0]],
        belongs: ("", 0),
        activations: true,
    },
    Textbook {
        name: "gru",
        step: gru,
        settings: &[&[NO], &[1.0]],
        belongs: ("hidden_bias", 0),
        activations: true,
    },
    Textbook {
        name: "goru",
        step: gru,
        settings: &[&[NO], &[1.0]],
        belongs: ("hidden_bias", 0),
        activations: true,
    },
    Textbook { name: "lstm", step: lstm, settings: &[&[]], belongs: ("", 0), activations: false },
    Textbook {
        name: "rum",
        step: rum,
        settings: &[&[NO, NO], &[1.0, NO], &[NO, 1.3], &[1.0, 1.3]],
        belongs: ("r0", 0),
        activations: true,
    },
    Textbook {
        name: "cornn",
        step: cornn,
        // a step of length 0 leaves the state, the weights have no gradients
        settings: &[&[0.3, 1.2, 0.7], &[0.0, 66.0, 15.0]],
        belongs: ("", 0),
        activations: false,
    },
    Textbook { name: "lem", step: lem, settings: &[&[1.0], &[0.3]], belongs: ("", 0), activations: false },
];

impl Step<'_> {
    fn set(&self, i: usize) -> bool {
        !self.settings[i].is_nan()
    }
    fn phi(&self, z: &[Z]) -> Vec<Z> {
        value(z, self.activation, self.activation_bias)
    }
    /// U x + b
    fn input(&self, [u, b]: [&str; 2], x: &[Z]) -> Vec<Z> {
        let (u, b) = ((self.array)(u), (self.array)(b));
        let row = |(i, b): (usize, &Z)| Z::dot(&u[i * x.len()..(i + 1) * x.len()], x) + *b;
        b.iter().enumerate().map(row).collect()
    }
}

fn hadamard(a: &[Z], b: &[Z]) -> Vec<Z> {
    a.iter().zip(b).map(|(&a, &b)| a * b).collect()
}

/// z h + (1 - z) c
fn between(z: &[Z], h: &[Z], c: &[Z]) -> Vec<Z> {
    (0..h.len()).map(|i| z[i] * h[i] + (Z::ONE - z[i]) * c[i]).collect()
}

fn affine(step: &Step<'_>, x: &[Z], h: &[Z], _: &mut Vec<Z>) -> Vec<Z> {
    let (turned, drive) = (times(step.matrix, h), step.input(["input_weight", "bias"], x));
    if step.set(0) { sum(&turned, &step.phi(&drive)) } else { step.phi(&sum(&turned, &drive)) }
}

fn gru(step: &Step<'_>, x: &[Z], h: &[Z], _: &mut Vec<Z>) -> Vec<Z> {
    let (n, drive) = (step.n, step.input(["u", "b"], x));
    let w = [(step.array)("w"), step.matrix].concat();
    let (gates, own) = w.split_at(2 * n * n);
    let gates: Vec<Z> = sum(&times(gates, h), &drive).into_iter().map(Z::sigma).collect();
    let (z, r) = gates.split_at(n);
    let product = match step.set(0) {
        true => hadamard(r, &sum(&times(own, h), (step.array)("hidden_bias"))),
        false => times(own, &hadamard(r, h)),
    };
    between(z, h, &step.phi(&sum(&product, &drive[2 * n..])))
}

fn lstm(step: &Step<'_>, x: &[Z], state: &[Z], _: &mut Vec<Z>) -> Vec<Z> {
    let (n, (h, c)) = (step.n, state.split_at(step.n));
    let z = sum(&times((step.array)("w"), h), &step.input(["u", "b"], x));
    let [i, f, o] = [0, 1, 3].map(|gate| z[gate * n..][..n].iter().map(|z| z.sigma()).collect::<Vec<Z>>());
    let g: Vec<Z> = z[2 * n..3 * n].iter().map(|z| z.tanh()).collect();
    let c = sum(&hadamard(&f, c), &hadamard(&i, &g));
    let open: Vec<Z> = c.iter().map(|c| c.tanh()).collect();
    [hadamard(&o, &open), c].concat()
}

fn rum(step: &Step<'_>, x: &[Z], h: &[Z], memory: &mut Vec<Z>) -> Vec<Z> {
    let (n, mut z) = (step.n, step.input(["u", "b"], x));
    let e = z.split_off(2 * n);
    let z = sum(&times((step.array)("w"), h), &z);
    let (keep, tau) = z.split_at(n);
    let y = if step.set(0) {
        // the rows of R_{t-1} R
        *memory = memory.chunks_exact(n).flat_map(|row| rotated(tau, &e, row)).collect();
        times(memory, h)
    } else {
        rotated(&e, tau, h)
    };
    let keep: Vec<Z> = keep.iter().map(|z| z.sigma()).collect();
    let mut h = between(&keep, h, &step.phi(&sum(&e, &y)));
    if step.set(1) {
        let square = Z::dot(&h, &h).re;
        let eta = Var::constant(step.settings[1]);
        let scale = if square.value > 0.0 { eta / square.sqrt() } else { Var::ZERO };
        h.iter_mut().for_each(|h| *h = h.scale(scale));
    }
    h
}

/// R x, R = I + K + K^2 / (1 + c), K = bh ah^T - ah bh^T; x if a or b is zero, or n = 1.
fn rotated(a: &[Z], b: &[Z], x: &[Z]) -> Vec<Z> {
    let [of_a, of_b] = [a, b].map(|v| Z::dot(v, v).re);
    if x.len() == 1 || of_a.value == 0.0 || of_b.value == 0.0 {
        return x.to_vec();
    }
    let unit = |v: &[Z], square: Var| v.iter().map(|v| v.scale(Var::ONE / square.sqrt())).collect::<Vec<Z>>();
    let (a, b) = (unit(a, of_a), unit(b, of_b));
    let k = |x: &[Z]| -> Vec<Z> {
        let (of_a, of_b) = (Z::dot(&a, x), Z::dot(&b, x));
        a.iter().zip(&b).map(|(&a, &b)| b * of_a - a * of_b).collect()
    };
    let (once, by) = (k(x), Var::ONE / (Var::ONE + Z::dot(&a, &b).re));
    let twice: Vec<Z> = k(&once).iter().map(|z| z.scale(by)).collect();
    sum(&sum(x, &once), &twice)
}

fn cornn(step: &Step<'_>, x: &[Z], state: &[Z], _: &mut Vec<Z>) -> Vec<Z> {
    let (n, (y, z)) = (step.n, state.split_at(step.n));
    let by =
        |i: usize, v: &[Z]| v.iter().map(|v| v.scale(Var::constant(step.settings[i]))).collect::<Vec<Z>>();
    let (w_y, w_z) = (step.array)("w").split_at(n * n);
    let drive = sum(&sum(&times(w_y, y), &times(w_z, z)), &step.input(["u", "b"], x));
    let force: Vec<Z> = drive.iter().map(|z| z.tanh()).collect();
    let force = (0..n).map(|i| force[i] - by(1, y)[i] - by(2, z)[i]).collect::<Vec<Z>>();
    let z = sum(z, &by(0, &force));
    [sum(y, &by(0, &z)), z].concat()
}

fn lem(step: &Step<'_>, x: &[Z], state: &[Z], _: &mut Vec<Z>) -> Vec<Z> {
    let (n, (y, z), drive) = (step.n, state.split_at(step.n), step.input(["u", "b"], x));
    let gate =
        |i: usize, of: &[Z]| sum(&times(&(step.array)("w")[i * n * n..][..n * n], of), &drive[i * n..][..n]);
    let rest = |i: usize| -> Vec<Z> {
        let length = |z: &Z| Z::ONE - z.sigma().scale(Var::constant(step.settings[0]));
        gate(i, y).iter().map(length).collect()
    };
    let tanh = |z: Vec<Z>| z.iter().map(|z| z.tanh()).collect::<Vec<Z>>();
    let z = between(&rest(0), z, &tanh(gate(2, y)));
    [between(&rest(1), y, &tanh(gate(3, &z))), z].concat()
}
