//! The matrices that elimination without pivoting has spoilt: single precision is redone in double and rounded, double
//! precision by LU with partial pivoting and Newton-Schulz steps W <- W (3 I - W^H W) / 2, which square the distance from
//! the orthogonal matrices.

use super::{Cayley, Last, forward, group, triangle};
use crate::kernels::{Buffer, Operand, Product, invert_pivoted, lanes};
use crate::parallel::{Member, Shared};
use crate::scalar::{Real, Scalar};
use isometry_kernels::cayley::Limits;

/// Newton-Schulz steps at most; one suffices below a condition of 1e8.
const STEPS: usize = 6;

/// Parameters of some matrices in double precision.
struct Widened<T: Scalar> {
    upper: Vec<T::Wide>,
    diagonal: Option<Vec<f64>>,
    last: Option<Vec<f64>>,
    phases: bool,
    batch: usize,
    n: usize,
}

impl<T: Scalar> Widened<T> {
    fn new(view: &Cayley<'_, T>, which: &[usize]) -> Self {
        let n = view.n;
        let rows = |x: &[T::Real]| {
            which.iter().flat_map(|b| &x[b * n..(b + 1) * n]).map(|x| x.f64()).collect::<Vec<f64>>()
        };
        Widened {
            upper: which.iter().flat_map(|&b| view.upper_of(b)).map(|x| x.widen()).collect(),
            diagonal: view.diagonal.map(rows),
            last: view.last.numbers().map(rows),
            phases: matches!(view.last, Last::Phases(_)),
            batch: which.len(),
            n,
        }
    }

    fn view(&self) -> Cayley<'_, T::Wide> {
        let last = match &self.last {
            None => Last::None,
            Some(x) if self.phases => Last::Phases(x),
            Some(x) => Last::Signs(x),
        };
        let diagonal = self.diagonal.as_deref();
        Cayley { upper: &self.upper, diagonal, last, batch: self.batch, n: self.n }
    }
}

/// Redoes the matrices `which` of a batch that is worked one matrix per lane.
///
/// # Safety
/// n n elements of each of the matrices exist at `out`.
pub(super) unsafe fn in_lanes<T: Scalar>(view: &Cayley<'_, T>, which: &[usize], out: Shared<T>) {
    let n = view.n;
    let widened = Widened::new(view, which);
    let wide = widened.view();
    let mut w = Buffer::<T::Wide>::scratch(which.len() * n * n);
    let (width, double) = (lanes::<f64>(), is_double::<T>());
    let scratch = Buffer::<f64>::scratch(group::scratch::<T::Wide>(n));
    for first in (0..which.len()).step_by(width) {
        let count = (which.len() - first).min(width);
        let failed = if double {
            u32::MAX
        } else {
            let to = w.ptr().wrapping_add(first * n * n);
            // SAFETY: the buffers hold `count` matrices from `first` on.
            unsafe { group::forward(&wide, (first, count), to, scratch.ptr(), Limits::rounded::<T>(n)) }
        };
        for b in (0..count).filter(|b| failed >> b & 1 == 1).map(|b| first + b) {
            pivoted(&wide, b, &mut w[b * n * n..(b + 1) * n * n]);
        }
    }
    for (b, w) in which.iter().zip(w.chunks_exact(n * n)) {
        // SAFETY: passed on from the caller.
        unsafe { round(w, out.at(b * n * n)) };
    }
}

/// Redoes matrix b alone, on up to `threads` members.
///
/// # Safety
/// n n elements exist at `out`.
pub(super) unsafe fn alone<T: Scalar>(view: &Cayley<'_, T>, b: usize, out: *mut T, threads: usize) {
    let n = view.n;
    let widened = Widened::new(view, &[b]);
    let wide = widened.view();
    let mut w = Buffer::<T::Wide>::scratch(n * n);
    // SAFETY: the buffer holds the matrix.
    let good = !is_double::<T>()
        && unsafe { forward::together(&wide, 0, Shared(w.ptr()), threads, Limits::rounded::<T>(n)) };
    if !good {
        pivoted(&wide, 0, &mut w);
    }
    // SAFETY: passed on from the caller.
    unsafe { round(&w, out) };
}

fn is_double<T: Scalar>() -> bool {
    size_of::<T::Real>() == size_of::<f64>()
}

/// # Safety
/// There is room for all of w at `out`.
unsafe fn round<T: Scalar>(w: &[T::Wide], out: *mut T) {
    for (i, &x) in w.iter().enumerate() {
        // SAFETY: the caller vouches for the room.
        unsafe { *out.add(i) = T::narrow(x) };
    }
}

/// W of matrix b by partial pivoting, then Newton-Schulz steps until W^H W = I to working precision.
fn pivoted<W: Scalar<Real = f64>>(view: &Cayley<'_, W>, b: usize, w: &mut [W]) {
    let n = view.n;
    let upper = view.upper_of(b);
    let diagonal = view.diagonal_of(b);
    let largest = upper.iter().map(|x| x.re().abs().max(x.im().abs())).fold(1.0, largest);
    let largest = diagonal.into_iter().flatten().map(|x| x.abs()).fold(largest, self::largest);
    if !largest.is_finite() {
        w.fill(W::new(f64::NAN, f64::NAN));
        return;
    }
    // (I + A)^-1 = (I / t + A / t)^-1 / t with t = max(1, |A|_max): nothing overflows
    let t = 1.0 / largest;
    for i in 0..n {
        w[i * n + i] = W::new(t, diagonal.map_or(0.0, |d| d[i] * t));
        for j in i + 1..n {
            let x = upper[triangle::offset(n, i).wrapping_add(j)].scale(t);
            w[i * n + j] = x;
            w[j * n + i] = -x.conj();
        }
    }
    invert_pivoted(w, n);
    for i in 0..n {
        for j in 0..n {
            w[i * n + j] = w[i * n + j].scale(2.0 * t);
        }
        w[i * n + i] -= W::one();
    }
    polish(w, n);
    for i in 0..n {
        for j in 0..n {
            w[i * n + j] *= view.last.factor::<W>(b * n + j);
        }
    }
}

fn largest(a: f64, b: f64) -> f64 {
    if b <= a { a } else { b }
}

/// Newton-Schulz steps, as long as they help.
fn polish<W: Scalar<Real = f64>>(w: &mut [W], n: usize) {
    let mut gram = Buffer::<W>::scratch(n * n);
    let mut next = Buffer::<W>::scratch(n * n);
    let scratch = Buffer::<f64>::scratch(Product::<W>::scratch(n, n));
    for step in 0..=STEPS {
        let operand = Operand::new(w.as_ptr(), n);
        // SAFETY: three separate n x n matrices.
        Member::alone(|solo| unsafe {
            Product::new((n, n, n), operand.h(), operand, gram.ptr(), n).run(solo, scratch.ptr());
        });
        let mut worst = 0.0;
        for i in 0..n {
            gram[i * n + i] -= W::one();
            worst = gram[i * n..(i + 1) * n].iter().map(|x| x.modulus()).fold(worst, largest);
        }
        if step == STEPS || !(worst > 2.0 * n as f64 * f64::EPS && worst < 1.0) {
            return;
        }
        next.copy_from_slice(w);
        // SAFETY: as above. W (3 I - W^H W) / 2 = W - W (W^H W - I) / 2
        Member::alone(|solo| unsafe {
            let gram = Operand::new(gram.ptr().cast_const(), n);
            Product::new((n, n, n), operand, gram, next.ptr(), n).alpha(-0.5).add().run(solo, scratch.ptr());
        });
        w.copy_from_slice(&next);
    }
}
