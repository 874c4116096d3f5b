//! Memory for the parameters of a given matrix, and the inverse that both their choice and their recovery take.

use crate::kernels::{Pivoted, Unitarity};
use crate::scalar::Scalar;
use crate::scratch::{Arena, Region};

/// Memory of one member.
pub(super) struct Room<W: Scalar<Real = f64>> {
    matrices: [Region<W>; 3],
    rows: [Region<W>; 4],
    curvature: Region<f64>,
    unitarity: Unitarity<W>,
    pivoted: Pivoted,
}

/// Workspace of one matrix: W and D, S and the next S, the next D, two rows, and the curvature of log|det (I + Z)|.
pub(super) struct Work<'a, W: Scalar<Real = f64>> {
    pub(super) n: usize,
    pub(super) w: &'a mut [W],
    pub(super) d: &'a mut [W],
    pub(super) s: &'a mut [W],
    pub(super) t: &'a mut [W],
    pub(super) next: &'a mut [W],
    pub(super) rows: [&'a mut [W]; 2],
    pub(super) curvature: &'a mut [f64],
    pub(super) unitarity: Unitarity<W>,
    pub(super) pivoted: Pivoted,
}

impl<W: Scalar<Real = f64>> Room<W> {
    pub(super) fn carve(arena: &mut Arena, n: usize) -> Self {
        Room {
            matrices: [(); 3].map(|()| arena.take(&[n, n])),
            rows: [(); 4].map(|()| arena.take(&[n])),
            curvature: arena.take(&[W::PARTS - 1, n, n]),
            unitarity: Unitarity::carve(arena, n),
            pivoted: Pivoted::carve::<W>(arena, n),
        }
    }

    /// # Safety
    /// The memory is alive for 'a, and not otherwise in use.
    pub(super) unsafe fn work<'a>(self, n: usize) -> Work<'a, W> {
        // SAFETY: the contract above; the regions are disjoint.
        unsafe {
            let [w, s, t] = self.matrices.map(|region| region.zeroed());
            let [d, next, first, second] = self.rows.map(|region| region.zeroed());
            let (rows, curvature) = ([first, second], self.curvature.zeroed());
            Work { n, w, d, s, t, next, rows, curvature, unitarity: self.unitarity, pivoted: self.pivoted }
        }
    }
}

/// S = (I + W D^-1)^-1; returns log |det (I + W D^-1)|.
///
/// # Safety
/// The workspace is for n x n matrices, and not otherwise in use.
pub(super) unsafe fn inverse<W: Scalar<Real = f64>>(
    w: &[W],
    d: &[W],
    n: usize,
    s: &mut [W],
    room: Pivoted,
) -> f64 {
    s.copy_from_slice(w);
    for i in 0..n {
        for j in 0..n {
            s[i * n + j] *= d[j].conj();
        }
        s[i * n + i] += W::one();
    }
    // SAFETY: the workspace is for n x n matrices and not otherwise in use.
    unsafe { room.invert(s, n) }
}
