//! Passes over rows of whole vectors: x^H A, and A - x w.

use crate::householder::scaled_add;
use crate::scalar::Scalar;
use crate::simd::Simd;
use crate::stop::poll;

/// Rows from which a pass over them is worth a question.
const LONG: usize = 1 << 12;

/// Before some passes over rows of so many numbers: the call may be stopped here.
#[inline(always)]
pub(super) fn pause(rows: usize, pitch: usize) {
    if rows >= LONG {
        poll(4 * rows * pitch);
    }
}

/// A column: `len` elements at a stride.
#[derive(Clone, Copy)]
pub(super) struct Column<T> {
    pub data: *const T,
    pub stride: usize,
    pub len: usize,
}

impl<T: Scalar> Column<T> {
    #[inline(always)]
    pub unsafe fn at(self, i: usize) -> T {
        // SAFETY: the caller reads within the column.
        unsafe { *self.data.add(i * self.stride) }
    }
}

/// out = x^H A for the vectors `from..to` of rows with stride `pitch`, as many as x has elements.
///
/// # Safety
/// The rows exist and consist of whole vectors, as do `from`, `to` and `out`; the processor supports S.
#[inline(always)]
pub(super) unsafe fn project<T: Scalar, S: Simd<R = T::Real>>(
    x: Column<T>,
    (a, pitch): (*const S::R, usize),
    (from, to): (usize, usize),
    out: *mut S::R,
) {
    // SAFETY: the contract above.
    unsafe {
        let mut v = from;
        while v + 4 * S::LANES <= to {
            projected::<T, S, 4>(x, (a.add(v), pitch), out.add(v));
            v += 4 * S::LANES;
        }
        while v + 2 * S::LANES <= to {
            projected::<T, S, 2>(x, (a.add(v), pitch), out.add(v));
            v += 2 * S::LANES;
        }
        if v < to {
            projected::<T, S, 1>(x, (a.add(v), pitch), out.add(v));
        }
    }
}

#[inline(always)]
unsafe fn projected<T: Scalar, S: Simd<R = T::Real>, const C: usize>(
    x: Column<T>,
    (a, pitch): (*const S::R, usize),
    out: *mut S::R,
) {
    // SAFETY: C vectors of every row exist (contract of `project`).
    unsafe {
        // Two chains of sums: of even rows, and of odd ones.
        let (mut even, mut odd) = ([S::zero(); C], [S::zero(); C]);
        for i in (0..x.len).step_by(2) {
            even = with_row::<T, S, C>(x.at(i), a.add(i * pitch), even);
            if i + 1 < x.len {
                odd = with_row::<T, S, C>(x.at(i + 1), a.add((i + 1) * pitch), odd);
            }
        }
        for c in 0..C {
            S::store(out.add(c * S::LANES), S::add(even[c], odd[c]));
        }
    }
}

/// sums + conj(x) row
#[inline(always)]
unsafe fn with_row<T: Scalar, S: Simd<R = T::Real>, const C: usize>(
    x: T,
    row: *const S::R,
    mut sums: [S::V; C],
) -> [S::V; C] {
    let f = x.conj();
    for c in 0..C {
        // SAFETY: C vectors of the row exist (contract of `project`).
        sums[c] = unsafe { scaled_add::<T, S>(S::load(row.add(c * S::LANES)), f, sums[c]) };
    }
    sums
}

/// A <- A - f x w, with the same rows and vectors.
///
/// # Safety
/// As [`project`]; w has these vectors.
#[inline(always)]
pub(super) unsafe fn subtract<T: Scalar, S: Simd<R = T::Real>>(
    (x, f): (Column<T>, T),
    w: *const S::R,
    (a, pitch): (*mut S::R, usize),
    (from, to): (usize, usize),
) {
    // SAFETY: the contract above.
    unsafe {
        let mut v = from;
        while v + 4 * S::LANES <= to {
            subtracted::<T, S, 4>((x, f), w.add(v), (a.add(v), pitch));
            v += 4 * S::LANES;
        }
        while v + 2 * S::LANES <= to {
            subtracted::<T, S, 2>((x, f), w.add(v), (a.add(v), pitch));
            v += 2 * S::LANES;
        }
        if v < to {
            subtracted::<T, S, 1>((x, f), w.add(v), (a.add(v), pitch));
        }
    }
}

