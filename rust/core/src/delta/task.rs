//! A value head of a sequence, forwards: its segments in order, or its few rows one by one.

use super::chunk::{Chunk, EPSILON, chunks};
use super::head::Head;
use super::state::State;
use super::workspace::{Workspace, chunk_rows};
use super::{Delta, FEW, Gate, SEGMENT};
use crate::parallel::{Member, Shared};
use crate::scalar::Real;
use crate::scratch::{Arena, Frames, Region};
use isometry_kernels::delta::{Exps, Matrix, Scaled, Token, Unit};
use isometry_kernels::stop::poll;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The arrays that a call writes.
#[derive(Clone, Copy)]
pub struct Out<R> {
    pub o: Shared<R>,
    pub state: Shared<R>,
    /// Whether it holds the initial states.
    pub continued: bool,
    pub saved: Option<Shared<R>>,
}

/// Memory of a thread: 3 K numbers, and a workspace where a sequence has more than [`FEW`] rows.
pub struct Room<R> {
    row: Region<R>,
    workspace: Option<Workspace<R>>,
}

impl<R: Real> Room<R> {
    pub fn carve(arena: &mut Arena, delta: &Delta<'_, R>) -> Self {
        let row = arena.take(&[3, delta.key]);
        Room { row, workspace: (delta.longest() > FEW).then(|| Workspace::carve(arena, delta)) }
    }

    pub fn workspace(&self) -> Option<&Workspace<R>> {
        self.workspace.as_ref()
    }
}

/// The memory of the next thread.
pub fn next_workspace<P>(frames: &Frames, free: &AtomicUsize, carve: impl Fn(&mut Arena) -> P) -> P {
    carve(&mut frames.of(free.fetch_add(1, Relaxed)).arena())
}

/// A value head of a sequence, and where its results are written.
#[derive(Clone, Copy)]
pub struct Task<R> {
    pub head: Head<R>,
    pub o: Matrix<R>,
    pub state: *mut R,
    pub initial: Option<*const R>,
    /// Whether that is `state`.
    continued: bool,
    /// The states saved behind the first [`SEGMENT`] rows and so on, at this stride.
    saved: Option<(Shared<R>, usize)>,
}

impl<R: Real> Task<R> {
    /// Value head `head` of sequence n.
    pub fn new(delta: &Delta<'_, R>, (n, head): (usize, usize), out: Out<R>) -> Self {
        let Delta { value_heads: hv, key, value, .. } = *delta;
        let (tokens, first_saved) = delta.sequence(n);
        let (size, first) = (key * value, (n * hv + head) * key * value);
        Task {
            head: Head::of(delta, tokens.start, head),
            o: Matrix { at: out.o.at((tokens.start * hv + head) * value), pitch: hv * value },
            state: out.state.at(first),
            initial: match out.continued {
                true => Some(out.state.at(first).cast_const()),
                false => delta.initial.map(|initial| initial.as_ptr().wrapping_add(first)),
            },
            continued: out.continued,
            saved: out.saved.map(|saved| (Shared(saved.at((first_saved * hv + head) * size)), hv * size)),
        }
    }

    /// Where the state before `row` is saved, if that row begins a segment other than the first.
    pub fn saved(&self, row: usize) -> Option<*mut R> {
        let (saved, stride) = self.saved?;
        (row > 0 && row.is_multiple_of(SEGMENT)).then(|| saved.at((row / SEGMENT - 1) * stride))
    }
}

/// One value head of one sequence.
///
/// # Safety
/// The state, the rows of o and the saved states of this head belong to this thread, and so does the room.
pub unsafe fn whole<R: Real>(
    delta: &Delta<'_, R>,
    room: &Room<R>,
    member: &Member<'_>,
    (n, head): (usize, usize),
    out: Out<R>,
) {
    let (rows, size) = (delta.sequence(n).0.len() * delta.householders, delta.key * delta.value);
    let task = Task::new(delta, (n, head), out);
    let Task { state, initial, .. } = task;
    // SAFETY: the caller's.
    unsafe {
        if !task.continued && (rows == 0 || rows > FEW || initial.is_none()) {
            match initial {
                Some(initial) => std::ptr::copy_nonoverlapping(initial, state, size),
                None => (0..size).for_each(|i| *state.add(i) = R::zero()),
            }
        }
        if rows <= FEW {
            return few(delta, room.row, &task, 0..rows, initial.unwrap_or(state));
        }
        for rows in chunks(0..rows, SEGMENT) {
            poll(delta.work_of(rows.len()));
            segment(delta, room, member, &task, rows);
        }
    }
}

