//! The instruction set in use: detected once, or forced by `ISOMETRY_SIMD=scalar|avx2|avx512|neon` so that tests cover each.

use crate::scalar::Real;
use crate::simd::Simd;
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
    /// The vectors of aarch64.
    Neon,
}

impl Isa {
    /// The name used in the environment variable.
    pub fn name(self) -> &'static str {
        match self {
            Isa::Scalar => "scalar",
            Isa::Avx2 => "avx2",
            Isa::Avx512 => "avx512",
            Isa::Neon => "neon",
        }
    }

    /// The instruction sets of this processor, best last.
    pub fn available() -> Vec<Isa> {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            let wide = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512dq");
            if wide && is_x86_feature_detected!("avx512vl") && is_x86_feature_detected!("avx512bw") {
                return vec![Isa::Scalar, Isa::Avx2, Isa::Avx512];
            }
            return vec![Isa::Scalar, Isa::Avx2];
        }
        if cfg!(target_arch = "aarch64") {
            return vec![Isa::Scalar, Isa::Neon];
        }
        vec![Isa::Scalar]
    }

    /// The forced one, or the best.
    ///
    /// # Errors
    /// If this processor does not have it: the text lists those that it has.
    pub fn choose(forced: Option<&str>) -> Result<Isa, String> {
        let available = Isa::available();
        let Some(name) = forced else { return Ok(available[available.len() - 1]) };
        available.iter().copied().find(|isa| isa.name() == name).ok_or_else(|| {
            let names: Vec<&str> = available.iter().map(|isa| isa.name()).collect();
            format!("ISOMETRY_SIMD={name}: this processor has {}", names.join(", "))
        })
    }
}

static CHOSEN: OnceLock<Result<Isa, String>> = OnceLock::new();

/// The instruction set of every kernel call of this process.
///
/// # Errors
/// If the one that `ISOMETRY_SIMD` names is not available.
pub fn chosen() -> Result<Isa, String> {
    CHOSEN
        .get_or_init(|| {
            let forced = std::env::var("ISOMETRY_SIMD").ok().filter(|name| !name.is_empty());
            Isa::choose(forced.as_deref())
        })
        .clone()
}

/// [`chosen`], or the baseline if the forced set is missing (the extension module then refuses to load).
#[inline]
pub fn isa() -> Isa {
    match CHOSEN.get() {
        Some(Ok(isa)) => *isa,
        _ => chosen().unwrap_or(Isa::Scalar),
    }
}

/// A computation with a result O, written once for all instruction sets. `run` must be `#[inline(always)]`.
pub trait Kernel<R: Real, O = ()> {
    /// The computation.
    ///
    /// # Safety
    /// The processor has the instruction set of S; the kernel's data satisfies its own contract.
    unsafe fn run<S: Simd<R = R>>(&self) -> O;
}

