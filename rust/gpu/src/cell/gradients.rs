//! The gradients of a call that are wanted, and those that were found.

use crate::Array;
use isometry_core::recurrence::Declaration;

/// In the order of the cell's declaration; the last is that of W as a matrix of its own.
pub(crate) struct Gradients {
    declared: &'static Declaration,
    wanted: Vec<bool>,
    found: Vec<Option<Array>>,
}

impl Gradients {
    pub fn new(declared: &'static Declaration, wanted: &[bool], transition: bool) -> Self {
        let mut all = vec![false; declared.arguments.len()];
        all.iter_mut().zip(wanted).for_each(|(all, &wanted)| *all = wanted);
        all.push(transition);
        Gradients { declared, found: vec![None; all.len()], wanted: all }
    }

    /// Whether the gradient of an argument is wanted, or of "transition".
    pub fn wants(&self, name: &str) -> bool {
        self.at(name).is_some_and(|at| self.wanted[at])
    }

    /// Keeps one, if it is wanted.
    pub fn put(&mut self, name: &str, bar: Array) {
        if let Some(at) = self.at(name).filter(|&at| self.wanted[at]) {
            self.found[at] = Some(bar);
        }
    }

    /// Those of the arguments, and that of W.
    pub fn found(mut self) -> (Vec<Option<Array>>, Option<Array>) {
        let transition = self.found.pop().flatten();
        (self.found, transition)
    }

    fn at(&self, name: &str) -> Option<usize> {
        let arguments = self.declared.arguments;
        let last = (name == "transition").then_some(arguments.len());
        arguments.iter().position(|argument| argument.name == name).or(last)
    }
}
