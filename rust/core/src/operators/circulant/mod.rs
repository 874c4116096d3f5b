//! The unitary circulant matrix of n elements (complex types only)
//!
//! ```text
//! W = F^H D F,     D = diag(e^{i phases}),     (F x)_k = n^{-1/2} sum_j x_j e^{-2 pi i j k / n}
//! ```
//!
//! With g = F y_bar: phases_bar = sum over rows of Im(g conj(D F x)), x_bar = W^H y_bar. 10 n log2 n + O(n) flops per row.

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
use std::sync::Arc;

/// The arguments.
pub const ARGUMENTS: &[Argument] = &[argument!("phases", "n", angles)];

/// A stack of operators.
pub struct Circulant<'a, T: Scalar> {
    phases: &'a [T::Real],
    plan: Arc<Plan<T::Real>>,
    /// D / n of every operator, as pairs.
    diagonals: Buffer<T::Real>,
    batch: usize,
    n: usize,
}

impl<'a, T: Scalar> Circulant<'a, T> {
    /// A view of phases (batch, n), n >= 1.
    ///
    /// ```
    /// use isometry_core::operators::circulant::Circulant;
    /// use isometry_core::scalar::c64;
    /// use isometry_core::{Budget, Cpu, Side};
    ///
    /// // D = diag(1, -1): W exchanges the two coordinates
    /// let w = Circulant::<c64>::new(&[0.0, std::f64::consts::PI], 1, 2)?;
    /// let (x, mut y) = ([c64::new(1.0, 2.0), c64::new(3.0, 4.0)], [c64::default(); 2]);
    /// w.apply(&x, 1, Side::Forward, &mut y, None, &Budget::of(1))?;
    /// assert!((y[0] - x[1]).norm() < 1e-14 && (y[1] - x[0]).norm() < 1e-14);
    /// # Ok::<(), isometry_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Another number of phases, n = 0, a real type, or lack of memory.
    pub fn new(phases: &'a [T::Real], batch: usize, n: usize) -> Result<Self> {
        check_len("phases", phases.len(), &[batch, n])?;
        if T::PARTS == 1 {
            return Err(Error::value("phases", "need a complex type, got a real one"));
        }
        if n == 0 {
            return Err(Error::shape("phases", "at least one element", 0));
        }
        size("out", &[batch, n, n])?;
        let mut room = Buffer::zeroed(size("phases", &[2, batch, n])?)?;
        let (sin, cos) = room.split_at_mut(phases.len());
        let (x, count) = (phases.as_ptr(), phases.len());
        // SAFETY: three arrays of as many numbers.
        unsafe { Angles { x, sin: sin.as_mut_ptr(), cos: cos.as_mut_ptr(), count }.call() };
        let (mut diagonals, share) = (Buffer::zeroed(work(&[2, count]))?, T::Real::of(1.0 / n as f64));
        for (pair, (cos, sin)) in diagonals.chunks_exact_mut(2).zip(cos.iter().zip(sin)) {
            pair.copy_from_slice(&[share * *cos, share * *sin]);
        }
        // an empty stack needs no plan
        let plan = plans::plan(if batch > 0 { n } else { 1 })?;
        Ok(Circulant { phases, plan, diagonals, batch, n })
    }

    /// A view of [`ARGUMENTS`].
    pub(crate) fn of(given: &[Given<'a, T>]) -> Result<Self> {
        let [phases] = all(given)?;
        let [batch, n] = phases.sizes("phases")?;
        Self::new(phases.real().ok_or(Error::value("phases", "must be given, real"))?, batch, n)
    }
}

/// As for every operator by transforms.
pub(crate) fn route(shapes: &[&[usize]], workload: Workload) -> Route {
    let [n] = tail(shapes[0]);
    plans::route(n, workload)
}

operator! {
    Circulant, |own, _i| [own.batch, own.n, own.n],
    Array::Real(own.phases)
}
