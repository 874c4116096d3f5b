//! Recomputes the matrices that elimination without pivoting left inaccurate: single precision in double precision, then
//! rounded; double precision by LU with partial pivoting and Newton-Schulz steps W <- W (3 I - W^H W) / 2, each of which
//! squares the distance from the orthogonal matrices.

use super::single::{self, ForwardShared, batch_of};
use super::{Cayley, Last, group, triangle};
use crate::error::{Error, Result};
use crate::kernels::{Operand, Pivoted, Product, lanes};
use crate::parallel::{Member, Shared};
use crate::scalar::{Real, Scalar};
use crate::scratch::{Arena, Region};
use crate::sizes::triangles;
use isometry_kernels::cayley::Limits;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Most Newton-Schulz steps; one suffices below a condition of 1e8.
const STEPS: usize = 6;

/// The first matrix that is not orthogonal to working precision even now.
struct Lost(AtomicUsize);

impl Lost {
    fn none() -> Self {
        Lost(AtomicUsize::new(usize::MAX))
    }

    /// Records matrix b of element type T, with max |W^H W - I| as measured in double precision. NaN stems from
    /// non-finite parameters and is not an error.
    fn see<T: Scalar>(&self, b: usize, n: usize, defect: f64) {
        if defect > 4.0 * (n + 1) as f64 * T::Real::EPS.f64() {
            self.0.fetch_min(b, Relaxed);
        }
    }

    fn verdict(self) -> Result<()> {
        match self.0.into_inner() {
            usize::MAX => Ok(()),
            b => Err(Error::value(
                "upper",
                format!(
                    "must give an A of a norm below 1/eps of float64, 4.5e15: with that of matrix {b} I + A is numerically \
                     singular, and W would not be orthogonal"
                ),
            )),
        }
    }
}

/// Parameters of up to `count` matrices, and the matrices, in double precision.
struct Widened<T: Scalar> {
    upper: Region<T::Wide>,
    diagonal: Region<f64>,
    last: Region<f64>,
    w: Region<T::Wide>,
}

impl<T: Scalar> Widened<T> {
    fn carve(arena: &mut Arena, view: &Cayley<'_, T>, count: usize) -> Self {
        let (n, some) = (view.n, |wanted: bool| usize::from(wanted));
        Widened {
            upper: arena.take(&triangles(count, n)),
            diagonal: arena.take(&[some(view.diagonal.is_some()), count, n]),
            last: arena.take(&[some(view.last.numbers().is_some()), count, n]),
            w: arena.take(&[count, n, n]),
        }
    }

    /// Writes the parameters of the matrices `which`, and zeros for the matrices.
    ///
    /// # Safety
    /// The memory is alive, not otherwise in use, and has room for `which`.
    unsafe fn fill(&self, view: &Cayley<'_, T>, which: &[usize]) {
        let n = view.n;
        // SAFETY: the regions are alive, disjoint and not otherwise in use.
        let (upper, diagonal, last) =
            unsafe { (self.upper.zeroed(), self.diagonal.zeroed(), self.last.zeroed()) };
        // SAFETY: as above.
        unsafe { self.w.zeroed() };
        let triangles = which.iter().flat_map(|&b| view.upper_of(b));
        upper.iter_mut().zip(triangles).for_each(|(wide, x)| *wide = x.widen());
        for (wide, x) in [(diagonal, view.diagonal), (last, view.last.numbers())] {
            let rows = which.iter().flat_map(|b| x.map_or(&[][..], |x| &x[b * n..(b + 1) * n]));
            wide.iter_mut().zip(rows).for_each(|(wide, x)| *wide = x.f64());
        }
    }

    /// What [`Self::fill`] has written for `count` matrices.
    ///
    /// # Safety
    /// The memory is alive for 'a, was filled, and its parameters are not written.
    unsafe fn view<'a>(&self, view: &Cayley<'_, T>, count: usize) -> Cayley<'a, T::Wide> {
        // SAFETY: the contract above; the regions were zeroed in whole.
        let (upper, diagonal, last) =
            unsafe { (self.upper.slice(), self.diagonal.slice(), self.last.slice()) };
        let last = match view.last {
            Last::None | Last::Sign(_) => Last::None,
            Last::Signs(_) => Last::Signs(last),
            Last::Phases(_) => Last::Phases(last),
        };
        Cayley { upper, diagonal: view.diagonal.map(|_| diagonal), last, batch: count, n: view.n }
    }
}

