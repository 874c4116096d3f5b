//! Scaling and squaring over the products of a [`Space`].
//!
//! ```text
//! A <- A / 2^s, ||A|| <= THETA,   B = A^2 (Hermitian),   X_0 = cosh A + sinh A,   X_{j+1} = X_j^2,   W = X_s
//! cosh A = sum_k B^k / (2k)!  (Hermitian),   sinh A = A sum_k B^k / (2k + 1)!  (skew)
//! ```
//!
//! to B^3, for double precision to B^6; what is left out is below eps / 2. Half of a product of commuting matrices says
//! all of it. Squaring doubles the distance from unitary: every few squarings X <- X + X (I - X^H X) / 2.
//!
//! The gradient is an average over e^{-tA} K e^{tA}, t in [0, 1], which is a series for a short piece and twice as long
//! after each step:
//!
//! ```text
//! G_0 = 2^-s sum_k (-ad_A)^k K / (k + 1)!,   ad_A G = A G - (A G)^H,   G_{j+1} = G_j + X_j^H (G_j X_j),   A_bar = G_s
//! ```
//!
//! All G are skew, since K = W_bar W^H - (W_bar W^H)^H is. They are exact derivatives of exp, not of a truncated series:
//! the powers X_j are the true ones to rounding, and terms are added until they are below eps.

use crate::scalar::Real;

/// Bound of ||A|| / 2^s.
pub(super) const THETA: f64 = 0.43;

/// The number of a matrix of the space.
pub(super) type Slot = usize;
/// Matrices of a space: those that a call starts from are A, and G in [`gradient`].
pub(super) const SLOTS: usize = 8;
/// A
pub(super) const A: Slot = 0;
/// G
pub(super) const G: Slot = 7;

/// What is known of a product C.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Nothing.
    Any,
    /// C^H = C
    Hermitian,
    /// C^H = -C
    Skew,
}

/// A matrix, or its conjugate transpose.
#[derive(Clone, Copy)]
pub(super) enum Factor {
    /// M
    Of(Slot),
    /// M^H
    Adjoint(Slot),
}

/// Square matrices of one size, by number: one of each, or one in each lane. Lanes have levels s of their own.
pub(super) trait Space {
    /// Real numbers.
    type R: Real;
    /// C = base + A B; C may be the base, and is another matrix than A and B.
    fn product(&self, c: Slot, a: Factor, b: Slot, base: Option<Slot>, kind: Kind);
    /// to = unit I + sum of c_k M_k
    fn combine(&self, to: Slot, unit: f64, terms: &[(f64, Slot)]);
    /// to = c (M - M^H), and added to `sum`.
    fn skew(&self, to: Slot, from: Slot, c: f64, sum: Slot);
    /// M <- M / 2^s
    fn shrink(&self, m: Slot);
    /// x = y where the level exceeds a number; y is lost.
    fn keep(&self, x: &mut Slot, y: &mut Slot, level: usize);
    /// The largest level s.
    fn levels(&self) -> usize;
    /// n
    fn size(&self) -> usize;
    /// After B = A^2 is known: a bound of ||A||, and the levels where they are larger than it asks for, with A and B.
    fn refine(&mut self, b: Slot) -> f64;
}

/// W of A; returns where it is.
pub(super) fn exponential<S: Space>(space: &mut S) -> Slot {
    let (mut x, mut y, _) = start(space);
    for level in 0..space.levels() {
        square(space, &mut x, &mut y, level);
    }
    x
}

/// A_bar from A and K in [`G`]; returns where it is.
pub(super) fn gradient<S: Space>(space: &mut S) -> Slot {
    let (mut x, mut y, bound) = start(space);
    space.shrink(G);
    let [mut g, t, mut sum, mut next] = [G, 1, 2, 3];
    space.combine(sum, 0.0, &[(1.0, g)]);
    for k in 1..=terms::<S::R>(2.0 * bound) {
        space.product(t, Factor::Of(A), g, None, Kind::Any);
        space.skew(next, t, -1.0 / (k + 1) as f64, sum);
        std::mem::swap(&mut g, &mut next);
    }
    for level in 0..space.levels() {
        if level > 0 {
            square(space, &mut x, &mut y, level - 1);
        }
        space.product(t, Factor::Of(sum), x, None, Kind::Any);
        space.product(g, Factor::Adjoint(x), t, Some(sum), Kind::Skew);
        space.keep(&mut sum, &mut g, level);
    }
    sum
}

/// The number of terms of the series of the gradient behind the first, for ||ad_A|| <= x.
fn terms<R: Real>(x: f64) -> usize {
    let (mut k, mut next) = (0, x / 2.0);
    while next > R::EPS.f64() / 4.0 {
        k += 1;
        next *= x / (k + 2) as f64;
    }
    k
}

/// Where X_0 is, another free matrix, and a bound of ||A||.
fn start<S: Space>(space: &mut S) -> (Slot, Slot, f64) {
    let [b, b2, b3, c, d, t] = [1, 2, 3, 4, 5, 6];
    space.product(b, Factor::Of(A), A, None, Kind::Hermitian);
    let bound = space.refine(b);
    space.product(b2, Factor::Of(b), b, None, Kind::Hermitian);
    space.product(b3, Factor::Of(b), b2, None, Kind::Hermitian);
    // c = sum_k B^k / (2k)!, d = sum_k B^k / (2k + 1)!
    for (to, first) in [(c, 0), (d, 1)] {
        let by = |k: usize| 1.0 / (1..=2 * k + first).map(|f| f as f64).product::<f64>();
        space.combine(to, 1.0, &[(by(1), b), (by(2), b2), (by(3), b3)]);
        if S::R::EPS.f64() < 1e-10 {
            space.combine(t, 0.0, &[(by(4), b), (by(5), b2), (by(6), b3)]);
            space.product(to, Factor::Of(b3), t, Some(to), Kind::Hermitian);
        }
    }
    space.product(t, Factor::Of(A), d, None, Kind::Skew);
    space.combine(c, 0.0, &[(1.0, c), (1.0, t)]);
    (c, d, bound)
}

/// X <- X^2 where the level exceeds a number, cleaned every few squarings.
fn square<S: Space>(space: &S, x: &mut Slot, y: &mut Slot, level: usize) {
    space.product(*y, Factor::Of(*x), *x, None, Kind::Any);
    space.keep(x, y, level);
    if (level + 1).is_multiple_of(period(space.size())) {
        let (gram, gap) = (1, 6);
        space.product(gram, Factor::Adjoint(*x), *x, None, Kind::Hermitian);
        space.combine(gap, 0.5, &[(-0.5, gram)]);
        space.product(*y, Factor::Of(*x), gap, Some(*x), Kind::Any);
        space.keep(x, y, level);
    }
}

/// Squarings between cleanings: an entry of X^H X - I is then some 2^period sqrt(n) eps, well below 20 n eps.
fn period(n: usize) -> usize {
    ((2.5 * (n as f64).sqrt()).log2() as usize).max(2)
}

/// s for ||A|| <= norm: 0 unless it is a finite number.
pub(super) fn levels(norm: f64) -> usize {
    if norm.is_finite() && norm > THETA { (norm / THETA).log2().ceil() as usize } else { 0 }
}
