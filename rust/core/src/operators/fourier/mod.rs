//! The restricted-capacity unitary matrix of n elements (complex types only)
//!
//! ```text
//! W = D3 R2 F^-1 D2 P R1 F D1,     D_q = diag(e^{i phases[q]}),   R_q = I - 2 v_q v_q^H / ||v_q||^2,
//! (F x)_k = n^{-1/2} sum_j x_j e^{-2 pi i j k / n},     (P x)_i = x[permutation[i]]
//! ```
//!
//! (Arjovsky, Shah, Bengio: Unitary evolution recurrent neural networks, ICML 2016). 10 n log2 n + O(n) flops per row.
//!
//! Backward recomputes the arrays before R1 and R2: two of its four transforms per row. Saving them would write
//! and read as many numbers as the rows have.

mod rows;

use super::plans;
use crate::argument::{Argument, Array, Given, all, argument, tail};
use crate::error::{Error, Result};
use crate::kernels::Buffer;
use crate::scalar::{Real, Scalar};
use crate::sizes::{check_len, size, work};
use crate::transition::{Route, Workload};
use isometry_kernels::angles::Angles;
use isometry_kernels::transform::Plan;
use num_traits::Float;
use std::sync::Arc;

/// The arguments.
pub const ARGUMENTS: &[Argument] = &[
    argument!("phases", "3 n", real),
    argument!("vectors", "2 n", complex),
    argument!("permutation", "n", integer),
];

/// The operators, with their numbers prepared for the kernels.
pub struct FourierProduct<'a, T: Scalar> {
    phases: &'a [T::Real],
    vectors: &'a [T],
    permutation: &'a [i64],
    places: Buffer<usize>,
    plan: Arc<Plan<T::Real>>,
    /// For every operator D1, D2 / n, D3, then sqrt(2) v / ||v|| of both vectors, n pairs each.
    numbers: Buffer<T::Real>,
    /// sqrt(2) / ||v|| of both vectors of every operator.
    lengths: Buffer<T::Real>,
    batch: usize,
    n: usize,
}

