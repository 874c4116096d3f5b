//! The vector layer: kernels are written once, generic over [`Simd`], as `#[inline(always)]` functions, and are
//! instantiated inside one `#[target_feature]` function per instruction set (`dispatch`).

/// Methods of [`Simd`] that are an expression each.
macro_rules! methods {
    ($($name:ident($($a:ident: $of:ty),*) $(-> $out:ty)? = $body:expr;)*) => {
        $(
            #[inline(always)]
            unsafe fn $name($($a: $of),*) $(-> $out)? {
                unsafe { $body }
            }
        )*
    };
}

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;

#[cfg(target_arch = "x86_64")]
pub use avx2::Avx2;
#[cfg(target_arch = "x86_64")]
pub use avx512::Avx512;
#[cfg(target_arch = "aarch64")]
pub use neon::Neon;
pub use portable::Portable;

use crate::dispatch::Kernel;
use crate::scalar::Real;
use crate::tile::four_steps;

/// The most lanes of a vector on any instruction set.
pub(crate) const WIDEST: usize = 16;

/// On other targets the wide vectors are the portable ones.
#[cfg(not(target_arch = "x86_64"))]
pub type Avx512<R> = Portable<R>;
/// On other targets the wide vectors are the portable ones.
#[cfg(not(target_arch = "x86_64"))]
pub type Avx2<R> = Portable<R>;
/// On other targets the wide vectors are the portable ones.
#[cfg(not(target_arch = "aarch64"))]
pub type Neon<R> = Portable<R>;

