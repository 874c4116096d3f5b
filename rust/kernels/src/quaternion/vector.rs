//! Vectors of R^3, one per lane.

use crate::simd::Simd;

/// A vector of each lane.
pub(super) type Vector<S> = [<S as Simd>::V; 3];

/// a . b
///
/// # Safety
/// The processor supports S.
#[inline(always)]
pub(super) unsafe fn dot<S: Simd>(a: Vector<S>, b: Vector<S>) -> S::V {
    // SAFETY: arithmetic; the caller ensures that the processor supports S.
    unsafe { S::mul_add(a[0], b[0], S::mul_add(a[1], b[1], S::mul(a[2], b[2]))) }
}

/// a x b
///
/// # Safety
/// The processor supports S.
#[inline(always)]
pub(super) unsafe fn cross<S: Simd>(a: Vector<S>, b: Vector<S>) -> Vector<S> {
    let mut c = a;
    for i in 0..3 {
        let (j, k) = ((i + 1) % 3, (i + 2) % 3);
        // SAFETY: arithmetic; the caller ensures that the processor supports S.
        c[i] = unsafe { S::neg_mul_add(a[k], b[j], S::mul(a[j], b[k])) };
    }
    c
}

/// s a
///
/// # Safety
/// The processor supports S.
#[inline(always)]
pub(super) unsafe fn scaled<S: Simd>(s: S::V, mut a: Vector<S>) -> Vector<S> {
    for i in 0..3 {
        // SAFETY: arithmetic; the caller ensures that the processor supports S.
        a[i] = unsafe { S::mul(s, a[i]) };
    }
    a
}

/// s a + b
///
/// # Safety
/// The processor supports S.
#[inline(always)]
pub(super) unsafe fn added<S: Simd>(s: S::V, a: Vector<S>, mut b: Vector<S>) -> Vector<S> {
    for i in 0..3 {
        // SAFETY: arithmetic; the caller ensures that the processor supports S.
        b[i] = unsafe { S::mul_add(s, a[i], b[i]) };
    }
    b
}

/// a b, component by component
///
/// # Safety
/// The processor supports S.
#[inline(always)]
pub(super) unsafe fn times<S: Simd>(a: Vector<S>, mut b: Vector<S>) -> Vector<S> {
    for i in 0..3 {
        // SAFETY: arithmetic; the caller ensures that the processor supports S.
        b[i] = unsafe { S::mul(a[i], b[i]) };
    }
    b
}
