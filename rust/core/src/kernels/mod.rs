//! Shared by the operators: products and inverses on the threads of a call, memory, checks of arrays.

mod balance;
mod buffer;
mod identity;
mod inverse;
mod lu;
mod norms;
mod product;
mod rows;
#[cfg(test)]
mod simd;
mod slots;
mod triangular;
mod unitarity;
pub(crate) mod wy;

pub(crate) use balance::{Balanced, balance};
pub use buffer::Buffer;
pub(crate) use buffer::{collected, reserved};
pub(crate) use identity::identity;
pub(crate) use inverse::{InverseOwn, inverse_shared, invert};
pub(crate) use isometry_kernels::lanes;
pub use isometry_kernels::pack::Operand;
pub(crate) use isometry_kernels::pack::packed_len;
pub(crate) use isometry_kernels::product::Triangle;
pub(crate) use isometry_kernels::tile::{MAX_ROWS, tiles};
pub use isometry_kernels::{Isa, chosen, isa};
pub(crate) use lu::Pivoted;
pub(crate) use norms::{all_zero, column_norms2};
pub use product::Product;
pub(crate) use rows::{Matrices, transposed};
pub(crate) use slots::{Slots, add_slots};
pub(crate) use triangular::{invert_upper, invert_work};
pub(crate) use unitarity::{Unitarity, not_unitary};

#[cfg(test)]
mod tests {
    use super::*;
    use isometry_kernels::limit::{STEP, multiply_adds};

    #[test]
    fn every_lane_of_every_sum_counts() {
        let (operations, total) = multiply_adds(1000);
        assert_eq!(operations, 24_000 * lanes::<f32>());
        assert_eq!(total, operations as f32 / 2.0 * STEP);
    }

    #[test]
    fn a_missing_instruction_set_is_an_error() {
        assert!(Isa::choose(Some("mmx")).unwrap_err().contains("ISOMETRY_SIMD=mmx"));
        assert_eq!(Isa::choose(Some("scalar")), Ok(Isa::Scalar));
        assert_eq!(Isa::choose(Some("neon")).is_ok(), cfg!(target_arch = "aarch64"));
        assert_eq!(Isa::choose(None).unwrap(), *Isa::available().last().unwrap());
    }
}
