//! NumPy arrays and tensors <-> slices. An argument must be C-contiguous, aligned and of the call's element type, else
//! the call raises. If the shape starts with a batch axis, an array without it is a batch of one.

use crate::dtype::{Dtype, Typed};
use crate::error::{exception, layout};
use crate::place::Place;
use crate::ranges::Claim;
#[cfg(feature = "gpu")]
pub use crate::resident::dtype_of as resident_dtype;
#[cfg(feature = "gpu")]
use crate::resident::{GpuArray, resident};
use crate::tensors::{self, Tensor, tensor};
use isometry_core::argument::{Array, Bar, Given, Remote};
use isometry_core::internal::sizes::size;
use isometry_core::scalar::{Scalar, c32, c64};
use isometry_core::{Error, Result};
use numpy::npyffi::{PY_ARRAY_API, npy_intp};
use numpy::{Element, PyReadonlyArrayDyn, PyReadwriteArrayDyn, PyUntypedArray, PyUntypedArrayMethods, dtype};
use numpy::{PyArrayDescrMethods, PyArrayDyn, PyArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

/// An array of the caller.
pub type Any<'py> = Bound<'py, PyAny>;
/// An array of the caller, or None.
pub type Optional<'py> = Option<Any<'py>>;

/// An element type of both NumPy and the core.
pub trait Number: Scalar<Real: Typed> + Typed {}
impl<T: Scalar<Real: Typed> + Typed> Number for T {}

/// The element type of an array.
pub fn dtype_of(argument: &str, array: &Bound<'_, PyAny>) -> PyResult<Dtype> {
    let expected = "float32, float64, complex64 or complex128";
    let Ok(untyped) = array.cast::<PyUntypedArray>() else {
        return match tensors::dtype_of(argument, array)? {
            Some(Some(found)) if found != Dtype::I64 => Ok(found),
            Some(_) => Err(PyTypeError::new_err(format!("{argument}: expected a tensor of {expected}"))),
            None => resident_dtype(array).ok_or_else(|| {
                let found = name_of_type(array);
                PyTypeError::new_err(format!("{argument}: expected a NumPy array, got {found}"))
            }),
        };
    };
    let (py, found) = (array.py(), untyped.dtype());
    if found.is_equiv_to(&dtype::<f32>(py)) {
        Ok(Dtype::F32)
    } else if found.is_equiv_to(&dtype::<f64>(py)) {
        Ok(Dtype::F64)
    } else if found.is_equiv_to(&dtype::<c32>(py)) {
        Ok(Dtype::C32)
    } else if found.is_equiv_to(&dtype::<c64>(py)) {
        Ok(Dtype::C64)
    } else {
        Err(PyTypeError::new_err(format!("{argument}: expected an array of {expected}, got {found}")))
    }
}

/// Runs `$body`, in which `$T` is the element type of `$array` (named `$argument`), and `$py` if wanted its interpreter.
#[macro_export]
macro_rules! by_dtype {
    ($argument:literal, $array:expr, $T:ident, $py:ident => $body:block) => {{
        let $py = ($array).py();
        $crate::by_dtype!($argument, $array, $T => $body)
    }};
    ($argument:literal, $array:expr, $T:ident => $body:block) => {
        match $crate::arrays::dtype_of($argument, $array)? {
            $crate::dtype::Dtype::F32 => $crate::arrays::with!($T, f32, $body),
            $crate::dtype::Dtype::F64 => $crate::arrays::with!($T, f64, $body),
            $crate::dtype::Dtype::C32 => $crate::arrays::with!($T, isometry_core::scalar::c32, $body),
            $crate::dtype::Dtype::C64 => $crate::arrays::with!($T, isometry_core::scalar::c64, $body),
            $crate::dtype::Dtype::I64 => Err($crate::arrays::integers($argument)),
        }
    };
}

/// [`by_dtype`] for calls of real numbers.
#[macro_export]
macro_rules! by_real {
    ($argument:literal, $array:expr, $T:ident, $py:ident => $body:block) => {{
        let $py = ($array).py();
        $crate::by_real!($argument, $array, $T => $body)
    }};
    ($argument:literal, $array:expr, $T:ident => $body:block) => {
        match $crate::arrays::dtype_of($argument, $array)? {
            $crate::dtype::Dtype::F32 => $crate::arrays::with!($T, f32, $body),
            $crate::dtype::Dtype::F64 => $crate::arrays::with!($T, f64, $body),
            _ => Err(pyo3::exceptions::PyTypeError::new_err(concat!($argument, ": expected real numbers"))),
        }
    };
}

macro_rules! with {
    ($T:ident, $type:ty, $body:block) => {{
        type $T = $type;
        $body
    }};
}
pub(crate) use with;

/// Integers do not determine the element type.
pub fn integers(argument: &str) -> PyErr {
    PyTypeError::new_err(format!("{argument}: expected an array of floating or complex numbers"))
}

/// Without the GPU there are no arrays there.
#[cfg(not(feature = "gpu"))]
pub fn resident_dtype(_: &Any<'_>) -> Option<Dtype> {
    None
}

fn name_of_type(array: &Bound<'_, PyAny>) -> String {
    array.get_type().name().map_or_else(|_| "an object".into(), |name| name.to_string())
}

fn typed<'a, 'py, T: Element>(
    argument: &str,
    array: &'a Bound<'py, PyAny>,
) -> PyResult<&'a Bound<'py, PyArrayDyn<T>>> {
    array.cast::<PyArrayDyn<T>>().map_err(|_| {
        if resident_dtype(array).is_some() {
            let text = "it is in the memory of the GPU: call with backend='gpu', or download() it";
            return PyTypeError::new_err(format!("{argument}: {text}"));
        }
        let found = array.getattr("dtype").map_or_else(|_| name_of_type(array), |found| found.to_string());
        PyTypeError::new_err(format!(
            "{argument}: expected an array of {}, got {found}",
            dtype::<T>(array.py())
        ))
    })
}

/// The elements of a tensor of the right type.
pub fn elements<T: Typed>(argument: &'static str, tensor: &Tensor<'_>) -> PyResult<*mut [T]> {
    if tensor.dtype != Some(T::DTYPE) {
        return Err(PyTypeError::new_err(format!("{argument}: expected a tensor of {}", T::NAME)));
    }
    let (data, len) = (tensor.data.cast::<T>(), size(argument, &tensor.shape).map_err(exception)?);
    if len == 0 {
        return Ok(std::ptr::slice_from_raw_parts_mut(std::ptr::dangling_mut(), 0));
    }
    if data.is_null() || !data.is_aligned() {
        return Err(layout(argument));
    }
    Ok(std::ptr::slice_from_raw_parts_mut(data, len))
}

/// An array that the call reads.
pub type Input<'py, T> = View<'py, T, false>;
/// An array that the call overwrites.
pub type Output<'py, T> = View<'py, T, true>;

/// An array of the caller, which is `WRITTEN` or only read.
pub struct View<'py, T: Element, const WRITTEN: bool> {
    data: *mut [T],
    pub shape: Vec<usize>,
    _claim: Claim,
    /// Keeps the memory alive, and from being written by NumPy, or used at all.
    _array: Held<'py, T>,
}

