//! C = A B or C += alpha A B for matrices in memory, shared by the members of a call; see [`isometry_kernels::product`].

use crate::parallel::Member;
use crate::scalar::{Real, Scalar};
use crate::sizes::work;
use isometry_kernels::pack::Operand;
use isometry_kernels::product::{Multiply, Triangle, own_columns, scratch_len};
use num_traits::One;
use std::ops::Range;

/// Most multiply-adds of a product that is summed without tiles.
const SMALL: usize = 64;

/// One product: C (m x n) from A (m x k) and B (k x n).
#[derive(Clone, Copy)]
pub struct Product<T: Scalar>(Multiply<T>);

impl<T: Scalar> Product<T> {
    /// C = A B; `c` is row-major with the given row stride. Sizes are (m, n, k).
    pub fn new(
        (m, n, k): (usize, usize, usize),
        a: Operand<T>,
        b: Operand<T>,
        c: *mut T,
        c_rows: usize,
    ) -> Self {
        Product(Multiply {
            m,
            n,
            k,
            a,
            b,
            factors: std::ptr::null(),
            c,
            c_rows,
            alpha: T::Real::one(),
            base: std::ptr::null(),
            base_rows: 0,
            shape: [Triangle::Full; 3],
            soon: [(c.cast_const(), c_rows), (std::ptr::null(), 0)],
            span: None,
            id: 0,
            count: 1,
            scratch: std::ptr::null_mut(),
        })
    }
    /// A real factor.
    pub fn alpha(self, alpha: f64) -> Self {
        Product(Multiply { alpha: T::Real::of(alpha), ..self.0 })
    }
    /// C = A diag(factors) B: k real factors.
    pub fn between(self, factors: *const T::Real) -> Self {
        Product(Multiply { factors, ..self.0 })
    }
    /// Adds to the contents of C.
    pub fn add(self) -> Self {
        Product(Multiply { base: self.0.c, base_rows: self.0.c_rows, ..self.0 })
    }
    /// Adds to another row-major matrix: C = base + alpha A B. A base that overlaps C must be C itself.
    pub fn onto(self, base: *const T, rows: usize) -> Self {
        Product(Multiply { base, base_rows: rows, ..self.0 })
    }
    /// Shapes of A, B and C. A and B must hold zeros outside their triangles; C is unspecified outside its own.
    pub fn shapes(self, a: Triangle, b: Triangle, c: Triangle) -> Self {
        Product(Multiply { shape: [a, b, c], ..self.0 })
    }

    /// Prefetches the first m rows and n columns of two matrices (null: none) with these row strides instead of C.
    pub fn soon(self, soon: [(*const T, usize); 2]) -> Self {
        Product(Multiply { soon, ..self.0 })
    }

    /// Only columns `start..end` of C, split at multiples of 32 (or n). All products of this width that name their
    /// columns distribute them identically, so a member may read what it wrote itself without a barrier.
    pub fn columns(self, (start, end): (usize, usize)) -> Self {
        Product(Multiply { span: Some((start, end)), ..self.0 })
    }

    /// The columns among `start..end` assigned to a member by a product of width n that names its columns.
    pub fn own(member: &Member<'_>, n: usize, span: (usize, usize)) -> impl Iterator<Item = Range<usize>> {
        own_columns::<T>((member.id, member.count), n, span)
    }

    /// Real numbers of scratch per member for products up to m x n x k.
    pub fn scratch(m: usize, k: usize) -> usize {
        scratch_len::<T>(m, k)
    }

    /// Whether the sums cost less one by one than the tiles take to prepare, some 50 ns.
    pub fn is_small(&self) -> bool {
        work(&[self.0.m, self.0.n, self.0.k]) <= SMALL
    }

    /// C = A B, sum by sum: no factor and no base.
    ///
    /// # Safety
    /// The matrices exist in memory; C overlaps neither A nor B.
    #[inline]
    pub unsafe fn sum_by_sum(&self) {
        debug_assert!(self.strides_hold(), "a stride is shorter than a line of its matrix");
        let Multiply { m, n, k, a, b, c, c_rows, .. } = self.0;
        for i in 0..m {
            for j in 0..n {
                let mut sum = T::zero();
                for p in 0..k {
                    // SAFETY: the operands have these elements.
                    let (x, y) = unsafe {
                        (*a.data.add(i * a.rows + p * a.cols), *b.data.add(p * b.rows + j * b.cols))
                    };
                    let (x, y) = (if a.conj { x.conj() } else { x }, if b.conj { y.conj() } else { y });
                    sum += x * y;
                }
                // SAFETY: C has the element.
                unsafe { c.add(i * c_rows + j).write(sum) };
            }
        }
    }

