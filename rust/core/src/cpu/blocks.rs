//! Rows times a block-diagonal matrix, y = diag(W_0, ..., W_{nb-1}) x: a row is x (nb, q), its result (nb, p).

use crate::error::Result;
use crate::kernels::Matrices;
use crate::scalar::Scalar;
use crate::side::Side;

/// The blocks: W (nb, p, q).
#[derive(Clone, Copy, Debug)]
pub struct Blocks<'a, T: Scalar>(Matrices<'a, T>);

impl<'a, T: Scalar> Blocks<'a, T> {
    /// Calls check the length of `data`.
    pub fn new(data: &'a [T], (batch, p, q): (usize, usize, usize)) -> Self {
        Blocks(Matrices { data, batch, p, q, interleaved: true })
    }

    /// x (rows, nb, q) -> out (rows, nb, p).
    ///
    /// # Errors
    /// If an array has another length.
    pub fn apply(&self, x: &[T], rows: usize, out: &mut [T], threads: usize) -> Result<()> {
        self.0.apply(x, rows, Side::Forward, out, threads)
    }

    /// The gradients that are wanted: of the blocks and of x, from that of the result.
    ///
    /// # Errors
    /// If an array has another length.
    pub fn apply_vjp(
        &self,
        x: &[T],
        ct: &[T],
        rows: usize,
        weight_bar: Option<&mut [T]>,
        x_bar: Option<&mut [T]>,
        threads: usize,
    ) -> Result<()> {
        self.0.apply_vjp(x, ct, rows, Side::Forward, weight_bar, x_bar, threads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{numbers, within_work};

    /// The results are those of every block on its own rows, for rectangular blocks too.
    fn check<T: Scalar>(nb: usize, rows: usize, (p, q): (usize, usize), threads: usize) {
        let (w, x, ct) =
            (numbers::<T>(nb * p * q, 3), numbers::<T>(rows * nb * q, 5), numbers::<T>(rows * nb * p, 7));
        let (mut y, mut w_bar) = (vec![T::default(); ct.len()], vec![T::default(); w.len()]);
        let mut x_bar = vec![T::default(); x.len()];
        let blocks = Blocks::new(&w, (nb, p, q));
        blocks.apply(&x, rows, &mut y, threads).unwrap();
        blocks.apply_vjp(&x, &ct, rows, Some(&mut w_bar), Some(&mut x_bar), threads).unwrap();
        for b in 0..nb {
            let own = |from: &[T], width: usize| -> Vec<T> {
                (0..rows).flat_map(|r| from[(r * nb + b) * width..][..width].to_vec()).collect()
            };
            let alone = Matrices { data: &w[b * p * q..][..p * q], batch: 1, p, q, interleaved: false };
            let (mut expected, mut pulled) = (vec![T::default(); rows * p], vec![T::default(); p * q]);
            let mut back = vec![T::default(); rows * q];
            let (x, ct) = (own(&x, q), own(&ct, p));
            alone.apply(&x, rows, Side::Forward, &mut expected, 1).unwrap();
            alone.apply_vjp(&x, &ct, rows, Side::Forward, Some(&mut pulled), Some(&mut back), 1).unwrap();
            assert!(own(&y, p) == expected && own(&x_bar, q) == back, "{nb} {rows} {p} {q}");
            assert!(w_bar[b * p * q..][..p * q] == pulled[..], "{nb} {rows} {p} {q}");
        }
    }

    #[test]
    fn each_block_acts_on_its_own_rows() {
        for (nb, rows, sizes) in
            [(1, 4, (3, 3)), (5, 1, (2, 2)), (7, 9, (4, 3)), (3, 40, (33, 17)), (2, 0, (3, 3))]
        {
            for threads in [1, 3].into_iter().filter(|_| within_work(&[nb, rows, sizes.0, sizes.1])) {
                check::<f32>(nb, rows, sizes, threads);
                check::<crate::scalar::c64>(nb, rows, sizes, threads);
            }
        }
    }
}