/// The owner of the memory.
#[allow(dead_code, reason = "most are held, never looked at")]
enum Held<'py, T: Element> {
    Read(PyReadonlyArrayDyn<'py, T>),
    Written(PyReadwriteArrayDyn<'py, T>),
    Storage(Bound<'py, PyAny>),
    #[cfg(feature = "gpu")]
    Resident(Bound<'py, GpuArray>),
}

impl<'py, T: Typed, const WRITTEN: bool> View<'py, T, WRITTEN> {
    /// Borrows the array.
    pub fn new(argument: &'static str, array: &Bound<'py, PyAny>) -> PyResult<Self> {
        Self::at(Place::Threads(1), argument, array)
    }

    /// Borrows the array, which may be on the GPU, or room for one there, if the call is there.
    pub fn at(place: Place, argument: &'static str, array: &Bound<'py, PyAny>) -> PyResult<Self> {
        let claim = |data: *mut [T]| Claim::of(argument, data, WRITTEN);
        #[cfg(feature = "gpu")]
        if let Some(array) = resident::<T>(place, argument, array)? {
            let data: *mut [T] = &mut [];
            let shape = array.get().0.shape().to_vec();
            return Ok(View { data, shape, _claim: claim(data)?, _array: Held::Resident(array) });
        }
        if let Some(tensor) = tensor(place, argument, array)? {
            let data = elements::<T>(argument, &tensor)?;
            let _array = Held::Storage(tensor.storage);
            return Ok(View { data, shape: tensor.shape, _claim: claim(data)?, _array });
        }
        let typed = typed::<T>(argument, array)?;
        if !typed.is_c_contiguous() {
            return Err(layout(argument));
        }
        let (shape, unaligned) = (typed.shape().to_vec(), |_| layout(argument));
        let busy = |error| PyValueError::new_err(format!("{argument}: {error}"));
        if WRITTEN {
            // first: its message names both arrays
            let _claim = claim(std::ptr::slice_from_raw_parts_mut(typed.data(), typed.len()))?;
            let mut array = typed.try_readwrite().map_err(busy)?;
            let data: *mut [T] = array.as_slice_mut().map_err(unaligned)?;
            return Ok(View { data, shape, _claim, _array: Held::Written(array) });
        }
        let array = typed.try_readonly().map_err(busy)?;
        let data = std::ptr::from_ref(array.as_slice().map_err(unaligned)?).cast_mut();
        Ok(View { data, shape, _claim: claim(data)?, _array: Held::Read(array) })
    }

    /// Borrows the array and checks its shape.
    pub fn shaped(argument: &'static str, array: &Bound<'py, PyAny>, shape: &[usize]) -> PyResult<Self> {
        let view = Self::new(argument, array)?;
        fits(argument, &view.shape, shape).map_err(exception)?;
        Ok(view)
    }

    /// [`View::shaped`] of an argument that may be None, as is that of a gradient that is not requested.
    pub fn optional(
        argument: &'static str,
        array: Option<&Bound<'py, PyAny>>,
        shape: &[usize],
    ) -> PyResult<Option<Self>> {
        array.map(|array| Self::shaped(argument, array, shape)).transpose()
    }
}

impl<T: Element, const WRITTEN: bool> View<'_, T, WRITTEN> {
    /// Sizes of the axes.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Sizes of exactly N axes, the first of which is a batch.
    pub fn sizes<const N: usize>(&self, argument: &str) -> PyResult<[usize; N]> {
        let mut sizes = [1; N];
        let lacking = N.checked_sub(self.shape.len()).filter(|&lacking| lacking <= 1);
        let Some(lacking) = lacking else {
            return Err(PyValueError::new_err(format!(
                "{argument}: expected {N} dimensions, got shape {:?}",
                self.shape
            )));
        };
        sizes[lacking..].copy_from_slice(&self.shape);
        Ok(sizes)
    }

    /// The array, if it is on the GPU.
    pub fn remote(&self) -> Option<Remote<'_>> {
        match &self._array {
            #[cfg(feature = "gpu")]
            Held::Resident(array) => Some(&array.get().0),
            _ => None,
        }
    }
}

impl<T: Element> Input<'_, T> {
    /// The elements in C order; none of an array of the GPU.
    pub fn slice(&self) -> &[T] {
        // SAFETY: contiguity and alignment were checked when the array was borrowed, and it, or the storage of the tensor, is
        // still held; no output of the thread overlaps it.
        unsafe { &*self.data }
    }
}

