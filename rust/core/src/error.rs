//! The errors of the core. A message names the argument, the expected value and the actual one.

use std::fmt;

/// The reason why a call was refused, before it wrote anything, or abandoned, which leaves its outputs
/// unspecified.
///
/// ```
/// use isometry_core::Error;
///
/// let wrong = [Error::shape("x", "6 elements", 5), Error::value("sign", "must lie in [-1, 1]")];
/// assert_eq!(wrong[0].to_string(), "x: expected 6 elements, got 5");
/// assert_eq!(wrong[1].to_string(), "sign must lie in [-1, 1]");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// An argument has the wrong size.
    Shape {
        /// Name of the argument.
        argument: &'static str,
        /// What was expected.
        expected: String,
        /// The actual size.
        got: String,
    },
    /// An argument has a value that the operator's definition excludes.
    Value {
        /// Name of the argument.
        argument: &'static str,
        /// The rest of the sentence after the name.
        reason: String,
    },
    /// The device or the precision does not support this call.
    Unsupported(String),
    /// An array is of a dtype in which this device does not compute.
    Dtype(String),
    /// A GPU refuses the call or was lost; the message says what to do.
    Device(String),
    /// The caller's cancellation flag was raised during a long call.
    Interrupted,
    /// Scratch memory cannot be allocated.
    OutOfMemory {
        /// Requested size; `usize::MAX` if it is larger.
        bytes: usize,
    },
}

/// Result of a checked call.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An [`Error::Shape`] from its three parts.
    pub fn shape(argument: &'static str, expected: impl fmt::Display, got: impl fmt::Display) -> Self {
        Error::Shape { argument, expected: expected.to_string(), got: got.to_string() }
    }

    /// An [`Error::Value`] from its two parts.
    pub fn value(argument: &'static str, reason: impl fmt::Display) -> Self {
        Error::Value { argument, reason: reason.to_string() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Shape { argument, expected, got } => {
                write!(f, "{argument}: expected {expected}, got {got}")
            }
            Error::Value { argument, reason } => write!(f, "{argument} {reason}"),
            Error::Unsupported(what) | Error::Dtype(what) | Error::Device(what) => f.write_str(what),
            Error::Interrupted => write!(f, "interrupted"),
            Error::OutOfMemory { bytes } => write!(f, "isometry needs {bytes} bytes of scratch memory"),
        }
    }
}

impl std::error::Error for Error {}
