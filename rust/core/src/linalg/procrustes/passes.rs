//! What the iterations do besides products: scales, norms and eigenvalues of their matrices, by all members. Measures are the
//! same on all of them, since each adds the same sums of rows in the same order; the next one stands behind a barrier.

use crate::kernels::{Operand, Product};
use crate::parallel::Member;
use crate::scalar::{Real, Scalar};
use crate::scratch::{Arena, Region};
use isometry_kernels::procrustes::{LIFT, lifted, normal, small};
use num_traits::Float;

/// Rows of a block.
pub(super) const BLOCK: usize = 16;
/// Most steps of Lanczos' method.
pub(super) const LANCZOS: usize = 24;
/// Bisections for the eigenvalues of its tridiagonal matrix.
const BISECTIONS: usize = 40;

/// What the members share.
#[derive(Clone, Copy)]
pub(super) struct Sums<T: Scalar> {
    rows: Region<f64>,
    /// Of Lanczos' method.
    vectors: Region<T>,
}

impl<T: Scalar> Sums<T> {
    /// For arrays of at most m rows, n x n matrices and this many steps of Lanczos' method.
    pub fn carve(arena: &mut Arena, (m, n): (usize, usize), steps: usize) -> Self {
        Sums { rows: arena.take(&[2, m]), vectors: arena.take(&[steps + 1, n]) }
    }
}

/// Passes over n x n matrices, made by all members.
pub(super) struct Passes<'a, T: Scalar> {
    pub member: &'a Member<'a>,
    pub n: usize,
    pub sums: Sums<T>,
    /// Memory of this member, for products.
    pub scratch: *mut T::Real,
}

/// What brings the largest part of a matrix to \[1, 2): a power of two, in factors that are in range, of numbers that may be denormal.
#[derive(Clone, Copy)]
pub(super) struct Scale<R> {
    lift: bool,
    by: [R; 2],
}

impl<R: Real> Scale<R> {
    /// From the largest part, as it is or lifted.
    pub fn new(largest: impl Fn(bool) -> f64) -> Self {
        let size = largest(false);
        let lift = size < small::<R>().f64();
        let size = if lift { largest(true) } else { size };
        Scale { lift, by: normal(size).map(R::of) }
    }

    /// The scaled number.
    pub fn of<T: Scalar<Real = R>>(self, x: T) -> T {
        let x = if self.lift { T::new(lifted(x.re()), lifted(x.im())) } else { x };
        x.scale(self.by[0]).scale(self.by[1])
    }

    /// The gradient in a matrix from that in the scaled one; what overflows is the largest number.
    pub fn pull<T: Scalar<Real = R>>(self, x: T) -> T {
        let lift = R::of(if self.lift { LIFT } else { 1.0 });
        let x = x.scale(self.by[0] * lift).scale(self.by[1]);
        // not min and max, which lose NaN
        let bounded = |x: R| if x.abs() > R::max_value() { R::max_value().copysign(x) } else { x };
        T::new(bounded(x.re()), bounded(x.im()))
    }
}

