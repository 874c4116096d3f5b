//! Operators of a user's own in safe Rust, which lie about their sizes: an error, or a result without meaning, and never memory of
//! others. One on rows lies only in an `unsafe impl`.

use crate::sequences::sequence;
use crate::{SIDES, THREADS, ones, returns};
use isometry_core::argument::{Argument, Array, Bar};
use isometry_core::operators::Last;
use isometry_core::operators::householder::Householder;
use isometry_core::operators::rotation::Rotation;
use isometry_core::recurrence::Run;
use isometry_core::recurrence::gru::{Gru, Reset};
use isometry_core::recurrence::{self, Outcome, Transition, Unit};
use isometry_core::scalar::{Real, Scalar};
use isometry_core::{Budget, Cpu, Error, Operator, Result, Rows, Saves, Side, argument};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const ARGUMENTS: &[Argument] = &[argument!("weight", "k")];
/// So many numbers behind an array belong to somebody else, or to nobody.
const FAR: usize = 1 << 12;

/// What it says of itself, call after call: the first `calls` times the truth, a matrix 1 x 1.
struct Liar<'a, T: Scalar> {
    truth: [usize; 3],
    lie: [usize; 3],
    left: AtomicUsize,
    saves: Option<usize>,
    own: &'a [T],
    transition: Option<Transition<'a, T>>,
}

impl<'a, T: Scalar> Liar<'a, T> {
    fn new(lie: [usize; 3], calls: usize, own: &'a [T]) -> Self {
        Liar { truth: [1; 3], lie, left: AtomicUsize::new(calls), saves: None, own, transition: None }
    }

    fn says(&self) -> [usize; 3] {
        let honest = self.left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok();
        if honest { self.truth } else { self.lie }
    }
}

impl<T: Scalar> Operator<T> for Liar<'_, T> {
    fn sizes(&self) -> [usize; 3] {
        self.says()
    }
    fn arguments(&self) -> &'static [Argument] {
        ARGUMENTS
    }
    fn argument(&self, _i: usize) -> Array<'_, T> {
        Array::Own(&self.own[..1])
    }
    fn check_bars(&self, _bars: &[Bar<'_, T>]) -> Result<()> {
        Ok(())
    }
}

impl<T: Scalar> Cpu<T> for Liar<'_, T> {
    fn matrix(&self, out: &mut [T], _saved: Option<&mut [T]>, _budget: &Budget<'_>) -> Result<()> {
        out.fill(T::one());
        Ok(())
    }
    fn matrix_vjp(
        &self,
        _saved: Option<&[T]>,
        _ct: &[T],
        _bars: &mut [Bar<'_, T>],
        _budget: &Budget<'_>,
    ) -> Result<()> {
        Ok(())
    }
    fn apply_saves(&self, _rows: usize, _side: Side) -> Result<Saves> {
        Ok(Saves::Elements(self.saves.unwrap_or(1)))
    }
    fn transition(&self) -> Option<Transition<'_, T>> {
        self.transition
    }
    fn rows(&self) -> Option<&dyn Rows<T>> {
        if let Some(Transition::Rows(rows)) = self.transition { Some(rows) } else { None }
    }
}

fn refused(what: &str, outcome: Result<()>) {
    assert!(matches!(outcome, Err(Error::Shape { .. })), "{what}: {outcome:?}");
}

/// Shapes that change from one call to the next, and room for saved values that is too small for W.
pub fn changing<T: Scalar>() {
    let (budget, one) = (Budget::of(THREADS), ones::<T>(1));
    for lie in [[1, FAR, FAR], [1, FAR, 1], [1, 1, FAR], [FAR, 1, FAR], [FAR, FAR, 1]] {
        for (calls, side) in (0..14).flat_map(|calls| SIDES.map(|side| (calls, side))) {
            for kept in [None, Some(ones::<T>(1))] {
                let (mut out, mut bar, mut x_bar) = (ones::<T>(1), ones::<T>(1), ones::<T>(1));
                let op = Liar::new(lie, calls, &one);
                let outcome = op.apply(&one, 1, side, &mut out, kept.clone().as_deref_mut(), &budget);
                assert!(
                    outcome.is_ok() || matches!(outcome, Err(Error::Shape { .. })),
                    "{lie:?}: {outcome:?}"
                );
                let (op, bars) = (Liar::new(lie, calls, &one), &mut [Bar::Own(&mut bar)]);
                let outcome =
                    op.apply_vjp(kept.as_deref(), &one, &one, 1, side, bars, Some(&mut x_bar), &budget);
                assert!(
                    outcome.is_ok() || matches!(outcome, Err(Error::Shape { .. })),
                    "{lie:?}: {outcome:?}"
                );
            }
        }
    }
    let (rows, mut op) = (ones::<T>(FAR), Liar::new([1, FAR, FAR], 0, &one));
    for side in SIDES {
        for saves in [1, 2] {
            op.saves = Some(saves);
            let (mut saved, mut out) = (ones::<T>(saves), ones::<T>(FAR));
            refused("apply", op.apply(&rows, 1, side, &mut out, Some(&mut saved), &budget));
            let outcome = op.apply_vjp(Some(&saved), &rows, &rows, 1, side, &mut [], Some(&mut out), &budget);
            refused("apply_vjp", outcome);
        }
    }
}

