//! What the operators share on top of the kernels: products and inverses on the threads of a call, memory, checks of arrays.

mod balance;
mod buffer;
mod inverse;
mod lu;
mod norms;
mod pivoted;
mod product;
mod triangular;
mod unitarity;
pub mod wy;

pub use balance::{Balanced, balance};
pub use buffer::Buffer;
pub use inverse::{InverseOwn, inverse_shared, invert};
pub use isometry_kernels::pack::{Operand, packed_len};
pub use isometry_kernels::product::Triangle;
pub use isometry_kernels::tile::{MAX_ROWS, tiles};
pub use isometry_kernels::{Isa, chosen, isa, lanes};
pub use lu::Lu;
pub use norms::{all_zero, column_norms2};
pub use pivoted::Pivoted;
pub use product::Product;
pub use triangular::{invert_upper, invert_work};
pub use unitarity::Unitarity;
