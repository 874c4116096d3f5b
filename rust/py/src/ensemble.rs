//! `recurrence_ensemble*`: recurrences of the same sizes in one call. Every array has the members as its first axis, of
//! size 1 where they share one array; the arguments of the operators and all results have one entry per member.

use crate::activation::parse;
use crate::arrays::{Any, Input, Number, Optional, Output, write};
use crate::dtype::Typed;
use crate::error::exception;
use crate::operator::{ArgumentBars, Arguments};
use crate::place::Place;
use crate::sequence::{Given, GivenBars, Starts, counts};
use crate::{by_dtype, detached};
use isometry_core::activation::Activation;
use isometry_core::argument::{Bar, Given as Argument};
use isometry_core::internal::parallel::{Cut, cut};
use isometry_core::operators::view;
use isometry_core::recurrence::{Gradients, Run, Sequence, Starts as Marks, ensemble};
use isometry_core::{Budget, Error};
use numpy::Element;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// An array of all members, or one for all of them.
struct Each<'py, T: Element>(Input<'py, T>);

impl<'py, T: Typed> Each<'py, T> {
    /// Borrows it; each member's part has this shape.
    fn new(argument: &'static str, array: &Any<'py>, members: usize, shape: &[usize]) -> PyResult<Self> {
        let input = Input::new(argument, array)?;
        let fits = input
            .shape()
            .split_first()
            .is_some_and(|(&own, rest)| (own == 1 || own == members) && rest == shape);
        if !fits {
            let expected = format!("shape [{members} or 1, then {shape:?}]");
            return Err(exception(Error::shape(argument, expected, format!("{:?}", input.shape()))));
        }
        Ok(Each(input))
    }

    fn optional(
        argument: &'static str,
        array: Option<&Any<'py>>,
        members: usize,
        shape: &[usize],
    ) -> PyResult<Option<Self>> {
        array.map(|array| Self::new(argument, array, members, shape)).transpose()
    }

    /// The part of a member.
    fn of(&self, i: usize) -> &[T] {
        let (all, count) = (self.0.slice(), self.0.shape()[0].max(1));
        let each = all.len() / count;
        let first = if count == 1 { 0 } else { i * each };
        &all[first..first + each]
    }
}

/// The output array for the gradients of all members, if they are wanted.
struct Room<'py, T: Element>(Option<Output<'py, T>>, usize);

impl<'py, T: Typed> Room<'py, T> {
    /// Borrows it; each member's part has this shape.
    fn new(argument: &'static str, array: &Optional<'py>, members: usize, shape: &[usize]) -> PyResult<Self> {
        let shape: Vec<_> = std::iter::once(members).chain(shape.iter().copied()).collect();
        Ok(Room(Output::optional(argument, array.as_ref(), &shape)?, members))
    }

    /// The parts of the members.
    fn each(&mut self) -> Cut<'_, T> {
        let members = self.1;
        let all = write(&mut self.0);
        let each = all.as_ref().map_or(0, |all| all.len() / members.max(1));
        cut(all, each, members)
    }
}

/// The arguments besides the transitions, borrowed and checked.
struct Arrays<'py, T: Number> {
    x: Each<'py, T>,
    input_weight: Each<'py, T>,
    h0: Option<Each<'py, T>>,
    bias: Option<Each<'py, T>>,
    activation: Activation,
    activation_bias: Option<Each<'py, T::Real>>,
    on_input: bool,
    /// Of one member after the other, or of all.
    lengths: Option<Vec<usize>>,
    reverse: bool,
    /// Marks of one member after the other, or of all, and the states before them.
    starts: Option<(Vec<bool>, Option<Each<'py, T>>)>,
    members: usize,
    /// steps, batch, features, n
    sizes: [usize; 4],
    /// Entries of the activation's bias.
    units: usize,
}

impl<'py, T: Number> Arrays<'py, T> {
    fn new(members: usize, given: &Given<'py>, starts: &Option<Starts<'py>>) -> PyResult<Self> {
        let (x, input_weight, h0, bias, activation, activation_bias, slope, on_input, lengths, reverse) =
            given;
        let [_, steps, batch, features] = Input::<T>::new("x", x)?.sizes("x")?;
        let [_, n, _] = Input::<T>::new("input_weight", input_weight)?.sizes("input_weight")?;
        let own_bias = activation_bias.as_ref();
        let units =
            own_bias.map(|bias| Input::<T::Real>::new("activation_bias", bias)?.sizes("activation_bias"));
        let [_, units] = units.transpose()?.unwrap_or([1, 0]);
        let lengths = counts(lengths)?;
        if lengths.as_ref().is_some_and(|lengths| lengths.len() != batch && lengths.len() != members * batch)
        {
            let got = lengths.map_or(0, |lengths| lengths.len());
            let wrong = Error::shape("lengths", format!("{batch} or {} numbers", members * batch), got);
            return Err(exception(wrong));
        }
        let starts = starts.as_ref().map(|(marks, state)| {
            let marks = Input::<i64>::new("starts", marks)?;
            let each = [marks.shape().first() == Some(&1), marks.shape().first() == Some(&members)];
            if !each.contains(&true) || marks.shape()[1..] != [steps, batch] {
                let expected = format!("shape [{members} or 1, {steps}, {batch}]");
                return Err(exception(Error::shape("starts", expected, format!("{:?}", marks.shape()))));
            }
            let marks = marks.copied(|mark| Ok(mark != 0))?;
            Ok((marks, Each::optional("start_state", state.as_ref(), members, &[batch, n])?))
        });
        Ok(Arrays {
            starts: starts.transpose()?,
            x: Each::new("x", x, members, &[steps, batch, features])?,
            input_weight: Each::new("input_weight", input_weight, members, &[n, features])?,
            h0: Each::optional("h0", h0.as_ref(), members, &[batch, n])?,
            bias: Each::optional("bias", bias.as_ref(), members, &[n])?,
            activation: parse(activation, *slope)?,
            activation_bias: Each::optional("activation_bias", own_bias, members, &[units])?,
            on_input: *on_input,
            lengths,
            reverse: *reverse,
            members,
            sizes: [steps, batch, features, n],
            units,
        })
    }

