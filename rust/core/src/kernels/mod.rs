//! What the operators share: vectors, register tiles, packed products. A complex array is a real one of twice the width.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod balance;
mod buffer;
mod dispatch;
mod eliminate;
mod inverse;
pub mod lanes;
mod norms;
mod pack;
mod pivoted;
mod portable;
mod product;
mod simd;
mod tile;
mod triangular;
mod unitarity;
pub mod wy;

#[cfg(target_arch = "x86_64")]
pub use avx2::Avx2;
#[cfg(target_arch = "x86_64")]
pub use avx512::Avx512;
pub use balance::{Balanced, balance};
pub use buffer::Buffer;
pub use dispatch::{Isa, Kernel, chosen, dispatch, isa, lanes};
pub use inverse::{InverseOwn, inverse_shared, invert};
pub use norms::{all_zero, column_norms2};
pub use pack::{Operand, pack_panel, packed_len, panel_offset, panel_width};
pub use pivoted::invert_pivoted;
pub use portable::Portable;
pub use product::{Product, Triangle};
pub use simd::Simd;
pub use tile::{MAX_ROWS, mac, mac_few, mac_pairs, tiles};
pub use triangular::{invert_upper, invert_work};
pub use unitarity::Unitarity;

/// Elsewhere the wide vectors are the portable ones.
#[cfg(not(target_arch = "x86_64"))]
pub type Avx512<R> = Portable<R>;
/// Elsewhere the wide vectors are the portable ones.
#[cfg(not(target_arch = "x86_64"))]
pub type Avx2<R> = Portable<R>;
