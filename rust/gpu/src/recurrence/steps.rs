//! The steps of a recurrence in place, s_k = phi(s_{k-1} M + a_k) or the same backward: the formulas are in `steps.wgsl`.
//!
//! Two routes. *Together*: workgroups take a few sequences each, and one dispatch does many steps. *Apart*: a dispatch for each step,
//! whose workgroups share the sequences and the features. Between dispatches the states are in `rows` alone.

use crate::activation::RowActivation;
use crate::device::Record;
use crate::shader::{Variant, arrays, groups, shaders};
use crate::{Array, Field};
use isometry_core::Result;
use isometry_core::internal::sizes::work;

shaders! {
    TOGETHER "together" "together.wgsl" &LISTED,
    APART "apart" "apart.wgsl" &[&SMALL[0], &SMALL[1], &LARGE[0], &LARGE[1]],
}

type Constants = [(&'static str, u32); 3];

/// Tiles of 16 sequences and 16 pairs of features, and of 64 and 32.
static SMALL: [Constants; 2] =
    [[("ROWS", 1), ("PAIRS", 1), ("BACK", 0)], [("ROWS", 1), ("PAIRS", 1), ("BACK", 1)]];
static LARGE: [Constants; 2] =
    [[("ROWS", 4), ("PAIRS", 2), ("BACK", 0)], [("ROWS", 4), ("PAIRS", 2), ("BACK", 1)]];

/// Threads along a row of a workgroup, and sequences of a thread.
const PAIRS: [usize; 5] = [16, 32, 64, 128, 256];
const EACH: [usize; 2] = [1, 4];
/// Threads of a workgroup.
const THREADS: usize = 256;

/// For PAIRS i, EACH j and BACK k at (2 i + j) 2 + k.
static ALL: [Constants; 20] = {
    let mut all = [[("PAIRS", 0), ("EACH", 0), ("BACK", 0)]; 20];
    let mut at = 0;
    while at < 20 {
        all[at][0].1 = PAIRS[at / 4] as u32;
        all[at][1].1 = EACH[at / 2 % 2] as u32;
        all[at][2].1 = at as u32 % 2;
        at += 1;
    }
    all
};
static LISTED: [&[(&str, u32)]; 20] = {
    let mut listed: [&[(&str, u32)]; 20] = [&[]; 20];
    let mut at = 0;
    while at < 20 {
        listed[at] = &ALL[at];
        at += 1;
    }
    listed
};

/// How the steps are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// This many steps in a dispatch, for up to [`WIDEST`] features.
    Together(usize),
    /// One step in a dispatch.
    Apart,
}

/// The most features for which a workgroup has whole states.
pub(crate) const WIDEST: usize = 2 * THREADS;
/// Most steps of a dispatch, and most real multiply-adds: it must end before a driver considers the device
/// hung, after 2 s on Windows.
const RUN: usize = 512;
const WORK: usize = 1 << 34;
/// The most bytes of W that a workgroup reads in about the time of a dispatch: an estimate, at 64 bytes per
/// clock.
const NEAR: usize = 1 << 19;

/// The route for `batch` sequences of n features.
pub(crate) fn route(field: Field, batch: usize, n: usize) -> Route {
    let near = n <= WIDEST && n * n * field.bytes() <= NEAR;
    let step = work(&[batch, n, n, field.parts(), field.parts()]).max(1);
    if near { Route::Together((WORK / step).clamp(1, RUN)) } else { Route::Apart }
}

/// The steps of one direction.
pub(super) struct Steps<'a> {
    pub back: bool,
    pub reverse: bool,
    pub phi: &'a RowActivation,
    /// M, or its conjugate if backward
    pub m: &'a Array,
    /// h0
    pub start: Option<&'a Array>,
    pub lengths: Option<&'a Array>,
    /// backward: from which phi' is read
    pub y: Option<&'a Array>,
    /// (T, B, n)
    pub rows: &'a Array,
    /// backward: for the summands of the gradient of phi's bias
    pub along: Option<&'a Array>,
}

impl Steps<'_> {
    pub fn record(&self, record: &mut Record<'_>, route: Route) -> Result<()> {
        let Steps { phi, m, rows, .. } = *self;
        let &[steps, batch, n] = rows.shape() else { return Ok(()) };
        let none = Array::room(record.context(), Field::Real, &[1])?;
        let given = [self.start, phi.own(), self.lengths, self.y];
        let ([start, own, lengths, y], along) =
            (given.map(|array| array.unwrap_or(m)), self.along.unwrap_or(&none));
        let arrays = arrays![m, start, own, lengths, y, rows, along];
        let (run, constants, groups) = match route {
            Route::Together(run) => {
                let (constants, rows) = together(self.back, batch, n);
                (run, constants, groups(batch.div_ceil(rows)))
            }
            Route::Apart => {
                let (constants, [rows, pairs]) = apart(self.back, batch, n);
                (1, constants, [n.div_ceil(2).div_ceil(pairs), batch.div_ceil(rows), 1])
            }
        };
        let shader = if route == Route::Apart { &APART } else { &TOGETHER };
        let variant = Variant { shader, field: rows.field(), constants };
        let flags = [self.reverse, self.lengths.is_some(), self.start.is_some(), self.along.is_some()];
        let ([reverse, lengths, start, along], [code, slope, halves]) = (flags.map(u32::from), phi.sizes);
        let count = steps.div_ceil(run);
        let each = work(&[run, batch, n, n, rows.field().parts(), rows.field().parts()]);
        let runs = (0..count).map(|i| {
            let first = run * if self.back { count - 1 - i } else { i };
            let [steps, batch, n, first, run] =
                [steps, batch, n, first, run.min(steps - first)].map(|size| size as u32);
            [steps, batch, n, first, run, reverse, lengths, start, along, code, slope, halves]
        });
        record.dispatches(variant, &arrays, runs, groups, each)
    }
}

/// The constants, and the sequences of a workgroup.
fn together(back: bool, batch: usize, n: usize) -> (&'static [(&'static str, u32)], usize) {
    let wide = PAIRS.iter().position(|&pairs| pairs >= n.div_ceil(2)).unwrap_or(PAIRS.len() - 1);
    let lanes = THREADS / PAIRS[wide];
    // several sequences for each thread if there are enough workgroups even then
    let many = usize::from(batch >= 1024 * lanes);
    (LISTED[(2 * wide + many) * 2 + usize::from(back)], lanes * EACH[many])
}

/// The constants, and the sequences and the pairs of features of a workgroup.
fn apart(back: bool, batch: usize, n: usize) -> (&'static [(&'static str, u32)], [usize; 2]) {
    let large = batch > 16 && batch.div_ceil(64) * n.div_ceil(64) >= 64;
    if large { (&LARGE[usize::from(back)], [64, 32]) } else { (&SMALL[usize::from(back)], [16, 16]) }
}
