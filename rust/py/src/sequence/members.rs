//! The arrays of an ensemble, member by member.

use crate::arrays::{Input, Number, Output, write};
use crate::error::exception;
use isometry_core::Error;
use isometry_core::argument::{Array, Bar, Given};
use isometry_core::internal::parallel::cut;
use pyo3::prelude::*;

/// The array of the first member.
pub fn part<'a, T: Number>(given: &Given<'a, T>, members: usize) -> Given<'a, T> {
    match members {
        // the shape alone
        0 => Given { shape: given.shape.get(1..).unwrap_or(&[]), array: given.array },
        _ => given.member(0),
    }
}

/// Refuses arrays of an ensemble whose first axis is not one of these.
pub fn stacked<T: Number>(given: &[Given<'_, T>], members: usize, sizes: &[usize]) -> PyResult<()> {
    let wrong = |given: &&Given<'_, T>| {
        !matches!(given.array, Array::None) && !given.shape.first().is_some_and(|first| sizes.contains(first))
    };
    given.iter().find(wrong).map_or(Ok(()), |given| {
        let got = format!("shape {:?}", given.shape);
        Err(exception(Error::shape("arrays", format!("{members} members as the first axis"), got)))
    })
}

/// The part of the i-th member, or that of all.
pub fn nth<A>(all: &[A], each: usize, i: usize) -> &[A] {
    if all.len() == each { all } else { &all[i * each..(i + 1) * each] }
}

/// The parts of all members of an array that is written.
pub fn parts<'a, T: Number>(
    array: &'a mut Option<Output<'_, T>>,
    count: usize,
) -> impl Iterator<Item = Option<&'a mut [T]>> {
    let all = write(array);
    let each = all.as_ref().map_or(0, |all| all.len() / count.max(1));
    cut(all, each, count)
}

/// The part of the i-th member of an array that is read.
pub fn of<'a, T: Number>(array: &'a Input<'_, T>, count: usize, i: usize) -> &'a [T] {
    let each = array.slice().len() / count.max(1);
    &array.slice()[i * each..(i + 1) * each]
}

/// The same of an array that may be missing.
pub fn some<'a, T: Number>(array: &'a Option<Input<'_, T>>, count: usize, i: usize) -> Option<&'a [T]> {
    array.as_ref().map(|array| of(array, count, i))
}

/// The rooms of gradients, member by member.
pub fn each<'a, T: Number>(bars: Vec<Bar<'a, T>>, count: usize) -> Vec<std::vec::IntoIter<Bar<'a, T>>> {
    bars.into_iter().map(|bar| bar.each(count).into_iter()).collect()
}
