//! The elementwise passes of a network of oscillators: from the argument of t,
//!
//! ```text
//! t = tanh(argument),    z = z' + dt (t - gamma y' - epsilon z'),    y = y' + dt z
//! ```
//!
//! A state is a row of 2 n numbers, y then z. Backward, with the cotangents y_bar and z_bar of both parts and q for that of the
//! argument,
//!
//! ```text
//! k = z_bar + dt y_bar,    q = dt (1 - t^2) k,    y'_bar = y_bar - dt gamma k,    z'_bar = (1 - dt epsilon) k
//! ```

use super::gates::{Area, or_zero, pass, pull, value};
use crate::activation::Tanh;

/// dt, gamma and epsilon.
#[derive(Clone, Copy)]
pub struct Oscillator<R> {
    /// The length of a step.
    pub dt: R,
    /// The factor of y.
    pub gamma: R,
    /// The factor of z.
    pub epsilon: R,
}

/// t from its argument, in place, and the state.
///
/// # Safety
/// All pointers are at row 0 of the step and have the area; `previous` may be null for zeros.
pub struct Oscillate<R> {
    /// t, rows of n numbers.
    pub t: *mut R,
    /// (y', z')
    pub previous: *const R,
    /// (y, z)
    pub out: *mut R,
    /// The constants.
    pub law: Oscillator<R>,
    /// Where.
    pub area: Area,
}

/// [`Oscillate`] backward, without the products with q.
///
/// # Safety
/// All pointers are at row 0 of the step and have the area; `g`, both of them, and `ct` may be null for zeros; what is written
/// overlaps nothing else.
pub struct OscillatePull<R> {
    /// t, rows of n numbers.
    pub t: *const R,
    /// y_bar and z_bar from the step after, rows of n numbers.
    pub g: [*const R; 2],
    /// Cotangents of the state (y, z) that are added.
    pub ct: *const R,
    /// y'_bar and z'_bar, rows of n numbers.
    pub carry: [*mut R; 2],
    /// Rows of q, `pitch` numbers apart.
    pub bars: *mut R,
    /// Distance of the bars.
    pub pitch: usize,
    /// The constants.
    pub law: Oscillator<R>,
    /// Where.
    pub area: Area,
}

pass!(Oscillate, |pass, n| {
    let Oscillator { dt, gamma, epsilon } = pass.law;
    let (dt, gamma, epsilon) = (S::splat(dt), S::splat(-gamma), S::splat(-epsilon));
    |row, col, live| {
        let (t_at, state) = (pass.t.add(row * n + col), 2 * row * n + col);
        let t = value::<S, Tanh>(S::load_n(t_at, live));
        let y = or_zero::<S>(pass.previous, state, live);
        let z = or_zero::<S>(pass.previous, state + n, live);
        let force = S::mul_add(epsilon, z, S::mul_add(gamma, y, t));
        let z = S::mul_add(dt, force, z);
        S::store_n(t_at, t, live);
        S::store_n(pass.out.add(state), S::mul_add(dt, z, y), live);
        S::store_n(pass.out.add(state + n), z, live);
    }
});

pass!(OscillatePull, |pass, n| {
    let Oscillator { dt, gamma, epsilon } = pass.law;
    let (step, stiff) = (S::splat(dt), S::splat(-dt * gamma));
    let damped = S::splat(R::one() - dt * epsilon);
    |row, col, live| {
        let (at, state) = (row * n + col, 2 * row * n + col);
        let y_bar = S::add(or_zero::<S>(pass.g[0], at, live), or_zero::<S>(pass.ct, state, live));
        let z_bar = S::add(or_zero::<S>(pass.g[1], at, live), or_zero::<S>(pass.ct, state + n, live));
        let k = S::mul_add(step, y_bar, z_bar);
        let t = S::load_n(pass.t.add(at), live);
        let q = pull::<S, Tanh>(t, S::mul(step, k));
        S::store_n(pass.bars.add(row * pass.pitch + col), q, live);
        S::store_n(pass.carry[0].add(at), S::mul_add(stiff, k, y_bar), live);
        S::store_n(pass.carry[1].add(at), S::mul(damped, k), live);
    }
});