/// The rows of a segment, from the state before it.
///
/// # Safety
/// As of [`whole`].
pub unsafe fn segment<R: Real>(
    delta: &Delta<'_, R>,
    room: &Room<R>,
    member: &Member<'_>,
    task: &Task<R>,
    rows: Range<usize>,
) {
    let (Some(workspace), size) = (&room.workspace, delta.key * delta.value) else { return };
    let (row, given) = (room.row, Matrix { at: task.state, pitch: delta.value });
    let state = State::whole(given);
    // SAFETY: the caller's.
    unsafe {
        if let Some(saved) = task.saved(rows.start) {
            std::ptr::copy_nonoverlapping(given.at, saved, size);
        }
        for Range { start, end } in chunks(rows, chunk_rows(&delta.gate)) {
            let mut chunk = Chunk::new(delta, workspace, member, task.head, start..end, end);
            let (c, queries, _) = chunk.sizes();
            loop {
                chunk.prepare();
                chunk.solve(Some(state), c + queries, false, chunk.w());
                if chunk.finite() {
                    break;
                }
                chunk.live = chunk.finite_rows();
                if chunk.live == 0 {
                    break;
                }
            }
            if chunk.live > 0 {
                chunk.outputs(task.o.from(chunk.tokens.start));
                chunk.advance(state);
            }
            few(delta, row, task, start + chunk.live..end, given.at.cast_const());
        }
    }
}

/// Rows of a sequence, one by one, from the state `s`; `row` has 3 K numbers.
unsafe fn few<R: Real>(
    delta: &Delta<'_, R>,
    row: Region<R>,
    task: &Task<R>,
    rows: Range<usize>,
    s: *const R,
) {
    let Task { head, o, state: next, .. } = *task;
    let Delta { key, value, householders: m, .. } = *delta;
    let wide = matches!(delta.gate, Gate::Row(_));
    for i in rows.clone() {
        let (t, last) = (i / m, i % m == m - 1);
        // SAFETY: the rows exist.
        unsafe {
            // a row and its factor; multiplied where the square of the row may overflow
            let unit = |x: *const R, out: *mut R| {
                let (mut by, from) = (R::one(), Matrix::of(x, key));
                if delta.normalise {
                    let (y_bar, epsilon) = (Matrix::none(), R::of(EPSILON));
                    Unit { x: from, y_bar, by: &raw mut by, epsilon, rows: 1, n: key }.call();
                }
                if by * by >= R::min_positive_value() {
                    return (x, by);
                }
                let (by, out) = (Matrix::of(&raw const by, 0), Matrix { at: out, pitch: key });
                Scaled { x: from, by, wide: false, out, add: false, rows: 1, n: key }.call();
                (out.at.cast_const(), R::one())
            };
            let (k, k_by) = unit(head.k.row(i).cast_const(), row.at(key));
            let (q, q_by) = match last {
                true => unit(head.q.row(t).cast_const(), row.at(2 * key)),
                false => (std::ptr::null(), R::zero()),
            };
            let gated = !head.g.at.is_null() && i.is_multiple_of(m);
            if gated {
                Exps { g: head.g.row(t), out: row.ptr(), n: if wide { key } else { 1 } }.call();
            }
            let null = std::ptr::null;
            Token {
                s: if i == rows.start { s } else { next },
                next,
                n: key,
                width: value,
                a: if gated { row.ptr() } else { null() },
                wide,
                k,
                k_by,
                v: head.v.row(i),
                beta: *head.beta.row(i),
                q,
                q_by: q_by * R::of(delta.scale),
                o: if last { o.row(t) } else { std::ptr::null_mut() },
            }
            .call();
        }
    }
}
