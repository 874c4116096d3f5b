//! The recurrence over any transition: states, and gradients of everything.

use super::super::cell::Cell;
use super::super::cell::Undo;
use super::super::chunk::{chunk_rows, extent};
use super::super::ends::{Cotangent, Kept, Written};
use super::super::frame::Space;
use super::super::inputs::{Gathered, Gatherer, InputBars};
use super::super::modrelu::BiasGatherer;
use super::super::pages::want_huge_pages;
use super::super::plan::Checkpoint;
use super::super::replay::Replay;
use super::super::sharing::Room;
use super::super::timeline::in_halves;
use super::super::{backward as back, forward as forth};
use super::dense::DenseStep;
use super::gradients::Wants;
use super::pull::AffinePull;
use super::rows_step::RowsStep;
use super::undo::{AffineUndo, Undone, undoable};
use super::work::Work;
use super::{AffineCell, Gradients, Sequence, Setting};
use crate::argument::Bar;
use crate::budget::Budget;
use crate::cpu::Cpu;
use crate::error::{Error, Result};
use crate::kernels::Buffer;
use crate::operator::Operator;
use crate::parallel::Shared;
use crate::rows::{self, Rows};
use crate::scalar::{Scalar, parts, parts_mut};
use crate::scratch::{Arena, Region, Scratch};
use crate::sizes::check_len;
use crate::transition::{Packed, Ready, Step, Transition};

/// The transition of an operator of n states.
pub fn transition<T: Scalar>(operator: &dyn Cpu<T>, n: usize) -> Result<Transition<'_, T>> {
    one_of(operator, n)?;
    let lacking = || Error::Unsupported("this operator serves a recurrence through its matrix only".into());
    let transition = operator.transition().ok_or_else(lacking)?;
    match transition {
        Transition::Dense(weight) => check_len("weight", weight.len(), &[n, n])?,
        Transition::Rows(rows) => one_of(rows, n)?,
        Transition::Own(own) => one_of(own, n)?,
    }
    Ok(transition)
}

/// Refuses anything but a single operator n x n.
fn one_of<T: Scalar>(operator: &dyn Operator<T>, n: usize) -> Result<()> {
    let (batch, shape) = (operator.batch(), operator.shape());
    if batch != 1 || shape != (n, n) {
        let got = format!("{batch} of {} x {}", shape.0, shape.1);
        return Err(Error::shape("transition", format!("one operator {n} x {n}"), got));
    }
    Ok(())
}

