//! Gradients: the chunks of every sequence and head in reverse, each by [`Pull`]. Threads share pairs of a sequence and a key
//! head, whose value heads follow each other.

use super::chunk::{Chunk, EPSILON, chunks};
use super::forward::next_workspace;
use super::head::Head;
use super::pull::{Arrays, GradientWorkspace, Pull, rows_of};
use super::solve::copy_columns;
use super::state::State;
use super::workspace::chunk_rows;
use super::{Delta, SEGMENT, Stop};
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::parallel::{Member, Shared, each};
use crate::scalar::Real;
use crate::scratch::{Arena, Region, Scratch};
use crate::sizes::{check_len, work};
use isometry_kernels::delta::{Matrix, Unit};
use std::ops::Range;
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
    let stop = Stop::new(budget.cancel);
    if delta.shares(work(&[n, h]), threads) {
        super::shared_backward::run(delta, &arrays, threads, &stop)?;
        return stop.result();
    }
    let carve = |arena: &mut Arena| Room::carve(arena, delta);
    let scratch = Scratch::new(|arena| arena.frames(threads, carve))?;
    let free = AtomicUsize::new(0);
    each(
        threads,
        0..work(&[n, h]),
        || next_workspace(&scratch, &free, carve),
        |room, _, task| {
            Member::alone(|member| {
                // SAFETY: each task writes the rows of its own sequence, key head and value heads.
                unsafe { group(delta, room, member, (task / h, task % h), &arrays, &stop) }
            });
        },
    );
    stop.result()
}

/// Memory of a thread.
pub struct Room<R> {
    pub gradients: GradientWorkspace<R>,
    /// The states before the chunks of [`SEGMENT`] rows, where there are several.
    pub states: Region<R>,
}

impl<R: Real> Room<R> {
    pub fn carve(arena: &mut Arena, delta: &Delta<'_, R>) -> Self {
        let states = SEGMENT / chunk_rows(&delta.gate) - 1;
        let gradients = GradientWorkspace::carve(arena, delta);
        Room { gradients, states: arena.take(&[states, delta.key, delta.value]) }
    }
}

/// Where the gradient of an argument is written, unless it is not wanted.
fn wanted<R>(name: &'static str, bar: Option<&mut [R]>, given: Option<&[R]>) -> Result<Option<Shared<R>>> {
    let Some(bar) = bar else { return Ok(None) };
    let given =
        given.ok_or_else(|| Error::value(name, "is the gradient of an argument that is not given"))?;
    check_len(name, bar.len(), &[given.len()])?;
    Ok(Some(Shared(bar.as_mut_ptr())))
}

/// A value head of a sequence whose gradients are computed.
#[derive(Clone, Copy)]
pub struct Task<'a, R: Real> {
    pub delta: &'a Delta<'a, R>,
    pub arrays: &'a Arrays<R>,
    /// The sequence, and the value head.
    pub n: usize,
    pub head: usize,
}

