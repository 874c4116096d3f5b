//! Outputs and last states.

use super::chunks::Chunks;
use super::part::Part;
use super::{Delta, GATHER};
use crate::device::Record;
use crate::{Array, Field};
use isometry_core::Result;

/// o (B, T, HV, V), and the states behind the sequences (N, HV, K, V).
pub(crate) fn forward(record: &mut Record<'_>, delta: &Delta<'_>) -> Result<(Array, Array)> {
    delta.check()?;
    let sizes = &delta.sizes;
    let (heads, key, value) = (sizes.value_heads, sizes.key, sizes.value);
    let room = |sizes: &[usize]| Array::room(record.context(), Field::Real, sizes);
    let o = room(&[sizes.batch, sizes.tokens, heads, value])?;
    let last = room(&[sizes.sequences(), heads, key, value])?;
    let chunks = Chunks::new(delta, record.context(), Part::numbers(delta))?;
    let mut part = Part::new(record, delta, &chunks)?;
    let tokens = chunks.tokens;
    let laid = room(&[chunks.most() * heads, tokens, value])?;
    for range in chunks.parts.iter().cloned() {
        part.range = range;
        part.prepare(record)?;
        part.states(record, &last)?;
        let (rows, all) = (part.rows(), part.all());
        let out = Part::each(&laid, tokens, value);
        let queries = part.of_all(&part.early, key)[1];
        let states = Part::each(&part.states, key, value);
        part.product(record, (tokens, value, key), queries, states, out, |x| x)?;
        let p = Part::each(&part.gram, rows, all).from(0, rows).t();
        let u = Part::each(&part.u, rows, value);
        part.product(record, (tokens, value, rows), p, u, out, |x| x.add())?;
        let count = part.tasks() * tokens * value;
        part.elements(record, &GATHER, &[("x", &laid), ("o", &o)], delta.scale, count)?;
    }
    Ok((o, last))
}
