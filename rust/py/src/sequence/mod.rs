//! `sequence*`: a cell of the core over a sequence, by its name and its arrays in the order of its declaration. In an ensemble every array has
//! the members as its first axis, of size 1 where they share one; results and gradients have an entry for each.

#[cfg(feature = "gpu")]
mod gpu;
mod members;
mod states;
mod table;

pub use states::States;
pub use table::cells;

use crate::activation::parse;
use crate::arrays::{Any, Input, Number, Optional, Output, fits, read, write};
use crate::error::exception;
use crate::operator::{ArgumentBars, Arguments};
use crate::place::Place;
use crate::threads::{sequences, sequences_vjp};
use crate::{by_dtype, detached};
use isometry_core::activation::Activation;
use isometry_core::argument::Given;
use isometry_core::internal::parallel::cut;
use isometry_core::internal::{Beside, BesideMut};
use isometry_core::recurrence::{Call, Cotangent, Declaration, Outcome, Trajectory, Written, declared};
use isometry_core::{Budget, Error};
use members::{each, nth, of, part, parts, some, stacked};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// The operator of a cell: an object and the list of its arguments.
type Object<'py> = Option<(String, Bound<'py, PyTuple>)>;

/// phi, its slope, and the settings of the cell, None for none.
type Law = (String, f64, Vec<Option<f64>>);

/// The lengths of the sequences, whether they run from their ends, and the steps (T, B) before which states are reset, numbers other than 0.
type Steps<'py> = (Optional<'py>, bool, Optional<'py>);

/// The states, the memory after them, and what is saved for backward.
type Results<'py> = (States<'py>, Optional<'py>, Optional<'py>);

/// The arguments of a call, borrowed.
struct Arrays<'py, T: Number> {
    cell: &'static Declaration,
    arrays: Arguments<'py, T>,
    object: Option<(String, Arguments<'py, T>)>,
    activation: Activation,
    settings: Vec<f64>,
    lengths: Option<Vec<usize>>,
    reverse: bool,
    marks: Option<Vec<bool>>,
    packs: Option<Input<'py, T::Real>>,
    members: Option<usize>,
    /// Steps, batch, features, and n.
    sizes: [usize; 4],
}

impl<'py, T: Number> Arrays<'py, T> {
    fn new(
        cell: &str,
        transition: &Object<'py>,
        arrays: &Bound<'py, PyTuple>,
        (activation, slope, settings): Law,
        (lengths, reverse, marks): Steps<'py>,
        packs: Optional<'py>,
        members: Option<usize>,
        place: Place,
    ) -> PyResult<Self> {
        let cell = declared(cell).map_err(exception)?;
        let arrays = Arguments::of(cell.arguments, arrays, place)?;
        let object = |(object, given): &(String, Bound<'py, PyTuple>)| {
            Ok::<_, PyErr>((object.clone(), Arguments::new(object, given, place)?))
        };
        let object = transition.as_ref().map(object).transpose()?;
        let mut given = arrays.given();
        if let Some(members) = members {
            stacked(&given, members, &[1, members])?;
            let of_object = object.as_ref().map_or(vec![], |(_, arguments)| arguments.given());
            stacked(&of_object, members, &[members])?;
            given.iter_mut().for_each(|given| *given = part(given, members));
        }
        let sizes @ [steps, batch, ..] = cell.sizes(&given).map_err(exception)?;
        drop(given);
        let each = |len: usize, own: usize| len == own || members.is_some_and(|members| len == members * own);
        let lengths = lengths.as_ref().map(counts).transpose()?;
        if let Some(wrong) = lengths.as_ref().filter(|lengths| !each(lengths.len(), batch)) {
            let expected =
                format!("{batch} numbers{}", if members.is_some() { " for each member or all" } else { "" });
            return Err(exception(Error::shape("lengths", expected, wrong.len())));
        }
        let marks = marks.map(|marks| {
            let marks = Input::<i64>::new("starts", &marks)?;
            let own = [steps, batch];
            let shape =
                if members.is_some() { &marks.shape()[marks.shape().len().min(1)..] } else { marks.shape() };
            if shape != own || !each(marks.shape().iter().product(), steps * batch) {
                let got = format!("{:?}", marks.shape());
                return Err(exception(Error::shape("starts", format!("shape {own:?}"), got)));
            }
            marks.copied(|mark| Ok(mark != 0))
        });
        Ok(Arrays {
            activation: parse(&activation, slope)?,
            settings: settings.into_iter().map(|setting| setting.unwrap_or(f64::NAN)).collect(),
            marks: marks.transpose()?,
            packs: packs.as_ref().map(|packs| Input::new("packs", packs)).transpose()?,
            cell,
            arrays,
            object,
            lengths,
            reverse,
            members,
            sizes,
        })
    }

