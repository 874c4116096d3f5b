//! NumPy arrays <-> slices. An argument is C-contiguous, aligned and of the call's element type, or the call is refused.

use isometry_core::scalar::Scalar;
use numpy::{Element, PyReadonlyArrayDyn, PyReadwriteArrayDyn, PyUntypedArray, PyUntypedArrayMethods, dtype};
use numpy::{PyArrayDescrMethods, PyArrayDyn, PyArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

/// An element type on both sides of the seam.
pub trait Number: Scalar<Real: Element> + Element {}
impl<T: Scalar<Real: Element> + Element> Number for T {}

/// The four element types, by the array that decides them.
#[derive(Clone, Copy)]
pub enum Kind {
    /// float32
    F32,
    /// float64
    F64,
    /// complex64
    C32,
    /// complex128
    C64,
}

/// Which of the four element types an array has.
pub fn kind(argument: &str, array: &Bound<'_, PyAny>) -> PyResult<Kind> {
    let untyped = array.cast::<PyUntypedArray>().map_err(|_| {
        PyTypeError::new_err(format!("{argument}: expected a NumPy array, got {}", name_of_type(array)))
    })?;
    let (py, found) = (array.py(), untyped.dtype());
    if found.is_equiv_to(&dtype::<f32>(py)) {
        Ok(Kind::F32)
    } else if found.is_equiv_to(&dtype::<f64>(py)) {
        Ok(Kind::F64)
    } else if found.is_equiv_to(&dtype::<isometry_core::scalar::c32>(py)) {
        Ok(Kind::C32)
    } else if found.is_equiv_to(&dtype::<isometry_core::scalar::c64>(py)) {
        Ok(Kind::C64)
    } else {
        let expected = "float32, float64, complex64 or complex128";
        Err(PyTypeError::new_err(format!("{argument}: expected an array of {expected}, got {found}")))
    }
}

/// Calls `$f::<T>(...)` with the element type of `$array` (named `$argument`).
#[macro_export]
macro_rules! by_kind {
    ($argument:literal, $array:expr, $f:ident ( $($arg:expr),* $(,)? )) => {
        match $crate::arrays::kind($argument, $array)? {
            $crate::arrays::Kind::F32 => $f::<f32>($($arg),*),
            $crate::arrays::Kind::F64 => $f::<f64>($($arg),*),
            $crate::arrays::Kind::C32 => $f::<isometry_core::scalar::c32>($($arg),*),
            $crate::arrays::Kind::C64 => $f::<isometry_core::scalar::c64>($($arg),*),
        }
    };
}

fn name_of_type(array: &Bound<'_, PyAny>) -> String {
    array.get_type().name().map_or_else(|_| "an object".into(), |name| name.to_string())
}

fn typed<'a, 'py, T: Element>(
    argument: &str,
    array: &'a Bound<'py, PyAny>,
) -> PyResult<&'a Bound<'py, PyArrayDyn<T>>> {
    array.cast::<PyArrayDyn<T>>().map_err(|_| {
        let found = array.getattr("dtype").map_or_else(|_| name_of_type(array), |found| found.to_string());
        PyTypeError::new_err(format!(
            "{argument}: expected an array of {}, got {found}",
            dtype::<T>(array.py())
        ))
    })
}

fn layout(argument: &str) -> PyErr {
    PyValueError::new_err(format!("{argument}: expected a C-contiguous, aligned array"))
}

/// An array that the call reads.
pub struct Input<'py, T: Element>(PyReadonlyArrayDyn<'py, T>);

impl<'py, T: Element> Input<'py, T> {
    /// Borrows the array.
    pub fn new(argument: &str, array: &Bound<'py, PyAny>) -> PyResult<Self> {
        let typed = typed::<T>(argument, array)?;
        if !typed.is_c_contiguous() {
            return Err(layout(argument));
        }
        let input =
            typed.try_readonly().map_err(|error| PyValueError::new_err(format!("{argument}: {error}")))?;
        input.as_slice().map_err(|_| layout(argument))?;
        Ok(Input(input))
    }

