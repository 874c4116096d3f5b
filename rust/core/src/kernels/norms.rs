//! Passes over arrays: squared norms of the columns of a row-major matrix; whether an array is zero.

use crate::scalar::{Scalar, parts, parts_mut};
use isometry_kernels::norms::{Squares, Zeros};
use num_traits::Zero;

/// ||u_j||^2 for the columns j of u (rows of `room.len()` elements), each summed from the first row to the last.
pub fn column_norms2<'a, T: Scalar>(u: &[T], room: &'a mut [T]) -> &'a [T::Real] {
    panel_norms2(u, (room.len(), 0), room)
}

/// The same for as many columns as there is room for, from the j-th on, of rows of m elements.
pub fn panel_norms2<'a, T: Scalar>(u: &[T], (m, j): (usize, usize), room: &'a mut [T]) -> &'a [T::Real] {
    let columns = room.len();
    assert!(columns <= m - j, "columns of a row");
    let sums = parts_mut(room);
    if let Some(rows) = u.len().checked_div(m).filter(|_| columns > 0) {
        let (stride, width) = (m * T::PARTS, sums.len());
        let u = parts(u).as_ptr().wrapping_add(j * T::PARTS);
        // SAFETY: `rows` rows with these columns exist at u, one row of them at `sums`.
        unsafe { Squares { u, rows, stride, width, sums: sums.as_mut_ptr() }.call() };
    }
    for j in 0..columns {
        sums[j] = sums[j * T::PARTS..(j + 1) * T::PARTS].iter().fold(T::Real::zero(), |sum, &x| sum + x);
    }
    &sums[..columns]
}

/// Whether every element is zero.
pub fn all_zero<T: Scalar>(x: &[T]) -> bool {
    let x = parts(x);
    // SAFETY: reads the slice.
    unsafe { Zeros { x: x.as_ptr(), len: x.len() }.call() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scalar::{Real, c32};
    use crate::testing::every_type;

    fn check<T: Scalar>() {
        for (rows, m) in [(0, 3), (5, 0), (1, 1), (7, 16), (3, 33), (40, 70), (2, 129)] {
            let number = |e: usize| T::Real::of(((e * 37 + 11) % 64) as f64 / 8.0 - 4.0);
            let u: Vec<T> = (0..rows * m).map(|e| T::new(number(e), number(e + 5))).collect();
            // sums of small multiples of 1/64 are exact
            let expected: Vec<T::Real> = (0..m)
                .map(|j| (0..rows).map(|i| u[i * m + j].abs2()).fold(T::Real::zero(), |s, x| s + x))
                .collect();
            assert_eq!(column_norms2(&u, &mut vec![T::one(); m]), expected, "{rows} x {m}");
            let (j, until) = (m / 3, m - m / 4);
            let own = &mut vec![T::one(); until - j];
            assert_eq!(panel_norms2(&u, (m, j), own), &expected[j..until], "{rows} x {m}, a panel");
        }
    }

    #[test]
    fn one_number_that_is_not_zero_is_found() {
        for len in [0, 1, 15, 16, 17, 100] {
            let mut x = vec![c32::default(); len];
            assert!(all_zero(&x));
            for at in 0..len {
                for odd in [c32::new(0.0, 1e-30), c32::new(f32::NAN, 0.0)] {
                    x[at] = odd;
                    assert!(!all_zero(&x), "{at} of {len}");
                }
                x[at] = c32::new(-0.0, 0.0);
            }
        }
    }

    #[test]
    fn squared_lengths_of_columns() {
        every_type!(check());
    }
}
