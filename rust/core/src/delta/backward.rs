//! Gradients: the chunks of every sequence and head in reverse, each by [`Pull`]. Threads share pairs of a sequence and a key
//! head, whose value heads follow each other.

use super::Delta;
use super::pull::Arrays;
use super::task::next_workspace;
use super::task_pull::{Room, group};
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::parallel::{Member, Shared, each};
use crate::scalar::Real;
use crate::scratch::{Arena, Scratch};
use crate::sizes::{check_len, work};
use std::sync::atomic::AtomicUsize;

/// Gradients to compute, in the shapes of their arguments; None where one is not wanted.
#[derive(Default)]
pub struct DeltaGradients<'a, R> {
    /// Of q.
    pub q: Option<&'a mut [R]>,
    /// Of k.
    pub k: Option<&'a mut [R]>,
    /// Of v.
    pub v: Option<&'a mut [R]>,
    /// Of beta.
    pub beta: Option<&'a mut [R]>,
    /// Of g.
    pub g: Option<&'a mut [R]>,
    /// Of the initial state.
    pub initial: Option<&'a mut [R]>,
}

/// The gradients of everything from what [`forward`](super::forward) saved, the gradient of o (B, T, HV, V) and that of the states behind
/// the sequences (N, HV, K, V).
///
/// ```
/// use isometry_core::{Budget, delta::{self, Delta, DeltaGradients, Gate}};
///
/// // o = beta (k . q) v, so v_bar = beta for the gradient 1 of o; so short a sequence saves no state
/// let token = Delta {
///     batch: 1, tokens: 1, householders: 1, heads: 1, value_heads: 1, key: 2, value: 1,
///     q: &[1.0, 0.0], k: &[1.0, 0.0], v: &[5.0], beta: &[0.5],
///     gate: Gate::None, initial: None, ends: None, scale: 1.0, normalise: false,
/// };
/// let mut v_bar = [0.0];
/// let bars = DeltaGradients { v: Some(&mut v_bar), ..Default::default() };
/// delta::backward(&token, &[], (&[1.0], &[0.0, 0.0]), bars, &Budget::of(1))?;
/// assert_eq!(v_bar, [0.5]);
/// # Ok::<(), isometry_core::Error>(())
/// ```
///
/// # Errors
/// As for [`forward`](super::forward); gradients of arguments that were not given.
pub fn backward<R: Real>(
    delta: &Delta<'_, R>,
    saved: &[R],
    (o_bar, state_bar): (&[R], &[R]),
    bars: DeltaGradients<'_, R>,
    budget: &Budget<'_>,
) -> Result<()> {
    delta.check()?;
    let (n, h, hv, key, value) = (delta.sequences(), delta.heads, delta.value_heads, delta.key, delta.value);
    check_len("o_bar", o_bar.len(), &[delta.batch, delta.tokens, hv, value])?;
    check_len("state_bar", state_bar.len(), &[n, hv, key, value])?;
    check_len("saved", saved.len(), &delta.saved())?;
    let arrays = Arrays {
        q: wanted("q_bar", bars.q, Some(delta.q))?,
        k: wanted("k_bar", bars.k, Some(delta.k))?,
        v: wanted("v_bar", bars.v, Some(delta.v))?,
        beta: wanted("beta_bar", bars.beta, Some(delta.beta))?,
        g: wanted("g_bar", bars.g, delta.gate.numbers())?,
        initial: wanted("initial_state_bar", bars.initial, delta.initial)?,
        o: Shared(o_bar.as_ptr().cast_mut()),
        state: Shared(state_bar.as_ptr().cast_mut()),
        saved: Shared(saved.as_ptr().cast_mut()),
    };
    if state_bar.is_empty() {
        return Ok(());
    }
    let threads = delta.members(budget, 2);
    if delta.shares(work(&[n, h]), threads) {
        return budget.stoppable(|| super::shared_backward::run(delta, &arrays, threads));
    }
    let carve = |arena: &mut Arena| Room::carve(arena, delta);
    let scratch = Scratch::new(|arena| arena.frames(threads, carve))?;
    let free = AtomicUsize::new(0);
    budget.stoppable(|| {
        each(
            threads,
            0..work(&[n, h]),
            || next_workspace(&scratch, &free, carve),
            |room, _, task| {
                Member::alone(|member| {
                    // SAFETY: each task writes the rows of its own sequence, key head and value heads.
                    unsafe { group(delta, room, member, (task / h, task % h), &arrays) }
                });
            },
        );
        Ok(())
    })
}

/// Where the gradient of an argument is written, unless it is not wanted.
fn wanted<R>(name: &'static str, bar: Option<&mut [R]>, given: Option<&[R]>) -> Result<Option<Shared<R>>> {
    let Some(bar) = bar else { return Ok(None) };
    let given =
        given.ok_or_else(|| Error::value(name, "is the gradient of an argument that is not given"))?;
    check_len(name, bar.len(), &[given.len()])?;
    Ok(Some(Shared(bar.as_mut_ptr())))
}