/// Vectors of [`Simd::LANES`] real numbers on one instruction set.
///
/// # Safety
/// Methods may only run on a processor that has the instruction set of the implementing type; pointers must be valid for
/// the lanes that a method reads or writes, in any alignment.
#[allow(clippy::missing_safety_doc, reason = "one contract for all methods stands on the trait")]
pub unsafe trait Simd: Copy + Send + Sync + 'static {
    /// Element type.
    type R: Real;
    /// A vector register (or an array of elements).
    type V: Copy;
    /// Which lane goes where ([`Simd::permute`]).
    type Index: Copy;
    /// Elements per vector, a multiple of 2.
    const LANES: usize;
    /// Vector registers.
    const REGISTERS: usize;
    /// Whether a vector is a cache line, so that [`Simd::stream`] bypasses the caches.
    const STREAMS: bool = false;
    /// Rows of the tallest register tile with two vectors of columns: at most [`MAX_ROWS`](crate::tile::MAX_ROWS),
    /// limited by the registers. Tall tiles read the left operand from fewer cache lines, short ones suffice to hide
    /// latencies.
    const ROWS: usize;
    /// The same for a step of a recurrence, which reads its panels from the second-level cache in every step: at most
    /// 10.
    const STEP_ROWS: usize;

    /// All lanes equal to x.
    unsafe fn splat(x: Self::R) -> Self::V;
    /// Lanes even, odd, even, odd, ...
    unsafe fn alternate(even: Self::R, odd: Self::R) -> Self::V;
    /// All lanes from memory.
    unsafe fn load(p: *const Self::R) -> Self::V;
    /// All lanes to memory.
    unsafe fn store(p: *mut Self::R, v: Self::V);
    /// All lanes to memory that is not read soon; with STREAMS p is a multiple of the vector's size.
    #[inline(always)]
    unsafe fn stream(p: *mut Self::R, v: Self::V) {
        // SAFETY: the contract of the trait.
        unsafe { Self::store(p, v) }
    }
    /// Orders streamed stores before all later ones, also for other threads.
    #[inline(always)]
    unsafe fn fence() {}
    /// The first n lanes (any n; more than LANES counts as LANES), the rest zero.
    unsafe fn load_n(p: *const Self::R, n: usize) -> Self::V;
    /// The first n lanes (any n); the rest of the memory is not written.
    unsafe fn store_n(p: *mut Self::R, v: Self::V, n: usize);
    /// a + b
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V;
    /// a - b
    unsafe fn sub(a: Self::V, b: Self::V) -> Self::V;
    /// a b
    unsafe fn mul(a: Self::V, b: Self::V) -> Self::V;
    /// a / b
    unsafe fn div(a: Self::V, b: Self::V) -> Self::V;
    /// a b + c
    unsafe fn mul_add(a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// acc <- a b + acc in place. Otherwise the compiler may put the sum in the register of a or b, and then moves or
    /// spills the sums of a tile at the end of its loop.
    #[inline(always)]
    unsafe fn accumulate(acc: &mut Self::V, a: Self::V, b: Self::V) {
        // SAFETY: arithmetic only; the caller ensures that the processor supports it.
        *acc = unsafe { Self::mul_add(a, b, *acc) };
    }
    /// The number at p in all lanes, as a factor of the vectors of a tile, [held](Simd::held).
    #[inline(always)]
    unsafe fn factor(p: *const Self::R) -> Self::V {
        // SAFETY: the contract of the trait.
        unsafe { Self::held(Self::splat(*p)) }
    }
    /// Four steps of a tile, one after another: `t[i][j] += a[i rows + u] b[u NV + j]` for vectors b and u = 0, 1, 2, 3.
    /// An instruction set that multiplies by a lane of a register overrides it.
    #[inline(always)]
    unsafe fn four_steps<const MR: usize, const NV: usize>(
        t: &mut [[Self::V; NV]; MR],
        a: *const Self::R,
        rows: usize,
        b: *const Self::R,
    ) {
        // SAFETY: the contract of the trait.
        unsafe { four_steps::<Self, MR, NV>(t, a, (rows, 1, 2), b) }
    }
    /// c - a b
    unsafe fn neg_mul_add(a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// |a|
    unsafe fn abs(a: Self::V) -> Self::V;
    /// sqrt(a)
    unsafe fn sqrt(a: Self::V) -> Self::V;
    /// The smaller of both; b where a is NaN.
    unsafe fn min(a: Self::V, b: Self::V) -> Self::V;
    /// |magnitude| with the sign bit of `sign`.
    unsafe fn copysign(magnitude: Self::V, sign: Self::V) -> Self::V;
    /// yes where a > b, else no (no where either is NaN).
    unsafe fn select_gt(a: Self::V, b: Self::V, yes: Self::V, no: Self::V) -> Self::V;
    /// yes where a == b, else no (no where either is NaN).
    unsafe fn select_eq(a: Self::V, b: Self::V, yes: Self::V, no: Self::V) -> Self::V;
    /// Adjacent lanes exchanged: (1, 0, 3, 2, ...).
    unsafe fn swap_pairs(a: Self::V) -> Self::V;
    /// Lane i of the result of [`Simd::permute`] is lane `of(i) % LANES`.
    unsafe fn index(of: impl Fn(usize) -> usize) -> Self::Index;
    /// The lanes in another order, any of them any number of times.
    unsafe fn permute(a: Self::V, index: Self::Index) -> Self::V;
    /// Nearest integer (ties to even).
    unsafe fn round(a: Self::V) -> Self::V;
    /// 2^k for lanes that hold integers k within the exponent range of normal numbers.
    unsafe fn exp2_int(k: Self::V) -> Self::V;
    /// Transposes LANES vectors in place (the slice has exactly LANES entries).
    unsafe fn transpose(rows: &mut [Self::V]);
    /// Transposes LANES / 2 vectors of pairs (complex numbers) in place (the slice has exactly LANES / 2 entries).
    unsafe fn transpose_pairs(rows: &mut [Self::V]);
    /// The same vector, in a register before any code that follows: compilers move a load next to its use, where the
    /// multiplications of a tile wait for it. No effect if registers are few.
    #[inline(always)]
    unsafe fn held(v: Self::V) -> Self::V {
        v
    }
    /// Runs the kernel on this instruction set in a separate function, one copy shared by all callers.
    unsafe fn outlined<O, K: Kernel<Self::R, O>>(kernel: &K) -> O;
    /// Prefetches the cache line at p.
    unsafe fn prefetch(p: *const Self::R);

    /// All lanes zero.
    #[inline(always)]
    unsafe fn zero() -> Self::V {
        // SAFETY: the caller ensures that the processor supports it.
        unsafe { Self::splat(num_traits::Zero::zero()) }
    }
}
