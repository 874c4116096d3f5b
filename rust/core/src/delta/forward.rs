//! Outputs and last states.

use super::Delta;
use super::task::{Out, Room, next_workspace, whole};
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::parallel::{Member, Shared, each};
use crate::scalar::Real;
use crate::scratch::{Arena, Scratch};
use crate::sizes::{check_len, work};
use std::sync::atomic::AtomicUsize;

/// o (B, T, HV, V), the states after the sequences (N, HV, K, V), and `saved` ([`Delta::saved`]) if backward will run.
///
/// ```
/// use isometry_core::{Budget, delta::{self, Delta, Gate}};
///
/// // two tokens write the values 3 and 5 under orthogonal keys; the second query reads the first
/// let delta = Delta {
///     batch: 1, tokens: 2, householders: 1, heads: 1, value_heads: 1, key: 2, value: 1,
///     q: &[0.0, 1.0, 1.0, 0.0], k: &[1.0, 0.0, 0.0, 1.0], v: &[3.0, 5.0], beta: &[1.0, 1.0],
///     gate: Gate::None, initial: None, ends: None, scale: 1.0, normalise: false,
/// };
/// let (mut outputs, mut state) = ([0.0f64; 2], [0.0; 2]);
/// delta::forward(&delta, &mut outputs, &mut state, None, &Budget::of(1))?;
/// assert_eq!((outputs, state), ([0.0, 3.0], [3.0, 5.0]));
/// # Ok::<(), isometry_core::Error>(())
/// ```
///
/// # Errors
/// Arrays of other lengths, ends that do not ascend from 0 to T, value heads that are no multiple of the heads; lack of memory;
/// [`Error::Interrupted`] once the budget says so.
pub fn forward<R: Real>(
    delta: &Delta<'_, R>,
    o: &mut [R],
    state: &mut [R],
    saved: Option<&mut [R]>,
    budget: &Budget<'_>,
) -> Result<()> {
    compute(delta, o, (state, false), saved, budget)
}

/// The same in place: `state` holds the states before the sequences, and then those behind them. What it holds after an error is
/// unspecified.
///
/// ```
/// use isometry_core::{Budget, delta::{self, Delta, Gate}};
///
/// // the state holds 3 under the key (1, 0), which the token reads; it writes 5 under (0, 1)
/// let token = Delta {
///     batch: 1, tokens: 1, householders: 1, heads: 1, value_heads: 1, key: 2, value: 1,
///     q: &[1.0, 0.0], k: &[0.0, 1.0], v: &[5.0], beta: &[1.0],
///     gate: Gate::None, initial: None, ends: None, scale: 1.0, normalise: false,
/// };
/// let (mut output, mut state) = ([0.0], [3.0, 0.0]);
/// delta::advance(&token, &mut output, &mut state, &Budget::of(1))?;
/// assert_eq!((output, state), ([3.0], [3.0, 5.0]));
/// # Ok::<(), isometry_core::Error>(())
/// ```
///
/// # Errors
/// As for [`forward`]; an initial state in `delta`.
pub fn advance<R: Real>(
    delta: &Delta<'_, R>,
    o: &mut [R],
    state: &mut [R],
    budget: &Budget<'_>,
) -> Result<()> {
    if delta.initial.is_some() {
        return Err(Error::value("initial_state", "must not be given where states are continued in place"));
    }
    compute(delta, o, (state, true), None, budget)
}

fn compute<R: Real>(
    delta: &Delta<'_, R>,
    o: &mut [R],
    (state, continued): (&mut [R], bool),
    saved: Option<&mut [R]>,
    budget: &Budget<'_>,
) -> Result<()> {
    delta.check()?;
    let (n, hv, key, value) = (delta.sequences(), delta.value_heads, delta.key, delta.value);
    check_len("o", o.len(), &[delta.batch, delta.tokens, hv, value])?;
    check_len("state", state.len(), &[n, hv, key, value])?;
    if let Some(saved) = &saved {
        check_len("saved", saved.len(), &delta.saved())?;
    }
    if state.is_empty() {
        return Ok(());
    }
    let threads = delta.members(budget, 1);
    let out = Out {
        o: Shared(o.as_mut_ptr()),
        state: Shared(state.as_mut_ptr()),
        continued,
        saved: saved.map(|saved| Shared(saved.as_mut_ptr())),
    };
    if delta.shares(work(&[n, hv]), threads) {
        return budget.stoppable(|| super::shared_forward::run(delta, out, threads));
    }
    let carve = |arena: &mut Arena| Room::carve(arena, delta);
    let scratch = Scratch::new(|arena| arena.frames(threads, carve))?;
    let free = AtomicUsize::new(0);
    budget.stoppable(|| {
        each(
            threads,
            0..work(&[n, hv]),
            || next_workspace(&scratch, &free, carve),
            |room, _, task| {
                Member::alone(|member| {
                    // SAFETY: each task writes the rows of its own sequence and head.
                    unsafe { whole(delta, room, member, (task / hv, task % hv), out) }
                });
            },
        );
        Ok(())
    })
}
