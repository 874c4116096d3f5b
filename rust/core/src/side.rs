//! Whether W or W^H is applied.

/// Whether W or W^H is applied.
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
