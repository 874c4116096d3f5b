//! Tensors of a framework with DLPack's C exchange (torch from 2.10 on): reading the address and sizes of one takes some
//! 50 ns, a NumPy view of it 1.5 us in Python.
//!
//! <https://dmlc.github.io/dlpack/latest/python_spec.html>: the type has an attribute `__dlpack_c_exchange_api__`, a capsule
//! that holds a table of functions.
//!
//! Another thread may give a tensor another storage while a call computes (`set_()`, an assignment to `data`); neither the object
//! nor a managed DLPack tensor keeps the old one alive, so a call holds the storage itself (40 ns). Resizing
//! a storage in place (`resize_()`) frees memory that others hold: as with torch's own operations, the caller
//! must not do that during a call.

use crate::dtype::Dtype;
use crate::error::layout;
use crate::place::Place;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use std::ffi::{c_int, c_void};

const NAME: &std::ffi::CStr = c"dlpack_exchange_api";
/// The version of the tables below.
const MAJOR: u32 = 1;
const CPU: i32 = 1;
const INTEGER: u8 = 0;
const FLOAT: u8 = 2;
const COMPLEX: u8 = 5;

#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    rank: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *const i64,
    strides: *const i64,
    offset: u64,
}

#[repr(C)]
struct Table {
    major: u32,
    minor: u32,
    previous: *const Table,
    allocate: *const c_void,
    managed_from_object: *const c_void,
    managed_to_object: *const c_void,
    /// Fills a view; the object keeps ownership.
    view: Option<unsafe extern "C" fn(*mut ffi::PyObject, *mut DlTensor) -> c_int>,
    stream: *const c_void,
}

struct Exchange {
    kind: Py<PyType>,
    /// The method that returns the storage of a tensor.
    storage: Py<PyAny>,
    view: unsafe extern "C" fn(*mut ffi::PyObject, *mut DlTensor) -> c_int,
}

static EXCHANGE: PyOnceLock<Exchange> = PyOnceLock::new();

/// From now on accepts objects of this type as arrays; returns whether the type supports it. The caller guarantees that
/// no other thread writes to them during a call.
#[pyfunction]
pub fn exchange_with(kind: Bound<'_, PyType>) -> PyResult<bool> {
    let py = kind.py();
    let known = |known: &Exchange| known.kind.bind(py).is(&kind);
    if let Some(exchange) = EXCHANGE.get(py) {
        return Ok(known(exchange));
    }
    let Ok(capsule) = kind.getattr("__dlpack_c_exchange_api__") else { return Ok(false) };
    // SAFETY: the name is checked; the table lives as long as the process (DLPack's contract).
    let mut table =
        unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), NAME.as_ptr()) }.cast::<Table>().cast_const();
    if table.is_null() {
        drop(PyErr::take(py));
        return Ok(false);
    }
    // SAFETY: every version of the table starts with its version and a pointer to the table of an older one, or null.
    let view = unsafe {
        while (*table).major != MAJOR {
            table = (*table).previous;
            if table.is_null() {
                return Ok(false);
            }
        }
        (*table).view
    };
    let (Some(view), Ok(storage)) = (view, kind.getattr("untyped_storage")) else { return Ok(false) };
    let storage = storage.unbind();
    Ok(known(EXCHANGE.get_or_init(py, || Exchange { kind: kind.clone().unbind(), storage, view })))
}

/// The exchange, if the object is a tensor. Its own type decides: `isinstance` also believes an attribute `__class__`.
fn exchange<'py>(object: &Bound<'py, PyAny>) -> Option<&'py Exchange> {
    let exchange = EXCHANGE.get(object.py())?;
    let kind = exchange.kind.bind(object.py()).as_type_ptr();
    // SAFETY: an object and a type.
    (unsafe { ffi::PyObject_TypeCheck(object.as_ptr(), kind) } != 0).then_some(exchange)
}

/// A contiguous tensor on the CPU.
pub struct Tensor<'py> {
    pub data: *mut c_void,
    pub dtype: Option<Dtype>,
    pub shape: Vec<usize>,
    /// Keeps the memory alive.
    pub storage: Bound<'py, PyAny>,
}

