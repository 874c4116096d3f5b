//! Operators on rows ([`Rows`]) as operators: rows are dealt over the threads, whole.
//!
//! Gradients are summed in blocks of rows, each in a slot of its own, and the slots added in order: which rows make a block
//! depends on their number alone, so that the result does not depend on the threads.

use crate::argument::Bar;
use crate::budget::Budget;
use crate::error::Result;
use crate::kernels::Buffer;
use crate::operator::Side;
use crate::parallel::{self, Shared};
use crate::rows::Rows;
use crate::scalar::Scalar;
use crate::scratch::{Scratch, most};
use crate::sizes::{size, work};

/// Slots at most.
const SLOTS: usize = 16;
/// The rows of a block are a multiple of this, since operators may take so many at a time. Tests have many blocks.
const BLOCK: usize = if cfg!(test) { 2 } else { 16 };

/// x -> out, W or W^H on every row; the arrays were checked.
pub fn apply<T: Scalar>(
    operator: &dyn Rows<T>,
    x: &[T],
    rows: usize,
    side: Side,
    out: &mut [T],
    budget: &Budget<'_>,
) -> Result<()> {
    let (from, into) = features(operator, side);
    let threads = parallel::worth(most(budget.threads), work(&[rows, operator.work()])).min(rows.max(1));
    let room = Scratch::new(|arena| arena.regions(threads, &[operator.scratch(rows)]))?;
    let out = Shared(out.as_mut_ptr());
    parallel::run(threads, &|member| {
        let mine = member.share(rows, 1);
        let (x, out) = (x[mine.start * from..].as_ptr(), out.at(mine.start * into));
        // SAFETY: the arrays have these rows; the members write different ones, each with scratch of its own.
        unsafe { operator.apply_rows(x, mine.len(), side, out, room.of(member.id).ptr()) };
    });
    Ok(())
}

/// The gradients of the arguments and of x from (x, ct); the arrays were checked.
pub fn apply_vjp<T: Scalar>(
    operator: &dyn Rows<T>,
    (x, ct): (&[T], &[T]),
    rows: usize,
    side: Side,
    bars: &mut [Bar<'_, T>],
    x_bar: Option<&mut [T]>,
    budget: &Budget<'_>,
) -> Result<()> {
    let (from, into) = features(operator, side);
    let block = rows.div_ceil(SLOTS).max(1).next_multiple_of(BLOCK);
    let (slots, each) = (rows.div_ceil(block), operator.sums());
    let threads = parallel::worth(most(budget.threads), work(&[3, rows, operator.work()])).min(slots.max(1));
    let room = Scratch::new(|arena| arena.regions(threads, &[operator.scratch(block)]))?;
    let mut sums = Buffer::<T::Real>::zeroed(work(&[slots, each]))?;
    let (own, x_bar) = (Shared(sums.as_mut_ptr()), x_bar.map(|x_bar| Shared(x_bar.as_mut_ptr())));
    parallel::run(threads, &|member| {
        for slot in member.share(slots, 1) {
            let row = slot * block;
            let (x, ct) = (x[row * from..].as_ptr(), ct[row * into..].as_ptr());
            let (sums, x_bar) = (own.at(slot * each), x_bar.map(|x_bar| x_bar.at(row * from)));
            let scratch = room.of(member.id).ptr();
            // SAFETY: the arrays have these rows; the members write different slots and rows, each with scratch of its own.
            unsafe { operator.pull_rows(x, ct, block.min(rows - row), side, sums, x_bar, scratch) };
        }
    });
    let mut all = Buffer::<T::Real>::zeroed(each)?;
    for slot in sums.chunks_exact(each.max(1)) {
        all.iter_mut().zip(slot).for_each(|(sum, x)| *sum += *x);
    }
    operator.deal(&all, bars);
    Ok(())
}

/// W (n, n) of a square operator: W^H of the rows of the identity are the conjugates of the rows of W.
pub fn matrix<T: Scalar>(operator: &dyn Rows<T>, out: &mut [T], budget: &Budget<'_>) -> Result<()> {
    let n = operator.size().0;
    apply(operator, &identity(n)?, n, Side::Adjoint, out, budget)?;
    out.iter_mut().for_each(|w| *w = w.conj());
    Ok(())
}

/// The gradients of the arguments from that of W, (n, n).
pub fn matrix_vjp<T: Scalar>(
    operator: &dyn Rows<T>,
    ct: &[T],
    bars: &mut [Bar<'_, T>],
    budget: &Budget<'_>,
) -> Result<()> {
    let n = operator.size().0;
    let mut rows = Buffer::<T>::zeroed(ct.len())?;
    rows.iter_mut().zip(ct).for_each(|(row, ct)| *row = ct.conj());
    apply_vjp(operator, (&identity(n)?, &rows), n, Side::Adjoint, bars, None, budget)
}

fn identity<T: Scalar>(n: usize) -> Result<Buffer<T>> {
    let mut identity = Buffer::zeroed(size("identity", &[n, n])?)?;
    identity.iter_mut().step_by(n + 1).for_each(|x| *x = T::one());
    Ok(identity)
}

fn features<T: Scalar>(operator: &dyn Rows<T>, side: Side) -> (usize, usize) {
    let (p, q) = operator.size();
    if side == Side::Forward { (q, p) } else { (p, q) }
}
