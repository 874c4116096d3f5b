//! Every public function with sizes at the limits of usize and with arrays of wrong lengths: an error or, if the arrays
//! have the sizes (for empty ones see `isometry_core::internal::sizes`), an immediate return; never a crash, a panic or a hang.

mod any;
mod cells;
#[path = "../common/mod.rs"]
mod common;
mod delta;
mod lengths;
mod linalg;
mod operators;
mod own;
mod sequences;

use isometry_core::internal::scratch::{self, Arena, Scratch};
use isometry_core::internal::sizes::{MOST, size, work};
use isometry_core::internal::{kernels, parallel};
use isometry_core::operators::{Last, householder::Householder};
use isometry_core::recurrence;
use isometry_core::scalar::{Scalar, all_finite, c64, parts, parts_mut};
use isometry_core::{Budget, Error, Result, Side};
use sequences::sequence;
use std::fmt::Debug;
use std::time::{Duration, Instant};

const SIZES: [usize; 9] = [0, 1, 2, 1 << 16, 1 << 32, 1 << 44, 1 << 58, 1 << 63, usize::MAX];
const LENGTHS: [usize; 3] = [0, 1, 2];
const SIDES: [Side; 2] = [Side::Forward, Side::Adjoint];

/// All choices of N sizes.
fn choices<const N: usize>() -> impl Iterator<Item = [usize; N]> {
    (0..SIZES.len().pow(N as u32)).map(|choice| {
        let mut left = choice;
        [(); N].map(|()| {
            let digit = left % SIZES.len();
            left /= SIZES.len();
            SIZES[digit]
        })
    })
}

/// Whether an array of these sizes has `len` elements.
fn fits(len: usize, sizes: &[usize]) -> bool {
    let product = sizes.iter().try_fold(1u128, |product, &size| product.checked_mul(size.max(1) as u128));
    let elements = if sizes.contains(&0) { 0 } else { product.unwrap_or(u128::MAX) };
    product.is_some_and(|product| product <= MOST as u128) && elements == len as u128
}

/// The call returned at once. `tests/test_rust_functions.py` reads the names.
#[track_caller]
fn called<R>(what: &'static str, sizes: &[usize], call: impl FnOnce() -> Result<R>) -> Result<R> {
    let start = Instant::now();
    let outcome = call();
    // threads that wait for each other take minutes under valgrind, for which this variable is set
    let seconds = if std::env::var_os("ISOMETRY_TEST_WORK").is_some() { 600 } else { 5 };
    assert!(start.elapsed() < Duration::from_secs(seconds), "{what} with {sizes:?}: {:?}", start.elapsed());
    outcome
}

/// It returned at once, with an error if and only if an array does not fit, or if it needs more memory than machines have.
#[track_caller]
fn expect<R: Debug>(what: &'static str, sizes: &[usize], fits: bool, call: impl FnOnce() -> Result<R>) {
    let outcome = called(what, sizes, call);
    let lack = matches!(outcome, Err(Error::OutOfMemory { bytes }) if bytes >= 1 << 37);
    assert!(outcome.is_ok() == fits || (fits && lack), "{what} with {sizes:?}: {outcome:?}");
}

/// The same for a call whose arrays may fit for several reasons: only the immediate return is checked.
#[track_caller]
fn returns<R>(what: &'static str, sizes: &[usize], call: impl FnOnce() -> Result<R>) {
    drop(called(what, sizes, call));
}

/// An array of ones.
fn ones<T: Scalar>(len: usize) -> Vec<T> {
    vec![T::one(); len]
}

fn real<T: Scalar>(len: usize) -> Vec<T::Real> {
    ones(len)
}

const THREADS: usize = usize::MAX;

fn never() -> bool {
    false
}

fn all<T: Scalar>() {
    scratch::guard(true);
    operators::larger::<T>();
    operators::meshes::<T>();
    operators::functions::<T>();
    sequences::activations::<T>();
    sequences::recurrences::<T>();
    sequences::ensembles::<T>();
    cells::cells::<T>();
    cells::declarations();
    any::objects::<T>();
    any::shapes::<T>();
    any::blocks::<T>();
    any::beside::<T>();
    linalg::reflectors::<T>();
    linalg::factorisations::<T>();
    linalg::nearest::<T>();
    lengths::wrong_lengths::<T>();
    own::changing::<T>();
    own::transitions::<T>();
}

#[test]
fn every_public_function_at_the_limits() {
    std::thread::scope(|threads| {
        threads.spawn(all::<c64>);
        all::<f32>();
        own::gated::<f32>();
        delta::deltas::<f32>();
    });
}

#[test]
fn memory_that_no_machine_has_is_an_error() {
    // T of 2^22 columns would exceed the address space
    let m = 1 << 22;
    let vectors = ones::<c64>(m);
    let view = Householder::new(&vectors, Last::None, 1, 1, m).unwrap();
    let lack = |outcome: Result<()>| matches!(outcome, Err(Error::OutOfMemory { bytes }) if bytes >= 1 << 47);
    let (x, v) = (ones::<c64>(1), ones(1));
    let given = sequence([1, 1, 1, 1], &x, &v);
    assert!(lack(recurrence::forward(&view, &given, &mut ones(1), &Budget::of(THREADS))));
    for sizes in choices::<2>().filter(|sizes| sizes.iter().any(|&size| size > MOST) && !sizes.contains(&0)) {
        assert!(lack(Scratch::new(|arena| arena.take::<f64>(&sizes)).map(drop)));
        assert!(lack(Scratch::new(|arena| arena.regions::<u32>(usize::MAX, &sizes)).map(drop)));
        let frame = |arena: &mut Arena| arena.frame(|arena| arena.take::<u32>(&sizes));
        assert!(lack(Scratch::new(frame).map(drop)));
    }
}

#[test]
fn the_rest_takes_any_number() {
    for sizes @ [a, b] in choices() {
        assert_eq!(size("x", &sizes).is_ok(), fits(size("x", &sizes).unwrap_or(0), &sizes));
        assert!(work(&sizes) <= a.saturating_mul(b));
        assert!(parallel::worth(a, b) >= 1 && scratch::most(a) <= parallel::available());
        assert!(kernels::Product::<f32>::scratch(a, b) < 1 << 20);
    }
    let members = std::sync::atomic::AtomicUsize::new(0);
    parallel::run(THREADS, &|member| {
        assert!(member.id < member.count && member.count <= parallel::available());
        members.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    });
    assert!(members.into_inner() <= parallel::available());
    let mut numbers = [c64::new(1.0, 2.0)];
    assert_eq!((parts(&numbers).len(), parts_mut(&mut numbers).len()), (2, 2));
    assert!(all_finite(&numbers) && all_finite::<f32>(&[]) && parts::<f32>(&[]).is_empty());
}
