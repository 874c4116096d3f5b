//! A cell over sequences of one length without gradients, from tensors as they lie: a single step, too.

use crate::activation::parse;
use crate::arrays::{Any, Number, Optional, elements};
use crate::detached;
use crate::dtype::{Dtype, Typed};
use crate::error::exception;
use crate::tensors::{self, Tensor, lent, tensor};
use isometry_core::argument::{Argument, Array, Given};
use isometry_core::recurrence::{Call, Declaration, Written, declared, sequence};
use isometry_core::scalar::{c32, c64};
use isometry_core::{Budget, Error};
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
/// transition, the second adds to the bias. Where arrays are no tensors in C order, or do not fit, nothing is computed, and the result is
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
    let (cell, (w, second)) = (declared(cell).map_err(exception)?, matrices);
    let settings: Vec<f64> = law.2.into_iter().map(|setting| setting.unwrap_or(f64::NAN)).collect();
    let Ok(Some(Some(dtype))) = tensors::dtype_of("x", &arrays.get_item(0)?) else { return Ok(false) };
    let plain = Plain {
        cell,
        law: (law.0, law.1, settings),
        w,
        second,
        arrays,
        states,
        last,
        output,
        order,
        threads,
    };
    match dtype {
        Dtype::F32 => plain.run::<f32>(),
        Dtype::F64 => plain.run::<f64>(),
        Dtype::C32 => plain.run::<c32>(),
        Dtype::C64 => plain.run::<c64>(),
        Dtype::I64 => Ok(false),
    }
}

