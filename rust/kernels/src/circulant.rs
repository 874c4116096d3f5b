//! W = F^H D F on rows, a row per lane as in [`crate::transform`]; D contains the 1/n of both transforms.

use crate::dispatch::{compiled, kernel, on_half};
use crate::scalar::Real;
use crate::transform::{LANES, Load, Plan, Store, Transform, add_lanes, get, moved, outer, set, turned};
use std::ptr::null;

compiled! {
    /// W, W^H and the gradient of the phases, compiled for each real type.
    CirculantKernels: Real for f32, f64; {
        /// [`ApplyCirculant`]
        fn apply_circulant(ApplyCirculant);
        /// [`PullCirculant`]
        fn pull_circulant(PullCirculant);
    }
}

/// Buffers that a call needs besides its arrays.
const BUFFERS: usize = 3;

/// Real numbers that [`ApplyCirculant`] and [`PullCirculant`] need as scratch.
pub fn scratch<R: Real>(plan: &Plan<R>) -> usize {
    plan.scratch(BUFFERS)
}

/// out = W x, or W^H x, of `rows` rows.
///
/// # Safety
/// The plan is for vectors of n elements, `diagonal` has n pairs; x and out have the rows, apart from each other; `scratch` has as
/// much as [`scratch`] says.
pub struct ApplyCirculant<R> {
    /// The transform.
    pub plan: *const Plan<R>,
    /// D / n
    pub diagonal: *const R,
    /// The rows.
    pub x: *const R,
    /// Number of them.
    pub rows: usize,
    /// W^H.
    pub adjoint: bool,
    /// The result.
    pub out: *mut R,
    /// Scratch.
    pub scratch: *mut R,
}

kernel!(ApplyCirculant::<R>, |own| {
    // SAFETY: the contract above.
    unsafe {
        let plan: &Plan<R> = &*own.plan;
        let n = plan.len();
        let (a, b) = (own.scratch, own.scratch.add(plan.room() * 2 * S::LANES));
        for row in (0..own.rows).step_by(S::LANES) {
            let (x, out) = (own.x.add(row * 2 * n), own.out.add(row * 2 * n));
            let rest = ApplyCirculant { x, out, rows: own.rows - row, ..*own };
            if 2 * rest.rows <= S::LANES && on_half::<S, _>(&rest) {
                return;
            }
            let size = (n, rest.rows.min(S::LANES));
            S::outlined(&Load { x, size, diagonal: null(), conj: false, to: a });
            let z = S::outlined(&Transform { plan, x: a, other: b, inverse: false });
            for j in 0..n {
                set::<S>(z, j, turned::<S>(get::<S>(z, j), own.diagonal, j, own.adjoint));
            }
            let other = if z == a { b } else { a };
            let z = S::outlined(&Transform { plan, x: z, other, inverse: true });
            S::outlined(&Store { z, w: null(), size, diagonal: null(), conj: false, x: out });
        }
    }
});

/// Adds the gradient of the phases from (x, ct), ct the cotangent of W x, to `sums`, and writes x_bar and W x where they are not
/// null.
///
/// # Safety
/// As of [`ApplyCirculant`]; the arrays have `rows` rows, `sums` n numbers; outputs overlap nothing that is read.
pub struct PullCirculant<R> {
    /// The transform.
    pub plan: *const Plan<R>,
    /// D / n
    pub diagonal: *const R,
    /// x
    pub x: *const R,
    /// The cotangent of W x.
    pub ct: *const R,
    /// Number of rows.
    pub rows: usize,
    /// n numbers.
    pub sums: *mut R,
    /// The cotangent of x, or null.
    pub x_bar: *mut R,
    /// W x, or null.
    pub y: *mut R,
    /// Scratch.
    pub scratch: *mut R,
}

kernel!(PullCirculant::<R>, |kernel| {
    // SAFETY: the contract above.
    unsafe {
        let plan: &Plan<R> = &*kernel.plan;
        let n = plan.len();
        let room = |i: usize| kernel.scratch.wrapping_add(i * plan.room() * 2 * S::LANES);
        for row in (0..kernel.rows).step_by(S::LANES) {
            let at = row * 2 * n;
            let rest = PullCirculant {
                x: kernel.x.add(at),
                ct: kernel.ct.add(at),
                x_bar: moved(kernel.x_bar, at),
                y: moved(kernel.y, at),
                rows: kernel.rows - row,
                ..*kernel
            };
            if 2 * rest.rows <= S::LANES && on_half::<S, _>(&rest) {
                return;
            }
            let size = (n, rest.rows.min(S::LANES));
            let load = |x, to| Load { x, size, diagonal: null(), conj: false, to };
            S::outlined(&load(rest.x, room(0)));
            let f = S::outlined(&Transform { plan, x: room(0), other: room(1), inverse: false });
            let spare = if f == room(0) { room(1) } else { room(0) };
            S::outlined(&load(rest.ct, spare));
            let g = S::outlined(&Transform { plan, x: spare, other: room(2), inverse: false });
            let spare = if g == spare { room(2) } else { spare };
            // g becomes conj(D) F ct, f becomes D F x
            let mut t = [S::zero(); LANES];
            for first in (0..n).step_by(S::LANES) {
                let many = (n - first).min(S::LANES);
                for i in 0..many {
                    let (x, j) = (get::<S>(f, first + i), first + i);
                    let own = turned::<S>(get::<S>(g, j), kernel.diagonal, j, true);
                    t[i] = outer::<S>(own, x);
                    set::<S>(g, j, own);
                    set::<S>(f, j, turned::<S>(x, kernel.diagonal, j, false));
                }
                add_lanes::<S>(&mut t, kernel.sums.add(first), many);
            }
            let mut other = spare;
            for (x, out) in [(f, rest.y), (g, rest.x_bar)] {
                if !out.is_null() {
                    let z = S::outlined(&Transform { plan, x, other, inverse: true });
                    S::outlined(&Store { z, w: null(), size, diagonal: null(), conj: false, x: out });
                    other = if z == x { other } else { x };
                }
            }
        }
    }
});