impl<'a, T: Scalar> FourierProduct<'a, T> {
    /// Phases (batch, 3, n), vectors (batch, 2, n) and permutations (batch, n) of 0..n, n >= 1.
    ///
    /// ```
    /// use isometry_core::operators::fourier::FourierProduct;
    /// use isometry_core::scalar::c64;
    /// use isometry_core::{Budget, Cpu, Side};
    ///
    /// // R = I - v v^T with v = (1, 1), so W = R F^-1 R F = [[0, -1], [1, 0]]
    /// let (one, mut y) = (c64::new(1.0, 0.0), [c64::default(); 2]);
    /// let vectors = [one; 4];
    /// let w = FourierProduct::new(&[0.0; 6], &vectors, &[0, 1], 1, 2)?;
    /// w.apply(&[one, 3.0 * one], 1, Side::Forward, &mut y, None, &Budget::of(1))?;
    /// assert!((y[0] + 3.0).norm() < 1e-14 && (y[1] - 1.0).norm() < 1e-14);
    /// # Ok::<(), isometry_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// A real type, n = 0, arrays of other lengths, integers that are no permutation; lack of memory.
    pub fn new(
        phases: &'a [T::Real],
        vectors: &'a [T],
        permutation: &'a [i64],
        batch: usize,
        n: usize,
    ) -> Result<Self> {
        if T::PARTS == 1 {
            return Err(Error::value("vectors", "must be complex"));
        }
        if n == 0 {
            return Err(Error::shape("permutation", "at least one element", 0));
        }
        check_len("permutation", permutation.len(), &[batch, n])?;
        check_len("phases", phases.len(), &[batch, 3, n])?;
        check_len("vectors", vectors.len(), &[batch, 2, n])?;
        let places = checked(permutation, n)?;
        let mut numbers = Buffer::zeroed(size("vectors", &[batch, 5, n, 2])?)?;
        let mut lengths = Buffer::zeroed(work(&[batch, 2]))?;
        if batch > 0 {
            let mut room = Buffer::zeroed(work(&[6, n]))?;
            for (own, phases) in numbers.chunks_exact_mut(10 * n).zip(phases.chunks_exact(3 * n)) {
                turned(phases, n, &mut room, &mut own[..6 * n]);
            }
        }
        let reflections =
            numbers.chunks_exact_mut(10 * n).flat_map(|own| own[6 * n..].chunks_exact_mut(2 * n));
        for ((w, v), length) in reflections.zip(vectors.chunks_exact(n)).zip(lengths.iter_mut()) {
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
        // an empty stack needs no plan
        let plan = plans::plan(if batch > 0 { n } else { 1 })?;
        Ok(FourierProduct { phases, vectors, permutation, places, plan, numbers, lengths, batch, n })
    }

    /// A view of [`ARGUMENTS`].
    pub(crate) fn of(given: &[Given<'a, T>]) -> Result<Self> {
        let [phases, vectors, permutation] = all(given)?;
        let own = phases.real().ok_or_else(|| Error::value("phases", "must be given"))?;
        let [_, three, _] = phases.sizes("phases")?;
        check_len("phases", three, &[3])?;
        let [_, two, _] = vectors.sizes("vectors")?;
        check_len("vectors", two, &[2])?;
        let [batch, n] = permutation.sizes("permutation")?;
        Self::new(own, vectors.own("vectors")?, permutation.integers("permutation")?, batch, n)
    }
}

/// e^{i phases}, as pairs, those of D2 divided by n; `room` for sines and cosines.
fn turned<R: Real>(phases: &[R], n: usize, room: &mut [R], pairs: &mut [R]) {
    let (sin, cos) = room.split_at_mut(phases.len());
    assert!(sin.len() == phases.len() && cos.len() == phases.len(), "a sine and a cosine for each");
    let angles =
        Angles { x: phases.as_ptr(), sin: sin.as_mut_ptr(), cos: cos.as_mut_ptr(), count: phases.len() };
    // SAFETY: three arrays of as many numbers.
    unsafe { angles.call() };
    let (one, share) = (R::of(1.0), R::of(1.0 / n as f64));
    let diagonals = pairs.chunks_exact_mut(2 * n).zip(cos.chunks_exact(n).zip(sin.chunks_exact(n)));
    for ((pairs, (cos, sin)), by) in diagonals.zip([one, share, one]) {
        for (pair, (cos, sin)) in pairs.chunks_exact_mut(2).zip(cos.iter().zip(sin)) {
            pair.copy_from_slice(&[by * *cos, by * *sin]);
        }
    }
}

/// The permutations as indices, if each contains each of 0..n once.
fn checked(permutation: &[i64], n: usize) -> Result<Buffer<usize>> {
    let mut places = Buffer::zeroed(permutation.len())?;
    // the last operator, counted from 1, that has used this index
    let mut seen = Buffer::zeroed(if permutation.is_empty() { 0 } else { n })?;
    let stack = permutation.chunks_exact(n.max(1)).zip(places.chunks_exact_mut(n.max(1)));
    for (own, (permutation, places)) in (1_usize..).zip(stack) {
        for (&i, place) in permutation.iter().zip(places) {
            let free = usize::try_from(i).ok().filter(|&i| i < n && seen[i] < own);
            let Some(free) = free else {
                return Err(Error::value(
                    "permutation",
                    format!("must hold each of 0..{} once, got {i}", n - 1),
                ));
            };
            (seen[free], *place) = (own, free);
        }
    }
    Ok(places)
}

/// Refuses vectors without a direction, as `Householder` does, and integers that are not a permutation. NaN
/// passes.
pub(crate) fn check_values<T: Scalar>(given: &[Given<'_, T>]) -> Result<()> {
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
        let [_, n] = permutation.sizes("permutation")?;
        checked(own, n)?;
    }
    Ok(())
}

/// As for every operator by transforms.
pub(crate) fn route(shapes: &[&[usize]], workload: Workload) -> Route {
    let [n] = tail(shapes[2]);
    plans::route(n, workload)
}

operator! {
    FourierProduct, |own, i| [own.batch, own.n, own.n],
    match i {
        0 => Array::Real(own.phases),
        1 => Array::Own(own.vectors),
        _ => Array::Integers(own.permutation),
    }
}
