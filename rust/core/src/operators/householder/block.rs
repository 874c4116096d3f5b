//! One block of a product of reflections, the compact WY form of some columns of U:
//!
//! ```text
//! B = I - U T^-1 U^H,      T = striu(U^H U) + diag(U^H U) / 2,
//! ```
//!
//! which maps rows Y by
//!
//! ```text
//! h = Y conj(U) (T^-1)^T,  Y <- Y - h U^T        (B^H: h = Y conj(U) conj(T^-1)).
//! ```

use super::hand::Hand;
use crate::kernels::{Operand, Product, Triangle, wy};
use crate::scalar::Scalar;
use crate::scratch::Frame;
use crate::side::Side;

const FULL: Triangle = Triangle::Full;

/// Some columns of U: n x m at `u`, row stride `stride`; for a trapezoid from row `top` on, the first that is not zero.
#[derive(Clone, Copy)]
pub(super) struct Columns<T> {
    pub u: *const T,
    pub stride: usize,
    pub n: usize,
    pub m: usize,
    /// First row, as an index into the whole of U.
    pub top: usize,
    /// `Lower` if the entries above the diagonal are zero.
    pub shape: Triangle,
}

impl<T: Scalar> Columns<T> {
    /// `width` columns from `first` on, or as many as there are.
    pub fn from(self, first: usize, width: usize) -> Self {
        let top = if self.shape == Triangle::Lower { first } else { 0 };
        let u = self.u.wrapping_add(top * self.stride + first);
        Columns { u, n: self.n - top, m: width.min(self.m - first), top, ..self }
    }

    pub fn operand(self) -> Operand<T> {
        Operand::new(self.u, self.stride)
    }

    /// `ti` (m x m, row stride `pitch`) = T^-1, zeros below the diagonal. `work` is [`crate::kernels::invert_work`] of
    /// m. Starts without and ends with a barrier.
    ///
    /// # Safety
    /// The arrays have their sizes; all members call this.
    pub unsafe fn inverse(self, hand: &Hand<'_, T>, ti: *mut T, pitch: usize, work: Frame) {
        let (u, sizes) = (self.operand(), (self.n, self.m));
        // SAFETY: the contract above; the hand's scratch is large enough for every product of the call.
        unsafe { wy::inverse(hand.member, u, sizes, self.shape, ti, pitch, work, hand.scratch) }
    }
}

/// A block with its T^-1.
#[derive(Clone, Copy)]
pub(super) struct Block<T> {
    pub columns: Columns<T>,
    pub ti: *mut T,
    /// Row stride of T^-1, and of h.
    pub width: usize,
    /// Entries of a row of Y.
    pub n: usize,
}

impl<T: Scalar> Block<T> {
    /// h of B or B^H. Ends with a barrier.
    ///
    /// # Safety
    /// y has `rows` rows of n, q and h `rows` rows with row stride `width`; the arrays are complete and do not overlap; all
    /// members of the hand call this.
    pub unsafe fn coefficients(
        self,
        hand: &Hand<'_, T>,
        side: Side,
        y: *const T,
        rows: usize,
        [q, h]: [*mut T; 2],
    ) {
        let Block { columns: Columns { n, m, top, shape, .. }, width, .. } = self;
        let (y, ti) = (Operand::new(y.wrapping_add(top), self.n), Operand::new(self.ti, width));
        let (ti, triangle) =
            if side == Side::Forward { (ti.t(), Triangle::Lower) } else { (ti.conj(), Triangle::Upper) };
        let inner = Product::new((rows, m, n), y, self.columns.operand().conj(), q, width);
        let outer = Product::new((rows, m, m), Operand::new(q, width), ti, h, width);
        // SAFETY: the contract above; barriers separate the products.
        unsafe {
            hand.mul(inner.shapes(FULL, shape, FULL));
            hand.barrier();
            hand.mul(outer.shapes(FULL, triangle, FULL));
        }
        hand.barrier();
    }

    /// out = Y - h U^T. No barrier.
    ///
    /// # Safety
    /// y and out have `rows` rows of n, and are equal or disjoint; h has `rows` rows, stride `width`, and is complete.
    pub unsafe fn subtract(self, hand: &Hand<'_, T>, y: *const T, h: *const T, rows: usize, out: *mut T) {
        let Block { columns: Columns { top, shape, .. }, width, n, .. } = self;
        let (h, u) = (Operand::new(h, width), self.columns.operand().t());
        let sizes = (rows, self.columns.n, self.columns.m);
        let product = Product::new(sizes, h, u, out.wrapping_add(top), n).alpha(-1.0);
        // SAFETY: the contract above; the columns before `top` are not changed.
        unsafe {
            hand.mul(product.onto(y.wrapping_add(top), n).shapes(FULL, shape.t(), FULL));
            if !std::ptr::eq(y, out) && top > 0 {
                for i in hand.member.share(rows, 1) {
                    std::ptr::copy_nonoverlapping(y.add(i * n), out.add(i * n), top);
                }
            }
        }
    }

    /// U_bar -= G^T conj(h) + Y^T conj(c), and L += h^T conj(c) in its lower triangle: Y are input rows of B with their h, G
    /// their cotangent with c = G conj(U) conj(T^-1). The `first` rows overwrite what was there. No barrier.
    ///
    /// # Safety
    /// y and g have `rows` rows of n, h and c `rows` rows with row stride `width`, `l` that of T^-1; all are complete.
    pub unsafe fn gather(
        self,
        hand: &Hand<'_, T>,
        [y, g]: [*const T; 2],
        [h, c]: [*const T; 2],
        (rows, first): (usize, bool),
        l: *mut T,
        (u_bar, stride): (*mut T, usize),
    ) {
        let Block { columns: Columns { m, .. }, width, n, .. } = self;
        let [y, g] = [y, g].map(|rows| Operand::new(rows, n).t());
        let [h, c] = [h, c].map(|rows| Operand::new(rows, width));
        let add = |product: Product<T>| if first { product } else { product.add() };
        let outer = |a, b| Product::new((n, m, rows), a, b, u_bar, stride).alpha(-1.0);
        let mixed = Product::new((m, m, rows), h.t(), c.conj(), l, width).shapes(FULL, FULL, Triangle::Lower);
        // SAFETY: the contract above; U_bar is distributed over the members in the same way both times.
        unsafe {
            hand.mul(add(mixed));
            hand.mul(add(outer(g, h.conj())));
            hand.mul(outer(y, c.conj()).add());
        }
    }

    /// U_bar += U (L + L^H), the diagonal of L counted once, after all rows. `l` is symmetric already.
    ///
    /// # Safety
    /// U_bar has the rows and columns of the block, row stride `stride`; `l` is complete.
    pub unsafe fn mix(self, hand: &Hand<'_, T>, l: *const T, (u_bar, stride): (*mut T, usize)) {
        let Columns { n, m, shape, .. } = self.columns;
        let product =
            Product::new((n, m, m), self.columns.operand(), Operand::new(l, self.width), u_bar, stride);
        // SAFETY: the contract above.
        unsafe { hand.mul(product.add().shapes(shape, FULL, FULL)) }
    }
}
