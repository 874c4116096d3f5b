//! A group of matrices in a workspace: reading, writing, and the products with their factors.

use super::{LIFT, Sizes, lifted, normal, small};
pub(super) use crate::lanes::MOST;
use crate::lanes::{
    conj, conj_mul_add, from_lanes, load, mul, mul_add, neg_mul_add, scale, store, sub, to_lanes,
};
use crate::scalar::Real;
use crate::simd::Simd;
use num_traits::{Float, One, Zero};

/// One matrix of every lane, by the strides of its rows and columns in numbers.
#[derive(Clone, Copy)]
pub(super) struct View<R> {
    start: *mut R,
    row: usize,
    column: usize,
}

impl<R> View<R> {
    #[inline(always)]
    pub(super) fn at(self, i: usize, j: usize) -> *mut R {
        self.start.wrapping_add(i * self.row + j * self.column)
    }
}

/// The matrices, m x n with n <= m: A^H where A is wide, read and written in the order of A.
pub(super) struct Group<S: Simd, const P: usize> {
    sizes: Sizes,
    pub(super) m: usize,
    pub(super) n: usize,
    /// A, then B = A V, then the vectors of the reflections on and below the diagonal.
    pub(super) b: View<S::R>,
    /// W or U.
    pub(super) c: View<S::R>,
    /// W_bar, then A_bar.
    pub(super) g: View<S::R>,
    pub(super) v: View<S::R>,
    x: View<S::R>,
    /// s_j; the last is negative where the determinant turned the last column of U.
    pub(super) values: *mut S::R,
    /// 2 / ||v_j||^2 of the reflections, zero where there is none.
    pub(super) factors: *mut S::R,
    /// The diagonal of D.
    pub(super) phases: *mut S::R,
}

/// The numbers of a matrix are multiplied by both, powers of two: one alone may be out of range.
pub(super) type Scales<S> = [<S as Simd>::V; 2];

impl<S: Simd, const P: usize> Group<S, P> {
    /// # Safety
    /// `work` has the numbers of [`Sizes::work`] for S, not accessed otherwise while the group exists; the processor supports S.
    #[inline(always)]
    pub(super) unsafe fn new(sizes: Sizes, work: *mut S::R) -> Self {
        let ((m, n), each) = (sizes.tall(), P * S::LANES);
        let wide = sizes.columns > sizes.rows;
        let tall = |k: usize| {
            let start = work.wrapping_add(k * m * n * each);
            let [row, column] = if wide { [each, m * each] } else { [n * each, each] };
            View { start, row, column }
        };
        let rest = work.wrapping_add(3 * m * n * each);
        let square =
            |k: usize| View { start: rest.wrapping_add(k * n * n * each), row: n * each, column: each };
        let line = |k: usize| rest.wrapping_add((2 * n * n + k * n) * each);
        let (b, c, g, v, x) = (tall(0), tall(1), tall(2), square(0), square(1));
        Group { sizes, m, n, b, c, g, v, x, values: line(0), factors: line(1), phases: line(2) }
    }

    pub(super) fn special(&self) -> bool {
        self.sizes.special
    }

    /// Reads cotangents.
    ///
    /// # Safety
    /// The matrices exist at `from`.
    #[inline(always)]
    pub(super) unsafe fn load(&self, from: *const S::R, to: View<S::R>) {
        let len = self.m * self.n * P;
        // SAFETY: the contract above; the view has these vectors.
        unsafe {
            to_lanes::<S>(from, len, len, self.sizes.count, to.start, (1, 1));
            self.turn(to);
        }
    }

