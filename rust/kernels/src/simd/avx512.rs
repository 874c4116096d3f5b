//! 512-bit vectors: 16 lanes of f32, 8 of f64. Tails are masked loads and stores.
#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "each block is one intrinsic or a few; the instruction set and the pointers are the contract of the trait Simd"
)]

use crate::dispatch::{Kernel, on_avx512};
use crate::simd::Simd;
use std::arch::asm;
use std::arch::x86_64::*;
use std::marker::PhantomData;

/// AVX-512 F, DQ, VL, BW.
#[derive(Clone, Copy)]
pub struct Avx512<R>(PhantomData<R>);

macro_rules! lanes {
    ($r:ident, $v:ident, $lanes:literal, $fma_in_place:literal, $mask:ident, $set1:ident, $loadu:ident, $storeu:ident, $stream:ident, $maskz_loadu:ident,
     $mask_storeu:ident, $add:ident, $sub:ident, $mul:ident, $div:ident, $fmadd:ident, $fnmadd:ident, $abs:ident,
     $sqrt:ident, $min:ident, $and:ident, $andnot:ident, $or:ident, $cmp:ident, $blend:ident, $roundscale:ident,
     $permute:ident, $swap:literal, $alternate:expr, $exp2:expr, $transpose:ident, $pairs:ident, $permuted:ident) => {
        // SAFETY: dispatch runs this type only if the instruction set was detected; callers guarantee valid pointers.
        unsafe impl Simd for Avx512<$r> {
            type R = $r;
            type V = $v;
            type Index = __m512i;
            const LANES: usize = $lanes;
            const REGISTERS: usize = 32;
            const STREAMS: bool = true;
            const ROWS: usize = 8;
            const STEP_ROWS: usize = 10;

            methods! {
                splat(x: $r) -> $v = $set1(x);
                alternate(even: $r, odd: $r) -> $v = $alternate(even, odd);
                load(p: *const $r) -> $v = $loadu(p);
                store(p: *mut $r, v: $v) = $storeu(p, v);
                stream(p: *mut $r, v: $v) = $stream(p, v);
                fence() = _mm_sfence();
                load_n(p: *const $r, n: usize) -> $v = if n >= $lanes { $loadu(p) } else { $maskz_loadu(((1u32 << n) - 1) as $mask, p) };
                add(a: $v, b: $v) -> $v = $add(a, b);
                sub(a: $v, b: $v) -> $v = $sub(a, b);
                mul(a: $v, b: $v) -> $v = $mul(a, b);
                div(a: $v, b: $v) -> $v = $div(a, b);
                mul_add(a: $v, b: $v, c: $v) -> $v = $fmadd(a, b, c);
                neg_mul_add(a: $v, b: $v, c: $v) -> $v = $fnmadd(a, b, c);
                abs(a: $v) -> $v = $abs(a);
                sqrt(a: $v) -> $v = $sqrt(a);
                min(a: $v, b: $v) -> $v = $min(a, b);
                select_gt(a: $v, b: $v, yes: $v, no: $v) -> $v = $blend($cmp::<_CMP_GT_OQ>(a, b), no, yes);
                select_eq(a: $v, b: $v, yes: $v, no: $v) -> $v = $blend($cmp::<_CMP_EQ_OQ>(a, b), no, yes);
                swap_pairs(a: $v) -> $v = $permute::<$swap>(a);
                permute(a: $v, index: __m512i) -> $v = $permuted(a, index);
                round(a: $v) -> $v = $roundscale::<0>(a);
                exp2_int(k: $v) -> $v = $exp2(k);
                transpose(rows: &mut [$v]) = $transpose(rows);
                transpose_pairs(rows: &mut [$v]) = $pairs(rows);
                prefetch(p: *const $r) = _mm_prefetch::<_MM_HINT_T0>(p.cast());
                store_n(p: *mut $r, v: $v, n: usize) = {
                    if n >= $lanes { $storeu(p, v) } else { $mask_storeu(p, ((1u32 << n) - 1) as $mask, v) }
                };
                copysign(magnitude: $v, sign: $v) -> $v = {
                    let bit = $set1(-0.0);
                    $or($andnot(bit, magnitude), $and(bit, sign))
                };
            }

            #[inline(always)]
            unsafe fn held(v: $v) -> $v {
                #[inline]
                #[target_feature(enable = "avx512f")]
                unsafe fn hold(v: $v) -> $v {
                    let mut v = v;
                    // emits no instruction; not `pure`, so that these keep their order
                    unsafe { asm!("/* {0} */", inout(zmm_reg) v, options(nomem, nostack, preserves_flags)) };
                    v
                }
                unsafe { hold(v) }
            }
            #[inline(always)]
            unsafe fn accumulate(acc: &mut $v, a: $v, b: $v) {
                #[inline]
                #[target_feature(enable = "avx512f")]
                unsafe fn in_place(mut acc: $v, a: $v, b: $v) -> $v {
                    unsafe {
                        asm!($fma_in_place, inout(zmm_reg) acc, in(zmm_reg) a, in(zmm_reg) b,
                             options(pure, nomem, nostack, preserves_flags))
                    };
                    acc
                }
                *acc = unsafe { in_place(*acc, a, b) };
            }
            #[inline(always)]
            unsafe fn index(of: impl Fn(usize) -> usize) -> __m512i {
                // in units of 32 bits, of which an f64 has two
                let unit = 16 / $lanes;
                let lanes: [u32; 16] = std::array::from_fn(|k| (of(k / unit) % $lanes * unit + k % unit) as u32);
                unsafe { _mm512_loadu_si512(lanes.as_ptr().cast()) }
            }
            #[inline(always)]
            unsafe fn outlined<O, K: Kernel<$r, O>>(kernel: &K) -> O {
                unsafe { on_avx512(kernel) }
            }
        }
    };
}