    /// Shape of the states.
    fn states(&self) -> [usize; 4] {
        let [steps, batch, _, n] = self.sizes;
        [self.members, steps, batch, n]
    }

    /// Elements of a member's states.
    fn each(&self) -> usize {
        self.states()[1..].iter().product()
    }

    /// The sequences of a member.
    fn of(&self, i: usize) -> Sequence<'_, T> {
        let [steps, batch, features, n] = self.sizes;
        let lengths = self.lengths.as_deref();
        let starts = self.starts.as_ref().map(|(marks, state)| {
            let each = steps * batch;
            let first = if marks.len() == each { 0 } else { i * each };
            Marks { marks: &marks[first..first + each], state: state.as_ref().map(|state| state.of(i)) }
        });
        Sequence {
            run: Run {
                h0: self.h0.as_ref().map(|h0| h0.of(i)),
                activation: self.activation,
                activation_bias: self.activation_bias.as_ref().map(|bias| bias.of(i)),
                lengths: lengths
                    .map(|all| if all.len() == batch { all } else { &all[i * batch..(i + 1) * batch] }),
                reverse: self.reverse,
                starts,
                ..Run::new([steps, batch, features, n], self.x.of(i))
            },
            input_weight: self.input_weight.of(i),
            bias: self.bias.as_ref().map(|bias| bias.of(i)),
            on_input: self.on_input,
        }
    }
}

/// Refuses arguments of another number of operators.
fn stacked<T: Number>(given: &[Argument<'_, T>], members: usize) -> PyResult<()> {
    let wrong = given.iter().find(|argument| argument.shape.first().is_some_and(|&own| own != members));
    wrong.map_or(Ok(()), |wrong| {
        Err(exception(Error::shape(
            "transition",
            format!("{members} operators"),
            format!("{:?}", wrong.shape),
        )))
    })
}

/// The arguments of a member's operator.
fn own<'a, T: Number>(given: &[Argument<'a, T>], i: usize) -> Vec<Argument<'a, T>> {
    given.iter().map(|argument| argument.member(i)).collect()
}

/// States (members, T, B, n).
#[pyfunction]
#[pyo3(signature = (members, object, arguments, sequence, states, place, starts = None))]
pub fn recurrence_ensemble(
    members: usize,
    object: &str,
    arguments: Bound<'_, PyTuple>,
    sequence: Given<'_>,
    states: Any<'_>,
    place: Place,
    starts: Option<Starts<'_>>,
) -> PyResult<()> {
    by_dtype!("x", &sequence.0, T, py => {
        let arrays = Arrays::<T>::new(members, &sequence, &starts)?;
        let arguments = Arguments::<T>::new(object, &arguments)?;
        let given = arguments.given();
        stacked(&given, members)?;
        let mut states = Output::<T>::shaped("states", &states, &arrays.states())?;
        let each = cut(Some(states.slice()), arrays.each(), members).flatten().enumerate();
        let parts: Vec<_> = each.map(|(i, states)| (own(&given, i), arrays.of(i), states)).collect();
        let sizes = arrays.sizes;
        detached::run_interruptible(py, |cancel| {
            let budget = Budget { threads: place.threads(), cancel };
            #[cfg(feature = "gpu")]
            if matches!(place, Place::Gpu) {
                return on_gpu::forward(object, parts, &budget);
            }
            ensemble::<T, _>(parts, sizes, &budget, |(own, sequence, states), budget| {
                place.forward(object, view(object, &own)?, &sequence, states.into(), budget)
            })
        })
    })
}

/// A member of a backward pass: arguments of its operator, their gradients, sequences, states, cotangents, gradients.
type Part<'a, T> =
    (Vec<Argument<'a, T>>, Vec<Bar<'a, T>>, Sequence<'a, T>, &'a [T], &'a [T], Gradients<'a, T>);