    /// Borrows the array and checks its shape.
    pub fn shaped(argument: &str, array: &Bound<'py, PyAny>, shape: &[usize]) -> PyResult<Self> {
        let input = Self::new(argument, array)?;
        expect(argument, input.shape(), shape)?;
        Ok(input)
    }

    /// [`Input::shaped`] of an argument that may be None.
    pub fn optional(
        argument: &str,
        array: Option<&Bound<'py, PyAny>>,
        shape: &[usize],
    ) -> PyResult<Option<Self>> {
        array.map(|array| Self::shaped(argument, array, shape)).transpose()
    }

    /// Sizes of the axes.
    pub fn shape(&self) -> &[usize] {
        self.0.shape()
    }

    /// Sizes of exactly N axes.
    pub fn sizes<const N: usize>(&self, argument: &str) -> PyResult<[usize; N]> {
        self.shape().try_into().map_err(|_| {
            PyValueError::new_err(format!(
                "{argument}: expected {N} dimensions, got shape {:?}",
                self.shape()
            ))
        })
    }

    /// The elements in C order.
    pub fn slice(&self) -> &[T] {
        // Contiguity was checked when the array was borrowed; an empty slice only ever stands for an empty array.
        self.0.as_slice().unwrap_or(&[])
    }
}

/// An array that the call overwrites.
pub struct Output<'py, T: Element>(PyReadwriteArrayDyn<'py, T>);

impl<'py, T: Element> Output<'py, T> {
    /// Borrows the array for writing and checks its shape.
    pub fn shaped(argument: &str, array: &Bound<'py, PyAny>, shape: &[usize]) -> PyResult<Self> {
        let typed = typed::<T>(argument, array)?;
        expect(argument, typed.shape(), shape)?;
        if !typed.is_c_contiguous() {
            return Err(layout(argument));
        }
        let mut output =
            typed.try_readwrite().map_err(|error| PyValueError::new_err(format!("{argument}: {error}")))?;
        output.as_slice_mut().map_err(|_| layout(argument))?;
        Ok(Output(output))
    }

    /// [`Output::shaped`] of an argument that may be None: a gradient that nobody wants.
    pub fn optional(
        argument: &str,
        array: Option<&Bound<'py, PyAny>>,
        shape: &[usize],
    ) -> PyResult<Option<Self>> {
        array.map(|array| Self::shaped(argument, array, shape)).transpose()
    }

    /// The elements in C order.
    pub fn slice(&mut self) -> &mut [T] {
        self.0.as_slice_mut().unwrap_or(&mut [])
    }
}

/// Whether every number of the array is finite.
#[pyfunction]
pub fn all_finite(array: Bound<'_, PyAny>) -> PyResult<bool> {
    fn call<T: Number>(array: &Bound<'_, PyAny>) -> PyResult<bool> {
        let input = Input::<T>::new("array", array)?;
        let numbers = input.slice();
        crate::gate::run(array.py(), || Ok(isometry_core::scalar::all_finite(numbers)))
    }
    by_kind!("array", &array, call(&array))
}

/// The slice of an optional input.
pub fn read<'a, T: Element>(input: &'a Option<Input<'_, T>>) -> Option<&'a [T]> {
    input.as_ref().map(Input::slice)
}

/// The slice of an optional output.
pub fn write<'a, T: Element>(output: &'a mut Option<Output<'_, T>>) -> Option<&'a mut [T]> {
    output.as_mut().map(Output::slice)
}

fn expect(argument: &str, found: &[usize], expected: &[usize]) -> PyResult<()> {
    if found == expected {
        Ok(())
    } else {
        Err(PyValueError::new_err(format!("{argument}: expected shape {expected:?}, got {found:?}")))
    }
}
