//! The register tile: acc (MR x NV vectors) += A (MR rows, one number broadcast at a time) B (packed rows of NV vectors).
//!
//! Every element of the result is one chain of fused multiply-adds over k, whatever the height of the tile it falls
//! in, so results do not depend on how rows are dealt to tiles or threads. Only when the *whole* problem has few rows is
//! k unrolled into independent chains ([`mac_few`]), to hide the latency of the multiply-add.

use super::simd::Simd;

/// Tallest tile of a product on any instruction set; [`Simd::ROWS`] is the tallest on one.
pub const MAX_ROWS: usize = 8;

/// The pointer, of whose origin the compiler knows nothing any more: it would otherwise find it again from the row of the
/// tile, with a comparison and a multiplication, in every step of k (5 to 10 % of a product).
#[inline(always)]
#[allow(clippy::pointers_in_nomem_asm_block, reason = "there is no instruction that could follow it")]
fn settled<R>(p: *const R) -> *const R {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    {
        let mut p = p;
        // SAFETY: no instruction at all.
        unsafe { std::arch::asm!("/* {0} */", inout(reg) p, options(pure, nomem, nostack, preserves_flags)) };
        p
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    p
}

/// Steps of k for which the addresses of the rows are computed once. (The same sums, and less to compile for unit tests,
/// without.)
const DEEP: usize = if cfg!(debug_assertions) { 1 } else { 4 };

/// t[i][j] += a[i rs] b[j LANES]
#[inline(always)]
unsafe fn step<S: Simd, const MR: usize, const NV: usize>(
    t: &mut [[S::V; NV]; MR],
    a: *const S::R,
    rs: usize,
    b: *const S::R,
) {
    // SAFETY: the caller vouches for the addresses.
    unsafe {
        let mut v = [S::zero(); NV];
        for j in 0..NV {
            v[j] = S::held(S::load(b.add(j * S::LANES)));
        }
        // the numbers of A first, of as many rows as registers are left for
        let free = (S::REGISTERS - 1).saturating_sub((MR + 1) * NV).clamp(1, MR);
        let each = MR.div_ceil(MR.div_ceil(free));
        let mut x = [S::zero(); MR];
        for from in (0..MR).step_by(each) {
            for i in from..(from + each).min(MR) {
                x[i] = S::held(S::splat(*a.add(i * rs)));
            }
            for i in from..(from + each).min(MR) {
                for j in 0..NV {
                    t[i][j] = S::mul_add(x[i], v[j], t[i][j]);
                }
            }
        }
    }
}

/// acc[i][j] += sum_p a[i rs + p cs] b[p bs + j LANES], p < k.
///
/// # Safety
/// The addressed elements of a and b exist; the instruction set of S exists.
#[inline(always)]
pub unsafe fn mac<S: Simd, const MR: usize, const NV: usize>(
    acc: &mut [[S::V; NV]; MR],
    k: usize,
    a: *const S::R,
    rs: usize,
    cs: usize,
    b: *const S::R,
    bs: usize,
) {
    // SAFETY: the caller vouches for the addresses.
    unsafe {
        // A local copy: through the reference the accumulators would live in memory (a third of the speed).
        let mut t = *acc;
        let (mut a, mut b) = (settled(a), settled(b));
        for _ in 0..k / DEEP {
            for u in 0..DEEP {
                step::<S, MR, NV>(&mut t, a.wrapping_add(u * cs), rs, b.wrapping_add(u * bs));
            }
            a = a.wrapping_add(DEEP * cs);
            b = b.wrapping_add(DEEP * bs);
        }
        for _ in 0..k % DEEP {
            step::<S, MR, NV>(&mut t, a, rs, b);
            a = a.wrapping_add(cs);
            b = b.wrapping_add(bs);
        }
        *acc = t;
    }
}

/// [`mac`] where step p of k reads the two real numbers (re, im) of a complex element of A, at a[i rs + p cs + {0, 1}],
/// against rows 2 p and 2 p + 1 of B.
///
/// # Safety
/// As [`mac`].
#[inline(always)]
pub unsafe fn mac_pairs<S: Simd, const MR: usize, const NV: usize>(
    acc: &mut [[S::V; NV]; MR],
    k: usize,
    a: *const S::R,
    rs: usize,
    cs: usize,
    b: *const S::R,
    bs: usize,
) {
    // SAFETY: the caller vouches for the addresses.
    unsafe {
        let mut t = *acc;
        let (mut a, mut b) = (settled(a), settled(b));
        for _ in 0..k {
            for part in 0..2 {
                let mut v = [S::zero(); NV];
                for j in 0..NV {
                    v[j] = S::load(b.add(j * S::LANES));
                }
                for i in 0..MR {
                    let x = S::splat(*a.add(i * rs + part));
                    for j in 0..NV {
                        t[i][j] = S::mul_add(x, v[j], t[i][j]);
                    }
                }
                b = b.wrapping_add(bs);
            }
            a = a.wrapping_add(cs);
        }
        *acc = t;
    }
}

/// [`mac`] with k unrolled by U into independent accumulators, summed pairwise at the end.
///
/// # Safety
/// As [`mac`].
#[inline(always)]
pub unsafe fn mac_few<S: Simd, const MR: usize, const NV: usize, const U: usize>(
    acc: &mut [[S::V; NV]; MR],
    k: usize,
    a: *const S::R,
    rs: usize,
    cs: usize,
    b: *const S::R,
    bs: usize,
) {
    // SAFETY: the caller vouches for the addresses.
    unsafe {
        let mut t = [[[S::zero(); NV]; MR]; U];
        let (mut a, mut b) = (settled(a), settled(b));
        for _ in 0..k / U {
            for u in 0..U {
                for i in 0..MR {
                    let x = S::splat(*a.add(i * rs + u * cs));
                    for j in 0..NV {
                        t[u][i][j] = S::mul_add(x, S::load(b.add(u * bs + j * S::LANES)), t[u][i][j]);
                    }
                }
            }
            a = a.wrapping_add(U * cs);
            b = b.wrapping_add(U * bs);
        }
        for _ in 0..k % U {
            for i in 0..MR {
                let x = S::splat(*a.add(i * rs));
                for j in 0..NV {
                    t[0][i][j] = S::mul_add(x, S::load(b.add(j * S::LANES)), t[0][i][j]);
                }
            }
            a = a.wrapping_add(cs);
            b = b.wrapping_add(bs);
        }
        let mut width = U;
        while width > 1 {
            width /= 2;
            for u in 0..width {
                for i in 0..MR {
                    for j in 0..NV {
                        t[u][i][j] = S::add(t[u][i][j], t[u + width][i][j]);
                    }
                }
            }
        }
        for i in 0..MR {
            for j in 0..NV {
                acc[i][j] = S::add(acc[i][j], t[0][i][j]);
            }
        }
    }
}

/// Rows cut into as few tiles of at most `max` rows as possible, as equal as possible: (first row, height) of each.
#[inline(always)]
pub fn tiles(rows: usize, max: usize) -> impl Iterator<Item = (usize, usize)> {
    let count = rows.div_ceil(max);
    // no rows: no tiles, whatever their height
    let (base, more) = (rows / count.max(1), rows % count.max(1));
    (0..count).map(move |i| (i * base + i.min(more), base + usize::from(i < more)))
}

/// Calls `$f::<S, MR, NV>(args)` for a row count of 1..=S::ROWS known at run time and NV of 2 (`$two`) or 1; with `tall` at
/// the end also for up to S::STEP_ROWS.
#[macro_export]
macro_rules! by_tile {
    ($rows:expr, $two:expr, $f:ident, $S:ty; $($arg:expr),*; tall) => {
        match ($rows, $two) {
            (9, true) if <$S>::STEP_ROWS >= 9 => $f::<$S, 9, 2>($($arg),*),
            (10, true) if <$S>::STEP_ROWS >= 10 => $f::<$S, 10, 2>($($arg),*),
            (9, false) if <$S>::STEP_ROWS >= 9 => $f::<$S, 9, 1>($($arg),*),
            (10, false) if <$S>::STEP_ROWS >= 10 => $f::<$S, 10, 1>($($arg),*),
            (rows, two) => $crate::by_tile!(rows, two, $f, $S; $($arg),*),
        }
    };
    ($rows:expr, $two:expr, $f:ident, $S:ty; $($arg:expr),*) => {
        match ($rows, $two) {
            (1, true) => $f::<$S, 1, 2>($($arg),*),
            (2, true) => $f::<$S, 2, 2>($($arg),*),
            (3, true) => $f::<$S, 3, 2>($($arg),*),
            (4, true) => $f::<$S, 4, 2>($($arg),*),
            (5, true) => $f::<$S, 5, 2>($($arg),*),
            (7, true) if <$S>::ROWS >= 7 => $f::<$S, 7, 2>($($arg),*),
            (8, true) if <$S>::ROWS >= 8 => $f::<$S, 8, 2>($($arg),*),
            (_, true) => $f::<$S, 6, 2>($($arg),*),
            (1, false) => $f::<$S, 1, 1>($($arg),*),
            (2, false) => $f::<$S, 2, 1>($($arg),*),
            (3, false) => $f::<$S, 3, 1>($($arg),*),
            (4, false) => $f::<$S, 4, 1>($($arg),*),
            (5, false) => $f::<$S, 5, 1>($($arg),*),
            (7, false) if <$S>::ROWS >= 7 => $f::<$S, 7, 1>($($arg),*),
            (8, false) if <$S>::ROWS >= 8 => $f::<$S, 8, 1>($($arg),*),
            (_, false) => $f::<$S, 6, 1>($($arg),*),
        }
    };
}
