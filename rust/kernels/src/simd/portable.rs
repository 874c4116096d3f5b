//! Vectors as arrays of four elements in plain Rust: the baseline of every target, and the reference for the others. It
//! has only two tile heights, to limit code size.

use crate::dispatch::{Kernel, on_baseline};
use crate::scalar::Real;
use crate::simd::Simd;
use num_traits::Float;
use std::marker::PhantomData;

/// Arrays of four elements, which the compiler maps to the baseline instructions of the target.
#[derive(Clone, Copy)]
pub struct Portable<R>(PhantomData<R>);

#[inline(always)]
fn map<R: Copy>(a: [R; 4], f: impl Fn(R) -> R) -> [R; 4] {
    [f(a[0]), f(a[1]), f(a[2]), f(a[3])]
}

#[inline(always)]
fn zip<R: Copy>(a: [R; 4], b: [R; 4], f: impl Fn(R, R) -> R) -> [R; 4] {
    [f(a[0], b[0]), f(a[1], b[1]), f(a[2], b[2]), f(a[3], b[3])]
}

/// a b + c, rounded once if the baseline has the instruction; otherwise it would be a library call.
#[inline(always)]
fn fused<R: Real>(a: R, b: R, c: R) -> R {
    if cfg!(any(target_arch = "aarch64", target_feature = "fma")) {
        Float::mul_add(a, b, c)
    } else {
        a * b + c
    }
}

// SAFETY: plain Rust; only the pointer methods have preconditions, which are the trait's.
unsafe impl<R: Real> Simd for Portable<R> {
    type R = R;
    type V = [R; 4];
    type Index = [usize; 4];
    const LANES: usize = 4;
    const REGISTERS: usize = 16;
    const ROWS: usize = 4;
    const STEP_ROWS: usize = 4;

