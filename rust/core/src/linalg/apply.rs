//! Q X, Q^H X, X Q or X Q^H, without Q. From the left,
//!
//! ```text
//! Q X = X - V R D V^H X,      Q^H X = X - V D^* R^H V^H X.
//! ```
//!
//! An X of fewer columns than Q has reflections is multiplied by [`PANEL`] reflections at a time: R, which costs k^2 m / 2
//! for k reflections, would be most of the work.
//!
//! The gradients for the cotangent C; for Q^H exchange X and C in all but the last line:
//!
//! ```text
//! h = N V^H X,  g = R^H V^H C,  B = g h^H,  tau_bar = -diag B,
//! V_bar = V (G + G^H) - C (D h)^H - X (D^* g)^H,      G = D^* striu(B) D^*,
//! X_bar = C - V D^* g       (Q^H: C - V D h).
//! ```
//!
//! X Q is (Q^H X^H)^H: the same with X^H and C^H in place of X and C, whose small matrices (k x columns) are stored as their
//! conjugate transposes, so that all arrays are written row by row.

use super::reflectors::{BARRIERS, FULL, Factors, Hand, LOWER, Places, Reflectors, UPPER};
use crate::batch::Batch;
use crate::error::Result;
use crate::kernels::{Operand, Product, Triangle};
use crate::parallel::Shared;
use crate::scalar::Scalar;
use crate::scratch::{Arena, Region};
use crate::sizes::{check_len, work};

/// Reflections of a panel.
const PANEL: usize = if cfg!(test) { 8 } else { 32 };

/// What is computed: Q X (`left`) or X Q, with Q^H in place of Q if `adjoint`; X is (m, columns), or (columns, m).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// Q X or Q^H X.
    pub left: bool,
    /// Q^H.
    pub adjoint: bool,
    /// The other size of X.
    pub columns: usize,
}

impl Order {
    /// Whether X, or X^H from the right, is multiplied by Q^H from the left.
    fn turned(self) -> bool {
        self.left == self.adjoint
    }

    /// C = A B, or C^H = B^H A^H from the right, into `c` (rows x columns, or columns x rows).
    fn product<T: Scalar>(
        self,
        (m, n, k): (usize, usize, usize),
        (a, shape): (Operand<T>, Triangle),
        b: Operand<T>,
        (c, pitch): (*mut T, usize),
    ) -> Product<T> {
        if self.left {
            Product::new((m, n, k), a, b, c, pitch).shapes(shape, FULL, FULL)
        } else {
            Product::new((n, m, k), b.h(), a.h(), c, pitch).shapes(FULL, shape.t(), FULL)
        }
    }

    /// The row stride of a matrix with `rows` rows.
    fn pitch(self, rows: usize) -> usize {
        if self.left { self.columns } else { rows }
    }

    /// The matrix with this row stride that was written there.
    fn read<T>(self, c: *const T, pitch: usize) -> Operand<T> {
        if self.left { Operand::new(c, pitch) } else { Operand::new(c, pitch).h() }
    }
}

/// The small matrices of one X.
impl<T: Scalar> Factors<'_, T> {
    /// `to` = V^H X, an X with this row stride. Ends with a barrier.
    unsafe fn project(self, hand: Hand<'_, T>, order: Order, (x, pitch): (*const T, usize), to: *mut T) {
        let (Factors { m, k, .. }, v) = (self, (self.v().h(), UPPER));
        let product = order.product((k, order.columns, m), v, order.read(x, pitch), (to, order.pitch(k)));
        // SAFETY: x is m x columns, `to` k x columns, or both are their conjugate transposes.
        unsafe { hand.mul(product) };
        hand.member.barrier();
    }

    /// `to` = S h for a triangular k x k matrix S. Ends with a barrier.
    unsafe fn turn(self, hand: Hand<'_, T>, order: Order, s: (Operand<T>, Triangle), [h, to]: [*mut T; 2]) {
        let (k, pitch) = (self.k, order.pitch(self.k));
        // SAFETY: h and `to` are k x columns.
        unsafe { hand.mul(order.product((k, order.columns, k), s, order.read(h, pitch), (to, pitch))) };
        hand.member.barrier();
    }

    /// `to` <- D `to` or D^* `to`. Ends with a barrier.
    unsafe fn scale(self, hand: Hand<'_, T>, order: Order, to: *mut T, conj: bool) {
        // SAFETY: `to` is k x columns, or its conjugate transpose.
        unsafe {
            if order.left {
                self.scale_rows(hand.member, to, order.columns, conj);
            } else {
                self.scale_columns(hand.member, to, order.columns, !conj);
            }
        }
        hand.member.barrier();
    }

    /// out = X - V h; X and out have this row stride. No barrier.
    unsafe fn subtract(
        self,
        hand: Hand<'_, T>,
        order: Order,
        (x, pitch): (*const T, usize),
        h: *const T,
        out: *mut T,
    ) {
        let (Factors { m, k, .. }, v) = (self, (self.v(), LOWER));
        let h = order.read(h, order.pitch(k));
        let product = order.product((m, order.columns, k), v, h, (out, pitch)).alpha(-1.0);
        // SAFETY: x and out are m x columns (or the transpose), h k x columns.
        unsafe { hand.mul(product.onto(x, pitch)) };
    }
}

