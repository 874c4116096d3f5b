//! The arguments of every recurrence besides its transition, and their gradients.

use crate::activation::parse;
use crate::arrays::{Any, Input, Number, Optional, Output, fits, read, write};
use crate::error::exception;
use isometry_core::activation::Activation;
use isometry_core::recurrence::{
    self as core, Checkpoint, Cotangent, Gradients, Sequence, Trajectory, Written,
};
use isometry_core::scalar::Scalar;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Steps of each sequence.
pub type Lengths<'py> = Optional<'py>;

/// Steps (T, B) before which states are reset, numbers other than 0, and the state (B, n) before them.
pub type Starts<'py> = (Any<'py>, Optional<'py>);

/// The output array for a gradient, if it is wanted.
type Room<'py, T> = Option<Output<'py, T>>;

/// Room for the gradients of x, h0 and activation_bias.
type RunBars<'py, T> = (Room<'py, T>, Room<'py, T>, Room<'py, <T as Scalar>::Real>);

/// x, input_weight, h0, bias, activation, activation_bias, slope, on_input, lengths, reverse.
pub type Given<'py> =
    (Any<'py>, Any<'py>, Optional<'py>, Optional<'py>, String, Optional<'py>, f64, bool, Lengths<'py>, bool);

/// Output arrays for the gradients of x, input_weight, h0, bias, activation_bias; None for those not
/// requested.
pub type GivenBars<'py> = (Optional<'py>, Optional<'py>, Optional<'py>, Optional<'py>, Optional<'py>);

/// The lengths of sequences.
pub fn counts(lengths: &Lengths<'_>) -> PyResult<Option<Vec<usize>>> {
    let Some(lengths) = lengths else { return Ok(None) };
    let given = Input::<i64>::new("lengths", lengths)?;
    let [_] = given.sizes("lengths")?;
    let negative = |_| PyValueError::new_err("lengths: expected no negative number");
    given.copied(|length| usize::try_from(length).map_err(negative)).map(Some)
}

/// Arrays for all states, the last of each sequence, and those at the borders of a checkpoint's segments, and its name.
type Parts<'py> = (Optional<'py>, Optional<'py>, Optional<'py>, Option<String>);

/// All states, or what is returned and kept of them.
#[derive(FromPyObject)]
pub enum States<'py> {
    /// Less than all.
    Parts(Parts<'py>),
    /// All.
    Whole(Any<'py>),
}

impl<'py> States<'py> {
    fn parts(&self) -> PyResult<(Parts<'py>, Option<Checkpoint>)> {
        let parts = match self {
            States::Parts(parts) => parts.clone(),
            States::Whole(states) => (Some(states.clone()), None, None, None),
        };
        let unknown = |name: &String| {
            PyValueError::new_err(format!("checkpoint: expected \"sqrt\" or \"reversible\", got {name:?}"))
        };
        let checkpoint =
            parts.3.as_ref().map(|name| Checkpoint::parse(name).ok_or_else(|| unknown(name))).transpose()?;
        Ok((parts, checkpoint))
    }

    /// To be written.
    pub fn outputs<T: Number>(&self, run: &Run<'py, T>) -> PyResult<Outputs<'py, T>> {
        let ((states, last, marks, _), checkpoint) = self.parts()?;
        let [steps, batch, n] = run.states();
        let marks = marks.as_ref().map(|marks| Output::new("marks", marks)).transpose()?;
        Ok(Outputs {
            states: Output::optional("states", states.as_ref(), &[steps, batch, n])?,
            last: Output::optional("last", last.as_ref(), &[batch, n])?,
            marks: checkpoint.zip(marks),
        })
    }

    /// As backward reads them.
    pub fn inputs<T: Number>(&self, run: &Run<'py, T>) -> PyResult<Inputs<'py, T>> {
        let ((states, last, marks, _), checkpoint) = self.parts()?;
        let [steps, batch, n] = run.states();
        let Some(checkpoint) = checkpoint else {
            let states = states.ok_or_else(|| PyValueError::new_err("states: expected an array"))?;
            return Ok(Inputs::States(Input::shaped("states", &states, &[steps, batch, n])?));
        };
        let [marks, last] = [("marks", marks), ("last", last)].map(|(name, array)| {
            let array = array.ok_or_else(|| PyValueError::new_err(format!("{name}: expected an array")))?;
            Input::new(name, &array)
        });
        Ok(Inputs::Marks(checkpoint, marks?, last?))
    }
}

/// [`States`] to be written, borrowed; the core checks the sizes of marks.
pub struct Outputs<'py, T: Number> {
    states: Option<Output<'py, T>>,
    last: Option<Output<'py, T>>,
    marks: Option<(Checkpoint, Output<'py, T>)>,
}

impl<T: Number> Outputs<'_, T> {
    /// As the core takes them.
    pub fn view(&mut self) -> Written<'_, T> {
        Written {
            states: write(&mut self.states),
            last: write(&mut self.last),
            marks: self.marks.as_mut().map(|(kind, marks)| (*kind, marks.slice())),
        }
    }
}

/// [`States`] to be read, borrowed; the core checks the sizes of marks and last states.
pub enum Inputs<'py, T: Number> {
    /// All.
    States(Input<'py, T>),
    /// Those at the borders, and the last ones.
    Marks(Checkpoint, Input<'py, T>, Input<'py, T>),
}

impl<T: Number> Inputs<'_, T> {
    /// As the core takes them.
    pub fn view(&self) -> Trajectory<'_, T> {
        match self {
            Inputs::States(states) => Trajectory::All(states.slice()),
            Inputs::Marks(kind, marks, last) => Trajectory::Marks(*kind, marks.slice(), last.slice()),
        }
    }
}

