//! Against the matrix multiplied out.

use super::*;
use crate::testing::{every_type, numbers, rows};

/// W by the definition, from the real parts of the factors.
fn kron<W: Scalar<Real = f64>>(factors: &rows::Numbers, sizes: &[(usize, usize)]) -> Vec<W> {
    let (mut w, mut p, mut q) = (vec![W::one()], 1, 1);
    for (factor, &(r, c)) in factors.iter().zip(sizes) {
        let factor: Vec<W> = factor.chunks_exact(W::PARTS).map(|z| W::new(z[0], z[W::PARTS - 1])).collect();
        let entry = |at: usize| {
            let (i, j) = (at / (q * c), at % (q * c));
            w[i / r * q + j / c] * factor[i % r * c + j % c]
        };
        let next = (0..p * r * q * c).map(entry).collect();
        (w, p, q) = (next, p * r, q * c);
    }
    w
}

fn check<T: Scalar>(sizes: &[(usize, usize)], rows: usize) {
    let array = |(f, &(p, q)): (usize, &(usize, usize))| numbers(p * q, f as u64 + 1);
    let arrays: Vec<Vec<T>> = sizes.iter().enumerate().map(array).collect();
    let factors: Vec<Factor<'_, T>> =
        arrays.iter().zip(sizes).map(|(elements, &(p, q))| Factor { elements, p, q }).collect();
    rows::check(&Kronecker::new(&factors, 1).unwrap(), rows, true, &|all| kron::<T::Wide>(all, sizes));
}

#[test]
fn axes_equal_the_matrix() {
    fn all<T: Scalar>() {
        for sizes in [
            &[(2, 2); 7][..],
            &[(2, 3), (4, 1), (1, 2)],
            &[(5, 4)],
            &[(1, 1), (1, 3)],
            &[(3, 3), (17, 5), (2, 2)],
            &[(20, 18), (3, 2)],
            &[(2, 5), (33, 2), (3, 40)],
        ] {
            for rows in [0, 1, 7] {
                check::<T>(sizes, rows);
            }
        }
    }
    every_type!(all());
}