/// out = Q X and so on, for every matrix of the batch.
///
/// ```
/// use isometry_core::linalg::{Order, Reflectors, apply};
///
/// let one = Reflectors::new(&[0.0, 1.0], &[1.0], 1, 2, 1)?; // H = I - v v^T with v = (1, 1)
/// let (order, mut out) = (Order { left: true, adjoint: false, columns: 1 }, [0.0; 2]);
/// apply(&one, &[3.0, 5.0], order, &mut out, 1)?;
/// assert_eq!(out, [-5.0, -3.0]);
/// # Ok::<(), isometry_core::Error>(())
/// ```
///
/// # Errors
/// If an array has another length, or memory ends.
pub fn apply<T: Scalar>(
    of: &Reflectors<'_, T>,
    x: &[T],
    order: Order,
    out: &mut [T],
    threads: usize,
) -> Result<()> {
    let (Reflectors { batch, m, k, .. }, n) = (*of, order.columns);
    check_len("other", x.len(), &[batch, m, n])?;
    check_len("out", out.len(), &[batch, m, n])?;
    if out.is_empty() {
        return Ok(());
    }
    let out = Shared(out.as_mut_ptr());
    // a real column is a row as well, and rows are multiplied faster: Q x = (x^T Q^T)^T
    let order = match order {
        Order { left: true, adjoint, columns: 1 } if T::PARTS == 1 => {
            Order { left: false, adjoint: !adjoint, columns: 1 }
        }
        order => order,
    };
    let panel = if n < k { PANEL.min(k) } else { k.max(1) };
    let (whole, pitch) = (panel == k, order.pitch(m));
    let cost = work(&[k, panel, m / 2 + panel / 6]).saturating_add(work(&[2, m, n, k]));
    Batch::new::<T>(batch, cost, BARRIERS * k.div_ceil(panel)).split(threads).run(
        |arena| (Places::carve(arena, m, panel, false), [(); 2].map(|()| arena.take::<T>(&[panel, n]))),
        |arena: &mut Arena| scratch::<T>(arena, m, n),
        |member, b, (places, own), scratch| {
            let hand = Hand { member, scratch: scratch.ptr() };
            let [by, h] = own.map(|region| region.ptr());
            let (a, x, out) = (&of.a[b * m * k..], &x[b * m * n..][..m * n], out.at(b * m * n));
            // SAFETY: the arrays' sizes were checked; members write disjoint parts between barriers.
            unsafe {
                if !whole {
                    for i in member.share(m, 4) {
                        std::ptr::copy_nonoverlapping(x[i * n..].as_ptr(), out.add(i * n), n);
                    }
                }
                let panels = k.div_ceil(panel);
                for i in 0..panels {
                    let first = panel * if order.turned() { i } else { panels - 1 - i };
                    let skipped = if order.left { first * n } else { first };
                    let to = out.add(skipped);
                    let from = (if whole { x.as_ptr() } else { to.cast_const() }, pitch);
                    if !whole {
                        member.barrier();
                    }
                    let tau = &of.tau_of(b)[first..k.min(first + panel)];
                    let a = a[first * k + first..].as_ptr();
                    let factors = Factors::new(hand, (a, k), tau, m - first, places, false);
                    factors.project(hand, order, from, by);
                    if order.turned() {
                        factors.turn(hand, order, (factors.r().h(), LOWER), [by, h]);
                        factors.scale(hand, order, h, true);
                    } else {
                        factors.scale(hand, order, by, false);
                        factors.turn(hand, order, (factors.r(), UPPER), [by, h]);
                    }
                    factors.subtract(hand, order, from, h, to);
                }
            }
        },
    )
}

/// The gradients to compute.
pub struct Bars<'a, T> {
    /// (batch, m, k), and (batch, k)
    pub reflectors: Option<(&'a mut [T], &'a mut [T])>,
    /// The shape of X.
    pub x: Option<&'a mut [T]>,
}

fn scratch<T: Scalar>(arena: &mut Arena, m: usize, n: usize) -> Region<T::Real> {
    let most = m.max(n);
    arena.take(&[Product::<T>::scratch(most, most)])
}

