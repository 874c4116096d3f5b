//! The nearest rotations of real matrices too large for a lane: where det W < 0, the direction of the smallest singular value is turned.

use super::eigen::Eigen;
use super::found;
use super::pull::Call;
use crate::batch::Batch;
use crate::error::Result;
use crate::kernels::{Buffer, reserved};
use crate::linalg::geqrf;
use crate::parallel::Shared;
use crate::scalar::Scalar;
use crate::sizes::work;
use num_traits::Zero;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Turns those of W (batch, n, n), nearest to a, whose determinant is negative.
pub(super) fn turn<T: Scalar>(
    a: &[T],
    (batch, n): (usize, usize),
    w: &mut [T],
    threads: usize,
) -> Result<()> {
    let each = n * n;
    let mut factors = Buffer::<T>::zeroed(w.len())?;
    let mut tau = Buffer::<T>::zeroed(batch * n)?;
    geqrf(w, (batch, n, n), &mut factors, &mut tau, threads)?;
    let mut turned = reserved(batch)?;
    // each reflection has determinant -1
    turned.extend((0..batch).filter(|&b| {
        let reflections = tau[b * n..(b + 1) * n].iter().filter(|tau| !tau.is_zero()).count();
        let negative = (0..n).filter(|j| factors[b * each + j * (n + 1)].re() < T::Real::zero()).count();
        w[b * each].finite() && (reflections + negative) % 2 == 1
    }));
    let missed = AtomicBool::new(false);
    let (call, to) = (Call { m: n, n, wide: false }, Shared(w.as_mut_ptr()));
    Batch::whole::<T>(turned.len(), work(&[10, n, n, n])).split(threads).run(
        |arena| (call.space::<T>(arena), Eigen::<T>::carve(arena, n, n)),
        |arena| call.own::<T>(arena),
        |member, k, (space, eigen), own| {
            let at = turned[k] * each;
            // SAFETY: the arrays have the matrix, which this member computes alone.
            if !unsafe { call.matrix(member, space, own).turn(a[at..].as_ptr(), to.at(at), eigen) } {
                missed.store(true, Relaxed);
            }
        },
    )?;
    found(missed)
}
