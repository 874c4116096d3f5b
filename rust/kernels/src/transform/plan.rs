//! The numbers of a discrete Fourier transform of n elements.
//!
//! n is a product of 8, 4, 2 and odd primes up to 31, one pass each (Stockham's order: the result of every
//! pass is sorted). Other n go through a cyclic convolution of a longer, smooth length (Bluestein): with c_j
//! = e^{-pi i j^2 / n},
//!
//! ```text
//! X_k = c_k sum_j (x_j c_j) conj(c_{k-j}),
//! ```
//!
//! since 2 j k = j^2 + k^2 - (k - j)^2.

use crate::dispatch::lanes;
use crate::scalar::Real;
use num_complex::Complex64;
use std::f64::consts::PI;

/// The largest prime that has a pass of its own.
pub(super) const PRIME: usize = 31;

/// A pass: x as an array (radix, count, stride) becomes y (count, radix, stride).
#[derive(Clone, Copy)]
pub(super) struct Pass {
    pub radix: usize,
    pub count: usize,
    pub stride: usize,
    /// Where its twiddle factors start: e^{-2 pi i p k / (radix count)} for p < count, 1 <= k < radix.
    pub twiddles: usize,
    /// Where the roots e^{2 pi i j / radix} of an odd radix start.
    pub roots: usize,
}

/// A transform of n elements.
pub struct Plan<R> {
    pub(super) n: usize,
    /// Elements of the transform that the passes make: n, or the length of the convolution.
    pub(super) m: usize,
    pub(super) passes: Vec<Pass>,
    /// Pairs.
    pub(super) numbers: Vec<R>,
    /// c, n pairs; empty where the passes are the transform.
    pub(super) chirp: Vec<R>,
    /// The transform of conj(c) in cyclic order, divided by m.
    pub(super) spectrum: Vec<R>,
}

impl<R: Real> Plan<R> {
    /// For n elements; None if there are none, or memory cannot be allocated.
    pub fn new(n: usize) -> Option<Self> {
        if n == 0 {
            return None;
        }
        let (mut chirp, mut spectrum) = (Vec::new(), Vec::new());
        let (m, radices) = radices(n).map_or_else(|| longer(n), |radices| (n, radices));
        if m != n {
            let c = listed(n, (0..n).map(|j| root(j * j % (2 * n), 2 * n)))?;
            let mut wrapped = listed(m, (0..m).map(|_| Complex64::default()))?;
            for (j, c) in c.iter().enumerate() {
                wrapped[j] = c.conj() / m as f64;
                wrapped[(m - j) % m] = wrapped[j];
            }
            chirp = pairs(&c)?;
            let roots = listed(m, (0..m).map(|k| root(k, m)))?;
            spectrum = pairs(&transformed(&wrapped, &radices, &roots)?)?;
        }
        let each = |(left, radix): (usize, usize)| left / radix * (radix - 1) + radix;
        let lefts =
            radices.iter().scan(m, |left, &radix| Some((std::mem::replace(left, *left / radix), radix)));
        let mut numbers = room(lefts.map(each).sum())?;
        let (mut passes, mut stride, mut left) = (Vec::new(), 1, m);
        for radix in radices {
            let count = left / radix;
            let twiddles = numbers.len();
            numbers.extend((0..count).flat_map(|p| (1..radix).map(move |k| root(p * k, left))));
            let roots = numbers.len();
            numbers.extend((0..radix).map(|j| root(j, radix).conj()));
            passes.push(Pass { radix, count, stride, twiddles: 2 * twiddles, roots: 2 * roots });
            (stride, left) = (stride * radix, count);
        }
        Some(Plan { n, m, passes, numbers: pairs(&numbers)?, chirp, spectrum })
    }

    /// n
    pub(crate) fn len(&self) -> usize {
        self.n
    }

    /// Real numbers that so many buffers need.
    pub fn scratch(&self, buffers: usize) -> usize {
        buffers * self.room() * 2 * lanes::<R>()
    }

    /// Elements that a buffer needs.
    pub(crate) fn room(&self) -> usize {
        self.m
    }

    /// About the number of real multiply-adds of a transform of one row.
    pub fn work(&self) -> usize {
        // a radix r costs about r multiply-adds per element; 8 costs about 5
        let passes: usize = self.passes.iter().map(|pass| pass.radix.min(pass.radix / 2 + 3)).sum();
        let many = if self.m == self.n { 1 } else { 2 };
        self.m.saturating_mul(2 * many).saturating_mul(passes + many)
    }
}

/// The factors of n, None where one is too large.
fn radices(n: usize) -> Option<Vec<usize>> {
    let (mut found, mut n) = (Vec::new(), n);
    for prime in (3..=PRIME).step_by(2) {
        while n.is_multiple_of(prime) {
            found.push(prime);
            n /= prime;
        }
    }
    while n.is_multiple_of(2) {
        // 16 = 4 x 4 rather than 8 x 2
        let radix = if n.is_multiple_of(8) && n != 16 {
            8
        } else if n.is_multiple_of(4) {
            4
        } else {
            2
        };
        found.push(radix);
        n /= radix;
    }
    (n == 1).then_some(found)
}

/// A length of at least 2 n - 1 and its factors: the smallest of 5/8, 3/4 and 1 times a power of two.
fn longer(n: usize) -> (usize, Vec<usize>) {
    let power = (2 * n - 1).next_power_of_two().max(8);
    let m = [power / 8 * 5, power / 4 * 3, power].into_iter().find(|&m| m >= 2 * n - 1).unwrap_or(power);
    (m, radices(m).unwrap_or_default())
}

/// e^{-2 pi i k / n}
fn root(k: usize, n: usize) -> Complex64 {
    Complex64::cis(-2.0 * PI * (k % n) as f64 / n as f64)
}

fn pairs<R: Real>(numbers: &[Complex64]) -> Option<Vec<R>> {
    listed(2 * numbers.len(), numbers.iter().flat_map(|z| [R::of(z.re), R::of(z.im)]))
}

/// An empty list with room for this many elements.
fn room<E>(len: usize) -> Option<Vec<E>> {
    let mut list = Vec::new();
    list.try_reserve_exact(len).ok().map(|()| list)
}

/// A list of this many elements.
fn listed<E>(len: usize, elements: impl Iterator<Item = E>) -> Option<Vec<E>> {
    let mut list = room(len)?;
    list.extend(elements.take(len));
    Some(list)
}

/// The transform of x, whose length is the product of the radices, by its definition on every factor; `roots` are those of
/// the whole length.
fn transformed(x: &[Complex64], radices: &[usize], roots: &[Complex64]) -> Option<Vec<Complex64>> {
    let Some((&radix, rest)) = radices.split_first() else { return listed(x.len(), x.iter().copied()) };
    let (n, count) = (x.len(), x.len() / radix);
    let step = roots.len() / n;
    let mut parts = room(radix)?;
    for j in 0..radix {
        parts.push(transformed(&listed(count, x.iter().skip(j).step_by(radix).copied())?, rest, roots)?);
    }
    let mut sums = listed(n, (0..n).map(|_| Complex64::default()))?;
    for (j, part) in parts.iter().enumerate() {
        let mut turn = 0;
        for (sum, x) in sums.iter_mut().zip(part.iter().cycle()) {
            *sum += x * roots[turn * step];
            turn += j;
            turn -= if turn >= n { n } else { 0 };
        }
    }
    Some(sums)
}
