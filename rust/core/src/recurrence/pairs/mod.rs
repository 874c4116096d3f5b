//! Cells whose state is a pair, 2n numbers: the n of one part, then those of the other. A step is a list of products with the
//! matrices of W, and a pass over what they sum to.

mod cell;
mod pull;

use super::driver::{Backward, Forward, Pointer, Window};
use super::parts::{Drive, padded};
use super::time::Timeline;
use super::unit::Unit;
use crate::argument::Bar;
use crate::error::Result;
use crate::kernels::Buffer;
use crate::scalar::Real;
use crate::scratch::Arena;
use cell::PairCell;
use isometry_kernels::recurrence::Area;
use pull::PairPull;
use std::ops::Range;

/// The `Unit` of a cell with w, u and b, a law, and numbers that are its settings.
macro_rules! unit {
    ($unit:ident($($number:ident = $i:literal),*), |$own:ident| $law:expr) => {
        impl<'a, R: Real> $crate::recurrence::unit::Unit<'a, R> for $unit<'a, R> {
            fn of(
                call: &$crate::recurrence::call::Call<'a, R>,
                _: Option<&'a dyn $crate::cpu::Cpu<R>>,
            ) -> $crate::error::Result<Self> {
                let [w, u, b, _] = call.own();
                let [w, u] = [w, u].map(Option::unwrap_or_default);
                $(let $number = R::of(call.setting($i).unwrap_or(f64::NAN));)*
                Ok($unit { run: call.run()?, w, u, b $(, $number)* })
            }
            fn declaration(&self) -> &'static Declaration {
                &DECLARATION
            }
            fn run(&self) -> &Run<'a, R> {
                &self.run
            }
            fn own(&self) -> [Option<&'a [R]>; 4] {
                [Some(self.w), Some(self.u), self.b, None]
            }
            fn refuse(&self) -> $crate::error::Result<()> {
                $(if !self.$number.is_finite() {
                    let reason = "must be a finite number";
                    return Err($crate::error::Error::value(stringify!($number), reason));
                })*
                self.tanh_alone()
            }

            unsafe fn steps(&self, call: $crate::recurrence::driver::Forward<'_, R>) -> $crate::error::Result<()> {
                let $own = self;
                // SAFETY: the contract of the trait.
                unsafe { $crate::recurrence::pairs::forward(self, $law, call) }
            }

            unsafe fn steps_back(
                &self,
                call: $crate::recurrence::driver::Backward<'_, R>,
                _: &mut [$crate::argument::Bar<'_, R>],
            ) -> $crate::error::Result<()> {
                let $own = self;
                // SAFETY: the contract of the trait.
                unsafe { $crate::recurrence::pairs::backward(self, $law, call) }
            }
        }
    };
}

pub(super) use unit;

/// A product of a step: the next matrices of W times a part of a state. With the products before it of the same gates, and with
/// U x + b, it is the argument of the gates.
pub struct Product {
    /// The gates among the matrices of U, and among what a step saves; W has as many matrices.
    pub gates: Range<usize>,
    /// The part.
    pub part: usize,
    /// The state is the one after the step, of which a pass before has written this part.
    pub after: bool,
}

/// Where the pass of some gates works; all pointers are at row 0 of the step.
pub struct Pass<R, const N: usize> {
    /// The gates of each product.
    pub gates: [*mut R; N],
    /// The state before the step, null for zeros, and that after it.
    pub previous: *const R,
    pub out: *mut R,
    pub area: Area,
}

/// Where the pass of some gates works backward; all pointers are at row 0 of the step, null for zeros.
pub struct PassPull<R, const N: usize> {
    /// The gates of each product.
    pub gates: [*const R; N],
    /// The state before the step, and that after it.
    pub previous: *const R,
    pub state: *const R,
    /// The cotangents of both parts from the step after, rows of n numbers, and those of the state, which are added.
    pub g: [*const R; 2],
    pub ct: *const R,
    /// Where the cotangents of the parts before go, without the products with W; rows of n numbers.
    pub carry: [*mut R; 2],
    /// The cotangents of the arguments of all gates, `pitch` numbers a row.
    pub bars: *mut R,
    pub pitch: usize,
    pub area: Area,
}

/// What the step of such a cell is, of N products.
///
/// # Safety
/// Of its methods: the pointers have the rows and columns.
#[allow(clippy::missing_safety_doc, reason = "one contract for all methods stands on the trait")]
pub trait Law<R: Real, const N: usize>: Copy + Sync {
    /// The products in their order.
    const PRODUCTS: [Product; N];
    /// Whether the pass backward writes a cotangent of each part that the products with W^T are then added to.
    const CARRIES: [bool; 2];

