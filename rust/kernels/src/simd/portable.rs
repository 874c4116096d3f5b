//! Vectors as arrays of four elements in plain Rust: the baseline of every target, and the reference for the others. It
//! has only two tile heights, to limit code size.
#![allow(
    clippy::undocumented_unsafe_blocks,
    unused_unsafe,
    reason = "each block is the body of a method of the trait Simd, whose contract the pointers are; most need none"
)]

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

    methods! {
        splat(x: R) -> [R; 4] = [x; 4];
        alternate(even: R, odd: R) -> [R; 4] = [even, odd, even, odd];
        load(p: *const R) -> [R; 4] = p.cast::<[R; 4]>().read_unaligned();
        store(p: *mut R, v: [R; 4]) = p.cast::<[R; 4]>().write_unaligned(v);
        load_n(p: *const R, n: usize) -> [R; 4] = {
            let mut v = [R::of(0.0); 4];
            for i in 0..n.min(4) {
                v[i] = *p.add(i);
            }
            v
        };
        store_n(p: *mut R, v: [R; 4], n: usize) = {
            for i in 0..n.min(4) {
                *p.add(i) = v[i];
            }
        };
        add(a: [R; 4], b: [R; 4]) -> [R; 4] = zip(a, b, |x, y| x + y);
        sub(a: [R; 4], b: [R; 4]) -> [R; 4] = zip(a, b, |x, y| x - y);
        mul(a: [R; 4], b: [R; 4]) -> [R; 4] = zip(a, b, |x, y| x * y);
        div(a: [R; 4], b: [R; 4]) -> [R; 4] = zip(a, b, |x, y| x / y);
        mul_add(a: [R; 4], b: [R; 4], c: [R; 4]) -> [R; 4] =
            [fused(a[0], b[0], c[0]), fused(a[1], b[1], c[1]), fused(a[2], b[2], c[2]), fused(a[3], b[3], c[3])];
        neg_mul_add(a: [R; 4], b: [R; 4], c: [R; 4]) -> [R; 4] =
            [fused(-a[0], b[0], c[0]), fused(-a[1], b[1], c[1]), fused(-a[2], b[2], c[2]), fused(-a[3], b[3], c[3])];
        abs(a: [R; 4]) -> [R; 4] = map(a, |x| x.abs());
        sqrt(a: [R; 4]) -> [R; 4] = map(a, |x| Float::sqrt(x));
        min(a: [R; 4], b: [R; 4]) -> [R; 4] = zip(a, b, |x, y| if x < y { x } else { y });
        copysign(magnitude: [R; 4], sign: [R; 4]) -> [R; 4] = zip(magnitude, sign, |m, s| m.copysign(s));
        select_gt(a: [R; 4], b: [R; 4], yes: [R; 4], no: [R; 4]) -> [R; 4] = {
            let mut v = no;
            for i in 0..4 {
                if a[i] > b[i] {
                    v[i] = yes[i];
                }
            }
            v
        };
        select_eq(a: [R; 4], b: [R; 4], yes: [R; 4], no: [R; 4]) -> [R; 4] = {
            let mut v = no;
            for i in 0..4 {
                if a[i] == b[i] {
                    v[i] = yes[i];
                }
            }
            v
        };
        swap_pairs(a: [R; 4]) -> [R; 4] = [a[1], a[0], a[3], a[2]];
        permute(a: [R; 4], index: [usize; 4]) -> [R; 4] = [a[index[0] % 4], a[index[1] % 4], a[index[2] % 4], a[index[3] % 4]];
        round(a: [R; 4]) -> [R; 4] = {
            // Adding and subtracting 1.5 2^p rounds to the nearest integer, ties to even (|x| < 2^(p-1)).
            let big = R::of(1.5) / R::EPS;
            map(a, |x| (x + big) - big)
        };
        exp2_int(k: [R; 4]) -> [R; 4] = map(k, |x| R::of(f64::from_bits(((1023 + x.f64() as i64) as u64) << 52)));
        transpose(rows: &mut [[R; 4]]) = {
            for i in 0..4 {
                for j in 0..i {
                    let t = rows[i][j];
                    rows[i][j] = rows[j][i];
                    rows[j][i] = t;
                }
            }
        };
        transpose_pairs(rows: &mut [[R; 4]]) = {
            let (a, b) = (rows[0], rows[1]);
            rows[0] = [a[0], a[1], b[0], b[1]];
            rows[1] = [a[2], a[3], b[2], b[3]];
        };
        prefetch(_p: *const R) = ();
    }

    #[inline(always)]
    unsafe fn index(of: impl Fn(usize) -> usize) -> [usize; 4] {
        [of(0) % 4, of(1) % 4, of(2) % 4, of(3) % 4]
    }
    #[inline(always)]
    unsafe fn outlined<O, K: Kernel<R, O>>(kernel: &K) -> O {
        unsafe { on_baseline(kernel) }
    }
}