impl<T: Scalar> Passes<'_, T> {
    /// What scales an array of m rows of n elements.
    pub unsafe fn scale(&self, from: *const T, m: usize) -> Scale<T::Real> {
        // SAFETY: the caller's array; all members measure the same, the second time after all have read the sums of the first.
        Scale::new(|lift| unsafe {
            if !lift {
                return self.largest(from, m, |x| x);
            }
            self.member.barrier();
            self.largest(from, m, lifted)
        })
    }

    /// The largest |part|, each changed in some way.
    unsafe fn largest(&self, from: *const T, m: usize, of: impl Fn(T::Real) -> T::Real) -> f64 {
        let (n, rows) = (self.n, self.sums.rows.ptr());
        let larger = |most: T::Real, x: T::Real| if x.abs() > most { x.abs() } else { most };
        let zero = T::Real::of(0.0);
        for i in self.member.share(m, BLOCK) {
            // SAFETY: the array has these rows; members write disjoint sums.
            unsafe {
                let row = std::slice::from_raw_parts(from.add(i * n), n);
                let most = sums(row, zero, |most, x| larger(larger(most, of(x.re())), of(x.im())));
                *rows.add(i) = most.into_iter().fold(zero, larger).f64();
            }
        }
        self.member.barrier();
        // SAFETY: all sums are written.
        (0..m).map(|i| unsafe { *rows.add(i) }).fold(0.0, f64::max)
    }

    /// ||G - I||_F and ||G||_F of a Hermitian G, of which the triangle above the diagonal is read.
    pub unsafe fn norms(&self, g: *const T) -> [f64; 2] {
        let (n, rows) = (self.n, self.sums.rows.ptr());
        let more = rows.wrapping_add(n);
        for i in self.blocks().flatten() {
            // SAFETY: G has n rows; members write disjoint sums.
            unsafe {
                let row = std::slice::from_raw_parts(g.add(i * n + i + 1), n - i - 1);
                let sum = 2.0 * sums(row, 0.0, |sum, x| sum + x.abs2().f64()).into_iter().sum::<f64>();
                let x = *g.add(i * n + i);
                (*rows.add(i), *more.add(i)) = (sum + (x - T::one()).abs2().f64(), sum + x.abs2().f64());
            }
        }
        self.member.barrier();
        // SAFETY: all sums are written.
        [rows, more].map(|rows| (0..n).map(|i| unsafe { *rows.add(i) }).sum::<f64>().sqrt())
    }

    /// The smallest and the largest eigenvalue of a Hermitian matrix, from within, by steps of Lanczos' method: orthogonal r_j of
    /// lengths b_j and
    ///
    /// ```text
    /// r_j G / b_j = r_{j+1} + a_j r_j / b_j + b_j r_{j-1} / b_{j-1}.
    /// ```
    pub unsafe fn ends(&self, g: *const T, steps: usize, seed: usize) -> [f64; 2] {
        let (n, member, vectors) = (self.n, self.member, self.sums.vectors.ptr());
        for j in member.share(n, BLOCK) {
            // SAFETY: members write disjoint elements.
            unsafe { *vectors.add(j) = T::real(T::Real::of(uniform(seed * n + j) - 0.5)) };
        }
        member.barrier();
        let (mut diagonal, mut beside) = ([0.0; LANCZOS], [0.0; LANCZOS + 1]);
        let (mut made, mut largest) = (0, 0.0f64);
        for step in 0..steps.min(n) {
            let (r, next) = (vectors.wrapping_add(step * n), vectors.wrapping_add((step + 1) * n));
            // SAFETY: barriers separate the vectors from those who read them; the first step does not read one before it.
            unsafe {
                let length = (0..n).map(|j| (*r.add(j)).abs2().f64()).sum::<f64>().sqrt();
                beside[step] = length;
                // false of NaN too
                let goes_on = length > n as f64 * T::Real::EPS.f64() * largest;
                if step > 0 && !goes_on {
                    break;
                }
                let (row, matrix) = (Operand::new(r.cast_const(), n), Operand::new(g, n));
                Product::new((1, n, n), row, matrix, next, n).alpha(1.0 / length).run(member, self.scratch);
                member.barrier();
                let along =
                    (0..n).map(|j| (*next.add(j) * (*r.add(j)).conj()).re().f64()).sum::<f64>() / length;
                (diagonal[step], largest, made) = (along, largest.max(along.abs()), step + 1);
                member.barrier();
                let by = T::Real::of(along / length);
                let before = T::Real::of(if step > 0 { length / beside[step - 1] } else { 0.0 });
                for j in member.share(n, BLOCK) {
                    let x = *next.add(j) - (*r.add(j)).scale(by);
                    *next.add(j) = if step > 0 { x - (*r.sub(n).add(j)).scale(before) } else { x };
                }
                member.barrier();
            }
        }
        ends(&diagonal[..made], &beside[1..made.max(1)])
    }

    /// All of a Y with Y^H = -Y, from the triangle above the diagonal.
    pub unsafe fn skew(&self, y: *mut T) {
        let n = self.n;
        self.pairs(|i, j| {
            // SAFETY: Y has the elements; pairs are disjoint.
            unsafe {
                let x = *y.add(i * n + j);
                let x = if i == j { (x - x.conj()).scale(T::Real::of(0.5)) } else { x };
                (*y.add(i * n + j), *y.add(j * n + i)) = (x, -x.conj());
            }
        });
    }

    /// G <- by G + add I of a Hermitian G, from the triangle above the diagonal.
    pub unsafe fn hermitian(&self, g: *mut T, by: f64, add: f64) {
        // SAFETY: the caller's matrix.
        unsafe { self.affine(g, (by, add), |upper, _| upper) }
    }

    /// The same from the mean of both triangles: in one alone elimination without pivots leaves ten times the errors.
    pub unsafe fn mean(&self, g: *mut T, by: f64, add: f64) {
        // SAFETY: the caller's matrix.
        unsafe { self.affine(g, (0.5 * by, add), |upper, lower| upper + lower.conj()) }
    }

    unsafe fn affine(&self, g: *mut T, (by, add): (f64, f64), of: impl Fn(T, T) -> T) {
        let (n, by, add) = (self.n, T::Real::of(by), T::Real::of(add));
        self.pairs(|i, j| {
            // SAFETY: G has the elements; pairs are disjoint.
            unsafe {
                let x = of(*g.add(i * n + j), *g.add(j * n + i)).scale(by);
                let x = if i == j { T::real(x.re() + add) } else { x };
                (*g.add(i * n + j), *g.add(j * n + i)) = (x, x.conj());
            }
        });
    }

    /// `f(i, j)` for all i <= j < n; ends with a barrier.
    pub fn pairs(&self, f: impl Fn(usize, usize)) {
        let n = self.n;
        for rows in self.blocks() {
            for first in (rows.start..n).step_by(BLOCK) {
                for i in rows.clone() {
                    for j in first.max(i)..(first + BLOCK).min(n) {
                        f(i, j);
                    }
                }
            }
        }
        self.member.barrier();
    }

    /// This member's blocks of rows, every so many: in a triangle the first are longer.
    fn blocks(&self) -> impl Iterator<Item = std::ops::Range<usize>> {
        let (n, id, count) = (self.n, self.member.id, self.member.count);
        (id * BLOCK..n).step_by(count * BLOCK).map(move |first| first..(first + BLOCK).min(n))
    }
}

