//! Memory that ends in the middle of a call is [`Error::OutOfMemory`], wherever it ends: every large allocation in turn fails.

mod common;

use common::Bars;
use isometry_core::argument::{Array, Given};
use isometry_core::linalg::{self, Bars as LinalgBars, Order, Reflectors};
use isometry_core::operators::view;
use isometry_core::recurrence::{self, Run, Sequence};
use isometry_core::scalar::{Real, Scalar, c64};
use isometry_core::{Budget, Error, Result, Side, activation::Activation};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::thread;

/// Bytes from which an allocation counts: below, all that depends on the input is larger, and all else smaller.
const LARGE: usize = 1024;

/// The allocator of the system, except that one allocation of this thread fails.
struct Ending;

thread_local! {
    /// Large allocations until the one that fails, if one is to.
    static LEFT: Cell<Option<usize>> = const { Cell::new(None) };
}

// SAFETY: the allocator of the system, or no memory.
unsafe impl GlobalAlloc for Ending {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() >= LARGE
            && let Some(left) = LEFT.get()
        {
            LEFT.set(left.checked_sub(1));
            if left == 0 {
                return std::ptr::null_mut();
            }
        }
        // SAFETY: the contract of the trait.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: the contract of the trait.
        unsafe { System.dealloc(start, layout) };
    }
}

#[global_allocator]
static ALLOCATOR: Ending = Ending;

/// Runs the call with every large allocation failing in turn; what the first round keeps is there in the second. A thread
/// keeps scratch memory, so each call has one of its own.
fn ends_well(what: &str, mut call: impl FnMut() -> Result<()> + Send) {
    for _ in 0..2 {
        for failing in 0.. {
            let attempt = || {
                LEFT.set(Some(failing));
                (call(), LEFT.take())
            };
            let (outcome, left) = thread::scope(|scope| scope.spawn(attempt).join().unwrap());
            if left.is_some() {
                assert_eq!(outcome, Ok(()), "{what}");
                break;
            }
            assert!(
                matches!(outcome, Err(Error::OutOfMemory { .. })),
                "{what}, allocation {failing}: {outcome:?}"
            );
        }
    }
}

/// What the caller makes: it does not fail.
fn aside<R>(f: impl FnOnce() -> R) -> R {
    let left = LEFT.take();
    let made = f();
    LEFT.set(left);
    made
}

fn numbers<T: Scalar>(count: usize) -> Vec<T> {
    let part = |i: usize| T::Real::of((i % 7) as f64 * 0.3 - 0.8);
    (0..count).map(|i| T::new(part(i), part(i + 2))).collect()
}

