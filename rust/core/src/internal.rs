//! What the other crates of this repository use beyond the interface: the extension module, the GPU backend, the benches and the
//! tests. It changes without notice, and its functions on pointers trust their callers.

pub use crate::cpu::Blocks;
pub use crate::kernels::Buffer;
pub use crate::recurrence::beside::{Beside, BesideMut};
pub use crate::task::Task;

/// The sizes of the delta rule.
pub mod delta {
    pub use crate::delta::sizes::Sizes;
}

/// Products, the instruction set that computes them, and its limit.
pub mod kernels {
    pub use isometry_kernels::limit::multiply_adds;

    pub use crate::kernels::{Isa, Operand, Product, chosen, isa};
}

/// The team of threads.
pub mod parallel {
    pub use crate::parallel::adopted::{Team, adopt, adopted};
    pub use crate::parallel::{Cut, Shared, available, cut, run, stoppable, worth};
    pub use isometry_kernels::stop::leave;
}

/// Memory of a call.
pub mod scratch {
    pub use crate::scratch::{Arena, Scratch, guard, most};
}

/// Sizes of arrays.
pub mod sizes {
    pub use crate::sizes::{MOST, check_diagonal, check_len, packed_size, size, triangles, work};
}
