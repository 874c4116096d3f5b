//! The objects that have kernels here, by the names and lists of arguments of the core.

use crate::Array;
use crate::cayley::{self, Cayley};
use crate::dense::Dense;
use crate::householder::Householder;
use crate::last::Last;
use crate::operator::Operator;
use isometry_core::Cpu;
use isometry_core::argument;
use isometry_core::error::{Error, Result};
use isometry_core::operators::householder::crowd;
use isometry_core::scalar::Scalar;
use isometry_core::sizes::packed_size;

/// Their names; all others go through their matrix, formed on the CPU, as `dense`.
pub const OBJECTS: &[&str] = &["cayley", "dense", "householder"];

/// Whether the kernels are accurate for the arguments of an operator of the core.
pub fn holds<T: Scalar>(object: &str, operator: &dyn Cpu<T>) -> bool {
    match (object, operator.argument(0), operator.argument(1)) {
        ("cayley", argument::Array::Own(upper), diagonal) => {
            let diagonal = if let argument::Array::Real(diagonal) = diagonal { Some(diagonal) } else { None };
            cayley::holds(upper, diagonal, operator.shape().0)
        }
        ("householder", argument::Array::Own(vectors), _) => {
            let n = operator.shape().0;
            vectors.len() <= operator.batch() * n * crowd(n)
        }
        _ => true,
    }
}

/// A view of an object's arguments, each with the batch as its first axis.
pub fn view<'a>(object: &str, given: &[Option<&'a Array>]) -> Result<Box<dyn Operator + 'a>> {
    let absent = |i: usize| Error::value("arguments", format!("lack number {i} of {object}"));
    let get = |i: usize| given.get(i).copied().flatten();
    let own = |i: usize| get(i).ok_or_else(|| absent(i));
    match object {
        "dense" => Ok(Box::new(Dense::new(own(0)?)?)),
        "cayley" => {
            let upper = own(0)?;
            let n = packed_size(upper.shape().last().copied().unwrap_or(0));
            let last = match (get(2), get(3)) {
                (Some(signs), _) => Some(Last::signs(upper.kind(), signs, n)?),
                (None, Some(phases)) => Some(Last::phases(phases, n)?),
                (None, None) => None,
            };
            Ok(Box::new(Cayley::new(upper, get(1), last, n)?))
        }
        "householder" => {
            let vectors = own(0)?;
            let n = vectors.shape().get(1).copied().unwrap_or(0);
            let last = match (get(1), get(2)) {
                (Some(sign), _) => Some(Last::sign(vectors.kind(), sign, n)?),
                (None, Some(phases)) => Some(Last::phases(phases, n)?),
                (None, None) => None,
            };
            Ok(Box::new(Householder::new(vectors, last)?))
        }
        _ => Err(Error::value("object", format!("{object} has no kernels on the GPU"))),
    }
}
