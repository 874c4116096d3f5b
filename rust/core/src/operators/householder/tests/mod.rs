//! Against the textbook in double precision, and what a product of reflections is whatever its vectors.

mod properties;
mod recover;
mod reference;
mod textbook;

use super::gradients::Gradients;
use super::*;
use crate::argument::Bar;
use crate::budget::Budget;
use crate::cpu::Cpu;
use crate::operator::Saves;
use crate::scalar::{Real, c32, c64};
use crate::side::Side;
use crate::testing::square::unitarity;
use crate::testing::{Random, within_work};
