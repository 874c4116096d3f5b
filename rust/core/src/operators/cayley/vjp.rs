//! Gradients from W and W_bar alone; for the formulas see `single`.

use super::forward::{by_lanes, work};
use super::single::{self, BackwardOwn};
use super::{Last, group, triangle};
use crate::error::{Error, Result};
use crate::kernels::lanes;
use crate::parallel::{self, Member, Shared};
use crate::scalar::Scalar;
use crate::scratch::{Arena, Frame, Scratch, most};
use crate::sizes::{check_len, triangles};
use isometry_kernels::cayley::Targets;

/// Arrays of the requested gradients.
#[derive(Debug, Default)]
pub struct Gradients<'a, T: Scalar> {
    /// (batch, n (n - 1) / 2)
    pub upper: Option<&'a mut [T]>,
    /// (batch, n), complex types only.
    pub diagonal: Option<&'a mut [T::Real]>,
    /// (batch, n), complex types only.
    pub phases: Option<&'a mut [T::Real]>,
}

/// The gradients of the parameters from W (batch, n, n), the result of [`super::Cayley`]'s `matrix`, and its cotangent
/// of the same shape; `last` as given to [`super::Cayley::new`].
pub fn matrix_vjp<T: Scalar>(
    w: &[T],
    last: Last<'_, T::Real>,
    ct: &[T],
    gradients: Gradients<'_, T>,
    batch: usize,
    n: usize,
    threads: usize,
) -> Result<()> {
    check_len("w", w.len(), &[batch, n, n])?;
    check_len("ct", ct.len(), &[batch, n, n])?;
    last.check::<T>(batch, n)?;
    let Gradients { upper, diagonal, phases } = gradients;
    if let Some(x) = &upper {
        check_len("upper_bar", x.len(), &triangles(batch, n))?;
    }
    for (name, x) in [("diagonal_bar", &diagonal), ("phases_bar", &phases)] {
        if let Some(x) = x {
            if T::PARTS == 1 {
                return Err(Error::value(name, "exists for a complex type only, got a real one"));
            }
            check_len(name, x.len(), &[batch, n])?;
        }
    }
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
