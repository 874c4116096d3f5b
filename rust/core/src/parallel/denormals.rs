//! Flushing of denormal numbers to zero for the duration of a call.

/// Flushes denormal operands and results to zero for its lifetime, then restores the previous mode.
///
/// The compiler does not model the mode and may move arithmetic across its change. All arithmetic is therefore in calls
/// that are opaque to the compiler (a task through its pointer, a kernel through its `target_feature`); a test checks
/// the result.
pub(super) struct FlushDenormals(u64);

#[cfg(all(target_arch = "x86_64", not(miri)))]
impl FlushDenormals {
    pub fn new() -> Self {
        let mut mode = 0u32;
        // SAFETY: stores the SIMD control register to `mode`.
        unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut mode, options(nostack)) };
        let flushed = mode | 0x8040;
        // SAFETY: loads the SIMD control register; only the bits FTZ and DAZ change.
        unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const flushed, options(nostack)) };
        FlushDenormals(mode.into())
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
impl Drop for FlushDenormals {
    fn drop(&mut self) {
        let mode = self.0 as u32;
        // SAFETY: restores the register that `new` saved.
        unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const mode, options(nostack)) };
    }
}

#[cfg(all(target_arch = "aarch64", not(miri)))]
impl FlushDenormals {
    pub fn new() -> Self {
        let mode: u64;
        // SAFETY: reads and writes the SIMD control register; only the bit FZ changes.
        unsafe {
            std::arch::asm!("mrs {}, fpcr", out(reg) mode, options(nomem, nostack));
            let flushed = mode | 1 << 24;
            std::arch::asm!("msr fpcr, {}", in(reg) flushed, options(nomem, nostack));
        }
        FlushDenormals(mode)
    }
}

#[cfg(all(target_arch = "aarch64", not(miri)))]
impl Drop for FlushDenormals {
    fn drop(&mut self) {
        // SAFETY: restores the register that `new` saved.
        unsafe { std::arch::asm!("msr fpcr, {}", in(reg) self.0, options(nomem, nostack)) };
    }
}

/// On other processors, and under Miri, which interprets no assembly: no effect.
#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
impl FlushDenormals {
    pub fn new() -> Self {
        FlushDenormals(0)
    }
}
