//! The objects that have kernels here, by the names and lists of arguments of the core.

use crate::Array;
use crate::cayley::{self, Cayley};
use crate::dense::Dense;
use crate::householder::Householder;
use crate::last::Last;
use crate::operator::Operator;
use isometry_core::Cpu;
use isometry_core::argument;
use isometry_core::internal::sizes::packed_size;
use isometry_core::operators::householder::crowd;
use isometry_core::scalar::Scalar;
use isometry_core::{Error, Result};

/// Their names; all others go through their matrix, formed on the CPU, as `dense`.
pub const OBJECTS: &[&str] = &["cayley", "dense", "householder"];

/// Whether the kernels are accurate for the arguments of an operator of the core.
pub fn holds<T: Scalar>(object: &str, operator: &dyn Cpu<T>) -> Result<bool> {
    match (object, operator.argument(0), operator.argument(1)) {
        ("cayley", argument::Array::Own(upper), diagonal) => {
            let diagonal = if let argument::Array::Real(diagonal) = diagonal { Some(diagonal) } else { None };
            cayley::holds(upper, diagonal, operator.shape().0)
        }
        ("householder", argument::Array::Own(vectors), _) => {
            let n = operator.shape().0;
            Ok(vectors.len() <= operator.batch() * n * crowd(n))
        }
        _ => Ok(true),
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
                (Some(signs), _) => Some(Last::signs(upper.field(), signs, n)?),
                (None, Some(phases)) => Some(Last::phases(phases, n)?),
                (None, None) => None,
            };
            Ok(Box::new(Cayley::new(upper, get(1), last, n)?))
        }
        "householder" => {
            let vectors = own(0)?;
            let n = vectors.shape().get(1).copied().unwrap_or(0);
            let last = match (get(1), get(2)) {
                (Some(sign), _) => Some(Last::sign(vectors.field(), sign, n)?),
                (None, Some(phases)) => Some(Last::phases(phases, n)?),
                (None, None) => None,
            };
            Ok(Box::new(Householder::new(vectors, last)?))
        }
        _ => Err(Error::value("object", format!("{object} has no kernels on the GPU"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Field;
    use crate::testing::{device, never, numbers, sent};
    use isometry_core::Side;

    /// A matrix with another number of rows would be read beyond its end, where numbers of earlier calls are.
    #[test]
    fn matrices_of_another_size_are_refused_by_every_object() {
        let Some(context) = device() else { return };
        let array = |field: Field, shape: &[usize]| {
            sent(&context, field, shape, &numbers(field, shape.iter().product(), 1))
        };
        let given = [("cayley", vec![2, 6]), ("dense", vec![2, 4, 4]), ("householder", vec![2, 4, 3])];
        assert_eq!(given.each_ref().map(|(object, _)| *object), OBJECTS);
        for (object, shape) in given {
            let own = array(Field::Real, &shape);
            let arguments = [Some(&own), None, None, None];
            let operator = view(object, &arguments).unwrap();
            let right = array(Field::Real, &[2, 4, 4]);
            operator.matrix_vjp(Some(&right), &right, &[true, false, false, false], &never).unwrap();
            let wrong = [&[2, 1, 4][..], &[2, 5, 4], &[2, 4, 3], &[1, 4, 4], &[2, 16]];
            for wrong in wrong
                .map(|shape| array(Field::Real, shape))
                .iter()
                .chain([&array(Field::Complex, &[2, 4, 4])])
            {
                for (w, ct) in [(None, wrong), (Some(wrong), &right)] {
                    let found = operator.matrix_vjp(w, ct, &[true, false, false, false], &never);
                    assert!(found.is_err(), "{object} {:?}", wrong.shape());
                }
            }
        }
    }

    #[test]
    fn empty_arrays_of_any_size_take_no_time() {
        let Some(context) = device() else { return };
        let many = 1 << 55;
        for (w, x) in [([many, 0, 0], [many, 0, 0]), ([1, 0, 0], [1, many, 0]), ([1, 4, 0], [1, 0, 0])] {
            let [w, x] = [w, x].map(|shape| Array::upload(&context, Field::Real, &shape, &[]).unwrap());
            let operator = Dense::new(&w).unwrap();
            let out = operator.apply(&x, Side::Forward, &never).unwrap();
            assert!(out.is_empty());
            assert!(operator.apply_vjp(&x, &out, Side::Forward, &[true], true, &never).is_ok());
        }
    }
}