/// Gradients of everything from the states and their cotangents; every gradient has one entry per member.
#[allow(clippy::too_many_arguments, reason = "the arrays of one call")]
#[pyfunction]
#[pyo3(signature = (members, object, arguments, sequence, states, ct, bars, sequence_bars, place, starts = None, start_bar = None))]
pub fn recurrence_ensemble_vjp(
    members: usize,
    object: &str,
    arguments: Bound<'_, PyTuple>,
    sequence: Given<'_>,
    states: Any<'_>,
    ct: Any<'_>,
    bars: Bound<'_, PyTuple>,
    sequence_bars: GivenBars<'_>,
    place: Place,
    starts: Option<Starts<'_>>,
    start_bar: Optional<'_>,
) -> PyResult<()> {
    by_dtype!("x", &sequence.0, T, py => {
        let arrays = Arrays::<T>::new(members, &sequence, &starts)?;
        let arguments = Arguments::<T>::new(object, &arguments)?;
        let given = arguments.given();
        stacked(&given, members)?;
        let mut bars = ArgumentBars::new(object, &arguments, &bars)?;
        let mut bars: Vec<_> = bars.view().into_iter().map(|bar| bar.each(members).into_iter()).collect();
        let states = Each::<T>::new("states", &states, members, &arrays.states()[1..])?;
        let ct = Each::<T>::new("ct", &ct, members, &arrays.states()[1..])?;
        let (x, input_weight, h0, bias, activation_bias) = &sequence_bars;
        let [steps, batch, features, n] = arrays.sizes;
        let mut x = Room::new("x_bar", x, members, &[steps, batch, features])?;
        let mut input_weight = Room::new("input_weight_bar", input_weight, members, &[n, features])?;
        let mut h0 = Room::new("h0_bar", h0, members, &[batch, n])?;
        let mut bias = Room::new("bias_bar", bias, members, &[n])?;
        let mut activation_bias =
            Room::new("activation_bias_bar", activation_bias, members, &[arrays.units])?;
        let mut start_state = Room::new("start_state_bar", &start_bar, members, &[batch, n])?;
        let mut start_state = start_state.each();
        let (mut x, mut input_weight, mut h0) = (x.each(), input_weight.each(), h0.each());
        let (mut bias, mut activation_bias) = (bias.each(), activation_bias.each());
        let parts: Vec<Part<'_, T>> = (0..members)
            .map(|i| {
                let gradients = Gradients {
                    x: x.next().flatten(),
                    input_weight: input_weight.next().flatten(),
                    h0: h0.next().flatten(),
                    start_state: start_state.next().flatten(),
                    bias: bias.next().flatten(),
                    activation_bias: activation_bias.next().flatten(),
                };
                let own_bars = bars.iter_mut().filter_map(Iterator::next).collect();
                (own(&given, i), own_bars, arrays.of(i), states.of(i), ct.of(i), gradients)
            })
            .collect();
        let sizes = arrays.sizes;
        detached::run_interruptible(py, |cancel| {
            let budget = Budget { threads: place.threads(), cancel };
            #[cfg(feature = "gpu")]
            if matches!(place, Place::Gpu) {
                return on_gpu::backward(object, parts, &budget);
            }
            ensemble::<T, _>(parts, sizes, &budget, |part, budget| {
                let (own, mut bars, sequence, states, ct, gradients) = part;
                let operator = view(object, &own)?;
                place.backward(object, operator, &mut bars, &sequence, (states.into(), ct.into()), gradients, budget)
            })
        })
    })
}

/// All members in one call of the device.
#[cfg(feature = "gpu")]
mod on_gpu {
    use super::{Argument, Part, Sequence, view};
    use isometry_core::scalar::Scalar;
    use isometry_core::{Budget, Result};
    use isometry_gpu::hosted::recurrence::{self as hosted, Member, Pull};

    /// Arguments of a member's operator, its sequences, its states.
    type Forward<'a, T> = (Vec<Argument<'a, T>>, Sequence<'a, T>, &'a mut [T]);

    pub fn forward<T: Scalar>(object: &str, parts: Vec<Forward<'_, T>>, budget: &Budget<'_>) -> Result<()> {
        let (owns, rest): (Vec<_>, Vec<_>) =
            parts.into_iter().map(|(own, sequence, states)| (own, (sequence, states))).unzip();
        let member = |(own, (sequence, results)): (&Vec<_>, _)| {
            Ok(Member { operator: view(object, own)?, sequence, results })
        };
        hosted::forward(object, owns.iter().zip(rest).map(member).collect::<Result<_>>()?, budget)
    }

    pub fn backward<T: Scalar>(object: &str, parts: Vec<Part<'_, T>>, budget: &Budget<'_>) -> Result<()> {
        let (owns, rest): (Vec<_>, Vec<_>) = parts
            .into_iter()
            .map(|(own, bars, sequence, states, ct, gradients)| {
                (own, (sequence, Pull { states, ct, bars, gradients }))
            })
            .unzip();
        let member = |(own, (sequence, results)): (&Vec<_>, _)| {
            Ok(Member { operator: view(object, own)?, sequence, results })
        };
        hosted::backward(object, owns.iter().zip(rest).map(member).collect::<Result<_>>()?, budget)
    }
}
