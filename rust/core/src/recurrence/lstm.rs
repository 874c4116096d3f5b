//! The LSTM over a whole sequence, real numbers, with gates in the order of `torch.nn.LSTM`:
//!
//! ```text
//! (i', f', g', o') = W h_{t-1} + U x_t + b
//! i = sigma(i'),  f = sigma(f'),  g = tanh(g'),  o = sigma(o')
//! c_t = f * c_{t-1} + i * g,      h_t = o * tanh(c_t)
//! ```
//!
//! A state is (h, c), 2n numbers: what the driver does to states, it does to both. Forward saves the gates for backward
//! ([`SAVED`]). Backward, with the cotangents h_bar and c_bar of h_t and c_t and a prime for those of the arguments of the gates,
//!
//! ```text
//! s = c_bar + h_bar * o * (1 - tanh(c_t)^2)
//! i' = s * g * i * (1 - i),  f' = s * c_{t-1} * f * (1 - f),  g' = s * i * (1 - g^2),  o' = h_bar * tanh(c_t) * o * (1 - o)
//! h_bar_{t-1} = W^T (i', f', g', o'),    c_bar_{t-1} = s * f
//! ```

use super::declaration::Declaration;
use super::pairs::{self, Law, Pass, PassPull, Product};
use super::time::Run;
use crate::argument::{Argument, argument};
use crate::scalar::Real;
use isometry_kernels::recurrence::{LstmGates, LstmGatesPull};

/// Arrays (T, B, n) that forward saves for backward.
pub const SAVED: usize = 4;

/// The arrays in the order of their gradients; there is no bias of an activation.
pub const ARGUMENTS: &[Argument] = &[
    argument!("x", "T B d"),
    argument!("w", "4n n"),
    argument!("u", "4n d"),
    argument!("b", "4n", optional),
    argument!("h0", "B 2n", optional),
    argument!("activation_bias", "", real, optional),
    argument!("start_state", "T B 2n", optional),
];

pub(super) const DECLARATION: Declaration = Declaration {
    width: 2,
    saved: SAVED,
    packs: &[(1, &[4]), (2, &[4])],
    ..Declaration::new("lstm", ARGUMENTS)
};

/// The arguments of an LSTM. The order of the gates in w, u and b is i, f, g, o.
///
/// ```
/// use isometry_core::Budget;
/// use isometry_core::recurrence::{Run, Unit, lstm::Lstm};
///
/// // without weights i = f = o = 1/2 and g = 0: c is halved, and h = tanh(c) / 2
/// let run = Run { h0: Some(&[0.0, 1.0]), ..Run::new([1, 1, 1, 2], &[0.0]) };
/// let (lstm, mut states) = (Lstm { run, w: &[0.0; 4], u: &[0.0; 4], b: None }, [0.0f64; 2]);
/// lstm.forward((&mut states).into(), &mut [], None, &Budget::of(1))?;
/// assert!((states[0] - 0.5f64.tanh() / 2.0).abs() < 1e-15 && states[1] == 0.5);
/// # Ok::<(), isometry_core::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Lstm<'a, R: Real> {
    /// What every cell has. Its state size is 2n: h and c, also in h0 and in the state before marked steps. The activation is tanh.
    /// `packs` are W and U.
    pub run: Run<'a, R>,
    /// W (4n, n)
    pub w: &'a [R],
    /// U (4n, d)
    pub u: &'a [R],
    /// b (4n)
    pub b: Option<&'a [R]>,
}

pairs::unit!(Lstm(), |_own| Gates);

/// The law: one product, and the pass of all gates.
#[derive(Clone, Copy)]
struct Gates;

impl<R: Real> Law<R, 1> for Gates {
    const PRODUCTS: [Product; 1] = [Product { gates: 0..4, part: 0, after: false }];
    const CARRIES: [bool; 2] = [false, false];

    unsafe fn pass(&self, _: usize, Pass { gates: [gates], previous, out, area }: Pass<R, 1>) {
        // SAFETY: the contract of the trait.
        unsafe { LstmGates { gates, previous, out, area }.call() }
    }

    unsafe fn pull(&self, _: usize, at: PassPull<R, 1>) {
        let PassPull { gates: [gates], previous, state, g: [h_bar, _], ct, bars, pitch, area, .. } = at;
        // SAFETY: the contract of the trait.
        unsafe {
            LstmGatesPull { gates, previous, state, h_bar, ct, carry: at.carry[1], bars, pitch, area }.call();
        }
    }
}
