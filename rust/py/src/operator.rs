//! `operator_*`: every object of the core, by its name and the list of its arguments.

use crate::arrays::{Input, Number, Output};
use crate::error::exception;
use crate::place::Place;
use crate::{by_kind, gate};
use isometry_core::argument::{Argument, Array, Bar, Given, Kind};
use isometry_core::operators::{OBJECTS, check_values, view};
use isometry_core::sizes::{size, work};
use isometry_core::{Budget, Cpu, Result, Saves, Side};
use numpy::PyArray1;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict, PyModule, PyTuple};

type Any<'a, 'py> = &'a Bound<'py, PyAny>;
type Optional<'a, 'py> = Option<&'a Bound<'py, PyAny>>;
/// What a forward call saved for the backward; None where nothing was.
type Saved<'py> = Option<Bound<'py, PyAny>>;

/// The list of arguments of an object.
fn declared(object: &str) -> PyResult<&'static [Argument]> {
    let found = OBJECTS.iter().find(|(name, _)| *name == object);
    let unknown = || PyValueError::new_err(format!("object: {object} is none of the core"));
    found.map(|(_, arguments)| *arguments).ok_or_else(unknown)
}

/// The i-th argument; a list goes on to the end.
fn nth(arguments: &'static [Argument], i: usize) -> PyResult<&'static Argument> {
    let listed = || arguments.last().filter(|last| last.list);
    let many = || PyValueError::new_err(format!("arguments: expected {}", arguments.len()));
    arguments.get(i).or_else(listed).ok_or_else(many)
}

/// The array that decides the element type of the matrices: the first given that is of it, else the first real one.
pub fn first<'py>(object: &str, arguments: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
    let list = declared(object)?;
    let of = |real: bool| {
        let fits = |i: usize| {
            nth(list, i).is_ok_and(|argument| argument.kind != Kind::Integer && argument.kind.real() == real)
        };
        arguments.iter().enumerate().find(|(i, array)| !array.is_none() && fits(*i))
    };
    let given = of(false).or_else(|| of(true)).map(|(_, array)| array);
    given.ok_or_else(|| PyTypeError::new_err("arguments: expected an array"))
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
    /// Borrows them.
    pub fn new(object: &str, given: &Bound<'py, PyTuple>) -> PyResult<Self> {
        let arguments = declared(object)?;
        let borrow = |(i, array): (usize, Bound<'py, PyAny>)| {
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

    /// As the core takes them.
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

/// Room for the gradients of the arguments, borrowed.
pub struct Bars<'py, T: Number>(Vec<Room<'py, T>>);

impl<'py, T: Number> Bars<'py, T> {
    /// Borrows it: the shapes are those of the arguments.
    pub fn new(object: &str, arguments: &Arguments<'py, T>, bars: &Bound<'py, PyTuple>) -> PyResult<Self> {
        let list = declared(object)?;
        let borrow = |(i, array): (usize, Bound<'py, PyAny>)| {
            let bar = nth(list, i)?.bar;
            Ok(match arguments.0.get(i) {
                _ if array.is_none() => Room::None,
                Some(Borrowed::Own(input)) => Room::Own(Output::shaped(bar, &array, input.shape())?),
                Some(Borrowed::Real(input)) => Room::Real(Output::shaped(bar, &array, input.shape())?),
                _ => return Err(PyValueError::new_err(format!("{bar}: no such argument was given"))),
            })
        };
        Ok(Bars(bars.iter().enumerate().map(borrow).collect::<PyResult<_>>()?))
    }

    /// As the core takes it.
    pub fn view(&mut self) -> Vec<Bar<'_, T>> {
        let one = |room| match room {
            &mut Room::None => Bar::None,
            Room::Own(output) => Bar::Own(output.slice()),
            Room::Real(output) => Bar::Real(output.slice()),
        };
        self.0.iter_mut().map(one).collect()
    }
}

/// Room for what a call saves, if it does and is asked to: an array of its own, or its result.
fn room<'py, T: Number>(
    py: Python<'py>,
    save: bool,
    saves: Result<Saves>,
    batch: usize,
    out: Any<'_, 'py>,
) -> PyResult<(Saved<'py>, Option<Output<'py, T>>)> {
    match saves.map_err(exception)? {
        Saves::Result if save => Ok((Some(out.clone()), None)),
        Saves::Elements(each) if save && each > 0 => {
            let len = size("saved", &[batch, each]).map_err(exception)?;
            // SAFETY: an array like NumPy's own `empty`; the call overwrites it.
            let array = unsafe { PyArray1::<T>::new(py, [len], false) }.into_any();
            let output = Output::shaped("saved", &array, &[len])?;
            Ok((Some(array), Some(output)))
        }
        _ => Ok((None, None)),
    }
}

