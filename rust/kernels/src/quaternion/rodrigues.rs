//! Rotation vectors of space to Cayley transforms: `A = -[g]`, g = p / w = tan(|r| / 2) / |r| r, the Rodrigues parameters.

use super::law::quaternion;
use super::{Law, Weave, skew_upper};
use crate::dispatch::kernel;

/// Writes the upper triangles of A; returns whether some |r| is an odd multiple of pi to rounding.
///
/// # Safety
/// The arrays hold `count` vectors and triangles.
pub struct Rodrigues<R> {
    /// r
    pub rotvec: *const R,
    /// Number of vectors.
    pub count: usize,
    /// The triangles.
    pub upper: *mut R,
}

kernel!(Rodrigues::<R>, |own| -> bool {
    // SAFETY: the contract of `Rodrigues`.
    unsafe {
        let arrays = Weave::<S, 3>::new();
        let (zero, one) = (S::zero(), S::splat(R::one()));
        let mut half_turns = zero;
        for first in (0..own.count).step_by(S::LANES) {
            let live = own.count - first;
            let q = quaternion::<S>(Law::Exponential, arrays.read(own.rotvec.add(3 * first), live));
            let least = S::mul(S::splat(R::EPS), q.angle());
            half_turns = S::select_gt(least, S::abs(q.w), one, half_turns);
            let mut a = q.p;
            for x in &mut a {
                *x = S::div(S::sub(zero, *x), q.w);
            }
            arrays.write(skew_upper::<S, 3>(a), own.upper.add(3 * first), live);
        }
        let mut lanes = [R::zero(); crate::lanes::MOST];
        S::store(lanes.as_mut_ptr(), half_turns);
        lanes.iter().any(|x| !x.is_zero())
    }
});
