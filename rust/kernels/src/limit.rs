//! A loop of fused multiply-adds in registers, whose rate no computation of this instruction set exceeds.

use crate::dispatch::{Kernel, dispatch, lanes};
use crate::simd::{Simd, WIDEST};
use std::hint::black_box;

/// Sums that do not wait for each other: two multiply-adds per cycle that take four or five cycles each need ten.
const SUMS: usize = 12;
const FACTORS: [f32; 2] = [0.5, 0.25];
/// What a multiply-add adds: a power of two, so that nothing is rounded.
pub const STEP: f32 = FACTORS[0] * FACTORS[1];

/// Adds to all sums in every round, from zero; returns the lanes of all.
struct Sums {
    rounds: usize,
}

impl Kernel<f32, [[f32; WIDEST]; SUMS]> for Sums {
    #[inline(always)]
    unsafe fn run<S: Simd<R = f32>>(&self) -> [[f32; WIDEST]; SUMS] {
        const { assert!(S::LANES <= WIDEST) };
        // opaque values: otherwise the compiler drops lanes, or computes equal sums once
        let (numbers, factors) =
            (black_box([[0.0; WIDEST]; SUMS]), black_box([[FACTORS[0]; WIDEST], [FACTORS[1]; WIDEST]]));
        let mut found = numbers;
        // SAFETY: each array has room for the widest vector.
        unsafe {
            let [a, b] = [S::load(factors[0].as_ptr()), S::load(factors[1].as_ptr())];
            let mut sums = [S::zero(); SUMS];
            for (sum, numbers) in sums.iter_mut().zip(&numbers) {
                *sum = S::load(numbers.as_ptr());
            }
            for _ in 0..self.rounds {
                for sum in &mut sums {
                    S::accumulate(sum, a, b);
                }
            }
            for (sum, found) in sums.into_iter().zip(&mut found) {
                S::store(found.as_mut_ptr(), sum);
            }
        }
        found
    }
}

/// Runs the loop on this thread. Returns the number of operations, two for a multiply-add, and the sum over all lanes, to each of
/// which a round adds [`STEP`].
pub fn multiply_adds(rounds: usize) -> (usize, f32) {
    // SAFETY: the kernel has no data.
    let found = unsafe { dispatch::<f32, _, _>(&Sums { rounds }) };
    (2 * SUMS * lanes::<f32>() * rounds, found.iter().flat_map(|sum| &sum[..lanes::<f32>()]).sum())
}
