//! A call of a cell by its name, with its arrays in the order of its declaration, and what every cell does with it.

use super::declaration::Declaration;
use super::driver::{Cotangent, Trajectory};
use super::time::{Run, Starts};
use crate::activation::Activation;
use crate::argument::Given;
use crate::cpu::Cpu;
use crate::error::{Error, Result};
use crate::operators::view;
use crate::scalar::Scalar;

/// Most arrays of a cell besides those that every cell has.
pub const OWN: usize = 4;

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

    /// The arrays of the cell's own, in the order of its arguments.
    pub(super) fn own(&self) -> [Option<&'a [T]>; OWN] {
        let mut own = self.cell.own();
        [(); OWN].map(|()| own.next().and_then(|i| self.given[i].some()))
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
