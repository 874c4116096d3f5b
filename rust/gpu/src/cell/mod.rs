//! What gated units, the LSTM and the rotational unit share: their arguments, checked, U x_t + b of all steps, the states before all
//! steps, and the gradients of the inputs.

mod inputs;
mod setting;

pub(crate) use setting::{Cell, Form, Pass, of};

use crate::Array;
use crate::shader::Shader;
use isometry_core::activation::Activation;

/// previous.wgsl
pub(crate) static PREVIOUS: Shader =
    Shader { name: "previous", source: include_str!("previous.wgsl"), variants: &[&[]] };

/// The arguments of every cell. W and U are the rows of all gates, one gate after another; how many there are depends on the cell.
#[derive(Clone, Copy, Debug)]
pub struct Arguments<'a> {
    /// (T, B, d)
    pub x: &'a Array,
    /// W, of n columns
    pub w: &'a Array,
    /// U, of d columns
    pub u: &'a Array,
    /// b, one for each row of U
    pub bias: Option<&'a Array>,
    /// The states before the first step, zeros if absent.
    pub h0: Option<&'a Array>,
    /// phi
    pub activation: Activation,
    /// Of the modReLUs.
    pub activation_bias: Option<&'a Array>,
    /// Steps of each sequence, in any order; all T if absent.
    pub lengths: Option<&'a [usize]>,
    /// From the end of each sequence to its beginning.
    pub reverse: bool,
}

/// Which gradients are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Of x.
    pub x: bool,
    /// Of W.
    pub w: bool,
    /// Of U.
    pub u: bool,
    /// Of b, also if it was absent.
    pub bias: bool,
    /// Of h0, also if it was absent.
    pub h0: bool,
    /// Of the bias of the activation.
    pub activation_bias: bool,
}

/// The gradients in the shapes of their arguments, None where one was not wanted.
#[derive(Clone, Debug, Default)]
pub struct Gradients {
    /// Of x.
    pub x: Option<Array>,
    /// Of W: the parts that follow each other in it.
    pub w: Option<Vec<Array>>,
    /// Of U.
    pub u: Option<Array>,
    /// Of b.
    pub bias: Option<Array>,
    /// Of h0.
    pub h0: Option<Array>,
    /// One per bias.
    pub activation_bias: Option<Array>,
}
