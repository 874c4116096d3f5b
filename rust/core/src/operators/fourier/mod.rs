//! The restricted-capacity unitary matrix of n elements (complex types only)
//!
//! ```text
//! W = D3 R2 F^-1 D2 P R1 F D1,     D_q = diag(e^{i phases[q]}),   R_q = I - 2 v_q v_q^H / ||v_q||^2,
//! (F x)_k = n^{-1/2} sum_j x_j e^{-2 pi i j k / n},     (P x)_i = x[permutation[i]]
//! ```
//!
//! (Arjovsky, Shah, Bengio: Unitary evolution recurrent neural networks, ICML 2016). 10 n log2 n + O(n) flops per row.
//!
//! The backward computes the arrays before R1 and R2 again: that costs two transforms of six per row, and saving them would
//! write and read as many numbers as the rows have.

mod plans;
mod rows;
#[cfg(test)]
mod tests;

use super::by_rows;
use crate::argument;
use crate::argument::{Argument, Array, Bar, Given, all};
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::kernels::Buffer;
use crate::operator::{Cpu, Operator};
use crate::recurrence::{Route, Transition};
use crate::scalar::{Real, Scalar};
use crate::sizes::{check_len, work};
use isometry_kernels::fourier::Plan;
use isometry_kernels::angles::Angles;
use num_traits::{Float, Zero};
use std::sync::Arc;

/// The arguments.
pub const ARGUMENTS: &[Argument] =
    &[argument!("phases", "3 n", real), argument!("vectors", "2 n", complex), argument!("permutation", "n", integer)];

/// The operator, its numbers made ready for the kernels.
pub struct FourierProduct<'a, T: Scalar> {
    phases: &'a [T::Real],
    vectors: &'a [T],
    permutation: &'a [i64],
    places: Vec<usize>,
    plan: Arc<Plan<T::Real>>,
    /// D1, D2 / n, D3, then sqrt(2) v / ||v|| of both vectors, n pairs each.
    numbers: Buffer<T::Real>,
    /// sqrt(2) / ||v|| of both vectors.
    lengths: [T::Real; 2],
    n: usize,
}

impl<'a, T: Scalar> FourierProduct<'a, T> {
    /// Phases (3, n), vectors (2, n) and a permutation of 0..n, n >= 1.
    pub fn new(phases: &'a [T::Real], vectors: &'a [T], permutation: &'a [i64]) -> Result<Self> {
        let n = permutation.len();
        if T::PARTS == 1 {
            return Err(Error::value("vectors", "must be complex"));
        }
        if n == 0 {
            return Err(Error::shape("permutation", "at least one element", 0));
        }
        check_len("phases", phases.len(), &[3, n])?;
        check_len("vectors", vectors.len(), &[2, n])?;
        let places = checked(permutation)?;
        let mut numbers = Buffer::zeroed(work(&[5, n, 2]))?;
        let (diagonals, reflections) = numbers.split_at_mut(6 * n);
        turned(phases, n, diagonals)?;
        let mut lengths = [T::Real::zero(); 2];
        let each = reflections.chunks_exact_mut(2 * n).zip(vectors.chunks_exact(n));
        for ((w, v), length) in each.zip(&mut lengths) {
            // A squared norm that overflows was refused; four sums at a time do not wait for each other.
            let mut squares = [0.0; 4];
            for four in v.chunks(4) {
                for (square, v) in squares.iter_mut().zip(four) {
                    *square += v.re().f64() * v.re().f64() + v.im().f64() * v.im().f64();
                }
            }
            *length = T::Real::of((2.0 / squares.iter().sum::<f64>()).sqrt());
            for (w, v) in w.chunks_exact_mut(2).zip(v) {
                w.copy_from_slice(&[v.re() * *length, v.im() * *length]);
            }
        }
        let plan = plans::plan(n);
        Ok(FourierProduct { phases, vectors, permutation, places, plan, numbers, lengths, n })
    }