impl<T: Number> Input<'_, T> {
    /// The array in the form of the core, of the type of the matrix.
    pub fn given(&self) -> Given<'_, T> {
        let array = self.remote().map_or_else(|| Array::Own(self.slice()), Array::Remote);
        Given { shape: self.shape(), array }
    }
}

impl<T: Element + Copy> Input<'_, T> {
    /// A copy of the elements, for values that are checked before they are used: another thread may write to the array.
    pub fn copied<R>(&self, convert: impl Fn(T) -> PyResult<R>) -> PyResult<Vec<R>> {
        let (given, mut copy) = (self.slice(), Vec::new());
        let lack = |_| exception(Error::OutOfMemory { bytes: given.len().saturating_mul(size_of::<R>()) });
        copy.try_reserve_exact(given.len()).map_err(lack)?;
        for &element in given {
            copy.push(convert(element)?);
        }
        Ok(copy)
    }
}

impl<T: Number> Output<'_, T> {
    /// The array in the form of the core, of the type of the matrix, and its sizes.
    pub fn bar(&mut self) -> (Bar<'_, T>, &[usize]) {
        let (own, remote, shape) = self.pieces();
        (remote.map_or_else(|| Bar::Own(own), Bar::Remote), shape)
    }
}

impl<T: Element> Output<'_, T> {
    /// The array in the form of the core, real in a call of T.
    pub fn real<C: Scalar<Real = T>>(&mut self) -> Bar<'_, C> {
        let (own, remote, _) = self.pieces();
        remote.map_or_else(|| Bar::Real(own), Bar::Remote)
    }

    /// The elements in C order.
    pub fn slice(&mut self) -> &mut [T] {
        self.pieces().0
    }

    fn pieces(&mut self) -> (&mut [T], Option<Remote<'_>>, &[usize]) {
        // SAFETY: as for an input; other threads are excluded by NumPy's borrow, for a tensor by the caller of the extension.
        (unsafe { &mut *self.data }, self.remote(), &self.shape)
    }
}

/// An uninitialised array, like NumPy's `empty`.
pub fn empty<'py, T: Element>(py: Python<'py>, shape: &[usize]) -> PyResult<Bound<'py, PyAny>> {
    let mut sizes =
        shape.iter().map(|&size| npy_intp::try_from(size)).collect::<std::result::Result<Vec<_>, _>>()?;
    // SAFETY: as many sizes as axes; the call takes over the reference to the dtype.
    unsafe {
        let dtype = dtype::<T>(py).into_dtype_ptr();
        let array = PY_ARRAY_API.PyArray_Empty(py, sizes.len() as i32, sizes.as_mut_ptr(), dtype, 0);
        Bound::from_owned_ptr_or_err(py, array)
    }
}

/// The slice of an optional input.
pub fn read<'a, T: Element>(input: &'a Option<Input<'_, T>>) -> Option<&'a [T]> {
    input.as_ref().map(Input::slice)
}

/// The slice of an optional output.
pub fn write<'a, T: Element>(output: &'a mut Option<Output<'_, T>>) -> Option<&'a mut [T]> {
    output.as_mut().map(Output::slice)
}

/// Refuses any shape but the expected one; if that starts with a batch of one, the axis may be missing.
pub fn fits(argument: &'static str, found: &[usize], expected: &[usize]) -> Result<()> {
    if found == expected || (expected.first() == Some(&1) && found == &expected[1..]) {
        return Ok(());
    }
    Err(Error::shape(argument, format!("shape {expected:?}"), format!("{found:?}")))
}
