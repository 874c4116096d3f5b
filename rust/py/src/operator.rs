//! `operator_*`: every object of the core, by its name and the list of its arguments.

use crate::arrays::{Any, Input, Number, Optional, Output, fits};
use crate::dtype::Typed;
use crate::error::exception;
use crate::place::Place;
use crate::threads::{SavedValues, on_threads};
use crate::{by_dtype, detached};
use isometry_core::argument::{Argument, Array, Bar, Given, Kind};
use isometry_core::internal::Task;
use isometry_core::operators::{OBJECTS, arguments as arguments_of, check_values};
use isometry_core::{Budget, Side};
#[cfg(feature = "gpu")]
use isometry_gpu::hosted;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict, PyModule, PyTuple};

/// What a forward call saved for backward; None where nothing was.
type Saved<'py> = Optional<'py>;

/// The i-th argument; a list includes all that follow.
fn nth(arguments: &'static [Argument], i: usize) -> PyResult<&'static Argument> {
    let listed = || arguments.last().filter(|last| last.list);
    let many = || PyValueError::new_err(format!("arguments: expected {}", arguments.len()));
    arguments.get(i).or_else(listed).ok_or_else(many)
}

/// The shapes of the arguments, empty where one is not given.
pub fn shapes(object: &str, arguments: &Bound<'_, PyTuple>) -> PyResult<Vec<Vec<usize>>> {
    let list = arguments_of(object).map_err(exception)?;
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
    pub fn new(object: &str, given: &Bound<'py, PyTuple>, place: Place) -> PyResult<Self> {
        Self::of(arguments_of(object).map_err(exception)?, given, place)
    }

    /// Borrows those of a list.
    pub fn of(arguments: &'static [Argument], given: &Bound<'py, PyTuple>, place: Place) -> PyResult<Self> {
        let borrow = |(i, array): (usize, Any<'py>)| {
            let argument = nth(arguments, i)?;
            Ok(match argument.kind {
                _ if array.is_none() => Borrowed::None,
                Kind::Integer => Borrowed::Integers(Input::new(argument.name, &array)?),
                kind if kind.real() => Borrowed::Real(Input::at(place, argument.name, &array)?),
                _ => Borrowed::Own(Input::at(place, argument.name, &array)?),
            })
        };
        Ok(Arguments(given.iter().enumerate().map(borrow).collect::<PyResult<_>>()?))
    }

    /// The arguments in the form of the core.
    pub fn given(&self) -> Vec<Given<'_, T>> {
        let one = |borrowed| match borrowed {
            &Borrowed::None => Given { shape: &[], array: Array::None },
            Borrowed::Own(input) => input.given(),
            Borrowed::Real(input) => {
                let array = input.remote().map_or_else(|| Array::Real(input.slice()), Array::Remote);
                Given { shape: input.shape(), array }
            }
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

/// An array of that shape for a gradient, wherever the call is.
pub fn room<'py, T: Typed>(
    place: Place,
    bar: &'static str,
    array: &Any<'py>,
    shape: &[usize],
) -> PyResult<Output<'py, T>> {
    let output = Output::at(place, bar, array)?;
    fits(bar, output.shape(), shape).map_err(exception)?;
    Ok(output)
}

/// Output arrays for the gradients of the arguments, borrowed.
pub struct ArgumentBars<'py, T: Number>(Vec<Room<'py, T>>);

impl<'py, T: Number> ArgumentBars<'py, T> {
    /// Borrows those of an object: the shapes are those of the arguments.
    pub fn new(
        object: &str,
        arguments: &Arguments<'py, T>,
        bars: &Bound<'py, PyTuple>,
        place: Place,
    ) -> PyResult<Self> {
        Self::of(arguments_of(object).map_err(exception)?, arguments, bars, None, place)
    }

    /// Borrows those of a list: the shapes are those of the arguments, in an ensemble with an entry for each member.
    pub fn of(
        list: &'static [Argument],
        arguments: &Arguments<'py, T>,
        bars: &Bound<'py, PyTuple>,
        members: Option<usize>,
        place: Place,
    ) -> PyResult<Self> {
        let stacked = |shape: &[usize]| match members {
            Some(members) => std::iter::once(members).chain(shape.iter().skip(1).copied()).collect(),
            None => shape.to_vec(),
        };
        let borrow = |(i, array): (usize, Any<'py>)| {
            let bar = nth(list, i)?.bar;
            Ok(match arguments.0.get(i) {
                _ if array.is_none() => Room::None,
                Some(Borrowed::Own(input)) => Room::Own(room(place, bar, &array, &stacked(input.shape()))?),
                Some(Borrowed::Real(input)) => Room::Real(room(place, bar, &array, &stacked(input.shape()))?),
                _ => return Err(PyValueError::new_err(format!("{bar}: no such argument was given"))),
            })
        };
        Ok(ArgumentBars(bars.iter().enumerate().map(borrow).collect::<PyResult<_>>()?))
    }

