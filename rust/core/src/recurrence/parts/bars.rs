//! The gradients of a cell that a backward pass fills, and the cotangents that it reads.

use super::super::driver::CtRows;
use super::inputs::InputBars;
use crate::parallel::Shared;
use crate::scalar::Scalar;

/// What a backward pass reads and writes, besides the states; None where a gradient is not wanted.
#[derive(Clone, Copy)]
pub struct Bars<'a, T: Scalar> {
    /// And where those of h0 and of the state before marked steps go.
    pub ct: CtRows<'a, T::Real>,
    /// Of W, if that is a matrix of the cell.
    pub w: Option<Shared<T>>,
    /// Of x, U and b.
    pub inputs: InputBars<T>,
    /// Of the activation's bias, and its length.
    pub activation_bias: Option<(Shared<T::Real>, usize)>,
}
