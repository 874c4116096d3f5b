//! An operator that has rows alone: W = B A with A = I + diag(a) above the diagonal and B = I + diag(b) below it.

use crate::argument;
use crate::argument::{Argument, Array};
use crate::cpu::Cpu;
use crate::operator::Operator;
use crate::rows::{MatrixBars, RowPass, Rows};
use crate::scalar::{Real, Scalar, parts, parts_mut};
use crate::side::Side;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// What `load` writes, and the others find.
const LOADED: f64 = 7.0;

/// a and b, n - 1 each, one behind the other.
pub struct Shears<'a, T> {
    parameters: &'a [T],
    n: usize,
    loads: AtomicUsize,
}

impl<'a, T: Scalar> Shears<'a, T> {
    pub fn new(parameters: &'a [T], n: usize) -> Self {
        Shears { parameters, n, loads: AtomicUsize::new(0) }
    }

    /// How many times it was loaded since the last question.
    pub fn loads(&self) -> usize {
        self.loads.swap(0, Relaxed)
    }

    fn a(&self, i: usize) -> T {
        self.parameters[i]
    }
    fn b(&self, i: usize) -> T {
        self.parameters[self.n - 1 + i]
    }

    /// y <- A y
    fn upper(&self, y: &mut [T]) {
        for i in 0..self.n - 1 {
            y[i] += self.a(i) * y[i + 1];
        }
    }
    /// y <- A^H y
    fn upper_adjoint(&self, y: &mut [T]) {
        for i in (0..self.n - 1).rev() {
            y[i + 1] += self.a(i).conj() * y[i];
        }
    }
    /// y <- B y
    fn lower(&self, y: &mut [T]) {
        for i in (0..self.n - 1).rev() {
            y[i + 1] += self.b(i) * y[i];
        }
    }
    /// y <- B^H y
    fn lower_adjoint(&self, y: &mut [T]) {
        for i in 0..self.n - 1 {
            y[i] += self.b(i).conj() * y[i + 1];
        }
    }
}

const ARGUMENTS: &[Argument] = &[argument!("parameters", "k")];

impl<T: Scalar> Operator<T> for Shears<'_, T> {
    fn sizes(&self) -> [usize; 3] {
        [1, self.n, self.n]
    }
    fn arguments(&self) -> &'static [Argument] {
        ARGUMENTS
    }
    fn argument(&self, _i: usize) -> Array<'_, T> {
        Array::Own(self.parameters)
    }
}

impl<T: Scalar> Cpu<T> for Shears<'_, T> {
    fn rows(&self) -> Option<&dyn Rows<T>> {
        Some(self)
    }
}

