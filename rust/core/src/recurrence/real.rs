//! The arrays of a call of a real T in its real type, which is T itself: cells of real numbers take them so.

use super::beside::BesideMut;
use super::call::Outcome;
use super::driver::{Cotangent, Trajectory, Written};
use crate::argument::{Array, Bar, Given};
use crate::scalar::{Scalar, parts, parts_mut};

impl<'a, T: Scalar> Given<'a, T> {
    pub(super) fn of_real(&self) -> Given<'a, T::Real> {
        let array = match self.array {
            Array::None => Array::None,
            Array::Own(array) => Array::Own(parts(array)),
            Array::Real(array) => Array::Real(array),
            Array::Integers(array) => Array::Integers(array),
            Array::Remote(array) => Array::Remote(array),
        };
        Given { shape: self.shape, array }
    }
}

impl<T: Scalar> Bar<'_, T> {
    #[doc(hidden)]
    pub fn of_real(&mut self) -> Bar<'_, T::Real> {
        match self {
            Bar::None => Bar::None,
            Bar::Own(bar) => Bar::Own(parts_mut(bar)),
            Bar::Real(bar) => Bar::Real(bar),
            &mut Bar::Remote(room) => Bar::Remote(room),
        }
    }
}

impl<'a, T: Scalar> Written<'a, T> {
    pub(super) fn of_real(self) -> Written<'a, T::Real> {
        Written {
            states: self.states.map(parts_mut),
            beside: self.beside.map(BesideMut::of_real),
            last: self.last.map(parts_mut),
            marks: self.marks.map(|(kind, marks)| (kind, parts_mut(marks))),
        }
    }
}

impl<'a, T: Scalar> Outcome<'a, T> {
    pub(super) fn of_real(&self) -> Outcome<'a, T::Real> {
        Outcome {
            states: match self.states {
                Trajectory::All(states) => Trajectory::All(parts(states)),
                Trajectory::Beside(states) => Trajectory::Beside(states.of_real()),
                Trajectory::Marks(kind, marks, last) => Trajectory::Marks(kind, parts(marks), parts(last)),
            },
            last: parts(self.last),
            saved: parts(self.saved),
            ct: match self.ct {
                Cotangent::States(ct) => Cotangent::States(parts(ct)),
                Cotangent::Beside(ct) => Cotangent::Beside(ct.of_real()),
                Cotangent::Last(ct) => Cotangent::Last(parts(ct)),
            },
            last_ct: self.last_ct.map(parts),
        }
    }
}
