//! Where a call computes: on threads of the CPU, or on the GPU.

use crate::detached;
use isometry_core::argument::Bar;
use isometry_core::recurrence::gru::{self, Gru, GruGradients};
use isometry_core::recurrence::lstm::{self, Lstm, LstmGradients};
use isometry_core::recurrence::rum::{self, Outcome, Rum, RumGradients};
use isometry_core::recurrence::{self, Cotangent, Gradients, Sequence, Trajectory, Written};
use isometry_core::scalar::{Real, Scalar};
use isometry_core::{Budget, Cpu, Result};
#[cfg(feature = "gpu")]
use isometry_gpu::hosted::{
    gated, lstm as hosted_lstm,
    recurrence::{self as hosted, Member, Pull},
    rum as hosted_rum,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// The last argument of a call: a number of threads, or "gpu".
#[derive(Clone, Copy)]
pub enum Place {
    /// Threads of the CPU.
    Threads(usize),
    /// The GPU.
    Gpu,
}

impl<'a, 'py> FromPyObject<'a, 'py> for Place {
    type Error = PyErr;

    fn extract(place: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let Ok(name) = place.cast::<PyString>() else { return Ok(Place::Threads(place.extract()?)) };
        match &*name.to_cow()? {
            "gpu" => Ok(Place::Gpu),
            other => Err(PyValueError::new_err(format!(
                "place: expected a number of threads or 'gpu', got {other:?}"
            ))),
        }
    }
}

impl Place {
    /// The number of threads; on the GPU, for the parts that the CPU computes.
    pub fn threads(self) -> usize {
        match self {
            Place::Threads(threads) => threads,
            Place::Gpu => isometry_core::internal::parallel::available(),
        }
    }

    /// Runs a call detached from the interpreter. A wait for the GPU can be interrupted; an operator's call on the CPU is
    /// short.
    pub fn run<R: Send>(
        self,
        py: Python<'_>,
        f: impl FnOnce(&Budget<'_>) -> Result<R> + Send,
    ) -> PyResult<R> {
        let threads = self.threads();
        match self {
            Place::Threads(_) => detached::run(py, || f(&Budget::of(threads))),
            Place::Gpu => detached::run_interruptible(py, |cancel| f(&Budget { threads, cancel })),
        }
    }

    /// The operator at that place.
    pub fn of<'a, T: Scalar>(
        self,
        object: &'a str,
        operator: Result<Box<dyn Cpu<T> + 'a>>,
    ) -> Result<Box<dyn Cpu<T> + 'a>> {
        match self {
            Place::Threads(_) => operator,
            #[cfg(feature = "gpu")]
            Place::Gpu => Ok(Box::new(isometry_gpu::hosted::Hosted::new(object, operator?)?)),
            #[cfg(not(feature = "gpu"))]
            Place::Gpu => Err(without(object)),
        }
    }

    /// Refuses marks on the GPU.
    fn unmarked<T: Scalar>(self, sequence: &Sequence<'_, T>) -> Result<()> {
        if matches!(self, Place::Gpu) && sequence.run.starts.is_some() {
            return Err(isometry_core::Error::Unsupported(
                "backend='gpu' cannot serve starts: use the CPU".into(),
            ));
        }
        Ok(())
    }

    /// The states of a recurrence.
    pub fn forward<T: Scalar>(
        self,
        object: &str,
        operator: Box<dyn Cpu<T> + '_>,
        sequence: &Sequence<'_, T>,
        written: Written<'_, T>,
        budget: &Budget<'_>,
    ) -> Result<()> {
        self.unmarked(sequence)?;
        match self {
            Place::Threads(_) => recurrence::forward(&*operator, sequence, written, budget),
            #[cfg(feature = "gpu")]
            Place::Gpu => {
                let results = all(written)?;
                hosted::forward(object, vec![Member { operator, sequence: *sequence, results }], budget)
            }
            #[cfg(not(feature = "gpu"))]
            Place::Gpu => Err(without(object)),
        }
    }

    /// The gradients of a recurrence, from (states, their cotangents).
    pub fn backward<T: Scalar>(
        self,
        object: &str,
        operator: Box<dyn Cpu<T> + '_>,
        bars: &mut [Bar<'_, T>],
        sequence: &Sequence<'_, T>,
        (states, ct): (Trajectory<'_, T>, Cotangent<'_, T>),
        gradients: Gradients<'_, T>,
        budget: &Budget<'_>,
    ) -> Result<()> {
        self.unmarked(sequence)?;
        match self {
            Place::Threads(_) => {
                recurrence::backward(&*operator, bars, sequence, states, ct, gradients, budget)
            }
            #[cfg(feature = "gpu")]
            Place::Gpu => {
                let (states, ct) = read(states, ct)?;
                let bars = bars.iter_mut().map(Bar::again).collect();
                let results = Pull { states, ct, bars, gradients };
                hosted::backward(object, vec![Member { operator, sequence: *sequence, results }], budget)
            }
            #[cfg(not(feature = "gpu"))]
            Place::Gpu => Err(without(object)),
        }
    }

    /// The states of a gated unit and, on the CPU, what is saved for backward.
    pub fn gru<R: Real>(
        self,
        gru: &Gru<'_, R>,
        written: Written<'_, R>,
        saved: Option<&mut [R]>,
        budget: &Budget<'_>,
    ) -> Result<()> {
        match self {
            Place::Threads(_) => gru::forward(gru, written, saved, budget),
            #[cfg(feature = "gpu")]
            Place::Gpu => gated::forward(gru, all(written)?, budget),
            #[cfg(not(feature = "gpu"))]
            Place::Gpu => Err(without("gru")),
        }
    }

    /// The gradients of a gated unit, from (states, what was saved, the cotangents of the states).
    pub fn gru_vjp<R: Real>(
        self,
        gru: &Gru<'_, R>,
        (states, saved, ct): (Trajectory<'_, R>, &[R], Cotangent<'_, R>),
        gradients: GruGradients<'_, R>,
        bars: &mut [Bar<'_, R>],
        budget: &Budget<'_>,
    ) -> Result<()> {
        match self {
            Place::Threads(_) => gru::backward(gru, states, saved, ct, gradients, bars, budget),
            #[cfg(feature = "gpu")]
            Place::Gpu => {
                let (states, ct) = read(states, ct)?;
                gated::backward(gru, states, ct, gradients, budget)
            }
            #[cfg(not(feature = "gpu"))]
            Place::Gpu => Err(without("gru")),
        }
    }

    /// The states of an LSTM and, on the CPU, what is saved for backward.
    pub fn lstm<R: Real>(
        self,
        lstm: &Lstm<'_, R>,
        written: Written<'_, R>,
        saved: Option<&mut [R]>,
        budget: &Budget<'_>,
    ) -> Result<()> {
        match self {
            Place::Threads(_) => lstm::forward(lstm, written, saved, budget),
            #[cfg(feature = "gpu")]
            Place::Gpu => hosted_lstm::forward(lstm, all(written)?, budget),
            #[cfg(not(feature = "gpu"))]
            Place::Gpu => Err(without("lstm")),
        }
    }

    /// The gradients of an LSTM, from (states, what was saved, the cotangents of the states).
    pub fn lstm_vjp<R: Real>(
        self,
        lstm: &Lstm<'_, R>,
        (states, saved, ct): (Trajectory<'_, R>, &[R], Cotangent<'_, R>),
        gradients: LstmGradients<'_, R>,
        budget: &Budget<'_>,
    ) -> Result<()> {
        match self {
            Place::Threads(_) => lstm::backward(lstm, states, saved, ct, gradients, budget),
            #[cfg(feature = "gpu")]
            Place::Gpu => {
                let (states, ct) = read(states, ct)?;
                hosted_lstm::backward(lstm, states, ct, gradients, budget)
            }
            #[cfg(not(feature = "gpu"))]
            Place::Gpu => Err(without("lstm")),
        }
    }

    /// The states of a rotational unit, the memory after them and, on the CPU, what is saved for backward.
    pub fn rum<R: Real>(
        self,
        rum: &Rum<'_, R>,
        written: Written<'_, R>,
        last: &mut [R],
        saved: Option<&mut [R]>,
        budget: &Budget<'_>,
    ) -> Result<()> {
        match self {
            Place::Threads(_) => rum::forward(rum, written, last, saved, budget),
            #[cfg(feature = "gpu")]
            Place::Gpu => hosted_rum::forward(rum, all(written)?, last, budget),
            #[cfg(not(feature = "gpu"))]
            Place::Gpu => Err(without("rum")),
        }
    }

    /// The gradients of a rotational unit.
    pub fn rum_vjp<R: Real>(
        self,
        rum: &Rum<'_, R>,
        outcome: &Outcome<'_, R>,
        gradients: RumGradients<'_, R>,
        budget: &Budget<'_>,
    ) -> Result<()> {
        match self {
            Place::Threads(_) => rum::backward(rum, outcome, gradients, budget),
            #[cfg(feature = "gpu")]
            Place::Gpu => {
                let (states, ct) = read(outcome.states, outcome.ct)?;
                hosted_rum::backward(rum, states, (ct, outcome.last_ct), gradients, budget)
            }
            #[cfg(not(feature = "gpu"))]
            Place::Gpu => Err(without("rum")),
        }
    }
}

#[cfg(feature = "gpu")]
fn whole() -> isometry_core::Error {
    isometry_core::Error::Unsupported("backend='gpu' computes and reads all states".into())
}

/// The states that the GPU writes, which are all.
#[cfg(feature = "gpu")]
fn all<T: Scalar>(written: Written<'_, T>) -> Result<&mut [T]> {
    match written {
        Written { states: Some(states), last: None, marks: None } => Ok(states),
        _ => Err(whole()),
    }
}

/// The states that the GPU reads, and their cotangents.
#[cfg(feature = "gpu")]
fn read<'a, T: Scalar>(states: Trajectory<'a, T>, ct: Cotangent<'a, T>) -> Result<(&'a [T], &'a [T])> {
    match (states, ct) {
        (Trajectory::All(states), Cotangent::States(ct)) => Ok((states, ct)),
        _ => Err(whole()),
    }
}

#[cfg(not(feature = "gpu"))]
fn without(object: &str) -> isometry_core::Error {
    let text = "backend='gpu' cannot serve: this build of isometry has no GPU support";
    isometry_core::Error::Unsupported(format!("{text} (feature gpu), asked for by {object}"))
}