/// Refuses gradients that do not fit the arguments of the operator, or the transition.
fn check_bars<T: Scalar>(
    operator: &dyn Cpu<T>,
    transition: &Transition<'_, T>,
    bars: &[Bar<'_, T>],
    n: usize,
) -> Result<()> {
    operator.check_bars(bars)?;
    match (transition, bars.first()) {
        (Transition::Dense(_), Some(Bar::Own(bar))) => check_len("weight_bar", bar.len(), &[n, n]),
        (Transition::Dense(_), _) => Ok(()),
        (Transition::Rows(rows), _) => rows.check_bars(bars),
        (Transition::Own(own), _) => own.check_bars(bars),
    }
}

/// A transition of one call.
enum W<'a, T: Scalar> {
    /// The matrix, and the array for its gradient.
    Dense(&'a [T], Option<Shared<T>>),
    /// The sums of its gradients, where these are wanted.
    Rows(&'a dyn Rows<T>, Option<Shared<T::Real>>),
    Own(Box<dyn Ready<T> + 'a>),
}

impl<'a, T: Scalar> W<'a, T> {
    /// Its step in a forward pass, or in a backward pass that sums gradients in this many halves.
    fn carve<'s>(
        &'s self,
        arena: &mut Arena,
        setting: &Setting<'_, T>,
        backward: Option<usize>,
        replayed: bool,
    ) -> Box<dyn Step<T> + 's> {
        let (n, schedule, halves) = (setting.sequence.n, &setting.line.schedule, backward.unwrap_or(1));
        match self {
            W::Dense(weight, bar) => {
                let backward = backward.is_some();
                let again = backward && (replayed || setting.recomputes());
                let given = setting.sequence.packed()[1].filter(|_| !backward);
                Box::new(match given {
                    Some(given) => DenseStep::given(arena, n, weight, given),
                    None => DenseStep::carve(arena, n, weight, backward, again, (*bar, halves)),
                })
            }
            W::Rows(rows, bar) => Box::new(RowsStep::carve(arena, *rows, schedule, (*bar, halves))),
            W::Own(own) => own.carve(arena, extent(schedule)),
        }
    }
}

/// States (T, B, n) of a recurrence with an operator as W, zeros past the end of a sequence; or the last of each
/// sequence, and those at the borders of a checkpoint's segments.
pub fn forward<'a, T: Scalar>(
    operator: &dyn Cpu<T>,
    sequence: &Sequence<'_, T>,
    written: impl Into<Written<'a, T>>,
    budget: &Budget<'_>,
) -> Result<()> {
    let mut written: Written<'_, T> = written.into();
    sequence.check()?;
    let n = sequence.n;
    let transition = transition(operator, n)?;
    written.check(sequence.sizes(), 0)?;
    let setting = Setting::new(sequence, written.checkpoint())?;
    let (line, schedule) = (&setting.line, &setting.line.schedule);
    let w = match transition {
        Transition::Dense(weight) => W::Dense(weight, None),
        Transition::Rows(rows) => W::Rows(rows, None),
        Transition::Own(own) => W::Own(own.ready(None)?),
    };
    let room = Scratch::new(|arena| {
        let (step, input) = (w.carve(arena, &setting, None, false), setting.input(arena));
        let cell = AffineCell { setting: &setting, step: &*step, input: &input };
        let work = (cell.work(), step.divisible());
        let room = Room::carve(arena, schedule, work, step.scratch(0), budget.threads);
        let space = Space::forward(arena, schedule, line.width, written.states.is_none(), 0);
        (step, input, room, space)
    })?;
    let (step, input, room, space) = &*room;
    // SAFETY: the memory was cut for this call.
    unsafe { step.fill() };
    let cell = AffineCell { setting: &setting, step: &**step, input };
    let outputs = written.outputs(line, 0);
    let states = written.states.map(|states| {
        want_huge_pages(states);
        &*parts_mut(states)
    });
    let frames = space.frames(schedule, line.width, states, None);
    forth::forward(&cell, room, schedule, (&frames, &outputs), budget.cancel)
}

