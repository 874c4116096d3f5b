//! Scaling and squaring over the products of a [`Space`].
//!
//! ```text
//! A <- A / 2^s, ||A|| <= THETA,   B = A^2 (Hermitian),   X_0 = cosh A + sinh A,   X_{j+1} = X_j^2,   W = X_s
//! cosh A = c(B) = I + sum_k c_k B^k  (Hermitian),   sinh A = A d(B), d(B) = I + sum_k d_k B^k  (skew)
//! ```
//!
//! to B^3, for double precision to B^6, with the coefficients that approximate the derivatives evenly: the
//! truncation error is below eps / 4. A product of commuting matrices is Hermitian or skew, so half of it is
//! enough. Squaring doubles the distance from unitary: every few squarings X <- X + X (I - X^H X) / 2.
//!
//! The gradient of W is K W with a skew K = W_bar W^H - (W_bar W^H)^H, that of X_0 is K X_0 for a piece of length 2^-s. From
//! it follow those of cosh and sinh, its Hermitian and skew parts, of the powers of B, and of A (`start_bar`); then
//!
//! ```text
//! G_{j+1} = G_j + X_j^H (G_j X_j),   A_bar = G_s
//! ```

use crate::scalar::{Real, Scalar};

/// Bound of ||A|| / 2^s.
pub(super) const THETA: f64 = 0.66;
/// c_k and d_k: c'(z) and d'(z) interpolate cosh' and (sinh A / A)', as functions of z = A^2, at the Chebyshev nodes of
/// -THETA^2 <= z <= 0.
const SINGLE: [[f64; 3]; 2] = [
    [0.49999974607143616, 0.041661418439802624, 0.0013674282181029087],
    [0.16666663840575666, 0.008332749269274964, 0.0001960252286615881],
];
/// The same for double precision.
const DOUBLE: [[f64; 6]; 2] = [
    [
        0.4999999999999997,
        0.04166666666664467,
        0.0013888888884960235,
        2.4801584414632886e-5,
        2.755629608637036e-7,
        2.070255252717565e-9,
    ],
    [
        0.16666666666666666,
        0.008333333333331866,
        0.00019841269838648875,
        2.7557317298049866e-6,
        2.5051425880520504e-8,
        1.5942854413520598e-10,
    ],
];

/// The number of a matrix of the space.
pub(super) type Slot = usize;
/// Matrices of a space. A call starts from A, and [`gradient`] from G too.
pub(super) const SLOTS: usize = 11;
/// A
pub(super) const A: Slot = 0;
/// G
pub(super) const G: Slot = 7;
/// B, its powers, X_0 and, after the start, d(B); a free one.
const B: Slot = 1;
const B2: Slot = 2;
const B3: Slot = 3;
const X: Slot = 4;
const D: Slot = 5;
const T: Slot = 6;
/// Gradients of c and of A; a free one.
const C_BAR: Slot = 8;
const SUM: Slot = 9;
const SPARE: Slot = 10;

/// A known symmetry of a product C.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Symmetry {
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

/// Square matrices of one size, by number: a single matrix each, or one in each lane. Every lane has its own
/// level s.
pub(super) trait Space {
    /// Real numbers.
    type R: Real;
    /// C = base + A B; C may be the base, and is another matrix than A and B.
    fn product(&self, c: Slot, a: Factor, b: Slot, base: Option<Slot>, symmetry: Symmetry);
    /// to = unit I + sum of c_k M_k
    fn combine(&self, to: Slot, unit: f64, terms: &[(f64, Slot)]);
    /// to = c (M + M^H) or c (M - M^H), of that symmetry, and added to `sum`; `to` is not M.
    fn fold(&self, to: Slot, from: Slot, c: f64, symmetry: Symmetry, sum: Option<Slot>);
    /// M <- M / 2^s
    fn shrink(&self, m: Slot);
    /// x = y where the level exceeds a number; y is lost.
    fn keep(&self, x: &mut Slot, y: &mut Slot, level: usize);
    /// The largest level s.
    fn levels(&self) -> usize;
    /// n
    fn size(&self) -> usize;
    /// Given B^2 = A^4, reduces the levels where the sharper bound of ||A|| allows it, and rescales A, B,
    /// B^2.
    fn refine(&mut self, b: Slot, b2: Slot);
}

