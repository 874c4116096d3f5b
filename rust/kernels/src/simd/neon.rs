//! Two 128-bit registers as one vector: 8 lanes of f32, 4 of f64, sixteen such vectors. So a tile of 6 rows and two
//! vectors has 24 independent sums, as many as the multiply-add needs on four units, and leaves 8 of the 32 registers
//! to the operands. Tails are loads and stores of one, two and three numbers; there are no masked ones.
#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "each block is one intrinsic or a few; the instruction set and the pointers are the contract of the trait Simd"
)]

use crate::dispatch::{Kernel, on_neon};
use crate::simd::Simd;
use std::arch::aarch64::*;
use std::arch::asm;
use std::marker::PhantomData;

/// The vectors that every aarch64 processor has, with fused multiply-add.
#[derive(Clone, Copy)]
pub struct Neon<R>(PhantomData<R>);

macro_rules! lanes {
    ($r:ident, $v:ident, $lanes:literal, [$($from:literal: $($lane:literal)+),+], $dup:ident, $ld1:ident, $st1:ident,
     $load_n:ident, $store_n:ident, $add:ident, $sub:ident, $mul:ident, $div:ident, $fma:ident, $fms:ident,
     $fma_lane:literal, $abs:ident, $sqrt:ident, $clt:ident, $cgt:ident, $ceq:ident, $bsl:ident, $sign:expr,
     $zip1:ident, $swap:ident, $round:ident, $exp2:ident, $bytes:ident, $of_bytes:ident, $transpose:ident,
     $pairs:ident) => {
        // SAFETY: every processor of the target has NEON; callers guarantee valid pointers.
        unsafe impl Simd for Neon<$r> {
            type R = $r;
            type V = [$v; 2];
            type Index = [uint8x16_t; 2];
            const LANES: usize = $lanes;
            const REGISTERS: usize = 16;
            const ROWS: usize = 6;
            const STEP_ROWS: usize = 6;

            methods! {
                splat(x: $r) -> [$v; 2] = [$dup(x); 2];
                alternate(even: $r, odd: $r) -> [$v; 2] = [$zip1($dup(even), $dup(odd)); 2];
                load(p: *const $r) -> [$v; 2] = [$ld1(p), $ld1(p.add($lanes / 2))];
                add(a: [$v; 2], b: [$v; 2]) -> [$v; 2] = [$add(a[0], b[0]), $add(a[1], b[1])];
                sub(a: [$v; 2], b: [$v; 2]) -> [$v; 2] = [$sub(a[0], b[0]), $sub(a[1], b[1])];
                mul(a: [$v; 2], b: [$v; 2]) -> [$v; 2] = [$mul(a[0], b[0]), $mul(a[1], b[1])];
                div(a: [$v; 2], b: [$v; 2]) -> [$v; 2] = [$div(a[0], b[0]), $div(a[1], b[1])];
                mul_add(a: [$v; 2], b: [$v; 2], c: [$v; 2]) -> [$v; 2] = [$fma(c[0], a[0], b[0]), $fma(c[1], a[1], b[1])];
                neg_mul_add(a: [$v; 2], b: [$v; 2], c: [$v; 2]) -> [$v; 2] = [$fms(c[0], a[0], b[0]), $fms(c[1], a[1], b[1])];
                abs(a: [$v; 2]) -> [$v; 2] = [$abs(a[0]), $abs(a[1])];
                sqrt(a: [$v; 2]) -> [$v; 2] = [$sqrt(a[0]), $sqrt(a[1])];
                copysign(magnitude: [$v; 2], sign: [$v; 2]) -> [$v; 2] = [$bsl($sign, sign[0], magnitude[0]), $bsl($sign, sign[1], magnitude[1])];
                select_gt(a: [$v; 2], b: [$v; 2], yes: [$v; 2], no: [$v; 2]) -> [$v; 2] = [$bsl($cgt(a[0], b[0]), yes[0], no[0]), $bsl($cgt(a[1], b[1]), yes[1], no[1])];
                select_eq(a: [$v; 2], b: [$v; 2], yes: [$v; 2], no: [$v; 2]) -> [$v; 2] = [$bsl($ceq(a[0], b[0]), yes[0], no[0]), $bsl($ceq(a[1], b[1]), yes[1], no[1])];
                swap_pairs(a: [$v; 2]) -> [$v; 2] = [$swap(a[0]), $swap(a[1])];
                round(a: [$v; 2]) -> [$v; 2] = [$round(a[0]), $round(a[1])];
                exp2_int(k: [$v; 2]) -> [$v; 2] = [$exp2(k[0]), $exp2(k[1])];
                transpose(rows: &mut [[$v; 2]]) = $transpose(rows);
                transpose_pairs(rows: &mut [[$v; 2]]) = $pairs(rows);
                prefetch(p: *const $r) = asm!("prfm pldl1keep, [{0}]", in(reg) p, options(nostack, preserves_flags, readonly));
                store(p: *mut $r, v: [$v; 2]) = {
                    $st1(p, v[0]);
                    $st1(p.add($lanes / 2), v[1])
                };
                permute(a: [$v; 2], index: [uint8x16_t; 2]) -> [$v; 2] = {
                    let bytes = uint8x16x2_t($bytes(a[0]), $bytes(a[1]));
                    [$of_bytes(vqtbl2q_u8(bytes, index[0])), $of_bytes(vqtbl2q_u8(bytes, index[1]))]
                };
            }

            #[inline(always)]
            unsafe fn factor(p: *const $r) -> [$v; 2] {
                // Keeps the compiler from loading into all lanes (LD1R), which takes an address without offset and, on
                // many processors, a vector unit too: multiply-adds by a lane need the scalar load alone.
                unsafe {
                    let mut x = *p;
                    asm!("/* {0:v} */", inout(vreg) x, options(pure, nomem, nostack, preserves_flags));
                    Self::splat(x)
                }
            }
            #[inline(always)]
            unsafe fn load_n(p: *const $r, n: usize) -> [$v; 2] {
                if n >= $lanes {
                    return unsafe { Self::load(p) };
                }
                let more = n.saturating_sub($lanes / 2);
                unsafe { [$load_n(p, n), $load_n(p.wrapping_add($lanes / 2), more)] }
            }
            #[inline(always)]
            unsafe fn store_n(p: *mut $r, v: [$v; 2], n: usize) {
                if n >= $lanes {
                    return unsafe { Self::store(p, v) };
                }
                unsafe {
                    $store_n(p, v[0], n);
                    $store_n(p.wrapping_add($lanes / 2), v[1], n.saturating_sub($lanes / 2))
                }
            }
            #[inline(always)]
            unsafe fn min(a: [$v; 2], b: [$v; 2]) -> [$v; 2] {
                // not the instruction for a minimum, which returns NaN if either is
                unsafe { [$bsl($clt(a[0], b[0]), a[0], b[0]), $bsl($clt(a[1], b[1]), a[1], b[1])] }
            }
            #[inline(always)]
            unsafe fn index(of: impl Fn(usize) -> usize) -> [uint8x16_t; 2] {
                // in bytes of both registers
                let unit = 32 / $lanes;
                let bytes: [u8; 32] = std::array::from_fn(|k| (of(k / unit) % $lanes * unit + k % unit) as u8);
                unsafe { [vld1q_u8(bytes.as_ptr()), vld1q_u8(bytes.as_ptr().add(16))] }
            }
            #[inline(always)]
            unsafe fn four_steps<const MR: usize, const NV: usize>(
                t: &mut [[[$v; 2]; NV]; MR],
                a: *const $r,
                rows: usize,
                b: *const $r,
            ) {
                unsafe {
                    $(
                        // as many steps as a register of numbers of A has lanes
                        let mut x = [$dup(0.0); MR];
                        for i in 0..MR {
                            x[i] = $ld1(a.add(i * rows + $from));
                        }
                        $(
                            for j in 0..NV {
                                let v = Self::load(b.add((($from + $lane) * NV + j) * $lanes));
                                for i in 0..MR {
                                    for half in 0..2 {
                                        // Not `pure`, so that these and the loads of B keep their order: the sums, A and
                                        // a vector of B are all that the registers hold.
                                        asm!($fma_lane, inout(vreg) t[i][j][half], in(vreg) v[half], in(vreg) x[i],
                                             const $lane, options(nomem, nostack, preserves_flags));
                                    }
                                }
                            }
                        )+
                    )+
                }
            }
            #[inline(always)]
            unsafe fn outlined<O, K: Kernel<$r, O>>(kernel: &K) -> O {
                unsafe { on_neon(kernel) }
            }
        }
    };
}