#[inline(always)]
unsafe fn subtracted<T: Scalar, S: Simd<R = T::Real>, const C: usize>(
    (x, f): (Column<T>, T),
    w: *const S::R,
    (a, pitch): (*mut S::R, usize),
) {
    // SAFETY: C vectors of every row exist (contract of `subtract`).
    unsafe {
        let mut own = [S::zero(); C];
        for c in 0..C {
            own[c] = S::load(w.add(c * S::LANES));
        }
        for i in 0..x.len {
            let (factor, row) = (-(x.at(i) * f), a.add(i * pitch));
            for c in 0..C {
                let at = row.add(c * S::LANES);
                S::store(at, scaled_add::<T, S>(own[c], factor, S::load(at)));
            }
        }
    }
}

/// A <- A - v w and then out = x^H A, in one pass; x may lie in A.
///
/// # Safety
/// As [`project`]; v and x have as many elements; w has these vectors. x lies in the first four vectors if it lies in A.
#[inline(always)]
pub(super) unsafe fn sweep<T: Scalar, S: Simd<R = T::Real>>(
    (v, w): (*const T, *const S::R),
    x: Column<T>,
    (a, pitch): (*mut S::R, usize),
    (from, to): (usize, usize),
    out: *mut S::R,
) {
    // SAFETY: the contract above.
    unsafe {
        let mut at = from;
        while at + 4 * S::LANES <= to {
            swept::<T, S, 4>((v, w.add(at)), x, (a.add(at), pitch), out.add(at));
            at += 4 * S::LANES;
        }
        match (to - at) / S::LANES {
            3 => swept::<T, S, 3>((v, w.add(at)), x, (a.add(at), pitch), out.add(at)),
            2 => swept::<T, S, 2>((v, w.add(at)), x, (a.add(at), pitch), out.add(at)),
            1 => swept::<T, S, 1>((v, w.add(at)), x, (a.add(at), pitch), out.add(at)),
            _ => {}
        }
    }
}

#[inline(always)]
unsafe fn swept<T: Scalar, S: Simd<R = T::Real>, const C: usize>(
    (v, w): (*const T, *const S::R),
    x: Column<T>,
    (a, pitch): (*mut S::R, usize),
    out: *mut S::R,
) {
    // SAFETY: C vectors of every row exist (contract of `sweep`).
    unsafe {
        let mut own = [S::zero(); C];
        for c in 0..C {
            own[c] = S::load(w.add(c * S::LANES));
        }
        // Two chains of sums: of even rows, and of odd ones.
        let (mut even, mut odd) = ([S::zero(); C], [S::zero(); C]);
        for i in (0..x.len).step_by(2) {
            even = swept_row::<T, S, C>((*v.add(i), &own), (x, i), a.add(i * pitch), even);
            if i + 1 < x.len {
                odd = swept_row::<T, S, C>((*v.add(i + 1), &own), (x, i + 1), a.add((i + 1) * pitch), odd);
            }
        }
        for c in 0..C {
            S::store(out.add(c * S::LANES), S::add(even[c], odd[c]));
        }
    }
}

/// row <- row - v w, then sums + conj(x_i) row; x_i may lie in the row.
#[inline(always)]
unsafe fn swept_row<T: Scalar, S: Simd<R = T::Real>, const C: usize>(
    (v, w): (T, &[S::V; C]),
    (x, i): (Column<T>, usize),
    row: *mut S::R,
    mut sums: [S::V; C],
) -> [S::V; C] {
    // SAFETY: C vectors of the row exist, and x has an i-th element (contract of `sweep`).
    unsafe {
        let mut new = [S::zero(); C];
        for c in 0..C {
            new[c] = scaled_add::<T, S>(w[c], -v, S::load(row.add(c * S::LANES)));
            S::store(row.add(c * S::LANES), new[c]);
        }
        let f = x.at(i).conj();
        for c in 0..C {
            sums[c] = scaled_add::<T, S>(new[c], f, sums[c]);
        }
    }
    sums
}

/// Copies rows of `width` numbers, stride `stride`, to rows of `pitch` numbers, padded with zeros.
///
/// # Safety
/// The rows exist; the processor supports S.
#[inline(always)]
pub(super) unsafe fn spread<S: Simd>(
    from: *const S::R,
    stride: usize,
    (rows, width): (usize, usize),
    (to, pitch): (*mut S::R, usize),
) {
    // SAFETY: the contract above.
    unsafe {
        for i in 0..rows {
            for v in (0..pitch).step_by(S::LANES) {
                let live = width.saturating_sub(v);
                let row = from.wrapping_add(i * stride + v);
                S::store(to.add(i * pitch + v), if live > 0 { S::load_n(row, live) } else { S::zero() });
            }
        }
    }
}
