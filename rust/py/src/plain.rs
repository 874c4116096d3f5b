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
/// the parts of the state before it, absent for zeros; a first axis of 1 may be missing. `arrays` are those of
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
    threads: usize,
) -> PyResult<bool> {
    let (cell, (w, second)) = (declared(cell).map_err(exception)?, matrices);
    let settings: Vec<f64> = law.2.into_iter().map(|setting| setting.unwrap_or(f64::NAN)).collect();
    let Ok(Some(Some(dtype))) = tensors::dtype_of("x", &arrays.get_item(0)?) else { return Ok(false) };
    let plain =
        Plain { cell, law: (law.0, law.1, settings), w, second, arrays, states, last, output, threads };
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
    threads: usize,
}

impl Plain<'_, '_> {
    fn run<T: Number>(&self) -> PyResult<bool> {
        let (cell, width) = (self.cell, self.cell.width);
        let Some(sizes @ [steps, batch, features, n]) = self.sizes::<T>() else { return Ok(false) };
        let work = [steps, batch, n, features.saturating_add(n)].into_iter().fold(4, usize::saturating_mul);
        let brief = work <= BRIEF;
        let Some(read) = Read::<T>::of(self, brief).filter(|read| read.apart()) else { return Ok(false) };
        let whole = [batch, width * n];
        let row = |view: &View<'_, T>| view.rows() == Some([batch, n]);
        let whole_output = read.output.as_ref().is_none_or(|output| output.data.len() == steps * batch * n);
        if read.last.len() != width || !read.states.iter().chain(&read.last).all(row) || !whole_output {
            return Ok(false);
        }
        let parts: Vec<_> = read.states.iter().map(View::slice).collect();
        let joined = if width > 1 { joined(&parts, n) } else { Vec::new() };
        let before = match parts[..] {
            [] => Array::None,
            [state] => Array::Own(state),
            _ => Array::Own(&joined),
        };
        let shapes: Vec<_> =
            read.arrays.iter().enumerate().map(|(i, lent)| lent.shape(cell, i, sizes)).collect();
        let mut given: Vec<_> = read
            .arrays
            .iter()
            .zip(&shapes)
            .map(|(lent, shape)| Given { shape, array: lent.array().1 })
            .collect();
        let bias = cell.arguments.iter().position(|argument| matches!(argument.name, "b" | "bias"));
        let mut sum = Vec::new();
        if let (Some(second), Some(at)) = (&read.second, bias) {
            let Array::Own(first) = given[at].array else { return Ok(false) };
            if first.len() != second.slice().len() {
                return Ok(false);
            }
            sum.extend(first.iter().zip(second.slice()).map(|(first, second)| *first + *second));
            given[at].array = Array::Own(&sum);
        }
        let h0 = cell.arguments.iter().position(|argument| argument.name == "h0").unwrap_or(0);
        given[h0] = Given { shape: &whole, array: before };
        let call = Call {
            cell,
            given,
            transition: read
                .w
                .as_ref()
                .map(|w| ("dense", vec![Given { shape: &w.tensor.shape, array: Array::Own(w.slice()) }])),
            activation: parse(self.law.0, self.law.1)?,
            settings: &self.law.2,
            lengths: None,
            reverse: false,
            marks: None,
            packs: None,
        };
        if parts.len() % width != 0 || call.sizes().ok() != Some(sizes) {
            return Ok(false);
        }
        // SAFETY: they overlap nothing.
        let (mut last, mut output) = unsafe {
            let last: Vec<_> = read.last.iter().map(|view| &mut *view.data).collect();
            (last, read.output.as_ref().map(|view| &mut *view.data))
        };
        let kept = if output.is_some() { steps } else { 1 };
        let mut states = vec![T::zero(); if width > 1 { kept * batch * whole[1] } else { 0 }];
        let written = match (&mut output, width) {
            (Some(output), 1) => Written::from(&mut **output),
            (Some(_), _) => Written::from(&mut states),
            (None, 1) => Written { last: Some(&mut *last[0]), ..Written::default() },
            (None, _) => Written { last: Some(&mut states), ..Written::default() },
        };
        let budget = Budget::of(if brief { 1 } else { self.threads });
        let compute = || match sequence(call, written, &mut [], None, &budget) {
            Err(Error::Shape { .. } | Error::Value { .. } | Error::Dtype(_)) => Ok(false),
            done => done.map(|()| true),
        };
        let fits =
            if brief { detached::briefly(compute) } else { detached::run(self.arrays.py(), |_| compute()) }?;
        if width > 1 {
            output.into_iter().for_each(|output| copy(&states, output, [0, n, whole[1]]));
            let from = (kept - 1) * batch * whole[1];
            last.iter_mut()
                .enumerate()
                .for_each(|(i, last)| copy(&states[from..], last, [i * n, n, whole[1]]));
        } else if let Some(output) = output {
            last[0].copy_from_slice(&output[(steps - 1) * batch * n..]);
        }
        Ok(fits)
    }

    /// T, B, d and n, none of them 0.
    fn sizes<T: Number>(&self) -> Option<[usize; 4]> {
        let [x, last] = [&self.arrays, &self.last].map(|tuple| View::<T>::of(&tuple.get_item(0).ok()?, true));
        let (x, n) = (x?, last?.rows()?[1]);
        let sizes = match x.tensor.shape[..] {
            [steps, batch, features] => [steps, batch, features, n],
            [batch, features] => [1, batch, features, n],
            _ => return None,
        };
        (!sizes.contains(&0)).then_some(sizes)
    }
}

/// Copies n numbers of each row of so many, from the first of them on.
fn copy<T: Copy>(from: &[T], to: &mut [T], [first, n, width]: [usize; 3]) {
    to.chunks_exact_mut(n)
        .zip(from.chunks_exact(width))
        .for_each(|(to, row)| to.copy_from_slice(&row[first..first + n]));
}

/// Parts of a state side by side.
fn joined<T: Number>(parts: &[&[T]], n: usize) -> Vec<T> {
    let rows = parts.first().map_or(0, |part| part.len() / n);
    let mut joined = Vec::with_capacity(rows * parts.len() * n);
    for row in 0..rows {
        parts.iter().for_each(|part| joined.extend_from_slice(&part[row * n..(row + 1) * n]));
    }
    joined
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

    /// Its sizes, those that are declared where its blocks of n rows lie one below the other.
    fn shape(&self, cell: &Declaration, i: usize, sizes: [usize; 4]) -> Vec<usize> {
        let (own, n) = (self.array().0, sizes[3]);
        match (own, &cell.shape(i, sizes).unwrap_or_default()[..]) {
            ([first, rest @ ..], [blocks, rows, others @ ..])
                if rest == others && *first == blocks * rows =>
            {
                [&[*blocks, *rows], rest].concat()
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
