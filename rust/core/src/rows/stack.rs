//! A stack of operators on rows ([`Rows`]) as operators: all rows of all matrices are shared between the threads, whole rows each.
//!
//! A thread has consecutive rows, so that few matrices are shared by two threads. Gradients are summed in
//! [`Slots`]; if a matrix has a single slot, by the thread that has it.

use super::bars::StackBars;
use super::{RowPass, RowPull, Rows};
use crate::argument::Bar;
use crate::budget::Budget;
use crate::error::Result;
use crate::kernels::{Buffer, Slots, add_slots, identity, transposed};
use crate::parallel::{self, Shared};
use crate::scalar::Scalar;
use crate::scratch::{Region, Scratch, most};
use crate::side::Side;
use crate::sizes::{check_len, work};
use isometry_kernels::stop::{BETWEEN, poll};

/// Numbers between the sums of a member and its scratch, at least a vector: a load that begins before the
/// sums would wait for the stores to them, even if its lanes there are masked.
const APART: usize = 16;

/// A pass over more work is cut, so that the call may be stopped.
const PASS: usize = 16 * BETWEEN;

/// Rows of `n` elements; the rows of consecutive matrices are `apart` elements apart.
#[derive(Clone, Copy)]
struct Source<'a, T> {
    x: &'a [T],
    apart: usize,
    n: usize,
}

impl<'a, T> Source<'a, T> {
    /// `rows` rows of every matrix.
    fn each(x: &'a [T], rows: usize, n: usize) -> Self {
        Source { x, apart: rows * n, n }
    }

    /// The same rows for all.
    fn all(x: &'a [T], n: usize) -> Self {
        Source { apart: 0, ..Source::each(x, 0, n) }
    }

    fn row(self, k: usize, row: usize) -> *const T {
        self.x.as_ptr().wrapping_add(k * self.apart + row * self.n)
    }
}

/// x -> out, W or W^H on every row.
pub fn apply<T: Scalar>(
    operator: &dyn Rows<T>,
    x: &[T],
    rows: usize,
    side: Side,
    out: &mut [T],
    budget: &Budget<'_>,
) -> Result<()> {
    operator.check_rows(x, rows, side, out)?;
    let x = Source::each(x, rows, operator.features(side).0);
    applied(operator, x, (rows, false), side, out, budget)
}

/// [`apply`] to arrays of the right sizes, or the conjugates.
fn applied<T: Scalar>(
    operator: &dyn Rows<T>,
    x: Source<'_, T>,
    (rows, conj): (usize, bool),
    side: Side,
    out: &mut [T],
    budget: &Budget<'_>,
) -> Result<()> {
    if out.is_empty() {
        return Ok(());
    }
    let into = operator.features(side).1;
    let all = work(&[operator.batch(), rows]);
    let threads = parallel::worth(most(budget.threads), work(&[all, operator.work()])).min(all);
    let room = Scratch::new(|arena| arena.regions(threads, &[operator.scratch(rows)]))?;
    let (each, most) = (operator.work(), (PASS / operator.work().max(1)).max(1));
    let out = Shared(out.as_mut_ptr());
    parallel::run(threads, &|member| {
        let (mine, scratch) = (member.share(all, 1), room.of(member.id).ptr());
        let (mut k, mut row, mut left) = (mine.start / rows, mine.start % rows, mine.len());
        let mut loaded = None;
        while left > 0 {
            let count = (rows - row).min(left).min(most);
            poll(count * each);
            // SAFETY: the arrays have these rows; the members write different ones, each with scratch of its own.
            unsafe {
                if loaded.replace(k) != Some(k) {
                    operator.load(k, scratch);
                }
                let out = out.at((k * rows + row) * into);
                operator.apply_rows(RowPass { k, rows: count, side }, x.row(k, row), out, scratch);
                if conj {
                    let out = std::slice::from_raw_parts_mut(out, count * into);
                    out.iter_mut().for_each(|w| *w = w.conj());
                }
            }
            (row, left) = (row + count, left - count);
            if row == rows {
                (k, row) = (k + 1, 0);
            }
        }
    });
    Ok(())
}

