//! Whether W or W^H is applied.

/// Whether W or W^H is applied.
///
/// ```
/// use isometry_core::Side;
///
/// // W is 2 x 3: W x takes rows of 3 numbers to rows of 2, W^H x the other way
/// assert_eq!(Side::Forward.features((2, 3)), (3, 2));
/// assert_eq!(Side::Forward.other().features((2, 3)), (2, 3));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// c = W x
    Forward,
    /// c = W^H x
    Adjoint,
}

impl Side {
    /// Sizes of a row (in, out) for a matrix (p, q).
    pub fn features(self, (p, q): (usize, usize)) -> (usize, usize) {
        if self == Side::Forward { (q, p) } else { (p, q) }
    }

    /// The other one.
    pub fn other(self) -> Self {
        if self == Side::Forward { Side::Adjoint } else { Side::Forward }
    }
}
