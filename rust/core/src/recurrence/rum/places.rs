//! The memory of a rotational unit's backward pass.

use super::super::chunk::chunk_rows;
use super::super::inputs::Gathered;
use super::super::modrelu::BiasGatherer;
use super::super::timeline::{Copies, rows_apart};
use super::Setting;
use super::gradients::Wants;
use crate::kernels::Product;
use crate::scalar::Real;
use crate::scratch::{Arena, Region};
use crate::transition::Packed;
use isometry_kernels::recurrence::heard_len;

/// The arrays of a chunk, row after row.
pub struct Work<R> {
    /// The cotangents of the argument of u, of tau, and of e.
    pub bars: Region<R>,
    /// k or its argument, and the cotangents of k, for the gradient of modReLU's bias.
    pub value: Region<R>,
    pub value_bar: Region<R>,
    pub copies: Copies<R>,
}

/// The memory of a backward pass.
pub(super) struct Places<R: Real> {
    /// W
    pub w: Packed<R>,
    pub gathered: Gathered<R>,
    /// W_bar of the second half.
    pub second: Region<R>,
    pub own_bias: Region<R>,
    pub chunks: [Work<R>; 2],
    /// Rows of one step: the cotangent of h, its direct part for the step before, k', k where its argument
    /// was saved, and h' where it was normalised.
    pub g: Region<R>,
    pub carry: Region<R>,
    pub k_bar: Region<R>,
    pub k: Region<R>,
    pub blended: Region<R>,
    /// R (B, n, n), and its cotangent where the caller has no array for it.
    pub memory: Region<R>,
    pub memory_bar: Region<R>,
}

impl<R: Real> Places<R> {
    pub fn carve(arena: &mut Arena, setting: &Setting<'_, R>, halves: usize, wants: &Wants) -> Self {
        let Setting { rum, line, phi, .. } = setting;
        let (n, rows) = (rum.n, chunk_rows(&line.schedule));
        let work = |arena: &mut Arena| {
            let mut array = |wanted: bool, width: usize| rows_apart(arena, wanted, rows, width);
            Work {
                bars: array(true, rum.pitch()),
                value: array(wants.activation_bias, n),
                value_bar: array(wants.activation_bias, n),
                copies: Copies::carve(arena, line, halves, false),
            }
        };
        let mut step = |wanted: bool| arena.take(&[usize::from(wanted), rum.batch, n]);
        let [g, carry, k_bar] = [(); 3].map(|()| step(true));
        let (k, blended) = (step(!phi.readable()), step(rum.eta.is_some()));
        let mut matrices = |wanted: bool| arena.take(&[usize::from(wanted), rum.batch, n, n]);
        let (memory, memory_bar) = (matrices(rum.memory), matrices(rum.memory && !wants.r0));
        Places {
            g,
            carry,
            k_bar,
            k,
            blended,
            memory,
            memory_bar,
            w: Packed::new(arena, 2 * n, n),
            gathered: Gathered::carve(arena, line, 3 * n, halves, wants.inputs),
            second: arena.take(&[usize::from(wants.w && halves == 2), 2, n, n]),
            own_bias: BiasGatherer::<R>::carve(arena, phi, halves, wants.activation_bias),
            chunks: [work(arena), work(arena)],
        }
    }

    /// Real numbers of scratch that a member needs.
    pub fn scratch(&self, setting: &Setting<'_, R>) -> usize {
        let (n, rows) = (setting.rum.n, chunk_rows(&setting.line.schedule));
        let products = Product::<R>::scratch(2 * n, rows).max(Gathered::<R>::scratch(&setting.line, rows));
        products.max(heard_len(n))
    }
}
