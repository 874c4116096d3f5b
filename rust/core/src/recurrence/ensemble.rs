//! An ensemble: recurrences of the same sizes in one call, each with an operator or arrays of its own.
//!
//! Work sharing follows the policy of batches ([`Batch`]): small members run one per thread, large ones one after another,
//! each on all threads. A member is computed as in a call of its own and gives the same bits for the same W.

use super::driver::sharing::layout;
use crate::batch::Batch;
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::parallel::{self, in_callers_mode};
use crate::scalar::Scalar;
use crate::sizes::work;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

/// Calls `f` for every member, a recurrence of (steps, batch, features, n), with the budget of its call. The first error
/// ends the other members.
///
/// ```
/// use isometry_core::operators::dense::Dense;
/// use isometry_core::recurrence::{self, Run, Sequence};
/// use isometry_core::{Budget, Operator};
///
/// // three members with a W of their own, on the same inputs
/// let (weights, x) = ([[0.1f32; 4], [0.2; 4], [0.3; 4]], [1.0; 5]);
/// let sequence = Sequence { run: Run::new([5, 1, 1, 2], &x), input_weight: &[1.0; 2], bias: None, on_input: false };
/// let mut states = [[0.0; 10]; 3];
/// let members = weights.iter().zip(&mut states).collect();
/// recurrence::ensemble::<f32, _>(members, [5, 1, 1, 2], &Budget::of(2), |(weight, states), budget| {
///     recurrence::forward(&Dense::new(weight, 1, 2, 2)?, &sequence, states, budget)
/// })?;
/// assert!(states[0][9] < states[1][9] && states[1][9] < states[2][9]);
/// # Ok::<(), isometry_core::Error>(())
/// ```
///
/// # Errors
/// The first that `f` returns; [`Error::Interrupted`] once the budget says so.
pub fn ensemble<T: Scalar, P: Send>(
    members: Vec<P>,
    [steps, batch, features, n]: [usize; 4],
    budget: &Budget<'_>,
    f: impl Fn(P, &Budget<'_>) -> Result<()> + Sync,
) -> Result<()> {
    let row = work(&[n, n.saturating_add(features)]);
    let (together, columns) = layout(work(&[row, T::PARTS, T::PARTS]), true, batch, steps, budget.threads);
    let barriers = match together {
        1 => usize::MAX,
        _ if columns => steps,
        _ => 1,
    };
    let split = Batch::new::<T>(members.len(), work(&[row, batch, steps]), barriers).split(budget.threads);
    if split.each() > 1 || split.threads() == 1 {
        return members.into_iter().try_for_each(|member| f(member, budget));
    }
    // Only the caller's thread asks: the flag may belong to an interpreter.
    let (caller, stop, failed) = (thread::current().id(), AtomicBool::new(false), Mutex::new(None));
    let cancel = || {
        if thread::current().id() == caller && in_callers_mode(budget.cancel) {
            stop.store(true, Relaxed);
        }
        stop.load(Relaxed)
    };
    let alone = Budget { threads: 1, cancel: &cancel };
    parallel::each(
        split.threads(),
        members.into_iter(),
        || (),
        |(), _, member| {
            if cancel() {
                fail(&failed, Error::Interrupted);
            } else if let Err(error) = in_callers_mode(|| f(member, &alone)) {
                fail(&failed, error);
                stop.store(true, Relaxed);
            }
        },
    );
    failed.into_inner().ok().flatten().map_or(Ok(()), Err)
}

/// Keeps the first error.
fn fail(failed: &Mutex<Option<Error>>, error: Error) {
    if let Ok(mut first) = failed.lock() {
        first.get_or_insert(error);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    const SIZES: [usize; 4] = [3, 4, 2, 8];

    #[test]
    fn every_member_is_computed_once() {
        for (count, threads) in [(1, 2), (2, 1), (4, 2), (5, 2), (7, 3)] {
            let mut seen = vec![0; count];
            let budget = Budget::of(threads);
            ensemble::<f32, _>(seen.iter_mut().collect(), SIZES, &budget, |place, own| {
                *place += own.threads;
                Ok(())
            })
            .unwrap();
            assert!(seen.iter().all(|&own| own == 1 || own == threads), "{count} on {threads}: {seen:?}");
        }
    }

    #[test]
    fn the_first_error_ends_the_others_and_a_cancelled_call_stops() {
        let calls = AtomicUsize::new(0);
        let found = ensemble::<f32, _>((0..4).collect(), SIZES, &Budget::of(2), |i: usize, budget| {
            calls.fetch_add(1, Relaxed);
            if i == 0 {
                return Err(Error::value("x", "of the first"));
            }
            while !(budget.cancel)() {
                thread::yield_now();
            }
            Err(Error::Interrupted)
        });
        assert!(found.is_err() && calls.into_inner() <= 4);
        let stopped = Budget { threads: 2, cancel: &|| true };
        let found = ensemble::<f32, _>((0..4).collect(), SIZES, &stopped, |_: usize, _| Ok(()));
        assert!(matches!(found, Ok(()) | Err(Error::Interrupted)));
    }
}
