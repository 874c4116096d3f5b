//! Matrices of more than 64 rows: Gauss-Jordan elimination of M = I + A by blocks of up to 64 rows, in place,
//!
//! ```text
//! S = M_KK^-1,  R = S M_K.,  M_K. <- R,  M_.K <- -M_.K S,  M_ij <- M_ij - M_iK R_j,
//! ```
//!
//! with pivots within the blocks only. No block is singular, since I + A and its Schur complements have
//! Hermitian parts of at least I. But where a block is much smaller than the rest of its row, the complements grow to |A|^2,
//! and float32 loses |A|^2 eps. So the matrix is mixed first, M <- Q M Q^T with butterflies and random signs
//! that couple the blocks (Parker's random butterflies), and the inverse is mixed back; and blocks have even
//! sizes, because a real skew block of odd size is singular. Two corrections through products follow:
//!
//! ```text
//! S <- S + S (I - (I + A) S),    V = 2 S - I,    V <- V + V (I - V^H V) / 2.
//! ```
//!
//! The first removes what elimination lost, the second makes V unitary to rounding.

use super::{Bars, Cayley, small};
use crate::Array;
use crate::device::Record;
use crate::operator::Operator;
use crate::product::{Operand, Product};
use crate::shader::{groups, shaders};
use isometry_core::Result;

shaders! {
    UNPACK "unpack" "unpack.wgsl",
    BLOCK "block" "block.wgsl" &[small::LONG],
    PANELS "panels" "panels.wgsl",
    MIX "mix" "mix.wgsl",
    CORRECT "correct" "correct.wgsl",
    PLUS "plus" "plus.wgsl",
    PACK "pack" "pack.wgsl",
}

/// Writes W.
pub(super) fn matrix(view: &Cayley<'_>, record: &mut Record<'_>, w: &Array) -> Result<()> {
    let (field, n) = (view.field(), view.n);
    let (m, s, x, v) = (view.room()?, view.room()?, view.room()?, view.room()?);
    unpack(view, record, &m)?;
    // enough to couple all blocks, and one more
    let levels = (0..=n.div_ceil(small::MOST).next_power_of_two().ilog2()).map(|level| n >> (level + 1));
    let (mut s, mut x) = (&s, &x);
    let mut from = &m;
    for reach in levels.clone() {
        mix(view, record, from, reach, false, x)?;
        std::mem::swap(&mut s, &mut x);
        from = s;
    }
    invert(view, record, s)?;
    for reach in levels.rev() {
        mix(view, record, s, reach, true, x)?;
        std::mem::swap(&mut s, &mut x);
    }
    let whole = |array| Operand::new(array, n * n, n);
    let product = |a, b, c| Product::new(view.batch, (n, n, n), a, b, whole(c));
    // V = 2 S - I + 2 S (I - (I + A) S)
    product(whole(&m), whole(s), x).record(record, field)?;
    correct(view, record, Correct { s, x, y: &v, minus: true, factors: (view.upper, 0), weight: 2.0 })?;
    product(whole(s), whole(x), &v).add().record(record, field)?;
    // W = V D + V (I - V^H V) D / 2
    product(whole(&v).h(), whole(&v), x).record(record, field)?;
    let factors = view.factors();
    correct(view, record, Correct { s: &v, x, y: w, minus: false, factors, weight: 0.5 })?;
    product(whole(&v), whole(x), w).add().record(record, field)
}

/// out = I + A.
fn unpack(view: &Cayley<'_>, record: &mut Record<'_>, out: &Array) -> Result<()> {
    let (diagonal, with_diagonal) = view.diagonal();
    let arrays = [("upper", view.upper), ("diagonal", diagonal), ("out", out)];
    let sizes = [out.len() as u32, view.n as u32, with_diagonal];
    record.elements(UNPACK.of(view.field()), &arrays, &sizes, out.len())
}

