//! The matrices of a group of exponentials, one in each lane and each with its own level; the work of one
//! thread.

use super::Exponential;
use super::series::{self, A, Factor, G, SLOTS, Slot, Space, Symmetry};
use crate::kernels::lanes;
use crate::scalar::{Real, Scalar};
use isometry_kernels::exponential::lanes::{
    Adjoint, Gradient, Load, MOST, Multiply, Sizes, Skew, Squares, Store,
};
use isometry_kernels::exponential::{Combine, Keep, Scale, TERMS};
use num_traits::Zero;

/// Workspace for a product before it is added to its base, and for a transposed left factor.
const SPARE: [Slot; 2] = [SLOTS, SLOTS + 1];

/// Real numbers of scratch for one group of n x n matrices.
pub(super) fn scratch<T: Scalar>(n: usize) -> usize {
    let sizes = Sizes { n, count: 0 };
    MOST * ((SLOTS + SPARE.len()) * sizes.elements() * T::PARTS + packed::<T>(sizes))
}

/// Vectors of a packed triangle or diagonal.
fn packed<T: Scalar>(sizes: Sizes) -> usize {
    (sizes.triangle() * T::PARTS).max(sizes.n)
}

/// The matrices of a group.
pub(super) struct Group<T: Scalar> {
    room: *mut T::Real,
    sizes: Sizes,
    /// s of each lane.
    levels: [T::Real; MOST],
    most: usize,
}

impl<T: Scalar> Group<T> {
    /// A of the `count` matrices from the first on, at most one per lane.
    ///
    /// # Safety
    /// The view has them; `room` has the numbers of [`scratch`], not accessed otherwise while the group exists.
    pub(super) unsafe fn new(
        view: &Exponential<'_, T>,
        (first, count): (usize, usize),
        room: *mut T::Real,
    ) -> Self {
        let zero = [T::Real::zero(); MOST];
        let sizes = Sizes { n: view.n, count };
        let mut group = Group { room, sizes, levels: zero, most: 0 };
        let (upper, diagonal) = view.from(first);
        let mut norms = zero;
        let (out, packed, norms_) = (group.at(A), group.packed(), norms.as_mut_ptr());
        // SAFETY: the contract above; there is a norm for each lane.
        unsafe { Skew { upper, diagonal, sizes, out, packed, norms: norms_ }.call() };
        for (lane, norm) in norms.into_iter().enumerate() {
            let levels = series::levels(norm.f64(), 8);
            group.levels[lane] = T::Real::of(levels as f64);
            group.most = group.most.max(levels);
        }
        group.shrink(A);
        group
    }

    /// K of W and its cotangent, in [`G`].
    ///
    /// # Safety
    /// Both have the matrices of the group.
    pub(super) unsafe fn pull(&self, w: *const T, ct: *const T) {
        let sizes = self.sizes;
        // SAFETY: the contract above. K^H = W W_bar^H - W_bar W^H
        unsafe {
            Load { from: w, sizes, out: self.at(1) }.call();
            Load { from: ct, sizes, out: self.at(2) }.call();
        }
        self.adjoint(3, 2, [0.0, 1.0], None);
        self.multiply(4, 1, 3);
        self.adjoint(G, 4, [-1.0, 1.0], None);
    }

    /// Writes W; the matrix is lost.
    ///
    /// # Safety
    /// `to` has n n elements for each matrix of the group.
    pub(super) unsafe fn store(&self, m: Slot, to: *mut T) {
        // SAFETY: the contract above.
        unsafe { Store { from: self.at(m), sizes: self.sizes, to }.call() };
    }

    /// Writes the gradients of the parameters from skew matrices.
    ///
    /// # Safety
    /// `upper` has n (n - 1) / 2 elements for each matrix of the group, `diagonal` n.
    pub(super) unsafe fn pack(&self, m: Slot, (upper, diagonal): (Option<*mut T>, Option<*mut T::Real>)) {
        let (from, sizes, packed) = (self.at(m).cast_const(), self.sizes, self.packed());
        // SAFETY: the contract above.
        unsafe { Gradient { from, sizes, upper, diagonal, packed }.call() };
    }

    fn at(&self, m: Slot) -> *mut T::Real {
        self.room.wrapping_add(m * self.len())
    }

    fn packed(&self) -> *mut T::Real {
        self.at(SLOTS + SPARE.len())
    }

    /// Numbers of a matrix.
    fn len(&self) -> usize {
        self.sizes.elements() * T::PARTS * lanes::<T::Real>()
    }

