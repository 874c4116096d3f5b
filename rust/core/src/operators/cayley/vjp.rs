//! Gradients from W and W_bar alone; for the formulas see `single`.

use super::single::{self, BackwardOwn};
use super::{Cayley, group, triangle};
use crate::argument::Bar;
use crate::batch::{Batch, by_lanes};
use crate::error::Result;
use crate::parallel::Shared;
use crate::scalar::Scalar;
use crate::scratch::{Arena, Region};
use crate::sizes::work;
use isometry_kernels::cayley::Targets;

/// Barriers of a matrix that several members compute.
const BARRIERS: usize = 2;

/// From W (batch, n, n) and its cotangent of the same shape, which were checked, the gradients of the parameters.
pub(super) fn matrix_vjp<T: Scalar>(
    view: &Cayley<'_, T>,
    w: &[T],
    ct: &[T],
    bars: &mut [Bar<'_, T>],
    threads: usize,
) -> Result<()> {
    let Cayley { last, batch, n, .. } = *view;
    let mut bars = bars.iter_mut().map(Bar::again);
    let upper = bars.next().and_then(Bar::own);
    let mut real = || bars.next().and_then(Bar::real);
    let (diagonal, _, phases) = (real(), real(), real());
    if batch == 0 || n == 0 {
        return Ok(());
    }
    let upper = upper.map(|x| Shared(x.as_mut_ptr()));
    let diagonal = diagonal.map(|x| Shared(x.as_mut_ptr()));
    let phases = phases.map(|x| Shared(x.as_mut_ptr()));
    let targets = |b: usize| Targets {
        upper: upper.map(|x| x.at(b * triangle::len(n))),
        diagonal: diagonal.map(|x| x.at(b * n)),
        phases: phases.map(|x| x.at(b * n)),
    };
    let inputs = |b: usize| (w[b * n * n..].as_ptr(), ct[b * n * n..].as_ptr());
    let each = Batch::new::<T>(batch, work(&[2, n, n, n]), BARRIERS);
    if by_lanes::<T>(batch, n) {
        let own = |arena: &mut Arena| -> Region<T::Real> { arena.take(&[group::scratch::<T>(n)]) };
        return each.in_groups::<T, _>(threads, own, |first, count, own| {
            // SAFETY: sizes were checked above; groups write disjoint matrices.
            unsafe { group::backward(inputs(first), (last, n), (first, count), targets(first), own.ptr()) };
        });
    }
    let split = each.split(threads);
    split.run(
        |arena| single::backward_shared::<T>(arena, n, split.each()),
        |arena| BackwardOwn::carve(arena, n),
        |member, b, shared, own| {
            // SAFETY: sizes were checked above; matrix b belongs to these members, who share its memory.
            unsafe { single::backward(member, inputs(b), (last, b, n), targets(b), *shared, *own) };
        },
    )
}