#[inline(always)]
unsafe fn alternate_ps(even: f32, odd: f32) -> __m512 {
    unsafe { _mm512_mask_blend_ps(0xaaaa, _mm512_set1_ps(even), _mm512_set1_ps(odd)) }
}
#[inline(always)]
unsafe fn alternate_pd(even: f64, odd: f64) -> __m512d {
    unsafe { _mm512_mask_blend_pd(0xaa, _mm512_set1_pd(even), _mm512_set1_pd(odd)) }
}
#[inline(always)]
unsafe fn exp2_ps(k: __m512) -> __m512 {
    unsafe {
        let bits = _mm512_add_epi32(_mm512_cvtps_epi32(k), _mm512_set1_epi32(127));
        _mm512_castsi512_ps(_mm512_slli_epi32::<23>(bits))
    }
}
#[inline(always)]
unsafe fn exp2_pd(k: __m512d) -> __m512d {
    unsafe {
        let bits = _mm512_add_epi64(_mm512_cvtpd_epi64(k), _mm512_set1_epi64(1023));
        _mm512_castsi512_pd(_mm512_slli_epi64::<52>(bits))
    }
}

/// 16 x 16: unpack pairs, then pairs of pairs, then 128-bit quarters.
#[inline(always)]
unsafe fn transpose_ps(r: &mut [__m512]) {
    unsafe {
        let d = |v| _mm512_castps_pd(v);
        let f = |v| _mm512_castpd_ps(v);
        let mut t = [_mm512_setzero_ps(); 16];
        for i in 0..8 {
            t[2 * i] = _mm512_unpacklo_ps(r[2 * i], r[2 * i + 1]);
            t[2 * i + 1] = _mm512_unpackhi_ps(r[2 * i], r[2 * i + 1]);
        }
        let mut u = [_mm512_setzero_ps(); 16];
        for g in 0..4 {
            u[4 * g] = f(_mm512_unpacklo_pd(d(t[4 * g]), d(t[4 * g + 2])));
            u[4 * g + 1] = f(_mm512_unpackhi_pd(d(t[4 * g]), d(t[4 * g + 2])));
            u[4 * g + 2] = f(_mm512_unpacklo_pd(d(t[4 * g + 1]), d(t[4 * g + 3])));
            u[4 * g + 3] = f(_mm512_unpackhi_pd(d(t[4 * g + 1]), d(t[4 * g + 3])));
        }
        for q in 0..4 {
            let a = _mm512_shuffle_f32x4::<0x88>(u[q], u[4 + q]);
            let b = _mm512_shuffle_f32x4::<0xdd>(u[q], u[4 + q]);
            let c = _mm512_shuffle_f32x4::<0x88>(u[8 + q], u[12 + q]);
            let e = _mm512_shuffle_f32x4::<0xdd>(u[8 + q], u[12 + q]);
            r[q] = _mm512_shuffle_f32x4::<0x88>(a, c);
            r[8 + q] = _mm512_shuffle_f32x4::<0xdd>(a, c);
            r[4 + q] = _mm512_shuffle_f32x4::<0x88>(b, e);
            r[12 + q] = _mm512_shuffle_f32x4::<0xdd>(b, e);
        }
    }
}

