//! The memory of a GRU's backward pass.

use super::super::chunk::chunk_rows;
use super::super::inputs::Gathered;
use super::super::modrelu::BiasGatherer;
use super::super::timeline::{Copies, rows_apart};
use super::gradients::Wants;
use super::own::Own;
use super::{Reset, Setting};
use crate::kernels::Product;
use crate::parallel::Shared;
use crate::scalar::Real;
use crate::scratch::{Arena, Region};
use crate::transition::Packed;

/// The arrays of a chunk, row after row.
pub struct Work<R> {
    /// The cotangents of the arguments of z, r and c, and for "after" of W_h h + c_h.
    pub bars: Region<R>,
    /// r * h, for "before".
    pub reset: Region<R>,
    /// c or its argument, and the cotangents of c, for the gradient of modReLU's bias.
    pub value: Region<R>,
    pub value_bar: Region<R>,
    pub copies: Copies<R>,
}

/// The memory of a backward pass.
pub(super) struct Places<'a, R: Real> {
    /// W_zr
    pub w: Packed<R>,
    /// W_h
    pub own: Own<'a, R>,
    pub gathered: Gathered<R>,
    /// W_zr_bar of the second half, and the sums of c_h of each.
    pub second: Region<R>,
    pub sums: Region<R>,
    pub own_bias: Region<R>,
    pub chunks: [Work<R>; 2],
    /// Rows of one step: the cotangent of h, its direct part for the step before, c', W_h^T c', and c where
    /// its argument was saved.
    pub g: Region<R>,
    pub carry: Region<R>,
    pub c_bar: Region<R>,
    pub turned: Region<R>,
    pub c: Region<R>,
}

impl<'a, R: Real> Places<'a, R> {
    /// For gradients of which that of W_h goes to `own_bar`.
    pub fn carve(
        arena: &mut Arena,
        setting: &Setting<'a, R>,
        (own_bar, halves): (Option<Shared<R>>, usize),
        wants: &Wants,
    ) -> Self {
        let Setting { gru, line, phi, .. } = setting;
        let (n, rows) = (gru.n, chunk_rows(&line.schedule));
        let before = gru.reset == Reset::Before;
        let work = |arena: &mut Arena| {
            let mut array = |wanted: bool, width: usize| rows_apart(arena, wanted, rows, width);
            Work {
                bars: array(true, gru.pitch()),
                reset: array(before && own_bar.is_some(), n),
                value: array(wants.activation_bias, n),
                value_bar: array(wants.activation_bias, n),
                copies: Copies::carve(arena, line, halves, false),
            }
        };
        let second = usize::from(wants.w && halves == 2);
        let mut step = |wanted: bool| arena.take(&[usize::from(wanted), gru.batch, n]);
        let [g, carry, c_bar] = [(); 3].map(|()| step(true));
        let (turned, c) = (step(before), step(!phi.readable()));
        Places {
            g,
            carry,
            c_bar,
            turned,
            c,
            w: Packed::new(arena, 2 * n, n),
            own: Own::backward(arena, setting, (own_bar, halves)),
            gathered: Gathered::carve(arena, line, 3 * n, halves, wants.inputs),
            second: arena.take(&[second, 2, n, n]),
            sums: arena.take(&[usize::from(wants.hidden_bias), halves, n]),
            own_bias: BiasGatherer::<R>::carve(arena, phi, halves, wants.activation_bias),
            chunks: [work(arena), work(arena)],
        }
    }

    /// Real numbers of scratch that a member needs.
    pub fn scratch(&self, setting: &Setting<'_, R>) -> usize {
        let rows = chunk_rows(&setting.line.schedule);
        let of_w = Product::<R>::scratch(2 * setting.gru.n, rows).max(self.own.step().scratch(rows));
        of_w.max(Gathered::<R>::scratch(&setting.line, rows))
    }

    /// Multiply-adds of a step per row.
    pub fn work(&self, setting: &Setting<'_, R>) -> usize {
        setting.gru.work()[0].saturating_add(self.own.step().work())
    }
}
