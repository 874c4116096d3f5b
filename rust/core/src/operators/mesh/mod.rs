//! Meshes of 2 x 2 blocks: W = D F_1 F_2 ... F_L, D = diag(e^{i phases}) or diag(signs), each layer F_l blocks
//!
//! ```text
//! y_i = sin(theta) e^{-i phi} x_i + cos(theta) x_j,   y_j = cos(theta) e^{-i phi} x_i - sin(theta) x_j
//! ```
//!
//! on disjoint pairs i < j; F_L acts first. A brick mesh alternates neighbours (0, 1), (2, 3), ... with (1, 2), (3, 4), ...; the fft
//! layout has pairs at the distances n/2, n/4, ..., 1. The phase acts on the input of a block, the side away
//! from D.
//!
//! ```text
//! theta_bar = Re(conj(g_i) y_j) - Re(conj(g_j) y_i),   x_bar = F^H g,   phi_bar = -Im(x_bar_i conj(x_i)),   x = F^H y
//! ```
//!
//! for the cotangent g of y: backward inverts the layers on y and g, and saves no array between them.
//!
//! The layout is the shape of the first argument, an empty array of the type of W, and so goes wherever the
//! arguments go. All meshes of a stack have the same layout.

mod layers;
mod rows;
#[cfg(test)]
mod tests;

use super::Last;
use super::last::check_signs;
use crate::argument::{Argument, Array, Given, all, argument, tail};
use crate::error::{Error, Result};
use crate::kernels::Buffer;
use crate::scalar::{Real, Scalar};
use crate::sizes::{check_len, size, work};
use crate::transition::{Route, Workload};
use isometry_kernels::angles::Angles;
use isometry_kernels::mesh::Layer;
pub use layers::Layout;

/// The arguments: the first has no elements.
pub const ARGUMENTS: &[Argument] = &[
    argument!("frame", "n layers kind 0", shape),
    argument!("theta", "pairs", real),
    argument!("phi", "pairs", angles),
    argument!("phases", "n", angles, group "last"),
    argument!("signs", "n", real, fixed, group "last"),
];

/// Meshes of one layout.
pub struct Mesh<'a, T: Scalar> {
    batch: usize,
    n: usize,
    /// Angles of a mesh.
    pairs: usize,
    layers: Vec<Layer>,
    theta: &'a [T::Real],
    phi: Option<&'a [T::Real]>,
    last: Last<'a, T::Real>,
    /// sin theta, cos theta, and for a complex type cos phi, sin phi.
    table: Buffer<T::Real>,
    /// The entries of D, if it is not the identity.
    diagonal: Buffer<T>,
}