    /// The call of the i-th member, or the only one.
    fn call(&self, i: usize) -> Call<'_, T> {
        let [steps, batch, ..] = self.sizes;
        Call {
            cell: self.cell,
            given: self.own(&self.arrays, i),
            transition: self
                .object
                .as_ref()
                .map(|(object, arguments)| (object.as_str(), self.own(arguments, i))),
            activation: self.activation,
            settings: &self.settings,
            lengths: self.lengths.as_deref().map(|all| nth(all, batch, i)),
            reverse: self.reverse,
            marks: self.marks.as_deref().map(|all| nth(all, steps * batch, i)),
            packs: read(&self.packs).map(|all| nth(all, all.len() / self.count().max(1), i)),
        }
    }

    /// The arguments of the i-th member.
    fn own<'a>(&self, arguments: &'a Arguments<'py, T>, i: usize) -> Vec<Given<'a, T>> {
        let given = arguments.given();
        match self.members {
            Some(_) => given.iter().map(|given| given.member(i)).collect(),
            None => given,
        }
    }

    fn calls(&self) -> Vec<Call<'_, T>> {
        (0..self.count()).map(|i| self.call(i)).collect()
    }

    fn count(&self) -> usize {
        self.members.unwrap_or(1)
    }

    /// The shape of an array of results.
    fn shape(&self, own: &[usize]) -> Vec<usize> {
        self.members.iter().chain(own).copied().collect()
    }

    /// The shape of the states of all members beside one another.
    fn together(&self) -> [usize; 3] {
        let [steps, batch, _, n] = self.sizes;
        [steps, batch, n.saturating_mul(self.cell.width).saturating_mul(self.count())]
    }

    /// Shapes of the states, of the memory, and of what is saved.
    fn results(&self) -> [Vec<usize>; 3] {
        let [steps, batch, _, n] = self.sizes;
        let width = n.saturating_mul(self.cell.width);
        let saved = self.cell.saves(&self.settings);
        [&[steps, batch, width][..], &[batch, n, n], &[saved, steps, batch, n]].map(|own| self.shape(own))
    }
}

/// The lengths of sequences.
pub fn counts(lengths: &Any<'_>) -> PyResult<Vec<usize>> {
    let negative = |_| PyValueError::new_err("lengths: expected no negative number");
    let given = Input::<i64>::new("lengths", lengths)?;
    let [_] = given.sizes("lengths")?;
    given.copied(|length| usize::try_from(length).map_err(negative))
}

fn needed<'py>(name: &str, array: Optional<'py>) -> PyResult<Any<'py>> {
    array.ok_or_else(|| PyValueError::new_err(format!("{name}: expected an array")))
}

/// States of the sequence, or what is returned and kept of them, the memory after it if there is one and, if wanted and not on the GPU, what is
/// saved for backward. `packs` is what [`pack`](crate::recurrence::pack) writes of the operands of the cell, or of each member.
#[pyfunction]
#[pyo3(signature = (cell, transition, arrays, law, steps, results, place, packs = None, members = None))]
pub fn sequence(
    cell: &str,
    transition: Object<'_>,
    arrays: Bound<'_, PyTuple>,
    law: Law,
    steps: Steps<'_>,
    results: Results<'_>,
    place: Place,
    packs: Optional<'_>,
    members: Option<usize>,
) -> PyResult<()> {
    by_dtype!("x", &arrays.get_item(0)?, T, py => {
        let arrays = Arrays::<T>::new(cell, &transition, &arrays, law, steps, packs, members, place)?;
        let (states, memory, saved) = results;
        #[cfg(feature = "gpu")]
        if let Place::Gpu = place {
            return gpu::sequence(py, &arrays, states, memory);
        }
        let ([of_states, of_memory, of_saved], count) = (arrays.results(), arrays.count());
        let ((states, last, marks, _), checkpoint) = states.parts()?;
        let together = arrays.together();
        let mut states = states.as_ref().map(|states| Output::new("states", states)).transpose()?;
        let beside = members.is_some() && states.as_ref().is_some_and(|states| states.shape == together);
        if let Some(states) = states.as_ref().filter(|_| !beside) {
            fits("states", &states.shape, &of_states).map_err(exception)?;
        }
        let one = arrays.shape(&of_states[of_states.len() - 2..]);
        let mut last = Output::optional("last", last.as_ref(), &one)?;
        let mut marks = marks.as_ref().map(|marks| Output::new("marks", marks)).transpose()?;
        let mut memory = Output::optional("memory", memory.as_ref(), &of_memory)?;
        let mut saved = Output::optional("saved", saved.as_ref(), &of_saved)?;
        let (all, one) = (write(&mut states), together[2] / count.max(1));
        let (whole, shared) = if beside { (None, all) } else { (all, None) };
        let each = whole.as_ref().map_or(0, |whole| whole.len() / count.max(1));
        let (mut states, mut last) = (cut(whole, each, count), parts(&mut last, count));
        let mut columns = shared.map(|all| BesideMut::cut(all, count, one));
        let mut marks = parts(&mut marks, count);
        let (mut memory, mut saved) = (parts(&mut memory, count), parts(&mut saved, count));
        let mut calls = Vec::with_capacity(count);
        for call in arrays.calls() {
            let written = Written {
                states: states.next().flatten(),
                beside: columns.as_mut().and_then(Iterator::next),
                last: last.next().flatten(),
                marks: checkpoint.zip(marks.next().flatten()),
            };
            let memory = memory.next().flatten().unwrap_or(&mut []);
            calls.push((call, written, memory, saved.next().flatten()));
        }
        detached::run(py, |_| sequences(calls, arrays.sizes, &Budget::of(place.threads())))
    })
}

