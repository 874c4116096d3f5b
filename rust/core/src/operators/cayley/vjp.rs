//! Gradients from W and W_bar alone; for the formulas see `single`.

use super::forward::{by_lanes, work};
use super::single::{self, BackwardOwn};
use super::{Cayley, group, triangle};
use crate::argument::Bar;
use crate::error::Result;
use crate::kernels::lanes;
use crate::parallel::{self, Member, Shared};
use crate::scalar::Scalar;
use crate::scratch::{Arena, Frame, Scratch, most};
use isometry_kernels::cayley::Targets;

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
    let threads = parallel::worth(most(threads), work::<T>(batch, n, 2));
    if by_lanes::<T>(batch, n) {
        let width = lanes::<T::Real>();
        let room = Scratch::new(|arena| arena.regions(threads, &[group::scratch::<T>(n)]))?;
        parallel::run(threads, &|member| {
            let scratch = room.of(member.id).ptr();
            for g in member.share(batch.div_ceil(width), 1) {
                let (first, count) = (g * width, (batch - g * width).min(width));
                // SAFETY: sizes were checked above; members write disjoint matrices.
                unsafe {
                    let to = targets(first);
                    group::backward(inputs(first), (last, n), (first, count), to, scratch);
                }
            }
        });
        return Ok(());
    }
    let apart = batch >= threads;
    let own = |arena: &mut Arena| {
        let alone = single::backward_shared::<T>(arena, n, usize::from(apart));
        (BackwardOwn::carve(arena, n), alone)
    };
    let room = Scratch::new(|arena| {
        let shared = single::backward_shared::<T>(arena, n, if apart { 0 } else { threads });
        (shared, arena.frames(threads, own))
    })?;
    parallel::run(threads, &|member| {
        let (shared, owns) = *room;
        let (own, alone) = own(&mut owns.of(member.id).arena());
        // SAFETY: sizes were checked above; members write disjoint matrices or share one.
        let one = |member: &Member<'_>, b: usize, shared: Frame| unsafe {
            single::backward(member, inputs(b), (last, b, n), targets(b), shared, own);
        };
        if apart {
            Member::alone(|solo| member.share(batch, 1).for_each(|b| one(solo, b, alone)));
        } else {
            for b in 0..batch {
                one(member, b, shared);
                member.barrier();
            }
        }
    });
    Ok(())
}
