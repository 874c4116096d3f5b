//! Products of plane rotations at chosen pairs of coordinates: W = G_1 G_2 ... G_m, where G_k turns the plane of (i, j) by theta:
//!
//! ```text
//! y_i = cos(theta) x_i - sin(theta) x_j,   y_j = sin(theta) x_i + cos(theta) x_j;   G_m acts first.
//! theta_bar = Re(conj(g_j) y_i) - Re(conj(g_i) y_j),   x = G^T y,   x_bar = G^T g
//! ```
//!
//! for the cotangent g of y: the backward undoes the rotations on y and g, and needs no array between them.
//!
//! n is the shape of the first argument, which has no elements.

mod rows;

use crate::argument::{Argument, Array, Given, all, argument, tail};
use crate::error::{Error, Result};
use crate::kernels::Buffer;
use crate::scalar::Scalar;
use crate::sizes::{check_len, size, work};
use crate::transition::{Route, Workload};
use isometry_kernels::angles::Angles;

/// The arguments: the first has no elements.
pub const ARGUMENTS: &[Argument] =
    &[argument!("frame", "n 0", shape), argument!("angles", "m", real), argument!("pairs", "m 2", integer)];

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
    ///
    /// ```
    /// use isometry_core::operators::givens::Givens;
    /// use isometry_core::{Budget, Cpu, Side};
    ///
    /// let w = Givens::new(&[std::f64::consts::FRAC_PI_2], &[0, 2], 1, 3, 1)?; // a quarter turn of the plane (0, 2)
    /// let mut y = [0.0f64; 3];
    /// w.apply(&[1.0, 3.0, 0.0], 1, Side::Forward, &mut y, None, &Budget::of(1))?;
    /// assert!(y.iter().zip([0.0, 3.0, 1.0]).all(|(y, z)| (y - z).abs() < 1e-15));
    /// # Ok::<(), isometry_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Arrays of other lengths, pairs that are no two coordinates; lack of memory.
    pub fn new(angles: &'a [T::Real], pairs: &'a [i64], batch: usize, n: usize, m: usize) -> Result<Self> {
        check_len("angles", angles.len(), &[batch, m])?;
        check_len("pairs", pairs.len(), &[batch, m, 2])?;
        let places = checked(pairs, n)?;
        let mut table = Buffer::zeroed(size("angles", &[2, angles.len()])?)?;
        let (sin, cos) = table.split_at_mut(angles.len());
        let (x, count) = (angles.as_ptr(), angles.len());
        // SAFETY: three arrays of as many numbers.
        unsafe { Angles { x, sin: sin.as_mut_ptr(), cos: cos.as_mut_ptr(), count }.call() };
        Ok(Givens { batch, n, m, angles, pairs, places, table })
    }

    /// A view of [`ARGUMENTS`].
    pub(crate) fn of(given: &[Given<'a, T>]) -> Result<Self> {
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
}

/// The pairs as indices, if each is two of 0..n. The copy is checked: another thread may write to the caller's array.
fn checked(pairs: &[i64], n: usize) -> Result<Buffer<usize>> {
    let mut places = Buffer::zeroed(pairs.len())?;
    // negative integers become larger than n
    places.iter_mut().zip(pairs).for_each(|(to, &i)| *to = i as usize);
    let wrong = |pair: &[usize]| (pair[0] >= n) | (pair[1] >= n) | (pair[0] == pair[1]);
    // all of them without a branch for each, then the first one
    if !places.chunks_exact(2).fold(false, |any, pair| any | wrong(pair)) {
        return Ok(places);
    }
    let most = n.saturating_sub(1);
    let refused = |pair: &[usize]| {
        let [i, j] = [pair[0] as i64, pair[1] as i64];
        Error::value("pairs", format!("must hold two different integers of 0..{most} each, got ({i}, {j})"))
    };
    places.chunks_exact(2).find(|pair| wrong(pair)).map_or(Ok(()), |pair| Err(refused(pair))).map(|()| places)
}

/// Refuses pairs that are no two coordinates.
pub(crate) fn check_values<T: Scalar>(given: &[Given<'_, T>]) -> Result<()> {
    let [frame, _, pairs] = all(given)?;
    let Array::Integers(own) = pairs.array else { return Ok(()) };
    let [_, n, _] = frame.sizes("frame")?;
    checked(own, n).map(drop)
}

/// A step through the matrix takes as long as one through n^2 / 32 rotations (measured for n = 64 and 256, few rows and
/// many, both precisions).
pub(crate) fn route(shapes: &[&[usize]], workload: Workload) -> Route {
    let ([n, _], [m]) = (tail(shapes[0]), tail(shapes[1]));
    Route::by_cost(work(&[32, m]), n, workload)
}

operator! {
    Givens, |own, i| [own.batch, own.n, own.n],
    match i {
        0 => Array::Own(&[]),
        1 => Array::Real(own.angles),
        _ => Array::Integers(own.pairs),
    }
}
