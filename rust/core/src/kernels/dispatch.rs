//! Which instruction set runs: detected once, or forced by `ISOMETRY_SIMD=scalar|avx2|avx512` so that tests cover each.

use super::simd::Simd;
use crate::error::{Error, Result};
use crate::scalar::Real;
use std::sync::OnceLock;

/// The instruction sets that kernels are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isa {
    /// Baseline of the target.
    Scalar,
    /// AVX2 with fused multiply-add.
    Avx2,
    /// AVX-512 F, DQ, VL, BW.
    Avx512,
}

impl Isa {
    /// The name that the environment variable uses.
    pub fn name(self) -> &'static str {
        match self {
            Isa::Scalar => "scalar",
            Isa::Avx2 => "avx2",
            Isa::Avx512 => "avx512",
        }
    }

    /// What this processor has, best last.
    pub fn available() -> Vec<Isa> {
        let mut found = vec![Isa::Scalar];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                found.push(Isa::Avx2);
                let wide = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512dq");
                if wide && is_x86_feature_detected!("avx512vl") && is_x86_feature_detected!("avx512bw") {
                    found.push(Isa::Avx512);
                }
            }
        }
        found
    }

    fn choose(forced: Option<&str>) -> Result<Isa> {
        let available = Isa::available();
        let Some(name) = forced else { return Ok(available[available.len() - 1]) };
        available.iter().copied().find(|isa| isa.name() == name).ok_or_else(|| {
            let names: Vec<&str> = available.iter().map(|isa| isa.name()).collect();
            Error::Unsupported(format!("ISOMETRY_SIMD={name}: this processor has {}", names.join(", ")))
        })
    }
}

static CHOSEN: OnceLock<Result<Isa>> = OnceLock::new();

/// The instruction set of every kernel call of this process, or why the forced one cannot be had.
pub fn chosen() -> Result<Isa> {
    CHOSEN
        .get_or_init(|| {
            let forced = std::env::var("ISOMETRY_SIMD").ok().filter(|name| !name.is_empty());
            Isa::choose(forced.as_deref())
        })
        .clone()
}

/// [`chosen`], or the baseline where the forced set is missing (the seam refuses to load in that case).
#[inline]
pub fn isa() -> Isa {
    match CHOSEN.get() {
        Some(Ok(isa)) => *isa,
        _ => chosen().unwrap_or(Isa::Scalar),
    }
}

/// A computation written once for all instruction sets. `run` must be `#[inline(always)]`.
pub trait Kernel<R: Real> {
    /// What the computation returns.
    type Output;
    /// The computation.
    ///
    /// # Safety
    /// Runs only where the instruction set of S exists; the data of the kernel must satisfy its own contract.
    unsafe fn run<S: Simd<R = R>>(self) -> Self::Output;
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx2,fma")]
unsafe fn on_avx512<R: Real, K: Kernel<R>>(kernel: K) -> K::Output {
    // SAFETY: the features stand on this function.
    unsafe { kernel.run::<R::Avx512>() }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn on_avx2<R: Real, K: Kernel<R>>(kernel: K) -> K::Output {
    // SAFETY: the features stand on this function.
    unsafe { kernel.run::<R::Avx2>() }
}

/// Runs the kernel on the chosen instruction set.
///
/// # Safety
/// The contract of the kernel's own data.
pub unsafe fn dispatch<R: Real, K: Kernel<R>>(kernel: K) -> K::Output {
    // SAFETY: `isa` only names instruction sets that were detected.
    unsafe {
        match isa() {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => on_avx512(kernel),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => on_avx2(kernel),
            _ => kernel.run::<R::Portable>(),
        }
    }
}

/// Lanes of a real type on the chosen instruction set.
pub fn lanes<R: Real>() -> usize {
    match isa() {
        Isa::Avx512 => R::Avx512::LANES,
        Isa::Avx2 => R::Avx2::LANES,
        Isa::Scalar => R::Portable::LANES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_instruction_set_is_an_error() {
        assert!(Isa::choose(Some("mmx")).unwrap_err().to_string().contains("ISOMETRY_SIMD=mmx"));
        assert_eq!(Isa::choose(Some("scalar")), Ok(Isa::Scalar));
        assert_eq!(Isa::choose(None).unwrap(), *Isa::available().last().unwrap());
    }
}
