//! Matrices of up to 64 rows: all in one dispatch, each by a team of threads that holds it in registers.
//!
//! Elimination with row pivots is as accurate as I + A allows, and one Newton-Schulz step makes W unitary to
//! rounding.

use super::{Bars, Cayley};
use crate::Array;
use crate::device::Record;
use crate::operator::Operator;
use crate::shader::{Variant, arrays, groups, shaders};
use isometry_core::Result;

/// Rows of the largest matrix.
pub(super) const MOST: usize = 64;

/// The threads of a team are SIDE x SIDE, a workgroup has MANY teams: for n up to SIDE EACH.
type Team = &'static [(&'static str, u32)];
const TINY: Team = &[("SIDE", 4), ("EACH", 2), ("MANY", 4)];
const SHORT: Team = &[("SIDE", 8), ("EACH", 2), ("MANY", 1)];
const MEDIUM: Team = &[("SIDE", 8), ("EACH", 4), ("MANY", 1)];
pub(super) const LONG: Team = &[("SIDE", 16), ("EACH", 4), ("MANY", 1)];
const TEAMS: &[Team] = &[TINY, SHORT, MEDIUM, LONG];

shaders! {
    SMALL "small" "small.wgsl" TEAMS,
    SMALL_VJP "small_vjp" "small_vjp.wgsl" TEAMS,
}

/// The team for n rows, and the workgroups for a batch of them.
fn team(n: usize, batch: usize) -> (Team, [usize; 3]) {
    let (team, many) = match n {
        0..=8 => (TINY, 4),
        9..=16 => (SHORT, 1),
        17..=32 => (MEDIUM, 1),
        _ => (LONG, 1),
    };
    (team, groups(batch.div_ceil(many)))
}

/// Writes W.
pub(super) fn matrix(view: &Cayley<'_>, record: &mut Record<'_>, w: &Array) -> Result<()> {
    let (constants, groups) = team(view.n, view.batch);
    let variant = Variant { shader: &SMALL, field: view.field(), constants };
    let ((diagonal, with_diagonal), (factors, with_last)) = (view.diagonal(), view.factors());
    let arrays = [("upper", view.upper), ("diagonal", diagonal), ("factors", factors), ("w", w)];
    record.dispatch(variant, &arrays, &[view.batch as u32, view.n as u32, with_diagonal, with_last], groups)
}

/// Writes the gradients of upper and diagonal.
pub(super) fn gradient(
    view: &Cayley<'_>,
    record: &mut Record<'_>,
    w: &Array,
    ct: &Array,
    bars: &Bars,
) -> Result<()> {
    let (constants, groups) = team(view.n, view.batch);
    let variant = Variant { shader: &SMALL_VJP, field: view.field(), constants };
    let (factors, with_last) = view.factors();
    let arrays = arrays![w, ct, factors, upper_bar = &bars.upper, diagonal_bar = &bars.diagonal];
    let sizes = [view.batch as u32, view.n as u32, view.diagonal().1, with_last];
    record.dispatch(variant, &arrays, &sizes, groups)
}