impl<'a, T: Scalar> Mesh<'a, T> {
    /// A view of the angles (batch, pairs) of meshes of `count` layers.
    ///
    /// ```
    /// use isometry_core::operators::{Last, mesh::{Layout, Mesh}};
    /// use isometry_core::{Budget, Cpu, Side};
    ///
    /// // a layer with one pair, of angle 0: y = (x_1, x_0)
    /// let w = Mesh::new((2, 1, Layout::BrickLeft), 1, &[0.0], None, Last::None)?;
    /// let mut y = [0.0f64; 2];
    /// w.apply(&[3.0, 5.0], 1, Side::Forward, &mut y, None, &Budget::of(1))?;
    /// assert_eq!(y, [5.0, 3.0]);
    /// # Ok::<(), isometry_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// A mesh that does not exist, arrays of other lengths, phases of a real type; lack of memory.
    pub fn new(
        (n, count, layout): (usize, usize, Layout),
        batch: usize,
        theta: &'a [T::Real],
        phi: Option<&'a [T::Real]>,
        last: Last<'a, T::Real>,
    ) -> Result<Self> {
        let pairs = layers::pairs(n, count, layout)?;
        check_len("theta", theta.len(), &[batch, pairs])?;
        if let Some(phi) = phi {
            check_len("phi", phi.len(), &[batch, pairs])?;
            if T::PARTS == 1 {
                return Err(Error::value("phi", "need a complex type, got a real one"));
            }
        }
        last.check::<T>(batch, n)?;
        // without angles there are no pairs, whatever the layers, or no meshes
        let layers = if theta.is_empty() { Vec::new() } else { layers::layers(n, count, layout)? };
        let mut table = Buffer::zeroed(size("theta", &[2, T::PARTS, theta.len()])?)?;
        let (own, turns) = table.split_at_mut(2 * theta.len());
        fill(theta, own);
        if T::PARTS == 2 {
            let (cos, sin) = turns.split_at_mut(theta.len());
            match phi {
                Some(phi) => table_of(phi, sin, cos),
                None => cos.fill(num_traits::One::one()),
            }
        }
        let entries = if last.numbers().is_some() { size("phases", &[batch, n])? } else { 0 };
        let mut diagonal = Buffer::<T>::zeroed(entries)?;
        if let Last::Phases(phases) = last {
            let mut parts = Buffer::zeroed(size("phases", &[2, batch, n])?)?;
            fill(phases, &mut parts);
            let (sin, cos) = parts.split_at(entries);
            diagonal.iter_mut().zip(cos.iter().zip(sin)).for_each(|(d, (cos, sin))| *d = T::new(*cos, *sin));
        } else {
            diagonal.iter_mut().enumerate().for_each(|(i, d)| *d = last.factor(i / n, i % n, n));
        }
        Ok(Mesh { batch, n, pairs, layers, theta, phi, last, table, diagonal })
    }

    /// A view of [`ARGUMENTS`].
    pub(crate) fn of(given: &[Given<'a, T>]) -> Result<Self> {
        let [frame, theta, phi, phases, signs] = all(given)?;
        let [one, n, count, kind, _] = frame.sizes("frame")?;
        let [batch, _] = theta.sizes("theta")?;
        if one != 1 {
            check_len("frame", one, &[batch])?;
        }
        let lacking = || Error::value("theta", "must be given, of the real type of the matrix");
        let theta = theta.real().ok_or_else(lacking)?;
        let last = Last::of(Last::Signs, signs, phases)?;
        Self::new((n, count, Layout::of(kind)?), batch, theta, phi.real(), last)
    }
}

/// The sines, then the cosines.
fn fill<R: Real>(angles: &[R], out: &mut [R]) {
    let (sin, cos) = out.split_at_mut(angles.len());
    table_of(angles, sin, cos);
}

fn table_of<R: Real>(x: &[R], sin: &mut [R], cos: &mut [R]) {
    let (count, x) = (x.len(), x.as_ptr());
    // SAFETY: both arrays have as many numbers.
    unsafe { Angles { x, sin: sin.as_mut_ptr(), cos: cos.as_mut_ptr(), count }.call() }
}

/// Refuses signs other than +1 and -1.
pub(crate) fn check_values<T: Scalar>(given: &[Given<'_, T>]) -> Result<()> {
    let [.., signs] = all::<T, 5>(given)?;
    signs.real().map_or(Ok(()), check_signs)
}

/// A step through the matrix takes as long as one through n/8 layers (measured for n = 64 to 512, few rows and many, both
/// fields).
pub(crate) fn route(shapes: &[&[usize]], workload: Workload) -> Route {
    let [n, count, kind, _] = tail(shapes[0]);
    let layers = Layout::of(kind).map_or(0, |layout| layers::count(n, count, layout));
    Route::by_cost(work(&[8, layers, n]), n, workload)
}

operator! {
    Mesh, |own, i| [own.batch, own.n, own.n],
    match i {
        0 => Array::Own(&[]),
        1 => Array::Real(own.theta),
        2 => own.phi.map_or(Array::None, Array::Real),
        _ => own.last.array(i == 3),
    }
}
