//! Outputs and last states.

use super::chunk::{Chunk, EPSILON, chunks};
use super::head::Head;
use super::workspace::{Workspace, chunk_rows};
use super::{Delta, FEW, Gate, SEGMENT, Stop};
use crate::budget::Budget;
use crate::error::Result;
use crate::kernels::{Operand, Product, Triangle};
use crate::parallel::{Member, Shared, each, worth};
use crate::scalar::Real;
use crate::scratch::{Arena, Frames, Region, Scratch, most};
use crate::sizes::{check_len, work};
use isometry_kernels::delta::{Exps, Matrix, Scaled, Token, Unit};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The arrays that a call writes.
#[derive(Clone, Copy)]
struct Out<R> {
    o: Shared<R>,
    state: Shared<R>,
    saved: Option<Shared<R>>,
}

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
pub fn forward<R: Real>(
    delta: &Delta<'_, R>,
    o: &mut [R],
    state: &mut [R],
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
    let threads = worth(most(budget.threads), delta.work());
    let carve = |arena: &mut Arena| {
        let row = arena.take(&[3, key]);
        (row, (delta.longest() > FEW).then(|| Workspace::carve(arena, delta)))
    };
    let scratch = Scratch::new(|arena| arena.frames(threads, carve))?;
    let (stop, free) = (Stop::new(budget.cancel), AtomicUsize::new(0));
    let out = Out {
        o: Shared(o.as_mut_ptr()),
        state: Shared(state.as_mut_ptr()),
        saved: saved.map(|saved| Shared(saved.as_mut_ptr())),
    };
    each(
        threads,
        0..work(&[n, hv]),
        || next_workspace(&scratch, &free, carve),
        |(row, workspace), _, task| {
            Member::alone(|member| {
                // SAFETY: each task writes the rows of its own sequence and head.
                unsafe { head(delta, *row, workspace.as_ref(), member, (task / hv, task % hv), out, &stop) }
            });
        },
    );
    stop.result()
}

/// The memory of the next thread.
pub fn next_workspace<P>(frames: &Frames, free: &AtomicUsize, carve: impl Fn(&mut Arena) -> P) -> P {
    carve(&mut frames.of(free.fetch_add(1, Relaxed)).arena())
}

/// One value head of one sequence; `row` has 3 K numbers, and there is a `workspace` where a sequence has more than [`FEW`] rows.
unsafe fn head<R: Real>(
    delta: &Delta<'_, R>,
    row: Region<R>,
    workspace: Option<&Workspace<R>>,
    member: &Member<'_>,
    (n, head): (usize, usize),
    out: Out<R>,
    stop: &Stop<'_>,
) {
    let Delta { value_heads: hv, key, value, householders: m, .. } = *delta;
    let (tokens, first_saved) = delta.sequence(n);
    let (rows, size) = (tokens.len() * m, key * value);
    let own = Head::of(delta, tokens.start, head);
    let o = Matrix { at: out.o.at((tokens.start * hv + head) * value), pitch: hv * value };
    let (state, first) = (out.state.at((n * hv + head) * size), (n * hv + head) * size);
    let initial = delta.initial.map(|initial| initial.as_ptr().wrapping_add(first));
    // SAFETY: the state belongs to this task, and so do the rows of o and the saved states.
    unsafe {
        if rows == 0 || rows > FEW || initial.is_none() {
            match initial {
                Some(initial) => std::ptr::copy_nonoverlapping(initial, state, size),
                None => (0..size).for_each(|i| *state.add(i) = R::zero()),
            }
        }
        let (true, Some(workspace)) = (rows > FEW, workspace) else {
            return few(delta, row, own, 0..rows, initial.unwrap_or(state), state, o);
        };
        for group in chunks(0..rows, SEGMENT) {
            if stop.leave() {
                return;
            }
            if let (Some(saved), true) = (out.saved, group.start > 0) {
                let at = ((first_saved + group.start / SEGMENT - 1) * hv + head) * size;
                std::ptr::copy_nonoverlapping(state, saved.at(at), size);
            }
            for Range { start, end } in chunks(group, chunk_rows(&delta.gate)) {
                let mut chunk = Chunk::new(delta, workspace, member, own, start..end, end);
                let (c, queries, _) = chunk.sizes();
                loop {
                    chunk.prepare();
                    chunk.solve(Some(state.cast_const()), c + queries, false, chunk.w());
                    match chunk.finite() {
                        Some(live) => chunk.live = live,
                        None => break,
                    }
                    if chunk.live == 0 {
                        break;
                    }
                }
                if chunk.live == 0 {
                    few(delta, row, own, start..end, state.cast_const(), state, o);
                    continue;
                }
                let (p, u) = (chunk.square(workspace.p), chunk.u());
                let (shape, full) = (chunk.shape().t(), Triangle::Full);
                let (from_state, to) = (chunk.w().from(c), o.from(chunk.tokens.start));
                let soon = [(to.at.cast_const(), to.pitch), chunk.soon(own.v, false)];
                let onto = |x: Product<R>| {
                    x.onto(from_state.at, from_state.pitch).shapes(shape, full, full).soon(soon)
                };
                let (p, u) =
                    (Operand::new(p.at.cast_const(), p.pitch).t(), Operand::new(u.at.cast_const(), u.pitch));
                chunk.product((queries, value, c), p, u, to, onto);
                chunk.advance(state);
                few(delta, row, own, start + chunk.live..end, state.cast_const(), state, o);
            }
        }
    }
}

/// Rows of a sequence, one by one, from the state `s`; `row` has 3 K numbers.
unsafe fn few<R: Real>(
    delta: &Delta<'_, R>,
    row: Region<R>,
    head: Head<R>,
    rows: Range<usize>,
    s: *const R,
    next: *mut R,
    o: Matrix<R>,
) {
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
