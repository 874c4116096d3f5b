//! All matrices of a batch, and all gradients.

use super::group::{self, Group};
use super::single::{self, Shared as Matrices, Single};
use super::{Exponential, Targets, series};
use crate::batch::{Batch, by_lanes};
use crate::error::Result;
use crate::parallel::Shared;
use crate::scalar::Scalar;
use crate::scratch::{Arena, Region};
use crate::sizes::work;

/// Products n^3 of a forward and of a gradient.
const CUBES: [usize; 2] = [5, 15];

/// Writes all W.
pub(super) fn matrices<T: Scalar>(view: &Exponential<'_, T>, out: &mut [T], threads: usize) -> Result<()> {
    let (n, out) = (view.n, Shared(out.as_mut_ptr()));
    let group = |group: &mut Group<T>, first: usize| {
        let x = series::exponential(group);
        // SAFETY: `out` has room for all matrices; groups are disjoint.
        unsafe { group.store(x, out.at(first * n * n)) };
    };
    let single = |single: &mut Single<'_, T>, b: usize| {
        let x = series::exponential(single);
        // SAFETY: `out` has room for all matrices.
        unsafe { single.store(x, out.at(b * n * n)) };
    };
    run(view, CUBES[0], threads, &group, &single)
}

/// The gradients from W (batch, n, n) and its cotangent of the same shape, which were checked.
pub(super) fn gradients<T: Scalar>(
    view: &Exponential<'_, T>,
    w: &[T],
    ct: &[T],
    to: Targets<T>,
    threads: usize,
) -> Result<()> {
    let n = view.n;
    let inputs = |b: usize| (w[b * n * n..].as_ptr(), ct[b * n * n..].as_ptr());
    let group = |group: &mut Group<T>, first: usize| {
        let (w, ct) = inputs(first);
        // SAFETY: the arrays hold the matrices; groups write disjoint targets.
        unsafe {
            group.pull(w, ct);
            let g = series::gradient(group);
            group.pack(g, to.at(first));
        }
    };
    let single = |single: &mut Single<'_, T>, b: usize| {
        let (w, ct) = inputs(b);
        // SAFETY: the arrays hold the matrices; members write disjoint targets.
        unsafe {
            single.pull(w, ct);
            let g = series::gradient(single);
            single.pack(g, to.at(b));
        }
    };
    run(view, CUBES[1], threads, &group, &single)
}

/// Runs one of the two for all matrices: for groups of them, or for each.
fn run<T: Scalar>(
    view: &Exponential<'_, T>,
    cubes: usize,
    threads: usize,
    group: &(dyn Fn(&mut Group<T>, usize) + Sync),
    single: &(dyn Fn(&mut Single<'_, T>, usize) + Sync),
) -> Result<()> {
    let (batch, n) = (view.batch, view.n);
    if batch == 0 || n == 0 {
        return Ok(());
    }
    let each = Batch::new::<T>(batch, work(&[cubes, n, n, n]), 2 * cubes);
    if by_lanes::<T>(batch, n) {
        let own = |arena: &mut Arena| -> Region<T::Real> { arena.take(&[group::scratch::<T>(n)]) };
        return each.in_groups::<T, _>(threads, own, |first, count, own| {
            // SAFETY: the view has these matrices, and each member its own memory.
            group(&mut unsafe { Group::new(view, (first, count), own.ptr()) }, first);
        });
    }
    each.split(threads).run(
        |arena| Matrices::<T>::carve(arena, n),
        |arena| single::own::<T>(arena, n),
        |member, b, shared, own| {
            // SAFETY: all members that compute matrix b make this call, with the same `shared`.
            single(&mut unsafe { Single::new(member, view, b, *shared, *own) }, b);
        },
    )
}