/// The gradients of the arguments and of x from (x, ct).
pub fn apply_vjp<T: Scalar>(
    operator: &dyn Rows<T>,
    (x, ct): (&[T], &[T]),
    rows: usize,
    side: Side,
    bars: &mut [Bar<'_, T>],
    x_bar: Option<&mut [T]>,
    budget: &Budget<'_>,
) -> Result<()> {
    operator.check_pull(x, ct, rows, side, x_bar.as_deref())?;
    operator.check_bars(bars)?;
    let x = Source::each(x, rows, operator.features(side).0);
    pulled(operator, (x, ct), rows, side, bars, x_bar, budget)
}

/// [`apply_vjp`] of arrays of the right sizes.
fn pulled<T: Scalar>(
    operator: &dyn Rows<T>,
    (x, ct): (Source<'_, T>, &[T]),
    rows: usize,
    side: Side,
    bars: &mut [Bar<'_, T>],
    x_bar: Option<&mut [T]>,
    budget: &Budget<'_>,
) -> Result<()> {
    if bars.iter().all(Bar::is_empty) {
        let Some(x_bar) = x_bar else { return Ok(()) };
        let ct = Source::each(ct, rows, operator.features(side).1);
        return applied(operator, ct, (rows, false), side.other(), x_bar, budget);
    }
    let (batch, each, (from, into)) = (operator.batch(), operator.sums(), operator.features(side));
    let ct = Source::each(ct, rows, into);
    let slots = Slots::of(batch, rows, each);
    let (alone, units) = (slots.count == 1, work(&[batch, slots.count]));
    let worth = |work: usize, parts: usize| parallel::worth(most(budget.threads), work).min(parts.max(1));
    let threads = worth(work(&[3, batch, rows, operator.work()]), units);
    let scratch = operator.scratch(slots.block.min(rows));
    let own = if alone { each } else { 0 };
    let room = Scratch::new(|arena| {
        let mut regions = |len: usize| arena.regions(threads, &[len.saturating_add(APART)]);
        (regions(scratch), regions(own))
    })?;
    let mut shared = Buffer::<T::Real>::zeroed(if alone { 0 } else { work(&[units, each]) })?;
    let (shared, x_bar) = (Shared(shared.as_mut_ptr()), x_bar.map(|x_bar| Shared(x_bar.as_mut_ptr())));
    let bars = StackBars::new(bars, batch)?;
    parallel::run(threads, &|member| {
        let (scratch, own): (_, Region<T::Real>) = (room.0.of(member.id).ptr(), room.1.of(member.id));
        let mine = member.share(units, 1);
        let (mut k, mut slot) = (mine.start / slots.count, mine.start % slots.count);
        let mut loaded = None;
        for unit in mine {
            let (first, count) = (slots.rows(slot).start, slots.rows(slot).len());
            poll(3 * count * operator.work());
            let (pass, x, ct) = (RowPass { k, rows: count, side }, x.row(k, first), ct.row(k, first));
            let x_bar = x_bar.map(|x_bar| x_bar.at((k * rows + first) * from));
            let pull = |sums| RowPull { x, ct, sums, x_bar };
            // SAFETY: the arrays have these rows; the members write different slots, rows and gradients, each with scratch of
            // its own.
            unsafe {
                if loaded.replace(k) != Some(k) {
                    operator.load(k, scratch);
                }
                if alone {
                    own.ptr().write_bytes(0, each);
                    let sums = std::slice::from_raw_parts_mut(own.ptr(), each);
                    operator.pull_rows(pass, pull(sums.as_mut_ptr()), scratch);
                    operator.deal(k, sums, bars.of(k), scratch);
                } else {
                    operator.pull_rows(pass, pull(shared.at(unit * each)), scratch);
                }
            }
            slot += 1;
            if slot == slots.count {
                (k, slot) = (k + 1, 0);
            }
        }
    });
    if alone {
        return Ok(());
    }
    let threads = worth(work(&[units, each]), each).min(threads);
    parallel::run(threads, &|member| {
        let (scratch, sums) = (room.0.of(member.id).ptr(), |k: usize| shared.at(k * slots.count * each));
        // all have some numbers of every matrix, where these are fewer than they
        let (matrices, numbers) = if batch < member.count {
            (0..batch, member.share(each, APART))
        } else {
            (member.share(batch, 1), 0..each)
        };
        for k in matrices {
            // SAFETY: the slots are complete; the members have different numbers.
            unsafe { add_slots(sums(k), slots.count, each, numbers.clone()) };
        }
        member.barrier();
        for k in member.share(batch, 1) {
            let sums = sums(k);
            // SAFETY: the sums are complete; the members have different matrices.
            unsafe {
                operator.load(k, scratch);
                operator.deal(k, std::slice::from_raw_parts_mut(sums, each), bars.of(k), scratch);
            }
        }
    });
    Ok(())
}

/// The matrices, from the shorter side: W^H of the rows of the identity are the conjugates of the rows of W, W of them its columns.
pub fn matrix<T: Scalar>(operator: &dyn Rows<T>, out: &mut [T], budget: &Budget<'_>) -> Result<()> {
    operator.check_matrix("out", out)?;
    if out.is_empty() {
        return Ok(());
    }
    let (p, q) = operator.shape();
    let rows = identity(1, p.min(q))?;
    if p > q {
        let mut columns = Buffer::zeroed(out.len())?;
        applied(operator, Source::all(&rows, q), (q, false), Side::Forward, &mut columns, budget)?;
        transposed(&columns, (q, p), out);
        return Ok(());
    }
    applied(operator, Source::all(&rows, p), (p, T::PARTS == 2), Side::Adjoint, out, budget)
}

/// The gradients of the arguments from those of the matrices.
pub fn matrix_vjp<T: Scalar>(
    operator: &dyn Rows<T>,
    ct: &[T],
    bars: &mut [Bar<'_, T>],
    budget: &Budget<'_>,
) -> Result<()> {
    operator.check_matrix("ct", ct)?;
    operator.check_bars(bars)?;
    if bars.iter().all(Bar::is_empty) {
        return Ok(());
    }
    if ct.is_empty() {
        return pulled(operator, (Source::all(ct, 0), ct), 0, Side::Adjoint, bars, None, budget);
    }
    let (p, q) = operator.shape();
    let (rows, turned) = (identity(1, p.min(q))?, p > q || T::PARTS == 2);
    let mut own = Buffer::<T>::zeroed(if turned { ct.len() } else { 0 })?;
    if p > q {
        transposed(ct, (p, q), &mut own);
        return pulled(operator, (Source::all(&rows, q), &own), q, Side::Forward, bars, None, budget);
    }
    // a pass over memory: an element takes as long as some multiply-adds
    let threads = parallel::worth(most(budget.threads), work(&[4, own.len()]));
    let part = own.len().div_ceil(threads).max(1);
    let parts = own.chunks_mut(part).zip(ct.chunks(part));
    parallel::each(
        threads,
        parts,
        || (),
        |(), _, (own, ct)| own.iter_mut().zip(ct).for_each(|(row, ct)| *row = ct.conj()),
    );
    let ct = if turned { &own } else { ct };
    pulled(operator, (Source::all(&rows, p), ct), p, Side::Adjoint, bars, None, budget)
}

/// The gradients of the arguments of one operator from the sums of all its rows.
pub fn deal<T: Scalar>(operator: &dyn Rows<T>, sums: &mut [T::Real], bars: &mut [Bar<'_, T>]) -> Result<()> {
    operator.check_bars(bars)?;
    check_len("sums", sums.len(), &[operator.batch(), operator.sums()])?;
    let room = Scratch::new(|arena| arena.take::<T::Real>(&[operator.scratch(0)]))?;
    let bars = StackBars::new(bars, operator.batch())?;
    for k in 0..operator.batch() {
        let own = &mut sums[k * operator.sums()..(k + 1) * operator.sums()];
        // SAFETY: the scratch is for this call; nobody else has the gradients.
        unsafe {
            operator.load(k, room.ptr());
            operator.deal(k, own, bars.of(k), room.ptr());
        }
    }
    Ok(())
}