/// The arguments of a call.
struct Plain<'a, 'py> {
    cell: &'static Declaration,
    law: (&'a str, f64, Vec<f64>),
    w: Optional<'py>,
    second: Optional<'py>,
    arrays: Bound<'py, PyTuple>,
    states: Option<Bound<'py, PyTuple>>,
    last: Bound<'py, PyTuple>,
    output: Optional<'py>,
    order: (bool, Option<Vec<usize>>),
    threads: usize,
}

impl Plain<'_, '_> {
    fn run<T: Number>(&self) -> PyResult<bool> {
        let Some(sizes @ [steps, batch, features, n]) = self.sizes::<T>() else { return Ok(false) };
        let work = [steps, batch, n, features.saturating_add(n)].into_iter().fold(4, usize::saturating_mul);
        let (brief, width) = (work <= BRIEF && tensors::locks(self.arrays.py()), self.cell.width);
        let Some(read) = Read::<T>::of(self, brief).filter(|read| read.fits(self, sizes)) else {
            return Ok(false);
        };
        let counts = self.order.1.as_deref();
        let (apart, size) = (width > 1 || counts.is_some(), batch * width * n);
        let all = if apart && self.output.is_some() && steps > 1 { steps.saturating_mul(size) } else { 0 };
        let laid = (Laid::of(self, &read, sizes), zeros(all), zeros(if width > 1 { size } else { 0 }));
        let (Some(laid), Some(mut states), Some(mut ends)) = laid else { return Ok(false) };
        let call = Call {
            cell: self.cell,
            given: laid.given(self.cell, &read),
            transition: read.w.as_ref().map(|w| ("dense", vec![w.given()])),
            activation: parse(self.law.0, self.law.1)?,
            settings: &self.law.2,
            lengths: laid.lengths.as_deref(),
            reverse: self.order.0,
            marks: None,
            packs: None,
        };
        if call.sizes().ok() != Some(sizes) {
            return Ok(false);
        }
        // SAFETY: they overlap nothing.
        let (mut last, mut output) = unsafe {
            let last: Vec<_> = read.last.iter().map(|view| &mut *view.data).collect();
            (last, read.output.as_ref().map(|view| &mut *view.data))
        };
        let budget = Budget::of(if brief { 1 } else { self.threads });
        let compute = || {
            let one = if width > 1 { &mut ends[..] } else { &mut *last[0] };
            let written = if steps == 1 {
                one.into()
            } else {
                let states =
                    output.as_mut().map(|output| if apart { &mut states[..] } else { &mut **output });
                Written { states, last: Some(one), ..Written::default() }
            };
            match sequence(call, written, &mut [], None, &budget) {
                Err(Error::Shape { .. } | Error::Value { .. } | Error::Dtype(_)) => return Ok(false),
                done => done?,
            }
            if let Some(output) = output.filter(|_| apart || steps == 1) {
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
            Ok(true)
        };
        if brief { detached::briefly(compute) } else { detached::run(self.arrays.py(), |_| compute()) }
    }

    /// T, B, d and n, none of them 0.
    fn sizes<T: Number>(&self) -> Option<[usize; 4]> {
        let [x, last] = [&self.arrays, &self.last].map(|tuple| View::<T>::of(&tuple.get_item(0).ok()?, true));
        let (x, n) = (x?, last?.rows()?[1]);
        let sizes = match (x.tensor.shape.as_slice(), &self.order.1) {
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
}

/// What is laid out anew.
struct Laid<T> {
    shapes: Vec<Vec<usize>>,
    /// x with room for all sequences at each step, where it is packed.
    x: Vec<T>,
    /// The sum of two biases.
    bias: Vec<T>,
    /// The parts of the state side by side, where there are several.
    before: Vec<T>,
    lengths: Option<Vec<usize>>,
}

impl<T: Number> Laid<T> {
    /// None without memory.
    fn of(plain: &Plain<'_, '_>, read: &Read<'_, T>, sizes: [usize; 4]) -> Option<Self> {
        let ([_, batch, features, n], counts) = (sizes, plain.order.1.as_deref());
        let numbers = |at: Option<usize>| match at.map(|at| read.arrays[at].array().1) {
            Some(Array::Own(numbers)) => numbers,
            _ => &[],
        };
        let sum = |second: &View<'_, T>| {
            let pairs = numbers(bias_at(plain.cell)).iter().zip(second.slice());
            pairs.map(|(first, second)| *first + *second).collect()
        };
        let mut before = Vec::new();
        if read.states.len() > 1 {
            before.try_reserve_exact(batch * n * read.states.len()).ok()?;
            for row in 0..batch {
                read.states
                    .iter()
                    .for_each(|part| before.extend_from_slice(&part.slice()[row * n..(row + 1) * n]));
            }
        }
        let shape = |(i, lent): (usize, &Lent<'_, T>)| lent.shape(plain.cell, i, sizes);
        Some(Laid {
            shapes: read.arrays.iter().enumerate().map(shape).collect(),
            x: counts.map_or(Some(Vec::new()), |counts| spread(counts, features, numbers(Some(0))))?,
            bias: read.second.as_ref().map_or_else(Vec::new, sum),
            before,
            lengths: counts
                .map(|counts| (0..batch).map(|b| counts.partition_point(|&count| count > b)).collect()),
        })
    }

    /// The arguments in the order of the cell's.
    fn given<'a>(&'a self, cell: &Declaration, read: &'a Read<'_, T>) -> Vec<Given<'a, T>> {
        let given = |(lent, shape): (&'a Lent<'_, T>, &'a Vec<usize>)| Given { shape, array: lent.array().1 };
        let mut given: Vec<_> = read.arrays.iter().zip(&self.shapes).map(given).collect();
        if !self.x.is_empty() {
            given[0].array = Array::Own(&self.x);
        }
        if let Some(at) = bias_at(cell).filter(|_| !self.bias.is_empty()) {
            given[at].array = Array::Own(&self.bias);
        }
        if let Some(state) = read.states.first() {
            given[cell.h0_at()].array =
                Array::Own(if self.before.is_empty() { state.slice() } else { &self.before });
        }
        given
    }
}

/// The place of the bias.
fn bias_at(cell: &Declaration) -> Option<usize> {
    cell.arguments.iter().position(|argument| matches!(argument.name, "b" | "bias"))
}

/// So many zeros, if there is memory for them.
fn zeros<T: Number>(len: usize) -> Option<Vec<T>> {
    let mut zeros = Vec::new();
    zeros.try_reserve_exact(len).ok()?;
    zeros.resize(len, T::zero());
    Some(zeros)
}

/// Packed steps with room for all sequences in each.
fn spread<T: Number>(counts: &[usize], width: usize, packed: &[T]) -> Option<Vec<T>> {
    let (each, mut from) = (counts[0].saturating_mul(width), 0);
    let mut padded = zeros(counts.len().saturating_mul(each))?;
    for (count, to) in counts.iter().zip(padded.chunks_exact_mut(each)) {
        to[..count * width].copy_from_slice(&packed[from..from + count * width]);
        from += count * width;
    }
    Some(padded)
}

/// The numbers of a tensor in C order.
struct View<'py, T> {
    data: *mut [T],
    tensor: Tensor<'py>,
}

impl<'py, T: Typed> View<'py, T> {
    /// None of what is no such tensor; `brief` where the interpreter's lock is held as long as it is used.
    fn of(object: &Any<'py>, brief: bool) -> Option<Self> {
        let tensor = if brief { lent("x", object) } else { tensor("x", object) }.ok()??;
        Some(View { data: elements("x", &tensor).ok()?, tensor })
    }

    /// Of an argument that may be None.
    fn optional(object: &Optional<'py>, brief: bool) -> Option<Option<Self>> {
        object.as_ref().map_or(Some(None), |object| Self::of(object, brief).map(Some))
    }

    /// Those of a tuple.
    fn all(tuple: &Bound<'py, PyTuple>, brief: bool) -> Option<Vec<Self>> {
        tuple.iter().map(|object| Self::of(&object, brief)).collect()
    }

    /// The sizes without a first axis of 1.
    fn rows(&self) -> Option<[usize; 2]> {
        match self.tensor.shape[..] {
            [rows, columns] | [1, rows, columns] => Some([rows, columns]),
            _ => None,
        }
    }

