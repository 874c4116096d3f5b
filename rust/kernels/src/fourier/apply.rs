//! W x and W^H x.

use super::FourierFactors;
use super::permutation::{permuted, scattered};
use crate::dispatch::{kernel, on_half};
use crate::transform::{Load, Plan, Store, Transform, dot, reflect};

/// out = W x, or W^H x, of `rows` rows.
///
/// # Safety
/// That of [`FourierFactors`]; x and out have the rows, apart from each other; `scratch` as much as [`super::scratch`] says.
pub struct Apply<R> {
    /// The operator.
    pub factors: FourierFactors<R>,
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

kernel!(Apply::<R>, |own| {
    let FourierFactors { plan, diagonals: [d1, d2, d3], reflections: [w1, w2], permutation } = own.factors;
    // SAFETY: the contract above.
    unsafe {
        let plan: &Plan<R> = &*plan;
        let n = plan.len();
        let (a, b) = (own.scratch, own.scratch.add(plan.room() * 2 * S::LANES));
        for row in (0..own.rows).step_by(S::LANES) {
            let rest = Apply {
                x: own.x.add(row * 2 * n),
                out: own.out.add(row * 2 * n),
                rows: own.rows - row,
                ..*own
            };
            if 2 * rest.rows <= S::LANES && on_half::<S, _>(&rest) {
                return;
            }
            let (x, out) = (own.x.add(row * 2 * n), own.out.add(row * 2 * n));
            let size = (n, (own.rows - row).min(S::LANES));
            if own.adjoint {
                S::outlined(&Load { x, size, diagonal: d3, conj: true, to: a });
                reflect::<S>(a, w2, dot::<S>(w2, a, n), n);
                let z = S::outlined(&Transform { plan, x: a, other: b, inverse: false });
                let y = if z == a { b } else { a };
                scattered::<S>(z, permutation, d2, y, n);
                reflect::<S>(y, w1, dot::<S>(w1, y, n), n);
                let z = S::outlined(&Transform { plan, x: y, other: z, inverse: true });
                S::outlined(&Store { z, w: std::ptr::null(), size, diagonal: d1, conj: true, x: out });
            } else {
                S::outlined(&Load { x, size, diagonal: d1, conj: false, to: a });
                let z = S::outlined(&Transform { plan, x: a, other: b, inverse: false });
                let y = if z == a { b } else { a };
                permuted::<S>(z, (w1, dot::<S>(w1, z, n)), permutation, d2, y, n);
                let z = S::outlined(&Transform { plan, x: y, other: z, inverse: true });
                S::outlined(&Store { z, w: w2, size, diagonal: d3, conj: false, x: out });
            }
        }
    }
});
