//! A matrix with singular values around 1: W = U diag(sigma) V^H with U (n, r), V (k, r) and
//!
//! ```text
//! sigma_i = 1 + margin tanh(p_i / 2) = (1 - margin) + 2 margin s_i,      s = sigmoid(p),      0 <= margin <= 1.
//! ```
//!
//! U and V are free here: sigma are the singular values if their columns are orthonormal. Gradient from W_bar:
//!
//! ```text
//! U_bar = W_bar V diag(sigma),   V_bar = W_bar^H U diag(sigma),
//! sigma_bar_i = Re(U[:,i]^H W_bar V[:,i]),   p_bar_i = 2 margin s_i (1 - s_i) sigma_bar_i.
//! ```
//!
//! Rows go through the two thin factors, 2 (n + k) r flops each, or through W where that is cheaper for their
//! number.

mod cpu;

use crate::argument::{Argument, Array, Given, all, argument};
use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::kernels::{Matrices, Operand, Product};
use crate::parallel::{Member, Shared};
use crate::scalar::{Real, Scalar};
use crate::scratch::{Arena, Region};
use crate::side::Side;
use crate::sizes::{check_len, size, work};
use isometry_kernels::bounded_svd::Between;
use num_traits::{Float, One, Zero};

/// The arguments.
pub const ARGUMENTS: &[Argument] = &[
    argument!("u", "n r"),
    argument!("logits", "r", real),
    argument!("v", "k r"),
    argument!("margin", "", number),
];

/// Matrices with bounded singular values.
#[derive(Clone, Copy, Debug)]
pub struct BoundedSvd<'a, T: Scalar> {
    u: Matrices<'a, T>,
    v: Matrices<'a, T>,
    logits: &'a [T::Real],
    margin: &'a [T::Real],
}

