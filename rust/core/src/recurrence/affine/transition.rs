//! The transitions of the affine cell, and the recurrence over each: states, and gradients of everything.

use super::super::cell::Cell;
use super::super::chunk::chunk_rows;
use super::super::inputs::{Gathered, Gatherer, InputBars};
use super::super::modrelu::BiasGatherer;
use super::super::packed::Packed;
use super::super::pages::want_huge_pages;
use super::super::team::Room;
use super::super::timeline::in_halves;
use super::super::{backward as back, forward as forth};
use super::dense::DenseStep;
use super::gradients::Wants;
use super::pull::AffinePull;
use super::reflection_step::{Bars, ReflectionStep};
use super::rows_step::RowsStep;
use super::step::Step;
use super::work::Work;
use super::{AffineCell, Gradients, ReflectionGradients, Reflections, Sequence, Setting};
use crate::error::{Error, Result};
use crate::kernels::balance;
use crate::parallel::Shared;
use crate::rows::Rows;
use crate::scalar::{Scalar, parts, parts_mut};
use crate::scratch::{Arena, Region, Scratch};
use crate::sizes::check_len;

/// W of a recurrence.
#[derive(Clone, Copy)]
pub enum Transition<'a, T: Scalar> {
    /// A matrix (n, n).
    Dense(&'a [T]),
    /// A product of reflections, applied factor by factor.
    Reflections(Reflections<'a, T>),
    /// An operator on rows, applied step by step.
    Rows(&'a dyn Rows<T>),
}

/// W, and where the gradients of its parameters go; None where they are not wanted.
pub enum TransitionVjp<'a, T: Scalar> {
    /// W (n, n) and its gradient.
    Dense(&'a [T], Option<&'a mut [T]>),
    /// The reflections and their gradients.
    Reflections(Reflections<'a, T>, ReflectionGradients<'a, T>),
    /// An operator and [`Rows::sums`] numbers.
    Rows(&'a dyn Rows<T>, Option<&'a mut [T::Real]>),
}

impl<T: Scalar> Transition<'_, T> {
    fn check(&self, n: usize) -> Result<()> {
        match self {
            Transition::Dense(weight) => check_len("weight", weight.len(), &[n, n]),
            Transition::Reflections(reflections) => reflections.check(n),
            Transition::Rows(rows) if rows.size() == (n, n) => Ok(()),
            Transition::Rows(rows) => {
                let (p, q) = rows.size();
                Err(Error::shape("transition", format!("{n} x {n}"), format!("{p} x {q}")))
            }
        }
    }
}

impl<T: Scalar> TransitionVjp<'_, T> {
    fn check(&self, n: usize) -> Result<()> {
        match self {
            TransitionVjp::Dense(weight, bar) => {
                Transition::Dense(weight).check(n)?;
                bar.as_ref().map_or(Ok(()), |bar| check_len("weight_bar", bar.len(), &[weight.len()]))
            }
            TransitionVjp::Reflections(reflections, bars) => {
                reflections.check(n)?;
                bars.check(reflections)
            }
            TransitionVjp::Rows(rows, bar) => {
                Transition::Rows(*rows).check(n)?;
                bar.as_ref().map_or(Ok(()), |bar| check_len("sums", bar.len(), &[rows.sums()]))
            }
        }
    }
}

