//! Activations of whole arrays, and their gradients.

use super::{Activation, Columns, Kind, Law, Source};
use crate::error::{Error, Result};
use crate::kernels::lanes;
use crate::parallel::{Member, Shared, run, worth};
use crate::scalar::{Real, Scalar, parts, parts_mut};
use crate::scratch::{Region, Scratch, most};
use crate::sizes::{check_len, work};
use num_traits::Zero;
use std::ops::Range;

/// out = phi(z) for `rows` rows of n elements.
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
    let law = Law::new::<T>(activation, n, bias)?;
    let (z, out) = (Shared(parts(z).as_ptr().cast_mut()), Shared(parts_mut(out).as_mut_ptr()));
    run(worth(most(threads), work(&[8, rows, law.width])), |member| {
        // SAFETY: both arrays have `rows` rows of `width` numbers; members take different rows.
        unsafe { law.value(z.at(0), out.at(0), member.share(rows, 1), 0..law.width) }
    });
    Ok(())
}

/// z_bar = phi'(z)^H ct, and the gradient of the activation's own bias (summed over the rows).
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
    let law = Law::new::<T>(activation, n, bias)?;
    let sums = Scratch::new(|arena| -> Region<T::Real> {
        arena.take(&[if bias_bar.is_some() { law.width } else { 0 }])
    })?;
    let (y, g) = (Shared(parts(z).as_ptr().cast_mut()), Shared(parts(ct).as_ptr().cast_mut()));
    let out = Shared(parts_mut(z_bar).as_mut_ptr());
    run(worth(most(threads), work(&[8, rows, law.width])), |member| {
        // SAFETY: all arrays have `rows` rows of `width` numbers; members take different rows, then different columns.
        unsafe {
            law.pull(y.at(0), Source::Argument, g.at(0), out.at(0), member.share(rows, 1), 0..law.width);
            if !sums.is_empty() {
                member.barrier();
                let columns =
                    Columns { bar: out.at(0), rows, width: law.width, sums: sums.ptr(), add: false };
                columns.along(y.at(0), law.kind, law.bias_columns(member));
            }
        }
    });
    if let Some(bar) = bias_bar {
        // SAFETY: the columns of all members make up the sums.
        let sums = unsafe { std::slice::from_raw_parts(sums.ptr(), sums.len()) };
        Columns::units(law.kind, sums, bar);
    }
    Ok(())
}

impl<R: Real> Law<R> {
    /// This member's part of the columns of [`Columns::along`].
    pub fn bias_columns(&self, member: &Member<'_>) -> Range<usize> {
        let halves = if self.kind == Kind::ModreluRealrep { 2 } else { 1 };
        member.share(self.width / halves, lanes::<R>())
    }
}
