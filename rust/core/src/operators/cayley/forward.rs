//! Which kernel forms the matrices of a batch, and how the members share them.

use super::{Cayley, group, repair, single};
use crate::kernels::{Buffer, lanes};
use crate::parallel::{self, Member, Shared};
use crate::scalar::Scalar;
use isometry_kernels::cayley::Limits;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Largest n with one matrix per lane.
pub(super) const LANES_MOST: usize = 32;

/// Whether a batch is worked one matrix per lane: empty lanes cost as much as full ones.
pub(super) fn by_lanes<T: Scalar>(batch: usize, n: usize) -> bool {
    n <= LANES_MOST && batch * 2 > lanes::<T::Real>()
}

/// Multiply-adds of a batch, times `cubes` n^3, as real ones.
pub(super) fn work<T: Scalar>(batch: usize, n: usize, cubes: usize) -> usize {
    batch.saturating_mul(cubes * n * n * n).saturating_mul(T::PARTS * T::PARTS)
}

/// Writes all W; `out` has the right size.
pub(super) fn matrices<T: Scalar>(view: &Cayley<'_, T>, out: &mut [T], threads: usize) {
    let (batch, n) = (view.batch, view.n);
    if batch == 0 || n == 0 {
        return;
    }
    let out = Shared(out.as_mut_ptr());
    let limits = Limits::own::<T>(n);
    let mut threads = parallel::worth(threads, work::<T>(batch, n, 1));
    if batch < threads {
        // one matrix on several members: a dozen barriers need some 100 us of work between them
        threads = parallel::worth(threads, work::<T>(1, n, 1) / 25);
    }
    if by_lanes::<T>(batch, n) {
        let width = lanes::<T::Real>();
        parallel::run(threads, &|member| {
            let scratch = Buffer::<T::Real>::scratch(group::scratch::<T>(n));
            for g in member.share(batch.div_ceil(width), 1) {
                let (first, count) = (g * width, (batch - g * width).min(width));
                let to = out.at(first * n * n);
                // SAFETY: the members write different matrices of the exclusively borrowed output.
                unsafe {
                    let failed = group::forward(view, (first, count), to, scratch.ptr(), limits);
                    if failed != 0 {
                        let which: Vec<usize> =
                            (0..count).filter(|b| failed >> b & 1 == 1).map(|b| first + b).collect();
                        repair::in_lanes(view, &which, out);
                    }
                }
            }
        });
    } else if batch >= threads {
        parallel::run(threads, &|member| {
            let shared = Buffer::<T>::scratch(single::forward_shared::<T>(n));
            let scratch = Buffer::<T::Real>::scratch(single::forward_scratch::<T>(n));
            Member::alone(|solo| {
                for b in member.share(batch, 1) {
                    let to = out.at(b * n * n);
                    // SAFETY: as above.
                    unsafe {
                        if !single::forward(solo, view, b, to, shared.ptr(), scratch.ptr(), limits) {
                            repair::alone(view, b, to, 1);
                        }
                    }
                }
            });
        });
    } else {
        for b in 0..batch {
            let to = Shared(out.at(b * n * n));
            // SAFETY: as above.
            unsafe {
                if !together(view, b, to, threads, limits) {
                    repair::alone(view, b, to.at(0), threads);
                }
            }
        }
    }
}

/// One matrix on all members; false if it fails the check.
///
/// # Safety
/// n n elements exist at `to`.
pub(super) unsafe fn together<T: Scalar>(
    view: &Cayley<'_, T>,
    b: usize,
    to: Shared<T>,
    threads: usize,
    limits: Limits,
) -> bool {
    let n = view.n;
    let memory = Buffer::<T>::scratch(single::forward_shared::<T>(n));
    let shared = Shared(memory.ptr());
    let good = AtomicBool::new(false);
    parallel::run(threads, &|member| {
        let scratch = Buffer::<T::Real>::scratch(single::forward_scratch::<T>(n));
        // SAFETY: passed on from the caller; one scratch per member.
        let pass = unsafe { single::forward(member, view, b, to.at(0), shared.at(0), scratch.ptr(), limits) };
        if member.id == 0 {
            good.store(pass, Relaxed);
        }
    });
    good.into_inner()
}
