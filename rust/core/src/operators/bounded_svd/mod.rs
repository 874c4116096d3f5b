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

#[cfg(test)]
mod tests;

use crate::argument;
use crate::argument::{Argument, Array, Bar, Given, all};
use crate::batch::Batch;
use crate::budget::Budget;
use crate::cpu::{Cpu, through_matrix};
use crate::error::{Error, Result};
use crate::kernels::{Matrices, Operand, Product, lanes};
use crate::operator::{Operator, Saves};
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

/// The array for the gradient of argument i, if it is wanted.
fn own<T: Scalar>(bars: &mut [Bar<'_, T>], i: usize) -> Option<Shared<T>> {
    bars.get_mut(i).and_then(|bar| bar.again().own()).map(|bar| Shared(bar.as_mut_ptr()))
}

/// The array for the gradient of the logits, if it is wanted.
fn logits<T: Scalar>(bars: &mut [Bar<'_, T>]) -> Option<Shared<T::Real>> {
    bars.get_mut(1).and_then(|bar| bar.again().real()).map(|bar| Shared(bar.as_mut_ptr()))
}

impl<T: Scalar> Operator<T> for BoundedSvd<'_, T> {
    fn sizes(&self) -> [usize; 3] {
        [self.u.batch, self.u.p, self.v.p]
    }
    fn arguments(&self) -> &'static [Argument] {
        ARGUMENTS
    }
    fn argument(&self, i: usize) -> Array<'_, T> {
        match i {
            0 => Array::Own(self.u.data),
            1 => Array::Real(self.logits),
            2 => Array::Own(self.v.data),
            _ => Array::Real(self.margin),
        }
    }
}

