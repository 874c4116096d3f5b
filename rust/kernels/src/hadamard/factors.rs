//! Products of rows with diagonal matrices, and their gradient.

use crate::dispatch::kernel;

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

kernel!(Factors::<R>, |own| {
    for row in 0..own.rows {
        for at in (0..own.len).step_by(S::LANES) {
            let (from, live) = (row * own.len + at, own.len - at);
            // SAFETY: the contract of `Factors`.
            unsafe {
                let v = S::mul(S::load_n(own.x.add(from), live), S::load_n(own.table.add(at), live));
                S::store_n(own.out.add(from), v, live);
            }
        }
    }
});

kernel!(FactorsPull::<R>, |own| {
    for at in (0..own.len).step_by(S::LANES) {
        let live = own.len - at;
        // SAFETY: the contract of `FactorsPull`.
        unsafe {
            let (g, to) = (S::load_n(own.g.add(at), live), own.sums.add(at));
            let sum = S::mul_add(g, S::load_n(own.z.add(at), live), S::load_n(to, live));
            S::store_n(to, sum, live);
            S::store_n(own.g.add(at), S::mul(g, S::load_n(own.table.add(at), live)), live);
        }
    }
});
