//! A loop of fused multiply-adds in registers, whose rate no computation of this instruction set exceeds.

use crate::dispatch::{Kernel, dispatch, lanes};
use crate::simd::Simd;
use std::hint::black_box;

/// Sums that do not wait for each other: two multiply-adds per cycle that take four or five cycles each need ten.
const SUMS: usize = 12;

struct Sums {
    rounds: usize,
}

impl Kernel<f32> for Sums {
    type Output = f32;

    #[inline(always)]
    unsafe fn run<S: Simd<R = f32>>(&self) -> f32 {
        // SAFETY: arithmetic, and one vector to an array that has room for the widest.
        unsafe {
            let (a, b) = (S::splat(black_box(1e-3)), S::splat(black_box(1e-3)));
            let mut sums = [S::zero(); SUMS];
            for _ in 0..self.rounds {
                for sum in &mut sums {
                    S::accumulate(sum, a, b);
                }
            }
            let whole = sums.into_iter().fold(S::zero(), |whole, sum| S::add(whole, sum));
            let mut numbers = [0.0; 16];
            S::store(numbers.as_mut_ptr(), whole);
            numbers[0]
        }
    }
}

/// Multiplies and adds on this thread; returns the number of operations, two for each multiply-add.
pub fn multiply_adds(rounds: usize) -> usize {
    // SAFETY: the kernel has no data.
    black_box(unsafe { dispatch::<f32, _>(&Sums { rounds }) });
    2 * SUMS * lanes::<f32>() * rounds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lane_of_every_sum_counts() {
        // SAFETY: the kernel has no data.
        let whole = unsafe { dispatch::<f32, _>(&Sums { rounds: 1000 }) };
        assert!((whole - SUMS as f32 * 1e-3).abs() < 1e-5, "{whole}");
        assert_eq!(multiply_adds(10), 240 * lanes::<f32>());
    }
}
