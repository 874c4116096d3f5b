//! The objects, one folder each, with the definition in `mod.rs` and the arithmetic beside it; and their
//! list.

mod last;
#[cfg(test)]
mod laws;
mod plans;
mod recovered;
#[cfg(test)]
mod stacks;

pub use last::Last;

use crate::argument::{Argument, Given};
use crate::cpu::Cpu;
use crate::error::{Error, Result};
use crate::rows::Rows;
use crate::scalar::Scalar;
use crate::transition::{Route, Workload};

/// An object as an [`Operator`](crate::operator::Operator): its sizes, and the array of the i-th of its `ARGUMENTS`.
macro_rules! operator {
    ($view:ident, |$own:ident, $i:ident| $sizes:expr, $array:expr) => {
        impl<T: Scalar> crate::operator::Operator<T> for $view<'_, T> {
            fn sizes(&self) -> [usize; 3] {
                let $own = self;
                $sizes
            }
            fn arguments(&self) -> &'static [Argument] {
                ARGUMENTS
            }
            fn argument(&self, $i: usize) -> Array<'_, T> {
                let $own = self;
                $array
            }
        }
    };
}

macro_rules! objects {
    ($($module:ident $view:ident $([$checked:ident])? $($route:ident)?;)*) => {
        $(pub mod $module;)*

        /// Every object: its name and its arguments.
        pub const OBJECTS: &[(&str, &[Argument])] = &[$((stringify!($module), $module::ARGUMENTS)),*];

        /// A view of the arguments of the object of that name.
        ///
        /// ```
        /// use isometry_core::{Budget, argument::{Array, Given}, operators::view};
        ///
        /// let weight = Given { shape: &[2, 2], array: Array::Own(&[1.0, 2.0, 3.0, 4.0]) };
        /// let (w, mut matrix) = (view("dense", &[weight])?, [0.0; 4]);
        /// w.matrix(&mut matrix, None, &Budget::of(1))?;
        /// assert_eq!(matrix, [1.0, 2.0, 3.0, 4.0]);
        /// # Ok::<(), isometry_core::Error>(())
        /// ```
        ///
        /// # Errors
        /// An unknown name, and what the constructor of the object refuses.
        pub fn view<'a, T: Scalar>(object: &str, given: &[Given<'a, T>]) -> Result<Box<dyn Cpu<T> + 'a>> {
            match object {
                $(stringify!($module) => Ok(Box::new($module::$view::of(given)?)),)*
                _ => Err(unknown(object)),
            }
        }

        /// Refuses values that the object's definition forbids, each array by itself, whatever its batch. NaN
        /// passes.
        ///
        /// ```
        /// use isometry_core::{argument::{Array, Given}, operators::check_values};
        ///
        /// let zero = Given { shape: &[2, 1], array: Array::Own(&[0.0, 0.0]) };
        /// let none = Given { shape: &[], array: Array::None };
        /// let error = check_values("householder", &[zero, none, none]).unwrap_err();
        /// assert!(error.to_string().starts_with("vectors must not contain a zero reflection vector"));
        /// ```
        ///
        /// # Errors
        /// The first value that is forbidden, an unknown name, or another number of arguments.
        pub fn check_values<T: Scalar>(object: &str, given: &[Given<'_, T>]) -> Result<()> {
            match object {
                $($(stringify!($module) => $module::$checked(given),)?)*
                _ => Ok(()),
            }
        }

        /// The cheaper route of the object in a recurrence, from the shapes of its arguments, empty where one is not
        /// given: through its matrix, unless it states another.
        ///
        /// ```
        /// use isometry_core::{operators::route, recurrence::{Route, Workload}};
        ///
        /// let long = Workload { steps: 1000, batch: 32, gated: false };
        /// assert_eq!(route("householder", &[&[64, 4], &[], &[]], long)?, Route::Factored);
        /// assert_eq!(route("householder", &[&[64, 60], &[], &[]], long)?, Route::Dense);
        /// # Ok::<(), isometry_core::Error>(())
        /// ```
        ///
        /// # Errors
        /// Fewer shapes than arguments.
        pub fn route(object: &str, shapes: &[&[usize]], workload: Workload) -> Result<Route> {
            let arguments = OBJECTS.iter().find(|(name, _)| *name == object).map_or(0, |(_, arguments)| arguments.len());
            if shapes.len() < arguments {
                return Err(Error::shape("shapes", format!("those of {arguments} arguments"), shapes.len()));
            }
            match object {
                $($(stringify!($module) => Ok($module::$route(shapes, workload)),)?)*
                _ => Ok(Route::Dense),
            }
        }
    };
}

objects! {
    bounded_svd BoundedSvd [check_values];
    cayley Cayley [check_values];
    circulant Circulant route;
    dense Dense;
    exponential Exponential;
    fourier FourierProduct [check_values] route;
    givens Givens [check_values] route;
    hadamard Hadamard route;
    householder Householder [check_values] route;
    kronecker Kronecker route;
    mesh Mesh [check_values] route;
    rotation Rotation route;
}

/// Objects that are no more than their action on rows.
macro_rules! by_rows {
    ($($module:ident $view:ident,)*) => {
        $(impl<T: Scalar> Cpu<T> for $module::$view<'_, T> {
            fn rows(&self) -> Option<&dyn Rows<T>> {
                Some(self)
            }
        })*
    };
}

by_rows! {
    circulant Circulant, fourier FourierProduct, givens Givens, hadamard Hadamard, mesh Mesh, rotation Rotation,
}

/// The list of arguments of an object.
#[doc(hidden)]
pub fn arguments(object: &str) -> Result<&'static [Argument]> {
    let found = OBJECTS.iter().find(|(name, _)| *name == object);
    found.map(|(_, arguments)| *arguments).ok_or_else(|| unknown(object))
}

fn unknown(object: &str) -> Error {
    let known: Vec<_> = OBJECTS.iter().map(|(name, _)| *name).collect();
    Error::value("object", format!("must be one of {}, not {object}", known.join(", ")))
}
