//! `operator_*`: every object of the core, by its name and the list of its arguments.

use crate::arrays::{Any, Input, Number, Optional, Output, empty, fits, read, write};
use crate::place::Place;
use crate::{by_dtype, detached};
use isometry_core::argument::{Argument, Array, Bar, Given, Kind};
use isometry_core::internal::sizes::{size, work};
use isometry_core::operators::{OBJECTS, check_values, view};
use isometry_core::{Cpu, Error, Result, Saves, Side};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict, PyModule, PyTuple};

/// What a forward call saved for backward; None where nothing was.
type Saved<'py> = Optional<'py>;

/// The list of arguments of an object.
fn declared(object: &str) -> PyResult<&'static [Argument]> {
    let found = OBJECTS.iter().find(|(name, _)| *name == object);
    let unknown = || PyValueError::new_err(format!("object: {object} is none of the core"));
    found.map(|(_, arguments)| *arguments).ok_or_else(unknown)
}

/// The i-th argument; a list includes all that follow.
fn nth(arguments: &'static [Argument], i: usize) -> PyResult<&'static Argument> {
    let listed = || arguments.last().filter(|last| last.list);
    let many = || PyValueError::new_err(format!("arguments: expected {}", arguments.len()));
    arguments.get(i).or_else(listed).ok_or_else(many)
}

/// The shapes of the arguments, empty where one is not given.
pub fn shapes(object: &str, arguments: &Bound<'_, PyTuple>) -> PyResult<Vec<Vec<usize>>> {
    let list = declared(object)?;
    let wrong =
        |name: &str| PyValueError::new_err(format!("{name}: expected an array with the axes of {object}"));
    let one = |(i, array): (usize, Bound<'_, PyAny>)| {
        let argument = nth(list, i)?;
        let shape: Vec<usize> =
            if array.is_none() { Vec::new() } else { array.getattr("shape")?.extract()? };
        let fits = array.is_none() || shape.len() >= argument.rank();
        if fits { Ok(shape) } else { Err(wrong(argument.name)) }
    };
    if arguments.len() < list.len() {
        return Err(wrong("arguments"));
    }
    arguments.iter().enumerate().map(one).collect()
}

enum Borrowed<'py, T: Number> {
    None,
    Own(Input<'py, T>),
    Real(Input<'py, T::Real>),
    Integers(Input<'py, i64>),
}

/// The arguments of a call, borrowed.
pub struct Arguments<'py, T: Number>(Vec<Borrowed<'py, T>>);

impl<'py, T: Number> Arguments<'py, T> {
    /// Borrows those of an object.
    pub fn new(object: &str, given: &Bound<'py, PyTuple>) -> PyResult<Self> {
        Self::of(declared(object)?, given)
    }

    /// Borrows those of a list.
    pub fn of(arguments: &'static [Argument], given: &Bound<'py, PyTuple>) -> PyResult<Self> {
        let borrow = |(i, array): (usize, Any<'py>)| {
            let argument = nth(arguments, i)?;
            Ok(match argument.kind {
                _ if array.is_none() => Borrowed::None,
                Kind::Integer => Borrowed::Integers(Input::new(argument.name, &array)?),
                kind if kind.real() => Borrowed::Real(Input::new(argument.name, &array)?),
                _ => Borrowed::Own(Input::new(argument.name, &array)?),
            })
        };
        Ok(Arguments(given.iter().enumerate().map(borrow).collect::<PyResult<_>>()?))
    }

    /// The arguments in the form of the core.
    pub fn given(&self) -> Vec<Given<'_, T>> {
        let one = |borrowed| match borrowed {
            &Borrowed::None => Given { shape: &[], array: Array::None },
            Borrowed::Own(input) => Given { shape: input.shape(), array: Array::Own(input.slice()) },
            Borrowed::Real(input) => Given { shape: input.shape(), array: Array::Real(input.slice()) },
            Borrowed::Integers(input) => {
                Given { shape: input.shape(), array: Array::Integers(input.slice()) }
            }
        };
        self.0.iter().map(one).collect()
    }
}

enum Room<'py, T: Number> {
    None,
    Own(Output<'py, T>),
    Real(Output<'py, T::Real>),
}

/// Output arrays for the gradients of the arguments, borrowed.
pub struct ArgumentBars<'py, T: Number>(Vec<Room<'py, T>>);

impl<'py, T: Number> ArgumentBars<'py, T> {
    /// Borrows those of an object: the shapes are those of the arguments.
    pub fn new(object: &str, arguments: &Arguments<'py, T>, bars: &Bound<'py, PyTuple>) -> PyResult<Self> {
        Self::of(declared(object)?, arguments, bars, None)
    }

    /// Borrows those of a list: the shapes are those of the arguments, in an ensemble with an entry for each member.
    pub fn of(
        list: &'static [Argument],
        arguments: &Arguments<'py, T>,
        bars: &Bound<'py, PyTuple>,
        members: Option<usize>,
    ) -> PyResult<Self> {
        let stacked = |shape: &[usize]| match members {
            Some(members) => std::iter::once(members).chain(shape.iter().skip(1).copied()).collect(),
            None => shape.to_vec(),
        };
        let borrow = |(i, array): (usize, Any<'py>)| {
            let bar = nth(list, i)?.bar;
            Ok(match arguments.0.get(i) {
                _ if array.is_none() => Room::None,
                Some(Borrowed::Own(input)) => {
                    Room::Own(Output::shaped(bar, &array, &stacked(input.shape()))?)
                }
                Some(Borrowed::Real(input)) => {
                    Room::Real(Output::shaped(bar, &array, &stacked(input.shape()))?)
                }
                _ => return Err(PyValueError::new_err(format!("{bar}: no such argument was given"))),
            })
        };
        Ok(ArgumentBars(bars.iter().enumerate().map(borrow).collect::<PyResult<_>>()?))
    }

    /// The output arrays in the form of the core.
    pub fn view(&mut self) -> Vec<Bar<'_, T>> {
        let one = |room| match room {
            &mut Room::None => Bar::None,
            Room::Own(output) => Bar::Own(output.slice()),
            Room::Real(output) => Bar::Real(output.slice()),
        };
        self.0.iter_mut().map(one).collect()
    }
}

