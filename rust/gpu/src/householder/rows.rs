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
use crate::product::{Base, Operand, Product, record_sum};
use isometry_core::{Result, Side};

impl Householder<'_> {
    /// A row-major matrix of `columns` columns per operator.
    fn matrices<'b>(array: &'b Array) -> Operand<'b> {
        let columns = array.shape()[2];
        Operand::new(array, array.shape()[1] * columns, columns)
    }

    fn multiply(
        &self,
        record: &mut Record<'_>,
        a: Operand<'_>,
        b: Operand<'_>,
        sizes: (usize, usize, usize),
    ) -> Result<Array> {
        let out = self.room([sizes.0, sizes.1])?;
        Product::new(self.batch, sizes, a, b, Self::matrices(&out)).record_deep(record, self.field())?;
        Ok(out)
    }

    /// X E or X conj(E): X itself where E = I.
    fn scaled(&self, record: &mut Record<'_>, x: &Array, conj: bool) -> Result<Array> {
        let Some(last) = &self.last else { return Ok(x.clone()) };
        let out = Array::room(x.context(), x.field(), x.shape())?;
        last.scale(record, x, conj, &out)?;
        Ok(out)
    }

    /// H = Y conj(U) T^-T, or with conj(T^-1) for the other side.
    fn projected(&self, record: &mut Record<'_>, factors: &Factors, y: &Array, side: Side) -> Result<Array> {
        let (n, m, rows) = (self.n, self.m, y.shape()[1]);
        let (u, inverse) = (Self::matrices(&factors.u), Self::matrices(&factors.inverse));
        let inverse = if side == Side::Forward { inverse.t() } else { inverse.conj() };
        let q = self.multiply(record, Self::matrices(y), u.conj(), (rows, m, n))?;
        self.multiply(record, Self::matrices(&q), inverse, (rows, m, m))
    }

    /// Y - H U^T
    fn reflected(&self, record: &mut Record<'_>, factors: &Factors, y: &Array, h: &Array) -> Result<Array> {
        let (n, m, rows) = (self.n, self.m, y.shape()[1]);
        let out = Array::room(y.context(), y.field(), y.shape())?;
        let (h, u) = (Self::matrices(h), Self::matrices(&factors.u).t());
        Product::new(self.batch, (rows, n, m), h, u, Self::matrices(&out))
            .alpha(-1.0)
            .plus(Base::Array(Self::matrices(y)))
            .record_deep(record, self.field())?;
        Ok(out)
    }

    /// W x or W^H x.
    pub(super) fn rows(&self, record: &mut Record<'_>, x: &Array, side: Side) -> Result<Array> {
        let factors = self.factors(record)?;
        let y = if side == Side::Forward { self.scaled(record, x, false)? } else { x.clone() };
        let h = self.projected(record, factors, &y, side)?;
        self.keep(record, factors, x, side, &h);
        let out = self.reflected(record, factors, &y, &h)?;
        if side == Side::Forward { Ok(out) } else { self.scaled(record, &out, true) }
    }

    /// V = I - U T^-1 U^H
    fn reflections(&self, record: &mut Record<'_>, factors: &Factors) -> Result<Array> {
        let (n, m) = (self.n, self.m);
        let u = Self::matrices(&factors.u);
        let p = self.multiply(record, u, Self::matrices(&factors.inverse), (n, m, m))?;
        let out = self.room([n, n])?;
        Product::new(self.batch, (n, n, m), Self::matrices(&p), u.h(), Self::matrices(&out))
            .alpha(-1.0)
            .plus(Base::Identity(0, 0))
            .record_deep(record, self.field())?;
        Ok(out)
    }

    /// The gradients of W x; H of x, and P of ct, may be there from W x and W^H ct.
    pub(super) fn pull_rows(
        &self,
        record: &mut Record<'_>,
        x: &Array,
        ct: &Array,
        wanted: &[bool],
        x_wanted: bool,
    ) -> Result<Pulled> {
        let (n, m, rows) = (self.n, self.m, x.shape()[1]);
        let factors = self.factors(record)?;
        let (vectors, last) = self.wants(wanted);
        if !vectors && last.is_none() && !x_wanted {
            return Ok(Pulled { arguments: self.listed(None, None), x: None });
        }
        let (u, g) = (Self::matrices(&factors.u), Self::matrices(ct));
        let p = match self.kept_rows(ct, Side::Adjoint) {
            Some(p) => p,
            None => self.projected(record, factors, ct, Side::Adjoint)?,
        };
        let vectors = match vectors {
            false => None,
            true => {
                let y = self.scaled(record, x, false)?;
                let h = match self.kept_rows(x, Side::Forward) {
                    Some(h) => h,
                    None => self.projected(record, factors, &y, Side::Forward)?,
                };
                let (h, p) = (Self::matrices(&h), Self::matrices(&p));
                let l = self.multiply(record, h.t(), p.conj(), (m, m, rows))?;
                self.hermitian(record, &l)?;
                let bar = self.room([n, m])?;
                let product = |k, a, b| Product::new(self.batch, (n, m, k), a, b, Self::matrices(&bar));
                let parts = [
                    product(m, u, Self::matrices(&l)),
                    product(rows, g.t(), h.conj()).alpha(-1.0),
                    product(rows, Self::matrices(&y).t(), p.conj()).alpha(-1.0),
                ];
                record_sum(&parts, record, self.field())?;
                self.finish(record, factors, &bar)?;
                Some(bar)
            }
        };
        if !x_wanted && last.is_none() {
            return Ok(Pulled { arguments: self.listed(vectors, None), x: None });
        }
        let y_bar = self.reflected(record, factors, ct, &p)?;
        let bar = last.map(|last| last.bar(record, x, &y_bar)).transpose()?;
        let x = if x_wanted { Some(self.scaled(record, &y_bar, true)?) } else { None };
        Ok(Pulled { arguments: self.listed(vectors, bar), x })
    }
}

