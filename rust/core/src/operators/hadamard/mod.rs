//! Products of Hadamard matrices and diagonal ones,
//!
//! ```text
//! W = H_n D_k ... H_n D_1,      D_j = diag(signs_j),
//! ```
//!
//! with H_n orthonormal, H_2n = [[H_n, H_n], [H_n, -H_n]] / sqrt 2, and H_n = H_{2^k} (x) H_p for n = p 2^k (`order`). With
//! z_0 = x, z_j = H D_j z_{j-1}, g_k the cotangent of z_k and u_j = H^T g_j,
//!
//! ```text
//! signs_j_bar = sum over rows of Re(u_j conj(z_{j-1})),      g_{j-1} = D_j u_j,      x_bar = g_0.
//! ```
//!
//! Butterflies ([`isometry_kernels::hadamard`]) and a product with the p x p matrix: k (n log2(n / p) + n p) additions per row.
//! Without signs the object is the transform scale sqrt(n) H_n, which has no arguments.

mod order;
mod rows;
#[cfg(test)]
mod tests;

pub use order::Order;

use crate::argument::{Argument, Array, Given, all, argument, tail};
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::kernels::Buffer;
use crate::operator::Operator;
use crate::rows as shared;
use crate::scalar::{Real, Scalar};
use crate::side::Side;
use crate::sizes::{check_len, size};
use crate::transition::{Route, Workload};

/// The arguments.
pub const ARGUMENTS: &[Argument] = &[argument!("signs", "k n", real)];

/// Products of Hadamard and diagonal matrices, or the transform.
pub struct Hadamard<'a, T: Scalar> {
    /// None for the transform.
    signs: Option<&'a [T::Real]>,
    batch: usize,
    /// k; 1 for the transform.
    rounds: usize,
    order: Order,
    /// What the entries +-1 are multiplied by in every round: n^{-1/2}, or the scale of the transform.
    scale: T::Real,
    /// H_p^T and H_p, if p > 1.
    block: Buffer<T>,
    /// Whether results are written past the caches.
    streamed: bool,
}

/// Bytes of a result that does not stay in the caches beside its argument.
const STREAMED: usize = 1 << 24;

impl<'a, T: Scalar> Hadamard<'a, T> {
    /// A view of signs (batch, k, n).
    ///
    /// ```
    /// use isometry_core::operators::hadamard::Hadamard;
    /// use isometry_core::{Budget, Cpu, Side};
    ///
    /// let w = Hadamard::new(&[1.0, 1.0, 1.0, -1.0], (1, 1, 4))?; // H diag(signs)
    /// let mut y = [0.0f64; 4];
    /// w.apply(&[1.0, 2.0, 3.0, -4.0], 1, Side::Forward, &mut y, None, &Budget::of(1))?;
    /// assert_eq!(y, [5.0, -1.0, -2.0, 0.0]);
    /// # Ok::<(), isometry_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Another number of signs, an n that is no order of a Hadamard matrix ([`Order::of`]); lack of memory.
    pub fn new(signs: &'a [T::Real], (batch, rounds, n): (usize, usize, usize)) -> Result<Self> {
        check_len("signs", signs.len(), &[batch, rounds, n])?;
        size("out", &[batch, n, n])?;
        let scale = 1.0 / (n as f64).sqrt();
        Ok(Hadamard { signs: Some(signs), batch, rounds, ..Self::plain("signs", n, scale)? })
    }

    /// A view of [`ARGUMENTS`].
    pub(crate) fn of(given: &[Given<'a, T>]) -> Result<Self> {
        let [signs] = all(given)?;
        let sizes = signs.sizes("signs")?;
        let signs = signs.real().ok_or(Error::value("signs", "must be given, real"))?;
        Self::new(signs, sizes.into())
    }

    /// scale sqrt(n) H_n of rows of the array of that name.
    fn plain(argument: &'static str, n: usize, scale: f64) -> Result<Self> {
        let lacking = || Error::value(argument, format!("must have an order of Hadamard matrices, not {n}"));
        let order = Order::of(n).ok_or_else(lacking)?;
        let own = if order.p == 1 { 0 } else { size(argument, &[order.p, order.p])? };
        let mut block = Buffer::<T>::zeroed(size(argument, &[2, own])?)?;
        if order.p > 1 {
            let negative = order.negative()?;
            let (transposed, forward) = block.split_at_mut(own);
            for i in 0..order.p {
                for j in 0..order.p {
                    let entry = if negative(i, j) { -T::one() } else { T::one() };
                    (transposed[j * order.p + i], forward[i * order.p + j]) = (entry, entry);
                }
            }
        }
        Ok(Hadamard {
            signs: None,
            batch: 1,
            rounds: 1,
            order,
            scale: T::Real::of(scale),
            block,
            streamed: false,
        })
    }
}

/// out <- scale sqrt(n) H_n x, or H_n^T x, for rows x of n elements.
///
/// ```
/// use isometry_core::{Side, operators::hadamard::transform};
///
/// let mut out = [0.0; 4];
/// transform(&[1.0, 2.0, 3.0, 4.0], 4, 0.5, Side::Forward, &mut out, 1)?;
/// assert_eq!(out, [5.0, -1.0, -2.0, 0.0]);
/// # Ok::<(), isometry_core::Error>(())
/// ```
///
/// # Errors
/// An n that is no order of a Hadamard matrix, or an array that does not have whole rows of n; lack of memory.
pub fn transform<T: Scalar>(
    x: &[T],
    n: usize,
    scale: f64,
    side: Side,
    out: &mut [T],
    threads: usize,
) -> Result<()> {
    let rows = x.len() / n.max(1);
    let streamed = size_of_val(out) >= STREAMED;
    let operator = Hadamard { streamed, ..Hadamard::plain("x", n, scale)? };
    shared::apply(&operator, x, rows, side, out, &Budget::of(threads))
}

/// The factors, unless they are as much work as the matrix.
pub(crate) fn route(shapes: &[&[usize]], _workload: Workload) -> Route {
    let [rounds, n] = tail(shapes[0]);
    let each = Order::of(n).map_or(0, |order| order.levels as usize + order.p);
    if rounds.saturating_mul(each) <= n { Route::Factored } else { Route::Dense }
}

impl<T: Scalar> Operator<T> for Hadamard<'_, T> {
    fn sizes(&self) -> [usize; 3] {
        [self.batch, self.order.n, self.order.n]
    }
    fn arguments(&self) -> &'static [Argument] {
        if self.signs.is_some() { ARGUMENTS } else { &[] }
    }
    fn argument(&self, _i: usize) -> Array<'_, T> {
        self.signs.map_or(Array::None, Array::Real)
    }
}