impl<R: Real> Task<'_, R> {
    /// The state of this head among states of sequences (or saved ones), at `n`.
    pub fn state(&self, x: Shared<R>, n: usize) -> *mut R {
        let Delta { value_heads: hv, key, value, .. } = *self.delta;
        x.at((n * hv + self.head) * key * value)
    }

    /// The state before row `row`, the first of a segment (None: zero).
    pub fn before(&self, row: usize) -> Option<*const R> {
        let Delta { value_heads: hv, key, value, .. } = *self.delta;
        let (_, first_saved) = self.delta.sequence(self.n);
        match row / SEGMENT {
            0 => self
                .delta
                .initial
                .map(|initial| initial.as_ptr().wrapping_add((self.n * hv + self.head) * key * value)),
            segment => Some(self.state(self.arrays.saved, first_saved + segment - 1).cast_const()),
        }
    }

    pub fn chunk<'b>(
        &'b self,
        gradients: &'b GradientWorkspace<R>,
        member: &'b Member<'b>,
        rows: Range<usize>,
    ) -> Chunk<'b, R> {
        let head = Head::of(self.delta, self.delta.sequence(self.n).0.start, self.head);
        let before = rows.start.saturating_sub(chunk_rows(&self.delta.gate));
        Chunk::new(self.delta, &gradients.chunk, member, head, rows, before)
    }

    pub fn pull<'b>(&'b self, chunk: Chunk<'b, R>, gradients: &'b GradientWorkspace<R>) -> Pull<'b, R> {
        let first = self.delta.sequence(self.n).0.start;
        Pull { chunk, gradients, arrays: self.arrays, first, head: self.head }
    }

    /// Whether the gradients of q and k are added to those of another value head.
    pub fn adds(&self) -> bool {
        !self.head.is_multiple_of(self.delta.value_heads / self.delta.heads)
    }

    /// The states before the later chunks of a segment, in order, in the room.
    ///
    /// # Safety
    /// The room is this thread's.
    pub unsafe fn replay(&self, room: &Room<R>, member: &Member<'_>, segment: Range<usize>) {
        let (most, size) = (chunk_rows(&self.delta.gate), self.delta.key * self.delta.value);
        let parts = segment.len().div_ceil(most);
        for (part, rows) in chunks(segment.clone(), most).take(parts - 1).enumerate() {
            let (chunk, next) = (self.chunk(&room.gradients, member, rows), room.states.at(part * size));
            // SAFETY: the caller's; there is a state for each chunk but the first.
            unsafe {
                match self.behind(room, segment.start, part) {
                    Some(s) => std::ptr::copy_nonoverlapping(s, next, size),
                    None => (0..size).for_each(|i| *next.add(i) = R::zero()),
                }
                chunk.prepare();
                let state = State::whole(Matrix { at: next, pitch: self.delta.value });
                chunk.solve(Some(state), chunk.rows.len(), false, chunk.w());
                chunk.advance(state);
            }
        }
    }

    /// The state before chunk `part` of the replayed segment from row `first` on.
    pub fn behind(&self, room: &Room<R>, first: usize, part: usize) -> Option<*const R> {
        let size = self.delta.key * self.delta.value;
        match part {
            0 => self.before(first),
            _ => Some(room.states.at((part - 1) * size).cast_const()),
        }
    }
}

/// The value heads of a key head of a sequence.
unsafe fn group<R: Real>(
    delta: &Delta<'_, R>,
    room: &Room<R>,
    member: &Member<'_>,
    (n, group): (usize, usize),
    arrays: &Arrays<R>,
    stop: &Stop<'_>,
) {
    let Delta { heads: h, value_heads: hv, key, value, householders: m, .. } = *delta;
    let (rows, gradients) = (delta.sequence(n).0.len() * m, &room.gradients);
    for head in group * (hv / h)..(group + 1) * (hv / h) {
        let task = Task { delta, arrays, n, head };
        let s_bar = State::whole(gradients.s_bar(delta));
        // SAFETY: the state's gradient belongs to this thread, the rows of the gradients to this task.
        unsafe {
            copy_columns(
                member,
                Some(State::whole(Matrix::of(task.state(arrays.state, n), value))),
                s_bar,
                (key, value),
            );
            for segment in chunks(0..rows, SEGMENT).rev() {
                if stop.leave() {
                    return;
                }
                task.replay(room, member, segment.clone());
                for (part, rows) in chunks(segment.clone(), chunk_rows(&delta.gate)).enumerate().rev() {
                    let pull = task.pull(task.chunk(gradients, member, rows), gradients);
                    pull.run(task.behind(room, segment.start, part), task.adds());
                }
            }
            if let Some(initial) = arrays.initial {
                let to = Matrix { at: task.state(initial, n), pitch: value };
                copy_columns(member, Some(s_bar), State::whole(to), (key, value));
            }
        }
    }
    // SAFETY: the rows belong to this task.
    unsafe { normalised(delta, arrays, (n, group), 0..rows) }
}

/// The gradients of the rows `rows` of q and k of a key head, from those of the rows divided by their lengths.
///
/// # Safety
/// The rows are this thread's.
pub unsafe fn normalised<R: Real>(
    delta: &Delta<'_, R>,
    arrays: &Arrays<R>,
    (n, group): (usize, usize),
    rows: Range<usize>,
) {
    let Delta { heads: h, value_heads: hv, key, householders: m, .. } = *delta;
    if !delta.normalise {
        return;
    }
    let first = delta.sequence(n).0.start;
    let own = Head::of(delta, first, group * (hv / h));
    let tokens = rows.start / m..rows.end / m;
    for (x, gradient, first, rows) in [(own.q, arrays.q, first, tokens), (own.k, arrays.k, first * m, rows)] {
        if let Some(gradient) = gradient {
            let (x, y_bar) = (x.from(rows.start), rows_of(gradient, first + rows.start, (h, group), key));
            let (by, epsilon) = (std::ptr::null_mut(), R::of(EPSILON));
            // SAFETY: the caller's.
            unsafe { Unit { x, y_bar, by, epsilon, rows: rows.len(), n: key }.call() }
        }
    }
}