/// Cotangents of all states, or of the last ones (B, n), borrowed and checked.
pub struct Ct<'py, T: Number>(Input<'py, T>);

impl<'py, T: Number> Ct<'py, T> {
    /// Borrows them.
    pub fn new(ct: &Any<'py>, run: &Run<'py, T>) -> PyResult<Self> {
        let given = Input::new("ct", ct)?;
        let states = run.states();
        let expected = if given.shape().len() == 2 { &states[1..] } else { &states[..] };
        fits("ct", given.shape(), expected).map_err(exception)?;
        Ok(Ct(given))
    }

    /// As the core takes them.
    pub fn view(&self) -> Cotangent<'_, T> {
        let last = self.0.shape().len() == 2;
        if last { Cotangent::Last(self.0.slice()) } else { Cotangent::States(self.0.slice()) }
    }
}

/// The arguments of every recurrent cell besides its weights, borrowed and checked.
pub struct Run<'py, T: Number> {
    x: Input<'py, T>,
    h0: Option<Input<'py, T>>,
    activation: Activation,
    activation_bias: Option<Input<'py, T::Real>>,
    lengths: Option<Vec<usize>>,
    reverse: bool,
    starts: Option<(Vec<bool>, Option<Input<'py, T>>)>,
    /// steps, batch, features, n
    pub sizes: [usize; 4],
}

