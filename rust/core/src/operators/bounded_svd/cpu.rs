//! The calls of an operator: its matrix, rows, and gradients.

use super::{BoundedSvd, factor};
use crate::argument::rooms;
use crate::cpu::{Act, ActVjp, Cpu, Form, FormVjp, through_matrix};
use crate::error::Result;
use crate::kernels::{Operand, Product, lanes};
use crate::operator::{Operator, Saves};
use crate::parallel::Shared;
use crate::scalar::Scalar;
use crate::scratch::{Arena, Region};
use crate::side::Side;
use crate::sizes::{size, work};

impl<T: Scalar> Cpu<T> for BoundedSvd<'_, T> {
    fn form(&self, Form { out, budget, .. }: Form<'_, T>) -> Result<()> {
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

    fn form_vjp(&self, FormVjp { ct, bars, budget, .. }: FormVjp<'_, '_, T>) -> Result<()> {
        let ((n, k), r) = (self.shape(), self.u.q);
        let [u, logits, v] = rooms(bars);
        let (u_bar, v_bar, logits_bar) = (u.shared(), v.shared(), logits.shared_real().map(|(bar, _)| bar));
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

    fn act(&self, call: Act<'_, T>) -> Result<()> {
        if self.through_w(call.rows) {
            return through_matrix::apply(self, call);
        }
        let Act { x, rows, side, out, saved, budget } = call;
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
    fn act_vjp(&self, call: ActVjp<'_, '_, T>) -> Result<()> {
        if self.through_w(call.rows) {
            return through_matrix::apply_vjp(self, call);
        }
        let ActVjp { saved, x, ct, rows, side, bars, x_bar, budget } = call;
        let rows = if x.is_empty() && ct.is_empty() { 0 } else { rows };
        let ((left, right), r) = (self.thin(side), self.u.q);
        let (from, into) = (right.p, left.p);
        let [u, logits, v] = rooms(bars);
        let (left_bar, right_bar) = if side == Side::Forward { (u, v) } else { (v, u) };
        let (left_bar, right_bar, logits_bar) =
            (left_bar.shared(), right_bar.shared(), logits.shared_real().map(|(bar, _)| bar));
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
