//! A call of a cell by its name, with its arrays in the order of its declaration, and what every cell does with it.

use super::declaration::Declaration;
use super::driver::ends::{Cotangent, Trajectory, Written};
use super::time::starts::Starts;
use super::time::timeline::Run;
use crate::activation::Activation;
use crate::argument::{Bar, Given};
use crate::budget::Budget;
use crate::cpu::Cpu;
use crate::error::{Error, Result};
use crate::operators::view;
use crate::scalar::Scalar;

/// An object as the transition: its name and its arguments.
pub type Object<'a, T> = (&'a str, Vec<Given<'a, T>>);

/// The arguments of a cell.
#[derive(Clone)]
pub struct Call<'a, T: Scalar> {
    /// Which cell.
    pub cell: &'static Declaration,
    /// In the order of its arguments.
    pub given: Vec<Given<'a, T>>,
    /// Its operator, if it has one.
    pub transition: Option<Object<'a, T>>,
    /// phi
    pub activation: Activation,
    /// In the order of its settings; NaN for none.
    pub settings: &'a [f64],
    /// As [`Run::lengths`].
    pub lengths: Option<&'a [usize]>,
    /// As [`Run::reverse`].
    pub reverse: bool,
    /// As [`Starts::marks`].
    pub marks: Option<&'a [bool]>,
    /// As [`Run::packs`].
    pub packs: Option<&'a [T::Real]>,
}

/// What forward wrote, and its cotangents.
#[derive(Clone, Copy)]
pub struct Outcome<'a, T> {
    /// The states.
    pub states: Trajectory<'a, T>,
    /// The memory (B, n, n), empty without one.
    pub last: &'a [T],
    /// What forward saved, empty with a checkpoint.
    pub saved: &'a [T],
    /// Cotangents of the states, or of the last ones.
    pub ct: Cotangent<'a, T>,
    /// Cotangents of the memory, zeros if absent.
    pub last_ct: Option<&'a [T]>,
}

/// A cell with its arguments, as calls by its name use it.
///
/// ```
/// use isometry_core::Budget;
/// use isometry_core::recurrence::{Run, Unit, lstm::Lstm};
///
/// // without weights all gates are 1/2: c is halved
/// let run = Run { h0: Some(&[0.0f64, 1.0]), ..Run::new([1, 1, 1, 2], &[0.0]) };
/// let (unit, mut states) = (Lstm { run, w: &[0.0; 4], u: &[0.0; 4], b: None }, [0.0; 2]);
/// Unit::forward(&unit, (&mut states).into(), &mut [], None, &Budget::of(1))?;
/// assert_eq!(states[1], 0.5);
/// # Ok::<(), isometry_core::Error>(())
/// ```
pub trait Unit<'a, T: Scalar>: Sized {
    /// From a call and the operator of its transition.
    ///
    /// # Errors
    /// Arrays that are missing or do not fit.
    fn of(call: &Call<'a, T>, operator: Option<&'a dyn Cpu<T>>) -> Result<Self>;

    /// Refuses sizes and values that do not fit.
    ///
    /// # Errors
    /// The first that does not.
    fn check(&self) -> Result<()>;

    /// Refuses gradients that do not fit the arguments.
    ///
    /// # Errors
    /// The first that does not.
    fn check_bars(&self, bars: &[Bar<'_, T>]) -> Result<()>;

    /// Fills the states, the memory and what is saved.
    ///
    /// # Errors
    /// Sizes, lengths or values that do not fit; lack of memory; [`Error::Interrupted`] once the budget says so.
    fn forward(
        &self,
        written: Written<'_, T>,
        last: &mut [T],
        saved: Option<&mut [T]>,
        budget: &Budget<'_>,
    ) -> Result<()>;

    /// The gradients of the cell's arguments, and of those of the operator.
    ///
    /// # Errors
    /// As for `forward`; gradients of arguments that were not given.
    fn backward(
        &self,
        outcome: &Outcome<'_, T>,
        bars: &mut [Bar<'_, T>],
        of_operator: &mut [Bar<'_, T>],
        budget: &Budget<'_>,
    ) -> Result<()>;
}

impl<'a, T: Scalar> Call<'a, T> {
    /// T, B, d and n.
    ///
    /// # Errors
    /// As [`Declaration::sizes`].
    #[doc(hidden)]
    pub fn sizes(&self) -> Result<[usize; 4]> {
        self.cell.sizes(&self.given)
    }

    /// What every cell has.
    #[doc(hidden)]
    pub fn run(&self) -> Result<Run<'a, T>> {
        let [steps, batch, features, n] = self.sizes()?;
        let (count, settings) = (self.given.len(), self.cell.settings.len());
        if self.settings.len() != settings {
            return Err(Error::shape("settings", format!("{settings} numbers"), self.settings.len()));
        }
        let [bias, state] = [&self.given[count - 2], &self.given[count - 1]];
        if state.some().is_some() && self.marks.is_none() {
            return Err(Error::value("start_state", "must not be given without starts"));
        }
        let width = n.saturating_mul(self.cell.width);
        Ok(Run {
            h0: self.cell.h0(&self.given).some(),
            activation: self.activation,
            activation_bias: bias.real(),
            lengths: self.lengths,
            reverse: self.reverse,
            starts: self.marks.map(|marks| Starts { marks, state: state.some() }),
            packs: self.packs,
            ..Run::new([steps, batch, features, width], self.given[0].own("x")?)
        })
    }

    /// The first N arrays.
    #[doc(hidden)]
    pub fn arrays<const N: usize>(&self) -> [Option<&'a [T]>; N] {
        std::array::from_fn(|i| self.given.get(i).and_then(Given::some))
    }

    /// A number of the settings, if it is given.
    #[doc(hidden)]
    pub fn setting(&self, i: usize) -> Option<f64> {
        self.settings.get(i).copied().filter(|setting| !setting.is_nan())
    }

    /// Whether a flag of the settings is set.
    #[doc(hidden)]
    pub fn flag(&self, i: usize) -> bool {
        self.setting(i).is_some_and(|setting| setting != 0.0)
    }

    /// The operator of the transition.
    #[doc(hidden)]
    pub fn operator(&self) -> Result<Option<Box<dyn Cpu<T> + '_>>> {
        self.transition.as_ref().map(|(object, given)| view(object, given)).transpose()
    }

    /// The same call of real numbers, for cells that have no others.
    #[doc(hidden)]
    pub fn real(self) -> Result<Call<'a, T::Real>> {
        if T::PARTS == 2 {
            return Err(Error::Dtype("x: expected real numbers".into()));
        }
        let all = |given: Vec<Given<'a, T>>| given.into_iter().map(|given| given.of_real()).collect();
        let Call { cell, activation, settings, lengths, reverse, marks, packs, .. } = self;
        let transition = self.transition.map(|(object, given)| (object, all(given)));
        Ok(Call {
            given: all(self.given),
            transition,
            cell,
            activation,
            settings,
            lengths,
            reverse,
            marks,
            packs,
        })
    }
}