fn side(adjoint: bool) -> Side {
    if adjoint { Side::Adjoint } else { Side::Forward }
}

/// Rows per matrix of an array x (..., features): all its leading axes but that of the batch.
fn rows<T: Number>(x: &Input<'_, T>, operator: &dyn Cpu<T>, side: Side) -> PyResult<usize> {
    let (from, _) = operator.features(side);
    let (shape, batch) = (x.shape(), operator.batch());
    let own = shape.len() > usize::from(batch != 1) && shape.last() == Some(&from);
    if !own || (batch != 1 && shape[0] != batch) {
        let text = format!("x: expected shape ({batch}, rows, {from}), got {shape:?}");
        return Err(PyValueError::new_err(text));
    }
    Ok(work(&shape[usize::from(batch != 1)..shape.len() - 1]))
}

/// The shape of the result of rows x.
fn mapped<T: Number>(x: &Input<'_, T>, operator: &dyn Cpu<T>, side: Side) -> Vec<usize> {
    let mut shape = x.shape().to_vec();
    if let Some(last) = shape.last_mut() {
        *last = operator.features(side).1;
    }
    shape
}

/// The matrices of a batch of operators, and with `save` what the gradient would compute again.
#[pyfunction]
pub fn operator_matrix<'py>(
    py: Python<'py>,
    object: &str,
    arguments: Bound<'py, PyTuple>,
    out: Bound<'py, PyAny>,
    save: bool,
    place: Place,
) -> PyResult<Saved<'py>> {
    fn call<'py, T: Number>(
        py: Python<'py>,
        object: &str,
        arguments: &Bound<'py, PyTuple>,
        to: Any<'_, 'py>,
        save: bool,
        place: Place,
    ) -> PyResult<Saved<'py>> {
        let arguments = Arguments::<T>::new(object, arguments)?;
        let given = arguments.given();
        let operator = place.of(object, view(object, &given)).map_err(exception)?;
        let (p, q) = operator.shape();
        let mut out = Output::shaped("out", to, &[operator.batch(), p, q])?;
        let (saved, mut kept) = room::<T>(py, save, operator.matrix_saves(), operator.batch(), to)?;
        let (out, kept) = (out.slice(), kept.as_mut().map(Output::slice));
        gate::run(py, || operator.matrix(out, kept, &Budget::of(place.threads())))?;
        Ok(saved)
    }
    by_kind!("out", &out, call(py, object, &arguments, &out, save, place))
}

/// Gradients of the arguments from the cotangent of the matrices, and from what the forward call saved, if it did.
#[pyfunction]
pub fn operator_matrix_vjp<'py>(
    py: Python<'py>,
    object: &str,
    arguments: Bound<'py, PyTuple>,
    saved: Option<Bound<'py, PyAny>>,
    ct: Bound<'py, PyAny>,
    bars: Bound<'py, PyTuple>,
    place: Place,
) -> PyResult<()> {
    fn call<'py, T: Number>(
        py: Python<'py>,
        object: &str,
        arguments: &Bound<'py, PyTuple>,
        (saved, ct): (Optional<'_, 'py>, Any<'_, 'py>),
        bars: &Bound<'py, PyTuple>,
        place: Place,
    ) -> PyResult<()> {
        let arguments = Arguments::<T>::new(object, arguments)?;
        let mut bars = Bars::new(object, &arguments, bars)?;
        let (given, mut bars) = (arguments.given(), bars.view());
        let operator = place.of(object, view(object, &given)).map_err(exception)?;
        let (p, q) = operator.shape();
        let saved = saved.map(|saved| Input::new("saved", saved)).transpose()?;
        let ct = Input::shaped("ct", ct, &[operator.batch(), p, q])?;
        let (saved, ct) = (saved.as_ref().map(Input::slice), ct.slice());
        gate::run(py, || operator.matrix_vjp(saved, ct, &mut bars, &Budget::of(place.threads())))
    }
    by_kind!("ct", &ct, call(py, object, &arguments, (saved.as_ref(), &ct), &bars, place))
}

