//! What is combined is held against NumPy in `tests/gpu/test_arrays.py`.

use super::*;
use crate::testing::device;

#[test]
fn what_does_not_fit_is_refused() {
    let Some(context) = device() else { return };
    let made = |field, shape: &[usize]| Array::room(&context, field, shape).unwrap();
    let a = made(Field::Real, &[2, 3]);
    let one = (1.0, 0.0);
    assert!(combine(&a, one, Some((&made(Field::Real, &[3, 2]), one))).is_err());
    assert!(combine(&a, one, Some((&made(Field::Complex, &[2, 3]), one))).is_err());
    assert!(combine(&a, (1.0, 1.0), None).is_err());
}
