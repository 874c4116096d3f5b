//! All W of a batch; what elimination without pivoting leaves inaccurate is repaired.

use super::single::{self, ForwardShared};
use super::{Cayley, group, repair};
use crate::batch::{Batch, by_lanes};
use crate::error::Result;
use crate::kernels::Buffer;
use crate::parallel::Shared;
use crate::scalar::Scalar;
use crate::scratch::{Arena, Region};
use crate::sizes::work;
use isometry_kernels::cayley::Limits;

/// Barriers of one matrix: a dozen, after stages of different lengths.
const BARRIERS: usize = 25;

/// `count` matrices to compute.
pub(super) fn batch_of<T: Scalar>(count: usize, n: usize) -> Batch {
    Batch::new::<T>(count, work(&[n, n, n]), BARRIERS)
}

/// Writes all W.
///
/// # Safety
/// `out` has room for all matrices of the view and is not accessed by others.
pub(super) unsafe fn matrices<T: Scalar>(view: &Cayley<'_, T>, out: Shared<T>, threads: usize) -> Result<()> {
    let (batch, n) = (view.batch, view.n);
    if batch == 0 || n == 0 {
        return Ok(());
    }
    let (each, limits) = (batch_of::<T>(batch, n), Limits::own::<T>(n));
    let mut failed = Buffer::<u32>::zeroed(batch)?;
    let verdict = Shared(failed.as_mut_ptr());
    let grouped = by_lanes::<T>(batch, n);
    if grouped {
        let own = |arena: &mut Arena| -> Region<T::Real> { arena.take(&[group::scratch::<T>(n)]) };
        each.in_groups::<T, _>(threads, own, |first, count, own| {
            // SAFETY: groups write disjoint matrices of the output and disjoint verdicts.
            unsafe {
                let bits = group::forward(view, (first, count), out.at(first * n * n), own.ptr(), limits);
                (0..count).for_each(|lane| *verdict.at(first + lane) = bits >> lane & 1);
            }
        })?;
    } else {
        each.split(threads).run(
            |arena| ForwardShared::carve(arena, n),
            |arena| arena.frame(|arena| single::forward_own::<T>(arena, n)),
            |member, b, shared, own| {
                // SAFETY: matrix b belongs to these members, who share its memory.
                let good = unsafe { single::forward(member, view, b, out.at(b * n * n), *shared, *own, limits) };
                if member.id == 0 {
                    // SAFETY: one member writes the verdict of a matrix.
                    unsafe { *verdict.at(b) = u32::from(!good) };
                }
            },
        )?;
    }
    let bad = failed.iter().filter(|&&failed| failed == 1).count();
    if bad == 0 {
        return Ok(());
    }
    let mut which = Buffer::zeroed(bad)?;
    let places = (0..batch).filter(|&b| failed[b] == 1);
    which.iter_mut().zip(places).for_each(|(place, b)| *place = b);
    let repair = if grouped { repair::in_groups } else { repair::alone };
    // SAFETY: `out` has room for all matrices.
    unsafe { repair(view, &which, out, threads) }
}
