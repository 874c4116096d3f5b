//! A call of an operator, for any device: what it reads and where its results go.

use crate::argument::{Bar, Given};
use crate::scalar::Scalar;
use crate::side::Side;

/// What is wanted of an operator. What an earlier call saved has no shape.
pub enum Task<'a, T: Scalar> {
    /// W, (batch, n_out, n_in).
    Matrix(Bar<'a, T>),
    /// The gradients of the arguments from what was saved and the cotangent of W.
    MatrixVjp(Given<'a, T>, Given<'a, T>, Vec<Bar<'a, T>>),
    /// W x or W^H x of rows x.
    Apply(Given<'a, T>, Side, Bar<'a, T>),
    /// The gradients of the arguments and of x from what was saved, x and the cotangent of the result.
    ApplyVjp([Given<'a, T>; 3], Side, Vec<Bar<'a, T>>, Bar<'a, T>),
}
