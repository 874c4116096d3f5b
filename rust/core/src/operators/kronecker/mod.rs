//! Kronecker products W = W_0 (x) W_1 (x) ... (x) W_{F-1} of factors (p_f, q_f), entry by entry
//!
//! ```text
//! W[(r_0 .. r_{F-1}), (c_0 .. c_{F-1})] = W_0[r_0, c_0] ... W_{F-1}[r_{F-1}, c_{F-1}],
//! ```
//!
//! the index of factor 0 slowest, as in `numpy.kron`. W x is the array x of shape (q_0, ..., q_{F-1}) contracted with W_f
//! along axis f, for every f; with z the array before that and y_bar the cotangent after it
//!
//! ```text
//! (W_f)_bar = sum of y_bar conj(z) over all other axes,      z_bar: y_bar contracted with W_f^H.
//! ```
//!
//! Small neighbouring factors are multiplied out into one, so that an axis fills a vector and fewer passes are needed:
//! see [`group`].

mod group;
mod rows;
#[cfg(test)]
mod tests;

use crate::argument;
use crate::argument::{Argument, Array, Bar, Given};
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::kernels::Buffer;
use crate::operator::{Cpu, Operator, Side};
use crate::recurrence::{Route, Transition};
use crate::scalar::Scalar;
use crate::sizes::{check_len, size, work};
use group::Group;

/// The arguments: a list of factors.
pub const ARGUMENTS: &[Argument] = &[argument!("factors", "p q", list)];

/// One factor, row-major.
#[derive(Clone, Copy, Debug)]
pub struct Factor<'a, T> {
    /// Its elements.
    pub elements: &'a [T],
    /// Rows.
    pub p: usize,
    /// Columns.
    pub q: usize,
}

/// A Kronecker product.
pub struct Kronecker<'a, T: Scalar> {
    factors: Vec<Factor<'a, T>>,
    groups: Vec<Group<T>>,
    p: usize,
    q: usize,
    /// Elements of the largest array between two axes.
    most: usize,
}

impl<'a, T: Scalar> Kronecker<'a, T> {
    /// The product of these factors.
    pub fn new(factors: &[Factor<'a, T>]) -> Result<Self> {
        if factors.is_empty() {
            return Err(Error::value("factors", "must hold at least one factor"));
        }
        let (mut rows, mut columns) = (Vec::new(), Vec::new());
        for factor in factors {
            if factor.p == 0 || factor.q == 0 {
                let got = format!("{} x {}", factor.p, factor.q);
                return Err(Error::shape("factors", "at least one row and one column each", got));
            }
            check_len("factors", factor.elements.len(), &[factor.p, factor.q])?;
            rows.push(factor.p);
            columns.push(factor.q);
        }
        let (p, q) = (size("factors", &rows)?, size("factors", &columns)?);
        // No array between two axes is larger, and no product of sizes overflows.
        let larger: Vec<usize> = factors.iter().map(|factor| factor.p.max(factor.q)).collect();
        size("factors", &larger)?;
        let groups = group::groups(factors)?;
        let between = |group: &Group<T>| {
            let [(a, b), (c, d)] = group.around;
            (a * b * group.p.max(group.q)).max(c * d * group.p.max(group.q))
        };
        let most = groups.iter().map(between).max().unwrap_or(0);
        Ok(Kronecker { factors: factors.to_vec(), groups, p, q, most })
    }

    /// A view of [`ARGUMENTS`].
    pub fn of(given: &[Given<'a, T>]) -> Result<Self> {
        let factor = |given: &Given<'a, T>| {
            let [batch, p, q] = given.sizes("factors")?;
            check_len("factors", batch, &[])?;
            Ok(Factor { elements: given.own("factors")?, p, q })
        };
        Self::new(&given.iter().map(factor).collect::<Result<Vec<_>>>()?)
    }
}

impl<T: Scalar> Operator<T> for Kronecker<'_, T> {
    fn batch(&self) -> usize {
        1
    }
    fn shape(&self) -> (usize, usize) {
        (self.p, self.q)
    }
    fn arguments(&self) -> &'static [Argument] {
        ARGUMENTS
    }
    fn argument(&self, i: usize) -> Array<'_, T> {
        self.factors.get(i).map_or(Array::None, |factor| Array::Own(factor.elements))
    }
}

impl<T: Scalar> Cpu<T> for Kronecker<'_, T> {
    fn matrix(&self, out: &mut [T], _saved: Option<&mut [T]>, _budget: &Budget<'_>) -> Result<()> {
        self.check_matrix("out", out)?;
        group::multiplied_out(&self.factors, out);
        Ok(())
    }

    /// Through the rows of the identity: W e_j is column j.
    fn matrix_vjp(
        &self,
        _saved: Option<&[T]>,
        ct: &[T],
        bars: &mut [Bar<'_, T>],
        budget: &Budget<'_>,
    ) -> Result<()> {
        self.check_matrix("ct", ct)?;
        self.check_bars(bars)?;
        let (p, q) = (self.p, self.q);
        let mut identity = Buffer::<T>::zeroed(size("identity", &[q, q])?)?;
        let mut columns = Buffer::<T>::zeroed(work(&[p, q]))?;
        for j in 0..q {
            identity[j * q + j] = T::one();
            for i in 0..p {
                columns[j * p + i] = ct[i * q + j];
            }
        }
        self.apply_vjp(None, &identity, &columns, q, Side::Forward, bars, None, budget)
    }

    fn transition(&self) -> Option<Transition<'_, T>> {
        Some(Transition::Rows(self))
    }

    /// Its axes, unless they are as much work as the matrix.
    fn route(&self, _steps: usize, _batch: usize) -> Route {
        let axes: usize = self.groups.iter().map(|group| group.p.max(group.q)).sum();
        if 4 * axes <= self.q || self.groups.len() == 1 { Route::Factored } else { Route::Dense }
    }
}
