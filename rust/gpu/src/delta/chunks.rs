//! How sequences are cut into chunks, and chunks into parts.

use super::Delta;
use crate::array::zeros;
use crate::device::{Context, WORK};
use crate::{Array, Field};
use isometry_core::internal::sizes::work;
use isometry_core::{Error, Result};
use std::ops::Range;
use std::sync::Arc;

/// Most rows of a chunk, unless a token has more: of a call with a gate for each row of S, and of others.
const WIDE: usize = 32;
const ROWS: usize = 64;
/// Most bytes of the arrays of a part.
const BYTES: usize = 1 << 29;

/// The chunks of a call.
pub struct Chunks {
    /// The first token of each, counted through the batch, and its number of tokens.
    pub table: Array,
    /// The first chunk of each sequence, and that behind its last.
    pub sequences: Array,
    /// Tokens of a chunk.
    pub tokens: usize,
    /// Chunks that are computed together: all, unless they take too much memory. There is at least one range.
    pub parts: Vec<Range<usize>>,
    /// The sequence that is in progress where each part begins: there is one at most.
    pub begun: Vec<Option<usize>>,
}

impl Chunks {
    /// Of a call whose arrays take `numbers` numbers for each row of a value head.
    pub fn new(delta: &Delta<'_>, context: &Arc<Context>, numbers: usize) -> Result<Self> {
        let sizes = &delta.sizes;
        let lengths: Vec<Range<usize>> = match sizes.ends {
            None => (0..sizes.batch).map(|n| n * sizes.tokens..(n + 1) * sizes.tokens).collect(),
            Some(ends) => ends.windows(2).map(|pair| pair[0] as usize..pair[1] as usize).collect(),
        };
        let longest = lengths.iter().map(Range::len).max().unwrap_or(0);
        let rows = if delta.wide() { WIDE } else { ROWS };
        let tokens = (rows / sizes.householders).clamp(1, longest.max(1));
        let (mut table, mut sequences) = (Vec::new(), Vec::with_capacity(lengths.len()));
        for Range { start, end } in lengths {
            let first = table.len();
            table.extend((start..end).step_by(tokens).map(|token| [token, tokens.min(end - token)]));
            sequences.push([first, table.len()]);
        }
        let rows = work(&[tokens, sizes.householders, sizes.value_heads]);
        let (bytes, adds) = (work(&[rows, numbers, 4]), work(&[rows, 3, sizes.key, sizes.value]));
        let most = (BYTES / bytes).min(WORK / adds).max(1);
        let starts = (0..table.len().max(1)).step_by(most);
        let begun = starts.clone().map(|start| {
            let n = sequences.partition_point(|&[_, end]| end <= start);
            sequences.get(n).and_then(|&[first, _]| (first < start).then_some(n))
        });
        Ok(Chunks {
            begun: begun.collect(),
            parts: starts.map(|start| start..table.len().min(start + most)).collect(),
            table: sent(context, &table)?,
            sequences: sent(context, &sequences)?,
            tokens,
        })
    }

    /// The largest number of chunks of a part.
    pub fn most(&self) -> usize {
        self.parts.iter().map(Range::len).max().unwrap_or(0)
    }
}

/// Pairs of integers on the device.
fn sent(context: &Arc<Context>, pairs: &[[usize; 2]]) -> Result<Array> {
    let mut bits = zeros::<f32>(2 * pairs.len())?;
    for (bits, &number) in bits.iter_mut().zip(pairs.as_flattened()) {
        let number = u32::try_from(number);
        *bits = f32::from_bits(number.map_err(|_| Error::value("q", "has too many tokens"))?);
    }
    Array::upload(context, Field::Real, &[2 * pairs.len()], &bits)
}
