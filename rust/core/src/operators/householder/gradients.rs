//! The arrays for gradients, and which of them are wanted.

use crate::argument::Bar;
use crate::parallel::Shared;
use crate::scalar::Scalar;
use crate::side::Side;

/// The arrays for gradients; `None` for those that are not wanted.
#[derive(Default)]
pub(super) struct Gradients<'a, T: Scalar> {
    /// (batch, n, m)
    pub vectors: Option<&'a mut [T]>,
    /// Of the sign (batch,) or of the phases (batch, n).
    pub last: Option<&'a mut [T::Real]>,
}

impl<'a, T: Scalar> Gradients<'a, T> {
    pub fn of(bars: &'a mut [Bar<'_, T>]) -> Self {
        let mut bars = bars.iter_mut().map(Bar::again);
        Gradients { vectors: bars.next().and_then(Bar::own), last: bars.find_map(Bar::real) }
    }
}

/// Which gradients are requested, of the map of one side.
pub(super) struct Wants<T: Scalar> {
    pub side: Side,
    pub vectors: Option<Shared<T>>,
    pub last: Option<Shared<T::Real>>,
    pub x_bar: Option<Shared<T>>,
}

impl<T: Scalar> Wants<T> {
    /// x_bar from element `start` on, if it is wanted and that of this side: conj(E) G forward, W ct of the adjoint map.
    pub fn x_bar(&self, side: Side, start: usize) -> Option<*mut T> {
        self.x_bar.filter(|_| self.side == side).map(|x_bar| x_bar.at(start))
    }

    /// Whether the cotangent of y = E x is needed.
    pub fn cotangent(&self) -> bool {
        self.last.is_some() || self.x_bar(Side::Forward, 0).is_some()
    }
}