/// The first n of four numbers, the rest zero.
#[inline(always)]
unsafe fn load_ps(p: *const f32, n: usize) -> float32x4_t {
    unsafe {
        let zero = vdup_n_f32(0.0);
        match n {
            0 => vcombine_f32(zero, zero),
            1 => vcombine_f32(vset_lane_f32::<0>(*p, zero), zero),
            2 => vcombine_f32(vld1_f32(p), zero),
            3 => vcombine_f32(vld1_f32(p), vset_lane_f32::<0>(*p.add(2), zero)),
            _ => vld1q_f32(p),
        }
    }
}

/// The first n of two numbers, the rest zero.
#[inline(always)]
unsafe fn load_pd(p: *const f64, n: usize) -> float64x2_t {
    unsafe {
        match n {
            0 => vdupq_n_f64(0.0),
            1 => vsetq_lane_f64::<0>(*p, vdupq_n_f64(0.0)),
            _ => vld1q_f64(p),
        }
    }
}

#[inline(always)]
unsafe fn store_ps(p: *mut f32, v: float32x4_t, n: usize) {
    unsafe {
        match n {
            0 => {}
            1 => vst1q_lane_f32::<0>(p, v),
            2 => vst1_f32(p, vget_low_f32(v)),
            3 => {
                vst1_f32(p, vget_low_f32(v));
                vst1q_lane_f32::<2>(p.add(2), v)
            }
            _ => vst1q_f32(p, v),
        }
    }
}

