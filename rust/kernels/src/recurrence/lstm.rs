//! The elementwise passes of a cell with four gates, i, f, g and o in a row of 4 n numbers:
//!
//! ```text
//! c = f c' + i g,    h = o tanh(c)
//! ```
//!
//! A state is a row of 2 n numbers, h then c. Backward, with the cotangents h_bar and c_bar of both parts and a bar for those of
//! the arguments of the gates,
//!
//! ```text
//! s = c_bar + h_bar o (1 - tanh(c)^2)
//! i_bar = s g i (1 - i),  f_bar = s c' f (1 - f),  g_bar = s i (1 - g^2),  o_bar = h_bar tanh(c) o (1 - o),  c'_bar = s f
//! ```

use super::gates::{Area, or_zero, pass, pull, value};
use crate::activation::{Sigmoid, Tanh};

/// The gates from their arguments, in place, and the state.
///
/// # Safety
/// All pointers are at row 0 of the step and have the area; `previous` may be null for zeros.
pub struct LstmGates<R> {
    /// Rows of i, f, g, o.
    pub gates: *mut R,
    /// (h', c')
    pub previous: *const R,
    /// (h, c)
    pub out: *mut R,
    /// Where.
    pub area: Area,
}

/// [`LstmGates`] backward.
///
/// # Safety
/// All pointers are at row 0 of the step and have the area; `previous`, `h_bar` and `ct` may be null for zeros; what is written
/// overlaps nothing else.
pub struct LstmGatesPull<R> {
    /// Rows of i, f, g, o.
    pub gates: *const R,
    /// (h', c')
    pub previous: *const R,
    /// (h, c)
    pub state: *const R,
    /// h_bar from the step after, rows of n numbers.
    pub h_bar: *const R,
    /// Cotangents of the state (h, c) that are added.
    pub ct: *const R,
    /// c_bar from the step after, rows of n numbers, replaced by c'_bar; zeros where there is no `h_bar`.
    pub carry: *mut R,
    /// The bars, `pitch` numbers a row.
    pub bars: *mut R,
    /// Distance of the bars.
    pub pitch: usize,
    /// Where.
    pub area: Area,
}

pass!(LstmGates, |pass, n| |row, col, live| {
    let (gates, state) = (pass.gates.wrapping_add(4 * row * n + col), 2 * row * n + col);
    let i = value::<S, Sigmoid>(S::load_n(gates, live));
    let f = value::<S, Sigmoid>(S::load_n(gates.add(n), live));
    let g = value::<S, Tanh>(S::load_n(gates.add(2 * n), live));
    let o = value::<S, Sigmoid>(S::load_n(gates.add(3 * n), live));
    let c = S::mul_add(f, or_zero::<S>(pass.previous, state + n, live), S::mul(i, g));
    S::store_n(gates, i, live);
    S::store_n(gates.add(n), f, live);
    S::store_n(gates.add(2 * n), g, live);
    S::store_n(gates.add(3 * n), o, live);
    S::store_n(pass.out.add(state), S::mul(o, value::<S, Tanh>(c)), live);
    S::store_n(pass.out.add(state + n), c, live);
});

pass!(LstmGatesPull, |pass, n| |row, col, live| {
    let (at, state) = (row * n + col, 2 * row * n + col);
    let (gates, bars) = (pass.gates.wrapping_add(4 * row * n + col), row * pass.pitch + col);
    let bars = pass.bars.add(bars);
    let (i, f) = (S::load_n(gates, live), S::load_n(gates.add(n), live));
    let (g, o) = (S::load_n(gates.add(2 * n), live), S::load_n(gates.add(3 * n), live));
    let tanh = value::<S, Tanh>(S::load_n(pass.state.add(state + n), live));
    let mut h_bar = or_zero::<S>(pass.ct, state, live);
    let mut s = or_zero::<S>(pass.ct, state + n, live);
    if !pass.h_bar.is_null() {
        h_bar = S::add(h_bar, S::load_n(pass.h_bar.add(at), live));
        s = S::add(s, S::load_n(pass.carry.add(at), live));
    }
    let s = S::add(s, pull::<S, Tanh>(tanh, S::mul(h_bar, o)));
    let c = or_zero::<S>(pass.previous, state + n, live);
    S::store_n(bars, pull::<S, Sigmoid>(i, S::mul(s, g)), live);
    S::store_n(bars.add(n), pull::<S, Sigmoid>(f, S::mul(s, c)), live);
    S::store_n(bars.add(2 * n), pull::<S, Tanh>(g, S::mul(s, i)), live);
    S::store_n(bars.add(3 * n), pull::<S, Sigmoid>(o, S::mul(h_bar, tanh)), live);
    S::store_n(pass.carry.add(at), S::mul(s, f), live);
});
