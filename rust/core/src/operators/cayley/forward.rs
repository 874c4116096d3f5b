//! All W of a batch; matrices that elimination without pivoting leaves inaccurate are recomputed.

use super::single::{self, ForwardShared, batch_of};
use super::{Cayley, group, repair};
use crate::batch::by_lanes;
use crate::error::{Error, Result};
use crate::parallel::Shared;
use crate::scalar::Scalar;
use crate::scratch::{Arena, Region};
use isometry_kernels::cayley::Limits;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// Writes all W.
///
/// # Safety
/// `out` has room for all matrices of the view and is not accessed by others.
pub(super) unsafe fn matrices<T: Scalar>(view: &Cayley<'_, T>, out: Shared<T>, threads: usize) -> Result<()> {
    let (batch, n) = (view.batch, view.n);
    if batch == 0 || n == 0 {
        return Ok(());
    }
    let (each, limits, failed) = (batch_of::<T>(batch, n), Limits::own::<T>(n), Failed::default());
    let grouped = by_lanes::<T>(batch, n);
    if grouped {
        let own = |arena: &mut Arena| -> Region<T::Real> { arena.take(&[group::scratch::<T>(n)]) };
        each.in_groups::<T, _>(threads, own, |first, count, own| {
            // SAFETY: groups write disjoint matrices of the output.
            let bits =
                unsafe { group::forward(view, (first, count), out.at(first * n * n), own.ptr(), limits) };
            (0..count).filter(|lane| bits >> lane & 1 == 1).for_each(|lane| failed.add(first + lane));
        })?;
    } else {
        each.split(threads).run(
            |arena| ForwardShared::carve(arena, n),
            |arena| arena.frame(|arena| single::forward_own::<T>(arena, n)),
            |member, b, shared, own| {
                // SAFETY: matrix b belongs to these members, who share its memory.
                let good =
                    unsafe { single::forward(member, view, b, out.at(b * n * n), *shared, *own, limits) };
                if !good && member.id == 0 {
                    failed.add(b);
                }
            },
        )?;
    }
    let which = failed.sorted()?;
    if which.is_empty() {
        return Ok(());
    }
    let repair = if grouped { repair::in_groups } else { repair::alone };
    // SAFETY: `out` has room for all matrices.
    unsafe { repair(view, &which, out, threads) }
}

/// Recomputes the matrices that elimination left inaccurate; allocates only if there are some.
#[derive(Default)]
struct Failed {
    which: Mutex<Vec<usize>>,
    full: AtomicBool,
}

impl Failed {
    fn add(&self, b: usize) {
        let mut which = self.which.lock().unwrap_or_else(PoisonError::into_inner);
        if which.try_reserve(1).is_ok() {
            which.push(b);
        } else {
            self.full.store(true, Relaxed);
        }
    }

    fn sorted(self) -> Result<Vec<usize>> {
        let mut which = self.which.into_inner().unwrap_or_else(PoisonError::into_inner);
        if self.full.into_inner() {
            return Err(Error::OutOfMemory { bytes: (which.len() + 1) * size_of::<usize>() });
        }
        which.sort_unstable();
        Ok(which)
    }
}
