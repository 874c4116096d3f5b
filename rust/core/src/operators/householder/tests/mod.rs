//! What a product of reflections is whatever its vectors, and its inverse map.

mod properties;
mod recover;

use super::gradients::Gradients;
use super::*;
use crate::argument::Bar;
use crate::budget::Budget;
use crate::cpu::Cpu;
use crate::scalar::{Real, c32, c64};
use crate::side::Side;
use crate::testing::square::unitarity;
use crate::testing::{Random, within_work};
