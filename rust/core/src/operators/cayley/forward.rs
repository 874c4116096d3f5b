//! The choice of kernel for the matrices of a batch, and the work sharing between members.

use super::single::{self, ForwardShared};
use super::{Cayley, group, repair};
use crate::error::Result;
use crate::kernels::{Buffer, lanes};
use crate::parallel::{self, Member, Shared};
use crate::scalar::Scalar;
use crate::scratch::{Arena, Frames, Scratch, most};
use crate::sizes;
use isometry_kernels::cayley::Limits;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Largest n for one matrix per lane.
pub(super) const LANES_MOST: usize = 32;

/// Whether a batch is computed with one matrix per lane: empty lanes cost as much as full ones.
pub(super) fn by_lanes<T: Scalar>(batch: usize, n: usize) -> bool {
    n <= LANES_MOST && batch.saturating_mul(2) > lanes::<T::Real>()
}

/// Real multiply-adds of a batch at `cubes` n^3 each.
pub(super) fn work<T: Scalar>(batch: usize, n: usize, cubes: usize) -> usize {
    sizes::work(&[batch, cubes, n, n, n, T::PARTS, T::PARTS])
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
    let mut threads = parallel::worth(most(threads), work::<T>(batch, n, 1));
    if batch < threads {
        // one matrix on several members: a dozen barriers pay from some 100 us of work
        threads = parallel::worth(threads, work::<T>(1, n, 1) / 25);
    }
    // SAFETY: `out` has room for all matrices and is not accessed by others.
    unsafe {
        if by_lanes::<T>(batch, n) {
            in_groups(view, out, threads)
        } else if batch >= threads {
            each_alone(view, out, threads)
        } else {
            together(view, out, threads)
        }
    }
}

/// [`matrices`], one matrix per lane.
unsafe fn in_groups<T: Scalar>(view: &Cayley<'_, T>, out: Shared<T>, threads: usize) -> Result<()> {
    let (batch, n, width) = (view.batch, view.n, lanes::<T::Real>());
    let groups = batch.div_ceil(width);
    let room = Scratch::new(|arena| {
        (arena.take::<u32>(&[groups]), arena.regions(threads, &[group::scratch::<T>(n)]))
    })?;
    let limits = Limits::own::<T>(n);
    parallel::run(threads, &|member| {
        let (verdicts, own) = *room;
        let scratch = own.of(member.id).ptr();
        for g in member.share(groups, 1) {
            let (first, count) = (g * width, (batch - g * width).min(width));
            // SAFETY: members write disjoint matrices of the output and disjoint verdicts.
            unsafe {
                let failed = group::forward(view, (first, count), out.at(first * n * n), scratch, limits);
                *verdicts.at(g) = failed;
            }
        }
    });
    // SAFETY: the call above wrote the verdict of every group.
    let verdict = |g: usize| unsafe { *room.0.at(g) };
    if (0..groups).all(|g| verdict(g) == 0) {
        return Ok(());
    }
    let which = all(batch, |b| verdict(b / width) >> (b % width) & 1 == 1)?;
    // SAFETY: `out` has room for all matrices.
    unsafe { repair::in_groups(view, &which, out, threads) }
}

/// [`matrices`], whole matrices distributed over the members.
unsafe fn each_alone<T: Scalar>(view: &Cayley<'_, T>, out: Shared<T>, threads: usize) -> Result<()> {
    let (batch, n) = (view.batch, view.n);
    let shared = |arena: &mut Arena| ForwardShared::carve(arena, n);
    let room = Scratch::new(|arena| {
        let own = arena.frames(threads, |arena| single::forward_own::<T>(arena, n));
        (arena.take::<u32>(&[batch]), arena.frames(threads, shared), own)
    })?;
    let limits = Limits::own::<T>(n);
    parallel::run(threads, &|member| {
        let (verdicts, shares, own) = *room;
        let (shared, own) = (shared(&mut shares.of(member.id).arena()), own.of(member.id));
        Member::alone(|solo| {
            for b in member.share(batch, 1) {
                // SAFETY: members write disjoint matrices of the output and disjoint verdicts.
                unsafe {
                    let good = single::forward(solo, view, b, out.at(b * n * n), shared, own, limits);
                    *verdicts.at(b) = u32::from(!good);
                }
            }
        });
    });
    // SAFETY: the call above wrote the verdict of every matrix.
    let which = all(batch, |b| unsafe { *room.0.at(b) } == 1)?;
    // SAFETY: `out` has room for all matrices.
    unsafe { repair::alone(view, &which, out, threads) }
}

/// The indices for which `failed` is true.
fn all(batch: usize, failed: impl Fn(usize) -> bool) -> Result<Buffer<usize>> {
    let failed = || (0..batch).filter(|&b| failed(b));
    let mut which = Buffer::zeroed(failed().count())?;
    which.iter_mut().zip(failed()).for_each(|(place, b)| *place = b);
    Ok(which)
}

/// [`matrices`], one after another, each on all members.
unsafe fn together<T: Scalar>(view: &Cayley<'_, T>, out: Shared<T>, threads: usize) -> Result<()> {
    let n = view.n;
    let room = Scratch::new(|arena| Team::<T>::carve(arena, n, threads))?;
    for b in 0..view.batch {
        // SAFETY: matrix b lies within `out`.
        unsafe {
            if !room.run(view, b, out.at(b * n * n), Limits::own::<T>(n)) {
                repair::alone(view, &[b], out, threads)?;
            }
        }
    }
    Ok(())
}

/// The members that compute one matrix after another, and their memory.
pub(super) struct Team<T: Scalar> {
    threads: usize,
    shared: ForwardShared<T>,
    own: Frames,
}

impl<T: Scalar> Team<T> {
    /// For n x n matrices.
    pub(super) fn carve(arena: &mut Arena, n: usize, threads: usize) -> Self {
        let own = arena.frames(threads, |arena| single::forward_own::<T>(arena, n));
        Team { threads, shared: ForwardShared::carve(arena, n), own }
    }

    /// Writes W of matrix b; false if it fails the check.
    ///
    /// # Safety
    /// `to` has n n elements, not accessed by others; the memory of the team is alive and not otherwise in use.
    pub(super) unsafe fn run(&self, view: &Cayley<'_, T>, b: usize, to: *mut T, limits: Limits) -> bool {
        let (to, good) = (Shared(to), AtomicBool::new(false));
        parallel::run(self.threads, &|member| {
            let own = self.own.of(member.id);
            // SAFETY: the contract above; each member has its own memory.
            let pass = unsafe { single::forward(member, view, b, to.at(0), self.shared, own, limits) };
            if member.id == 0 {
                good.store(pass, Relaxed);
            }
        });
        good.into_inner()
    }
}
