//! The choice between one matrix per lane, whole matrices per member, and one matrix on all members.

use super::group::{self, Group};
use super::single::{self, Shared as Matrices, Single};
use super::{Exponential, Targets, series};
use crate::error::Result;
use crate::kernels::lanes;
use crate::parallel::{self, Member, Shared};
use crate::scalar::Scalar;
use crate::scratch::{Arena, Scratch, most};
use crate::sizes;

/// Largest n for one matrix per lane.
const LANES_MOST: usize = 32;
/// Products n^3 of a forward and of a gradient.
const CUBES: [usize; 2] = [5, 18];

/// Whether a batch is computed with one matrix per lane: empty lanes cost as much as full ones.
fn by_lanes<T: Scalar>(batch: usize, n: usize) -> bool {
    n <= LANES_MOST && batch.saturating_mul(2) > lanes::<T::Real>()
}

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
    let work = sizes::work(&[cubes, n, n, n, T::PARTS, T::PARTS]);
    let mut threads = parallel::worth(most(threads), work.saturating_mul(batch));
    if by_lanes::<T>(batch, n) {
        let width = lanes::<T::Real>();
        let room = Scratch::new(|arena| arena.regions(threads, &[group::scratch::<T>(n)]))?;
        parallel::run(threads, &|member| {
            let own = room.of(member.id).ptr();
            for g in member.share(batch.div_ceil(width), 1) {
                let (first, count) = (g * width, (batch - g * width).min(width));
                // SAFETY: the view has these matrices, and each member its own memory.
                group(&mut unsafe { Group::new(view, (first, count), own) }, first);
            }
        });
        return Ok(());
    }
    let apart = batch >= threads;
    if !apart {
        // a barrier or two for each product pay from some 10 us
        threads = parallel::worth(threads, work / cubes / 2);
    }
    let own = |arena: &mut Arena| single::own::<T>(arena, n);
    let shared = |arena: &mut Arena| Matrices::<T>::carve(arena, n);
    let room = Scratch::new(|arena| {
        let spaces = if apart { threads } else { 1 };
        (arena.frames(spaces, shared), arena.frames(threads, own))
    })?;
    parallel::run(threads, &|member| {
        let (spaces, owns) = *room;
        let own = own(&mut owns.of(member.id).arena());
        let one = |member: &Member<'_>, b: usize, space: usize| {
            let shared = shared(&mut spaces.of(space).arena());
            // SAFETY: a space is used by the members of one matrix, which run the same calls.
            single(&mut unsafe { Single::new(member, view, b, shared, own) }, b);
        };
        if apart {
            Member::alone(|solo| member.share(batch, 1).for_each(|b| one(solo, b, member.id)));
        } else {
            (0..batch).for_each(|b| one(member, b, 0));
        }
    });
    Ok(())
}
