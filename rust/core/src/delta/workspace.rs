//! The memory of a thread for a chunk, and its sizes.

use super::{Delta, Gate, SEGMENT, WIDE};
use crate::kernels::{Product, invert_work};
use crate::scalar::Real;
use crate::scratch::{Arena, Frame, Region};

/// Memory of a thread for a chunk.
pub struct Workspace<R> {
    /// Keys, then queries: 2 C rows of K.
    pub kq: Region<R>,
    /// The same times e^c, and keys times e^(c_C - c); empty without gates.
    pub early: Region<R>,
    pub late: Region<R>,
    /// W = (e^c * [K; Q]) S, 2 C rows of length V; its first half is reused for Z or R.
    pub w: Region<R>,
    /// U
    pub u: Region<R>,
    /// beta, then a factor of each key and query; the gates; e^c and e^(c_C - c).
    pub beta: Region<R>,
    pub unit: Region<R>,
    pub a: Region<R>,
    pub before: Region<R>,
    pub after: Region<R>,
    /// D^T, that of the queries, K K^T * D
    pub decay: Region<R>,
    pub query_decay: Region<R>,
    pub gram: Region<R>,
    pub triangles: Triangles<R>,
    /// Room for the kernels: a row of keys, one of values.
    pub row: Region<R>,
    pub sums: Region<R>,
    pub work: Frame,
    pub scratch: Region<R>,
}

/// What a chunk needs besides its keys and queries for its step from state to state: X^-1 and P^T.
pub struct Triangles<R> {
    pub inverse: Region<R>,
    pub p: Region<R>,
}

impl<R: Real> Triangles<R> {
    pub fn carve(arena: &mut Arena, delta: &Delta<'_, R>) -> Self {
        let Pitches { rows: c, square, .. } = Pitches::new(delta);
        Triangles { inverse: arena.take(&[c, square]), p: arena.take(&[c, square]) }
    }
}

/// Sizes of a chunk's memory: most rows, and the pitches of its matrices, which avoid multiples of large powers of two.
#[derive(Clone, Copy)]
pub struct Pitches {
    pub rows: usize,
    pub key: usize,
    pub value: usize,
    pub square: usize,
}

impl Pitches {
    pub fn new<R: Real>(delta: &Delta<'_, R>) -> Self {
        let rows = chunk_rows(&delta.gate);
        let pitch = |n: usize| n.next_multiple_of(16).saturating_add(16);
        Pitches { rows, key: pitch(delta.key), value: pitch(delta.value), square: pitch(rows) }
    }
}

/// Rows of a chunk.
pub fn chunk_rows<R>(gate: &Gate<'_, R>) -> usize {
    if matches!(gate, Gate::Row(_)) { WIDE } else { SEGMENT }
}

impl<R: Real> Workspace<R> {
    pub fn carve(arena: &mut Arena, delta: &Delta<'_, R>) -> Self {
        let Pitches { rows: c, key, value, square } = Pitches::new(delta);
        let gated = usize::from(!matches!(delta.gate, Gate::None));
        let width = if matches!(delta.gate, Gate::Row(_)) { key } else { 1 };
        Workspace {
            kq: arena.take(&[2 * c, key]),
            early: arena.take(&[gated, 2 * c, key]),
            late: arena.take(&[gated, c, key]),
            w: arena.take(&[2 * c, value]),
            u: arena.take(&[c, value]),
            beta: arena.take(&[c]),
            unit: arena.take(&[2 * c]),
            a: arena.take(&[c, width]),
            before: arena.take(&[2 * c, width]),
            after: arena.take(&[c, width]),
            decay: arena.take(&[c, square]),
            query_decay: arena.take(&[c, square]),
            gram: arena.take(&[c, square]),
            triangles: Triangles::carve(arena, delta),
            row: arena.take(&[key]),
            sums: arena.take(&[value]),
            work: invert_work::<R>(arena, c),
            scratch: arena
                .take(&[Product::<R>::scratch(delta.key.max(2 * c), delta.key.max(delta.value).max(2 * c))]),
        }
    }
}
