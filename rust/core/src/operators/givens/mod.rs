//! Products of plane rotations at chosen pairs of coordinates: W = G_1 G_2 ... G_m, where G_k turns the plane of (i, j) by theta:
//!
//! ```text
//! y_i = cos(theta) x_i - sin(theta) x_j,   y_j = sin(theta) x_i + cos(theta) x_j;   G_m acts first.
//! theta_bar = Re(conj(g_j) y_i) - Re(conj(g_i) y_j),   x = G^T y,   x_bar = G^T g
//! ```
//!
//! for the cotangent g of y: the backward undoes the rotations on y and g, and needs no array between them.
//!
//! n is the shape of the first argument, which has no elements. A block of rows is transposed, so that a vector register holds one
//! coordinate of all its rows. A complex row is two real ones, since W is real.

use crate::argument;
use crate::argument::{Argument, Array, Given, all};
use crate::cpu::Cpu;
use crate::error::{Error, Result};
use crate::kernels::Buffer;
use crate::operator::Operator;
use crate::rows::{MatrixBars, Rows};
use crate::scalar::{Real, Scalar};
use crate::side::Side;
use crate::sizes::{check_len, size, work};
use crate::transition::Route;
use isometry_kernels::angles::Angles;
use num_traits::Zero;
use std::array::from_fn;

/// The arguments: the first has no elements.
pub const ARGUMENTS: &[Argument] =
    &[argument!("frame", "n 0", shape), argument!("angles", "m", real), argument!("pairs", "m 2", integer)];

/// Real rows of a block.
const LANES: usize = 8;

/// A coordinate of all rows of a block.
type Across<R> = [R; LANES];

/// Products of plane rotations.
pub struct Givens<'a, T: Scalar> {
    batch: usize,
    n: usize,
    m: usize,
    angles: &'a [T::Real],
    pairs: &'a [i64],
    /// i and j of every pair.
    places: Buffer<usize>,
    /// The sines of all angles, then the cosines.
    table: Buffer<T::Real>,
}

impl<'a, T: Scalar> Givens<'a, T> {
    /// A view of angles (batch, m) and pairs (batch, m, 2) of 0..n.
    pub fn new(angles: &'a [T::Real], pairs: &'a [i64], batch: usize, n: usize, m: usize) -> Result<Self> {
        check_len("angles", angles.len(), &[batch, m])?;
        check_len("pairs", pairs.len(), &[batch, m, 2])?;
        let mut places = Buffer::zeroed(pairs.len())?;
        for (to, pair) in places.chunks_exact_mut(2).zip(pairs.chunks_exact(2)) {
            to.copy_from_slice(&checked(pair, n)?);
        }
        let mut table = Buffer::zeroed(size("angles", &[2, angles.len()])?)?;
        let (sin, cos) = table.split_at_mut(angles.len());
        let (x, count) = (angles.as_ptr(), angles.len());
        // SAFETY: three arrays of as many numbers.
        unsafe { Angles { x, sin: sin.as_mut_ptr(), cos: cos.as_mut_ptr(), count }.call() };
        Ok(Givens { batch, n, m, angles, pairs, places, table })
    }

