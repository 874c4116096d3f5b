//! The gradients of a chunk that follow each other through the states: like the states, by columns of V ([`super::solve`]).

use super::Delta;
use super::pull::{Pull, operand, rows_of};
use super::state::State;
use crate::kernels::Triangle;
use crate::scalar::Real;
use isometry_kernels::delta::{Matrix, Values};
use std::ops::Range;

impl<R: Real> Pull<'_, R> {
    /// The member's columns of U_bar, in R, and of R_bar, in `r_bar`, from the gradient of the state behind the chunk.
    ///
    /// # Safety
    /// The triangles are there, and the late keys and o; R_bar has the rows of the chunk, S_bar is (K, V).
    pub unsafe fn residual_gradient(&self, s_bar: State<R>, r_bar: Matrix<R>) {
        let Pull { chunk, gradients, arrays, .. } = self;
        let Delta { value_heads: hv, key, value, .. } = *chunk.delta;
        let (c, queries, _) = chunk.sizes();
        let [r, vo] = [gradients.r, gradients.vo].map(|place| self.of_value(place));
        let (full, upper, shape) = (Triangle::Full, Triangle::Upper, chunk.shape());
        let (p, o) = (operand(chunk.square(chunk.triangles.p)), operand(vo.from(c)));
        let x = operand(chunk.square(chunk.triangles.inverse));
        let o_bar = rows_of(arrays.o, self.first, (hv, self.head), value);
        let soon = [chunk.soon(chunk.head.v, false), chunk.soon(o_bar, true)];
        // SAFETY: the caller's.
        unsafe {
            chunk.times((c, key), operand(chunk.late()), s_bar, r);
            chunk.values((c, queries), p, o, r, |x| x.add().shapes(shape, full, full));
            chunk.values((c, c), x, operand(r), r_bar, |x| x.shapes(upper, full, full).soon(soon));
        }
    }

    /// The member's columns of [-V_bar; o] and of `v_bar` (null: not written), and C gradients of beta, which are right only if
    /// all columns are the member's and z is Z.
    ///
    /// # Safety
    /// There is R_bar; z has the rows of the chunk.
    pub unsafe fn values(&self, z: Matrix<R>, r_bar: Matrix<R>, v_bar: Matrix<R>, beta_bar: *mut R) {
        let Pull { chunk, gradients, .. } = self;
        let (vo, beta, rows) = (self.of_value(gradients.vo), chunk.workspace.beta.ptr(), chunk.rows.len());
        for Range { start, end } in chunk.columns() {
            let v_bar = if v_bar.at.is_null() { v_bar } else { v_bar.right(start) };
            let (r_bar, z, negative) = (r_bar.right(start), z.right(start), vo.right(start));
            let n = end - start;
            // SAFETY: the caller's.
            unsafe { Values { r_bar, z, beta, v_bar, negative, beta_bar, rows, n }.call() }
        }
    }

    /// In the member's columns, the gradient `s_bar` of the state behind the chunk becomes that of the state s before it.
    ///
    /// # Safety
    /// There is [-V_bar; o]; S_bar is (K, V).
    pub unsafe fn retreat(&self, s_bar: State<R>, s: Option<*const R>) {
        let Pull { chunk, gradients, .. } = self;
        let Delta { value_heads: hv, key, value, .. } = *chunk.delta;
        let (c, queries, _) = chunk.sizes();
        let (early, vo) = (operand(chunk.early()).t(), operand(self.of_value(gradients.vo)));
        // the state saved before that of this chunk
        let soon = s.map_or(std::ptr::null(), |s| s.wrapping_sub(hv * key * value));
        // SAFETY: the caller's.
        unsafe {
            chunk.fade(s_bar);
            chunk.add(c + queries, early, vo, s_bar, soon);
        }
    }
}