/// The gradients of the cotangent ct of [`apply`].
///
/// ```
/// use isometry_core::linalg::{Bars, Order, Reflectors, apply_vjp};
///
/// let one = Reflectors::new(&[0.0, 1.0], &[1.0], 1, 2, 1)?; // H = I - v v^T with v = (1, 1)
/// let (order, mut x_bar) = (Order { left: true, adjoint: false, columns: 1 }, [0.0; 2]);
/// let bars = Bars { reflectors: None, x: Some(&mut x_bar) };
/// apply_vjp(&one, &[3.0, 5.0], &[1.0, 0.0], order, bars, 1)?;
/// assert_eq!(x_bar, [0.0, -1.0]); // H^T ct
/// # Ok::<(), isometry_core::Error>(())
/// ```
///
/// # Errors
/// If an array has another length, or memory ends.
pub fn apply_vjp<T: Scalar>(
    of: &Reflectors<'_, T>,
    x: &[T],
    ct: &[T],
    order: Order,
    bars: Bars<'_, T>,
    threads: usize,
) -> Result<()> {
    let (Reflectors { batch, m, k, .. }, n) = (*of, order.columns);
    let Bars { reflectors, x: x_bar } = bars;
    for (name, len) in [("other", x.len()), ("ct", ct.len())] {
        check_len(name, len, &[batch, m, n])?;
    }
    if let Some((a_bar, tau_bar)) = &reflectors {
        check_len("a_bar", a_bar.len(), &[batch, m, k])?;
        check_len("tau_bar", tau_bar.len(), &[batch, k])?;
    }
    if let Some(x_bar) = &x_bar {
        check_len("other_bar", x_bar.len(), &[batch, m, n])?;
    }
    let none = |bar: Option<&[T]>| bar.is_none_or(<[T]>::is_empty);
    if none(reflectors.as_ref().map(|(a, _)| &**a)) && none(x_bar.as_deref()) {
        return Ok(());
    }
    let own = reflectors.map(|(a, tau)| (Shared(a.as_mut_ptr()), Shared(tau.as_mut_ptr())));
    let x_bar = x_bar.map(|x| Shared(x.as_mut_ptr()));
    let cost = of.cost(2).saturating_add(work(&[5, m, n, k]));
    let (turned, pitch) = (order.turned(), order.pitch(m));
    Batch::new::<T>(batch, cost, 2 * BARRIERS).split(threads).run(
        |arena| {
            let places = Places::carve(arena, m, k, true);
            (places, [(); 3].map(|()| arena.take::<T>(&[k, n])), arena.take::<T>(&[k, k]))
        },
        |arena: &mut Arena| scratch::<T>(arena, m, n),
        |member, b, (places, small, square), scratch| {
            let hand = Hand { member, scratch: scratch.ptr() };
            let ([by, h, g], mixed) = (small.map(|region| region.ptr()), square.ptr());
            let [x, ct] = [x, ct].map(|x| (x[b * m * n..].as_ptr(), pitch));
            let [first, second] = if turned { [ct, x] } else { [x, ct] };
            // SAFETY: the arrays' sizes were checked; members write disjoint parts between barriers.
            unsafe {
                let factors = of.factors(hand, b, places, true);
                let wanted = own.is_some();
                if wanted || turned {
                    factors.project(hand, order, first, by);
                    factors.turn(hand, order, (factors.n(), UPPER), [by, h]);
                }
                if wanted || !turned {
                    factors.project(hand, order, second, by);
                    factors.turn(hand, order, (factors.r().h(), LOWER), [by, g]);
                }
                if wanted {
                    let [g, h] = [g, h].map(|small| order.read(small, order.pitch(k)));
                    hand.mul(Product::new((k, k, n), g, h.h(), mixed, k).shapes(FULL, FULL, UPPER));
                    member.barrier();
                }
                if wanted || turned {
                    factors.scale(hand, order, h, false);
                }
                if wanted || !turned {
                    factors.scale(hand, order, g, true);
                }
                if let Some((a_bar, tau_bar)) = own {
                    let bar = a_bar.at(b * m * k);
                    factors.small_gradients(member, mixed, tau_bar.at(b * k));
                    let sum = Product::new((m, k, k), factors.v(), Operand::new(mixed, k), bar, k);
                    hand.mul(sum.shapes(LOWER, FULL, LOWER));
                    for (rows, small) in [(second, h), (first, g)] {
                        member.barrier();
                        let small = order.read(small, order.pitch(k)).h();
                        let rows = order.read(rows.0, rows.1);
                        let outer = Product::new((m, k, n), rows, small, bar, k).alpha(-1.0).add();
                        hand.mul(outer.shapes(FULL, FULL, LOWER));
                    }
                    factors.below(member, bar);
                }
                if let Some(x_bar) = x_bar {
                    factors.subtract(hand, order, ct, if turned { h } else { g }, x_bar.at(b * m * n));
                }
            }
        },
    )
}