/// What a forward call saved.
enum SavedValues {
    Nothing,
    Result,
    Own(Py<PyAny>),
}

impl SavedValues {
    fn array<'py>(self, result: &Any<'py>) -> Saved<'py> {
        match self {
            SavedValues::Nothing => None,
            SavedValues::Result => Some(result.clone()),
            SavedValues::Own(array) => Some(array.into_bound(result.py())),
        }
    }
}

/// Runs `f`, detached from the interpreter, with an array for what it saves, if it saves anything and `save`
/// is given: an array of its own, or its result.
fn keeping<T: Number>(
    save: bool,
    saves: Saves,
    batch: usize,
    f: impl FnOnce(Option<&mut [T]>) -> Result<()>,
) -> Result<SavedValues> {
    match saves {
        Saves::Result if save => f(None).map(|()| SavedValues::Result),
        Saves::Elements(each) if save && each > 0 => {
            let len = size("saved", &[batch, each])?;
            // none in a daemon thread that outlives the interpreter
            let made = Python::try_attach(|py| {
                let array = empty::<T>(py, &[len])?;
                let data = Output::<T>::new("saved", &array)?.slice().as_mut_ptr();
                Ok((array.unbind(), data))
            });
            let lack = |_: PyErr| Error::OutOfMemory { bytes: work(&[len, size_of::<T>()]) };
            let (array, data) = made.ok_or(Error::Interrupted)?.map_err(lack)?;
            // SAFETY: a new array of this many elements, not shared yet; `array` keeps it alive.
            f(Some(unsafe { std::slice::from_raw_parts_mut(data, len) }))?;
            Ok(SavedValues::Own(array))
        }
        _ => f(None).map(|()| SavedValues::Nothing),
    }
}

