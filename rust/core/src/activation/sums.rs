//! Column sums over rows: the gradients of the additive bias, sum z_bar, and of the bias of modReLU, sum Re(conj(e) z_bar).

use super::elementwise::Elementwise;
use super::law::Kind;
use super::{Modrelu, ModreluPairs, modrelu_realrep};
use crate::kernels::{Kernel, Simd, dispatch};
use crate::scalar::Real;
use std::ops::Range;

/// Column sums over rows, in an order that depends on their number only: the gradients of biases.
pub struct Columns<R: Real> {
    /// Rows z_bar, one after the other.
    pub bar: *const R,
    /// Number of rows.
    pub rows: usize,
    /// Numbers per row.
    pub width: usize,
    /// One sum per number of a row.
    pub sums: *mut R,
    /// Adds to what `sums` holds.
    pub add: bool,
}

impl<R: Real> Columns<R> {
    /// sums = sum of the rows, for these columns (from a multiple of a vector on).
    ///
    /// # Safety
    /// The rows exist; nobody else writes these columns of `sums`.
    pub unsafe fn plain(self, columns: Range<usize>) {
        // SAFETY: passed on from the caller.
        unsafe { dispatch(Sums { columns: self, y: std::ptr::null(), kind: Kind::Identity, range: columns }) }
    }

    /// The same of e * z_bar, e the unit of modReLU read off y (z or h, rows of the same width). Halves: `columns` is a
    /// range of the first one.
    ///
    /// # Safety
    /// As [`Columns::plain`].
    pub unsafe fn along(self, y: *const R, kind: Kind, columns: Range<usize>) {
        // SAFETY: passed on from the caller.
        unsafe { dispatch(Sums { columns: self, y, kind, range: columns }) }
    }

    /// The bias gradient from the sums of [`Columns::along`]: pairs and halves add up.
    pub fn units(kind: Kind, sums: &[R], bar: &mut [R]) {
        let half = sums.len() / 2;
        for (i, b) in bar.iter_mut().enumerate() {
            *b = match kind {
                Kind::ModreluPairs => sums[2 * i] + sums[2 * i + 1],
                Kind::ModreluRealrep => sums[i] + sums[half + i],
                _ => sums[i],
            };
        }
    }
}

struct Sums<R: Real> {
    columns: Columns<R>,
    y: *const R,
    kind: Kind,
    range: Range<usize>,
}

impl<R: Real> Kernel<R> for Sums<R> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<S: Simd<R = R>>(self) {
        let Columns { bar, rows, width, sums, add } = self.columns;
        // SAFETY: the contract of `Columns::plain`.
        unsafe {
            for col in self.range.clone().step_by(S::LANES) {
                let live = self.range.end - col;
                if self.kind == Kind::ModreluRealrep {
                    let half = width / 2;
                    let mut acc = [S::zero(); 2];
                    for row in 0..rows {
                        let load = |p: *const R| {
                            let p = p.add(row * width + col);
                            [S::load_n(p, live), S::load_n(p.add(half), live)]
                        };
                        let (e, z) = (modrelu_realrep::direction::<S>(load(self.y)), load(bar));
                        for i in 0..2 {
                            acc[i] = S::mul_add(e[i], z[i], acc[i]);
                        }
                    }
                    put::<S>(sums.add(col), acc[0], live, add);
                    put::<S>(sums.add(half + col), acc[1], live, add);
                } else {
                    let mut acc = [S::zero(); 4];
                    for row in 0..rows {
                        let at = row * width + col;
                        let z = S::load_n(bar.add(at), live);
                        let a = &mut acc[row % 4];
                        *a = if self.y.is_null() {
                            S::add(*a, z)
                        } else {
                            let y = S::load_n(self.y.add(at), live);
                            let e = if self.kind == Kind::Modrelu {
                                Modrelu::direction::<S>(y)
                            } else {
                                ModreluPairs::direction::<S>(y)
                            };
                            S::mul_add(e, z, *a)
                        };
                    }
                    let sum = S::add(S::add(acc[0], acc[1]), S::add(acc[2], acc[3]));
                    put::<S>(sums.add(col), sum, live, add);
                }
            }
        }
    }
}

/// Writes or adds the first n lanes.
#[inline(always)]
unsafe fn put<S: Simd>(at: *mut S::R, v: S::V, n: usize, add: bool) {
    // SAFETY: the contract of `Columns::plain`.
    unsafe {
        let v = if add { S::add(v, S::load_n(at, n)) } else { v };
        S::store_n(at, v, n);
    }
}
