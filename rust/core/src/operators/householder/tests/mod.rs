//! Against the textbook in double precision, and what a product of reflections is whatever its vectors.

mod properties;
mod recover;
mod reference;
mod textbook;

use super::gradients::Gradients;
use super::*;
use crate::argument::Bar;
use crate::budget::Budget;
use crate::cpu::Cpu;
use crate::operator::Saves;
use crate::scalar::{Real, c32, c64};
use crate::side::Side;
use crate::testing::{Guarded, Random, wide, within_work};

/// max|W^H W - I| / (n eps)
fn unitarity<T: Scalar>(w: &[T], n: usize) -> f64 {
    let mut worst = 0f64;
    let w = wide(w);
    for i in 0..n {
        let mut row = vec![T::Wide::default(); n];
        for k in 0..n {
            let f = w[k * n + i].conj();
            for j in 0..n {
                row[j] += f * w[k * n + j];
            }
        }
        row[i] -= T::Wide::one();
        worst = row.iter().fold(worst, |worst, x| worst.max(x.modulus()));
        assert!(row.iter().all(|x| x.finite()));
    }
    worst / (n as f64 * T::Real::EPS.f64())
}
