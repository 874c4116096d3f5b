//! Neighbouring small factors multiplied out into one, and the gradient of that.
//!
//! A pass over an axis of length q costs q multiply-adds per element and one trip through the cache. The last axis, along
//! which vectors lie, is made as long as a vector, the others up to 8: for factors 2 x 2 that is 8 instead of 6
//! multiply-adds and one pass instead of three.

use super::Factor;
use crate::error::Result;
use crate::kernels::{Buffer, reserved};
use crate::scalar::Scalar;
use crate::sizes::work;
use std::ops::Range;

/// The length aimed at for the last axis, which may not exceed twice that.
const LAST: usize = 16;
/// The largest length of the other axes.
const OTHERS: usize = 8;

/// Some neighbouring factors as one.
pub struct Group<T: Scalar> {
    /// The first of them, and the one after the last.
    pub factors: Range<usize>,
    /// What multiplies an array by W and by W^H, p q elements for each of the batch, row-major: W and W^H from the left; of the
    /// last axis their transposes, from the right.
    pub operands: [Buffer<T>; 2],
    /// Whether there are no elements after the axis, before and after contraction.
    pub last: bool,
    /// Rows.
    pub p: usize,
    /// Columns.
    pub q: usize,
    /// Elements before and after the axis when it is contracted with W, and with W^H.
    pub around: [(usize, usize); 2],
    /// Offset of its gradient among those of all groups, in elements.
    pub place: usize,
}

impl<T: Scalar> Group<T> {
    /// Whether the sums of its gradient are the conjugates of y_bar conj(x): where nothing in the result lies after the axis.
    pub const fn conjugated(&self) -> bool {
        self.around[0].1 == 1
    }
}

/// The groups of `count` factors of these sizes, from the last on: the factors of each, and its own size.
pub fn spans(
    count: usize,
    size: impl Fn(usize) -> [usize; 2],
) -> impl Iterator<Item = (Range<usize>, [usize; 2])> {
    let mut end = count;
    std::iter::from_fn(move || {
        let (last, behind) = (end == count, end);
        let mut start = end.checked_sub(1)?;
        let [mut p, mut q] = size(start);
        while start > 0 {
            let next = size(start - 1);
            let (tall, wide) = (p.saturating_mul(next[0]), q.saturating_mul(next[1]));
            let more =
                if last { p.min(q) < LAST && tall.max(wide) <= 2 * LAST } else { tall.max(wide) <= OTHERS };
            if !more {
                break;
            }
            (start, p, q) = (start - 1, tall, wide);
        }
        end = start;
        Some((start..behind, [p, q]))
    })
}

/// All factors in groups.
pub fn groups<T: Scalar>(factors: &[Factor<'_, T>], batch: usize) -> Result<Vec<Group<T>>> {
    let mut groups = reserved(factors.len())?;
    for (range, [p, q]) in spans(factors.len(), |i| [factors[i].p, factors[i].q]) {
        let operands = [Buffer::zeroed(0)?, Buffer::zeroed(0)?];
        groups.push(Group { factors: range, operands, last: true, p, q, around: [(1, 1); 2], place: 0 });
    }
    groups.reverse();
    arrange(&mut groups);
    for group in &mut groups {
        group.operands = multiplied(factors, group, batch)?;
    }
    Ok(groups)
}

/// Axes are contracted from the last to the first, so those after an axis already have the result's sizes.
fn arrange<T: Scalar>(groups: &mut [Group<T>]) {
    let mut place = 0;
    for at in 0..groups.len() {
        let sizes = |groups: &[Group<T>]| {
            groups.iter().fold((1, 1), |(p, q): (usize, usize), group| (p * group.p, q * group.q))
        };
        let (before, behind) = (sizes(&groups[..at]), sizes(&groups[at + 1..]));
        let group = &mut groups[at];
        group.around = [(before.1, behind.0), (before.0, behind.1)];
        group.last = behind == (1, 1);
        group.place = place;
        place += group.p * group.q;
    }
}

/// The operands of a group.
fn multiplied<T: Scalar>(
    factors: &[Factor<'_, T>],
    group: &Group<T>,
    batch: usize,
) -> Result<[Buffer<T>; 2]> {
    let (p, q, last) = (group.p, group.q, group.last);
    let [mut rows, mut columns] =
        [Buffer::<T>::zeroed(work(&[batch, p, q]))?, Buffer::zeroed(work(&[batch, p, q]))?];
    for (k, (rows, columns)) in rows.chunks_exact_mut(p * q).zip(columns.chunks_exact_mut(p * q)).enumerate()
    {
        multiplied_out(&factors[group.factors.clone()], k, rows);
        for (i, row) in rows.chunks_exact_mut(q).enumerate() {
            for (w, turned) in row.iter_mut().zip(columns[i..].iter_mut().step_by(p)) {
                (*w, *turned) = if last { (w.conj(), *w) } else { (*w, w.conj()) };
            }
        }
    }
    Ok(if last { [columns, rows] } else { [rows, columns] })
}

/// Writes matrix k of the product, row by row.
pub fn multiplied_out<T: Scalar>(factors: &[Factor<'_, T>], k: usize, out: &mut [T]) {
    let (p, q) = sizes(factors);
    if let [factor] = factors {
        return out.copy_from_slice(factor.of(k));
    }
    for (row, out) in out.chunks_exact_mut(q).enumerate() {
        out[0] = T::one();
        let (mut len, mut below) = (1, p);
        for factor in factors {
            below /= factor.p;
            let own = &factor.of(k)[row / below % factor.p * factor.q..][..factor.q];
            // from the end, where no entry is needed any more
            for at in (0..len).rev() {
                for (j, w) in own.iter().enumerate().rev() {
                    out[at * factor.q + j] = out[at] * *w;
                }
            }
            len *= factor.q;
        }
    }
}

/// (p, q) of the product.
fn sizes<T>(factors: &[Factor<'_, T>]) -> (usize, usize) {
    factors.iter().fold((1, 1), |(p, q), factor| (p * factor.p, q * factor.q))
}

/// Adds to the gradient of factor f its part of the gradient `bar` (p, q) of the product L (x) W_f (x) R:
///
/// ```text
/// (W_f)_bar[r, c] += sum over (a, b), (i, j) of bar[(a r i), (b c j)] conj(L[a, b]) conj(R[i, j]).
/// ```
///
/// L and R are stored in `room`, which has as many elements as `bar` for each.
pub fn pull<T: Scalar>(
    factors: &[Factor<'_, T>],
    k: usize,
    f: usize,
    bar: &[T],
    room: &mut [T],
    gradient: &mut [T],
) {
    let Factor { p, q, .. } = factors[f];
    let (first, last) = (&factors[..f], &factors[f + 1..]);
    let ((tall, wide), (rows, columns)) = (sizes(first), sizes(last));
    let (left, right) = room.split_at_mut(tall * wide);
    multiplied_out(first, k, left);
    multiplied_out(last, k, &mut right[..rows * columns]);
    for (a, r, i) in (0..tall).flat_map(|a| (0..p).flat_map(move |r| (0..rows).map(move |i| (a, r, i)))) {
        let mut line = bar[((a * p + r) * rows + i) * wide * q * columns..].chunks_exact(columns);
        let right = &right[i * columns..(i + 1) * columns];
        for left in &left[a * wide..(a + 1) * wide] {
            for gradient in &mut gradient[r * q..(r + 1) * q] {
                let own = line.next().into_iter().flatten().zip(right);
                *gradient += left.conj() * own.map(|(bar, right)| *bar * right.conj()).sum::<T>();
            }
        }
    }
}
