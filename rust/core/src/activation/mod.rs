//! Nonlinearities of the recurrence: h = phi(z), z_bar = phi'(z)^H h_bar. The formulas are in
//! [`isometry_kernels::activation`], one file each.
//!
//! | name | value | derivative at kinks |
//! |---|---|---|
//! | identity | z | - |
//! | tanh | tanh z | - |
//! | relu | max(z, 0) | 0 at z = 0 |
//! | leaky_relu | max(slope z, z) | slope at z = 0 |
//! | oplu | (max, min) of each pair (2i, 2i+1) | at a tie as if already ordered |
//! | oplu_halves | (max, min) of each pair (i, i + n/2) | the same |
//! | modrelu | (abs z + b) z / abs z where abs z + b > 0 and z != 0, else 0 | 0 wherever the value is 0 by this rule |
//! | modrelu_realrep | modrelu of `a[:n] + i a[n:]` | as modrelu |
//!
//! On complex arrays all except modrelu act on the real and the imaginary part separately. NaN propagates through all.

mod batch;
mod row_activation;
#[cfg(test)]
pub(crate) mod tests;

pub use batch::{activate, activate_vjp};
pub(crate) use isometry_kernels::activation::{Nonlinearity, Source};
pub(crate) use row_activation::{RowActivation, sigmoid};

use crate::error::{Error, Result};
use crate::scalar::Scalar;
use crate::sizes::check_len;

/// The names accepted by [`Activation::parse`], in the order of the table.
pub const NAMES: [&str; 8] =
    ["identity", "tanh", "relu", "leaky_relu", "oplu", "oplu_halves", "modrelu", "modrelu_realrep"];

/// One of the nonlinearities.
///
/// ```
/// use isometry_core::activation::Activation;
///
/// let modrelu = Activation::parse("modrelu", 0.0)?;
/// assert_eq!((modrelu.bias_units(8), Activation::Tanh.bias_units(8)), (8, 0));
/// assert!(Activation::parse("leaky_relu", 1.5).is_err());
/// # Ok::<(), isometry_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Activation {
    /// z
    Identity,
    /// tanh z
    Tanh,
    /// max(z, 0)
    Relu,
    /// max(slope z, z)
    LeakyRelu {
        /// 0 <= slope < 1
        slope: f64,
    },
    /// (max, min) of each pair (2i, 2i+1)
    Oplu,
    /// (max, min) of the elements i and i + n/2
    OpluHalves,
    /// (|z| + b) z / |z|, with a real bias per element
    Modrelu,
    /// The same for complex numbers stored as halves of a real row, with a bias per number
    ModreluRealrep,
}

impl Activation {
    /// The activation of this name; `slope` is for leaky_relu only.
    ///
    /// # Errors
    /// An unknown name, or a slope outside 0 <= slope < 1.
    pub fn parse(name: &str, slope: f64) -> Result<Self> {
        Ok(match name {
            "identity" => Activation::Identity,
            "tanh" => Activation::Tanh,
            "relu" => Activation::Relu,
            "leaky_relu" if (0.0..1.0).contains(&slope) => Activation::LeakyRelu { slope },
            "leaky_relu" => {
                return Err(Error::value("slope", format!("must satisfy 0 <= slope < 1, got {slope}")));
            }
            "oplu" => Activation::Oplu,
            "oplu_halves" => Activation::OpluHalves,
            "modrelu" => Activation::Modrelu,
            "modrelu_realrep" => Activation::ModreluRealrep,
            _ => {
                let names = NAMES.join(", ");
                return Err(Error::value("activation", format!("must be one of {names}, got {name:?}")));
            }
        })
    }

    /// Number of biases for rows of n elements: 0 for all but the modReLUs.
    pub fn bias_units(self, n: usize) -> usize {
        match self {
            Activation::Modrelu => n,
            Activation::ModreluRealrep => n / 2,
            _ => 0,
        }
    }

    /// Returns an error for odd rows of paired elements, complex rows in the real representation, or a bias of the wrong
    /// size.
    pub(crate) fn check<T: Scalar>(self, n: usize, bias: Option<&[T::Real]>) -> Result<()> {
        self.check_sizes(n, T::PARTS == 2, bias.map(<[T::Real]>::len))
    }

    /// The same from the number of biases.
    #[doc(hidden)]
    pub fn check_sizes(self, n: usize, complex: bool, biases: Option<usize>) -> Result<()> {
        let paired = matches!(self, Activation::Oplu | Activation::OpluHalves | Activation::ModreluRealrep);
        if paired && n % 2 == 1 {
            return Err(Error::shape("z", "an even number of features", n));
        }
        if self == Activation::ModreluRealrep && complex {
            return Err(Error::value("z", "must be real for modrelu_realrep, got complex numbers"));
        }
        match (self.bias_units(n), biases) {
            (0, None) => Ok(()),
            (0, Some(_)) => {
                Err(Error::value("activation_bias", "belongs to modrelu and modrelu_realrep only"))
            }
            (units, None) => Err(Error::shape("activation_bias", format!("{units} elements"), "none")),
            (units, Some(biases)) => check_len("activation_bias", biases, &[units]),
        }
    }
}