/// The gradients of [`sequence`] from its results and their cotangents, of all states or of the last ones, and of the memory.
#[allow(clippy::too_many_arguments, reason = "the arrays of one call")]
#[pyfunction]
#[pyo3(signature = (cell, transition, arrays, law, steps, results, cts, bars, transition_bars, place, members = None))]
pub fn sequence_vjp(
    cell: &str,
    transition: Object<'_>,
    arrays: Bound<'_, PyTuple>,
    law: Law,
    steps: Steps<'_>,
    results: Results<'_>,
    cts: (Any<'_>, Optional<'_>),
    bars: Bound<'_, PyTuple>,
    transition_bars: Bound<'_, PyTuple>,
    place: Place,
    members: Option<usize>,
) -> PyResult<()> {
    by_dtype!("x", &arrays.get_item(0)?, T, py => {
        let arrays = Arrays::<T>::new(cell, &transition, &arrays, law, steps, None, members, place)?;
        let (states, memory, saved) = results;
        #[cfg(feature = "gpu")]
        if let Place::Gpu = place {
            return gpu::sequence_vjp(py, &arrays, states, cts, [bars, transition_bars]);
        }
        let ([of_states, of_memory, of_saved], count) = (arrays.results(), arrays.count());
        let ((states, last, marks, _), checkpoint) = states.parts()?;
        let (states, marks) = match checkpoint {
            None => (Some(Input::new("states", &needed("states", states)?)?), None),
            Some(kind) => {
                let [marks, last] = [("marks", marks), ("last", last)]
                    .map(|(name, array)| Input::<T>::new(name, &needed(name, array)?));
                (None, Some((kind, marks?, last?)))
            }
        };
        let memory = Input::optional("last", memory.as_ref(), &of_memory)?;
        let saved = Input::optional("saved", saved.as_ref(), &of_saved)?;
        let (ct, memory_ct) = cts;
        let (ct, one) = (Input::new("ct", &ct)?, arrays.shape(&of_states[of_states.len() - 2..]));
        let together = arrays.together();
        let beside = members.is_some() && states.as_ref().is_some_and(|states| states.shape() == together);
        let of_states = if beside { &together[..] } else { &of_states };
        if let Some(states) = &states {
            fits("states", states.shape(), of_states).map_err(exception)?;
        }
        let of_last = ct.shape().len() < of_states.len();
        fits("ct", ct.shape(), if of_last { &one } else { of_states }).map_err(exception)?;
        let memory_ct = Input::optional("last_ct", memory_ct.as_ref(), &of_memory)?;
        let mut own_bars = ArgumentBars::of(arrays.cell.arguments, &arrays.arrays, &bars, members, place)?;
        let object = arrays.object.as_ref();
        let of_object = object.map(|(object, own)| ArgumentBars::new(object, own, &transition_bars, place));
        let mut of_object = of_object.transpose()?;
        let mut own_bars = each(own_bars.view(), count);
        let mut of_object = each(of_object.as_mut().map_or(vec![], ArgumentBars::view), count);
        let width = together[2] / count.max(1);
        let mut lanes = states.as_ref().filter(|_| beside).map(|states| {
            Beside::cut(states.slice(), count, width).zip(Beside::cut(ct.slice(), count, width))
        });
        let mut calls = Vec::with_capacity(count);
        for (i, call) in arrays.calls().into_iter().enumerate() {
            let lane = lanes.as_mut().and_then(Iterator::next);
            let states = match (&states, &marks) {
                (_, Some((kind, marks, last))) => {
                    Trajectory::Marks(*kind, of(marks, count, i), of(last, count, i))
                }
                (states, None) => match lane {
                    Some((states, _)) => Trajectory::Beside(states),
                    None => Trajectory::All(some(states, count, i).unwrap_or(&[])),
                },
            };
            let ct = match lane {
                Some((_, ct)) => Cotangent::Beside(ct),
                None if of_last => Cotangent::Last(of(&ct, count, i)),
                None => Cotangent::States(of(&ct, count, i)),
            };
            let outcome = Outcome {
                states,
                last: some(&memory, count, i).unwrap_or(&[]),
                saved: some(&saved, count, i).unwrap_or(&[]),
                ct,
                last_ct: some(&memory_ct, count, i),
            };
            let [own, of_operator] = [&mut own_bars, &mut of_object]
                .map(|bars| bars.iter_mut().filter_map(Iterator::next).collect());
            calls.push((call, outcome, own, of_operator));
        }
        detached::run(py, |_| sequences_vjp(calls, arrays.sizes, &Budget::of(place.threads())))
    })
}