    /// Lane l of M <- M 2^(by l), by two factors: one may be too small for a number.
    fn scale(&self, m: Slot, by: [i32; MOST]) {
        let factors =
            [by.map(|by| by / 2), by.map(|by| by - by / 2)].map(|by| by.map(|by| T::Real::of(2f64.powi(by))));
        let by = [factors[0].as_ptr(), factors[1].as_ptr()];
        // SAFETY: the matrix exists, and there is a factor for each lane.
        unsafe { Scale { x: self.at(m), len: self.len(), by }.call() };
    }

    fn multiply(&self, c: Slot, a: Slot, b: Slot) {
        let (a, b, c) = (self.at(a).cast_const(), self.at(b).cast_const(), self.at(c));
        // SAFETY: the matrices exist and are different ones.
        unsafe { Multiply::<T> { a, b, c, sizes: self.sizes }.call() };
    }

    fn adjoint(&self, to: Slot, from: Slot, by: [f64; 2], sum: Option<Slot>) {
        let (from, to, sum) = (self.at(from).cast_const(), self.at(to), sum.map(|sum| self.at(sum)));
        // SAFETY: the matrices exist and are different ones.
        unsafe { Adjoint::<T> { from, to, sum, sizes: self.sizes, by: by.map(T::Real::of) }.call() };
    }
}

impl<T: Scalar> Space for Group<T> {
    type R = T::Real;

    fn product(&self, c: Slot, a: Factor, b: Slot, base: Option<Slot>, _symmetry: Symmetry) {
        let a = match a {
            Factor::Of(a) => a,
            Factor::Adjoint(a) => {
                self.adjoint(SPARE[1], a, [0.0, 1.0], None);
                SPARE[1]
            }
        };
        let Some(base) = base else { return self.multiply(c, a, b) };
        self.multiply(SPARE[0], a, b);
        self.combine(c, 0.0, &[(1.0, base), (1.0, SPARE[0])]);
    }

    fn combine(&self, to: Slot, unit: f64, terms: &[(f64, Slot)]) {
        let mut all = [(T::Real::zero(), std::ptr::null()); TERMS];
        for (to, &(c, m)) in all.iter_mut().zip(terms) {
            *to = (T::Real::of(c), self.at(m).cast_const());
        }
        let width = lanes::<T::Real>();
        let (out, unit, pitch) = (self.at(to), T::Real::of(unit), self.sizes.ld() * T::PARTS * width);
        let (rows, element) = (0..self.sizes.pad(), (T::PARTS * width, width));
        // SAFETY: the matrices exist.
        unsafe { Combine { out, terms: all, unit, rows, pitch, element }.call() };
    }

    fn fold(&self, to: Slot, from: Slot, c: f64, symmetry: Symmetry, sum: Option<Slot>) {
        self.adjoint(to, from, [c, if symmetry == Symmetry::Skew { -c } else { c }], sum);
    }

    fn shrink(&self, m: Slot) {
        self.scale(m, self.levels.map(|levels| -(levels.f64() as i32)));
    }

    fn keep(&self, x: &mut Slot, y: &mut Slot, level: usize) {
        let (to, from, levels) = (self.at(*x), self.at(*y).cast_const(), self.levels.as_ptr());
        let level = T::Real::of(level as f64);
        // SAFETY: the matrices exist, and there is a level for each lane.
        unsafe { Keep { to, from, len: self.len(), levels, level }.call() };
    }

    fn levels(&self) -> usize {
        self.most
    }

    fn size(&self) -> usize {
        self.sizes.n
    }

    /// As for single matrices, but from the sums of squares only.
    fn refine(&mut self, b: Slot, b2: Slot) {
        let mut squares = [T::Real::zero(); MOST];
        let (m, sums) = (self.at(b2).cast_const(), squares.as_mut_ptr());
        // SAFETY: the matrix exists, and there is a sum for each lane.
        unsafe { Squares::<T> { m, sizes: self.sizes, sums }.call() };
        let mut fewer = [0; MOST];
        for lane in 0..MOST {
            let levels = self.levels[lane].f64() as usize;
            fewer[lane] = series::fewer(series::spectral::<T>(squares[lane].f64()), levels);
            self.levels[lane] = T::Real::of((levels - fewer[lane]) as f64);
        }
        if fewer.iter().any(|&fewer| fewer > 0) {
            for (m, power) in [(A, 1), (b, 2), (b2, 4)] {
                self.scale(m, fewer.map(|fewer| power * fewer as i32));
            }
        }
        self.most = self.levels.iter().fold(0, |most, levels| most.max(levels.f64() as usize));
    }
}
