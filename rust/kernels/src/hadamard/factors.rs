//! Products of rows with diagonal matrices, and their gradient.

use crate::dispatch::Kernel;
use crate::scalar::Real;
use crate::simd::Simd;

/// out <- factors x of rows.
///
/// # Safety
/// x and out have `rows` rows of `len` numbers, the table has `len`; x and out are the same or do not overlap.
pub struct Factors<R> {
    /// Numbers of a row.
    pub len: usize,
    /// Number of rows.
    pub rows: usize,
    /// x
    pub x: *const R,
    /// The factors.
    pub table: *const R,
    /// Result.
    pub out: *mut R,
}

/// sums <- sums + g z, then g <- factors g, of one row.
///
/// # Safety
/// All have `len` numbers; nothing overlaps.
pub struct FactorsPull<R> {
    /// Numbers of the row.
    pub len: usize,
    /// z
    pub z: *const R,
    /// g
    pub g: *mut R,
    /// The factors.
    pub table: *const R,
    /// The sums.
    pub sums: *mut R,
}

impl<R: Real> Kernel<R> for Factors<R> {
    #[inline(always)]
    unsafe fn run<S: Simd<R = R>>(&self) {
        for row in 0..self.rows {
            for at in (0..self.len).step_by(S::LANES) {
                let (from, live) = (row * self.len + at, self.len - at);
                // SAFETY: the contract of `Factors`.
                unsafe {
                    let v = S::mul(S::load_n(self.x.add(from), live), S::load_n(self.table.add(at), live));
                    S::store_n(self.out.add(from), v, live);
                }
            }
        }
    }
}

impl<R: Real> Kernel<R> for FactorsPull<R> {
    #[inline(always)]
    unsafe fn run<S: Simd<R = R>>(&self) {
        for at in (0..self.len).step_by(S::LANES) {
            let live = self.len - at;
            // SAFETY: the contract of `FactorsPull`.
            unsafe {
                let (g, to) = (S::load_n(self.g.add(at), live), self.sums.add(at));
                let sum = S::mul_add(g, S::load_n(self.z.add(at), live), S::load_n(to, live));
                S::store_n(to, sum, live);
                S::store_n(self.g.add(at), S::mul(g, S::load_n(self.table.add(at), live)), live);
            }
        }
    }
}