/// The gradients of [`forward`] for the cotangents of what it returned; those of the operator's arguments go to
/// `bars`. Unwanted gradients are not computed.
#[allow(clippy::too_many_arguments, reason = "the arrays of one call")]
pub fn backward<'a, T: Scalar>(
    operator: &dyn Cpu<T>,
    bars: &mut [Bar<'_, T>],
    sequence: &Sequence<'_, T>,
    kept: impl Into<Kept<'a, T>>,
    ct: impl Into<Cotangent<'a, T>>,
    gradients: Gradients<'_, T>,
    budget: &Budget<'_>,
) -> Result<()> {
    let (kept, ct): (Kept<'_, T>, Cotangent<'_, T>) = (kept.into(), ct.into());
    sequence.check()?;
    let n = sequence.n;
    let transition = transition(operator, n)?;
    check_bars(operator, &transition, bars, n)?;
    kept.check(sequence.sizes(), 0)?;
    ct.check(sequence.sizes())?;
    gradients.check(sequence)?;
    let checkpoint = kept.checkpoint();
    if checkpoint == Some(Checkpoint::Reversible) && !undoable(sequence) {
        return Err(Error::value("activation", "must be the identity or OPLU for steps to be undone"));
    }
    let setting = Setting::new(sequence, checkpoint)?;
    let (line, schedule) = (&setting.line, &setting.line.schedule);
    let mut sums = Buffer::zeroed(if let Transition::Rows(rows) = transition { rows.sums() } else { 0 })?;
    let (w, halves) = match transition {
        Transition::Dense(weight) => {
            let bar = bars.first_mut().and_then(|bar| bar.again().own());
            (W::Dense(weight, bar.map(|bar| Shared(bar.as_mut_ptr()))), in_halves(schedule, true))
        }
        Transition::Rows(rows) => {
            let any = bars.iter().any(|bar| !matches!(bar, Bar::None));
            (W::Rows(rows, any.then(|| Shared(sums.as_mut_ptr()))), 1)
        }
        Transition::Own(own) => (W::Own(own.ready(Some(bars))?), 1),
    };
    let wants = gradients.wants();
    let room = Scratch::new(|arena| {
        let step = w.carve(arena, &setting, Some(halves), checkpoint == Some(Checkpoint::Sqrt));
        let places = Places::carve(arena, &setting, &*step, halves, wants);
        let rows = chunk_rows(schedule);
        let own = step.scratch(rows).max(Gathered::<T>::scratch(line, rows));
        let room = Room::carve(arena, schedule, (step.work(), step.divisible()), own, budget.threads);
        let replayed = Replayed::carve(arena, &setting, &*step, checkpoint);
        (step, places, room, replayed)
    })?;
    let (step, places, room, replayed) = &*room;
    let Gradients { x, input_weight, h0, bias, activation_bias } = gradients;
    let inputs = InputBars { x, weight: input_weight, bias };
    let cell = AffineCell { setting: &setting, step: &**step, input: &places.input };
    let h0_bar = h0.map(|bar| parts_mut(bar).as_mut_ptr());
    let ct = ct.rows::<T::Real>(line.stride());
    let undo = replayed.undone.as_ref().map(|undone| {
        let segments = replayed.space.segments;
        AffineUndo { cell: &cell, undone, segments }
    });
    let frames = replayed.space.frames(schedule, line.width, kept.states().map(parts), None);
    // SAFETY: the memory was cut for this call and these gradients; V lives.
    unsafe {
        step.fill();
        if let Some(h0_bar) = h0_bar {
            ct.of_no_step(schedule, line.width, h0_bar);
        }
        let pull = AffinePull {
            cell: &cell,
            halves,
            chunks: &places.chunks,
            ct,
            undo: undo.as_ref(),
            h0_bar,
            inputs: Gatherer::new(line, (setting.weight(), n), &places.gathered, inputs),
            own_bias: BiasGatherer::new(&setting.phi, halves, places.own_bias, activation_bias),
        };
        let replay = kept.marks().map(|[marks, last]| Replay {
            cell: &cell,
            frames: &frames,
            segments: replayed.space.segments,
            marks: parts(marks).as_ptr(),
            undo: undo.as_ref().map(|undo| (undo as &dyn Undo<T::Real>, parts(last).as_ptr())),
        });
        back::backward(&pull, room, schedule, (&frames, replay.as_ref()), budget.cancel)?;
    }
    match &w {
        W::Dense(..) => Ok(()),
        W::Rows(rows, _) => rows::deal(*rows, &mut sums, bars),
        W::Own(own) => {
            own.finish(bars);
            Ok(())
        }
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
            own_bias: BiasGatherer::<T>::carve(arena, &setting.phi, halves, own_bias),
            chunks: [(); 2].map(|()| Work::carve(arena, setting, step, halves, own_bias)),
        }
    }
}

/// The memory of replayed steps.
struct Replayed<T: Scalar> {
    space: Space<T::Real>,
    undone: Option<Undone<T>>,
}

impl<T: Scalar> Replayed<T> {
    fn carve(
        arena: &mut Arena,
        setting: &Setting<'_, T>,
        step: &dyn Step<T>,
        checkpoint: Option<Checkpoint>,
    ) -> Self {
        let space = Space::backward(arena, &setting.line.schedule, setting.line.width, checkpoint, 0);
        let reversible = checkpoint == Some(Checkpoint::Reversible);
        let undone = reversible.then(|| Undone::carve(arena, setting, step, space.segments.length()));
        Replayed { space, undone }
    }
}