impl Operator for Householder<'_> {
    fn like(&self) -> &Array {
        self.vectors
    }
    fn sizes(&self) -> [usize; 3] {
        [self.batch, self.n, self.n]
    }

    fn record_matrix(&self, record: &mut Record<'_>) -> Result<Array> {
        let factors = self.factors(record)?;
        let v = self.reflections(record, factors)?;
        self.scaled(record, &v, false)
    }

    fn record_matrix_vjp(
        &self,
        record: &mut Record<'_>,
        _w: Option<&Array>,
        ct: &Array,
        wanted: &[bool],
    ) -> Result<Vec<Option<Array>>> {
        let (n, m) = (self.n, self.m);
        let (vectors, last) = self.wants(wanted);
        let factors = self.factors(record)?;
        let (u, inverse) = (Self::matrices(&factors.u), Self::matrices(&factors.inverse));
        let bar = match last {
            None => None,
            Some(last) => {
                let v = self.reflections(record, factors)?;
                Some(last.bar(record, &v, ct)?)
            }
        };
        if !vectors {
            return Ok(self.listed(None, bar));
        }
        // C_bar conj(E): the cotangent of V = I - U T^-1 U^H
        let v_bar = self.scaled(record, ct, true)?;
        let c = Self::matrices(&v_bar);
        let p = self.multiply(record, u, inverse, (n, m, m))?;
        let h = self.multiply(record, inverse, u.h(), (m, n, m))?;
        let (h, out) = (Self::matrices(&h), self.room([n, m])?);
        let bars = Self::matrices(&out);
        Product::new(self.batch, (n, m, n), c.h(), Self::matrices(&p), bars)
            .alpha(-1.0)
            .record_deep(record, self.field())?;
        let l = self.multiply(record, h, bars, (m, m, n))?;
        self.hermitian(record, &l)?;
        let parts = [
            Product::new(self.batch, (n, m, m), u, Self::matrices(&l), bars).alpha(-1.0).add(),
            Product::new(self.batch, (n, m, n), c, h.h(), bars).alpha(-1.0),
        ];
        record_sum(&parts, record, self.field())?;
        self.finish(record, factors, &out)?;
        Ok(self.listed(Some(out), bar))
    }

    fn record_apply(&self, record: &mut Record<'_>, x: &Array, side: Side) -> Result<Array> {
        self.check_rows("x", x, self.n)?;
        self.rows(record, x, side)
    }

    fn record_apply_vjp(
        &self,
        record: &mut Record<'_>,
        x: &Array,
        ct: &Array,
        side: Side,
        wanted: &[bool],
        x_wanted: bool,
    ) -> Result<Pulled> {
        self.check_rows("x", x, self.n)?;
        self.check_rows("ct", ct, self.n)?;
        if side == Side::Forward {
            return self.pull_rows(record, x, ct, wanted, x_wanted);
        }
        // Re <ct, W^H x> = Re <W ct, x>: the gradient of the adjoint is that of the forward map with x and ct exchanged
        let mut pulled = self.pull_rows(record, ct, x, wanted, false)?;
        if x_wanted {
            pulled.x = Some(self.rows(record, ct, Side::Forward)?);
        }
        Ok(pulled)
    }
}