/// W from A; returns its number.
pub(super) fn exponential<S: Space>(space: &mut S) -> Slot {
    start(space);
    let (mut x, mut y) = (X, D);
    for level in 0..space.levels() {
        square(space, &mut x, &mut y, level);
    }
    x
}

/// A_bar from A and K in [`G`]; returns its number.
pub(super) fn gradient<S: Space>(space: &mut S) -> Slot {
    start(space);
    space.shrink(G);
    start_bar(space);
    let (mut x, mut y, mut sum, mut g) = (X, D, SUM, G);
    for level in 0..space.levels() {
        if level > 0 {
            square(space, &mut x, &mut y, level - 1);
        }
        space.product(B2, Factor::Of(sum), x, None, Symmetry::Any);
        space.product(g, Factor::Adjoint(x), B2, Some(sum), Symmetry::Skew);
        space.keep(&mut sum, &mut g, level);
    }
    sum
}

/// c_k and d_k.
fn coefficients<R: Real>() -> [&'static [f64]; 2] {
    if double::<R>() { [&DOUBLE[0], &DOUBLE[1]] } else { [&SINGLE[0], &SINGLE[1]] }
}

fn double<R: Real>() -> bool {
    R::EPS.f64() < 1e-10
}

/// X_0, B and d(B); in double precision B^2 and B^3 too.
fn start<S: Space>(space: &mut S) {
    space.product(B, Factor::Of(A), A, None, Symmetry::Hermitian);
    space.product(B2, Factor::Of(B), B, None, Symmetry::Hermitian);
    space.refine(B, B2);
    space.product(B3, Factor::Of(B), B2, None, Symmetry::Hermitian);
    for (to, by) in [X, D].into_iter().zip(coefficients::<S::R>()) {
        space.combine(to, 1.0, &[(by[0], B), (by[1], B2), (by[2], B3)]);
        if let Some(by) = by.get(3..6) {
            space.combine(T, 0.0, &[(by[0], B), (by[1], B2), (by[2], B3)]);
            space.product(to, Factor::Of(B3), T, Some(to), Symmetry::Hermitian);
        }
    }
    space.product(T, Factor::Of(A), D, None, Symmetry::Skew);
    space.combine(X, 0.0, &[(1.0, X), (1.0, T)]);
}

