//! The long expressive memory of Rusch, Mishra, Erichson and Mahoney (arXiv 2110.04744, equation 3) over a whole sequence, real
//! numbers:
//!
//! ```text
//! s_1, s_2 = sigma(W_1 y_{t-1} + U_1 x_t + b_1), sigma(W_2 y_{t-1} + U_2 x_t + b_2)
//! t_z = tanh(W_z y_{t-1} + U_z x_t + b_z),    z_t = (1 - dt s_1) * z_{t-1} + dt s_1 * t_z
//! t_y = tanh(W_y z_t + U_y x_t + b_y),        y_t = (1 - dt s_2) * y_{t-1} + dt s_2 * t_y
//! ```
//!
//! A state is (y, z), 2n numbers. Forward saves s_1, s_2, t_z and t_y for backward ([`SAVED`]). W_y sees the new z, so a step has two
//! products, one after the other, in both directions. Backward, with the cotangents y_bar and z_bar of y_t and z_t and q for those of
//! the arguments,
//!
//! ```text
//! q_y = dt s_2 (1 - t_y^2) * y_bar,    q_2 = dt s_2 (1 - s_2) * (t_y - y_{t-1}) * y_bar
//! k = z_bar + W_y^T q_y
//! q_z = dt s_1 (1 - t_z^2) * k,        q_1 = dt s_1 (1 - s_1) * (t_z - z_{t-1}) * k
//! y_bar_{t-1} = (1 - dt s_2) * y_bar + W_1^T q_1 + W_2^T q_2 + W_z^T q_z,    z_bar_{t-1} = (1 - dt s_1) * k
//! ```

use super::declaration::Declaration;
use super::pairs::{self, Law, Pass, PassPull, Product};
use super::time::Run;
use crate::argument::{Argument, argument};
use crate::scalar::Real;
use isometry_kernels::recurrence::{Express, ExpressPull, Remember, RememberPull};

/// Arrays (T, B, n) that forward saves for backward.
pub const SAVED: usize = 4;

/// The arrays in the order of their gradients; there is no bias of an activation.
pub const ARGUMENTS: &[Argument] = &[
    argument!("x", "T B d"),
    argument!("w", "4 n n"),
    argument!("u", "4 n d"),
    argument!("b", "4 n", optional),
    argument!("h0", "B 2n", optional),
    argument!("activation_bias", "", real, optional),
    argument!("start_state", "T B 2n", optional),
];

pub(super) const DECLARATION: Declaration = Declaration {
    settings: &["dt"],
    width: 2,
    saved: SAVED,
    packs: &[(1, &[3, 1]), (2, &[3, 1])],
    ..Declaration::new("lem", ARGUMENTS)
};

/// The arguments of a long expressive memory.
///
/// ```
/// use isometry_core::Budget;
/// use isometry_core::recurrence::{Run, Unit, lem::Lem};
///
/// // without weights the gates are 1/2: with dt = 1 both parts are halved
/// let run = Run { h0: Some(&[1.0f64, -2.0]), ..Run::new([1, 1, 1, 2], &[0.0]) };
/// let lem = Lem { run, w: &[0.0; 4], u: &[0.0; 4], b: None, dt: 1.0 };
/// let mut states = [0.0; 2];
/// Unit::forward(&lem, (&mut states).into(), &mut [], None, &Budget::of(1))?;
/// assert_eq!(states, [0.5, -1.0]);
/// # Ok::<(), isometry_core::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Lem<'a, R: Real> {
    /// What every cell has. Its state size is 2n: y and z, also in h0 and in the state before marked steps. The activation is tanh.
    /// `packs` are W_1, W_2 and W_z, W_y, and U in the same two parts.
    pub run: Run<'a, R>,
    /// W_1, W_2, W_z and W_y (4, n, n)
    pub w: &'a [R],
    /// U (4, n, d), in the same order
    pub u: &'a [R],
    /// b (4, n)
    pub b: Option<&'a [R]>,
    /// The longest step.
    pub dt: R,
}

pairs::unit!(Lem(dt = 0), |own| Memory(own.dt));

/// The law for this dt: the gates of y and z, from y, and the pass of z; then t_y from the new z, and the pass of y.
#[derive(Clone, Copy)]
struct Memory<R>(R);

impl<R: Real> Law<R, 2> for Memory<R> {
    const PRODUCTS: [Product; 2] =
        [Product { gates: 0..3, part: 0, after: false }, Product { gates: 3..4, part: 1, after: true }];
    const CARRIES: [bool; 2] = [true, false];

    unsafe fn pass(&self, i: usize, Pass { gates: [gates, own], previous, out, area }: Pass<R, 2>) {
        // SAFETY: the contract of the trait.
        unsafe {
            match i {
                0 => Remember { gates, previous, out, dt: self.0, area }.call(),
                _ => Express { gates, own, previous, out, dt: self.0, area }.call(),
            }
        }
    }

    unsafe fn pull(&self, i: usize, at: PassPull<R, 2>) {
        let PassPull {
            gates: [gates, own], previous, g, ct, carry: [carry, z_bar], bars, pitch, area, ..
        } = at;
        // SAFETY: the contract of the trait.
        unsafe {
            match i {
                0 => RememberPull { gates, previous, z_bar, bars, pitch, dt: self.0, area }.call(),
                _ => {
                    let dt = self.0;
                    ExpressPull { gates, own, previous, g, ct, carry, z_bar, bars, pitch, dt, area }.call();
                }
            }
        }
    }
}
