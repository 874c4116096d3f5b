//! Gradients: the chunks of every sequence and head in reverse, each by [`Pull`]. Threads share pairs of a sequence and a key
//! head, whose value heads follow each other.

use super::chunk::{Chunk, EPSILON, chunks};
use super::forward::next_workspace;
use super::head::Head;
use super::pull::{Arrays, GradientWorkspace, Pull, rows_of};
use super::workspace::chunk_rows;
use super::{Delta, SEGMENT, Stop};
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::parallel::{Member, Shared, each, worth};
use crate::scalar::Real;
use crate::scratch::{Arena, Scratch, most};
use crate::sizes::{check_len, work};
use isometry_kernels::delta::Unit;
use std::ops::Range;
use std::sync::atomic::AtomicUsize;

/// Gradients to compute, in the shapes of their arguments; None where one is not wanted.
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
    let threads = worth(most(budget.threads), delta.work().saturating_mul(2));
    let scratch =
        Scratch::new(|arena| arena.frames(threads, |arena| GradientWorkspace::carve(arena, delta)))?;
    let (stop, free) = (Stop::new(budget.cancel), AtomicUsize::new(0));
    each(
        threads,
        0..work(&[n, h]),
        || next_workspace(&scratch, &free, |arena: &mut Arena| GradientWorkspace::carve(arena, delta)),
        |gradients, _, task| {
            Member::alone(|member| {
                // SAFETY: each task writes the rows of its own sequence, key head and value heads.
                unsafe { group(delta, gradients, member, (task / h, task % h), &arrays, &stop) }
            });
        },
    );
    stop.result()
}

/// Where the gradient of an argument is written, unless it is not wanted.
fn wanted<R>(name: &'static str, bar: Option<&mut [R]>, given: Option<&[R]>) -> Result<Option<Shared<R>>> {
    let Some(bar) = bar else { return Ok(None) };
    let given =
        given.ok_or_else(|| Error::value(name, "is the gradient of an argument that is not given"))?;
    check_len(name, bar.len(), &[given.len()])?;
    Ok(Some(Shared(bar.as_mut_ptr())))
}

/// The value heads of a key head of a sequence.
unsafe fn group<R: Real>(
    delta: &Delta<'_, R>,
    gradients: &GradientWorkspace<R>,
    member: &Member<'_>,
    (n, group): (usize, usize),
    arrays: &Arrays<R>,
    stop: &Stop<'_>,
) {
    let Delta { heads: h, value_heads: hv, key, value, householders: m, .. } = *delta;
    let (tokens, first_saved) = delta.sequence(n);
    let (rows, size) = (tokens.len() * m, key * value);
    for head in group * (hv / h)..(group + 1) * (hv / h) {
        let own = Head::of(delta, tokens.start, head);
        let s_bar = gradients.s_bar.ptr();
        let state = |x: Shared<R>, at: usize| x.at((at * hv + head) * size);
        // SAFETY: the state's gradient belongs to this thread, the rows of the gradients to this task.
        unsafe {
            std::ptr::copy_nonoverlapping(state(arrays.state, n), s_bar, size);
            for group in chunks(0..rows, SEGMENT).rev() {
                if stop.leave() {
                    return;
                }
                let before = if group.start > 0 {
                    Some(state(arrays.saved, first_saved + group.start / SEGMENT - 1).cast_const())
                } else {
                    delta.initial.map(|initial| initial.as_ptr().wrapping_add((n * hv + head) * size))
                };
                let most = chunk_rows(&delta.gate);
                let chunk = |rows: Range<usize>| {
                    let before = rows.start.saturating_sub(most);
                    Chunk::new(delta, &gradients.chunk, member, own, rows, before)
                };
                let parts = group.len().div_ceil(most);
                // the states before the later chunks, in order
                let at = |part: usize| gradients.states.ptr().wrapping_add((part - 1) * size);
                for (part, rows) in chunks(group.clone(), most).take(parts - 1).enumerate() {
                    let chunk = chunk(rows);
                    let (next, c) = (at(part + 1), chunk.rows.len());
                    let s = if part == 0 { before } else { Some(at(part).cast_const()) };
                    match s {
                        Some(s) => std::ptr::copy_nonoverlapping(s, next, size),
                        None => (0..size).for_each(|i| *next.add(i) = R::zero()),
                    }
                    chunk.prepare();
                    chunk.solve(Some(next.cast_const()), c, false, chunk.w());
                    chunk.advance(next);
                }
                for (part, rows) in chunks(group, most).enumerate().rev() {
                    let s = if part == 0 { before } else { Some(at(part).cast_const()) };
                    let add = head % (hv / h) > 0;
                    Pull { chunk: chunk(rows), gradients, arrays, first: tokens.start, head }.run(s, add);
                }
            }
            if let Some(initial) = arrays.initial {
                std::ptr::copy_nonoverlapping(s_bar, state(initial, n), size);
            }
        }
    }
    if delta.normalise {
        let own = Head::of(delta, tokens.start, group * (hv / h));
        for (x, gradient, first, rows) in
            [(own.q, arrays.q, tokens.start, tokens.len()), (own.k, arrays.k, tokens.start * m, rows)]
        {
            if let Some(gradient) = gradient {
                let y_bar = rows_of(gradient, first, (h, group), key);
                let (by, epsilon) = (std::ptr::null_mut(), R::of(EPSILON));
                // SAFETY: the rows belong to this task.
                unsafe { Unit { x, y_bar, by, epsilon, rows, n: key }.call() }
            }
        }
    }
}
