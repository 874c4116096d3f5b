//! W x for rows, and its gradient. With rows Y = X E, cotangents G of C = Y - H U^T and B the lower triangle of ones with 1/2 on the
//! diagonal (Mhammedi et al. 2017, Theorem 2, for all reflections at once):
//!
//! ```text
//! Q = Y conj(U),   H = Q T^-T,   P = (G conj(U)) conj(T^-1),   M = (H^T conj(P)) * B,
//! U_bar = U (M + M^H) - G^T conj(H) - Y^T conj(P),   Y_bar = G - P U^T,   X_bar = Y_bar conj(E).
//! ```
//!
//! The gradient of W = V E itself, from the cotangent V_bar = W_bar conj(E), with h = T^-1 U^H, P = U T^-1 and Q = V_bar^H P:
//!
//! ```text
//! U_bar = -Q - U (M + M^H) - V_bar h^H,      M = -(h Q) * B.
//! ```

use super::{Factors, Householder};
use crate::Array;
use crate::device::Record;
use crate::operator::{Operator, Pulled};
use crate::product::{Operand, Product};
use isometry_core::Side;
use isometry_core::error::Result;

impl Householder<'_> {
    /// A row-major matrix of `columns` columns per operator.
    fn matrices<'b>(array: &'b Array) -> Operand<'b> {
        let columns = array.shape()[2];
        Operand::new(array, array.shape()[1] * columns, columns)
    }

    fn multiply(
        &self,
        record: &mut Record,
        a: Operand<'_>,
        b: Operand<'_>,
        sizes: (usize, usize, usize),
    ) -> Result<Array> {
        let out = self.room([sizes.0, sizes.1])?;
        Product::new(self.batch, sizes, a, b, Self::matrices(&out)).record_deep(record, self.field())?;
        Ok(out)
    }

    /// c += alpha a b.
    fn add(
        &self,
        record: &mut Record,
        alpha: f32,
        (a, b): (Operand<'_>, Operand<'_>),
        sizes: (usize, usize, usize),
        c: &Array,
    ) -> Result<()> {
        Product::new(self.batch, sizes, a, b, Self::matrices(c))
            .alpha(alpha)
            .add()
            .record_deep(record, self.field())
    }

    /// X E or X conj(E): X itself where E = I.
    fn scaled(&self, record: &mut Record, x: &Array, conj: bool) -> Result<Array> {
        let Some(last) = &self.last else { return Ok(x.clone()) };
        let out = Array::room(x.context(), x.field(), x.shape())?;
        last.scale(record, x, conj, &out)?;
        Ok(out)
    }

    /// Y - H U^T with H = (Y conj(U)) `inverse`; Y is kept.
    fn reflected(
        &self,
        record: &mut Record,
        factors: &Factors,
        y: &Array,
        inverse: Operand<'_>,
    ) -> Result<Array> {
        let (n, m, rows) = (self.n, self.m, y.shape()[1]);
        let u = Self::matrices(&factors.u);
        let q = self.multiply(record, Self::matrices(y), u.conj(), (rows, m, n))?;
        let h = self.multiply(record, Self::matrices(&q), inverse, (rows, m, m))?;
        let out = self.copied(record, y)?;
        self.add(record, -1.0, (Self::matrices(&h), u.t()), (rows, n, m), &out)?;
        Ok(out)
    }

    fn copied(&self, record: &mut Record, x: &Array) -> Result<Array> {
        let out = Array::room(x.context(), x.field(), x.shape())?;
        record.copy(x, &out)?;
        Ok(out)
    }

    /// W x or W^H x.
    pub(super) fn rows(
        &self,
        record: &mut Record,
        factors: &Factors,
        x: &Array,
        side: Side,
    ) -> Result<Array> {
        let inverse = Self::matrices(&factors.inverse);
        if side == Side::Forward {
            let y = self.scaled(record, x, false)?;
            return self.reflected(record, factors, &y, inverse.t());
        }
        let y = self.reflected(record, factors, x, inverse.conj())?;
        self.scaled(record, &y, true)
    }

    /// V = I - U T^-1 U^H
    fn reflections(&self, record: &mut Record, factors: &Factors) -> Result<Array> {
        let (n, m) = (self.n, self.m);
        let u = Self::matrices(&factors.u);
        let p = self.multiply(record, u, Self::matrices(&factors.inverse), (n, m, m))?;
        let out = self.room([n, n])?;
        record.identity(&out)?;
        self.add(record, -1.0, (Self::matrices(&p), u.h()), (n, n, m), &out)?;
        Ok(out)
    }

    /// W = V E
    pub(super) fn whole(&self, record: &mut Record) -> Result<Array> {
        let factors = self.factors(record)?;
        let v = self.reflections(record, &factors)?;
        self.scaled(record, &v, false)
    }

    pub(super) fn pull_rows(
        &self,
        record: &mut Record,
        factors: &Factors,
        x: &Array,
        ct: &Array,
        wanted: &[bool],
        x_wanted: bool,
    ) -> Result<Pulled> {
        let (n, m, rows) = (self.n, self.m, x.shape()[1]);
        let (vectors, last) = self.wants(wanted);
        let (u, inverse) = (Self::matrices(&factors.u), Self::matrices(&factors.inverse));
        let g = Self::matrices(ct);
        let q = self.multiply(record, g, u.conj(), (rows, m, n))?;
        let p = self.multiply(record, Self::matrices(&q), inverse.conj(), (rows, m, m))?;
        let vectors = match vectors {
            false => None,
            true => {
                let y = self.scaled(record, x, false)?;
                let q = self.multiply(record, Self::matrices(&y), u.conj(), (rows, m, n))?;
                let h = self.multiply(record, Self::matrices(&q), inverse.t(), (rows, m, m))?;
                let (h, p) = (Self::matrices(&h), Self::matrices(&p));
                let l = self.multiply(record, h.t(), p.conj(), (m, m, rows))?;
                self.hermitian(record, &l)?;
                let bar = self.multiply(record, u, Self::matrices(&l), (n, m, m))?;
                self.add(record, -1.0, (g.t(), h.conj()), (n, m, rows), &bar)?;
                self.add(record, -1.0, (Self::matrices(&y).t(), p.conj()), (n, m, rows), &bar)?;
                self.finish(record, factors, &bar)?;
                Some(bar)
            }
        };
        if !x_wanted && last.is_none() {
            return Ok(Pulled { arguments: self.listed(vectors, None), x: None });
        }
        let y_bar = self.copied(record, ct)?;
        self.add(record, -1.0, (Self::matrices(&p), u.t()), (rows, n, m), &y_bar)?;
        let bar = last.map(|last| last.bar(record, x, &y_bar)).transpose()?;
        let x = if x_wanted { Some(self.scaled(record, &y_bar, true)?) } else { None };
        Ok(Pulled { arguments: self.listed(vectors, bar), x })
    }

    pub(super) fn pull_matrix(
        &self,
        record: &mut Record,
        ct: &Array,
        wanted: &[bool],
    ) -> Result<Vec<Option<Array>>> {
        let (n, m) = (self.n, self.m);
        let (vectors, last) = self.wants(wanted);
        let factors = self.factors(record)?;
        let (u, inverse) = (Self::matrices(&factors.u), Self::matrices(&factors.inverse));
        // C_bar conj(E): the cotangent of V = I - U T^-1 U^H
        let v_bar = self.scaled(record, ct, true)?;
        let c = Self::matrices(&v_bar);
        let bar = match last {
            None => None,
            Some(last) => {
                let v = self.reflections(record, &factors)?;
                Some(last.bar(record, &v, ct)?)
            }
        };
        if !vectors {
            return Ok(self.listed(None, bar));
        }
        let p = self.multiply(record, u, inverse, (n, m, m))?;
        let h = self.multiply(record, inverse, u.h(), (m, n, m))?;
        let (h, out) = (Self::matrices(&h), self.room([n, m])?);
        let minus_q =
            Product::new(self.batch, (n, m, n), c.h(), Self::matrices(&p), Self::matrices(&out)).alpha(-1.0);
        minus_q.record(record, self.field())?;
        let l = self.multiply(record, h, Self::matrices(&out), (m, m, n))?;
        self.hermitian(record, &l)?;
        self.add(record, -1.0, (u, Self::matrices(&l)), (n, m, m), &out)?;
        self.add(record, -1.0, (c, h.h()), (n, m, n), &out)?;
        self.finish(record, &factors, &out)?;
        Ok(self.listed(Some(out), bar))
    }
}