/// The [`Kernel`] of a struct of its arguments, of real numbers (`R`) or any (`T`): a function of the struct, in which S is the
/// instruction set.
macro_rules! kernel {
    ($name:ident::<R>, $($law:tt)*) => {
        $crate::dispatch::kernel!(@of [R: $crate::scalar::Real] R, $name<R>, $($law)*);
    };
    ($name:ident::<T>, $($law:tt)*) => {
        $crate::dispatch::kernel!(@of [T: $crate::scalar::Scalar] T::Real, $name<T>, $($law)*);
    };
    (@of [$($of:tt)*] $real:ty, $name:ty, |$own:pat_param| $(-> $out:ty)? $body:block) => {
        impl<$($of)*> $crate::dispatch::Kernel<$real $(, $out)?> for $name {
            #[inline(always)]
            unsafe fn run<S: $crate::simd::Simd<R = $real>>(&self) $(-> $out)? {
                let $own = self;
                $body
            }
        }
    };
}
pub(crate) use kernel;

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx2,fma")]
#[inline(never)]
pub(crate) unsafe fn on_avx512<R: Real, O, K: Kernel<R, O>>(kernel: &K) -> O {
    // SAFETY: this function enables the features; the caller upholds the contract of the kernel.
    unsafe { kernel.run::<R::Avx512>() }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
#[inline(never)]
pub(crate) unsafe fn on_avx2<R: Real, O, K: Kernel<R, O>>(kernel: &K) -> O {
    // SAFETY: this function enables the features; the caller upholds the contract of the kernel.
    unsafe { kernel.run::<R::Avx2>() }
}

#[cfg(target_arch = "aarch64")]
#[inline(never)]
pub(crate) unsafe fn on_neon<R: Real, O, K: Kernel<R, O>>(kernel: &K) -> O {
    // SAFETY: every processor of the target has NEON; the caller upholds the contract of the kernel.
    unsafe { kernel.run::<R::Neon>() }
}

#[inline(never)]
pub(crate) unsafe fn on_baseline<R: Real, O, K: Kernel<R, O>>(kernel: &K) -> O {
    // SAFETY: every processor has the baseline; the caller upholds the contract of the kernel.
    unsafe { kernel.run::<R::Portable>() }
}

/// Runs the kernel on vectors of half the width of S, where S has the widest ones of this target; false elsewhere.
///
/// # Safety
/// The processor has the instruction set of S; the kernel's data satisfies its own contract.
#[inline(always)]
pub(crate) unsafe fn on_half<S: Simd, K: Kernel<S::R>>(_kernel: &K) -> bool {
    #[cfg(target_arch = "x86_64")]
    if S::LANES == 2 * <S::R as Real>::Avx2::LANES {
        // SAFETY: a processor with AVX-512 has AVX2; the caller upholds the contract of the kernel.
        unsafe { on_avx2(_kernel) };
        return true;
    }
    false
}

/// Runs the kernel on the chosen instruction set.
///
/// # Safety
/// The kernel's data satisfies its own contract.
#[inline(always)]
pub(crate) unsafe fn dispatch<R: Real, O, K: Kernel<R, O>>(kernel: &K) -> O {
    // SAFETY: `isa` only names instruction sets that were detected.
    unsafe {
        match isa() {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => on_avx512(kernel),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => on_avx2(kernel),
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => on_neon(kernel),
            _ => on_baseline(kernel),
        }
    }
}

/// Declares a table of kernels, functions of an element type that other crates call, and compiles it here, once per type
/// and instruction set. (A generic function would be compiled again in every crate that calls it.) `kernel.call()` then
/// runs it for any type that has the table.
///
/// The tables are supertraits of `Scalar` and `Real`. So the name of a function must be unique across all tables and
/// must differ from the methods of both traits; otherwise `T::name` is ambiguous (E0034).
macro_rules! compiled {
    ($(#[$doc:meta])* $table:ident: $bound:ident for $($t:ty),+; $functions:tt) => {
        compiled!(@table $(#[$doc])* $table $bound $functions);
        $(compiled!(@of $t, $table $bound $functions);)+
    };
    (@table $(#[$doc:meta])* $table:ident $bound:ident {
        $($(#[$line:meta])* fn $name:ident($kernel:ident) $(-> $out:ty)?;)+
    }) => {
        $(#[$doc])*
        #[allow(clippy::missing_safety_doc, reason = "the contract of a kernel stands on its struct")]
        pub trait $table: Sized {
            $($(#[$line])* unsafe fn $name(kernel: &$kernel<Self>) $(-> $out)? where Self: $bound;)+
        }
        $(
            impl<T: $bound> $kernel<T> {
                /// Runs the kernel.
                ///
                /// # Safety
                /// That of the struct.
                pub unsafe fn call(&self) $(-> $out)? {
                    // SAFETY: the caller upholds the contract of the kernel.
                    unsafe { T::$name(self) }
                }
            }
        )+
    };
    (@of $t:ty, $table:ident $bound:ident {
        $($(#[$line:meta])* fn $name:ident($kernel:ident) $(-> $out:ty)?;)+
    }) => {
        impl $table for $t {
            $(
                #[inline(never)]
                unsafe fn $name(kernel: &$kernel<$t>) $(-> $out)? {
                    // SAFETY: the caller upholds the contract of the kernel.
                    unsafe { $crate::dispatch::dispatch(kernel) }
                }
            )+
        }
    };
}
pub(crate) use compiled;

/// Number of lanes of a real type on the chosen instruction set.
pub fn lanes<R: Real>() -> usize {
    match isa() {
        Isa::Avx512 => R::Avx512::LANES,
        Isa::Avx2 => R::Avx2::LANES,
        Isa::Neon => R::Neon::LANES,
        Isa::Scalar => R::Portable::LANES,
    }
}