/// Everything that an object computes, in turn.
fn calls<T: Scalar>(object: &str, given: &[Given<'_, T>]) {
    let (budget, made) = (Budget::of(1), || view(object, given));
    let probe = made().unwrap();
    let (batch, (p, q), rows) = (probe.batch(), probe.shape(), 40);
    let mut bars = Bars::new(&*probe, given.len());
    ends_well(object, || made().map(drop));
    let mut w = numbers::<T>(batch * p * q);
    let (mut x, mut y) = (numbers::<T>(batch * rows * q), numbers::<T>(batch * rows * p));
    ends_well(object, || made()?.matrix(&mut w, None, &budget));
    ends_well(object, || made()?.matrix_vjp(None, &w, &mut aside(|| bars.view()), &budget));
    for side in [Side::Forward, Side::Adjoint] {
        let (from, mut to) = (x.clone(), y.clone());
        ends_well(object, || made()?.apply(&from, rows, side, &mut to, None, &budget));
        ends_well(object, || {
            made()?.apply_vjp(None, &from, &y, rows, side, &mut aside(|| bars.view()), Some(&mut x), &budget)
        });
        std::mem::swap(&mut x, &mut y);
    }
    if batch != 1 || p != q || probe.transition().is_none() {
        return;
    }
    let (steps, v) = (9, numbers::<T>(p));
    let (x, ct) = (numbers::<T>(steps), numbers::<T>(steps * p));
    let sequence = Sequence {
        run: Run { activation: Activation::Identity, ..Run::new([steps, 1, 1, p], &x) },
        input_weight: &v,
        bias: None,
        on_input: false,
    };
    let mut states = ct.clone();
    ends_well(object, || recurrence::forward(&*made()?, &sequence, &mut states, &budget));
    ends_well(object, || {
        recurrence::backward(&*made()?, &mut aside(|| bars.view()), &sequence, &ct, &ct, &mut [], &budget)
    });
}

/// Products of reflections, and QR factorisations of a few columns and of panels.
fn linear_algebra(x: &[c64]) {
    let (m, k, n) = (60, 40, 30);
    let (a, tau, other) = (&x[..m * k], &x[..k], &x[..m * n]);
    let (mut out, mut bar, mut tau_bar) = (a.to_vec(), a.to_vec(), tau.to_vec());
    let made = || Reflectors::new(a, tau, 1, m, k);
    ends_well("product", || linalg::product(&made()?, &mut out, 1));
    ends_well("product_vjp", || linalg::product_vjp(&made()?, a, &mut bar, &mut tau_bar, 1));
    for left in [true, false] {
        let order = Order { left, adjoint: false, columns: n };
        ends_well("apply", || linalg::apply(&made()?, other, order, &mut out[..m * n], 1));
        ends_well("apply_vjp", || {
            let bars = LinalgBars { reflectors: Some((&mut bar, &mut tau_bar)), x: None };
            linalg::apply_vjp(&made()?, other, other, order, bars, 1)
        });
    }
    for sizes @ (_, m, n) in [(1, 60, 40), (1, 30, 80)] {
        let (a, k) = (&x[..m * n], m.min(n));
        let (mut out, mut tau) = (a.to_vec(), vec![c64::default(); k]);
        ends_well("geqrf", || linalg::geqrf(a, sizes, &mut out, &mut tau, 1));
        ends_well("geqrf_vjp", || linalg::geqrf_vjp((a, &x[..k]), (a, &x[..k]), sizes, &mut out, 1));
    }
}

fn own<'a, T: Scalar>(shape: &'a [usize], x: &'a [T]) -> Given<'a, T> {
    Given { shape, array: Array::Own(x) }
}

fn real<'a, T: Scalar>(shape: &'a [usize], x: &'a [T::Real]) -> Given<'a, T> {
    Given { shape, array: Array::Real(x) }
}

const NONE: Given<'static, c64> = Given { shape: &[], array: Array::None };

#[test]
fn memory_that_ends_is_an_error() {
    // the pool of threads, and what a first call makes once
    isometry_core::internal::parallel::run(1, &|_| {});
    let (x, y) = (numbers::<c64>(6000), numbers::<f64>(6000));
    calls("dense", &[own(&[40, 40], &x[..1600])]);
    calls("householder", &[own(&[40, 40], &x[..1600]), NONE, real(&[40], &y[..40])]);
    calls("rotation", &[real::<c64>(&[90], &y[..90]), real(&[90], &y[3..93])]);
    for (layers, kind, pairs) in [(70, 1, 70 * 20 - 35), (70, 2, 70 * 20 - 35)] {
        let frame = [40, layers, kind, 0];
        let (angles, n) = ([pairs], [40]);
        let own = [
            own(&frame, &[]),
            real(&angles, &y[..pairs]),
            real(&angles, &y[9..9 + pairs]),
            real(&n, &y[..40]),
            NONE,
        ];
        calls("mesh", &own);
    }
    for n in [240, 134, 256] {
        let permutation: Vec<i64> = (0..n as i64).rev().collect();
        let (angles, vectors, one) = ([3, n], [2, n], [n]);
        let permutation = Given { shape: &one, array: Array::Integers(&permutation) };
        calls("fourier", &[real(&angles, &y[..3 * n]), own(&vectors, &x[..2 * n]), permutation]);
    }
    linear_algebra(&x);
    let factors = vec![own(&[1, 1], &x[1..2]); 60];
    calls("kronecker", &factors);
    calls("kronecker", &[own(&[20, 20], &x[..400]), own(&[3, 3], &x[1..10])]);
    calls("kronecker", &[own(&[20, 10], &x[..200]), own(&[3, 2], &x[1..7])]);
}