/// Recomputes the matrices `which` of a batch that is computed with one matrix per lane.
///
/// # Safety
/// `out` has room for all matrices of the view and is not accessed by others.
pub(super) unsafe fn in_groups<T: Scalar>(
    view: &Cayley<'_, T>,
    which: &[usize],
    out: Shared<T>,
    threads: usize,
) -> Result<()> {
    let (n, width, lost) = (view.n, lanes::<f64>(), Lost::none());
    let own = |arena: &mut Arena| {
        let scratch: Region<f64> = arena.take(&[group::scratch::<T::Wide>(n)]);
        (Widened::<T>::carve(arena, view, width), Polish::<T::Wide>::carve(arena, n), scratch)
    };
    let each = batch_of::<T::Wide>(which.len(), n);
    each.in_groups::<T::Wide, _>(threads, own, |first, count, (widened, polish, scratch)| {
        let which = &which[first..first + count];
        // SAFETY: each member has its own memory; the matrices of its groups lie within `out`.
        unsafe {
            widened.fill(view, which);
            let wide = widened.view(view, count);
            let (group, limits) = ((0, count), Limits::rounded::<T>(n));
            let failed = match is_double::<T>() {
                true => u32::MAX,
                false => group::forward(&wide, group, widened.w.ptr(), scratch.ptr(), limits),
            };
            for (place, &b) in which.iter().enumerate() {
                let w = std::slice::from_raw_parts_mut(widened.w.at(place * n * n), n * n);
                if failed >> place & 1 == 1 {
                    lost.see::<T>(b, n, pivoted(&wide, place, w, polish));
                }
                round(w, out.at(b * n * n));
            }
        }
    })?;
    lost.verdict()
}

/// Recomputes the matrices `which`. Where several members compute a matrix together they share the elimination; member 0 does
/// the rest.
///
/// # Safety
/// As [`in_groups`].
pub(super) unsafe fn alone<T: Scalar>(
    view: &Cayley<'_, T>,
    which: &[usize],
    out: Shared<T>,
    threads: usize,
) -> Result<()> {
    let (n, lost) = (view.n, Lost::none());
    let shared = |arena: &mut Arena| {
        let forward = ForwardShared::<T::Wide>::carve(arena, n);
        (Widened::<T>::carve(arena, view, 1), Polish::<T::Wide>::carve(arena, n), forward)
    };
    let own = |arena: &mut Arena| arena.frame(|arena| single::forward_own::<T::Wide>(arena, n));
    let split = batch_of::<T::Wide>(which.len(), n).split(threads);
    split.run(shared, own, |member, place, (widened, polish, forward), own| {
        let b = which[place];
        // SAFETY: member 0 alone fills the memory, before a barrier, and alone writes after the last barrier of `forward`; the others
        // have dropped their views before the next matrix is filled.
        unsafe {
            if member.id == 0 {
                widened.fill(view, &[b]);
            }
            member.barrier();
            let (wide, limits) = (widened.view(view, 1), Limits::rounded::<T>(n));
            let good = !is_double::<T>()
                && single::forward(member, &wide, 0, widened.w.ptr(), *forward, *own, limits);
            if member.id == 0 {
                let w = std::slice::from_raw_parts_mut(widened.w.ptr(), n * n);
                if !good {
                    lost.see::<T>(b, n, pivoted(&wide, 0, w, polish));
                }
                round(w, out.at(b * n * n));
            }
        }
    })?;
    lost.verdict()
}

fn is_double<T: Scalar>() -> bool {
    size_of::<T::Real>() == size_of::<f64>()
}

/// # Safety
/// `out` has room for all of w.
unsafe fn round<T: Scalar>(w: &[T::Wide], out: *mut T) {
    for (i, &x) in w.iter().enumerate() {
        // SAFETY: `out` has room for all of w.
        unsafe { out.add(i).write(T::narrow(x)) };
    }
}