/// G_0 in [`SUM`] from K in [`G`], which is lost, like all of [`start`] but A, B, X_0. With the parts C_bar and S_bar of K X_0:
///
/// ```text
/// D_bar = -A S_bar,   A_bar = S_bar D   of sinh A = A D
/// E_k = c_k C_bar + d_k D_bar   of B^k, where c_k and d_k are numbers
/// Q = E_3 B,   P = (E_2 + Q + Q^H / 2) B,   B_bar = E_1 + P + P^H,   A_bar -= B_bar A + A B_bar
/// ```
///
/// of each of which the Hermitian or skew part is taken. For double precision c_k and d_k, k = 1, 2, 3, gain
/// the terms of B^(k + 3).
fn start_bar<S: Space>(space: &mut S) {
    let [c, d] = coefficients::<S::R>();
    let (any, d_bar) = (Symmetry::Any, G);
    space.product(T, Factor::Of(G), X, None, any);
    space.fold(C_BAR, T, 0.5, Symmetry::Hermitian, None);
    space.fold(SPARE, T, 0.5, Symmetry::Skew, None);
    space.product(T, Factor::Of(SPARE), D, None, any);
    space.fold(SUM, T, 0.5, Symmetry::Skew, None);
    space.product(T, Factor::Of(A), SPARE, None, any);
    space.fold(d_bar, T, -0.5, Symmetry::Hermitian, None);
    // E_k, and what is added to it
    let power = |k: usize| [(c[k - 1], C_BAR), (d[k - 1], d_bar)];
    let (high, e) = (double::<S::R>(), D);
    let above = |k: usize| {
        if high {
            space.combine(e, 0.0, &[(1.0, e), (c[k + 2], B2), (d[k + 2], B3)]);
        }
    };
    if high {
        // of the factor B^3 of B^3 (c_4 B + c_5 B^2 + c_6 B^3) and the same of d
        space.combine(D, 0.0, &[(c[3], B), (c[4], B2), (c[5], B3)]);
        space.product(T, Factor::Of(C_BAR), D, None, any);
        space.combine(D, 0.0, &[(d[3], B), (d[4], B2), (d[5], B3)]);
        space.product(T, Factor::Of(d_bar), D, Some(T), any);
        space.combine(e, 0.0, &power(3));
        space.fold(SPARE, T, 0.5, Symmetry::Hermitian, Some(e));
        // and of the other: in the places of B^2 and B^3
        space.product(T, Factor::Of(C_BAR), B3, None, any);
        space.fold(B2, T, 0.5, Symmetry::Hermitian, None);
        space.product(T, Factor::Of(d_bar), B3, None, any);
        space.fold(B3, T, 0.5, Symmetry::Hermitian, None);
        above(3);
    } else {
        space.combine(e, 0.0, &power(3));
    }
    space.product(T, Factor::Of(e), B, None, any);
    // Q + Q^H / 2 = Q / 2 + (Q + Q^H) / 2
    let [of_c, of_d] = power(2);
    space.combine(e, 0.0, &[of_c, of_d, (0.5, T)]);
    above(2);
    space.fold(SPARE, T, 0.5, Symmetry::Hermitian, Some(e));
    space.product(T, Factor::Of(e), B, None, any);
    space.combine(e, 0.0, &power(1));
    above(1);
    space.fold(SPARE, T, 1.0, Symmetry::Hermitian, Some(e));
    space.product(T, Factor::Of(e), A, None, any);
    space.fold(SPARE, T, -1.0, Symmetry::Skew, Some(SUM));
}

/// X <- X^2 where the level exceeds a number, cleaned every few squarings.
fn square<S: Space>(space: &S, x: &mut Slot, y: &mut Slot, level: usize) {
    space.product(*y, Factor::Of(*x), *x, None, Symmetry::Any);
    space.keep(x, y, level);
    if (level + 1).is_multiple_of(period(space.size())) {
        let (gram, gap) = (B, T);
        space.product(gram, Factor::Adjoint(*x), *x, None, Symmetry::Hermitian);
        space.combine(gap, 0.5, &[(-0.5, gram)]);
        space.product(*y, Factor::Of(*x), gap, Some(*x), Symmetry::Any);
        space.keep(x, y, level);
    }
}

/// Squarings between cleanings: an entry of X^H X - I is then some 2^period sqrt(n) eps, well below 20 n eps.
fn period(n: usize) -> usize {
    ((2.5 * (n as f64).sqrt()).log2() as usize).max(2)
}

/// s for ||A|| <= norm 2^power, which may be beyond the range of numbers: 0 unless the norm is finite.
pub(super) fn levels(norm: f64, power: u32) -> usize {
    // negative infinity of zero, and a conversion of what is negative gives 0
    if norm.is_finite() { ((norm / THETA).log2() + f64::from(power)).ceil() as usize } else { 0 }
}

/// A bound of ||B^2||_2 from the sum of squares of its entries: the eigenvalues of a real one come in pairs.
pub(super) fn spectral<T: Scalar>(squares: f64) -> f64 {
    (squares / if T::PARTS == 1 { 2.0 } else { 1.0 }).sqrt()
}

/// The number of levels, at most `levels`, that a bound of ||A||_2^4 makes unnecessary.
pub(super) fn fewer(bound: f64, levels: usize) -> usize {
    let most = (THETA / bound.sqrt().sqrt()).log2();
    if most > 0.0 { (most as usize).min(levels) } else { 0 }
}
