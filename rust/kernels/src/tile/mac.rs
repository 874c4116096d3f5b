//! The loop over k of a tile: acc (MR x NV vectors) += A (one number broadcast at a time) B (packed rows of NV vectors).

use super::Term;
use crate::simd::Simd;

/// The same pointer, with its origin hidden from the compiler, which would otherwise recompute it from the row of the
/// tile, with a comparison and a multiplication, in every step of k (5 to 10 % of a product).
#[inline(always)]
#[allow(clippy::pointers_in_nomem_asm_block, reason = "there is no instruction that could follow it")]
fn settled<R>(p: *const R) -> *const R {
    #[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
    {
        let mut p = p;
        // SAFETY: emits no instruction.
        unsafe { std::arch::asm!("/* {0} */", inout(reg) p, options(pure, nomem, nostack, preserves_flags)) };
        p
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    p
}

/// Steps of k that share one computation of the row addresses.
const DEEP: usize = 4;

/// t[i][j] += a[i rows] b[j LANES]
#[inline(always)]
unsafe fn step<S: Simd, const MR: usize, const NV: usize>(
    t: &mut [[S::V; NV]; MR],
    a: *const S::R,
    rows: usize,
    b: *const S::R,
) {
    // SAFETY: a has MR numbers, b NV vectors.
    unsafe {
        let mut v = [S::zero(); NV];
        for j in 0..NV {
            v[j] = S::held(S::load(b.add(j * S::LANES)));
        }
        // first the numbers of A, for as many rows as there are registers left
        let free = (S::REGISTERS - 1).saturating_sub((MR + 1) * NV).clamp(1, MR);
        let each = MR.div_ceil(MR.div_ceil(free));
        let mut x = [S::zero(); MR];
        for from in (0..MR).step_by(each) {
            for i in from..(from + each).min(MR) {
                x[i] = S::factor(a.add(i * rows));
            }
            for i in from..(from + each).min(MR) {
                for j in 0..NV {
                    S::accumulate(&mut t[i][j], x[i], v[j]);
                }
            }
        }
    }
}

/// [`DEEP`] steps, A with the given strides of rows, odd steps and pairs of steps.
#[inline(always)]
pub(crate) unsafe fn four_steps<S: Simd, const MR: usize, const NV: usize>(
    t: &mut [[S::V; NV]; MR],
    a: *const S::R,
    (rows, inner, outer): (usize, usize, usize),
    b: *const S::R,
) {
    let at = |u: usize| a.wrapping_add(u % 2 * inner + u / 2 * outer);
    // SAFETY: the caller's A and B have these steps.
    unsafe {
        // not a loop, because the compiler does not unroll it
        step::<S, MR, NV>(t, a, rows, b);
        step::<S, MR, NV>(t, at(1), rows, b.wrapping_add(NV * S::LANES));
        step::<S, MR, NV>(t, at(2), rows, b.wrapping_add(2 * NV * S::LANES));
        step::<S, MR, NV>(t, at(3), rows, b.wrapping_add(3 * NV * S::LANES));
    }
}

/// acc += A B, one step of k after another; UNIT: the numbers of a row of A are contiguous.
///
/// # Safety
/// The addressed numbers of A and B exist; the processor supports S.
#[inline(always)]
pub(super) unsafe fn mac<S: Simd, const MR: usize, const NV: usize, const UNIT: bool>(
    acc: &mut [[S::V; NV]; MR],
    term: &Term<S::R>,
) {
    let Term { rows, depth, .. } = *term;
    let (inner, outer) = if UNIT { (1, 2) } else { (term.inner, term.outer) };
    let (mut a, mut b) = (settled(term.a), settled(term.b));
    let at = |u: usize| u % 2 * inner + u / 2 * outer;
    // SAFETY: step u of a round is at `at(u)`, before the end of A and B.
    unsafe {
        // A local copy: through the reference the accumulators would be kept in memory (a third of the speed).
        let mut t = *acc;
        for _ in 0..depth / DEEP {
            if UNIT {
                S::four_steps(&mut t, a, rows, b);
            } else {
                four_steps::<S, MR, NV>(&mut t, a, (rows, inner, outer), b);
            }
            a = a.wrapping_add(DEEP / 2 * outer);
            b = b.wrapping_add(DEEP * NV * S::LANES);
        }
        for u in 0..depth % DEEP {
            step::<S, MR, NV>(&mut t, a.wrapping_add(at(u)), rows, b.wrapping_add(u * NV * S::LANES));
        }
        *acc = t;
    }
}

/// [`mac`] with k unrolled by U into independent accumulators, summed pairwise at the end.
///
/// # Safety
/// As [`mac`].
#[inline(always)]
pub(super) unsafe fn mac_few<S: Simd, const MR: usize, const NV: usize, const U: usize>(
    acc: &mut [[S::V; NV]; MR],
    term: &Term<S::R>,
) {
    let Term { rows, inner, outer, depth, .. } = *term;
    let (mut a, mut b) = (settled(term.a), settled(term.b));
    let at = |u: usize| u % 2 * inner + u / 2 * outer;
    // SAFETY: the addressed numbers of A and B exist (contract of `mac`).
    unsafe {
        let mut t = [[[S::zero(); NV]; MR]; U];
        for _ in 0..depth / U {
            for u in 0..U {
                let (a, b) = (a.wrapping_add(at(u)), b.wrapping_add(u * NV * S::LANES));
                for i in 0..MR {
                    let x = S::splat(*a.add(i * rows));
                    for j in 0..NV {
                        t[u][i][j] = S::mul_add(x, S::load(b.add(j * S::LANES)), t[u][i][j]);
                    }
                }
            }
            a = a.wrapping_add(U / 2 * outer);
            b = b.wrapping_add(U * NV * S::LANES);
        }
        for u in 0..depth % U {
            let (a, b) = (a.wrapping_add(at(u)), b.wrapping_add(u * NV * S::LANES));
            for i in 0..MR {
                let x = S::splat(*a.add(i * rows));
                for j in 0..NV {
                    t[0][i][j] = S::mul_add(x, S::load(b.add(j * S::LANES)), t[0][i][j]);
                }
            }
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
