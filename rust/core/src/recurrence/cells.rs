//! The list of the cells, and the calls of a cell by its name, as the extension makes them.

use super::affine::{self, Affine};
use super::call::{Call, Outcome};
use super::cornn::{self, Cornn};
use super::declaration::Declaration;
use super::driver::Written;
use super::gru::{self, Gru};
use super::lem::{self, Lem};
use super::lstm::{self, Lstm};
use super::rum::{self, Rum};
use super::unit::Unit;
use crate::argument::Bar;
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::scalar::{Scalar, parts_mut};

macro_rules! cells {
    ($($declaration:path, $unit:ident $field:ident;)*) => {
        /// Every cell.
        pub static CELLS: &[Declaration] = &[$($declaration),*];

        /// Fills the states of a cell, its memory (B, n, n), empty without one, and if wanted what it saves for [`sequence_vjp`].
        ///
        /// ```
        /// use isometry_core::Budget;
        /// use isometry_core::activation::Activation;
        /// use isometry_core::argument::{Array, Given};
        /// use isometry_core::recurrence::{Call, declared, sequence};
        ///
        /// // an LSTM of one unit without weights: i, f and o are 1/2 and g is 0, so c is halved
        /// let none = Given { shape: &[], array: Array::None };
        /// let given = vec![
        ///     Given { shape: &[1, 1, 1], array: Array::Own(&[0.0f64]) },
        ///     Given { shape: &[4, 1], array: Array::Own(&[0.0; 4]) },
        ///     Given { shape: &[4, 1], array: Array::Own(&[0.0; 4]) },
        ///     none,
        ///     Given { shape: &[1, 2], array: Array::Own(&[0.0, 1.0]) },
        ///     none,
        ///     none,
        /// ];
        /// let call = Call {
        ///     cell: declared("lstm")?,
        ///     given,
        ///     transition: None,
        ///     activation: Activation::Tanh,
        ///     settings: &[],
        ///     lengths: None,
        ///     reverse: false,
        ///     marks: None,
        ///     packs: None,
        /// };
        /// let mut states = [0.0; 2];
        /// sequence(call, (&mut states).into(), &mut [], None, &Budget::of(1))?;
        /// assert_eq!(states[1], 0.5);
        /// # Ok::<(), isometry_core::Error>(())
        /// ```
        ///
        /// # Errors
        /// Arrays that are missing or do not fit, complex arrays of a cell of real numbers; lack of memory; [`Error::Interrupted`] once
        /// the budget says so.
        pub fn sequence<T: Scalar>(
            call: Call<'_, T>,
            written: Written<'_, T>,
            last: &mut [T],
            saved: Option<&mut [T]>,
            budget: &Budget<'_>,
        ) -> Result<()> {
            match call.cell.name {
                $(name if name == $declaration.name => {
                    cells!(@forward $field $unit call written last saved budget)
                })*
                name => Err(unknown(name)),
            }
        }

        /// The gradients of [`sequence`] for the cotangents of what it returned: of the cell's arguments in their order, and of those of
        /// the operator.
        ///
        /// ```
        /// use isometry_core::Budget;
        /// use isometry_core::activation::Activation;
        /// use isometry_core::argument::{Array, Bar, Given};
        /// use isometry_core::recurrence::{Call, Cotangent, Outcome, declared, sequence_vjp};
        ///
        /// // without a state before, h_1 = V x_1: the gradient of V is x_1
        /// let none = Given { shape: &[], array: Array::None };
        /// let (x, v) = (Given { shape: &[1, 1, 1], array: Array::Own(&[3.0]) }, Given { shape: &[1, 1], array: Array::Own(&[2.0]) });
        /// let call = Call {
        ///     cell: declared("recurrence")?,
        ///     given: vec![x, v, none, none, none, none],
        ///     transition: Some(("dense", vec![Given { shape: &[1, 1], array: Array::Own(&[0.0]) }])),
        ///     activation: Activation::Identity,
        ///     settings: &[0.0],
        ///     lengths: None,
        ///     reverse: false,
        ///     marks: None,
        ///     packs: None,
        /// };
        /// let (states, ct, mut v_bar) = ([6.0], Cotangent::States(&[1.0]), [0.0]);
        /// let outcome = Outcome { states: (&states).into(), last: &[], saved: &[], ct, last_ct: None };
        /// sequence_vjp(call, &outcome, &mut [Bar::None, Bar::Own(&mut v_bar)], &mut [], &Budget::of(1))?;
        /// assert_eq!(v_bar, [3.0]);
        /// # Ok::<(), isometry_core::Error>(())
        /// ```
        ///
        /// # Errors
        /// As for [`sequence`]; gradients of arguments that were not given.
        pub fn sequence_vjp<T: Scalar>(
            call: Call<'_, T>,
            outcome: &Outcome<'_, T>,
            bars: &mut [Bar<'_, T>],
            of_operator: &mut [Bar<'_, T>],
            budget: &Budget<'_>,
        ) -> Result<()> {
            match call.cell.name {
                $(name if name == $declaration.name => {
                    cells!(@backward $field $unit call outcome bars of_operator budget)
                })*
                name => Err(unknown(name)),
            }
        }
    };
    (@forward any $unit:ident $call:ident $written:ident $last:ident $saved:ident $budget:ident) => {
        $unit::of(&$call, $call.operator()?.as_deref())?.forward($written, $last, $saved, $budget)
    };
    (@forward real $unit:ident $call:ident $written:ident $last:ident $saved:ident $budget:ident) => {{
        let real = $call.real()?;
        $unit::of(&real, real.operator()?.as_deref())?.forward(
            $written.of_real(),
            parts_mut($last),
            $saved.map(parts_mut),
            $budget,
        )
    }};
    (@backward any $unit:ident $call:ident $outcome:ident $bars:ident $of_operator:ident $budget:ident) => {
        $unit::of(&$call, $call.operator()?.as_deref())?.backward($outcome, $bars, $of_operator, $budget)
    };
    (@backward real $unit:ident $call:ident $outcome:ident $bars:ident $of_operator:ident $budget:ident) => {{
        let real = $call.real()?;
        let mut bars: Vec<_> = $bars.iter_mut().map(Bar::of_real).collect();
        let mut of_operator: Vec<_> = $of_operator.iter_mut().map(Bar::of_real).collect();
        $unit::of(&real, real.operator()?.as_deref())?.backward(
            &$outcome.of_real(),
            &mut bars,
            &mut of_operator,
            $budget,
        )
    }};
}

cells! {
    affine::DECLARATION, Affine any;
    gru::DECLARATION, Gru real;
    gru::WITH_OPERATOR, Gru real;
    lstm::DECLARATION, Lstm real;
    rum::DECLARATION, Rum real;
    cornn::DECLARATION, Cornn real;
    lem::DECLARATION, Lem real;
}

/// The cell of that name.
///
/// ```
/// use isometry_core::recurrence::declared;
///
/// assert_eq!(declared("gru")?.arguments.len(), 8);
/// # Ok::<(), isometry_core::Error>(())
/// ```
///
/// # Errors
/// An unknown name.
pub fn declared(name: &str) -> Result<&'static Declaration> {
    CELLS.iter().find(|cell| cell.name == name).ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> Error {
    let known: Vec<_> = CELLS.iter().map(|cell| cell.name).collect();
    Error::value("cell", format!("must be one of {}, not {name}", known.join(", ")))
}
