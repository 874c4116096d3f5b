//! Sizes of arrays, multiplied with overflow checks.
//!
//! The rule, which is NumPy's: the product of an array's sizes, zeros left out, is at most [`MOST`], even if a zero
//! makes the array empty; else the call returns [`Error::Shape`]. A call whose outputs are all empty returns at once
//! without further checks. So work is bounded by existing memory, whatever the sizes.

use crate::error::{Error, Result};

/// Most elements of an array: no array has more than `isize::MAX` bytes, and an element has up to 16.
pub const MOST: usize = isize::MAX as usize / 16;

/// The number of elements of an array of these sizes.
///
/// # Errors
/// If their product is larger than [`MOST`].
#[inline]
pub fn size(argument: &'static str, sizes: &[usize]) -> Result<usize> {
    let (mut product, mut empty) = (1usize, false);
    for &size in sizes {
        empty |= size == 0;
        product = product.checked_mul(size.max(1)).filter(|&product| product <= MOST).ok_or_else(|| {
            let sizes: Vec<String> = sizes.iter().map(usize::to_string).collect();
            Error::shape(argument, "sizes whose product fits in memory", sizes.join(" x "))
        })?;
    }
    Ok(if empty { 0 } else { product })
}

/// `Ok` if an array of `got` elements has these sizes, else the shape error of `argument`.
///
/// # Errors
/// If there is another number of elements.
#[inline]
pub fn check_len(argument: &'static str, got: usize, sizes: &[usize]) -> Result<()> {
    let expected = size(argument, sizes)?;
    if got == expected {
        Ok(())
    } else {
        Err(Error::shape(argument, format!("{expected} elements"), format!("{got}")))
    }
}

/// The product of multiply-adds counted along several axes, saturating: for estimates of work.
#[inline]
pub fn work(counts: &[usize]) -> usize {
    counts.iter().fold(1, |product: usize, &count| product.saturating_mul(count))
}

/// The sizes of the strict upper triangles of `batch` n x n matrices: their product is batch n (n - 1) / 2.
#[inline]
pub fn triangles(batch: usize, n: usize) -> [usize; 3] {
    if n.is_multiple_of(2) { [batch, n / 2, n.saturating_sub(1)] } else { [batch, n, n / 2] }
}

/// Checks a diagonal (batch, n).
///
/// # Errors
/// If it has another size, or is that of a real skew matrix.
pub fn check_diagonal(real: bool, len: usize, batch: usize, n: usize) -> Result<()> {
    if real {
        return Err(Error::value("diagonal", "must not be given for a real type: A[j, j] = 0"));
    }
    check_len("diagonal", len, &[batch, n])
}

/// The size n of a skew matrix with `packed` = n (n - 1) / 2 entries above the diagonal, if there is one.
pub fn packed_size(packed: usize) -> usize {
    // n = (1 + sqrt(1 + 8 packed)) / 2, exact for every length that fits in memory
    ((1.0 + (1.0 + 8.0 * packed as f64).sqrt()) / 2.0).round() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_that_no_memory_holds_are_refused_also_beside_a_zero() {
        for sizes in [&[usize::MAX][..], &[1 << 32, 1 << 32], &[1 << 44, 0, 1 << 44], &[MOST, 2], &[MOST + 1]]
        {
            let error = size("x", sizes).unwrap_err().to_string();
            assert!(error.starts_with("x: expected sizes whose product fits in memory, got "), "{error}");
        }
        assert_eq!(size("x", &[0, 1 << 44]), Ok(0));
        assert_eq!(size("x", &[MOST, 1]), Ok(MOST));
        assert_eq!(size("x", &[]), Ok(1));
        assert!(size("x", &[3, 1 << 40, 1 << 40]).unwrap_err().to_string().contains("3 x 1099511627776 x "));
    }

    #[test]
    fn triangles_hold_the_entries_above_a_diagonal() {
        for n in 0..9 {
            assert_eq!(work(&triangles(5, n)), 5 * (n * n.saturating_sub(1) / 2));
        }
        assert_eq!(triangles(1, usize::MAX), [1, usize::MAX, usize::MAX / 2]);
    }
}
