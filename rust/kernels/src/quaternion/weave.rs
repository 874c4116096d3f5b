//! Short vectors of consecutive numbers, one per lane: K loads and K^2 permutations, so that no store is partial.

use crate::lanes::MOST;
use crate::scalar::Real;
use crate::simd::Simd;
use num_traits::Zero;

/// Reads and writes K numbers for each lane.
pub(super) struct Weave<S: Simd, const K: usize> {
    /// Where component c of lane l stands: in vector `part[c]`, lane `from[c]`.
    from: [S::Index; K],
    part: [S::V; K],
    /// What lane l of vector j holds: component `which[j]` of lane `to[j]`.
    to: [S::Index; K],
    which: [S::V; K],
}

impl<S: Simd, const K: usize> Weave<S, K> {
    /// # Safety
    /// The processor supports S.
    #[inline(always)]
    pub(super) unsafe fn new() -> Self {
        // SAFETY: arithmetic on constants; the caller ensures that the processor supports S.
        unsafe {
            let mut weave = Weave {
                from: [S::index(|_| 0); K],
                part: [S::zero(); K],
                to: [S::index(|_| 0); K],
                which: [S::zero(); K],
            };
            for c in 0..K {
                let [mut part, mut which] = [[S::R::zero(); MOST]; 2];
                for lane in 0..S::LANES {
                    part[lane] = S::R::of(((K * lane + c) / S::LANES) as f64);
                    which[lane] = S::R::of(((c * S::LANES + lane) % K) as f64);
                }
                weave.from[c] = S::index(|lane| K * lane + c);
                weave.to[c] = S::index(|lane| (c * S::LANES + lane) / K);
                (weave.part[c], weave.which[c]) = (S::load(part.as_ptr()), S::load(which.as_ptr()));
            }
            weave
        }
    }

    /// The components of `live` lanes (any number; more than LANES counts as LANES); zeros for the rest.
    ///
    /// # Safety
    /// p has their numbers.
    #[inline(always)]
    pub(super) unsafe fn read(&self, p: *const S::R, live: usize) -> [S::V; K] {
        // SAFETY: the contract above.
        unsafe {
            let mut x = [S::zero(); K];
            for j in 0..K {
                x[j] = S::load_n(p.wrapping_add(j * S::LANES), (live * K).saturating_sub(j * S::LANES));
            }
            let mut out = x;
            for c in 0..K {
                out[c] = S::permute(x[0], self.from[c]);
                for j in 1..K {
                    let own = S::splat(S::R::of(j as f64));
                    out[c] = S::select_eq(self.part[c], own, S::permute(x[j], self.from[c]), out[c]);
                }
            }
            out
        }
    }

    /// Writes the components of `live` lanes.
    ///
    /// # Safety
    /// p has room for their numbers.
    #[inline(always)]
    pub(super) unsafe fn write(&self, x: [S::V; K], p: *mut S::R, live: usize) {
        // SAFETY: the contract above.
        unsafe {
            for j in 0..K {
                let mut out = S::permute(x[0], self.to[j]);
                for c in 1..K {
                    let own = S::splat(S::R::of(c as f64));
                    out = S::select_eq(self.which[j], own, S::permute(x[c], self.to[j]), out);
                }
                let at = p.wrapping_add(j * S::LANES);
                S::store_n(at, out, (live * K).saturating_sub(j * S::LANES));
            }
        }
    }
}