#[inline(always)]
unsafe fn store_pd(p: *mut f64, v: float64x2_t, n: usize) {
    unsafe {
        match n {
            0 => {}
            1 => vst1q_lane_f64::<0>(p, v),
            _ => vst1q_f64(p, v),
        }
    }
}

#[inline(always)]
unsafe fn exp2_ps(k: float32x4_t) -> float32x4_t {
    unsafe { vreinterpretq_f32_s32(vshlq_n_s32::<23>(vaddq_s32(vcvtq_s32_f32(k), vdupq_n_s32(127)))) }
}
#[inline(always)]
unsafe fn exp2_pd(k: float64x2_t) -> float64x2_t {
    unsafe { vreinterpretq_f64_s64(vshlq_n_s64::<52>(vaddq_s64(vcvtq_s64_f64(k), vdupq_n_s64(1023)))) }
}

/// 8 x 8: blocks of 4 x 4.
#[inline(always)]
unsafe fn transpose_ps(r: &mut [[float32x4_t; 2]]) {
    unsafe {
        let mut t = [[vdupq_n_f32(0.0); 2]; 8];
        for i in 0..2 {
            for j in 0..2 {
                let [a, b, c, d] = std::array::from_fn(|k| r[4 * i + k][j]);
                let (ac, bd) = (vzip1q_f32(a, c), vzip1q_f32(b, d));
                t[4 * j][i] = vzip1q_f32(ac, bd);
                t[4 * j + 1][i] = vzip2q_f32(ac, bd);
                let (ac, bd) = (vzip2q_f32(a, c), vzip2q_f32(b, d));
                t[4 * j + 2][i] = vzip1q_f32(ac, bd);
                t[4 * j + 3][i] = vzip2q_f32(ac, bd);
            }
        }
        r.copy_from_slice(&t);
    }
}

/// 4 x 4: blocks of 2 x 2.
#[inline(always)]
unsafe fn transpose_pd(r: &mut [[float64x2_t; 2]]) {
    unsafe {
        let mut t = [[vdupq_n_f64(0.0); 2]; 4];
        for i in 0..2 {
            for j in 0..2 {
                t[2 * j][i] = vzip1q_f64(r[2 * i][j], r[2 * i + 1][j]);
                t[2 * j + 1][i] = vzip2q_f64(r[2 * i][j], r[2 * i + 1][j]);
            }
        }
        r.copy_from_slice(&t);
    }
}

/// 4 x 4 pairs of f32, moved like single f64.
#[inline(always)]
unsafe fn pairs_ps(r: &mut [[float32x4_t; 2]]) {
    unsafe {
        let mut wide = [[vdupq_n_f64(0.0); 2]; 4];
        for i in 0..4 {
            wide[i] = [vreinterpretq_f64_f32(r[i][0]), vreinterpretq_f64_f32(r[i][1])];
        }
        transpose_pd(&mut wide);
        for i in 0..4 {
            r[i] = [vreinterpretq_f32_f64(wide[i][0]), vreinterpretq_f32_f64(wide[i][1])];
        }
    }
}

/// 2 x 2 pairs of f64, each a register.
#[inline(always)]
unsafe fn pairs_pd(r: &mut [[float64x2_t; 2]]) {
    (r[0][1], r[1][0]) = (r[1][0], r[0][1]);
}

#[inline(always)]
unsafe fn swapped_pd(a: float64x2_t) -> float64x2_t {
    unsafe { vextq_f64::<1>(a, a) }
}

lanes! {
    f32, float32x4_t, 8, [0: 0 1 2 3], vdupq_n_f32, vld1q_f32, vst1q_f32, load_ps, store_ps, vaddq_f32,
    vsubq_f32, vmulq_f32, vdivq_f32, vfmaq_f32, vfmsq_f32, "fmla {0:v}.4s, {1:v}.4s, {2:v}.s[{3}]",
    vabsq_f32, vsqrtq_f32, vcltq_f32, vcgtq_f32, vceqq_f32, vbslq_f32, vdupq_n_u32(1 << 31), vzip1q_f32,
    vrev64q_f32, vrndnq_f32, exp2_ps, vreinterpretq_u8_f32, vreinterpretq_f32_u8, transpose_ps, pairs_ps
}
lanes! {
    f64, float64x2_t, 4, [0: 0 1, 2: 0 1], vdupq_n_f64, vld1q_f64, vst1q_f64, load_pd, store_pd, vaddq_f64,
    vsubq_f64, vmulq_f64, vdivq_f64, vfmaq_f64, vfmsq_f64, "fmla {0:v}.2d, {1:v}.2d, {2:v}.d[{3}]",
    vabsq_f64, vsqrtq_f64, vcltq_f64, vcgtq_f64, vceqq_f64, vbslq_f64, vdupq_n_u64(1 << 63), vzip1q_f64,
    swapped_pd, vrndnq_f64, exp2_pd, vreinterpretq_u8_f64, vreinterpretq_f64_u8, transpose_pd, pairs_pd
}
