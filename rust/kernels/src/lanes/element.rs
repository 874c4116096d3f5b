//! Arithmetic on one element of LANES matrices: P = 1 vector (real) or P = 2 (real and imaginary parts).

use crate::simd::Simd;

/// An element of LANES matrices.
pub type Element<S, const P: usize> = [<S as Simd>::V; P];

/// The element at p.
///
/// # Safety
/// p points to P vectors; the processor supports S.
#[inline(always)]
pub unsafe fn load<S: Simd, const P: usize>(p: *const S::R) -> Element<S, P> {
    // SAFETY: the caller ensures that the vectors exist and S is supported.
    unsafe {
        let mut x = [S::zero(); P];
        for part in 0..P {
            x[part] = S::load(p.add(part * S::LANES));
        }
        x
    }
}

/// Writes the element to p.
///
/// # Safety
/// As [`load`].
#[inline(always)]
pub unsafe fn store<S: Simd, const P: usize>(p: *mut S::R, x: Element<S, P>) {
    // SAFETY: the caller ensures that the vectors exist and S is supported.
    unsafe {
        for part in 0..P {
            S::store(p.add(part * S::LANES), x[part]);
        }
    }
}

/// a + b
///
/// # Safety
/// The processor supports S.
#[inline(always)]
pub unsafe fn add<S: Simd, const P: usize>(a: Element<S, P>, mut b: Element<S, P>) -> Element<S, P> {
    for part in 0..P {
        // SAFETY: the caller ensures that the processor supports S.
        b[part] = unsafe { S::add(a[part], b[part]) };
    }
    b
}

/// a - b
///
/// # Safety
/// The processor supports S.
#[inline(always)]
pub unsafe fn sub<S: Simd, const P: usize>(a: Element<S, P>, mut b: Element<S, P>) -> Element<S, P> {
    for part in 0..P {
        // SAFETY: the caller ensures that the processor supports S.
        b[part] = unsafe { S::sub(a[part], b[part]) };
    }
    b
}

/// conj(a)
///
/// # Safety
/// The processor supports S.
#[inline(always)]
pub unsafe fn conj<S: Simd, const P: usize>(mut a: Element<S, P>) -> Element<S, P> {
    if P == 2 {
        // SAFETY: the caller ensures that the processor supports S.
        a[P - 1] = unsafe { S::sub(S::zero(), a[P - 1]) };
    }
    a
}

/// a times a real number of each lane
///
/// # Safety
/// The processor supports S.
#[inline(always)]
pub unsafe fn scale<S: Simd, const P: usize>(mut a: Element<S, P>, by: S::V) -> Element<S, P> {
    for part in 0..P {
        // SAFETY: the caller ensures that the processor supports S.
        a[part] = unsafe { S::mul(a[part], by) };
    }
    a
}

/// a b
///
/// # Safety
/// The processor supports S.
#[inline(always)]
pub unsafe fn mul<S: Simd, const P: usize>(a: Element<S, P>, b: Element<S, P>) -> Element<S, P> {
    // SAFETY: the caller ensures that the processor supports S.
    unsafe {
        let mut c = b;
        c[0] = S::mul(a[0], b[0]);
        if P == 2 {
            c[0] = S::neg_mul_add(a[1], b[1], c[0]);
            c[1] = S::mul_add(a[1], b[0], S::mul(a[0], b[1]));
        }
        c
    }
}

/// a b + c
///
/// # Safety
/// The processor supports S.
#[inline(always)]
pub unsafe fn mul_add<S: Simd, const P: usize>(
    a: Element<S, P>,
    b: Element<S, P>,
    mut c: Element<S, P>,
) -> Element<S, P> {
    // SAFETY: the caller ensures that the processor supports S.
    unsafe {
        c[0] = S::mul_add(a[0], b[0], c[0]);
        if P == 2 {
            c[1] = S::mul_add(a[0], b[1], c[1]);
            c[0] = S::neg_mul_add(a[1], b[1], c[0]);
            c[1] = S::mul_add(a[1], b[0], c[1]);
        }
        c
    }
}

/// c - a b
///
/// # Safety
/// The processor supports S.
#[inline(always)]
pub unsafe fn neg_mul_add<S: Simd, const P: usize>(
    a: Element<S, P>,
    b: Element<S, P>,
    mut c: Element<S, P>,
) -> Element<S, P> {
    // SAFETY: the caller ensures that the processor supports S.
    unsafe {
        c[0] = S::neg_mul_add(a[0], b[0], c[0]);
        if P == 2 {
            c[1] = S::neg_mul_add(a[0], b[1], c[1]);
            c[0] = S::mul_add(a[1], b[1], c[0]);
            c[1] = S::neg_mul_add(a[1], b[0], c[1]);
        }
        c
    }
}

/// conj(a) b + c
///
/// # Safety
/// The processor supports S.
#[inline(always)]
pub unsafe fn conj_mul_add<S: Simd, const P: usize>(
    a: Element<S, P>,
    b: Element<S, P>,
    mut c: Element<S, P>,
) -> Element<S, P> {
    // SAFETY: the caller ensures that the processor supports S.
    unsafe {
        c[0] = S::mul_add(a[0], b[0], c[0]);
        if P == 2 {
            c[1] = S::mul_add(a[0], b[1], c[1]);
            c[0] = S::mul_add(a[1], b[1], c[0]);
            c[1] = S::neg_mul_add(a[1], b[0], c[1]);
        }
        c
    }
}

/// 1 / a
///
/// # Safety
/// The processor supports S.
#[inline(always)]
pub unsafe fn reciprocal<S: Simd, const P: usize>(mut a: Element<S, P>) -> Element<S, P> {
    // SAFETY: the caller ensures that the processor supports S.
    unsafe {
        let one = S::splat(num_traits::One::one());
        if P == 1 {
            a[0] = S::div(one, a[0]);
        } else {
            let r = S::div(one, S::mul_add(a[0], a[0], S::mul(a[1], a[1])));
            a[0] = S::mul(a[0], r);
            a[1] = S::sub(S::zero(), S::mul(a[1], r));
        }
        a
    }
}
