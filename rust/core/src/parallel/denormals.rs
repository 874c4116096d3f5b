//! Flushing of denormal numbers to zero for the duration of a call.

use std::cell::Cell;

thread_local! {
    /// The mode of the thread's caller, while a call flushes.
    static CALLER: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Flushes denormal operands and results to zero for its lifetime, then restores the previous mode.
///
/// The compiler does not model the mode and may move arithmetic across its change. All arithmetic is therefore in calls
/// that are opaque to the compiler (a task through its pointer, a kernel through its `target_feature`); a test checks
/// the result.
pub(super) struct FlushDenormals {
    outermost: bool,
}

impl FlushDenormals {
    pub fn new() -> Self {
        let outermost = CALLER.get().is_none();
        if outermost {
            flush();
        }
        FlushDenormals { outermost }
    }
}

impl Drop for FlushDenormals {
    fn drop(&mut self) {
        if self.outermost
            && let Some(mode) = CALLER.take()
        {
            set(mode);
        }
    }
}

/// Runs code of the caller (an answer to whether a call is cancelled, which may be a signal handler of Python) in the mode that
/// the thread had before the call; a mode that it sets is the caller's from then on.
pub fn in_callers_mode<R>(f: impl FnOnce() -> R) -> R {
    struct Flush;
    impl Drop for Flush {
        fn drop(&mut self) {
            flush();
        }
    }
    let Some(mode) = CALLER.take() else { return f() };
    set(mode);
    let _again = Flush;
    f()
}

fn flush() {
    let mode = mode();
    CALLER.set(Some(mode));
    set(mode | FLUSH);
}

/// The bits FTZ and DAZ.
#[cfg(all(target_arch = "x86_64", not(miri)))]
const FLUSH: u64 = 0x8040;

#[cfg(all(target_arch = "x86_64", not(miri)))]
fn mode() -> u64 {
    let mut mode = 0u32;
    // SAFETY: stores the SIMD control register to `mode`.
    unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut mode, options(nostack)) };
    mode.into()
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
fn set(mode: u64) {
    let mode = mode as u32;
    // SAFETY: loads the SIMD control register with what `mode` returned, but for the bits of `FLUSH`.
    unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const mode, options(nostack)) };
}

/// The bit FZ.
#[cfg(all(target_arch = "aarch64", not(miri)))]
const FLUSH: u64 = 1 << 24;

#[cfg(all(target_arch = "aarch64", not(miri)))]
fn mode() -> u64 {
    let mode: u64;
    // SAFETY: reads the SIMD control register.
    unsafe { std::arch::asm!("mrs {}, fpcr", out(reg) mode, options(nomem, nostack)) };
    mode
}

#[cfg(all(target_arch = "aarch64", not(miri)))]
fn set(mode: u64) {
    // SAFETY: writes to the SIMD control register what `mode` returned, but for the bit of `FLUSH`.
    unsafe { std::arch::asm!("msr fpcr, {}", in(reg) mode, options(nomem, nostack)) };
}

#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
const FLUSH: u64 = 0;

#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
fn mode() -> u64 {
    0
}

#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
fn set(_: u64) {}
