//! For few rows: one reflection after another at 4 n m flops per row, where T alone would cost n m^2.
//!
//! ```text
//! h_j = (2 / N_j) u_j^H y,  y <- y - h_j u_j,                      N_j = ||u_j||^2.
//! ```
//!
//! Gradient (Algorithm 1 of Mhammedi et al. 2017, for complex numbers too), j = 0, ..., m - 1, starting from
//! g = C_bar and H = C and inverting each reflection in turn:
//!
//! ```text
//! c_j = (2 / N_j) u_j^H g,   U_bar_j = -conj(h_j) g - conj(c_j) H - i Im(conj(c_j) h_j) u_j,
//! g <- g - c_j u_j,   H <- H + h_j u_j.
//! ```
//!
//! Columns of U are first copied to rows. Rows are processed independently, so results do not depend on other rows.

use crate::dispatch::kernel;
use crate::scalar::{Real, Scalar};
use crate::simd::Simd;
use num_traits::Zero;

/// Sizes of one matrix, and the caller's U.
#[derive(Clone, Copy)]
pub struct Sizes<T> {
    /// U (n, m)
    pub u: *const T,
    /// n
    pub n: usize,
    /// m
    pub m: usize,
    /// Rows that the reflections are applied to.
    pub rows: usize,
}

impl<T: Scalar> Sizes<T> {
    /// Stride of rows in the working arrays, in real numbers: whole vectors of any width.
    fn pitch(&self) -> usize {
        (self.n * T::PARTS).next_multiple_of(16)
    }
    /// Elements of workspace: `arrays` of U's size, `states` of x's size, the factors 2 / N and the numbers h.
    pub fn work(&self, arrays: usize, states: usize) -> usize {
        let reals = self.pitch() * (self.m * arrays + self.rows * states);
        (reals + self.m.next_multiple_of(16)).div_ceil(T::PARTS) + self.rows * self.m + 16
    }
}

/// y <- W y, or W^H y, without the last factor.
///
/// # Safety
/// The arrays have these sizes; `work` has the elements of [`Sizes::work`] for (1, 1).
pub struct Pass<T: Scalar> {
    /// U
    pub sizes: Sizes<T>,
    /// Whether W is applied, not W^H.
    pub forward: bool,
    /// The rows.
    pub y: *mut T,
    /// Workspace.
    pub work: *mut T,
}

/// Both sweeps of the gradient; y holds E x, g the cotangent of the output, and afterwards that of y.
///
/// # Safety
/// The arrays have these sizes; `work` has the elements of [`Sizes::work`] for (2, 2).
pub struct Pull<T: Scalar> {
    /// U
    pub sizes: Sizes<T>,
    /// E x
    pub y: *const T,
    /// The cotangent.
    pub g: *mut T,
    /// W x; null if not requested.
    pub c: *mut T,
    /// The gradient of U; null if not requested.
    pub u_bar: *mut T,
    /// Workspace.
    pub work: *mut T,
}

#[inline(always)]
pub(crate) unsafe fn total<S: Simd>(v: S::V) -> (S::R, S::R) {
    let mut lanes = [S::R::zero(); 16];
    // SAFETY: no vector has more than 16 lanes.
    unsafe { S::store(lanes.as_mut_ptr(), v) };
    let mut width = S::LANES;
    while width > 2 {
        width /= 2;
        for i in 0..width {
            let upper = lanes[i + width];
            lanes[i] += upper;
        }
    }
    (lanes[0], lanes[1])
}

/// u^H y; both padded with zeros to `pitch` numbers.
#[inline(always)]
pub(crate) unsafe fn inner<T: Scalar, S: Simd<R = T::Real>>(
    u: *const S::R,
    y: *const S::R,
    pitch: usize,
) -> T {
    // SAFETY: both rows hold `pitch` numbers, a multiple of every vector's width.
    unsafe {
        let zero = S::zero();
        let (mut same, mut cross) = ([zero; 4], [zero; 4]);
        let (step, whole) = (4 * S::LANES, pitch / (4 * S::LANES) * 4 * S::LANES);
        for v in (0..whole).step_by(step) {
            for i in 0..4 {
                let at = v + i * S::LANES;
                let (u, y) = (S::load(u.add(at)), S::load(y.add(at)));
                same[i] = S::mul_add(u, y, same[i]);
                if T::PARTS == 2 {
                    cross[i] = S::mul_add(u, S::swap_pairs(y), cross[i]);
                }
            }
        }
        for at in (whole..pitch).step_by(S::LANES) {
            let (u, y) = (S::load(u.add(at)), S::load(y.add(at)));
            same[0] = S::mul_add(u, y, same[0]);
            if T::PARTS == 2 {
                cross[0] = S::mul_add(u, S::swap_pairs(y), cross[0]);
            }
        }
        let (even, odd) = total::<S>(S::add(S::add(same[0], same[1]), S::add(same[2], same[3])));
        let re = even + odd;
        if T::PARTS == 1 {
            return T::real(re);
        }
        // even lanes u_re y_im, odd lanes u_im y_re
        let (even, odd) = total::<S>(S::add(S::add(cross[0], cross[1]), S::add(cross[2], cross[3])));
        T::new(re, even - odd)
    }
}

