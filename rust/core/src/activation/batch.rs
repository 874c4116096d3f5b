//! Activations of whole arrays, and their gradients.

use super::{Activation, Nonlinearity, RowActivation, Source};
use crate::error::{Error, Result};
use crate::kernels::lanes;
use crate::parallel::{Member, each, grain, run, worth};
use crate::scalar::{Real, Scalar, parts, parts_mut};
use crate::scratch::{Region, Scratch, most};
use crate::sizes::{check_len, work};
use isometry_kernels::activation::{Along, Columns, units};
use num_traits::Zero;
use std::ops::Range;

/// out = phi(z) for `rows` rows of n elements.
///
/// ```
/// use isometry_core::activation::{Activation, activate};
///
/// let mut h = [0.0; 4];
/// activate(&[3.0, -1.0, 0.5, -2.0], 2, 2, Activation::Relu, None, &mut h, 1)?;
/// assert_eq!(h, [3.0, 0.0, 0.5, 0.0]);
/// # Ok::<(), isometry_core::Error>(())
/// ```
///
/// # Errors
/// An array of another length, a bias that the activation does not have, an odd n for pairs of elements, complex rows for
/// `modrelu_realrep`; lack of memory.
pub fn activate<T: Scalar>(
    z: &[T],
    rows: usize,
    n: usize,
    activation: Activation,
    bias: Option<&[T::Real]>,
    out: &mut [T],
    threads: usize,
) -> Result<()> {
    activation.check::<T>(n, bias)?;
    check_len("z", z.len(), &[rows, n])?;
    check_len("out", out.len(), &[rows, n])?;
    if out.is_empty() {
        return Ok(());
    }
    let phi = RowActivation::new::<T>(activation, n, bias)?;
    let threads = worth(most(threads), work(&[8, rows, phi.width]));
    let part = grain(rows, threads) * phi.width;
    let parts = parts(z).chunks(part).zip(parts_mut(out).chunks_mut(part));
    each(
        threads,
        parts,
        || (),
        |(), _, (z, out)| {
            // SAFETY: input and output are the same number of whole rows of `width` numbers.
            unsafe { phi.value(z.as_ptr(), out.as_mut_ptr(), 0..out.len() / phi.width, 0..phi.width) }
        },
    );
    Ok(())
}

/// z_bar = phi'(z)^H ct, and the gradient of the activation's own bias (summed over the rows).
///
/// ```
/// use isometry_core::activation::{Activation, activate_vjp};
///
/// let mut z_bar = [0.0; 2];
/// activate_vjp(&[3.0, -1.0], 1, 2, Activation::Relu, None, &[5.0, 7.0], &mut z_bar, None, 1)?;
/// assert_eq!(z_bar, [5.0, 0.0]);
/// # Ok::<(), isometry_core::Error>(())
/// ```
///
/// # Errors
/// As for [`activate`]; a gradient of a bias that was not given.
pub fn activate_vjp<T: Scalar>(
    z: &[T],
    rows: usize,
    n: usize,
    activation: Activation,
    bias: Option<&[T::Real]>,
    ct: &[T],
    z_bar: &mut [T],
    bias_bar: Option<&mut [T::Real]>,
    threads: usize,
) -> Result<()> {
    activation.check::<T>(n, bias)?;
    check_len("z", z.len(), &[rows, n])?;
    check_len("ct", ct.len(), &[rows, n])?;
    check_len("z_bar", z_bar.len(), &[rows, n])?;
    if let Some(bar) = &bias_bar {
        if bias.is_none() {
            return Err(Error::shape("bias_bar", "none", format!("{} elements", bar.len())));
        }
        check_len("bias_bar", bar.len(), &[activation.bias_units(n)])?;
    }
    if z.is_empty() {
        bias_bar.into_iter().for_each(|bar| bar.fill(T::Real::zero()));
        return Ok(());
    }
    let phi = RowActivation::new::<T>(activation, n, bias)?;
    let sums = Scratch::new(|arena| -> Region<T::Real> {
        arena.take(&[if bias_bar.is_some() { phi.width } else { 0 }])
    })?;
    let threads = worth(most(threads), work(&[8, rows, phi.width]));
    let part = grain(rows, threads) * phi.width;
    let rows_of = parts(z).chunks(part).zip(parts(ct).chunks(part)).zip(parts_mut(z_bar).chunks_mut(part));
    each(
        threads,
        rows_of,
        || (),
        |(), _, ((z, ct), out)| {
            let (rows, columns) = (0..out.len() / phi.width, 0..phi.width);
            // SAFETY: all arrays are the same number of whole rows of `width` numbers.
            unsafe {
                phi.pull(z.as_ptr(), Source::Argument, ct.as_ptr(), out.as_mut_ptr(), rows, columns);
            }
        },
    );
    if let Some(bar) = bias_bar {
        let (y, ct) = (parts(z), parts(ct));
        run(threads, &|member| {
            let along = Along { phi: phi.kernel(), y: y.as_ptr(), from: Source::Argument };
            let columns = Columns {
                bar: ct.as_ptr(),
                along: Some(along),
                rows,
                width: phi.width,
                sums: sums.ptr(),
                add: false,
                columns: phi.bias_columns(member),
            };
            // SAFETY: both arrays have `rows` rows of `width` numbers, not being written; members take disjoint columns.
            unsafe { columns.call() };
        });
        // SAFETY: the members together have written all columns of the sums.
        let sums = unsafe { std::slice::from_raw_parts(sums.ptr(), sums.len()) };
        units(phi.kind, sums, bar);
    }
    Ok(())
}

impl<R: Real> RowActivation<R> {
    /// This member's columns of the sums of its bias gradient.
    pub fn bias_columns(&self, member: &Member<'_>) -> Range<usize> {
        let halves = if self.kind == Nonlinearity::ModreluRealrep { 2 } else { 1 };
        member.share(self.width / halves, lanes::<R>())
    }
}