    /// Whether the strides hold the sizes: no line of A, B, C or the base runs into the next one.
    fn strides_hold(&self) -> bool {
        let Multiply { m, n, k, a, b, c_rows, base, base_rows, .. } = self.0;
        let hold = |rows: usize, cols: usize, between_rows: usize, between_cols: usize| {
            let (line, step, next) = if between_cols <= between_rows {
                (cols, between_cols, between_rows)
            } else {
                (rows, between_rows, between_cols)
            };
            rows <= 1 || cols <= 1 || (line - 1).saturating_mul(step) < next
        };
        hold(m, k, a.rows, a.cols)
            && hold(k, n, b.rows, b.cols)
            && hold(m, n, c_rows, 1)
            && (base.is_null() || hold(m, n, base_rows, 1))
    }

    /// Runs this member's part. No barrier: the caller must place one before others read C.
    ///
    /// # Safety
    /// The matrices exist in memory; C overlaps neither A nor B, but may be B if k and m are at most 256; all members of
    /// a call run the same product; `scratch` holds [`Product::scratch`] numbers, separate for each member.
    pub unsafe fn run(&self, member: &Member<'_>, scratch: *mut T::Real) {
        debug_assert!(self.strides_hold(), "a stride is shorter than a line of its matrix");
        // SAFETY: the contract of `Multiply` is the one above.
        unsafe { Multiply { id: member.id, count: member.count, scratch, ..self.0 }.call() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::Buffer;
    use crate::parallel;

    use crate::testing::{every_type, numbers};

    fn check<T: Scalar>(m: usize, n: usize, k: usize, threads: usize) {
        let pad = 5;
        for variant in 0..8 {
            let (ta, tb, ca) = (variant & 1 == 1, variant & 2 == 2, variant & 4 == 4);
            let (ra, rb) = (if ta { m } else { k } + pad, if tb { k } else { n } + pad);
            let a: Vec<T> = numbers(if ta { k } else { m } * ra + 1, 3);
            let b: Vec<T> = numbers(if tb { n } else { k } * rb + 1, 5);
            let rc = n + 3;
            let before: Vec<T> = numbers(m * rc + 1, 7);
            let c = std::cell::UnsafeCell::new(before.clone());
            let (mut oa, mut ob) = (Operand::new(a.as_ptr(), ra), Operand::new(b.as_ptr(), rb));
            if ta {
                oa = oa.t();
            }
            if tb {
                ob = ob.t();
            }
            if ca {
                (oa, ob) = (oa.conj(), if tb { ob.conj() } else { ob });
            }
            let add = ca;
            // SAFETY: there is no other reference to the cell now.
            let out = unsafe { (*c.get()).as_mut_ptr() };
            let mut product = Product::new((m, n, k), oa, ob, out, rc).alpha(-0.5);
            if add {
                product = product.add();
            }
            struct Wrap<T: Scalar>(Product<T>);
            // SAFETY: members of a product write disjoint parts of C.
            unsafe impl<T: Scalar> Sync for Wrap<T> {}
            let wrap = Wrap(product);
            parallel::run(threads, &|member| {
                let wrap = &wrap;
                let s = Buffer::<T::Real>::scratch(Product::<T>::scratch(m, k));
                // SAFETY: the operands have the sizes of the product.
                unsafe { wrap.0.run(member, s.ptr()) };
            });
            let c = c.into_inner();
            let get = |x: &Vec<T>, r: usize, t: bool, i: usize, j: usize| {
                if t { x[j * r + i] } else { x[i * r + j] }
            };
            for i in 0..m {
                for j in 0..rc {
                    let mut expected = before[i * rc + j];
                    if j < n {
                        let mut sum = T::Wide::default();
                        for p in 0..k {
                            let (mut x, mut y) =
                                (get(&a, ra, ta, i, p).widen(), get(&b, rb, tb, p, j).widen());
                            if ca {
                                x = x.conj();
                                if tb {
                                    y = y.conj();
                                }
                            }
                            sum += x * y;
                        }
                        let base = if add { expected } else { T::default() };
                        expected = T::narrow(base.widen() + sum.scale(-0.5));
                    }
                    let tolerance = if j < n { 40.0 * T::Real::EPS.f64() * (k as f64).sqrt() } else { 0.0 };
                    let error = (c[i * rc + j].widen() - expected.widen()).modulus();
                    assert!(error <= tolerance, "{m}x{n}x{k} variant {variant} at ({i}, {j}): {error:e}");
                }
            }
        }
    }

    #[test]
    fn strides_hold_the_sizes_or_do_not() {
        const SIZES: [usize; 4] = [1, 2, 5, 33];
        let (data, c) =
            (std::ptr::NonNull::<f64>::dangling().as_ptr(), std::ptr::NonNull::dangling().as_ptr());
        let product = |(m, n, k), [a, b, rows, base]: [usize; 4], t: bool| {
            let (a, b) = (Operand::new(data, a), Operand::new(data, b));
            let (a, b) = if t { (a.t(), b.t()) } else { (a, b) };
            Product::new((m, n, k), a, b, c, rows).onto(data, base)
        };
        for (i, t) in (0..SIZES.len().pow(3)).flat_map(|i| [false, true].map(|t| (i, t))) {
            let (m, n, k) = (SIZES[i % 4], SIZES[i / 4 % 4], SIZES[i / 16]);
            // the lines of A, B, C and the base, and how many of them there are
            let lines = if t { [m, k, n, n] } else { [k, n, n, n] };
            let counts = if t { [k, n, m, m] } else { [m, k, m, m] };
            for pad in [0, 1, 7] {
                assert!(product((m, n, k), lines.map(|line| line + pad), t).strides_hold());
            }
            for (at, (line, count)) in lines.into_iter().zip(counts).enumerate() {
                let mut strides = lines;
                strides[at] = line - 1;
                let held = line == 1 || count == 1;
                assert_eq!(
                    product((m, n, k), strides, t).strides_hold(),
                    held,
                    "{m}x{n}x{k} {t} {strides:?}"
                );
            }
        }
    }

    /// The parts of `count` members, one after another.
    fn by_members<T: Scalar>(product: Product<T>, count: usize) {
        let scratch = Buffer::<T::Real>::scratch(Product::<T>::scratch(product.0.m, product.0.k));
        for id in 0..count {
            // SAFETY: the operands have the sizes of the product.
            unsafe { Multiply { id, count, scratch: scratch.ptr(), ..product.0 }.call() };
        }
    }

    fn infinities<T: Scalar>(m: usize, n: usize) {
        let infinite = T::real(T::Real::of(f64::INFINITY));
        for (shape, at) in [Triangle::Lower, Triangle::Upper]
            .into_iter()
            .flat_map(|shape| [0, m / 3, m / 2, m - 2].map(|at| (shape, at)))
        {
            let inside = |i: usize, j: usize| if shape == Triangle::Lower { j <= i } else { i <= j };
            let mut a: Vec<T> = numbers(m * m, 3);
            for (_, a) in a.iter_mut().enumerate().filter(|(at, _)| !inside(at / m, at % m)) {
                *a = T::zero();
            }
            let mut b: Vec<T> = numbers(m * n, 5);
            b[at * n] = infinite;
            let [one, others @ ..] = [1, 2, 3, 8].map(|count| {
                let mut c = vec![T::zero(); m * n];
                let (a, b) = (Operand::new(a.as_ptr(), m), Operand::new(b.as_ptr(), n));
                let product = Product::new((m, n, m), a, b, c.as_mut_ptr(), n);
                by_members(product.shapes(shape, Triangle::Full, Triangle::Full), count);
                // NaN is equal to NaN here
                format!("{c:?}")
            });
            assert!(others.iter().all(|other| *other == one), "{m} x {n}, {shape:?}, infinite row {at}");
        }
    }

    #[test]
    fn infinities_reach_the_same_entries_whoever_computes_them() {
        for (m, n) in [(13, 3), (20, 1), (34, 16), (600, 2)] {
            every_type!(infinities(m, n));
        }
    }

    #[test]
    fn products_equal_the_sums_in_every_layout() {
        for (m, n, k) in [
            (1, 1, 1),
            (1, 40, 9),
            (2, 5, 3),
            (3, 33, 17),
            (7, 16, 64),
            (13, 65, 31),
            (40, 70, 300),
            (5, 3, 0),
        ] {
            for threads in [1, 2, 3] {
                every_type!(check(m, n, k, threads));
            }
        }
    }
}