    #[inline(always)]
    unsafe fn splat(x: R) -> [R; 4] {
        [x; 4]
    }
    #[inline(always)]
    unsafe fn alternate(even: R, odd: R) -> [R; 4] {
        [even, odd, even, odd]
    }
    #[inline(always)]
    unsafe fn load(p: *const R) -> [R; 4] {
        // SAFETY: the caller guarantees four elements at p.
        unsafe { p.cast::<[R; 4]>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store(p: *mut R, v: [R; 4]) {
        // SAFETY: the caller guarantees four elements at p.
        unsafe { p.cast::<[R; 4]>().write_unaligned(v) }
    }
    #[inline(always)]
    unsafe fn load_n(p: *const R, n: usize) -> [R; 4] {
        let mut v = [R::of(0.0); 4];
        for i in 0..n.min(4) {
            // SAFETY: the caller guarantees n elements at p.
            v[i] = unsafe { *p.add(i) };
        }
        v
    }
    #[inline(always)]
    unsafe fn store_n(p: *mut R, v: [R; 4], n: usize) {
        for i in 0..n.min(4) {
            // SAFETY: the caller guarantees n elements at p.
            unsafe { *p.add(i) = v[i] };
        }
    }
    #[inline(always)]
    unsafe fn add(a: [R; 4], b: [R; 4]) -> [R; 4] {
        zip(a, b, |x, y| x + y)
    }
    #[inline(always)]
    unsafe fn sub(a: [R; 4], b: [R; 4]) -> [R; 4] {
        zip(a, b, |x, y| x - y)
    }
    #[inline(always)]
    unsafe fn mul(a: [R; 4], b: [R; 4]) -> [R; 4] {
        zip(a, b, |x, y| x * y)
    }
    #[inline(always)]
    unsafe fn div(a: [R; 4], b: [R; 4]) -> [R; 4] {
        zip(a, b, |x, y| x / y)
    }
    #[inline(always)]
    unsafe fn mul_add(a: [R; 4], b: [R; 4], c: [R; 4]) -> [R; 4] {
        [fused(a[0], b[0], c[0]), fused(a[1], b[1], c[1]), fused(a[2], b[2], c[2]), fused(a[3], b[3], c[3])]
    }
    #[inline(always)]
    unsafe fn neg_mul_add(a: [R; 4], b: [R; 4], c: [R; 4]) -> [R; 4] {
        [
            fused(-a[0], b[0], c[0]),
            fused(-a[1], b[1], c[1]),
            fused(-a[2], b[2], c[2]),
            fused(-a[3], b[3], c[3]),
        ]
    }
    #[inline(always)]
    unsafe fn abs(a: [R; 4]) -> [R; 4] {
        map(a, |x| x.abs())
    }
    #[inline(always)]
    unsafe fn sqrt(a: [R; 4]) -> [R; 4] {
        map(a, |x| Float::sqrt(x))
    }
    #[inline(always)]
    unsafe fn min(a: [R; 4], b: [R; 4]) -> [R; 4] {
        zip(a, b, |x, y| if x < y { x } else { y })
    }
    #[inline(always)]
    unsafe fn copysign(magnitude: [R; 4], sign: [R; 4]) -> [R; 4] {
        zip(magnitude, sign, |m, s| m.copysign(s))
    }
    #[inline(always)]
    unsafe fn select_gt(a: [R; 4], b: [R; 4], yes: [R; 4], no: [R; 4]) -> [R; 4] {
        let mut v = no;
        for i in 0..4 {
            if a[i] > b[i] {
                v[i] = yes[i];
            }
        }
        v
    }
    #[inline(always)]
    unsafe fn select_eq(a: [R; 4], b: [R; 4], yes: [R; 4], no: [R; 4]) -> [R; 4] {
        let mut v = no;
        for i in 0..4 {
            if a[i] == b[i] {
                v[i] = yes[i];
            }
        }
        v
    }
    #[inline(always)]
    unsafe fn swap_pairs(a: [R; 4]) -> [R; 4] {
        [a[1], a[0], a[3], a[2]]
    }
    #[inline(always)]
    unsafe fn index(of: impl Fn(usize) -> usize) -> [usize; 4] {
        [of(0) % 4, of(1) % 4, of(2) % 4, of(3) % 4]
    }
    #[inline(always)]
    unsafe fn permute(a: [R; 4], index: [usize; 4]) -> [R; 4] {
        [a[index[0] % 4], a[index[1] % 4], a[index[2] % 4], a[index[3] % 4]]
    }
    #[inline(always)]
    unsafe fn round(a: [R; 4]) -> [R; 4] {
        // Adding and subtracting 1.5 2^p rounds to the nearest integer, ties to even (|x| < 2^(p-1)).
        let big = R::of(1.5) / R::EPS;
        map(a, |x| (x + big) - big)
    }
    #[inline(always)]
    unsafe fn exp2_int(k: [R; 4]) -> [R; 4] {
        map(k, |x| R::of(f64::from_bits(((1023 + x.f64() as i64) as u64) << 52)))
    }
    #[inline(always)]
    unsafe fn transpose(rows: &mut [[R; 4]]) {
        for i in 0..4 {
            for j in 0..i {
                let t = rows[i][j];
                rows[i][j] = rows[j][i];
                rows[j][i] = t;
            }
        }
    }
    #[inline(always)]
    unsafe fn transpose_pairs(rows: &mut [[R; 4]]) {
        let (a, b) = (rows[0], rows[1]);
        rows[0] = [a[0], a[1], b[0], b[1]];
        rows[1] = [a[2], a[3], b[2], b[3]];
    }
    #[inline(always)]
    unsafe fn outlined<K: Kernel<R>>(kernel: &K) -> K::Output {
        // SAFETY: every processor has the baseline; the caller upholds the contract of the kernel.
        unsafe { on_baseline(kernel) }
    }
    #[inline(always)]
    unsafe fn prefetch(_p: *const R) {}
}