/// Refuses margins outside 0..1; NaN passes.
pub(crate) fn check_values<T: Scalar>(given: &[Given<'_, T>]) -> Result<()> {
    let [.., margin] = all::<T, 4>(given)?;
    check_margin::<T>(margin.real().unwrap_or_default())
}

fn check_margin<T: Scalar>(margin: &[T::Real]) -> Result<()> {
    let within = |x: &T::Real| !(*x < T::Real::zero() || *x > T::Real::one());
    match margin.iter().find(|x| !within(x)) {
        Some(x) => Err(Error::value("margin", format!("must lie in [0, 1], not {}", x.f64()))),
        None => Ok(()),
    }
}

/// The memory of a member.
struct Own<T: Scalar> {
    sigma: Region<T::Real>,
    /// Sigma and sums, per real number of an element.
    by: Region<T::Real>,
    sums: Region<T::Real>,
    scratch: Region<T::Real>,
}

impl<'a, T: Scalar> BoundedSvd<'a, T> {
    /// A view of U (batch, n, r), V (batch, k, r), logits p (batch, r) and margins (batch).
    ///
    /// ```
    /// use isometry_core::operators::bounded_svd::BoundedSvd;
    /// use isometry_core::{Budget, Cpu};
    ///
    /// let (identity, mut w) = ([1.0, 0.0, 0.0, 1.0], [0.0f64; 4]);
    /// let bounded = BoundedSvd::new((&identity, &identity), &[0.0, 40.0], &[0.5], [1, 2, 2, 2])?;
    /// bounded.matrix(&mut w, None, &Budget::of(1))?;
    /// assert_eq!(w, [1.0, 0.0, 0.0, 1.5]); // singular values within 0.5 of 1
    /// # Ok::<(), isometry_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Arrays of other lengths, r = 0, or a margin outside 0..1.
    pub fn new(
        (u, v): (&'a [T], &'a [T]),
        logits: &'a [T::Real],
        margin: &'a [T::Real],
        [batch, n, k, r]: [usize; 4],
    ) -> Result<Self> {
        if r == 0 {
            return Err(Error::shape("u", "at least one column", 0));
        }
        check_len("u", u.len(), &[batch, n, r])?;
        check_len("v", v.len(), &[batch, k, r])?;
        check_len("logits", logits.len(), &[batch, r])?;
        check_len("margin", margin.len(), &[batch])?;
        check_margin::<T>(margin)?;
        size("out", &[batch, n, k])?;
        let matrices = |data, p| Matrices { data, batch, p, q: r, interleaved: false };
        Ok(BoundedSvd { u: matrices(u, n), v: matrices(v, k), logits, margin })
    }

    /// A view of [`ARGUMENTS`].
    pub(crate) fn of(given: &[Given<'a, T>]) -> Result<Self> {
        let [u, logits, v, margin] = all(given)?;
        let [batch, n, r] = u.sizes("u")?;
        let [_, k, _] = v.sizes("v")?;
        let real = |given: &Given<'a, T>, name| given.real().ok_or(Error::value(name, "must be given, real"));
        let (logits, margin) = (real(logits, "logits")?, real(margin, "margin")?);
        Self::new((u.own("u")?, v.own("v")?), logits, margin, [batch, n, k, r])
    }

    /// sigma_i of matrix b: (1 - margin) + 2 margin s, s the sigmoid. 1 + margin tanh(p / 2) would cancel for negative p
    /// at margin 1.
    fn sigma(&self, b: usize, i: usize) -> T::Real {
        let (one, two, p) = (T::Real::one(), T::Real::of(2.0), self.logits[b * self.u.q + i]);
        let e = Float::exp(-Float::abs(p));
        let s = if p < T::Real::zero() { e } else { one } / (one + e);
        (one - self.margin[b]) + two * self.margin[b] * s
    }

    /// d sigma_i / d p_i of matrix b: 2 margin s (1 - s), s (1 - s) = e / (1 + e)^2 without cancellation.
    fn slope(&self, b: usize, i: usize) -> T::Real {
        let (one, two) = (T::Real::one(), T::Real::of(2.0));
        let e = Float::exp(-Float::abs(self.logits[b * self.u.q + i]));
        two * self.margin[b] * e / ((one + e) * (one + e))
    }

    /// Calls `f(member, b, shared, own)` for every matrix b, with its sigma in `own`.
    fn run<S>(
        &self,
        (cost, barriers): (usize, usize),
        rows: usize,
        threads: usize,
        shared: impl Fn(&mut Arena) -> S + Sync,
        f: impl Fn(&Member<'_>, usize, &S, &Own<T>) + Sync,
    ) -> Result<()> {
        let r = self.u.q;
        let most = rows.max(self.u.p).max(self.v.p).max(r);
        let own = |arena: &mut Arena| Own::<T> {
            sigma: arena.take(&[r]),
            by: arena.take(&[r, T::PARTS]),
            sums: arena.take(&[r, T::PARTS]),
            scratch: arena.take(&[Product::<T>::scratch(most, most)]),
        };
        Batch::new::<T>(self.u.batch, cost, barriers).split(threads).run(
            shared,
            own,
            |member, b, shared, own| {
                for i in 0..r {
                    let sigma = self.sigma(b, i);
                    // SAFETY: the regions belong to this member.
                    unsafe {
                        own.sigma.at(i).write(sigma);
                        (0..T::PARTS).for_each(|part| own.by.at(i * T::PARTS + part).write(sigma));
                    }
                }
                f(member, b, shared, own);
            },
        )
    }

    /// The gradient of the logits of matrix b from the rows x that sigma multiplied and the cotangents y of the products;
    /// then y <- y diag(sigma), z = x diag(sigma).
    ///
    /// # Safety
    /// The arrays have `rows` rows of r elements, z may be null; others do not access y, z and the gradient.
    #[allow(clippy::too_many_arguments, reason = "the arrays of one pass")]
    unsafe fn between(
        &self,
        member: &Member<'_>,
        b: usize,
        own: &Own<T>,
        rows: usize,
        (x, y, z): (*const T, *mut T, *mut T),
        bar: Option<Shared<T::Real>>,
    ) {
        let r = self.u.q;
        for own_columns in Product::<T>::own(member, r, (0, r)) {
            let columns = own_columns.start * T::PARTS..own_columns.end * T::PARTS;
            let (by, sums, width) = (own.by.ptr().cast_const(), own.sums.ptr(), r * T::PARTS);
            // SAFETY: the contract above; members have different columns.
            unsafe {
                Between { x: x.cast(), y: y.cast(), z: z.cast(), by, sums, rows, width, columns }.call();
                for i in own_columns {
                    let sum = (0..T::PARTS).map(|part| *sums.add(i * T::PARTS + part)).sum::<T::Real>();
                    if let Some(bar) = bar {
                        bar.at(b * r + i).write(self.slope(b, i) * sum);
                    }
                }
            }
        }
    }

    /// Whether rows are cheaper through W.
    fn through_w(&self, rows: usize) -> bool {
        let (n, k, r) = (self.u.p, self.v.p, self.u.q);
        work(&[rows, r, n + k]) > work(&[n, k, r]).saturating_add(work(&[rows, n, k]))
    }

    /// L and R of a product that goes through r numbers per row: c = L diag(sigma) R^H x.
    fn thin(&self, side: Side) -> (Matrices<'a, T>, Matrices<'a, T>) {
        if side == Side::Forward { (self.u, self.v) } else { (self.v, self.u) }
    }
}

/// Factor b of a batch.
fn factor<T: Scalar>(all: Matrices<'_, T>, b: usize) -> Operand<T> {
    Operand::new(all.data[b * all.p * all.q..].as_ptr(), all.q)
}

operator! {
    BoundedSvd, |own, i| [own.u.batch, own.u.p, own.v.p],
    match i {
        0 => Array::Own(own.u.data),
        1 => Array::Real(own.logits),
        2 => Array::Own(own.v.data),
        _ => Array::Real(own.margin),
    }
}
