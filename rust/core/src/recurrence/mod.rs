//! h_t = phi(W h_{t-1} + V x_t + b) over time, and backward through it.
//!
//! One driver (`forward.rs`, `backward.rs`) handles time, chunks, threads, lengths, direction and interruption; a
//! [`Step`] is specific to the transition: packed operands, one step forward, one backward, gradients. The order of
//! summation of each state depends on the problem sizes only, so that results are the same for any number of threads.

mod backward;
mod context;
mod dense;
mod forward;
mod gradients;
mod halves;
mod packed;
mod pages;
mod pass;
mod plan;
mod reflection_step;
mod reflections;
mod sequence;
mod step;
mod team;
#[cfg(test)]
mod tests;
mod work;

pub use gradients::Gradients;
pub use plan::{Route, plan};
pub use reflections::{ReflectionGradients, Reflections};
pub use sequence::Sequence;

use crate::error::Result;
use crate::kernels::balance;
use crate::parallel::Shared;
use crate::scalar::Scalar;
use crate::scratch::Scratch;
use crate::sizes::check_len;
use context::Setting;
use dense::DenseStep;
use reflection_step::{Bars, ReflectionStep};

/// States (T, B, n) of a recurrence with a dense W (n, n); zeros past the end of a sequence.
///
/// `cancel` is called every few milliseconds; once it returns true the call ends with [`crate::Error::Interrupted`].
pub fn forward_dense<T: Scalar>(
    weight: &[T],
    sequence: &Sequence<'_, T>,
    states: &mut [T],
    threads: usize,
    cancel: &(dyn Fn() -> bool + Sync),
) -> Result<()> {
    sequence.check()?;
    check_len("weight", weight.len(), &[sequence.n, sequence.n])?;
    sequence.check_states("states", states)?;
    let setting = Setting::new(sequence)?;
    let room = Scratch::new(|arena| {
        let step = DenseStep::carve(arena, sequence, weight, false, false, None);
        let room = forward::Room::carve(arena, &setting, &step, threads);
        (step, room)
    })?;
    forward::forward(&room.0, &room.1, &setting, states, cancel)
}

/// The gradients of [`forward_dense`] for the cotangent ct (T, B, n) of its states; None fields are not computed.
pub fn backward_dense<T: Scalar>(
    weight: &[T],
    sequence: &Sequence<'_, T>,
    states: &[T],
    ct: &[T],
    weight_bar: Option<&mut [T]>,
    gradients: Gradients<'_, T>,
    threads: usize,
    cancel: &(dyn Fn() -> bool + Sync),
) -> Result<()> {
    sequence.check()?;
    check_len("weight", weight.len(), &[sequence.n, sequence.n])?;
    weight_bar.as_ref().map_or(Ok(()), |bar| check_len("weight_bar", bar.len(), &[weight.len()]))?;
    sequence.check_states("states", states)?;
    sequence.check_states("ct", ct)?;
    gradients.check(sequence)?;
    let wants = gradients.wants();
    let setting = Setting::new(sequence)?;
    let bar = weight_bar.map(|bar| Shared(bar.as_mut_ptr()));
    let room = Scratch::new(|arena| {
        let step = DenseStep::carve(arena, sequence, weight, true, setting.recomputes(), bar);
        let room = work::Room::carve(arena, &setting, &step, wants, threads);
        (step, room)
    })?;
    // SAFETY: the memory was carved for this call.
    unsafe { backward::backward(&room.0, &room.1, &setting, (states, ct), gradients, cancel) }
}

/// States (T, B, n) of a recurrence with a product of reflections, applied factor by factor.
pub fn forward_reflections<T: Scalar>(
    transition: &Reflections<'_, T>,
    sequence: &Sequence<'_, T>,
    states: &mut [T],
    threads: usize,
    cancel: &(dyn Fn() -> bool + Sync),
) -> Result<()> {
    sequence.check()?;
    transition.check(sequence.n)?;
    sequence.check_states("states", states)?;
    let balanced = balance(transition.vectors, 1, sequence.n, transition.m)?;
    let vectors = balanced.as_ref().map_or(transition.vectors, |balanced| &balanced.vectors);
    let own = Reflections { vectors, ..*transition };
    let setting = Setting::new(sequence)?;
    let room = Scratch::new(|arena| {
        let step = ReflectionStep::carve(arena, &own, sequence, None);
        let room = forward::Room::carve(arena, &setting, &step, threads);
        (step, room)
    })?;
    // SAFETY: the memory was carved for this call.
    unsafe { room.0.fill() };
    forward::forward(&room.0, &room.1, &setting, states, cancel)
}

/// The gradients of [`forward_reflections`]; None fields are not computed.
pub fn backward_reflections<T: Scalar>(
    transition: &Reflections<'_, T>,
    sequence: &Sequence<'_, T>,
    states: &[T],
    ct: &[T],
    bars: ReflectionGradients<'_, T>,
    gradients: Gradients<'_, T>,
    threads: usize,
    cancel: &(dyn Fn() -> bool + Sync),
) -> Result<()> {
    sequence.check()?;
    transition.check(sequence.n)?;
    bars.check(transition)?;
    sequence.check_states("states", states)?;
    sequence.check_states("ct", ct)?;
    gradients.check(sequence)?;
    let wants = gradients.wants();
    let balanced = balance(transition.vectors, 1, sequence.n, transition.m)?;
    let vectors = balanced.as_ref().map_or(transition.vectors, |balanced| &balanced.vectors);
    let own = Reflections { vectors, ..*transition };
    let setting = Setting::new(sequence)?;
    let ReflectionGradients { vectors: mut bar, sign, phases } = bars;
    let bars = Bars::new(ReflectionGradients { vectors: bar.as_deref_mut(), sign, phases });
    let room = Scratch::new(|arena| {
        let step = ReflectionStep::carve(arena, &own, sequence, Some(bars));
        let room = work::Room::carve(arena, &setting, &step, wants, threads);
        (step, room)
    })?;
    // SAFETY: the memory was carved for this call.
    unsafe {
        room.0.fill();
        backward::backward(&room.0, &room.1, &setting, (states, ct), gradients, cancel)?;
    }
    if let (Some(balanced), Some(bar)) = (&balanced, bar) {
        balanced.pull(bar);
    }
    Ok(())
}
