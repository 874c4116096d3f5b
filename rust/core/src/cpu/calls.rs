//! Calls of an operator whose arrays have passed the checks of [`Cpu`](super::Cpu), which alone makes them.

use crate::argument::Bar;
use crate::budget::Budget;
use crate::scalar::Scalar;
use crate::side::Side;

/// Of [`super::Cpu::matrix`].
pub struct Form<'c, T: Scalar> {
    pub(crate) out: &'c mut [T],
    pub(crate) saved: Option<&'c mut [T]>,
    pub(crate) budget: &'c Budget<'c>,
}

/// Of [`super::Cpu::matrix_vjp`].
pub struct FormVjp<'c, 'b, T: Scalar> {
    pub(crate) saved: Option<&'c [T]>,
    pub(crate) ct: &'c [T],
    pub(crate) bars: &'c mut [Bar<'b, T>],
    pub(crate) budget: &'c Budget<'c>,
}

/// Of [`super::Cpu::apply`].
pub struct Act<'c, T: Scalar> {
    pub(crate) x: &'c [T],
    pub(crate) rows: usize,
    pub(crate) side: Side,
    pub(crate) out: &'c mut [T],
    pub(crate) saved: Option<&'c mut [T]>,
    pub(crate) budget: &'c Budget<'c>,
}

/// Of [`super::Cpu::apply_vjp`].
pub struct ActVjp<'c, 'b, T: Scalar> {
    pub(crate) saved: Option<&'c [T]>,
    pub(crate) x: &'c [T],
    pub(crate) ct: &'c [T],
    pub(crate) rows: usize,
    pub(crate) side: Side,
    pub(crate) bars: &'c mut [Bar<'b, T>],
    pub(crate) x_bar: Option<&'c mut [T]>,
    pub(crate) budget: &'c Budget<'c>,
}
