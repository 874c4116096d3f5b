//! Activations of whole arrays, and their gradients.

use super::{Activation, Kind, Law, Source};
use crate::error::{Error, Result, check_len};
use crate::kernels::{Buffer, lanes};
use crate::parallel::{Member, Shared, run, worth};
use crate::scalar::{Real, Scalar, parts, parts_mut};
use isometry_kernels::activation::{Along, Columns, units};
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
    check_len("z", z.len(), rows * n)?;
    check_len("out", out.len(), rows * n)?;
    let law = Law::new::<T>(activation, n, bias);
    let (z, out) = (Shared(parts(z).as_ptr().cast_mut()), Shared(parts_mut(out).as_mut_ptr()));
    run(worth(threads, 8 * rows * law.width), |member| {
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
    check_len("z", z.len(), rows * n)?;
    check_len("ct", ct.len(), rows * n)?;
    check_len("z_bar", z_bar.len(), rows * n)?;
    let law = Law::new::<T>(activation, n, bias);
    if let Some(bar) = &bias_bar {
        if bias.is_none() {
            return Err(Error::shape("bias_bar", "none", format!("{} elements", bar.len())));
        }
        check_len("bias_bar", bar.len(), activation.bias_units(n))?;
    }
    let sums = Buffer::zeroed(if bias_bar.is_some() { law.width } else { 0 });
    let (y, g) = (Shared(parts(z).as_ptr().cast_mut()), Shared(parts(ct).as_ptr().cast_mut()));
    let out = Shared(parts_mut(z_bar).as_mut_ptr());
    run(worth(threads, 8 * rows * law.width), |member| {
        // SAFETY: all arrays have `rows` rows of `width` numbers; members take different rows, then different columns.
        unsafe {
            law.pull(y.at(0), Source::Argument, g.at(0), out.at(0), member.share(rows, 1), 0..law.width);
            if !sums.is_empty() {
                let along = Along { phi: law.phi(), y: y.at(0), from: Source::Argument };
                Columns {
                    bar: g.at(0),
                    along: Some(along),
                    rows,
                    width: law.width,
                    sums: sums.ptr(),
                    add: false,
                    columns: law.bias_columns(member),
                }
                .call();
            }
        }
    });
    if let Some(bar) = bias_bar {
        units(law.kind, &sums, bar);
    }
    Ok(())
}

impl<R: Real> Law<R> {
    /// This member's part of the columns of the sums of its bias gradient.
    pub fn bias_columns(&self, member: &Member<'_>) -> Range<usize> {
        let halves = if self.kind == Kind::ModreluRealrep { 2 } else { 1 };
        member.share(self.width / halves, lanes::<R>())
    }
}
