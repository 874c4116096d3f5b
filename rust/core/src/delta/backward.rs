//! Gradients: the chunks of every sequence and head in reverse, each by [`Pull`]. Threads share pairs of a sequence and a key
//! head, whose value heads follow each other.

use super::chunk::{Chunk, EPSILON, Head, chunks};
use super::forward::place;
use super::places::chunk_rows;
use super::pull::{Bars, More, Pull};
use super::{Delta, KEPT, Stop};
use crate::budget::Budget;
use crate::error::Result;
use crate::parallel::{Member, Shared, each, worth};
use crate::scalar::Real;
use crate::scratch::{Arena, Scratch, most};
use crate::sizes::{check_len, work};
use isometry_kernels::delta::{Matrix, Unit};
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
    let gates = delta.gate.width(key);
    let gates = if gates == 0 { 0 } else { work(&[delta.batch, delta.tokens, hv, gates]) };
    let states = if delta.initial.is_some() { state_bar.len() } else { 0 };
    let pointer = |argument, bar: Option<&mut [R]>, len: usize| match bar {
        None => Ok(Shared(std::ptr::null_mut())),
        Some(bar) => check_len(argument, bar.len(), &[len]).map(|()| Shared(bar.as_mut_ptr())),
    };
    let bars = Bars {
        q: pointer("q_bar", bars.q, delta.q.len())?,
        k: pointer("k_bar", bars.k, delta.k.len())?,
        v: pointer("v_bar", bars.v, delta.v.len())?,
        beta: pointer("beta_bar", bars.beta, delta.beta.len())?,
        g: pointer("g_bar", bars.g, gates)?,
        initial: pointer("initial_state_bar", bars.initial, states)?,
        o: Shared(o_bar.as_ptr().cast_mut()),
        state: Shared(state_bar.as_ptr().cast_mut()),
        saved: Shared(saved.as_ptr().cast_mut()),
    };
    let threads = worth(most(budget.threads), delta.work().saturating_mul(2));
    let scratch = Scratch::new(|arena| arena.frames(threads, |arena| More::carve(arena, delta)))?;
    let (stop, free) = (Stop::new(budget.cancel), AtomicUsize::new(0));
    each(
        threads,
        0..work(&[n, h]),
        || place(&scratch, &free, |arena: &mut Arena| More::carve(arena, delta)),
        |places, _, task| {
            Member::alone(|member| {
                // SAFETY: each task writes the rows of its own sequence, key head and value heads.
                unsafe { group(delta, places, member, (task / h, task % h), &bars, &stop) }
            });
        },
    );
    stop.result()
}

/// The value heads of a key head of a sequence.
unsafe fn group<R: Real>(
    delta: &Delta<'_, R>,
    places: &More<R>,
    member: &Member<'_>,
    (n, group): (usize, usize),
    bars: &Bars<R>,
    stop: &Stop<'_>,
) {
    let Delta { heads: h, value_heads: hv, key, value, householders: m, .. } = *delta;
    let (tokens, kept) = delta.sequence(n);
    let (rows, size) = (tokens.len() * m, key * value);
    for head in group * (hv / h)..(group + 1) * (hv / h) {
        let own = Head::of(delta, tokens.start, head);
        let s_bar = places.s_bar.ptr();
        let state = |x: Shared<R>, at: usize| x.at((at * hv + head) * size);
        // SAFETY: the state's gradient belongs to this thread, the rows of the gradients to this task.
        unsafe {
            std::ptr::copy_nonoverlapping(state(bars.state, n), s_bar, size);
            for group in chunks(0..rows, KEPT).rev() {
                if stop.leave() {
                    return;
                }
                let before = if group.start > 0 {
                    Some(state(bars.saved, kept + group.start / KEPT - 1).cast_const())
                } else {
                    delta.initial.map(|initial| initial.as_ptr().wrapping_add((n * hv + head) * size))
                };
                let most = chunk_rows(&delta.gate);
                let chunk = |rows: Range<usize>| {
                    let before = rows.start.saturating_sub(most);
                    Chunk::new(delta, &places.chunk, member, own, rows, before)
                };
                let parts = group.len().div_ceil(most);
                // the states before the later chunks, in order
                let at = |part: usize| places.states.ptr().wrapping_add((part - 1) * size);
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
                    Pull { chunk: chunk(rows), more: places, bars, first: tokens.start, head }.run(s, add);
                }
            }
            if !bars.initial.0.is_null() {
                std::ptr::copy_nonoverlapping(s_bar, state(bars.initial, n), size);
            }
        }
    }
    if delta.normalise {
        let own = Head::of(delta, tokens.start, group * (hv / h));
        let at =
            |bar: Shared<R>, rows: usize| Matrix { at: bar.at((rows * h + group) * key), pitch: h * key };
        for (x, bar, first, rows) in
            [(own.q, bars.q, tokens.start, tokens.len()), (own.k, bars.k, tokens.start * m, rows)]
        {
            if !bar.0.is_null() {
                let (y_bar, by, epsilon) = (at(bar, first), std::ptr::null_mut(), R::of(EPSILON));
                // SAFETY: the rows belong to this task.
                unsafe { Unit { x, y_bar, by, epsilon, rows, n: key }.call() }
            }
        }
    }
}
