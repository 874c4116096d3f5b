//! A cell over sequences of one length without gradients, from tensors as they lie: a single step, too.

use crate::activation::parse;
use crate::arrays::{Any, Input, Number, Optional, Output, dtype_of, fits, write};
use crate::error::exception;
use crate::operator::{Arguments, room};
use crate::place::Place;
use crate::{by_dtype, detached, tensors};
use isometry_core::argument::{Array, Given};
use isometry_core::internal::{BesideMut, Buffer};
use isometry_core::recurrence::{Call, Declaration, Written, declared, sequence};
use isometry_core::{Budget, Error, Result};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// phi, its slope and the settings of the cell, None for none.
type Law<'a> = (&'a str, f64, Vec<Option<f64>>);

/// Multiplications up to which a call keeps the interpreter's lock, some 20 us: no other thread of Python can give a tensor other
/// memory meanwhile, so that nothing has to hold the memory, which costs as much as a small step.
const BRIEF: usize = 1 << 18;

/// Fills the parts of the last states (B, n), and if wanted the first part of all states (T, B, n), from x (T, B, d), or (B, d) for one step, and
/// the parts of the state before it, absent for zeros; a first axis of 1 may be missing. With `counts`, which do not increase, x and the states
/// are those of the first `counts[t]` sequences at step t, one after the other. `arrays` are those of
/// [`sequence`](crate::sequence::sequence), without h0; blocks of n rows may lie one below the other. The first matrix is a dense
/// transition, the second adds to the bias. Where arrays are not in C order, or do not fit, nothing is computed, and the result is
/// false: `sequence` says why.
#[pyfunction]
pub fn plain_sequence<'py>(
    cell: &str,
    law: Law<'_>,
    matrices: (Optional<'py>, Optional<'py>),
    arrays: Bound<'py, PyTuple>,
    states: Option<Bound<'py, PyTuple>>,
    last: Bound<'py, PyTuple>,
    output: Optional<'py>,
    order: (bool, Option<Vec<usize>>),
    threads: usize,
) -> PyResult<bool> {
    let (cell, x) = (declared(cell).map_err(exception)?, arrays.get_item(0)?);
    if dtype_of("x", &x).is_err() {
        return Ok(false);
    }
    by_dtype!("x", &x, T, py => {
        let (reverse, counts) = (order.0, order.1.as_deref());
        let Some(sizes @ [steps, batch, features, n]) = sizes::<T>(&x, &last.get_item(0)?, counts) else {
            return Ok(false);
        };
        let work = [steps, batch, n, features.saturating_add(n)].into_iter().fold(4, usize::saturating_mul);
        let brief = work <= BRIEF && tensors::locks(py);
        let place = if brief { Place::Here } else { Place::Threads(threads) };
        let read = Tensors::<T>::of(cell, matrices, &arrays, states, place);
        let Some(read) = read.ok().filter(|read| read.fit(cell, sizes)) else { return Ok(false) };
        let Ok(Some(mut results)) = Results::<T>::of(cell, sizes, counts, &last, output, place) else {
            return Ok(false);
        };
        let Ok(laid) = Laid::of(cell, &read, sizes, counts) else { return Ok(false) };
        let settings: Vec<f64> = law.2.into_iter().map(|setting| setting.unwrap_or(f64::NAN)).collect();
        let call = Call {
            cell,
            given: laid.given(cell, &read),
            transition: read.w.as_ref().map(|w| ("dense", vec![w.given()])),
            activation: parse(law.0, law.1)?,
            settings: &settings,
            lengths: laid.lengths.as_deref(),
            reverse,
            marks: None,
            packs: None,
        };
        if call.sizes().ok() != Some(sizes) {
            return Ok(false);
        }
        let mut last: Vec<_> = results.last.iter_mut().map(Output::slice).collect();
        let output = write(&mut results.output);
        let compute = || match run(call, sizes, counts, &mut last, output, &Budget::of(place.threads())) {
            Err(Error::Shape { .. } | Error::Value { .. } | Error::Dtype(_)) => Ok(false),
            done => done.map(|()| true),
        };
        if brief { detached::briefly(compute) } else { detached::run(py, |_| compute()) }
    })
}

/// T, B, d and n, none of them 0.
fn sizes<T: Number>(x: &Any<'_>, last: &Any<'_>, counts: Option<&[usize]>) -> Option<[usize; 4]> {
    let [x, last] = [x, last].map(|array| Input::<T>::at(Place::Here, "x", array).ok());
    let (x, last) = (x?, last?);
    let n = *last.shape().last()?;
    let sizes = match (x.shape(), counts) {
        (&[entries, features], Some(counts)) if counts.is_sorted_by(|a, b| a >= b) => {
            let total = counts.iter().try_fold(0, |sum: usize, count| sum.checked_add(*count))?;
            (total == entries && counts.last() > Some(&0)).then_some(())?;
            [counts.len(), counts[0], features, n]
        }
        (&[steps, batch, features], None) => [steps, batch, features, n],
        (&[batch, features], None) => [1, batch, features, n],
        _ => return None,
    };
    (!sizes.contains(&0)).then_some(sizes)
}

