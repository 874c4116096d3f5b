//! The sizes of a call, and their check.

use crate::error::{Error, Result};
use crate::sizes::check_len;

/// The sizes of a call, with the names of [`super::Delta`].
#[derive(Clone, Copy, Debug)]
pub struct Sizes<'a> {
    /// B; 1 for packed sequences.
    pub batch: usize,
    /// T
    pub tokens: usize,
    /// m
    pub householders: usize,
    /// H
    pub heads: usize,
    /// HV
    pub value_heads: usize,
    /// K
    pub key: usize,
    /// V
    pub value: usize,
    /// The first token of each packed sequence, and T.
    pub ends: Option<&'a [i64]>,
}

impl Sizes<'_> {
    /// N
    pub fn sequences(&self) -> usize {
        self.ends.map_or(self.batch, |ends| ends.len().saturating_sub(1))
    }

    /// Checks them, and the lengths of q, k, v and beta, of the gates, one for each row of S if `wide`, and of the initial states.
    ///
    /// # Errors
    /// Those of [`super::forward`].
    pub fn check(
        &self,
        [q, k, v, beta]: [usize; 4],
        gate: Option<(usize, bool)>,
        initial: Option<usize>,
    ) -> Result<()> {
        let Sizes { batch: b, tokens: t, householders: m, heads: h, value_heads: hv, key, value, ends } =
            *self;
        if m == 0 || h == 0 || key == 0 || value == 0 || hv == 0 || !hv.is_multiple_of(h) {
            return Err(Error::value("v", "must have a multiple of the heads of q, and no size may be 0"));
        }
        check_len("q", q, &[b, t, h, key])?;
        check_len("k", k, &[b, t, m, h, key])?;
        check_len("v", v, &[b, t, m, hv, value])?;
        check_len("beta", beta, &[b, t, m, hv])?;
        match gate {
            None => {}
            Some((g, false)) => check_len("g", g, &[b, t, hv])?,
            Some((g, true)) => check_len("g", g, &[b, t, hv, key])?,
        }
        if let Some(ends) = ends {
            let ordered = ends.first() == Some(&0)
                && ends.windows(2).all(|pair| pair[0] <= pair[1])
                && ends.last().is_some_and(|&end| usize::try_from(end) == Ok(t));
            if b != 1 || !ordered {
                return Err(Error::value("cu_seqlens", "must ascend from 0 to T, for a batch of 1"));
            }
        }
        initial.map_or(Ok(()), |initial| {
            check_len("initial_state", initial, &[self.sequences(), hv, key, value])
        })
    }
}
