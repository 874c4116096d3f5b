//! 256-bit vectors with fused multiply-add: 8 lanes of f32, 4 of f64. Tails are masked loads and stores.
#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "each block is one intrinsic or a few; the instruction set and the pointers are the contract of the trait Simd"
)]

use crate::dispatch::{Kernel, on_avx2};
use crate::simd::Simd;
use std::arch::asm;
use std::arch::x86_64::*;
use std::marker::PhantomData;

/// AVX2 and FMA.
#[derive(Clone, Copy)]
pub struct Avx2<R>(PhantomData<R>);

/// Sign bits of the first n of 8 (f32) or 4 (f64) lanes: a window into ones followed by zeros.
static MASK: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];

#[inline(always)]
unsafe fn mask_ps(n: usize) -> __m256i {
    unsafe { _mm256_loadu_si256(MASK.as_ptr().add(8 - n.min(8)).cast()) }
}
#[inline(always)]
unsafe fn mask_pd(n: usize) -> __m256i {
    unsafe { _mm256_loadu_si256(MASK.as_ptr().add(8 - 2 * n.min(4)).cast()) }
}

macro_rules! lanes {
    ($r:ident, $v:ident, $lanes:literal, $fma_in_place:literal, $maskof:ident, $set1:ident, $loadu:ident, $storeu:ident, $maskload:ident,
     $maskstore:ident, $add:ident, $sub:ident, $mul:ident, $div:ident, $fmadd:ident, $fnmadd:ident, $sqrt:ident,
     $min:ident, $and:ident, $andnot:ident, $or:ident, $cmp:ident, $blendv:ident, $round:ident, $permute:ident,
     $swap:literal, $blend:ident, $odd:literal, $exp2:expr, $transpose:ident, $pairs:ident, $permuted:ident) => {
        // SAFETY: dispatch runs this type only if the instruction set was detected; callers guarantee valid pointers.
        unsafe impl Simd for Avx2<$r> {
            type R = $r;
            type V = $v;
            type Index = __m256i;
            const LANES: usize = $lanes;
            const REGISTERS: usize = 16;
            const ROWS: usize = 6;
            const STEP_ROWS: usize = 6;

            methods! {
                splat(x: $r) -> $v = $set1(x);
                alternate(even: $r, odd: $r) -> $v = $blend::<$odd>($set1(even), $set1(odd));
                load(p: *const $r) -> $v = $loadu(p);
                store(p: *mut $r, v: $v) = $storeu(p, v);
                load_n(p: *const $r, n: usize) -> $v = if n >= $lanes { $loadu(p) } else { $maskload(p, $maskof(n)) };
                store_n(p: *mut $r, v: $v, n: usize) = if n >= $lanes { $storeu(p, v) } else { $maskstore(p, $maskof(n), v) };
                add(a: $v, b: $v) -> $v = $add(a, b);
                sub(a: $v, b: $v) -> $v = $sub(a, b);
                mul(a: $v, b: $v) -> $v = $mul(a, b);
                div(a: $v, b: $v) -> $v = $div(a, b);
                mul_add(a: $v, b: $v, c: $v) -> $v = $fmadd(a, b, c);
                neg_mul_add(a: $v, b: $v, c: $v) -> $v = $fnmadd(a, b, c);
                abs(a: $v) -> $v = $andnot($set1(-0.0), a);
                sqrt(a: $v) -> $v = $sqrt(a);
                min(a: $v, b: $v) -> $v = $min(a, b);
                select_gt(a: $v, b: $v, yes: $v, no: $v) -> $v = $blendv(no, yes, $cmp::<_CMP_GT_OQ>(a, b));
                select_eq(a: $v, b: $v, yes: $v, no: $v) -> $v = $blendv(no, yes, $cmp::<_CMP_EQ_OQ>(a, b));
                swap_pairs(a: $v) -> $v = $permute::<$swap>(a);
                permute(a: $v, index: __m256i) -> $v = $permuted(a, index);
                round(a: $v) -> $v = $round::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(a);
                exp2_int(k: $v) -> $v = $exp2(k);
                transpose(rows: &mut [$v]) = $transpose(rows);
                transpose_pairs(rows: &mut [$v]) = $pairs(rows);
                prefetch(p: *const $r) = _mm_prefetch::<_MM_HINT_T0>(p.cast());
                copysign(magnitude: $v, sign: $v) -> $v = {
                    let bit = $set1(-0.0);
                    $or($andnot(bit, magnitude), $and(bit, sign))
                };
            }

            #[inline(always)]
            unsafe fn accumulate(acc: &mut $v, a: $v, b: $v) {
                #[inline]
                #[target_feature(enable = "avx2,fma")]
                unsafe fn in_place(mut acc: $v, a: $v, b: $v) -> $v {
                    unsafe {
                        asm!($fma_in_place, inout(ymm_reg) acc, in(ymm_reg) a, in(ymm_reg) b,
                             options(pure, nomem, nostack, preserves_flags))
                    };
                    acc
                }
                *acc = unsafe { in_place(*acc, a, b) };
            }
            #[inline(always)]
            unsafe fn index(of: impl Fn(usize) -> usize) -> __m256i {
                // in units of 32 bits, of which an f64 has two
                let unit = 8 / $lanes;
                let lanes: [u32; 8] = std::array::from_fn(|k| (of(k / unit) % $lanes * unit + k % unit) as u32);
                unsafe { _mm256_loadu_si256(lanes.as_ptr().cast()) }
            }
            #[inline(always)]
            unsafe fn outlined<O, K: Kernel<$r, O>>(kernel: &K) -> O {
                unsafe { on_avx2(kernel) }
            }
        }
    };
}