    /// The output arrays in the form of the core.
    pub fn view(&mut self) -> Vec<Bar<'_, T>> {
        let one = |room| match room {
            &mut Room::None => Bar::None,
            Room::Own(output) => output.bar().0,
            Room::Real(output) => output.real(),
        };
        self.0.iter_mut().map(one).collect()
    }
}

fn side(adjoint: bool) -> Side {
    if adjoint { Side::Adjoint } else { Side::Forward }
}

/// Runs a call of an operator at its place. A wait for the GPU can be interrupted; a call on the CPU is short.
fn run<T: Number>(
    place: Place,
    py: Python<'_>,
    object: &str,
    given: &[Given<'_, T>],
    task: Task<'_, T>,
    out: &[usize],
    save: bool,
) -> PyResult<SavedValues> {
    match place {
        Place::Threads(_) | Place::Here => {
            detached::run(py, |_| on_threads(object, given, task, out, save, &Budget::of(place.threads())))
        }
        #[cfg(feature = "gpu")]
        Place::Gpu => {
            let starts_from_w = detached::run(py, |cancel| {
                hosted::operator(object, given, task, &Budget { threads: place.threads(), cancel })
            })?;
            Ok(if save && starts_from_w { SavedValues::Result } else { SavedValues::Nothing })
        }
    }
}

/// What a forward call saved, or nothing.
fn saved_values<'a, T: Number>(saved: &'a Option<Input<'_, T>>) -> Given<'a, T> {
    saved.as_ref().map_or(Given { shape: &[], array: Array::None }, Input::given)
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
        let arguments = Arguments::<T>::new(object, &arguments, place)?;
        let mut w = Output::at(place, "out", &out)?;
        let (w, shape) = w.bar();
        let kept = run(place, py, object, &arguments.given(), Task::Matrix(w), shape, save)?;
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
        let arguments = Arguments::<T>::new(object, &arguments, place)?;
        let mut bars = ArgumentBars::new(object, &arguments, &bars, place)?;
        let saved = saved.map(|saved| Input::at(place, "saved", &saved)).transpose()?;
        let ct = Input::at(place, "ct", &ct)?;
        let task = Task::MatrixVjp(saved_values(&saved), ct.given(), bars.view());
        run(place, py, object, &arguments.given(), task, &[], false)?;
        Ok(())
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
    by_dtype!("x", &x, T, py => {
        let arguments = Arguments::<T>::new(object, &arguments, place)?;
        let (x, mut c) = (Input::at(place, "x", &x)?, Output::at(place, "out", &out)?);
        let (c, shape) = c.bar();
        let task = Task::Apply(x.given(), side(adjoint), c);
        let kept = run(place, py, object, &arguments.given(), task, shape, save)?;
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
    by_dtype!("x", &x, T, py => {
        let arguments = Arguments::<T>::new(object, &arguments, place)?;
        let mut bars = ArgumentBars::new(object, &arguments, &bars, place)?;
        let saved = saved.map(|saved| Input::at(place, "saved", &saved)).transpose()?;
        let (x, ct) = (Input::at(place, "x", &x)?, Input::at(place, "ct", &ct)?);
        let mut x_bar = x_bar.map(|bar| room::<T>(place, "x_bar", &bar, x.shape())).transpose()?;
        let x_bar = x_bar.as_mut().map_or(Bar::None, |bar| bar.bar().0);
        let task = Task::ApplyVjp([saved_values(&saved), x.given(), ct.given()], side(adjoint), bars.view(), x_bar);
        run(place, py, object, &arguments.given(), task, &[], false)?;
        Ok(())
    })
}

/// Refuses values that the object's definition forbids, each array by itself, whatever its batch; NaN passes.
#[pyfunction]
pub fn operator_check(object: &str, arguments: Bound<'_, PyTuple>) -> PyResult<()> {
    fn call<T: Number>(object: &str, arguments: &Bound<'_, PyTuple>) -> PyResult<()> {
        let held = Arguments::<T>::new(object, arguments, Place::Threads(1))?;
        let given = held.given();
        detached::run(arguments.py(), |_| check_values(object, &given))
    }
    // The type of the first array of the matrix's type, else that of a real one; integers fit any.
    let list = arguments_of(object).map_err(exception)?;
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
fn kind(kind: Kind) -> PyResult<&'static str> {
    Ok(match kind {
        Kind::Matrix => "matrix",
        Kind::Complex => "complex",
        Kind::Real => "real",
        Kind::Angles => "angles",
        Kind::Number => "number",
        Kind::Integer => "integer",
        Kind::Shape => "shape",
        other => return Err(PyRuntimeError::new_err(format!("{other:?} arguments have no word"))),
    })
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
        let row = |a: &Argument| named.call1((a.name, a.axes, kind(a.kind)?, a.trained, a.group, a.list));
        table
            .set_item(object, PyTuple::new(py, arguments.iter().map(row).collect::<PyResult<Vec<_>>>()?)?)?;
    }
    module.add("Argument", named)?;
    module.add("OBJECTS", table)
}
