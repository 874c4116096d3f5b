//! Shared by the tests of the public functions.

use isometry_core::Cpu;
use isometry_core::argument::{Array, Bar};
use isometry_core::scalar::Scalar;

/// Room for the gradients of all arguments that have one.
pub struct Bars<T: Scalar>(Vec<(Vec<T>, Vec<T::Real>)>);

impl<T: Scalar> Bars<T> {
    /// Of an operator with so many arrays.
    pub fn new(operator: &dyn Cpu<T>, count: usize) -> Self {
        let room = |i: usize| match operator.argument(i) {
            Array::Own(own) => (own.to_vec(), vec![]),
            Array::Real(real) if operator.arguments()[i].trained => (vec![], real.to_vec()),
            _ => (vec![], vec![]),
        };
        Bars((0..count).map(room).collect())
    }

    pub fn view(&mut self) -> Vec<Bar<'_, T>> {
        fn one<T: Scalar>((own, real): &mut (Vec<T>, Vec<T::Real>)) -> Bar<'_, T> {
            match (own.is_empty(), real.is_empty()) {
                (true, true) => Bar::None,
                (false, _) => Bar::Own(own),
                _ => Bar::Real(real),
            }
        }
        self.0.iter_mut().map(one).collect()
    }
}
