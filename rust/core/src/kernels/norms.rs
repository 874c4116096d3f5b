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
    use crate::scalar::c32;

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
}