/// Computes the states into `last` and `output`, which have their sizes.
fn run<T: Number>(
    call: Call<'_, T>,
    [steps, batch, _, n]: [usize; 4],
    counts: Option<&[usize]>,
    last: &mut [&mut [T]],
    output: Option<&mut [T]>,
    budget: &Budget<'_>,
) -> Result<()> {
    let width = call.cell.width;
    let (packed, size) = (counts.is_some(), batch * width * n);
    let all = if packed && output.is_some() && steps > 1 { steps.saturating_mul(size) } else { 0 };
    let (mut states, mut ends) = (Buffer::zeroed(all)?, Buffer::zeroed(if width > 1 { size } else { 0 })?);
    let (mut output, one) = (output, if width > 1 { &mut ends[..] } else { &mut *last[0] });
    let written = if steps == 1 {
        one.into()
    } else {
        let (states, beside) = match &mut output {
            Some(_) if packed => (Some(&mut states[..]), None),
            Some(output) if width > 1 => (None, Some(BesideMut::first(output, n, width * n))),
            output => (output.as_deref_mut(), None),
        };
        Written { states, beside, last: Some(one), marks: None }
    };
    sequence(call, written, &mut [], None, budget)?;
    if let Some(output) = output.filter(|_| packed || steps == 1) {
        let states: &[T] = match (steps, width) {
            (1, 1) => &*last[0],
            (1, _) => &ends,
            _ => &states,
        };
        let there = |i: usize| counts.is_none_or(|counts| i % batch < counts[i / batch]);
        let rows = states.chunks_exact(width * n).enumerate().filter(|(i, _)| there(*i));
        output.chunks_exact_mut(n).zip(rows).for_each(|(to, (_, row))| to.copy_from_slice(&row[..n]));
    }
    for (i, last) in last.iter_mut().enumerate().filter(|_| width > 1) {
        let rows = ends.chunks_exact(width * n).map(|row| &row[i * n..(i + 1) * n]);
        last.chunks_exact_mut(n).zip(rows).for_each(|(to, row)| to.copy_from_slice(row));
    }
    Ok(())
}

/// What a call reads.
struct Tensors<'py, T: Number> {
    arrays: Arguments<'py, T>,
    w: Option<Input<'py, T>>,
    second: Option<Input<'py, T>>,
    states: Vec<Input<'py, T>>,
}

impl<'py, T: Number> Tensors<'py, T> {
    fn of(
        cell: &Declaration,
        (w, second): (Optional<'py>, Optional<'py>),
        arrays: &Bound<'py, PyTuple>,
        states: Option<Bound<'py, PyTuple>>,
        place: Place,
    ) -> PyResult<Self> {
        let borrow = |array: Any<'py>| Input::at(place, "states", &array);
        Ok(Tensors {
            arrays: Arguments::of(cell.arguments, arrays, place)?,
            w: w.map(borrow).transpose()?,
            second: second.map(borrow).transpose()?,
            states: states.iter().flat_map(|states| states.iter()).map(borrow).collect::<PyResult<_>>()?,
        })
    }

    /// Whether there are all arrays, and the parts of the state and the second bias have their sizes.
    fn fit(&self, cell: &Declaration, [_, batch, _, n]: [usize; 4]) -> bool {
        let arrays = self.arrays.given();
        arrays.len() == cell.arguments.len()
            && (self.states.is_empty() || self.states.len() == cell.width)
            && self.states.iter().all(|part| fits("states", part.shape(), &[1, batch, n]).is_ok())
            && self.second.as_ref().is_none_or(|second| second.slice().len() == bias_of(cell, &arrays).len())
    }
}

/// The parts of the last states, and the first part of all of them.
struct Results<'py, T: Number> {
    last: Vec<Output<'py, T>>,
    output: Option<Output<'py, T>>,
}

impl<'py, T: Number> Results<'py, T> {
    /// None where they do not have their sizes.
    fn of(
        cell: &Declaration,
        [steps, batch, _, n]: [usize; 4],
        counts: Option<&[usize]>,
        last: &Bound<'py, PyTuple>,
        output: Optional<'py>,
        place: Place,
    ) -> PyResult<Option<Self>> {
        let entries = counts.map_or(steps * batch, |counts| counts.iter().sum());
        let last: Vec<Output<'py, T>> =
            last.iter().map(|part| room(place, "last", &part, &[1, batch, n])).collect::<PyResult<_>>()?;
        let mut output = output.map(|output| Output::<T>::at(place, "output", &output)).transpose()?;
        let whole = output.as_mut().is_none_or(|output| output.slice().len() == entries * n);
        Ok((last.len() == cell.width && whole).then_some(Results { last, output }))
    }
}