    fn given<'a>(&'a self) -> Given<'a, T>
    where
        T: Number,
    {
        Given { shape: &self.tensor.shape, array: Array::Own(self.slice()) }
    }

    fn slice(&self) -> &[T] {
        // SAFETY: contiguous and aligned; the memory is held, or the lock.
        unsafe { &*self.data }
    }

    fn range(&self) -> [usize; 2] {
        let start = self.data.cast::<u8>().addr();
        [start, start + size_of_val(self.slice())]
    }
}

/// An array of a cell.
enum Lent<'py, T: Number> {
    None,
    Own(View<'py, T>),
    Real(View<'py, T::Real>),
}

impl<'py, T: Number> Lent<'py, T> {
    fn of(argument: &Argument, object: &Any<'py>, brief: bool) -> Option<Self> {
        Some(match object.is_none() {
            true => Lent::None,
            false if argument.kind.real() => Lent::Real(View::of(object, brief)?),
            false => Lent::Own(View::of(object, brief)?),
        })
    }

    /// The numbers, and their sizes if it is one.
    fn array(&self) -> (&[usize], Array<'_, T>) {
        match self {
            Lent::None => (&[], Array::None),
            Lent::Own(view) => (&view.tensor.shape, Array::Own(view.slice())),
            Lent::Real(view) => (&view.tensor.shape, Array::Real(view.slice())),
        }
    }

    /// Its sizes: those that are declared, for x, for the state, and where blocks of n rows lie one below the other.
    fn shape(&self, cell: &Declaration, i: usize, sizes: [usize; 4]) -> Vec<usize> {
        let (own, declared, n) = (self.array().0, cell.shape(i, sizes).unwrap_or_default(), sizes[3]);
        match (own, &declared[..]) {
            _ if i == 0 || i == cell.h0_at() => declared,
            ([first, rest @ ..], [blocks, rows, others @ ..])
                if rest == others && *first == blocks * rows =>
            {
                declared
            }
            (&[rows], &[units]) if units == n && rows > n && rows.is_multiple_of(n) => vec![rows / n, n],
            _ => own.to_vec(),
        }
    }

    fn range(&self) -> [usize; 2] {
        match self {
            Lent::None => [0, 0],
            Lent::Own(view) => view.range(),
            Lent::Real(view) => view.range(),
        }
    }
}

/// The tensors of a call.
struct Read<'py, T: Number> {
    arrays: Vec<Lent<'py, T>>,
    w: Option<View<'py, T>>,
    second: Option<View<'py, T>>,
    states: Vec<View<'py, T>>,
    last: Vec<View<'py, T>>,
    output: Option<View<'py, T>>,
}

impl<'py, T: Number> Read<'py, T> {
    fn of(plain: &Plain<'_, 'py>, brief: bool) -> Option<Self> {
        let arguments = plain.cell.arguments;
        let arrays = plain.arrays.iter().zip(arguments);
        let arrays: Option<Vec<_>> =
            arrays.map(|(object, argument)| Lent::of(argument, &object, brief)).collect();
        Some(Read {
            arrays: arrays.filter(|arrays| arrays.len() == arguments.len())?,
            w: View::optional(&plain.w, brief)?,
            second: View::optional(&plain.second, brief)?,
            states: plain.states.as_ref().map_or(Some(Vec::new()), |states| View::all(states, brief))?,
            last: View::all(&plain.last, brief)?,
            output: View::optional(&plain.output, brief)?,
        })
    }

    /// Whether the tensors of states have their sizes, and no result overlaps another tensor.
    fn fits(&self, plain: &Plain<'_, '_>, [steps, batch, _, n]: [usize; 4]) -> bool {
        let width = plain.cell.width;
        let entries = plain.order.1.as_ref().map_or(steps * batch, |counts| counts.iter().sum());
        let row = |view: &View<'_, T>| view.rows() == Some([batch, n]);
        let bias = bias_at(plain.cell).map_or(&[][..], |at| self.arrays[at].array().0);
        self.states.iter().chain(&self.last).all(row)
            && self.last.len() == width
            && (self.states.is_empty() || self.states.len() == width)
            && self.output.as_ref().is_none_or(|output| output.data.len() == entries * n)
            && self
                .second
                .as_ref()
                .is_none_or(|second| !bias.is_empty() && second.data.len() == bias.iter().product::<usize>())
            && self.apart()
    }

    /// Whether no result overlaps another tensor.
    fn apart(&self) -> bool {
        let mut others: Vec<_> = self.arrays.iter().map(Lent::range).collect();
        others.extend(self.states.iter().chain(&self.w).chain(&self.second).map(View::range));
        self.last.iter().chain(&self.output).all(|result| {
            let [start, end] = result.range();
            let apart = others.iter().all(|[first, last]| end <= *first || *last <= start);
            others.push([start, end]);
            apart
        })
    }
}