impl<'py, T: Number> Run<'py, T> {
    /// Borrows them, for n states; the activation with its bias and its slope.
    pub fn new(
        (x, h0, n): (&Any<'py>, &Optional<'py>, usize),
        (activation, activation_bias, slope): (&str, &Optional<'py>, f64),
        lengths: &Lengths<'py>,
        reverse: bool,
    ) -> PyResult<Self> {
        let x = Input::new("x", x)?;
        let [steps, batch, features] = x.sizes("x")?;
        let bias = activation_bias.as_ref().map(|bias| Input::new("activation_bias", bias));
        Ok(Run {
            x,
            h0: Input::optional("h0", h0.as_ref(), &[batch, n])?,
            activation: parse(activation, slope)?,
            activation_bias: bias.transpose()?,
            lengths: counts(lengths)?,
            reverse,
            starts: None,
            sizes: [steps, batch, features, n],
        })
    }

    /// As the core takes them.
    pub fn view<'a>(&'a self, packs: Option<&'a [T::Real]>) -> core::Run<'a, T> {
        let [steps, batch, features, n] = self.sizes;
        core::Run {
            steps,
            batch,
            features,
            n,
            x: self.x.slice(),
            h0: read(&self.h0),
            activation: self.activation,
            activation_bias: read(&self.activation_bias),
            lengths: self.lengths.as_deref(),
            reverse: self.reverse,
            starts: self.starts.as_ref().map(|(marks, state)| core::Starts { marks, state: read(state) }),
            packs,
        }
    }

    /// The same with marks.
    pub fn with(self, starts: &Option<Starts<'py>>) -> PyResult<Self> {
        let Some((marks, state)) = starts else { return Ok(self) };
        let [steps, batch, _, n] = self.sizes;
        let marks = Input::<i64>::shaped("starts", marks, &[steps, batch])?.copied(|mark| Ok(mark != 0))?;
        let state = Input::optional("start_state", state.as_ref(), &[batch, n])?;
        Ok(Run { starts: Some((marks, state)), ..self })
    }

    /// Shape of the states.
    pub fn states(&self) -> [usize; 3] {
        let [steps, batch, _, n] = self.sizes;
        [steps, batch, n]
    }

    /// Room for the gradients of x, h0 and activation_bias.
    pub fn bars(&self, [x, h0, activation_bias]: [&Optional<'py>; 3]) -> PyResult<RunBars<'py, T>> {
        let [steps, batch, features, n] = self.sizes;
        let units = self.activation_bias.as_ref().map_or(&[][..], Input::shape);
        Ok((
            Output::optional("x_bar", x.as_ref(), &[steps, batch, features])?,
            Output::optional("h0_bar", h0.as_ref(), &[batch, n])?,
            Output::optional("activation_bias_bar", activation_bias.as_ref(), units)?,
        ))
    }
}

/// [`Given`], borrowed and checked.
pub struct Arrays<'py, T: Number> {
    pub run: Run<'py, T>,
    input_weight: Input<'py, T>,
    bias: Option<Input<'py, T>>,
    on_input: bool,
}

impl<'py, T: Number> Arrays<'py, T> {
    /// Borrows them.
    pub fn new(given: &Given<'py>, starts: &Option<Starts<'py>>) -> PyResult<Self> {
        let (x, input_weight, h0, bias, activation, activation_bias, slope, on_input, lengths, reverse) =
            given;
        let input_weight = Input::<T>::new("input_weight", input_weight)?;
        let [n, _] = input_weight.sizes("input_weight")?;
        Ok(Arrays {
            run: Run::new((x, h0, n), (activation, activation_bias, *slope), lengths, *reverse)?
                .with(starts)?,
            input_weight,
            bias: Input::optional("bias", bias.as_ref(), &[n])?,
            on_input: *on_input,
        })
    }

    /// The sequence.
    pub fn view<'a>(&'a self, packs: Option<&'a [T::Real]>) -> Sequence<'a, T> {
        Sequence {
            run: self.run.view(packs),
            input_weight: self.input_weight.slice(),
            bias: read(&self.bias),
            on_input: self.on_input,
        }
    }
}

/// [`GivenBars`], borrowed and checked.
pub struct GradientArrays<'py, T: Number> {
    x: Option<Output<'py, T>>,
    input_weight: Option<Output<'py, T>>,
    h0: Option<Output<'py, T>>,
    start_state: Option<Output<'py, T>>,
    bias: Option<Output<'py, T>>,
    activation_bias: Option<Output<'py, T::Real>>,
}

impl<'py, T: Number> GradientArrays<'py, T> {
    /// Borrows them.
    pub fn new(
        given: &GivenBars<'py>,
        start_state: &Optional<'py>,
        arrays: &Arrays<'py, T>,
    ) -> PyResult<Self> {
        let (x, input_weight, h0, bias, activation_bias) = given;
        let [_, batch, features, n] = arrays.run.sizes;
        let (x, h0, activation_bias) = arrays.run.bars([x, h0, activation_bias])?;
        Ok(GradientArrays {
            start_state: Output::optional("start_state_bar", start_state.as_ref(), &[batch, n])?,
            x,
            input_weight: Output::optional("input_weight_bar", input_weight.as_ref(), &[n, features])?,
            h0,
            bias: Output::optional("bias_bar", bias.as_ref(), &[n])?,
            activation_bias,
        })
    }

    /// The outputs.
    pub fn view(&mut self) -> Gradients<'_, T> {
        Gradients {
            x: write(&mut self.x),
            input_weight: write(&mut self.input_weight),
            h0: write(&mut self.h0),
            start_state: write(&mut self.start_state),
            bias: write(&mut self.bias),
            activation_bias: write(&mut self.activation_bias),
        }
    }
}