/// The smallest and the largest eigenvalue of a tridiagonal matrix, by bisection; NaN if it holds NaN.
fn ends(diagonal: &[f64], beside: &[f64]) -> [f64; 2] {
    let bound = diagonal.iter().map(|x| x.abs()).fold(0.0, f64::max)
        + 2.0 * beside.iter().copied().fold(0.0, f64::max);
    // pivots of the matrix less x I: as many are negative as there are eigenvalues below x
    let below = |x: f64| {
        let mut pivot = 1.0;
        let squares = std::iter::once(0.0).chain(beside.iter().map(|b| b * b));
        let negative = |(a, square): (&f64, f64)| {
            pivot = a - x - square / pivot;
            pivot = if pivot == 0.0 { f64::MIN_POSITIVE } else { pivot };
            pivot < 0.0
        };
        diagonal.iter().zip(squares).map(negative).filter(|&negative| negative).count()
    };
    [1, diagonal.len()].map(|rank| {
        let (mut low, mut high) = (-bound, bound);
        for _ in 0..BISECTIONS {
            let middle = 0.5 * (low + high);
            *(if below(middle) >= rank { &mut high } else { &mut low }) = middle;
        }
        if diagonal.iter().any(|x| x.is_nan()) { f64::NAN } else { 0.5 * (low + high) }
    })
}

/// Eight sums of a row, for vectors.
fn sums<T: Copy, S: Copy>(row: &[T], zero: S, add: impl Fn(S, T) -> S) -> [S; 8] {
    let mut all = [zero; 8];
    let (parts, rest) = row.as_chunks::<8>();
    for part in parts {
        for (sum, x) in all.iter_mut().zip(part) {
            *sum = add(*sum, *x);
        }
    }
    for (sum, x) in all.iter_mut().zip(rest) {
        *sum = add(*sum, *x);
    }
    all
}

/// The x-th of numbers in \[0, 1) that look random.
pub(super) fn uniform(x: usize) -> f64 {
    let x = (x as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (x >> 40) as f64 / (1u64 << 24) as f64
}