#[inline(always)]
unsafe fn exp2_ps(k: __m256) -> __m256 {
    unsafe {
        let bits = _mm256_add_epi32(_mm256_cvtps_epi32(k), _mm256_set1_epi32(127));
        _mm256_castsi256_ps(_mm256_slli_epi32::<23>(bits))
    }
}
#[inline(always)]
unsafe fn exp2_pd(k: __m256d) -> __m256d {
    unsafe {
        let wide = _mm256_cvtepi32_epi64(_mm256_cvtpd_epi32(k));
        _mm256_castsi256_pd(_mm256_slli_epi64::<52>(_mm256_add_epi64(wide, _mm256_set1_epi64x(1023))))
    }
}

/// 8 x 8: unpack pairs, shuffle pairs of pairs, exchange 128-bit halves.
#[inline(always)]
unsafe fn transpose_ps(r: &mut [__m256]) {
    unsafe {
        let mut t = [_mm256_setzero_ps(); 8];
        for i in 0..4 {
            t[2 * i] = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
            t[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
        }
        let mut u = [_mm256_setzero_ps(); 8];
        for g in 0..2 {
            u[4 * g] = _mm256_shuffle_ps::<0x44>(t[4 * g], t[4 * g + 2]);
            u[4 * g + 1] = _mm256_shuffle_ps::<0xee>(t[4 * g], t[4 * g + 2]);
            u[4 * g + 2] = _mm256_shuffle_ps::<0x44>(t[4 * g + 1], t[4 * g + 3]);
            u[4 * g + 3] = _mm256_shuffle_ps::<0xee>(t[4 * g + 1], t[4 * g + 3]);
        }
        for q in 0..4 {
            r[q] = _mm256_permute2f128_ps::<0x20>(u[q], u[4 + q]);
            r[4 + q] = _mm256_permute2f128_ps::<0x31>(u[q], u[4 + q]);
        }
    }
}

/// 4 x 4: unpack pairs, exchange 128-bit halves.
#[inline(always)]
unsafe fn transpose_pd(r: &mut [__m256d]) {
    unsafe {
        let t = [
            _mm256_unpacklo_pd(r[0], r[1]),
            _mm256_unpackhi_pd(r[0], r[1]),
            _mm256_unpacklo_pd(r[2], r[3]),
            _mm256_unpackhi_pd(r[2], r[3]),
        ];
        for q in 0..2 {
            r[q] = _mm256_permute2f128_pd::<0x20>(t[q], t[2 + q]);
            r[2 + q] = _mm256_permute2f128_pd::<0x31>(t[q], t[2 + q]);
        }
    }
}

/// 4 x 4 pairs of f32, moved like single f64.
#[inline(always)]
unsafe fn pairs_ps(r: &mut [__m256]) {
    unsafe {
        let mut wide = [_mm256_setzero_pd(); 4];
        for i in 0..4 {
            wide[i] = _mm256_castps_pd(r[i]);
        }
        transpose_pd(&mut wide);
        for i in 0..4 {
            r[i] = _mm256_castpd_ps(wide[i]);
        }
    }
}

/// 2 x 2 pairs of f64.
#[inline(always)]
unsafe fn pairs_pd(r: &mut [__m256d]) {
    unsafe {
        let (a, b) = (r[0], r[1]);
        r[0] = _mm256_permute2f128_pd::<0x20>(a, b);
        r[1] = _mm256_permute2f128_pd::<0x31>(a, b);
    }
}

#[inline(always)]
unsafe fn permuted_ps(v: __m256, index: __m256i) -> __m256 {
    unsafe { _mm256_permutevar8x32_ps(v, index) }
}
#[inline(always)]
unsafe fn permuted_pd(v: __m256d, index: __m256i) -> __m256d {
    unsafe { _mm256_castps_pd(permuted_ps(_mm256_castpd_ps(v), index)) }
}

lanes! {
    f32, __m256, 8, "vfmadd231ps {0}, {1}, {2}", mask_ps, _mm256_set1_ps, _mm256_loadu_ps, _mm256_storeu_ps,
    _mm256_maskload_ps, _mm256_maskstore_ps, _mm256_add_ps, _mm256_sub_ps, _mm256_mul_ps, _mm256_div_ps,
    _mm256_fmadd_ps, _mm256_fnmadd_ps, _mm256_sqrt_ps, _mm256_min_ps, _mm256_and_ps, _mm256_andnot_ps,
    _mm256_or_ps, _mm256_cmp_ps, _mm256_blendv_ps, _mm256_round_ps, _mm256_permute_ps, 0b10_11_00_01,
    _mm256_blend_ps, 0xaa, exp2_ps, transpose_ps, pairs_ps, permuted_ps
}
lanes! {
    f64, __m256d, 4, "vfmadd231pd {0}, {1}, {2}", mask_pd, _mm256_set1_pd, _mm256_loadu_pd,
    _mm256_storeu_pd, _mm256_maskload_pd, _mm256_maskstore_pd, _mm256_add_pd, _mm256_sub_pd, _mm256_mul_pd,
    _mm256_div_pd, _mm256_fmadd_pd, _mm256_fnmadd_pd, _mm256_sqrt_pd, _mm256_min_pd, _mm256_and_pd,
    _mm256_andnot_pd, _mm256_or_pd, _mm256_cmp_pd, _mm256_blendv_pd, _mm256_round_pd, _mm256_permute_pd,
    0b0101, _mm256_blend_pd, 0xa, exp2_pd, transpose_pd, pairs_pd, permuted_pd
}
