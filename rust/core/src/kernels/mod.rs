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
pub(crate) mod wy;

#[cfg(target_arch = "x86_64")]
pub use avx2::Avx2;
#[cfg(target_arch = "x86_64")]
pub use avx512::Avx512;
pub(crate) use balance::balance;
pub(crate) use buffer::Buffer;
pub use dispatch::{Isa, Kernel, chosen, dispatch, isa, lanes};
pub(crate) use inverse::{InverseOwn, inverse_shared, invert};
pub(crate) use norms::{all_zero, column_norms2};
pub use pack::Operand;
pub(crate) use pack::{pack_panel, packed_len, panel_offset, panel_width};
pub(crate) use pivoted::invert_pivoted;
pub use portable::Portable;
pub use product::{Product, Triangle};
pub use simd::Simd;
pub(crate) use tile::{MAX_ROWS, mac, mac_few, tiles};
pub(crate) use triangular::invert_work;
pub(crate) use unitarity::Unitarity;

/// Elsewhere the wide vectors are the portable ones.
#[cfg(not(target_arch = "x86_64"))]
pub type Avx512<R> = Portable<R>;
/// Elsewhere the wide vectors are the portable ones.
#[cfg(not(target_arch = "x86_64"))]
pub type Avx2<R> = Portable<R>;
