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
use super::{AffineCell, Gradients, Sequence, Setting};
use crate::argument::Bar;
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::kernels::{Balanced, Buffer, balance};
use crate::operator::{Cpu, Operator};
use crate::operators::householder::Householder;
use crate::parallel::Shared;
use crate::rows::Rows;
use crate::scalar::{Scalar, parts, parts_mut};
use crate::scratch::{Arena, Region, Scratch};
use crate::sizes::check_len;

/// How an operator serves as W of a recurrence.
#[derive(Clone, Copy)]
pub enum Transition<'a, T: Scalar> {
    /// A matrix (n, n).
    Dense(&'a [T]),
    /// A product of reflections, applied factor by factor.
    Reflections(Householder<'a, T>),
    /// An operator on rows, applied step by step.
    Rows(&'a dyn Rows<T>),
}

impl<'a, T: Scalar> Transition<'a, T> {
    /// Of an operator of n states.
    pub(in super::super) fn of(operator: &'a dyn Cpu<T>, n: usize) -> Result<Self> {
        let (batch, shape) = (operator.batch(), operator.shape());
        if batch != 1 || shape != (n, n) {
            let got = format!("{batch} of {} x {}", shape.0, shape.1);
            return Err(Error::shape("transition", format!("one operator {n} x {n}"), got));
        }
        let lacking =
            || Error::Unsupported("this operator serves a recurrence through its matrix only".into());
        let transition = operator.transition().ok_or_else(lacking)?;
        match transition {
            Transition::Dense(weight) => check_len("weight", weight.len(), &[n, n])?,
            Transition::Reflections(own) => check_len("vectors", own.vectors().len(), &[n, own.count()])?,
            Transition::Rows(rows) => {
                let (p, q) = rows.size();
                check_len("transition", p, &[n])?;
                check_len("transition", q, &[n])?;
            }
        }
        Ok(transition)
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
    Reflections(Householder<'a, T>, Bars<T>),
    Rows(&'a dyn Rows<T>, Option<Shared<T::Real>>),
}

/// States (T, B, n) of a recurrence with an operator as W; zeros behind the end of a sequence.
pub fn forward<T: Scalar>(
    operator: &dyn Cpu<T>,
    sequence: &Sequence<'_, T>,
    states: &mut [T],
    budget: &Budget<'_>,
) -> Result<()> {
    sequence.check()?;
    let n = sequence.n;
    let transition = Transition::of(operator, n)?;
    sequence.check_states("states", states)?;
    let setting = Setting::new(sequence)?;
    let schedule = &setting.line.schedule;
    let balanced = balanced(&transition)?;
    let steps = |arena: &mut Arena| match transition {
        Transition::Dense(weight) => {
            Steps::Dense(DenseStep::carve(arena, n, weight, false, false, (None, 1)))
        }
        Transition::Reflections(own) => {
            let own = own.with_vectors(balanced.as_ref().map(|balanced| &*balanced.vectors));
            Steps::Reflections(ReflectionStep::carve(arena, own, schedule, None))
        }
        Transition::Rows(rows) => Steps::Rows(RowsStep::carve(arena, rows, schedule, (None, 1))),
    };
    let room = Scratch::new(|arena| {
        let (steps, input) = (steps(arena), setting.input(arena));
        let cell = AffineCell { setting: &setting, step: steps.step(), input: &input };
        let step = steps.step();
        let work = (cell.work(), step.divisible());
        let room = Room::carve(arena, schedule, work, step.scratch(0), budget.threads);
        (steps, input, room)
    })?;
    let (steps, input, room) = &*room;
    // SAFETY: the memory was cut for this call.
    unsafe { steps.step().fill() };
    let cell = AffineCell { setting: &setting, step: steps.step(), input };
    want_huge_pages(states);
    forth::forward(&cell, room, schedule, parts_mut(states), budget.cancel)
}

/// The gradients of [`forward`] for the cotangent ct (T, B, n) of its states, which is ignored behind the end of a sequence:
/// those of the operator's arguments into `bars`. What is not wanted is not computed.
#[allow(clippy::too_many_arguments, reason = "the arrays of one call")]
pub fn backward<T: Scalar>(
    operator: &dyn Cpu<T>,
    bars: &mut [Bar<'_, T>],
    sequence: &Sequence<'_, T>,
    states: &[T],
    ct: &[T],
    gradients: Gradients<'_, T>,
    budget: &Budget<'_>,
) -> Result<()> {
    sequence.check()?;
    let n = sequence.n;
    let transition = Transition::of(operator, n)?;
    operator.check_bars(bars)?;
    sequence.check_states("states", states)?;
    sequence.check_states("ct", ct)?;
    gradients.check(sequence)?;
    let setting = Setting::new(sequence)?;
    let schedule = &setting.line.schedule;
    let balanced = balanced(&transition)?;
    let mut sums = Buffer::zeroed(match transition {
        Transition::Rows(rows) => rows.sums(),
        _ => 0,
    })?;
    let wanted = match transition {
        Transition::Dense(weight) => {
            let bar = bars.first_mut().and_then(|bar| bar.again().own());
            Wanted::Dense(weight, bar.map(|bar| Shared(bar.as_mut_ptr())))
        }
        Transition::Reflections(own) => {
            let own = own.with_vectors(balanced.as_ref().map(|balanced| &*balanced.vectors));
            Wanted::Reflections(own, Bars::new(&own, bars))
        }
        Transition::Rows(rows) => {
            let any = bars.iter().any(|bar| !matches!(bar, Bar::None));
            Wanted::Rows(rows, any.then(|| Shared(sums.as_mut_ptr())))
        }
    };
    let steps = |arena: &mut Arena| match wanted {
        Wanted::Dense(weight, bar) => {
            let halves = in_halves(schedule, true);
            Steps::Dense(DenseStep::carve(arena, n, weight, true, setting.recomputes(), (bar, halves)))
        }
        Wanted::Reflections(own, bars) => {
            Steps::Reflections(ReflectionStep::carve(arena, own, schedule, Some(bars)))
        }
        Wanted::Rows(rows, bar) => Steps::Rows(RowsStep::carve(arena, rows, schedule, (bar, 1))),
    };
    let halves = if matches!(wanted, Wanted::Dense(..)) { in_halves(schedule, true) } else { 1 };
    let wants = gradients.wants();
    let room = Scratch::new(|arena| {
        let steps = steps(arena);
        let places = Places::carve(arena, &setting, steps.step(), halves, wants);
        let (step, rows) = (steps.step(), chunk_rows(schedule));
        let own = step.scratch(rows).max(Gathered::<T>::scratch(&setting.line, rows));
        let room = Room::carve(arena, schedule, (step.work(), step.divisible()), own, budget.threads);
        (steps, places, room)
    })?;
    let (steps, places, room) = &*room;
    let Gradients { x, input_weight, h0, bias, activation_bias } = gradients;
    let inputs = InputBars { x, weight: input_weight, bias };
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
            inputs: Gatherer::new(&setting.line, (setting.weight(), n), &places.gathered, inputs),
            own_bias: BiasGatherer::new(&setting.law, halves, places.own_bias, activation_bias),
        };
        back::backward(&pull, room, schedule, budget.cancel)?;
    }
    if let (Some(balanced), Some(Bar::Own(bar))) = (&balanced, bars.first_mut()) {
        balanced.pull(bar);
    }
    if let Transition::Rows(rows) = transition {
        rows.deal(&sums, bars);
    }
    Ok(())
}

/// A copy of the vectors with ordinary lengths, where some are not.
fn balanced<T: Scalar>(transition: &Transition<'_, T>) -> Result<Option<Balanced<T>>> {
    match transition {
        Transition::Reflections(own) => balance(own.vectors(), 1, own.shape().0, own.count()),
        _ => Ok(None),
    }
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
