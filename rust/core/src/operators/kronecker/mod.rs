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
//! see `group`.

mod group;
mod rows;

use crate::argument::{Argument, Array, Given, argument, tail};
use crate::cpu::{Cpu, Form};
use crate::error::{Error, Result};
use crate::kernels::{collected, reserved};
use crate::rows::Rows;
use crate::scalar::Scalar;
use crate::sizes::{check_len, size};
use crate::transition::{Route, Workload};
use group::Group;

/// The arguments: a list of factors.
pub const ARGUMENTS: &[Argument] = &[argument!("factors", "p q", list)];

/// One factor of every matrix, row-major.
#[derive(Clone, Copy, Debug)]
pub struct Factor<'a, T> {
    /// Its elements, (batch, p, q).
    pub elements: &'a [T],
    /// Rows.
    pub p: usize,
    /// Columns.
    pub q: usize,
}

impl<'a, T> Factor<'a, T> {
    /// That of matrix k.
    fn of(&self, k: usize) -> &'a [T] {
        let each = self.p * self.q;
        &self.elements[k * each..(k + 1) * each]
    }
}

/// Kronecker products.
pub struct Kronecker<'a, T: Scalar> {
    batch: usize,
    factors: Vec<Factor<'a, T>>,
    groups: Vec<Group<T>>,
    p: usize,
    q: usize,
    /// Elements of the largest array between two axes.
    most: usize,
}

impl<'a, T: Scalar> Kronecker<'a, T> {
    /// The products of these factors, `batch` of each.
    ///
    /// ```
    /// use isometry_core::operators::kronecker::{Factor, Kronecker};
    /// use isometry_core::{Budget, Cpu};
    ///
    /// let row = |elements| Factor { elements, p: 1, q: 2 };
    /// let w = Kronecker::new(&[row(&[1.0, 2.0]), row(&[10.0, 100.0])], 1)?;
    /// let mut matrix = [0.0; 4];
    /// w.matrix(&mut matrix, None, &Budget::of(1))?;
    /// assert_eq!(matrix, [10.0, 100.0, 20.0, 200.0]);
    /// # Ok::<(), isometry_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// No factor, a factor without rows or columns, or one of another length; a product of sizes that no memory holds.
    pub fn new(factors: &[Factor<'a, T>], batch: usize) -> Result<Self> {
        if factors.is_empty() {
            return Err(Error::value("factors", "must hold at least one factor"));
        }
        let (mut p, mut q, mut larger) = (1, 1, 1);
        for factor in factors {
            if factor.p == 0 || factor.q == 0 {
                let got = format!("{} x {}", factor.p, factor.q);
                return Err(Error::shape("factors", "at least one row and one column each", got));
            }
            check_len("factors", factor.elements.len(), &[batch, factor.p, factor.q])?;
            // No array between two axes has more elements than `larger`, and no product of sizes overflows.
            (p, q) = (size("factors", &[p, factor.p])?, size("factors", &[q, factor.q])?);
            larger = size("factors", &[larger, factor.p.max(factor.q)])?;
        }
        let factors = collected(factors.iter().copied())?;
        let groups = group::groups(&factors, batch)?;
        let between = |group: &Group<T>| {
            let [(a, b), (c, d)] = group.around;
            (a * b * group.p.max(group.q)).max(c * d * group.p.max(group.q))
        };
        let most = groups.iter().map(between).max().unwrap_or(0);
        Ok(Kronecker { batch, factors, groups, p, q, most })
    }

    /// A view of [`ARGUMENTS`].
    pub(crate) fn of(given: &[Given<'a, T>]) -> Result<Self> {
        let (mut factors, mut all) = (reserved(given.len())?, None);
        for given in given {
            let [batch, p, q] = given.sizes("factors")?;
            check_len("factors", batch, &[*all.get_or_insert(batch)])?;
            factors.push(Factor { elements: given.own("factors")?, p, q });
        }
        Self::new(&factors, all.unwrap_or(1))
    }
}

/// The axes of the groups, unless they are as much work as the matrix.
pub(crate) fn route(shapes: &[&[usize]], _workload: Workload) -> Route {
    let (mut groups, mut axes, mut columns) = (0, 0_usize, 1_usize);
    for (_, [p, q]) in group::spans(shapes.len(), |i| tail(shapes[i])) {
        (groups, axes, columns) = (groups + 1, axes.saturating_add(p.max(q)), columns.saturating_mul(q));
    }
    if axes.saturating_mul(4) <= columns || groups == 1 { Route::Factored } else { Route::Dense }
}

operator! {
    Kronecker, |own, i| [own.batch, own.p, own.q],
    own.factors.get(i).map_or(Array::None, |factor| Array::Own(factor.elements))
}

impl<T: Scalar> Cpu<T> for Kronecker<'_, T> {
    fn rows(&self) -> Option<&dyn Rows<T>> {
        Some(self)
    }

    fn form(&self, Form { out, .. }: Form<'_, T>) -> Result<()> {
        for (k, out) in out.chunks_exact_mut(self.p * self.q).enumerate() {
            group::multiplied_out(&self.factors, k, out);
        }
        Ok(())
    }
}
