//! Plans of Fourier transforms are made once per length and element type: their sines take longer than the transform of some rows.

use crate::error::{Error, Result};
use crate::scalar::Real;
use crate::sizes::work;
use crate::transition::{Route, Workload};
use isometry_kernels::transform::Plan;
use std::any::{Any, TypeId};
use std::sync::{Arc, Mutex};

/// Plans kept; the least recently used one is replaced.
const KEPT: usize = 16;
/// Bytes of the plans kept beside the last one, which is kept whatever its length.
const KEPT_BYTES: usize = 128 << 20;

struct Entry {
    kind: TypeId,
    n: usize,
    bytes: usize,
    plan: Arc<dyn Any + Send + Sync>,
}
static PLANS: Mutex<Vec<Entry>> = Mutex::new(Vec::new());

/// The plan of n elements.
pub fn plan<R: Real>(n: usize) -> Result<Arc<Plan<R>>> {
    let own = TypeId::of::<R>();
    // The lock is held only briefly, but in a forked child it may never be released: no thread waits for it.
    if let Ok(mut plans) = PLANS.try_lock()
        && let Some(i) = plans.iter().position(|kept| (kept.kind, kept.n) == (own, n))
    {
        plans[..=i].rotate_right(1);
        if let Ok(plan) = plans[0].plan.clone().downcast() {
            return Ok(plan);
        }
    }
    let lack = || Error::OutOfMemory { bytes: bytes::<f64>(n) };
    let plan = Arc::new(Plan::<R>::new(n).ok_or_else(lack)?);
    if let Ok(mut plans) = PLANS.try_lock() {
        plans.insert(0, Entry { kind: own, n, bytes: bytes::<R>(n), plan: plan.clone() });
        forget(&mut plans);
    }
    Ok(plan)
}

/// The most that a plan takes: roots of unity for a convolution of up to 2.5 n elements, its spectrum and n factors.
fn bytes<R: Real>(n: usize) -> usize {
    work(&[n, 6 * size_of::<[R; 2]>()])
}

/// Leaves the last plan, and of those before it as many as the limits allow.
fn forget(plans: &mut Vec<Entry>) {
    let mut bytes = 0_usize;
    let within = plans.iter().skip(1).take(KEPT - 1).take_while(|kept| {
        bytes = bytes.saturating_add(kept.bytes);
        bytes <= KEPT_BYTES
    });
    let kept = 1 + within.count();
    plans.truncate(kept);
}

/// The route of an operator by two transforms: its factors, unless one group of rows is nearly empty and n is small. For
/// n = 64, 128 a row of a `FourierProduct` takes 0.07, 0.2 us by the factors in a full group, and 0.5, 2 us by the matrix,
/// which costs n rows to form (complex64, AVX-512).
pub fn route(n: usize, workload: Workload) -> Route {
    let alone = work(&[n, workload.batch]) < 128 && workload.rows() >= n as u128;
    if alone { Route::Dense } else { Route::Factored }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_kept_up_to_a_number_and_up_to_so_many_bytes() {
        let plans = |sizes: &[usize]| {
            let entry =
                |&bytes: &usize| Entry { kind: TypeId::of::<f64>(), n: bytes, bytes, plan: Arc::new(()) };
            let mut plans = sizes.iter().map(entry).collect();
            forget(&mut plans);
            plans.iter().map(|kept| kept.n).collect::<Vec<_>>()
        };
        let half = KEPT_BYTES / 2;
        assert_eq!(plans(&[1; 20]), [1; KEPT]);
        assert_eq!(plans(&[usize::MAX, half, half, 1, 1]), [usize::MAX, half, half]);
        assert_eq!(plans(&[1, usize::MAX, usize::MAX, 1]), [1]);
        assert_eq!(plans(&[3, half, 2, half + 1, 1]), [3, half, 2]);
    }

    #[test]
    fn long_plans_do_not_gather() {
        // 24 MB each, at most
        let lengths = (0..8).map(|i| (1 << 18) - i);
        for n in lengths {
            drop(plan::<f64>(n).unwrap());
        }
        let plans = PLANS.lock().unwrap();
        let held: usize = plans.iter().skip(1).map(|kept| kept.bytes).sum();
        assert!(!plans.is_empty() && held <= KEPT_BYTES, "{held} bytes");
    }
}
