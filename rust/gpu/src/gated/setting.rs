//! The arguments of a gated unit, checked.

use super::Gated;
use crate::cell::{Cell, Form};
use crate::product::{Base, Operand};
use crate::recurrence::sequence::checked;
use isometry_core::{Error, Result};

const FORM: Form = Form { w: 3, u: 3, state: 1, most: 5 };

/// A checked unit on its device.
pub(super) struct Setting<'a> {
    pub cell: Cell<'a>,
    pub after: bool,
    hidden_bias: Option<Operand<'a>>,
}

impl<'a> Setting<'a> {
    pub fn new(gated: &Gated<'a>) -> Result<Self> {
        let Gated { hidden_bias, after, arguments } = *gated;
        let cell = Cell::new(&arguments, FORM, u32::from(after))?;
        if let Some(bias) = hidden_bias {
            checked("hidden_bias", arguments.x, bias, &[cell.wide])?;
            if !after {
                return Err(Error::value("hidden_bias", "belongs to reset \"after\" only"));
            }
        }
        Ok(Setting { cell, after, hidden_bias: hidden_bias.map(Operand::row) })
    }

    /// c_h as the base of products with W from its row `from` on.
    pub fn hidden(&self, from: usize) -> Base<'a> {
        self.hidden_bias.map_or(Base::Nothing, |bias| Base::Array(bias.from(0, from)))
    }
}