// SAFETY: rows have n elements, the sums those of the parameters, the scratch one and those of the rows.
unsafe impl<T: Scalar> Rows<T> for Shears<'_, T> {
    fn work(&self) -> usize {
        2 * self.n * T::PARTS * T::PARTS
    }
    fn scratch(&self, rows: usize) -> usize {
        (rows * self.n + 1) * T::PARTS
    }
    fn sums(&self) -> usize {
        parts(self.parameters).len()
    }

    unsafe fn load(&self, _k: usize, scratch: *mut T::Real) {
        self.loads.fetch_add(1, Relaxed);
        // SAFETY: the contract of the trait.
        unsafe { scratch.write(T::Real::of(LOADED)) }
    }

    unsafe fn deal(
        &self,
        _k: usize,
        sums: &mut [T::Real],
        mut bars: MatrixBars<'_, T>,
        _scratch: *mut T::Real,
    ) {
        if let Some(bar) = bars.own(0) {
            parts_mut(bar).copy_from_slice(sums);
        }
    }

    unsafe fn apply_rows(
        &self,
        RowPass { rows, side, .. }: RowPass,
        x: *const T,
        out: *mut T,
        scratch: *mut T::Real,
    ) {
        // SAFETY: the contract of the trait.
        let (x, out) = unsafe {
            assert_eq!((*scratch).f64(), LOADED);
            out.copy_from_nonoverlapping(x, rows * self.n);
            (std::slice::from_raw_parts(x, rows * self.n), std::slice::from_raw_parts_mut(out, rows * self.n))
        };
        assert_eq!(x.len(), out.len());
        for y in out.chunks_exact_mut(self.n) {
            match side {
                Side::Forward => {
                    self.upper(y);
                    self.lower(y);
                }
                Side::Adjoint => {
                    self.lower_adjoint(y);
                    self.upper_adjoint(y);
                }
            }
        }
    }

    unsafe fn pull_rows(
        &self,
        RowPass { k, rows, side }: RowPass,
        [x, ct]: [*const T; 2],
        sums: *mut T::Real,
        x_bar: Option<*mut T>,
        scratch: *mut T::Real,
    ) {
        // Re(c, W^H x) = Re(W c, x): the parameters cannot tell x and c from each other.
        let (from, to) = if side == Side::Forward { (x, ct) } else { (ct, x) };
        let (n, all) = (self.n, scratch.cast::<T>().wrapping_add(1));
        // SAFETY: the contract of the trait.
        unsafe {
            assert_eq!((*scratch).f64(), LOADED);
            let sums = std::slice::from_raw_parts_mut(sums.cast::<T>(), self.parameters.len());
            let u = std::slice::from_raw_parts_mut(all, rows * n);
            for row in 0..rows {
                let (x, c) = (from.add(row * n), to.add(row * n));
                let u = &mut u[row * n..(row + 1) * n];
                for (i, u) in u.iter_mut().enumerate() {
                    *u = *x.add(i);
                }
                self.upper(u);
                for i in 0..n - 1 {
                    sums[n - 1 + i] += *c.add(i + 1) * u[i].conj();
                }
                for (i, u) in u.iter_mut().enumerate() {
                    *u = *c.add(i);
                }
                self.lower_adjoint(u);
                for i in 0..n - 1 {
                    sums[i] += u[i] * (*x.add(i + 1)).conj();
                }
            }
            if let Some(x_bar) = x_bar {
                self.apply_rows(RowPass { k, rows, side: side.other() }, ct, x_bar, scratch);
            }
        }
    }
}

/// A and B as matrices.
fn factors<W: Scalar>(parameters: &[W], n: usize) -> [Vec<W>; 2] {
    let mut factors = [vec![W::default(); n * n], vec![W::default(); n * n]];
    for i in 0..n {
        for factor in &mut factors {
            factor[i * n + i] = W::one();
        }
        if i + 1 < n {
            factors[0][i * n + i + 1] = parameters[i];
            factors[1][(i + 1) * n + i] = parameters[n - 1 + i];
        }
    }
    factors
}

/// The sum over k of x(i, k) y(k, j).
fn times<W: Scalar>(n: usize, x: impl Fn(usize, usize) -> W, y: impl Fn(usize, usize) -> W) -> Vec<W> {
    let element = |at: usize| (0..n).map(|k| x(at / n, k) * y(k, at % n)).sum();
    (0..n * n).map(element).collect()
}

/// W
pub fn matrix<W: Scalar>(parameters: &[W], n: usize) -> Vec<W> {
    let [a, b] = factors(parameters, n);
    times(n, |i, k| b[i * n + k], |k, j| a[k * n + j])
}

/// The gradients of a and b from that of W: A_bar = B^H W_bar, B_bar = W_bar A^H.
pub fn pull<W: Scalar>(parameters: &[W], n: usize, w_bar: &[W]) -> Vec<W> {
    let [a, b] = factors(parameters, n);
    let a_bar = times(n, |i, k| b[k * n + i].conj(), |k, j| w_bar[k * n + j]);
    let b_bar = times(n, |i, k| w_bar[i * n + k], |k, j| a[j * n + k].conj());
    let above = (0..n - 1).map(|i| a_bar[i * n + i + 1]);
    above.chain((0..n - 1).map(|i| b_bar[(i + 1) * n + i])).collect()
}
