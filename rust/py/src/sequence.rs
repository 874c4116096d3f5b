//! The arguments of every recurrence besides its transition, and their gradients.

use crate::activation::parse;
use crate::arrays::{Input, Number, Output, read, write};
use crate::error::exception;
use isometry_core::Error;
use isometry_core::recurrence::{Gradients, Sequence};
use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

type Any<'py> = Bound<'py, PyAny>;
type Optional<'py> = Option<Bound<'py, PyAny>>;

/// x, input_weight, h0, bias, activation, activation_bias, slope, on_input, lengths, reverse.
pub type Given<'py> = (
    Any<'py>,
    Any<'py>,
    Optional<'py>,
    Optional<'py>,
    String,
    Optional<'py>,
    f64,
    bool,
    Option<PyReadonlyArray1<'py, i64>>,
    bool,
);

/// Room for the gradients of x, input_weight, h0, bias, activation_bias; None for those not requested.
pub type GivenBars<'py> = (Optional<'py>, Optional<'py>, Optional<'py>, Optional<'py>, Optional<'py>);

/// The lengths of sequences.
pub fn counts(lengths: &Option<PyReadonlyArray1<'_, i64>>) -> PyResult<Option<Vec<usize>>> {
    let Some(lengths) = lengths else { return Ok(None) };
    let (given, mut counts) = (lengths.as_array(), Vec::new());
    let bytes = given.len().saturating_mul(size_of::<usize>());
    counts.try_reserve_exact(given.len()).map_err(|_| exception(Error::OutOfMemory { bytes }))?;
    for &length in given {
        let negative = |_| PyValueError::new_err("lengths: expected no negative number");
        counts.push(usize::try_from(length).map_err(negative)?);
    }
    Ok(Some(counts))
}

/// [`Given`], borrowed and checked.
pub struct Arrays<'py, T: Number> {
    x: Input<'py, T>,
    input_weight: Input<'py, T>,
    h0: Option<Input<'py, T>>,
    bias: Option<Input<'py, T>>,
    activation: isometry_core::activation::Activation,
    activation_bias: Option<Input<'py, T::Real>>,
    on_input: bool,
    lengths: Option<Vec<usize>>,
    reverse: bool,
    /// steps, batch, features, n
    pub sizes: [usize; 4],
}

impl<'py, T: Number> Arrays<'py, T> {
    /// Borrows them.
    pub fn new(given: &Given<'py>) -> PyResult<Self> {
        let (x, input_weight, h0, bias, activation, activation_bias, slope, on_input, lengths, reverse) =
            given;
        let x = Input::new("x", x)?;
        let [steps, batch, features] = x.sizes("x")?;
        let input_weight = Input::<T>::new("input_weight", input_weight)?;
        let [n, _] = input_weight.sizes("input_weight")?;
        Ok(Arrays {
            x,
            input_weight,
            h0: Input::optional("h0", h0.as_ref(), &[batch, n])?,
            bias: Input::optional("bias", bias.as_ref(), &[n])?,
            activation: parse(activation, *slope)?,
            activation_bias: activation_bias
                .as_ref()
                .map(|bias| Input::new("activation_bias", bias))
                .transpose()?,
            on_input: *on_input,
            lengths: counts(lengths)?,
            reverse: *reverse,
            sizes: [steps, batch, features, n],
        })
    }

    /// The sequence.
    pub fn view(&self) -> Sequence<'_, T> {
        let [steps, batch, features, n] = self.sizes;
        Sequence {
            steps,
            batch,
            features,
            n,
            x: self.x.slice(),
            input_weight: self.input_weight.slice(),
            h0: read(&self.h0),
            bias: read(&self.bias),
            activation: self.activation,
            activation_bias: read(&self.activation_bias),
            on_input: self.on_input,
            lengths: self.lengths.as_deref(),
            reverse: self.reverse,
        }
    }

    /// Shape of the states.
    pub fn states_shape(&self) -> [usize; 3] {
        let [steps, batch, _, n] = self.sizes;
        [steps, batch, n]
    }
}

/// [`GivenBars`], borrowed and checked.
pub struct Bars<'py, T: Number> {
    x: Option<Output<'py, T>>,
    input_weight: Option<Output<'py, T>>,
    h0: Option<Output<'py, T>>,
    bias: Option<Output<'py, T>>,
    activation_bias: Option<Output<'py, T::Real>>,
}

impl<'py, T: Number> Bars<'py, T> {
    /// Borrows them.
    pub fn new(given: &GivenBars<'py>, arrays: &Arrays<'py, T>) -> PyResult<Self> {
        let (x, input_weight, h0, bias, activation_bias) = given;
        let [steps, batch, features, n] = arrays.sizes;
        let units = arrays.activation_bias.as_ref().map_or(vec![], |bias| bias.shape().to_vec());
        Ok(Bars {
            x: Output::optional("x_bar", x.as_ref(), &[steps, batch, features])?,
            input_weight: Output::optional("input_weight_bar", input_weight.as_ref(), &[n, features])?,
            h0: Output::optional("h0_bar", h0.as_ref(), &[batch, n])?,
            bias: Output::optional("bias_bar", bias.as_ref(), &[n])?,
            activation_bias: Output::optional("activation_bias_bar", activation_bias.as_ref(), &units)?,
        })
    }

    /// The outputs.
    pub fn view(&mut self) -> Gradients<'_, T> {
        Gradients {
            x: write(&mut self.x),
            input_weight: write(&mut self.input_weight),
            h0: write(&mut self.h0),
            bias: write(&mut self.bias),
            activation_bias: write(&mut self.activation_bias),
        }
    }
}
