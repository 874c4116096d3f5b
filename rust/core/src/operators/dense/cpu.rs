//! The products of a dense operator; a batch is dealt over the threads, a single matrix shared inside the product.

use super::Dense;
use crate::kernels::{Buffer, Operand, Product};
use crate::operator::Side;
use crate::parallel::{self, Member, Shared};
use crate::scalar::Scalar;

impl<T: Scalar> Dense<'_, T> {
    /// W as it stands to the right of rows: W^T or conj(W).
    fn right(&self, b: usize, side: Side) -> Operand<T> {
        let w = Operand::new(self.weight[b * self.p * self.q..].as_ptr(), self.q);
        if side == Side::Forward { w.t() } else { w.conj() }
    }

    /// Runs `f(b)`, a few products of `cost` multiply-adds together, for every matrix.
    fn products<const N: usize>(
        &self,
        cost: usize,
        (rows, depth): (usize, usize),
        threads: usize,
        f: impl Fn(usize) -> [Option<Product<T>>; N] + Sync,
    ) {
        let threads = parallel::worth(threads, self.batch.saturating_mul(cost * T::PARTS * T::PARTS));
        let own = Product::<T>::scratch(rows, depth).next_multiple_of(16);
        let memory = Buffer::<T::Real>::scratch(threads * own);
        let memory = Shared(memory.ptr());
        let apart = self.batch >= 2 * threads;
        parallel::run(threads, &|member| {
            let scratch = memory.at(member.id * own);
            let all = |member: &Member<'_>, b: usize| {
                for product in f(b).into_iter().flatten() {
                    // SAFETY: sizes were checked when the view and the call were; results are apart from each other
                    // and from the arguments, so no barrier is needed.
                    unsafe { product.run(member, scratch) };
                }
            };
            if apart {
                let mine = member.share(self.batch, 1);
                Member::alone(|member| mine.into_iter().for_each(|b| all(member, b)));
            } else {
                (0..self.batch).for_each(|b| all(member, b));
            }
        });
    }

    pub(super) fn apply_cpu(&self, x: &[T], rows: usize, side: Side, out: &mut [T], threads: usize) {
        let (from, into) = self.sizes(side);
        let out = Shared(out.as_mut_ptr());
        self.products(rows * self.p * self.q, (rows, from), threads, |b| {
            let x = Operand::new(x[b * rows * from..].as_ptr(), from);
            let out = out.at(b * rows * into);
            [Some(Product::new((rows, into, from), x, self.right(b, side), out, into))]
        });
    }

    #[allow(clippy::too_many_arguments, reason = "the call of the seam, one to one")]
    pub(super) fn apply_vjp_cpu(
        &self,
        x: &[T],
        ct: &[T],
        rows: usize,
        side: Side,
        weight_bar: Option<&mut [T]>,
        x_bar: Option<&mut [T]>,
        threads: usize,
    ) {
        let (p, q, (from, into)) = (self.p, self.q, self.sizes(side));
        let (weight_bar, x_bar) =
            (weight_bar.map(|x| Shared(x.as_mut_ptr())), x_bar.map(|x| Shared(x.as_mut_ptr())));
        let wanted = usize::from(weight_bar.is_some()) + usize::from(x_bar.is_some());
        let size = (rows.max(p), rows.max(p).max(q));
        self.products(wanted * rows * p * q, size, threads, |b| {
            let x = Operand::new(x[b * rows * from..].as_ptr(), from);
            let ct = Operand::new(ct[b * rows * into..].as_ptr(), into);
            let (left, right) = if side == Side::Forward { (ct, x) } else { (x, ct) };
            let back = if side == Side::Forward { Side::Adjoint } else { Side::Forward };
            [
                weight_bar
                    .map(|bar| Product::new((p, q, rows), left.t(), right.conj(), bar.at(b * p * q), q)),
                x_bar.map(|bar| {
                    let bar = bar.at(b * rows * from);
                    Product::new((rows, from, into), ct, self.right(b, back), bar, from)
                }),
            ]
        });
    }
}