/// out = Q X Q^T, or Q^T X Q on the way back.
fn mix(
    view: &Cayley<'_>,
    record: &mut Record<'_>,
    x: &Array,
    reach: usize,
    back: bool,
    out: &Array,
) -> Result<()> {
    let sizes = [x.len() as u32, view.n as u32, reach as u32, u32::from(back)];
    record.elements(MIX.of(view.field()), &[("x", x), ("out", out)], &sizes, x.len())
}

/// M <- M^-1.
fn invert(view: &Cayley<'_>, record: &mut Record<'_>, m: &Array) -> Result<()> {
    let (context, field, batch, n) = (view.context(), view.field(), view.batch, view.n);
    let step = n.div_ceil(n.div_ceil(small::MOST)).next_multiple_of(2);
    let inverted = Array::room(context, field, &[batch, step, step])?;
    let (p, r) =
        (Array::room(context, field, &[batch, n, step])?, Array::room(context, field, &[batch, step, n])?);
    for first in (0..n).step_by(step) {
        let size = step.min(n - first);
        let sizes = [batch as u32, n as u32, first as u32, size as u32];
        record.dispatch(BLOCK.of(field), &[("m", m), ("inverted", &inverted)], &sizes, groups(batch))?;
        let whole = Operand::new(m, n * n, n);
        let (s, columns, rows) = (
            Operand::new(&inverted, size * size, size),
            Operand::new(&p, n * size, size),
            Operand::new(&r, size * n, n),
        );
        Product::new(batch, (size, n, size), s, whole.from(first, 0), rows).record(record, field)?;
        let (count, arrays) = (batch * n * size, [("inverted", &inverted), ("m", m), ("p", &p), ("r", &r)]);
        let sizes = [count as u32, n as u32, first as u32, size as u32];
        record.elements(PANELS.of(field), &arrays, &sizes, count)?;
        Product::new(batch, (n, n, size), columns, rows, whole).alpha(-1.0).add().record(record, field)?;
    }
    Ok(())
}

/// Y = (2 S - I) D if `minus`, else S D, and X <- weight (I - X) D.
struct Correct<'a> {
    s: &'a Array,
    x: &'a Array,
    y: &'a Array,
    minus: bool,
    factors: (&'a Array, u32),
    weight: f32,
}

fn correct(view: &Cayley<'_>, record: &mut Record<'_>, it: Correct<'_>) -> Result<()> {
    let (factors, with_last) = it.factors;
    let arrays = [("s", it.s), ("factors", factors), ("x", it.x), ("y", it.y)];
    let sizes = [it.x.len() as u32, view.n as u32, u32::from(it.minus), with_last, it.weight.to_bits()];
    record.elements(CORRECT.of(view.field()), &arrays, &sizes, it.x.len())
}

/// Writes the gradients of upper and diagonal.
pub(super) fn gradient(
    view: &Cayley<'_>,
    record: &mut Record<'_>,
    w: &Array,
    ct: &Array,
    bars: &Bars,
) -> Result<()> {
    let (field, n, batch) = (view.field(), view.n, view.batch);
    let (factors, with_last) = view.factors();
    let (c, y, z) = (view.room()?, view.room()?, view.room()?);
    let arrays = [("w", w), ("factors", factors), ("out", &c)];
    record.elements(PLUS.of(field), &arrays, &[c.len() as u32, n as u32, with_last], c.len())?;
    let whole = |array| Operand::new(array, n * n, n);
    Product::new(batch, (n, n, n), whole(ct).h(), whole(&c), whole(&y)).record(record, field)?;
    Product::new(batch, (n, n, n), whole(&c), whole(&y), whole(&z)).record(record, field)?;
    let arrays =
        [("z", &z), ("factors", factors), ("upper_bar", &bars.upper), ("diagonal_bar", &bars.diagonal)];
    let tiles = n.div_ceil(16);
    record.dispatch(PACK.of(field), &arrays, &[n as u32, view.diagonal().1, with_last], [tiles, tiles, batch])
}