/// y <- y + f u
#[inline(always)]
unsafe fn add_to<T: Scalar, S: Simd<R = T::Real>>(u: *const S::R, f: T, y: *mut S::R, pitch: usize) {
    // SAFETY: both rows hold `pitch` numbers, a multiple of every vector's width.
    unsafe {
        for v in (0..pitch).step_by(S::LANES) {
            S::store(y.add(v), scaled_add::<T, S>(S::load(u.add(v)), f, S::load(y.add(v))));
        }
    }
}

/// Copies packed rows of n elements to rows of `pitch` numbers, padded with zeros.
#[inline(always)]
unsafe fn spread<T: Scalar, S: Simd<R = T::Real>>(x: *const T, q: &Sizes<T>, out: *mut S::R) {
    let (width, pitch) = (q.n * T::PARTS, q.pitch());
    // SAFETY: both arrays have the sizes of `q`.
    unsafe {
        for r in 0..q.rows {
            let row = x.add(r * q.n).cast::<S::R>();
            for v in (0..pitch).step_by(S::LANES) {
                let live = width.saturating_sub(v);
                let value = if live > 0 { S::load_n(row.add(v), live) } else { S::zero() };
                S::store(out.add(r * pitch + v), value);
            }
        }
    }
}

/// The inverse of [`spread`].
#[inline(always)]
unsafe fn gather<T: Scalar>(x: *const T::Real, q: &Sizes<T>, out: *mut T) {
    for r in 0..q.rows {
        // SAFETY: both arrays have the sizes of `q`.
        unsafe { std::ptr::copy_nonoverlapping(x.add(r * q.pitch()).cast::<T>(), out.add(r * q.n), q.n) };
    }
}

/// a f + b, f a number of T
#[inline(always)]
pub(crate) unsafe fn scaled_add<T: Scalar, S: Simd<R = T::Real>>(a: S::V, f: T, b: S::V) -> S::V {
    // SAFETY: arithmetic only.
    unsafe {
        let mut sum = S::mul_add(a, S::splat(f.re()), b);
        if T::PARTS == 2 {
            sum = S::mul_add(S::swap_pairs(a), S::alternate(-f.im(), f.im()), sum);
        }
        sum
    }
}

/// Columns of U as padded rows, and the factor 2 / N of each.
#[inline(always)]
unsafe fn transposed<T: Scalar, S: Simd<R = T::Real>>(q: &Sizes<T>, ut: *mut S::R, factors: *mut S::R) {
    let (n, m, pitch, width) = (q.n, q.m, q.pitch(), q.n * T::PARTS);
    // SAFETY: `ut` holds m rows of `pitch`, `factors` m numbers.
    unsafe {
        for j in 0..m {
            for at in width..pitch {
                *ut.add(j * pitch + at) = S::R::zero();
            }
        }
        flip::<T, S>(q.u, m, n, m, ut.cast(), pitch / T::PARTS);
        for j in 0..m {
            let u = ut.add(j * pitch);
            let norm = inner::<T, S>(u, u, pitch).re();
            *factors.add(j) = S::R::of(2.0) / norm;
        }
    }
}

/// Transposes n x m elements of `a` into m x n of `out`.
#[inline(always)]
unsafe fn flip<T: Scalar, S: Simd<R = T::Real>>(
    a: *const T,
    a_rows: usize,
    n: usize,
    m: usize,
    out: *mut T,
    out_rows: usize,
) {
    const BLOCK: usize = 16;
    // SAFETY: `a` has n x m elements, `out` m x n.
    unsafe {
        for i0 in (0..n).step_by(BLOCK) {
            for j0 in (0..m).step_by(BLOCK) {
                let (i1, j1) = ((i0 + BLOCK).min(n), (j0 + BLOCK).min(m));
                if T::PARTS == 1 {
                    let (a, out) = (a.cast::<S::R>(), out.cast::<S::R>());
                    for i in (i0..i1).step_by(S::LANES) {
                        for j in (j0..j1).step_by(S::LANES) {
                            let (deep, live) = ((i1 - i).min(S::LANES), (j1 - j).min(S::LANES));
                            let mut block = [S::zero(); 16];
                            for r in 0..deep {
                                block[r] = S::load_n(a.add((i + r) * a_rows + j), live);
                            }
                            S::transpose(&mut block[..S::LANES]);
                            for r in 0..live {
                                S::store_n(out.add((j + r) * out_rows + i), block[r], deep);
                            }
                        }
                    }
                } else {
                    let side = S::LANES / 2;
                    for i in (i0..i1).step_by(side) {
                        for j in (j0..j1).step_by(side) {
                            let (deep, live) = ((i1 - i).min(side), (j1 - j).min(side));
                            let mut block = [S::zero(); 8];
                            for r in 0..deep {
                                block[r] = S::load_n(a.add((i + r) * a_rows + j).cast(), 2 * live);
                            }
                            S::transpose_pairs(&mut block[..side]);
                            for r in 0..live {
                                S::store_n(out.add((j + r) * out_rows + i).cast(), block[r], 2 * deep);
                            }
                        }
                    }
                }
            }
        }
    }
}