    /// A view of [`ARGUMENTS`].
    pub fn of(given: &[Given<'a, T>]) -> Result<Self> {
        let [frame, angles, pairs] = all(given)?;
        let [one, n, _] = frame.sizes("frame")?;
        let [batch, m] = angles.sizes("angles")?;
        let [_, _, two] = pairs.sizes("pairs")?;
        check_len("pairs", two, &[2])?;
        if one != 1 {
            check_len("frame", one, &[batch])?;
        }
        let lacking = || Error::value("angles", "must be given, of the real type of the matrix");
        Self::new(angles.real().ok_or_else(lacking)?, pairs.integers("pairs")?, batch, n, m)
    }

    /// i, j, cosine and sine of rotation k of matrix b.
    fn plane(&self, b: usize, k: usize) -> (usize, usize, T::Real, T::Real) {
        let at = b * self.m + k;
        (self.places[2 * at], self.places[2 * at + 1], self.table[self.angles.len() + at], self.table[at])
    }

    /// Rows into a block; lanes without a row are zero.
    ///
    /// # Safety
    /// The rows exist, as many as fit, and the block has n vectors.
    unsafe fn take(&self, x: *const T, rows: usize, y: *mut Across<T::Real>) {
        let x = x.cast::<T::Real>();
        for i in 0..self.n {
            let one = |lane: usize| {
                let (row, part) = (lane / T::PARTS, lane % T::PARTS);
                if row >= rows {
                    return Zero::zero();
                }
                // SAFETY: the contract above.
                unsafe { *x.add((row * self.n + i) * T::PARTS + part) }
            };
            // SAFETY: the contract above.
            unsafe { y.add(i).write(from_fn(one)) };
        }
    }

    /// The rows of a block.
    ///
    /// # Safety
    /// As for `take`.
    unsafe fn give(&self, y: *const Across<T::Real>, rows: usize, out: *mut T) {
        let out = out.cast::<T::Real>();
        for i in 0..self.n {
            // SAFETY: the contract above.
            let own = unsafe { *y.add(i) };
            for (lane, value) in own.iter().enumerate().take(rows * T::PARTS) {
                let (row, part) = (lane / T::PARTS, lane % T::PARTS);
                // SAFETY: the contract above.
                unsafe { out.add((row * self.n + i) * T::PARTS + part).write(*value) };
            }
        }
    }

    /// W or W^T on a block.
    ///
    /// # Safety
    /// There is matrix b, and the block has n vectors.
    unsafe fn through(&self, b: usize, side: Side, y: *mut Across<T::Real>) {
        for k in 0..self.m {
            // SAFETY: the contract above; places were checked.
            unsafe {
                if side == Side::Forward {
                    let (i, j, c, s) = self.plane(b, self.m - 1 - k);
                    turn(y.add(i), y.add(j), c, s);
                } else {
                    let (i, j, c, s) = self.plane(b, k);
                    turn(y.add(i), y.add(j), c, -s);
                }
            }
        }
    }
}

/// One rotation of two coordinates.
///
/// # Safety
/// Both exist and are not the same.
#[inline(always)]
unsafe fn turn<R: Real>(i: *mut Across<R>, j: *mut Across<R>, c: R, s: R) {
    // SAFETY: the contract above.
    unsafe {
        let (a, b) = (*i, *j);
        *i = from_fn(|l| c * a[l] - s * b[l]);
        *j = from_fn(|l| s * a[l] + c * b[l]);
    }
}

/// The pair as places, if they are two of 0..n.
fn checked(pair: &[i64], n: usize) -> Result<[usize; 2]> {
    let place = |i: i64| usize::try_from(i).ok().filter(|&i| i < n);
    match (place(pair[0]), place(pair[1])) {
        (Some(i), Some(j)) if i != j => Ok([i, j]),
        _ => {
            let (most, [i, j]) = (n.saturating_sub(1), [pair[0], pair[1]]);
            Err(Error::value(
                "pairs",
                format!("must hold two different integers of 0..{most} each, got ({i}, {j})"),
            ))
        }
    }
}

/// Refuses pairs that are no two coordinates.
pub fn check_values<T: Scalar>(given: &[Given<'_, T>]) -> Result<()> {
    let [frame, _, pairs] = all(given)?;
    let Array::Integers(own) = pairs.array else { return Ok(()) };
    let [_, n, _] = frame.sizes("frame")?;
    own.chunks_exact(2).try_for_each(|pair| checked(pair, n).map(|_| ()))
}

impl<T: Scalar> Operator<T> for Givens<'_, T> {
    fn batch(&self) -> usize {
        self.batch
    }
    fn shape(&self) -> (usize, usize) {
        (self.n, self.n)
    }
    fn arguments(&self) -> &'static [Argument] {
        ARGUMENTS
    }
    fn argument(&self, i: usize) -> Array<'_, T> {
        match i {
            0 => Array::Own(&[]),
            1 => Array::Real(self.angles),
            _ => Array::Integers(self.pairs),
        }
    }
}