/// The tensor, if the object is one. No other thread can replace its memory while a call keeps the interpreter's lock.
pub fn tensor<'py>(
    place: Place,
    argument: &str,
    object: &Bound<'py, PyAny>,
) -> PyResult<Option<Tensor<'py>>> {
    let Some(exchange) = exchange(object) else { return Ok(None) };
    let mut view = viewed(argument, object, exchange)?;
    if let Place::Here = place {
        let (data, shape) = contiguous(argument, &view)?;
        return Ok(Some(Tensor { data, dtype: element(&view), shape, storage: object.clone() }));
    }
    loop {
        let storage = exchange.storage.bind(object.py()).call1((object,))?;
        let again = viewed(argument, object, exchange)?;
        // else another thread has given it another storage meanwhile: which of the two was taken is unknown
        if again.data == view.data {
            let (data, shape) = contiguous(argument, &again)?;
            return Ok(Some(Tensor { data, dtype: element(&again), shape, storage }));
        }
        view = again;
    }
}

/// Whether threads of Python wait for one another: not where the interpreter has no lock.
pub fn locks(py: Python<'_>) -> bool {
    static LOCKS: PyOnceLock<bool> = PyOnceLock::new();
    let ask = || py.import("sys")?.call_method0("_is_gil_enabled")?.extract();
    *LOCKS.get_or_init(py, || ask().unwrap_or(true))
}

/// The element type of a tensor, if the object is one; None inside where no kernel has it.
pub fn dtype_of(argument: &str, object: &Bound<'_, PyAny>) -> PyResult<Option<Option<Dtype>>> {
    let Some(exchange) = exchange(object) else { return Ok(None) };
    viewed(argument, object, exchange).map(|view| Some(element(&view)))
}

fn viewed(argument: &str, object: &Bound<'_, PyAny>, exchange: &Exchange) -> PyResult<DlTensor> {
    let py = object.py();
    let mut view = std::mem::MaybeUninit::<DlTensor>::uninit();
    // SAFETY: the function belongs to the type of the object; on success it has filled the view.
    let view = unsafe {
        if (exchange.view)(object.as_ptr(), view.as_mut_ptr()) != 0 {
            return Err(PyErr::take(py)
                .unwrap_or_else(|| PyValueError::new_err(format!("{argument}: no DLPack view"))));
        }
        view.assume_init()
    };
    if view.device_type != CPU {
        return Err(PyTypeError::new_err(format!("{argument}: expected a tensor on the CPU")));
    }
    Ok(view)
}

fn element(view: &DlTensor) -> Option<Dtype> {
    match (view.code, view.bits, view.lanes) {
        (FLOAT, 32, 1) => Some(Dtype::F32),
        (FLOAT, 64, 1) => Some(Dtype::F64),
        (COMPLEX, 64, 1) => Some(Dtype::C32),
        (COMPLEX, 128, 1) => Some(Dtype::C64),
        (INTEGER, 64, 1) => Some(Dtype::I64),
        _ => None,
    }
}

/// Address and sizes of a tensor, refused if it is not in C order.
fn contiguous(argument: &str, view: &DlTensor) -> PyResult<(*mut c_void, Vec<usize>)> {
    let rank = usize::try_from(view.rank).unwrap_or(0);
    // SAFETY: `rank` numbers owned by the object.
    let shape: Vec<usize> =
        (0..rank).map(|i| usize::try_from(unsafe { *view.shape.add(i) }).unwrap_or(0)).collect();
    let mut stride = 1;
    for (i, &size) in shape.iter().enumerate().rev() {
        // SAFETY: as above; null strides mean C order.
        let found = if view.strides.is_null() { stride } else { unsafe { *view.strides.add(i) } };
        if size > 1 && found != stride && !shape.contains(&0) {
            return Err(layout(argument));
        }
        stride = stride.saturating_mul(i64::try_from(size).unwrap_or(i64::MAX));
    }
    let data = view.data.cast::<u8>().wrapping_add(usize::try_from(view.offset).unwrap_or(0)).cast();
    Ok((data, shape))
}
