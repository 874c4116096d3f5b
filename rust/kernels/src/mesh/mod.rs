//! Layers of a mesh: 2 x 2 blocks on pairs (i, j = i + p) of a row, in place, for a block of rows.
//!
//! With s = sin theta, c = cos theta and e = e^{i phi} a block and its inverse are
//!
//! ```text
//! y_i = s conj(e) x_i + c x_j,   y_j = c conj(e) x_i - s x_j;          x_i = e (s y_i + c y_j),   x_j = c y_i - s y_j.
//! ```
//!
//! Backward applies the inverse of a layer to the outputs y and to their cotangents g. With u = s g_i + c g_j
//! and v = s y_i + c y_j
//!
//! ```text
//! theta_bar = sum over rows of Re(conj(g_i) y_j) - Re(conj(g_j) y_i),      phi_bar = sum of Im(v conj(u)).
//! ```
//!
//! A vector lies along the row. Partners closer than half a vector are in the same register (`within`), others in two
//! vectors side by side (`across`): all the blocks of a vector are applied to every row before the next, so that their
//! sines and cosines are expanded once.

mod across;
mod diagonal;
mod within;

pub use diagonal::{Turn, TurnPull};

use crate::dispatch::{compiled, kernel};
use crate::scalar::{Scalar, c32, c64};
use crate::simd::Simd;
use within::Lanes;

/// One layer of a mesh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layer {
    /// The first element that has a partner.
    pub start: usize,
    /// Pairs.
    pub pairs: usize,
    /// p: a power of two; pairs are (2 p k + q, 2 p k + p + q) from the start on, q < p.
    pub distance: usize,
    /// Offset of its angles.
    pub first: usize,
}

/// Sines and cosines of all angles.
#[derive(Clone, Copy)]
pub struct Table<R> {
    /// sin theta
    pub sin: *const R,
    /// cos theta
    pub cos: *const R,
    /// cos phi; not read for a real type.
    pub re: *const R,
    /// sin phi; not read for a real type.
    pub im: *const R,
}

/// Rows with the layers that they go through.
#[derive(Clone, Copy)]
pub struct Rows<T: Scalar> {
    /// The layers, leftmost first.
    pub layers: *const Layer,
    /// Number of layers.
    pub count: usize,
    /// Their angles.
    pub table: Table<T::Real>,
    /// The rows.
    pub y: *mut T,
    /// Distance of the rows, in elements.
    pub pitch: usize,
    /// Number of rows.
    pub rows: usize,
}

/// y <- F_1 F_2 ... F_L y, or the inverses in reverse order.
///
/// # Safety
/// The rows and the angles of all layers exist, and no layer exceeds a row.
pub struct Pass<T: Scalar> {
    /// What it is about.
    pub of: Rows<T>,
    /// Whether the inverse is applied.
    pub adjoint: bool,
}

/// Applies the inverse of all layers to y and to its cotangent g, and adds the gradients of the angles from
/// these rows.
///
/// # Safety
/// As [`Pass`]; g has the rows of y, the gradients are as many as the angles; nothing overlaps.
pub struct Undo<T: Scalar> {
    /// What it is about.
    pub of: Rows<T>,
    /// g
    pub g: *mut T,
    /// The gradient of theta.
    pub theta_bar: *mut T::Real,
    /// The gradient of phi; not written for a real type.
    pub phi_bar: *mut T::Real,
}

compiled! {
    /// Layers of meshes, compiled for each element type.
    MeshKernels: Scalar for f32, f64, c32, c64; {
        /// [`Pass`]
        fn mesh(Pass);
        /// [`Undo`]
        fn mesh_undo(Undo);
        /// [`Turn`]
        fn diagonal(Turn);
        /// [`TurnPull`]
        fn diagonal_pull(TurnPull);
    }
}

/// x -> F x
const FORWARD: u8 = 0;
/// y -> F^H y
const ADJOINT: u8 = 1;
/// y, g -> F^H y, F^H g, with gradients.
const UNDO: u8 = 2;

/// The arrays that the layers of a call read and write.
#[derive(Clone, Copy)]
struct Places<T: Scalar> {
    of: Rows<T>,
    g: *mut T,
    theta_bar: *mut T::Real,
    phi_bar: *mut T::Real,
}

/// All layers, from the left or from the right.
#[inline(always)]
unsafe fn through<T: Scalar, S: Simd<R = T::Real>, const MODE: u8>(q: &Places<T>, from_left: bool) {
    // SAFETY: the contract of `Pass` or `Undo`.
    unsafe {
        let mut lanes = Lanes::<S>::new::<T>(1);
        for i in 0..q.of.count {
            let layer = *q.of.layers.add(if from_left { i } else { q.of.count - 1 - i });
            if 2 * layer.distance * T::PARTS > S::LANES {
                across::layer::<T, S, MODE>(q, &layer);
                continue;
            }
            if !lanes.fit(layer.distance) {
                lanes = Lanes::new::<T>(layer.distance);
            }
            within::layer::<T, S, MODE>(q, &layer, &lanes);
        }
    }
}

kernel!(Pass::<T>, |kernel| {
    let none = std::ptr::null_mut::<T::Real>();
    let places = Places { of: kernel.of, g: none.cast(), theta_bar: none, phi_bar: none };
    // SAFETY: the contract of `Pass`. A real block is its own inverse.
    unsafe {
        if kernel.adjoint && T::PARTS == 2 {
            through::<T, S, ADJOINT>(&places, true);
        } else {
            through::<T, S, FORWARD>(&places, kernel.adjoint);
        }
    }
});

kernel!(Undo::<T>, |&Undo { of, g, theta_bar, phi_bar }| {
    // SAFETY: the contract of `Undo`.
    unsafe { through::<T, S, UNDO>(&Places { of, g, theta_bar, phi_bar }, true) };
});

/// e x, or conj(e) x with the sine negated, for complex numbers in adjacent lanes: `re` the cosine in both lanes, `im` the
/// sine, negated in the first.
#[inline(always)]
unsafe fn times<S: Simd>(x: S::V, re: S::V, im: S::V) -> S::V {
    // SAFETY: arithmetic; the caller ensures that the processor supports S.
    unsafe { S::mul_add(re, x, S::mul(im, S::swap_pairs(x))) }
}

/// Adds the first `count` lanes of v to memory.
#[inline(always)]
unsafe fn add_to<S: Simd>(p: *mut S::R, v: S::V, count: usize) {
    // SAFETY: the caller ensures that the memory exists.
    unsafe { S::store_n(p, S::add(S::load_n(p, count), v), count) };
}