/// W of matrix b by partial pivoting, then Newton-Schulz steps until W^H W = I to working precision; returns max |W^H W
/// - I|, NaN if a parameter is not finite.
///
/// # Safety
/// The memory of `room` is alive, and not otherwise in use.
unsafe fn pivoted<W: Scalar<Real = f64>>(
    view: &Cayley<'_, W>,
    b: usize,
    w: &mut [W],
    room: &Polish<W>,
) -> f64 {
    let n = view.n;
    let upper = view.upper_of(b);
    let diagonal = view.diagonal_of(b);
    let largest = upper.iter().map(|x| x.re().abs().max(x.im().abs())).fold(1.0, largest);
    let largest = diagonal.into_iter().flatten().map(|x| x.abs()).fold(largest, self::largest);
    if !largest.is_finite() {
        w.fill(W::new(f64::NAN, f64::NAN));
        return f64::NAN;
    }
    // (I + A)^-1 = (I / t + A / t)^-1 / t with t = max(1, |A|_max) does not overflow
    let t = 1.0 / largest;
    for i in 0..n {
        w[i * n + i] = W::new(t, diagonal.map_or(0.0, |d| d[i] * t));
        for j in i + 1..n {
            let x = upper[triangle::offset(n, i).wrapping_add(j)].scale(t);
            w[i * n + j] = x;
            w[j * n + i] = -x.conj();
        }
    }
    // SAFETY: the workspace is for n x n matrices and not otherwise in use.
    unsafe { room.pivoted.invert(w, n) };
    for i in 0..n {
        for j in 0..n {
            w[i * n + j] = w[i * n + j].scale(2.0 * t);
        }
        w[i * n + i] -= W::one();
    }
    // SAFETY: the workspace is for n x n matrices and not otherwise in use.
    let defect = unsafe { room.polish(w, n) };
    for i in 0..n {
        for j in 0..n {
            w[i * n + j] *= view.last.factor::<W>(b, j, n);
        }
    }
    defect
}

fn largest(a: f64, b: f64) -> f64 {
    if b <= a { a } else { b }
}

/// Workspace of the inverse and of Newton-Schulz steps.
struct Polish<W: Scalar<Real = f64>> {
    pivoted: Pivoted,
    gram: Region<W>,
    next: Region<W>,
    scratch: Region<f64>,
}

impl<W: Scalar<Real = f64>> Polish<W> {
    fn carve(arena: &mut Arena, n: usize) -> Self {
        let [gram, next] = [(); 2].map(|()| arena.take(&[n, n]));
        Polish {
            pivoted: Pivoted::carve::<W>(arena, n),
            gram,
            next,
            scratch: arena.take(&[Product::<W>::scratch(n, n)]),
        }
    }

    /// Iterates while the defect decreases; returns max |W^H W - I|, infinite if W is not finite.
    ///
    /// # Safety
    /// The memory is alive, and not otherwise in use.
    unsafe fn polish(&self, w: &mut [W], n: usize) -> f64 {
        let scratch = self.scratch.ptr();
        // SAFETY: the regions are alive, disjoint and not otherwise in use.
        let (gram, next) = unsafe { (self.gram.zeroed(), self.next.zeroed()) };
        for step in 0..=STEPS {
            let operand = Operand::new(w.as_ptr(), n);
            let product = Product::new((n, n, n), operand.h(), operand, gram.as_mut_ptr(), n);
            // SAFETY: disjoint n x n matrices.
            Member::alone(|solo| unsafe { product.run(solo, scratch) });
            let mut worst = 0.0;
            for i in 0..n {
                gram[i * n + i] -= W::one();
                worst = gram[i * n..(i + 1) * n].iter().map(|x| x.modulus()).fold(worst, largest);
            }
            if !w.iter().all(|x| x.finite()) {
                return f64::INFINITY;
            }
            if step == STEPS || !(worst > 2.0 * n as f64 * f64::EPS && worst < 1.0) {
                return worst;
            }
            next.copy_from_slice(w);
            let to = next.as_mut_ptr();
            let product = Product::new((n, n, n), operand, Operand::new(gram.as_ptr(), n), to, n);
            // SAFETY: as above. W (3 I - W^H W) / 2 = W - W (W^H W - I) / 2
            Member::alone(|solo| unsafe { product.alpha(-0.5).add().run(solo, scratch) });
            w.copy_from_slice(next);
        }
        f64::INFINITY
    }
}
