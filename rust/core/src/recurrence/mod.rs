//! h_t = phi(W h_{t-1} + V x_t + b) over time, and backward through it.
//!
//! One driver (`forward.rs`, `backward.rs`) owns time, chunks, threads, lengths, direction and interruption; a
//! [`Step`] owns what is particular to the transition: packed operands, one step forward, one backward, gradients.
//! Each state is summed in an order that depends on the sizes of the problem only, so that results are the same for any
//! number of threads.

mod backward;
mod context;
mod dense;
mod forward;
mod gradients;
mod halves;
mod packed;
mod pages;
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
pub use pages::want_huge_pages;
pub use plan::{Route, plan};
pub use reflections::{ReflectionGradients, Reflections};
pub use sequence::Sequence;

use crate::error::{Result, check_len};
use crate::kernels::balance;
use crate::scalar::Scalar;
use dense::DenseStep;
use reflection_step::ReflectionStep;

/// States (T, B, n) of a recurrence with a dense W (n, n); zeros behind the end of a sequence.
///
/// `cancel` is asked every few milliseconds; when it says yes the call ends with [`crate::Error::Interrupted`].
pub fn forward_dense<T: Scalar>(
    weight: &[T],
    sequence: &Sequence<'_, T>,
    states: &mut [T],
    threads: usize,
    cancel: &(dyn Fn() -> bool + Sync),
) -> Result<()> {
    sequence.check()?;
    check_len("weight", weight.len(), sequence.n * sequence.n)?;
    let step = DenseStep::new(sequence, weight, false, false, None);
    forward::forward(&step, sequence, states, threads, cancel)
}

/// The gradients of [`forward_dense`] for the cotangent ct (T, B, n) of its states; what is None is not computed.
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
    check_len("weight", weight.len(), sequence.n * sequence.n)?;
    weight_bar.as_ref().map_or(Ok(()), |bar| check_len("weight_bar", bar.len(), weight.len()))?;
    let step = DenseStep::new(sequence, weight, true, backward::recomputes(sequence), weight_bar);
    backward::backward(&step, sequence, states, ct, gradients, threads, cancel)
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
    let balanced = balance(transition.vectors, 1, sequence.n, transition.m);
    let vectors = balanced.as_ref().map_or(transition.vectors, |balanced| &balanced.vectors);
    let own = Reflections { vectors, ..*transition };
    let step = ReflectionStep::new(&own, sequence, None);
    forward::forward(&step, sequence, states, threads, cancel)
}

/// The gradients of [`forward_reflections`]; what is None is not computed.
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
    let balanced = balance(transition.vectors, 1, sequence.n, transition.m);
    let vectors = balanced.as_ref().map_or(transition.vectors, |balanced| &balanced.vectors);
    let own = Reflections { vectors, ..*transition };
    let ReflectionGradients { vectors: mut bar, sign, phases } = bars;
    let step_bars = ReflectionGradients { vectors: bar.as_deref_mut(), sign, phases };
    let step = ReflectionStep::new(&own, sequence, Some(step_bars));
    backward::backward(&step, sequence, states, ct, gradients, threads, cancel)?;
    drop(step);
    if let (Some(balanced), Some(bar)) = (&balanced, bar) {
        balanced.pull(bar);
    }
    Ok(())
}