/// 8 x 8: unpack pairs, then 128-bit quarters.
#[inline(always)]
unsafe fn transpose_pd(r: &mut [__m512d]) {
    unsafe {
        let mut t = [_mm512_setzero_pd(); 8];
        for i in 0..4 {
            t[2 * i] = _mm512_unpacklo_pd(r[2 * i], r[2 * i + 1]);
            t[2 * i + 1] = _mm512_unpackhi_pd(r[2 * i], r[2 * i + 1]);
        }
        for q in 0..2 {
            let a = _mm512_shuffle_f64x2::<0x88>(t[q], t[2 + q]);
            let b = _mm512_shuffle_f64x2::<0xdd>(t[q], t[2 + q]);
            let c = _mm512_shuffle_f64x2::<0x88>(t[4 + q], t[6 + q]);
            let e = _mm512_shuffle_f64x2::<0xdd>(t[4 + q], t[6 + q]);
            r[q] = _mm512_shuffle_f64x2::<0x88>(a, c);
            r[4 + q] = _mm512_shuffle_f64x2::<0xdd>(a, c);
            r[2 + q] = _mm512_shuffle_f64x2::<0x88>(b, e);
            r[6 + q] = _mm512_shuffle_f64x2::<0xdd>(b, e);
        }
    }
}

/// 8 x 8 pairs of f32, moved like single f64.
#[inline(always)]
unsafe fn pairs_ps(r: &mut [__m512]) {
    unsafe {
        let mut wide = [_mm512_setzero_pd(); 8];
        for i in 0..8 {
            wide[i] = _mm512_castps_pd(r[i]);
        }
        transpose_pd(&mut wide);
        for i in 0..8 {
            r[i] = _mm512_castpd_ps(wide[i]);
        }
    }
}

/// 4 x 4 pairs of f64.
#[inline(always)]
unsafe fn pairs_pd(r: &mut [__m512d]) {
    unsafe {
        let (a, b) = (_mm512_shuffle_f64x2::<0x44>(r[0], r[1]), _mm512_shuffle_f64x2::<0x44>(r[2], r[3]));
        let (c, d) = (_mm512_shuffle_f64x2::<0xee>(r[0], r[1]), _mm512_shuffle_f64x2::<0xee>(r[2], r[3]));
        r[0] = _mm512_shuffle_f64x2::<0x88>(a, b);
        r[1] = _mm512_shuffle_f64x2::<0xdd>(a, b);
        r[2] = _mm512_shuffle_f64x2::<0x88>(c, d);
        r[3] = _mm512_shuffle_f64x2::<0xdd>(c, d);
    }
}

#[inline(always)]
unsafe fn permuted_ps(v: __m512, index: __m512i) -> __m512 {
    unsafe { _mm512_permutexvar_ps(index, v) }
}
#[inline(always)]
unsafe fn permuted_pd(v: __m512d, index: __m512i) -> __m512d {
    unsafe { _mm512_castps_pd(permuted_ps(_mm512_castpd_ps(v), index)) }
}

lanes! {
    f32, __m512, 16, "vfmadd231ps {0}, {1}, {2}", __mmask16, _mm512_set1_ps, _mm512_loadu_ps,
    _mm512_storeu_ps, _mm512_stream_ps, _mm512_maskz_loadu_ps, _mm512_mask_storeu_ps, _mm512_add_ps,
    _mm512_sub_ps, _mm512_mul_ps, _mm512_div_ps, _mm512_fmadd_ps, _mm512_fnmadd_ps, _mm512_abs_ps,
    _mm512_sqrt_ps, _mm512_min_ps, _mm512_and_ps, _mm512_andnot_ps, _mm512_or_ps, _mm512_cmp_ps_mask,
    _mm512_mask_blend_ps, _mm512_roundscale_ps, _mm512_permute_ps, 0b10_11_00_01, alternate_ps, exp2_ps,
    transpose_ps, pairs_ps, permuted_ps
}
lanes! {
    f64, __m512d, 8, "vfmadd231pd {0}, {1}, {2}", __mmask8, _mm512_set1_pd, _mm512_loadu_pd,
    _mm512_storeu_pd, _mm512_stream_pd, _mm512_maskz_loadu_pd, _mm512_mask_storeu_pd, _mm512_add_pd,
    _mm512_sub_pd, _mm512_mul_pd, _mm512_div_pd, _mm512_fmadd_pd, _mm512_fnmadd_pd, _mm512_abs_pd,
    _mm512_sqrt_pd, _mm512_min_pd, _mm512_and_pd, _mm512_andnot_pd, _mm512_or_pd, _mm512_cmp_pd_mask,
    _mm512_mask_blend_pd, _mm512_roundscale_pd, _mm512_permute_pd, 0b01_01_01_01, alternate_pd, exp2_pd,
    transpose_pd, pairs_pd, permuted_pd
}