    /// Reads matrices, brings the largest part of each to [1, 2), and returns what it was multiplied by. A matrix that is not finite
    /// becomes NaN.
    ///
    /// # Safety
    /// The matrices exist at `from`.
    #[inline(always)]
    pub(super) unsafe fn load_scaled(&self, from: *const S::R, x: View<S::R>) -> Scales<S> {
        let len = self.m * self.n * P;
        // SAFETY: the contract above; the view has these vectors.
        unsafe {
            to_lanes::<S>(from, len, len, self.sizes.count, x.start, (1, 1));
            let (mut most, mut wrong) = (S::zero(), S::zero());
            for e in 0..len {
                let x = S::abs(S::load(x.start.add(e * S::LANES)));
                most = S::select_gt(x, most, x, most);
                wrong = S::mul_add(x, S::zero(), wrong);
            }
            let [mut largest, mut nan] = [[S::R::zero(); MOST]; 2];
            S::store(largest.as_mut_ptr(), most);
            S::store(nan.as_mut_ptr(), wrong);
            let [mut by, mut all] = [[[S::R::one(); MOST]; 2]; 2];
            for lane in 0..self.sizes.count {
                if nan[lane].is_nan() {
                    by[0][lane] = nan[lane];
                    continue;
                }
                let mut lift = 1.0;
                if largest[lane] < small::<S::R>() {
                    lift = LIFT;
                    for e in 0..len {
                        let x = x.start.add(e * S::LANES + lane);
                        *x = lifted(*x);
                        largest[lane] = largest[lane].max((*x).abs());
                    }
                }
                let [first, second] = normal(largest[lane].f64());
                (by[0][lane], by[1][lane]) = (S::R::of(first), S::R::of(second));
                (all[0][lane], all[1][lane]) = (S::R::of(first * lift), by[1][lane]);
            }
            let [first, second] = by.map(|by| S::load(by.as_ptr()));
            for e in 0..len {
                let at = x.start.add(e * S::LANES);
                S::store(at, S::mul(S::mul(S::load(at), first), second));
            }
            self.turn(x);
            all.map(|by| S::load(by.as_ptr()))
        }
    }

    /// A^H of wide complex matrices: the conjugates, in their own order.
    #[inline(always)]
    unsafe fn turn(&self, x: View<S::R>) {
        if P == 2 && self.sizes.columns > self.sizes.rows {
            for e in 0..self.m * self.n {
                let at = x.start.wrapping_add(e * P * S::LANES);
                // SAFETY: the view has these elements.
                unsafe { store::<S, P>(at, conj::<S, P>(load::<S, P>(at))) };
            }
        }
    }

    /// Multiplies by both; what overflows is the largest number.
    ///
    /// # Safety
    /// The processor supports S.
    #[inline(always)]
    pub(super) unsafe fn scale(&self, x: View<S::R>, by: Scales<S>) {
        for e in 0..self.m * self.n * P {
            let at = x.start.wrapping_add(e * S::LANES);
            // SAFETY: the view has these vectors.
            unsafe {
                let [most, least] = [S::splat(S::R::max_value()), S::splat(S::R::min_value())];
                let x = S::mul(S::mul(S::load(at), by[0]), by[1]);
                let x = S::select_gt(x, most, most, x);
                S::store(at, S::select_gt(least, x, least, x));
            }
        }
    }

    /// # Safety
    /// There is room for the matrices at `to`.
    #[inline(always)]
    pub(super) unsafe fn write(&self, x: View<S::R>, to: *mut S::R) {
        let len = self.m * self.n * P;
        // SAFETY: the contract above.
        unsafe {
            self.turn(x);
            from_lanes::<S>(x.start, len, to, len, self.sizes.count);
        }
    }

    /// C = D V^H with zeros below, or D alone.
    ///
    /// # Safety
    /// The group is decomposed.
    #[inline(always)]
    pub(super) unsafe fn start(&self, c: View<S::R>, with_v: bool) {
        // SAFETY: all elements exist.
        unsafe {
            for i in 0..self.m {
                for j in 0..self.n {
                    let mut x = [S::zero(); P];
                    if i < self.n && (with_v || i == j) {
                        x = load::<S, P>(self.phases.add(i * P * S::LANES));
                        if with_v {
                            x = mul::<S, P>(x, conj::<S, P>(load::<S, P>(self.v.at(j, i))));
                        }
                    }
                    store::<S, P>(c.at(i, j), x);
                }
            }
        }
    }

    /// C <- H_1 ... H_n C.
    ///
    /// # Safety
    /// The group is decomposed.
    #[inline(always)]
    pub(super) unsafe fn reflect(&self, c: View<S::R>) {
        for j in (0..self.n).rev() {
            for k in 0..self.n {
                // SAFETY: all elements exist.
                unsafe { self.reflection(j, c, k) };
            }
        }
    }