    /// A view of [`ARGUMENTS`].
    pub fn of(given: &[Given<'a, T>]) -> Result<Self> {
        let [phases, vectors, permutation] = all(given)?;
        let own = phases.real().ok_or_else(|| Error::value("phases", "must be given"))?;
        let [batch, rows, _] = phases.sizes("phases")?;
        check_len("phases", rows, &[batch, 3])?;
        let [batch, rows, _] = vectors.sizes("vectors")?;
        check_len("vectors", rows, &[batch, 2])?;
        Self::new(own, vectors.own("vectors")?, permutation.integers("permutation")?)
    }
}

/// e^{i phases}, as pairs, those of D2 divided by n.
fn turned<R: Real>(phases: &[R], n: usize, pairs: &mut [R]) -> Result<()> {
    let (mut sin, mut cos) = (Buffer::zeroed(3 * n)?, Buffer::zeroed(3 * n)?);
    let angles = Angles { x: phases.as_ptr(), sin: sin.as_mut_ptr(), cos: cos.as_mut_ptr(), count: 3 * n };
    // SAFETY: three arrays of 3 n numbers.
    unsafe { angles.call() };
    let (one, share) = (R::of(1.0), R::of(1.0 / n as f64));
    for (j, (pair, (cos, sin))) in pairs.chunks_exact_mut(2).zip(cos.iter().zip(&*sin)).enumerate() {
        let by = if j / n == 1 { share } else { one };
        pair.copy_from_slice(&[by * *cos, by * *sin]);
    }
    Ok(())
}

/// The permutation as places, if it holds each of 0..n once.
fn checked(permutation: &[i64]) -> Result<Vec<usize>> {
    let n = permutation.len();
    let (mut seen, mut places) = (vec![false; n], Vec::with_capacity(n));
    for &i in permutation {
        let place = usize::try_from(i).ok().filter(|&i| i < n && !seen[i]);
        let Some(place) = place else {
            return Err(Error::value("permutation", format!("must hold each of 0..{} once, got {i}", n - 1)));
        };
        seen[place] = true;
        places.push(place);
    }
    Ok(places)
}

/// Refuses vectors without a direction, as `Householder` does, and integers that are no permutation. NaN passes.
pub fn check_values<T: Scalar>(given: &[Given<'_, T>]) -> Result<()> {
    let [_, vectors, permutation] = all(given)?;
    if let Array::Own(own) = vectors.array {
        let [_, _, n] = vectors.sizes("vectors")?;
        for (q, v) in own.chunks_exact(n.max(1)).enumerate() {
            let square: T::Real = v.iter().map(|v| v.abs2()).sum();
            if !square.is_normal() && v.iter().all(|v| v.finite()) {
                let text = "must not contain a zero reflection vector nor one whose squared norm overflows or is denormal";
                return Err(Error::value("vectors", format!("{text}: row {q} does")));
            }
        }
    }
    if let Array::Integers(own) = permutation.array {
        checked(own)?;
    }
    Ok(())
}

impl<T: Scalar> Operator<T> for FourierProduct<'_, T> {
    fn batch(&self) -> usize {
        1
    }
    fn shape(&self) -> (usize, usize) {
        (self.n, self.n)
    }
    fn arguments(&self) -> &'static [Argument] {
        ARGUMENTS
    }
    fn argument(&self, i: usize) -> Array<'_, T> {
        match i {
            0 => Array::Real(self.phases),
            1 => Array::Own(self.vectors),
            _ => Array::Integers(self.permutation),
        }
    }
}

impl<T: Scalar> Cpu<T> for FourierProduct<'_, T> {
    fn matrix(&self, out: &mut [T], _saved: Option<&mut [T]>, budget: &Budget<'_>) -> Result<()> {
        self.check_matrix("out", out)?;
        by_rows::matrix(self, out, budget)
    }

    fn matrix_vjp(
        &self,
        _saved: Option<&[T]>,
        ct: &[T],
        bars: &mut [Bar<'_, T>],
        budget: &Budget<'_>,
    ) -> Result<()> {
        self.check_matrix("ct", ct)?;
        self.check_bars(bars)?;
        by_rows::matrix_vjp(self, ct, bars, budget)
    }

    fn transition(&self) -> Option<Transition<'_, T>> {
        Some(Transition::Rows(self))
    }

    /// The factors, unless one group of rows is nearly empty and n is small: a row of n = 64, 128 takes 0.07, 0.2 us in a full
    /// group of factors, 0.5, 2 us as a product of the matrix, which costs n rows to form. (complex64, AVX-512)
    fn route(&self, steps: usize, batch: usize) -> Route {
        let alone = work(&[self.n, batch]) < 128 && work(&[steps, batch]) >= self.n;
        if alone { Route::Dense } else { Route::Factored }
    }
}
