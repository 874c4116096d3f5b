//! Column sums over rows: the gradients of the additive bias, sum z_bar, and of the bias of modReLU, sum Re(conj(e) h_bar).

use super::elementwise::Elementwise;
use super::modrelu::{Modrelu, ModreluPairs};
use super::modrelu_realrep;
use super::phi::{Nonlinearity, Phi, Source};
use crate::dispatch::kernel;
use crate::scalar::Real;
use crate::simd::Simd;
use std::ops::Range;

/// Column sums over rows, in an order that depends only on the number of rows.
///
/// # Safety
/// The rows exist; these columns of `sums` are written by no other thread; columns start at a multiple of a vector.
pub struct Columns<R> {
    /// Cotangents, row after row.
    pub bar: *const R,
    /// If given, the summand is Re(conj(e) bar) for an activation with a bias; otherwise bar itself.
    pub along: Option<Along<R>>,
    /// Number of rows.
    pub rows: usize,
    /// Numbers per row.
    pub width: usize,
    /// One sum per number of a row.
    pub sums: *mut R,
    /// Whether to add to `sums`.
    pub add: bool,
    /// The columns; of the first half if the activation pairs halves.
    pub columns: Range<usize>,
}

/// An activation whose bias gradient is computed from the cotangents of its values.
#[derive(Clone, Copy)]
pub struct Along<R> {
    /// The activation.
    pub phi: Phi<R>,
    /// Rows of values or arguments.
    pub y: *const R,
    /// Whether `y` holds values or arguments.
    pub from: Source,
}

/// The bias gradient from the sums of all columns: pairs and halves are added.
pub fn units<R: Real>(kind: Nonlinearity, sums: &[R], bar: &mut [R]) {
    let half = sums.len() / 2;
    for (i, b) in bar.iter_mut().enumerate() {
        *b = match kind {
            Nonlinearity::ModreluPairs => sums[2 * i] + sums[2 * i + 1],
            Nonlinearity::ModreluRealrep => sums[i] + sums[half + i],
            _ => sums[i],
        };
    }
}

kernel!(Columns::<R>, |&Columns { bar, along, rows, width, sums, add, ref columns }| {
    // SAFETY: the rows and these columns of `sums` exist (contract of `Columns`); biases are padded to whole
    // vectors.
    unsafe {
        for col in columns.clone().step_by(S::LANES) {
            let live = columns.end - col;
            let Some(Along { phi, y, from }) = along else {
                let mut acc = [S::zero(); 4];
                for row in 0..rows {
                    acc[row % 4] = S::add(acc[row % 4], S::load_n(bar.add(row * width + col), live));
                }
                put::<S>(sums.add(col), acc, live, add);
                continue;
            };
            let (argument, b) = (from == Source::Argument, S::load(phi.bias.add(col)));
            let half = if phi.kind == Nonlinearity::ModreluRealrep { width / 2 } else { 0 };
            let mut acc = [[S::zero(); 4]; 2];
            for row in 0..rows {
                let at = row * width + col;
                let (own, z) = (S::load_n(y.add(at), live), S::load_n(bar.add(at), live));
                let e = match phi.kind {
                    Nonlinearity::Modrelu => Modrelu::direction::<S>(own, b, argument),
                    Nonlinearity::ModreluPairs => ModreluPairs::direction::<S>(own, b, argument),
                    _ => {
                        let other = S::load_n(y.add(at + half), live);
                        let [e, f] = modrelu_realrep::direction::<S>([own, other], b, argument);
                        let sum = &mut acc[1][row % 4];
                        *sum = S::mul_add(f, S::load_n(bar.add(at + half), live), *sum);
                        e
                    }
                };
                acc[0][row % 4] = S::mul_add(e, z, acc[0][row % 4]);
            }
            put::<S>(sums.add(col), acc[0], live, add);
            if half > 0 {
                put::<S>(sums.add(half + col), acc[1], live, add);
            }
        }
    }
});

/// Writes or adds the first n lanes of the sum of four vectors.
#[inline(always)]
unsafe fn put<S: Simd>(at: *mut S::R, acc: [S::V; 4], n: usize, add: bool) {
    // SAFETY: n numbers exist at `at`.
    unsafe {
        let v = S::add(S::add(acc[0], acc[1]), S::add(acc[2], acc[3]));
        let v = if add { S::add(v, S::load_n(at, n)) } else { v };
        S::store_n(at, v, n);
    }
}