    /// Column k of C <- H_j of it.
    ///
    /// # Safety
    /// The reflection is in place.
    #[inline(always)]
    pub(super) unsafe fn reflection(&self, j: usize, c: View<S::R>, k: usize) {
        // SAFETY: all elements exist.
        unsafe {
            let mut sum = [S::zero(); P];
            for i in j..self.m {
                sum = conj_mul_add::<S, P>(load::<S, P>(self.b.at(i, j)), load::<S, P>(c.at(i, k)), sum);
            }
            let sum = scale::<S, P>(sum, S::load(self.factors.add(j * P * S::LANES)));
            for i in j..self.m {
                let x = neg_mul_add::<S, P>(load::<S, P>(self.b.at(i, j)), sum, load::<S, P>(c.at(i, k)));
                store::<S, P>(c.at(i, k), x);
            }
        }
    }

    /// G <- (U Y + (G V - U X) S^-1) V^H, with X = U^H G V and U in C.
    ///
    /// # Safety
    /// The group is decomposed.
    #[inline(always)]
    pub(super) unsafe fn pull(&self) {
        let Group { m, n, b, c, g, x, .. } = *self;
        // SAFETY: all elements exist.
        unsafe {
            // G V in the place of B
            self.times_v(g, b, false);
            for i in 0..n {
                for j in 0..n {
                    let mut sum = [S::zero(); P];
                    for k in 0..m {
                        sum = conj_mul_add::<S, P>(load::<S, P>(c.at(k, i)), load::<S, P>(b.at(k, j)), sum);
                    }
                    store::<S, P>(x.at(i, j), sum);
                }
            }
            let value = |j: usize| S::load(self.values.add(j * P * S::LANES));
            let least = S::mul(S::splat(S::R::EPS * S::R::of(m as f64)), S::abs(value(0)));
            let inverse =
                |s: S::V| S::select_gt(S::abs(s), least, S::div(S::splat(S::R::one()), s), S::zero());
            if m > n {
                for i in 0..m {
                    for j in 0..n {
                        let mut t = load::<S, P>(b.at(i, j));
                        for k in 0..n {
                            t = neg_mul_add::<S, P>(load::<S, P>(c.at(i, k)), load::<S, P>(x.at(k, j)), t);
                        }
                        store::<S, P>(b.at(i, j), scale::<S, P>(t, inverse(value(j))));
                    }
                }
            }
            for i in 0..n {
                for j in 0..=i {
                    let (own, other) = (load::<S, P>(x.at(i, j)), load::<S, P>(x.at(j, i)));
                    let y = sub::<S, P>(own, conj::<S, P>(other));
                    let y = scale::<S, P>(y, inverse(S::add(value(i), value(j))));
                    let zero = [S::zero(); P];
                    store::<S, P>(x.at(i, j), y);
                    if i != j {
                        store::<S, P>(x.at(j, i), sub::<S, P>(zero, conj::<S, P>(y)));
                    }
                }
            }
            for i in 0..m {
                for j in 0..n {
                    let mut t = if m > n { load::<S, P>(b.at(i, j)) } else { [S::zero(); P] };
                    for k in 0..n {
                        t = mul_add::<S, P>(load::<S, P>(c.at(i, k)), load::<S, P>(x.at(k, j)), t);
                    }
                    store::<S, P>(b.at(i, j), t);
                }
            }
            self.times_v(b, g, true);
        }
    }

    /// To <- from V or from V^H.
    #[inline(always)]
    unsafe fn times_v(&self, from: View<S::R>, to: View<S::R>, adjoint: bool) {
        for i in 0..self.m {
            for j in 0..self.n {
                // SAFETY: all elements exist.
                unsafe {
                    let mut sum = [S::zero(); P];
                    for k in 0..self.n {
                        let x = load::<S, P>(from.at(i, k));
                        sum = if adjoint {
                            conj_mul_add::<S, P>(load::<S, P>(self.v.at(j, k)), x, sum)
                        } else {
                            mul_add::<S, P>(x, load::<S, P>(self.v.at(k, j)), sum)
                        };
                    }
                    store::<S, P>(to.at(i, j), sum);
                }
            }
        }
    }
}