    /// The pass behind the i-th product, the last of its gates: the gates from their arguments, in place, and what follows for the
    /// state.
    unsafe fn pass(&self, i: usize, at: Pass<R, N>);
    /// The same backward. That of the last product gets the cotangents of the state; one before finds those of its part, complete,
    /// in `carry`.
    unsafe fn pull(&self, i: usize, at: PassPull<R, N>);
}

/// The arrays as the steps read them.
pub struct Pairs<'a, R: Real, L, const N: usize> {
    law: L,
    line: Timeline<'a, R>,
    n: usize,
    /// The matrices of each product.
    w: [&'a [R]; N],
    u: &'a [R],
    /// b for whole vectors; empty without.
    bias: Buffer<R>,
    /// Matrices of U.
    of_u: usize,
    /// The matrices of the products and U of each of their gates, where the caller has packed them.
    packs: [[Option<&'a [R]>; N]; 2],
}

/// Fills the states of a checked cell.
///
/// # Safety
/// As [`Unit::steps`].
pub unsafe fn forward<'a, R: Real, L: Law<R, N>, const N: usize>(
    unit: &impl Unit<'a, R>,
    law: L,
    call: Forward<'_, R>,
) -> Result<()> {
    let line = unit.run().timeline(call.written.checkpoint())?;
    let pairs = Pairs::new(unit, law, line)?;
    // SAFETY: the contract above.
    unsafe { call.drive(&pairs.line, |arena| PairCell::carve(arena, &pairs)) }
}

/// Completes its gradients.
///
/// # Safety
/// As [`Unit::steps_back`].
pub unsafe fn backward<'a, R: Real, L: Law<R, N>, const N: usize>(
    unit: &impl Unit<'a, R>,
    law: L,
    mut call: Backward<'_, R>,
) -> Result<()> {
    let checkpoint = call.checkpoint();
    let pairs = Pairs::new(unit, law, unit.run().timeline(checkpoint)?)?;
    let [w, u, b, _] = std::mem::take(&mut call.own).map(Bar::shared);
    // SAFETY: the contract above.
    unsafe {
        let bars = call.bars(&pairs.line, [w, u, b]);
        call.drive(&pairs.line, |arena| PairPull::carve(arena, &pairs, checkpoint.is_some(), bars))
    }
}

impl<'a, R: Real, L: Law<R, N>, const N: usize> Pairs<'a, R, L, N> {
    fn new(unit: &impl Unit<'a, R>, law: L, line: Timeline<'a, R>) -> Result<Self> {
        let ([_, _, _, n], [w, u, b, _]) = (unit.axes(), unit.own());
        let (mut w, u) = (w.unwrap_or_default(), u.unwrap_or_default());
        let w = L::PRODUCTS.each_ref().map(|product| {
            let (own, behind) = w.split_at(product.gates.len() * n * n);
            w = behind;
            own
        });
        let mut packs = unit.packs::<4>().into_iter();
        let of_w = [(); N].map(|()| packs.next().flatten());
        let of_u = std::array::from_fn(|i| if Self::begins(i) { packs.next().flatten() } else { None });
        let count = L::PRODUCTS.iter().map(|product| product.gates.end).max().unwrap_or(0);
        Ok(Pairs { law, line, n, w, u, bias: padded(b)?, of_u: count, packs: [of_w, of_u] })
    }

    /// Whether the i-th product is the first of its gates, so that U x + b is added to it.
    fn begins(i: usize) -> bool {
        i == 0 || L::PRODUCTS[i].gates != L::PRODUCTS[i - 1].gates
    }

    /// U x_t + b of the gates of the i-th product, if it is the first of them.
    fn drive(&self, arena: &mut Arena, i: usize) -> Option<Drive<'_, R>> {
        let gates = &L::PRODUCTS[i].gates;
        let u = &self.u[gates.start * self.n * self.line.features..];
        let bias = if self.bias.is_empty() { &[][..] } else { &self.bias[gates.start * self.n..] };
        Self::begins(i)
            .then(|| Drive::carve(arena, &self.line, (u, gates.len() * self.n), bias, self.packs[1][i]))
    }

    /// These rows and columns of one part.
    fn area(&self, rows: &Range<usize>, columns: &Range<usize>) -> Area {
        Area { n: self.n, rows: rows.clone(), columns: columns.clone() }
    }

    /// The gates of each product that step t saves, those of one product side by side.
    fn gates<P: Pointer>(&self, t: usize, window: &Window<P>) -> [P; N] {
        let stride = self.line.schedule.batch * self.n;
        L::PRODUCTS
            .each_ref()
            .map(|product| window.saved(t, product.gates.start, stride, product.gates.len()))
    }
}