/// What is laid out anew.
struct Laid<T: Number> {
    shapes: Vec<Vec<usize>>,
    /// x with room for all sequences at each step, where it is packed.
    x: Buffer<T>,
    /// The sum of two biases.
    bias: Buffer<T>,
    /// The parts of the state side by side, where there are several.
    before: Buffer<T>,
    lengths: Option<Vec<usize>>,
}

impl<T: Number> Laid<T> {
    fn of(
        cell: &Declaration,
        read: &Tensors<'_, T>,
        sizes @ [_, batch, features, n]: [usize; 4],
        counts: Option<&[usize]>,
    ) -> Result<Self> {
        let (arrays, parts) = (read.arrays.given(), read.states.len());
        let mut bias = Buffer::zeroed(read.second.as_ref().map_or(0, |second| second.slice().len()))?;
        if let Some(second) = &read.second {
            let pairs = bias_of(cell, &arrays).iter().zip(second.slice());
            bias.iter_mut().zip(pairs).for_each(|(sum, (first, second))| *sum = *first + *second);
        }
        let mut before = Buffer::zeroed(if parts > 1 { batch * n * parts } else { 0 })?;
        for (i, to) in before.chunks_exact_mut(n).enumerate() {
            to.copy_from_slice(&read.states[i % parts].slice()[i / parts * n..][..n]);
        }
        let x = match (counts, arrays[0].array) {
            (Some(counts), Array::Own(packed)) => spread(counts, features, packed)?,
            _ => Buffer::zeroed(0)?,
        };
        let lengths =
            |counts: &[usize]| (0..batch).map(|b| counts.partition_point(|&count| count > b)).collect();
        Ok(Laid {
            shapes: arrays.iter().enumerate().map(|(i, given)| shape(cell, i, given.shape, sizes)).collect(),
            x,
            bias,
            before,
            lengths: counts.map(lengths),
        })
    }

    /// The arguments in the order of the cell's.
    fn given<'a>(&'a self, cell: &Declaration, read: &'a Tensors<'_, T>) -> Vec<Given<'a, T>> {
        let mut given = read.arrays.given();
        given.iter_mut().zip(&self.shapes).for_each(|(given, shape)| given.shape = shape);
        let state = read
            .states
            .first()
            .map(|state| if self.before.is_empty() { state.slice() } else { &self.before });
        let anew =
            [(Some(0), &self.x[..]), (bias_at(cell), &self.bias), (Some(cell.h0_at()), state.unwrap_or(&[]))];
        for (at, array) in anew {
            if let (Some(at), false) = (at, array.is_empty()) {
                given[at].array = Array::Own(array);
            }
        }
        given
    }
}

/// The place of the bias.
fn bias_at(cell: &Declaration) -> Option<usize> {
    cell.arguments.iter().position(|argument| matches!(argument.name, "b" | "bias"))
}

/// Its numbers, none where there is no bias.
fn bias_of<'a, T: Number>(cell: &Declaration, arrays: &[Given<'a, T>]) -> &'a [T] {
    match bias_at(cell).map(|at| arrays[at].array) {
        Some(Array::Own(bias)) => bias,
        _ => &[],
    }
}

/// The sizes of an array: those that are declared, for x, for the state, and where blocks of n rows lie one below the other.
fn shape(cell: &Declaration, i: usize, own: &[usize], sizes: [usize; 4]) -> Vec<usize> {
    let (declared, n) = (cell.shape(i, sizes).unwrap_or_default(), sizes[3]);
    match (own, &declared[..]) {
        _ if i == 0 || i == cell.h0_at() => declared,
        ([first, rest @ ..], [blocks, rows, others @ ..]) if rest == others && *first == blocks * rows => {
            declared
        }
        (&[rows], &[units]) if units == n && rows > n && rows.is_multiple_of(n) => vec![rows / n, n],
        _ => own.to_vec(),
    }
}

/// Packed steps with room for all sequences in each.
fn spread<T: Number>(counts: &[usize], width: usize, packed: &[T]) -> Result<Buffer<T>> {
    let (each, mut from) = (counts[0].saturating_mul(width), 0);
    let mut padded = Buffer::zeroed(counts.len().saturating_mul(each))?;
    for (count, to) in counts.iter().zip(padded.chunks_exact_mut(each)) {
        to[..count * width].copy_from_slice(&packed[from..from + count * width]);
        from += count * width;
    }
    Ok(padded)
}