impl<T: Scalar> Cpu<T> for BoundedSvd<'_, T> {
    fn matrix(&self, out: &mut [T], _saved: Option<&mut [T]>, budget: &Budget<'_>) -> Result<()> {
        self.check_matrix("out", out)?;
        let ((n, k), r, out) = (self.shape(), self.u.q, Shared(out.as_mut_ptr()));
        self.run(
            (work(&[n, k, r]), 1),
            0,
            budget.threads,
            |_| (),
            |member, b, (), own| {
                let (u, v) = (factor(self.u, b), factor(self.v, b));
                // SAFETY: the sizes were checked; `out` does not overlap the arguments.
                unsafe {
                    let w = Product::new((n, k, r), u, v.h(), out.at(b * n * k), k).between(own.sigma.ptr());
                    w.run(member, own.scratch.ptr());
                }
            },
        )
    }

    fn matrix_vjp(
        &self,
        _saved: Option<&[T]>,
        ct: &[T],
        bars: &mut [Bar<'_, T>],
        budget: &Budget<'_>,
    ) -> Result<()> {
        self.check_matrix("ct", ct)?;
        self.check_bars(bars)?;
        let ((n, k), r) = (self.shape(), self.u.q);
        let (u_bar, v_bar, logits_bar) = (own(bars, 0), own(bars, 2), logits(bars));
        let room =
            |arena: &mut Arena, wanted: bool| -> Region<T> { arena.take(&[usize::from(wanted), n, r]) };
        let shared = |arena: &mut Arena| (room(arena, u_bar.is_none()), room(arena, v_bar.is_some()));
        self.run((work(&[2, n, k, r]), 3), 0, budget.threads, shared, |member, b, &(x, scaled), own| {
            let (u, v, ct) =
                (factor(self.u, b), factor(self.v, b), Operand::new(ct[b * n * k..].as_ptr(), k));
            let x = u_bar.map_or(x.ptr(), |bar| bar.at(b * n * r));
            // SAFETY: the sizes were checked; the gradients overlap neither each other nor the arguments.
            unsafe {
                // Members compute whole columns of both factors, between barriers only where these are few.
                let few = r < 2 * member.count * (2 * lanes::<T::Real>() / T::PARTS);
                let meet = || {
                    if few {
                        member.barrier()
                    }
                };
                let run = |product: Product<T>| {
                    let product = if few { product } else { product.columns((0, r)) };
                    product.run(member, own.scratch.ptr());
                };
                run(Product::new((n, r, k), ct, v, x, r));
                meet();
                self.between(member, b, own, n, (u.data, x, scaled.or_null()), logits_bar);
                meet();
                if let Some(bar) = v_bar {
                    let scaled = Operand::new(scaled.ptr().cast_const(), r);
                    run(Product::new((k, r, n), ct.h(), scaled, bar.at(b * k * r), r));
                }
            }
        })
    }

    /// W, or z = R^H x.
    fn apply_saves(&self, rows: usize, _side: Side) -> Result<Saves> {
        let (n, k) = self.shape();
        let saved = if self.through_w(rows) { [n, k] } else { [rows, self.u.q] };
        Ok(Saves::Elements(size("saved", &saved)?))
    }

    fn apply(
        &self,
        x: &[T],
        rows: usize,
        side: Side,
        out: &mut [T],
        saved: Option<&mut [T]>,
        budget: &Budget<'_>,
    ) -> Result<()> {
        self.check_rows(x, rows, side, out)?;
        self.check_saved(saved.as_deref(), self.apply_saves(rows, side))?;
        if self.through_w(rows) {
            return through_matrix::apply(self, x, rows, side, out, saved, budget);
        }
        // rows without elements may be of any number
        let rows = if x.is_empty() && out.is_empty() { 0 } else { rows };
        let ((left, right), r) = (self.thin(side), self.u.q);
        let (from, into) = (right.p, left.p);
        let (out, saved) = (Shared(out.as_mut_ptr()), saved.map(|saved| Shared(saved.as_mut_ptr())));
        let z = |arena: &mut Arena| -> Region<T> { arena.take(&[usize::from(saved.is_none()), rows, r]) };
        let cost = work(&[rows, r, from.saturating_add(into)]);
        self.run((cost, 2), rows, budget.threads, z, |member, b, z, own| {
            let z = saved.map_or(z.ptr(), |saved| saved.at(b * rows * r));
            let x = Operand::new(x[b * rows * from..].as_ptr(), from);
            // SAFETY: the sizes were checked; the results do not overlap the arguments.
            unsafe {
                let first = Product::new((rows, r, from), x, factor(right, b).conj(), z, r);
                first.run(member, own.scratch.ptr());
                member.barrier();
                let (z, out) = (Operand::new(z.cast_const(), r), out.at(b * rows * into));
                let second = Product::new((rows, into, r), z, factor(left, b).t(), out, into);
                second.between(own.sigma.ptr()).run(member, own.scratch.ptr());
            }
        })
    }

    /// z = R^H x, c = L diag(sigma) z: L from (sigma z, ct), R from (x, z_bar).
    fn apply_vjp(
        &self,
        saved: Option<&[T]>,
        x: &[T],
        ct: &[T],
        rows: usize,
        side: Side,
        bars: &mut [Bar<'_, T>],
        x_bar: Option<&mut [T]>,
        budget: &Budget<'_>,
    ) -> Result<()> {
        self.check_pull(x, ct, rows, side, x_bar.as_deref())?;
        self.check_saved(saved, self.apply_saves(rows, side))?;
        self.check_bars(bars)?;
        if self.through_w(rows) {
            return through_matrix::apply_vjp(self, saved, x, ct, rows, side, bars, x_bar, budget);
        }
        let rows = if x.is_empty() && ct.is_empty() { 0 } else { rows };
        let ((left, right), r) = (self.thin(side), self.u.q);
        let (from, into) = (right.p, left.p);
        let (of_left, of_right) = if side == Side::Forward { (0, 2) } else { (2, 0) };
        let (left_bar, right_bar, logits_bar) = (own(bars, of_left), own(bars, of_right), logits(bars));
        let x_bar = x_bar.map(|bar| Shared(bar.as_mut_ptr()));
        let shared = |arena: &mut Arena| {
            let room = |arena: &mut Arena, wanted: bool| -> Region<T> {
                arena.take(&[usize::from(wanted), rows, r])
            };
            [room(arena, saved.is_none()), room(arena, true), room(arena, left_bar.is_some())]
        };
        let cost = work(&[rows, r, 2, from.saturating_add(into)]);
        self.run((cost, 4), rows, budget.threads, shared, |member, b, &[again, z_bar, scaled], own| {
            let x = Operand::new(x[b * rows * from..].as_ptr(), from);
            let ct = Operand::new(ct[b * rows * into..].as_ptr(), into);
            let (left, right) = (factor(left, b), factor(right, b));
            let z = saved.map_or(again.ptr().cast_const(), |saved| saved[b * rows * r..].as_ptr());
            // SAFETY: the sizes were checked; the gradients overlap neither each other nor the arguments.
            unsafe {
                if saved.is_none() {
                    let z = Product::new((rows, r, from), x, right.conj(), again.ptr(), r);
                    z.run(member, own.scratch.ptr());
                }
                Product::new((rows, r, into), ct, left.conj(), z_bar.ptr(), r).run(member, own.scratch.ptr());
                member.barrier();
                self.between(member, b, own, rows, (z, z_bar.ptr(), scaled.or_null()), logits_bar);
                member.barrier();
                let [z_bar, scaled] = [z_bar, scaled].map(|z| Operand::new(z.ptr().cast_const(), r));
                let products = [
                    left_bar.map(|bar| ((into, r, rows), ct.t(), scaled.conj(), bar.at(b * into * r), r)),
                    right_bar.map(|bar| ((from, r, rows), x.t(), z_bar.conj(), bar.at(b * from * r), r)),
                    x_bar.map(|bar| ((rows, from, r), z_bar, right.t(), bar.at(b * rows * from), from)),
                ];
                for (sizes, a, b, c, stride) in products.into_iter().flatten() {
                    Product::new(sizes, a, b, c, stride).run(member, own.scratch.ptr());
                }
            }
        })
    }
}