/// Transitions of other sizes than the operator's, and gradients that fit its arguments and not the transition.
pub fn transitions<T: Scalar>() {
    let (budget, one, real) = (Budget::of(THREADS), ones::<T>(1), ones::<T::Real>(FAR));
    let (long, vectors) = (ones::<T>(FAR), ones::<T>(2 * FAR));
    let rotation = Rotation::<T>::new(&real, &real, 1, FAR).unwrap();
    let reflections = Householder::new(&vectors, Last::None, 1, FAR, 2).unwrap();
    let own = [Transition::Dense(&long), Transition::Rows(&rotation), reflections.transition().unwrap()];
    for transition in own {
        // of one state
        let mut op = Liar::new([1; 3], 0, &one);
        op.transition = Some(transition);
        let (given, mut states) = (sequence([1, 1, 1, 1], &one, &one), ones::<T>(1));
        refused("forward", recurrence::forward(&op, &given, &mut states, &budget));
        let mut bar = ones::<T>(1);
        let outcome =
            recurrence::backward(&op, &mut [Bar::Own(&mut bar)], &given, &states, &one, &mut [], &budget);
        refused("backward", outcome);
        if op.rows().is_some() {
            for side in SIDES {
                refused("apply", op.apply(&one, 1, side, &mut states, None, &budget));
                let outcome = op.apply_vjp(None, &one, &one, 1, side, &mut [], Some(&mut states), &budget);
                refused("apply_vjp", outcome);
            }
        }
    }
    let n = 1 << 6;
    let (weight, real, vectors) = (ones::<T>(n * n), ones::<T::Real>(n), ones::<T>(n * n));
    let rotation = Rotation::<T>::new(&real, &real, 1, n).unwrap();
    let reflections = Householder::new(&vectors, Last::None, 1, n, n).unwrap();
    let (x, v, ct) = (ones::<T>(1), ones::<T>(n), ones::<T>(n));
    let given = sequence([1, 1, 1, n], &x, &v);
    for (transition, real) in [
        (Transition::Dense(&weight), false),
        (Transition::Rows(&rotation), true),
        (reflections.transition().unwrap(), false),
    ] {
        let mut op = Liar::new([1, n, n], 0, &one);
        op.transition = Some(transition);
        let (mut own, mut numbers) = (ones::<T>(1), ones::<T::Real>(1));
        let bar = if real { Bar::Real(&mut numbers) } else { Bar::Own(&mut own) };
        refused("backward", recurrence::backward(&op, &mut [bar], &given, &ct, &ct, &mut [], &budget));
    }
}

/// W_h of a gated unit.
pub fn gated<R: Real>() {
    let n = 1 << 6;
    let (real, w, u, x) = (ones::<R>(n), ones::<R>(2 * n * n), ones::<R>(3 * n), ones::<R>(1));
    let (one, long) = (ones::<R>(1), ones::<R>(2 * FAR));
    for size in [n, 2 * n] {
        let rotation = Rotation::<R>::new(&long[..size], &long[..size], 1, size).unwrap();
        let mut op = Liar::new([1, n, n], 0, &one);
        op.transition = Some(Transition::Rows(&rotation));
        let unit = Gru {
            run: Run { h0: Some(&real), ..Run::new([1, 1, 1, n], &x) },
            w: &w,
            transition: Some(&op),
            u: &u,
            b: None,
            reset: Reset::Before,
            hidden_bias: None,
            r_first: false,
        };
        returns("Gru::saved", &[n], || Ok(unit.saved()));
        let (mut states, saved, mut bar) = (ones::<R>(n), ones::<R>(3 * n), ones::<R>(1));
        let outcome = unit.forward((&mut states).into(), &mut [], None, &Budget::of(THREADS));
        assert_eq!(outcome.is_ok(), size == n, "{outcome:?}");
        let bars = &mut [Bar::Real(&mut bar)];
        let (states, ct) = ((&states).into(), (&states).into());
        let outcome = Outcome { states, last: &[], saved: &saved, ct, last_ct: None };
        refused("gru", unit.backward(&outcome, &mut [], bars, &Budget::of(THREADS)));
    }
}