kernel!(Pass::<T>, |&Pass { sizes: q, forward, y, work }| {
    let (m, pitch) = (q.m, q.pitch());
    let ut = work.cast::<S::R>();
    let states = ut.wrapping_add(m * pitch);
    let factors = states.wrapping_add(q.rows * pitch);
    // SAFETY: the arrays have the sizes of `Sizes::work`; y holds rows of n elements.
    unsafe {
        transposed::<T, S>(&q, ut, factors);
        spread::<T, S>(y, &q, states);
        for step in 0..m {
            let j = if forward { m - 1 - step } else { step };
            let (u, factor) = (ut.add(j * pitch), *factors.add(j));
            for r in 0..q.rows {
                let y = states.add(r * pitch);
                let f = inner::<T, S>(u, y, pitch).scale(factor);
                add_to::<T, S>(u, -f, y, pitch);
            }
        }
        gather(states, &q, y);
    }
});

kernel!(Pull::<T>, |&Pull { sizes: q, y, g, c, u_bar, work }| {
    let (n, m, pitch, rows) = (q.n, q.m, q.pitch(), q.rows);
    let ut = work.cast::<S::R>();
    let bar = ut.wrapping_add(m * pitch);
    let states = bar.wrapping_add(m * pitch);
    let cotangents = states.wrapping_add(rows * pitch);
    let factors = cotangents.wrapping_add(rows * pitch);
    let h = factors.wrapping_add(m.next_multiple_of(16)).cast::<T>();
    // SAFETY: the arrays have the sizes of `Sizes::work`; y, g and c hold rows of n elements.
    unsafe {
        transposed::<T, S>(&q, ut, factors);
        spread::<T, S>(y, &q, states);
        spread::<T, S>(g, &q, cotangents);
        for j in (0..m).rev() {
            let (u, factor) = (ut.add(j * pitch), *factors.add(j));
            for r in 0..rows {
                let y = states.add(r * pitch);
                let f = inner::<T, S>(u, y, pitch).scale(factor);
                *h.add(j * rows + r) = f;
                add_to::<T, S>(u, -f, y, pitch);
            }
        }
        if !c.is_null() {
            gather(states, &q, c);
        }
        for j in 0..m {
            let (u, factor) = (ut.add(j * pitch), *factors.add(j));
            for r in 0..rows {
                let (g, state, bar) = (cotangents.add(r * pitch), states.add(r * pitch), bar.add(j * pitch));
                let c = inner::<T, S>(u, g, pitch).scale(factor);
                let h = *h.add(j * rows + r);
                if u_bar.is_null() {
                    add_to::<T, S>(u, -c, g, pitch);
                    continue;
                }
                let turn = T::new(S::R::zero(), -(c.conj() * h).im());
                for v in (0..pitch).step_by(S::LANES) {
                    let (u, own, before) = (S::load(u.add(v)), S::load(g.add(v)), S::load(state.add(v)));
                    let sum = if r == 0 { S::zero() } else { S::load(bar.add(v)) };
                    let sum = scaled_add::<T, S>(own, -h.conj(), sum);
                    let mut sum = scaled_add::<T, S>(before, -c.conj(), sum);
                    if T::PARTS == 2 {
                        sum = scaled_add::<T, S>(u, turn, sum);
                    }
                    S::store(bar.add(v), sum);
                    S::store(g.add(v), scaled_add::<T, S>(u, -c, own));
                    S::store(state.add(v), scaled_add::<T, S>(u, h, before));
                }
            }
        }
        gather(cotangents, &q, g);
        if !u_bar.is_null() {
            flip::<T, S>(bar.cast(), pitch / T::PARTS, m, n, u_bar, m);
        }
    }
});