fn side(adjoint: bool) -> Side {
    if adjoint { Side::Adjoint } else { Side::Forward }
}

/// Rows per matrix of an array x (..., features): the product of all leading axes except the batch.
fn rows<T: Number>(shape: &[usize], operator: &dyn Cpu<T>, side: Side) -> Result<usize> {
    let ((from, _), batch) = (operator.features(side), operator.batch());
    let own = shape.len() > usize::from(batch != 1) && shape.last() == Some(&from);
    if !own || (batch != 1 && shape[0] != batch) {
        return Err(Error::shape("x", format!("shape ({batch}, rows, {from})"), format!("{shape:?}")));
    }
    Ok(work(&shape[usize::from(batch != 1)..shape.len() - 1]))
}

/// The shape of the result of rows x.
fn mapped<T: Number>(shape: &[usize], operator: &dyn Cpu<T>, side: Side) -> Vec<usize> {
    let mut shape = shape.to_vec();
    if let Some(last) = shape.last_mut() {
        *last = operator.features(side).1;
    }
    shape
}

/// The matrices of a batch of operators, and with `save` what the gradient would otherwise recompute.
#[pyfunction]
pub fn operator_matrix<'py>(
    object: &str,
    arguments: Bound<'py, PyTuple>,
    out: Any<'py>,
    save: bool,
    place: Place,
) -> PyResult<Saved<'py>> {
    by_dtype!("out", &out, T, py => {
        let arguments = Arguments::<T>::new(object, &arguments)?;
        let mut w = Output::new("out", &out)?;
        let (given, (w, shape)) = (arguments.given(), w.parts());
        let kept = place.run(py, |budget| {
            let operator = place.of(object, view(object, &given))?;
            let (batch, (p, q)) = (operator.batch(), operator.shape());
            fits("out", shape, &[batch, p, q])?;
            keeping(save, operator.matrix_saves()?, batch, |kept| operator.matrix(w, kept, budget))
        })?;
        Ok(kept.array(&out))
    })
}

/// Gradients of the arguments from the cotangent of the matrices, and from what the forward call saved, if
/// anything.
#[pyfunction]
pub fn operator_matrix_vjp(
    object: &str,
    arguments: Bound<'_, PyTuple>,
    saved: Optional<'_>,
    ct: Any<'_>,
    bars: Bound<'_, PyTuple>,
    place: Place,
) -> PyResult<()> {
    by_dtype!("ct", &ct, T, py => {
        let arguments = Arguments::<T>::new(object, &arguments)?;
        let mut bars = ArgumentBars::new(object, &arguments, &bars)?;
        let saved = saved.map(|saved| Input::new("saved", &saved)).transpose()?;
        let ct = Input::new("ct", &ct)?;
        let (given, mut bars, saved) = (arguments.given(), bars.view(), read(&saved));
        let (ct, shape) = (ct.slice(), ct.shape());
        place.run(py, |budget| {
            let operator = place.of(object, view(object, &given))?;
            let (p, q) = operator.shape();
            fits("ct", shape, &[operator.batch(), p, q])?;
            operator.matrix_vjp(saved, ct, &mut bars, budget)
        })
    })
}

/// W x, or W^H x if `adjoint`, for rows x, and with `save` what the gradient would otherwise recompute.
#[pyfunction]
pub fn operator_apply<'py>(
    object: &str,
    arguments: Bound<'py, PyTuple>,
    x: Any<'py>,
    out: Any<'py>,
    adjoint: bool,
    save: bool,
    place: Place,
) -> PyResult<Saved<'py>> {
    let side = side(adjoint);
    by_dtype!("x", &x, T, py => {
        let arguments = Arguments::<T>::new(object, &arguments)?;
        let (x, mut c) = (Input::new("x", &x)?, Output::new("out", &out)?);
        let (given, (c, found)) = (arguments.given(), c.parts());
        let (x, shape) = (x.slice(), x.shape());
        let kept = place.run(py, |budget| {
            let operator = place.of(object, view(object, &given))?;
            let rows = rows(shape, &*operator, side)?;
            fits("out", found, &mapped(shape, &*operator, side))?;
            let saves = operator.apply_saves(rows, side)?;
            keeping(save, saves, operator.batch(), |kept| operator.apply(x, rows, side, c, kept, budget))
        })?;
        Ok(kept.array(&out))
    })
}

