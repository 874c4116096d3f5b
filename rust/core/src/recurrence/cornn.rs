//! The coupled oscillatory network of Rusch and Mishra (arXiv 2010.00951, equation 3) over a whole sequence, real numbers:
//!
//! ```text
//! t_t = tanh(W_y y_{t-1} + W_z z_{t-1} + U x_t + b)
//! z_t = z_{t-1} + dt (t_t - gamma y_{t-1} - epsilon z_{t-1}),      y_t = y_{t-1} + dt z_t
//! ```
//!
//! A state is (y, z), 2n numbers. Forward saves t, which could be had from the states only up to a factor 1 / dt of their rounding.
//! Backward, with the cotangents y_bar and z_bar of y_t and z_t,
//!
//! ```text
//! k = z_bar + dt y_bar,    q = dt (1 - t_t^2) * k
//! y_bar_{t-1} = y_bar - dt gamma k + W_y^T q,    z_bar_{t-1} = (1 - dt epsilon) k + W_z^T q
//! ```

use super::declaration::Declaration;
use super::pairs::{self, Law, Pass, PassPull, Product};
use super::time::Run;
use crate::argument::{Argument, argument};
use crate::scalar::Real;
use isometry_kernels::recurrence::{Oscillate, OscillatePull, Oscillator};

/// Arrays (T, B, n) that forward saves for backward.
pub const SAVED: usize = 1;

/// The arrays in the order of their gradients; there is no bias of an activation.
pub const ARGUMENTS: &[Argument] = &[
    argument!("x", "T B d"),
    argument!("w", "2 n n"),
    argument!("u", "n d"),
    argument!("b", "n", optional),
    argument!("h0", "B 2n", optional),
    argument!("activation_bias", "", real, optional),
    argument!("start_state", "T B 2n", optional),
];

pub(super) const DECLARATION: Declaration = Declaration {
    settings: &["dt", "gamma", "epsilon"],
    width: 2,
    saved: SAVED,
    packs: &[(1, &[1, 1]), (2, &[1])],
    ..Declaration::new("cornn", ARGUMENTS)
};

/// The arguments of a network of oscillators.
///
/// ```
/// use isometry_core::Budget;
/// use isometry_core::recurrence::{Run, Unit, cornn::Cornn};
///
/// // without weights, a damped oscillator: z_1 = z_0 - (y_0 + z_0 / 2) / 2, and y_1 = y_0 + z_1 / 2
/// let run = Run { h0: Some(&[1.0f64, 0.0]), ..Run::new([1, 1, 1, 2], &[0.0]) };
/// let cornn = Cornn { run, w: &[0.0; 2], u: &[0.0], b: None, dt: 0.5, gamma: 1.0, epsilon: 0.5 };
/// let mut states = [0.0; 2];
/// Unit::forward(&cornn, (&mut states).into(), &mut [], None, &Budget::of(1))?;
/// assert_eq!(states, [0.75, -0.5]);
/// # Ok::<(), isometry_core::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Cornn<'a, R: Real> {
    /// What every cell has. Its state size is 2n: y and z, also in h0 and in the state before marked steps. The activation is tanh.
    /// `packs` are W_y, W_z and U.
    pub run: Run<'a, R>,
    /// W_y and W_z (2, n, n)
    pub w: &'a [R],
    /// U (n, d)
    pub u: &'a [R],
    /// b (n)
    pub b: Option<&'a [R]>,
    /// The length of a step.
    pub dt: R,
    /// The factor of y.
    pub gamma: R,
    /// The factor of z.
    pub epsilon: R,
}

impl<R: Real> Cornn<'_, R> {
    fn law(&self) -> Oscillator<R> {
        let Cornn { dt, gamma, epsilon, .. } = *self;
        Oscillator { dt, gamma, epsilon }
    }
}

pairs::unit!(Cornn(dt = 0, gamma = 1, epsilon = 2), |own| own.law());

/// The products with y and with z add up; the pass backward carries both cotangents.
impl<R: Real> Law<R, 2> for Oscillator<R> {
    const PRODUCTS: [Product; 2] =
        [Product { gates: 0..1, part: 0, after: false }, Product { gates: 0..1, part: 1, after: false }];
    const CARRIES: [bool; 2] = [true, true];

    unsafe fn pass(&self, _: usize, Pass { gates: [t, _], previous, out, area }: Pass<R, 2>) {
        // SAFETY: the contract of the trait.
        unsafe { Oscillate { t, previous, out, law: *self, area }.call() }
    }

    unsafe fn pull(&self, _: usize, at: PassPull<R, 2>) {
        let PassPull { gates: [t, _], g, ct, carry, bars, pitch, area, .. } = at;
        // SAFETY: the contract of the trait.
        unsafe { OscillatePull { t, g, ct, carry, bars, pitch, law: *self, area }.call() }
    }
}
