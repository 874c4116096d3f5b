//! The elementwise passes of a long expressive memory, whose two parts have a length of step of their own, from the arguments of
//! its gates:
//!
//! ```text
//! s_1, s_2 = sigma(.),  t_z = tanh(.),    z = z' + dt s_1 (t_z - z')
//! t_y = tanh(.), its argument a function of z,    y = y' + dt s_2 (t_y - y')
//! ```
//!
//! A state is a row of 2 n numbers, y then z. Backward, with the cotangents y_bar and z_bar of both parts and q for those of the
//! arguments,
//!
//! ```text
//! q_y = dt s_2 (1 - t_y^2) y_bar,    q_2 = dt s_2 (1 - s_2) (t_y - y') y_bar,    y'_bar = (1 - dt s_2) y_bar
//! ```
//!
//! then, where k is z_bar and what q_y adds to it,
//!
//! ```text
//! q_z = dt s_1 (1 - t_z^2) k,    q_1 = dt s_1 (1 - s_1) (t_z - z') k,    z'_bar = (1 - dt s_1) k
//! ```

use super::gates::{Area, or_zero, pass, pull, value};
use crate::activation::{Sigmoid, Tanh};

/// s_1, s_2 and t_z from their arguments, in place, and z.
///
/// # Safety
/// All pointers are at row 0 of the step and have the area; `previous` may be null for zeros.
pub struct Remember<R> {
    /// Rows of s_1, s_2, t_z.
    pub gates: *mut R,
    /// (y', z')
    pub previous: *const R,
    /// (y, z), of which z is written.
    pub out: *mut R,
    /// dt
    pub dt: R,
    /// Where.
    pub area: Area,
}

/// t_y from its argument, in place, and y.
///
/// # Safety
/// As [`Remember`].
pub struct Express<R> {
    /// Rows of s_1, s_2, t_z.
    pub gates: *const R,
    /// t_y, rows of n numbers.
    pub own: *mut R,
    /// (y', z')
    pub previous: *const R,
    /// (y, z), of which y is written.
    pub out: *mut R,
    /// dt
    pub dt: R,
    /// Where.
    pub area: Area,
}

/// [`Express`] backward, without the product with q_y.
///
/// # Safety
/// All pointers are at row 0 of the step and have the area; `previous`, `g`, both of them, and `ct` may be null for zeros; what is
/// written overlaps nothing else but g.
pub struct ExpressPull<R> {
    /// Rows of s_1, s_2, t_z.
    pub gates: *const R,
    /// t_y, rows of n numbers.
    pub own: *const R,
    /// (y', z')
    pub previous: *const R,
    /// y_bar and z_bar from the step after, rows of n numbers.
    pub g: [*const R; 2],
    /// Cotangents of the state (y, z) that are added.
    pub ct: *const R,
    /// y'_bar, rows of n numbers.
    pub carry: *mut R,
    /// z_bar, the sum of both parts, rows of n numbers.
    pub z_bar: *mut R,
    /// Rows of q_1, q_2, q_z, q_y, `pitch` numbers apart.
    pub bars: *mut R,
    /// Distance of the bars.
    pub pitch: usize,
    /// dt
    pub dt: R,
    /// Where.
    pub area: Area,
}

/// [`Remember`] backward.
///
/// # Safety
/// All pointers are at row 0 of the step and have the area; `previous` may be null for zeros; what is written overlaps nothing else.
pub struct RememberPull<R> {
    /// Rows of s_1, s_2, t_z.
    pub gates: *const R,
    /// (y', z')
    pub previous: *const R,
    /// k, rows of n numbers, replaced by z'_bar.
    pub z_bar: *mut R,
    /// Rows of q_1, q_2, q_z, q_y, `pitch` numbers apart.
    pub bars: *mut R,
    /// Distance of the bars.
    pub pitch: usize,
    /// dt
    pub dt: R,
    /// Where.
    pub area: Area,
}

pass!(Remember, |pass, n| {
    let dt = S::splat(pass.dt);
    |row, col, live| {
        let (gates, at) = (pass.gates.add(3 * row * n + col), (2 * row + 1) * n + col);
        let s_1 = value::<S, Sigmoid>(S::load_n(gates, live));
        let s_2 = value::<S, Sigmoid>(S::load_n(gates.add(n), live));
        let t = value::<S, Tanh>(S::load_n(gates.add(2 * n), live));
        S::store_n(gates, s_1, live);
        S::store_n(gates.add(n), s_2, live);
        S::store_n(gates.add(2 * n), t, live);
        let z = or_zero::<S>(pass.previous, at, live);
        S::store_n(pass.out.add(at), S::mul_add(S::mul(dt, s_1), S::sub(t, z), z), live);
    }
});

pass!(Express, |pass, n| {
    let dt = S::splat(pass.dt);
    |row, col, live| {
        let (own, at) = (pass.own.add(row * n + col), 2 * row * n + col);
        let s_2 = S::load_n(pass.gates.add((3 * row + 1) * n + col), live);
        let t = value::<S, Tanh>(S::load_n(own, live));
        S::store_n(own, t, live);
        let y = or_zero::<S>(pass.previous, at, live);
        S::store_n(pass.out.add(at), S::mul_add(S::mul(dt, s_2), S::sub(t, y), y), live);
    }
});

pass!(ExpressPull, |pass, n| {
    let dt = S::splat(pass.dt);
    |row, col, live| {
        let (at, state) = (row * n + col, 2 * row * n + col);
        let bars = pass.bars.add(row * pass.pitch + col);
        let y_bar = S::add(or_zero::<S>(pass.g[0], at, live), or_zero::<S>(pass.ct, state, live));
        let z_bar = S::add(or_zero::<S>(pass.g[1], at, live), or_zero::<S>(pass.ct, state + n, live));
        let s_2 = S::load_n(pass.gates.add((3 * row + 1) * n + col), live);
        let t = S::load_n(pass.own.add(at), live);
        let (y, scaled) = (or_zero::<S>(pass.previous, state, live), S::mul(dt, y_bar));
        S::store_n(bars.add(n), pull::<S, Sigmoid>(s_2, S::mul(scaled, S::sub(t, y))), live);
        S::store_n(bars.add(3 * n), pull::<S, Tanh>(t, S::mul(scaled, s_2)), live);
        S::store_n(pass.carry.add(at), S::neg_mul_add(scaled, s_2, y_bar), live);
        S::store_n(pass.z_bar.add(at), z_bar, live);
    }
});

pass!(RememberPull, |pass, n| {
    let dt = S::splat(pass.dt);
    |row, col, live| {
        let (at, bars) = (row * n + col, pass.bars.add(row * pass.pitch + col));
        let gates = pass.gates.add(3 * row * n + col);
        let (s_1, t) = (S::load_n(gates, live), S::load_n(gates.add(2 * n), live));
        let z = or_zero::<S>(pass.previous, (2 * row + 1) * n + col, live);
        let k = S::load_n(pass.z_bar.add(at), live);
        let scaled = S::mul(dt, k);
        S::store_n(bars, pull::<S, Sigmoid>(s_1, S::mul(scaled, S::sub(t, z))), live);
        S::store_n(bars.add(2 * n), pull::<S, Tanh>(t, S::mul(scaled, s_1)), live);
        S::store_n(pass.z_bar.add(at), S::neg_mul_add(scaled, s_1, k), live);
    }
});