impl<T: Scalar> Cpu<T> for Givens<'_, T> {
    fn rows(&self) -> Option<&dyn Rows<T>> {
        Some(self)
    }

    /// A step through the matrix takes as long as one through n^2 / 32 rotations (measured for n = 64 and 256, few rows and many,
    /// both precisions); to form W and pull its gradient back, n rows go through all rotations.
    fn route(&self, steps: usize, batch: usize) -> Route {
        // u128: the products below cannot overflow
        let [m, n, steps, batch] = [self.m, self.n, steps, batch].map(|count| count as u128);
        let rows = steps * batch;
        if (32 * m).saturating_mul(rows.saturating_sub(n)) <= (n * n).saturating_mul(rows) {
            Route::Factored
        } else {
            Route::Dense
        }
    }
}

// SAFETY: places are within n elements, every matrix has m of them and of the angles, and two blocks fit in the scratch.
unsafe impl<T: Scalar> Rows<T> for Givens<'_, T> {
    fn work(&self) -> usize {
        work(&[4, self.m, T::PARTS]).saturating_add(self.n)
    }

    /// A block of y, and one of its cotangent.
    fn scratch(&self, _rows: usize) -> usize {
        work(&[2, self.n, LANES])
    }

    fn sums(&self) -> usize {
        self.m
    }

    unsafe fn apply_rows(
        &self,
        b: usize,
        x: *const T,
        rows: usize,
        side: Side,
        out: *mut T,
        scratch: *mut T::Real,
    ) {
        let (y, most) = (scratch.cast(), LANES / T::PARTS);
        for first in (0..rows).step_by(most) {
            let count = most.min(rows - first);
            // SAFETY: the contract of the trait; a block fits in the scratch.
            unsafe {
                self.take(x.add(first * self.n), count, y);
                self.through(b, side, y);
                self.give(y, count, out.add(first * self.n));
            }
        }
    }

    unsafe fn pull_rows(
        &self,
        b: usize,
        x: *const T,
        ct: *const T,
        rows: usize,
        side: Side,
        sums: *mut T::Real,
        x_bar: Option<*mut T>,
        scratch: *mut T::Real,
    ) {
        // <ct, W^T x> = <W ct, x>: the gradient of the adjoint side is the forward one of x and ct exchanged, and x_bar is W ct,
        // which is on the way.
        let (x, ct) = if side == Side::Forward { (x, ct) } else { (ct, x) };
        let (n, most, y) = (self.n, LANES / T::PARTS, scratch.cast::<Across<T::Real>>());
        let g = y.wrapping_add(n);
        for first in (0..rows).step_by(most) {
            let (at, count) = (first * n, most.min(rows - first));
            let x_bar = x_bar.map(|x_bar| x_bar.wrapping_add(at));
            // SAFETY: the contract of the trait; two blocks fit in the scratch.
            unsafe {
                self.take(x.add(at), count, y);
                self.through(b, Side::Forward, y);
                if let Some(out) = x_bar.filter(|_| side == Side::Adjoint) {
                    self.give(y, count, out);
                }
                self.take(ct.add(at), count, g);
                for k in 0..self.m {
                    let (i, j, c, s) = self.plane(b, k);
                    let ([yi, yj], [gi, gj]) = ([*y.add(i), *y.add(j)], [*g.add(i), *g.add(j)]);
                    let own: Across<T::Real> = from_fn(|l| gj[l] * yi[l] - gi[l] * yj[l]);
                    *sums.add(k) += own.into_iter().sum();
                    turn(y.add(i), y.add(j), c, -s);
                    turn(g.add(i), g.add(j), c, -s);
                }
                if let Some(out) = x_bar.filter(|_| side == Side::Forward) {
                    self.give(g, count, out);
                }
            }
        }
    }

    unsafe fn deal(
        &self,
        _b: usize,
        sums: &mut [T::Real],
        mut bars: MatrixBars<'_, T>,
        _scratch: *mut T::Real,
    ) {
        if let Some(bar) = bars.real(1) {
            bar.copy_from_slice(sums);
        }
    }
}