/// Gradients of the arguments and of x from the cotangent of W x (or W^H x), and from what that call saved,
/// if anything.
#[pyfunction]
pub fn operator_apply_vjp(
    object: &str,
    arguments: Bound<'_, PyTuple>,
    saved: Optional<'_>,
    x: Any<'_>,
    ct: Any<'_>,
    bars: Bound<'_, PyTuple>,
    x_bar: Optional<'_>,
    adjoint: bool,
    place: Place,
) -> PyResult<()> {
    let side = side(adjoint);
    by_dtype!("x", &x, T, py => {
        let arguments = Arguments::<T>::new(object, &arguments)?;
        let mut bars = ArgumentBars::new(object, &arguments, &bars)?;
        let saved = saved.map(|saved| Input::new("saved", &saved)).transpose()?;
        let (x, ct) = (Input::new("x", &x)?, Input::new("ct", &ct)?);
        let mut x_bar = Output::optional("x_bar", x_bar.as_ref(), x.shape())?;
        let (given, mut bars, saved, x_bar) =
            (arguments.given(), bars.view(), read(&saved), write(&mut x_bar));
        let ((x, shape), (ct, found)) = ((x.slice(), x.shape()), (ct.slice(), ct.shape()));
        place.run(py, |budget| {
            let operator = place.of(object, view(object, &given))?;
            let rows = rows(shape, &*operator, side)?;
            fits("ct", found, &mapped(shape, &*operator, side))?;
            operator.apply_vjp(saved, x, ct, rows, side, &mut bars, x_bar, budget)
        })
    })
}

/// Refuses values that the object's definition forbids, each array by itself, whatever its batch; NaN passes.
#[pyfunction]
pub fn operator_check(object: &str, arguments: Bound<'_, PyTuple>) -> PyResult<()> {
    fn call<T: Number>(object: &str, arguments: &Bound<'_, PyTuple>) -> PyResult<()> {
        let held = Arguments::<T>::new(object, arguments)?;
        let given = held.given();
        detached::run(arguments.py(), || check_values(object, &given))
    }
    // The type of the first array of the matrix's type, else that of a real one; integers fit any.
    let list = declared(object)?;
    let of = |real: bool| {
        let fits = |i: usize| {
            nth(list, i).is_ok_and(|argument| argument.kind != Kind::Integer && argument.kind.real() == real)
        };
        arguments.iter().enumerate().find(|(i, array)| !array.is_none() && fits(*i))
    };
    let Some((_, deciding)) = of(false).or_else(|| of(true)) else { return call::<f64>(object, &arguments) };
    by_dtype!("arguments", &deciding, T => { call::<T>(object, &arguments) })
}

/// A kind's word.
fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Matrix => "matrix",
        Kind::Complex => "complex",
        Kind::Real => "real",
        Kind::Angles => "angles",
        Kind::Number => "number",
        Kind::Integer => "integer",
        Kind::Shape => "shape",
    }
}

/// `Argument`, a named tuple, and `OBJECTS`: the name of every object -> its arguments.
pub fn objects(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let fields = ["name", "axes", "kind", "trained", "group", "list"];
    let keywords = [("module", module.name()?)].into_py_dict(py)?;
    let named =
        py.import("collections")?.getattr("namedtuple")?.call(("Argument", fields), Some(&keywords))?;
    let table = PyDict::new(py);
    for (object, arguments) in OBJECTS {
        let row = |a: &Argument| named.call1((a.name, a.axes, kind(a.kind), a.trained, a.group, a.list));
        table
            .set_item(object, PyTuple::new(py, arguments.iter().map(row).collect::<PyResult<Vec<_>>>()?)?)?;
    }
    module.add("Argument", named)?;
    module.add("OBJECTS", table)
}
