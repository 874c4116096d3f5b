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

type Entry = (TypeId, usize, Arc<dyn Any + Send + Sync>);
static PLANS: Mutex<Vec<Entry>> = Mutex::new(Vec::new());

/// The plan of n elements.
pub fn plan<R: Real>(n: usize) -> Result<Arc<Plan<R>>> {
    let own = TypeId::of::<R>();
    // The lock is held only briefly, but in a forked child it may never be released: no thread waits for it.
    if let Ok(mut plans) = PLANS.try_lock()
        && let Some(i) = plans.iter().position(|kept| (kept.0, kept.1) == (own, n))
    {
        plans[..=i].rotate_right(1);
        if let Ok(plan) = plans[0].2.clone().downcast() {
            return Ok(plan);
        }
    }
    // some six times the numbers of a row in double precision
    let lack = || Error::OutOfMemory { bytes: work(&[n, 6 * size_of::<[f64; 2]>()]) };
    let plan = Arc::new(Plan::<R>::new(n).ok_or_else(lack)?);
    if let Ok(mut plans) = PLANS.try_lock() {
        plans.insert(0, (own, n, plan.clone()));
        plans.truncate(KEPT);
    }
    Ok(plan)
}

/// The route of an operator by two transforms: its factors, unless one group of rows is nearly empty and n is small. For
/// n = 64, 128 a row of a `FourierProduct` takes 0.07, 0.2 us by the factors in a full group, and 0.5, 2 us by the matrix,
/// which costs n rows to form (complex64, AVX-512).
pub fn route(n: usize, workload: Workload) -> Route {
    let alone = work(&[n, workload.batch]) < 128 && workload.rows() >= n as u128;
    if alone { Route::Dense } else { Route::Factored }
}