/// A transition made ready for a call.
#[allow(clippy::large_enum_variant, reason = "one per call, on the stack")]
enum Steps<'a, T: Scalar> {
    Dense(DenseStep<'a, T>),
    Reflections(ReflectionStep<'a, T>),
    Rows(RowsStep<'a, T>),
}

impl<'a, T: Scalar> Steps<'a, T> {
    fn step(&self) -> &dyn Step<T> {
        match self {
            Steps::Dense(step) => step,
            Steps::Reflections(step) => step,
            Steps::Rows(step) => step,
        }
    }
}

/// What a backward pass does with a transition: addresses in place of borrows.
enum Wanted<'a, T: Scalar> {
    Dense(&'a [T], Option<Shared<T>>),
    Reflections(Reflections<'a, T>, Bars<T>),
    Rows(&'a dyn Rows<T>, Option<Shared<T::Real>>),
}

/// States (T, B, n) of a recurrence; zeros behind the end of a sequence.
///
/// `cancel` is asked every few milliseconds; when it says yes the call ends with [`Error::Interrupted`].
pub fn forward<T: Scalar>(
    transition: &Transition<'_, T>,
    sequence: &Sequence<'_, T>,
    states: &mut [T],
    threads: usize,
    cancel: &(dyn Fn() -> bool + Sync),
) -> Result<()> {
    sequence.check()?;
    let n = sequence.n;
    transition.check(n)?;
    sequence.check_states("states", states)?;
    let setting = Setting::new(sequence)?;
    let schedule = &setting.line.schedule;
    let balanced = match transition {
        Transition::Reflections(reflections) => balance(reflections.vectors, 1, n, reflections.m)?,
        _ => None,
    };
    let steps = |arena: &mut Arena| match *transition {
        Transition::Dense(weight) => {
            Steps::Dense(DenseStep::carve(arena, n, weight, false, false, (None, 1)))
        }
        Transition::Reflections(own) => {
            let vectors = balanced.as_ref().map_or(own.vectors, |balanced| &balanced.vectors);
            let own = Reflections { vectors, ..own };
            Steps::Reflections(ReflectionStep::carve(arena, &own, n, schedule, None))
        }
        Transition::Rows(rows) => Steps::Rows(RowsStep::carve(arena, rows, schedule, None)),
    };
    let room = Scratch::new(|arena| {
        let (steps, input) = (steps(arena), setting.input(arena));
        let cell = AffineCell { setting: &setting, step: steps.step(), input: &input };
        let step = steps.step();
        let room = Room::carve(arena, schedule, (cell.work(), step.divisible()), step.scratch(0), threads);
        (steps, input, room)
    })?;
    let (steps, input, room) = &*room;
    // SAFETY: the memory was cut for this call.
    unsafe { steps.step().fill() };
    let cell = AffineCell { setting: &setting, step: steps.step(), input };
    want_huge_pages(states);
    forth::forward(&cell, room, schedule, parts_mut(states), cancel)
}

/// The gradients of [`forward`] for the cotangent ct (T, B, n) of its states, which is ignored behind the end of a sequence; what
/// is None is not computed.
pub fn backward<T: Scalar>(
    transition: TransitionVjp<'_, T>,
    sequence: &Sequence<'_, T>,
    states: &[T],
    ct: &[T],
    gradients: Gradients<'_, T>,
    threads: usize,
    cancel: &(dyn Fn() -> bool + Sync),
) -> Result<()> {
    sequence.check()?;
    let n = sequence.n;
    transition.check(n)?;
    sequence.check_states("states", states)?;
    sequence.check_states("ct", ct)?;
    gradients.check(sequence)?;
    let setting = Setting::new(sequence)?;
    let schedule = &setting.line.schedule;
    let balanced = match &transition {
        TransitionVjp::Reflections(reflections, _) => balance(reflections.vectors, 1, n, reflections.m)?,
        _ => None,
    };
    let mut vectors_bar = None;
    let wanted = match transition {
        TransitionVjp::Dense(weight, bar) => Wanted::Dense(weight, bar.map(|bar| Shared(bar.as_mut_ptr()))),
        TransitionVjp::Reflections(own, bars) => {
            let vectors = balanced.as_ref().map_or(own.vectors, |balanced| &balanced.vectors);
            let ReflectionGradients { vectors: bar, sign, phases } = bars;
            vectors_bar = bar;
            let bars = ReflectionGradients { vectors: vectors_bar.as_deref_mut(), sign, phases };
            Wanted::Reflections(Reflections { vectors, ..own }, Bars::new(bars))
        }
        TransitionVjp::Rows(rows, bar) => Wanted::Rows(rows, bar.map(|bar| Shared(bar.as_mut_ptr()))),
    };
    let steps = |arena: &mut Arena| match wanted {
        Wanted::Dense(weight, bar) => {
            let halves = in_halves(schedule, true);
            Steps::Dense(DenseStep::carve(arena, n, weight, true, setting.recomputes(), (bar, halves)))
        }
        Wanted::Reflections(ref own, bars) => {
            Steps::Reflections(ReflectionStep::carve(arena, own, n, schedule, Some(bars)))
        }
        Wanted::Rows(rows, bar) => Steps::Rows(RowsStep::carve(arena, rows, schedule, bar)),
    };
    let halves = if matches!(wanted, Wanted::Dense(..)) { in_halves(schedule, true) } else { 1 };
    let wants = gradients.wants();
    let room = Scratch::new(|arena| {
        let steps = steps(arena);
        let places = Places::carve(arena, &setting, steps.step(), halves, wants);
        let (step, rows) = (steps.step(), chunk_rows(schedule));
        let own = step.scratch(rows).max(Gathered::<T>::scratch(&setting.line, rows));
        let room = Room::carve(arena, schedule, (step.work(), step.divisible()), own, threads);
        (steps, places, room)
    })?;
    let (steps, places, room) = &*room;
    let Gradients { x, input_weight, h0, bias, activation_bias } = gradients;
    let bars = InputBars { x, weight: input_weight, bias };
    let cell = AffineCell { setting: &setting, step: steps.step(), input: &places.input };
    // SAFETY: the memory was cut for this call and these gradients; V lives.
    unsafe {
        steps.step().fill();
        let pull = AffinePull {
            cell: &cell,
            halves,
            chunks: &places.chunks,
            states: parts(states).as_ptr(),
            ct: parts(ct).as_ptr(),
            h0_bar: h0.map(|bar| parts_mut(bar).as_mut_ptr()),
            inputs: Gatherer::new(&setting.line, (setting.weight(), n), &places.gathered, bars),
            own_bias: BiasGatherer::new(&setting.law, halves, places.own_bias, activation_bias),
        };
        back::backward(&pull, room, schedule, cancel)?;
    }
    if let (Some(balanced), Some(bar)) = (&balanced, vectors_bar) {
        balanced.pull(bar);
    }
    Ok(())
}

/// The memory of a backward pass besides that of its transition.
struct Places<T: Scalar> {
    input: Packed<T>,
    gathered: Gathered<T>,
    own_bias: Region<T::Real>,
    chunks: [Work<T::Real>; 2],
}

impl<T: Scalar> Places<T> {
    fn carve(
        arena: &mut Arena,
        setting: &Setting<'_, T>,
        step: &dyn Step<T>,
        halves: usize,
        wants: Wants,
    ) -> Self {
        let [x, weight, bias, own_bias] = wants;
        Places {
            input: setting.input(arena),
            gathered: Gathered::carve(arena, &setting.line, setting.sequence.n, halves, [x, weight, bias]),
            own_bias: BiasGatherer::<T>::carve(arena, &setting.law, halves, own_bias),
            chunks: [(); 2].map(|()| Work::carve(arena, setting, step, halves, own_bias)),
        }
    }
}