/// W x, or W^H x if `adjoint`, for rows x, and with `save` what the gradient would compute again.
#[pyfunction]
pub fn operator_apply<'py>(
    py: Python<'py>,
    object: &str,
    arguments: Bound<'py, PyTuple>,
    x: Bound<'py, PyAny>,
    out: Bound<'py, PyAny>,
    adjoint: bool,
    save: bool,
    place: Place,
) -> PyResult<Saved<'py>> {
    fn call<'py, T: Number>(
        py: Python<'py>,
        object: &str,
        arguments: &Bound<'py, PyTuple>,
        (x, to): (Any<'_, 'py>, Any<'_, 'py>),
        (side, save): (Side, bool),
        place: Place,
    ) -> PyResult<Saved<'py>> {
        let arguments = Arguments::<T>::new(object, arguments)?;
        let given = arguments.given();
        let operator = place.of(object, view(object, &given)).map_err(exception)?;
        let x = Input::new("x", x)?;
        let rows = rows(&x, &*operator, side)?;
        let mut out = Output::shaped("out", to, &mapped(&x, &*operator, side))?;
        let saves = operator.apply_saves(rows, side);
        let (saved, mut kept) = room::<T>(py, save, saves, operator.batch(), to)?;
        let (x, out, kept) = (x.slice(), out.slice(), kept.as_mut().map(Output::slice));
        gate::run(py, || operator.apply(x, rows, side, out, kept, &Budget::of(place.threads())))?;
        Ok(saved)
    }
    by_kind!("x", &x, call(py, object, &arguments, (&x, &out), (side(adjoint), save), place))
}

/// Gradients of the arguments and of x from the cotangent of W x (or W^H x), and from what it saved, if it did.
#[pyfunction]
pub fn operator_apply_vjp<'py>(
    py: Python<'py>,
    object: &str,
    arguments: Bound<'py, PyTuple>,
    saved: Option<Bound<'py, PyAny>>,
    x: Bound<'py, PyAny>,
    ct: Bound<'py, PyAny>,
    bars: Bound<'py, PyTuple>,
    x_bar: Option<Bound<'py, PyAny>>,
    adjoint: bool,
    place: Place,
) -> PyResult<()> {
    fn call<'py, T: Number>(
        py: Python<'py>,
        object: &str,
        arguments: &Bound<'py, PyTuple>,
        (saved, x, ct): (Optional<'_, 'py>, Any<'_, 'py>, Any<'_, 'py>),
        (bars, x_bar): (&Bound<'py, PyTuple>, Optional<'_, 'py>),
        side: Side,
        place: Place,
    ) -> PyResult<()> {
        let arguments = Arguments::<T>::new(object, arguments)?;
        let mut bars = Bars::new(object, &arguments, bars)?;
        let (given, mut bars) = (arguments.given(), bars.view());
        let operator = place.of(object, view(object, &given)).map_err(exception)?;
        let x = Input::new("x", x)?;
        let rows = rows(&x, &*operator, side)?;
        let saved = saved.map(|saved| Input::new("saved", saved)).transpose()?;
        let ct = Input::shaped("ct", ct, &mapped(&x, &*operator, side))?;
        let mut x_bar = x_bar.map(|x_bar| Output::shaped("x_bar", x_bar, x.shape())).transpose()?;
        let (saved, x, ct) = (saved.as_ref().map(Input::slice), x.slice(), ct.slice());
        let x_bar = x_bar.as_mut().map(Output::slice);
        let budget = Budget::of(place.threads());
        gate::run(py, || operator.apply_vjp(saved, x, ct, rows, side, &mut bars, x_bar, &budget))
    }
    let arrays = (saved.as_ref(), &x, &ct);
    let bars = (&bars, x_bar.as_ref());
    by_kind!("x", &x, call(py, object, &arguments, arrays, bars, side(adjoint), place))
}

/// Refuses values that the law of the object forbids, each array by itself, whatever its batch; NaN passes.
#[pyfunction]
pub fn operator_check(object: &str, arguments: Bound<'_, PyTuple>) -> PyResult<()> {
    fn call<T: Number>(object: &str, arguments: &Bound<'_, PyTuple>) -> PyResult<()> {
        let borrowed = Arguments::<T>::new(object, arguments)?;
        let given = borrowed.given();
        gate::run(arguments.py(), || check_values(object, &given))
    }
    // Integers alone fit matrices of any type.
    let Ok(deciding) = first(object, &arguments) else { return call::<f64>(object, &arguments) };
    by_kind!("arguments", &deciding, call(object, &arguments))
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
        let row = |a: &Argument| named.call1((a.name, a.axes, a.kind.name(), a.trained, a.group, a.list));
        table
            .set_item(object, PyTuple::new(py, arguments.iter().map(row).collect::<PyResult<Vec<_>>>()?)?)?;
    }
    module.add("Argument", named)?;
    module.add("OBJECTS", table)
}
