//! The gradients that do not concern the transition: V_bar = U_bar^T conj(X), x_bar = U_bar conj(V), sums for the biases,
//! where U_bar is the cotangent of V x + b.
//!
//! V_bar is gathered as the real product X^T U_bar of (d, n) arrays of parts, whose lanes are full for any d, and
//! combined into V_bar at the end.

use super::context::Context;
use super::packed::Packed;
use super::sequence::Sequence;
use crate::activation::Source;
use crate::error::{Error, Result, check_len};
use crate::kernels::{Buffer, MAX_ROWS, Operand, Product, lanes};
use crate::parallel::{Member, Shared};
use crate::scalar::{Scalar, parts_mut};
use isometry_kernels::activation::{Along, Columns, units};
use isometry_kernels::recurrence::Affine;
use std::ops::Range;

/// Where the gradients go, each fully overwritten; None where one is not wanted.
#[derive(Default)]
pub struct Gradients<'a, T: Scalar> {
    /// (T, B, d)
    pub x: Option<&'a mut [T]>,
    /// (n, d)
    pub input_weight: Option<&'a mut [T]>,
    /// (B, n)
    pub h0: Option<&'a mut [T]>,
    /// (n)
    pub bias: Option<&'a mut [T]>,
    /// One per feature of modReLU.
    pub activation_bias: Option<&'a mut [T::Real]>,
}

impl<T: Scalar> Gradients<'_, T> {
    /// Refuses sizes that do not fit the sequence.
    pub fn check(&self, sequence: &Sequence<'_, T>) -> Result<()> {
        let Sequence { steps, batch, features, n, .. } = *sequence;
        let units = sequence.activation.bias_units(n);
        let sizes = [
            ("x_bar", self.x.as_ref().map(|bar| bar.len()), steps * batch * features),
            ("input_weight_bar", self.input_weight.as_ref().map(|bar| bar.len()), n * features),
            ("h0_bar", self.h0.as_ref().map(|bar| bar.len()), batch * n),
            ("bias_bar", self.bias.as_ref().map(|bar| bar.len()), n),
            ("activation_bias_bar", self.activation_bias.as_ref().map(|bar| bar.len()), units),
        ];
        for (name, got, expected) in sizes {
            if let Some(got) = got {
                check_len(name, got, expected)?;
            }
        }
        if self.activation_bias.is_some() && units == 0 {
            return Err(Error::value("activation_bias_bar", "belongs to modrelu and modrelu_realrep only"));
        }
        Ok(())
    }
}

/// The rows of a half of the batch in a chunk, one after the other.
pub struct Rows<R> {
    /// Which half.
    pub half: usize,
    /// Its rows of the batch.
    pub of: Range<usize>,
    /// First step.
    pub first: usize,
    /// How many rows.
    pub rows: usize,
    /// Cotangents of V x + b.
    pub bar: *const R,
    /// Cotangents of the values of the activation.
    pub value_bar: *const R,
    /// Inputs.
    pub x: *const R,
    /// Values or arguments of the activation.
    pub y: *const R,
    /// Which of both.
    pub from: Source,
    /// Numbers from those of one step to those of the next; 0 where they stand one after the other like the rows.
    pub apart: usize,
}

/// Gathers chunk after chunk.
pub struct Gatherer<'a, T: Scalar> {
    context: &'a Context<'a, T>,
    x: Option<Shared<T>>,
    h0: Option<Shared<T>>,
    input_weight: Option<Shared<T>>,
    bias: Option<Shared<T>>,
    activation_bias: Option<(Shared<T::Real>, usize)>,
    /// conj(V), for x_bar.
    input: Packed<T>,
    /// X^T U_bar as real numbers; this and the sums of each half.
    gathered: Buffer<T::Real>,
    sums: Buffer<T::Real>,
    activation_sums: Buffer<T::Real>,
}

impl<'a, T: Scalar> Gatherer<'a, T> {
    /// For gradients that have passed their check.
    pub fn new(context: &'a Context<'a, T>, gradients: Gradients<'a, T>) -> Self {
        let share = |bar: &mut [T]| Shared(bar.as_mut_ptr());
        let Sequence { features, n, .. } = context.sequence;
        let zeroed = |wanted: bool, len: usize| Buffer::zeroed(if wanted { context.halves * len } else { 0 });
        Gatherer {
            context,
            input: if gradients.x.is_some() { Packed::new(n, features) } else { Packed::new(0, 0) },
            gathered: zeroed(gradients.input_weight.is_some(), features * T::PARTS * context.width),
            sums: zeroed(gradients.bias.is_some(), context.width),
            activation_sums: zeroed(gradients.activation_bias.is_some(), context.width),
            x: gradients.x.map(share),
            h0: gradients.h0.map(share),
            input_weight: gradients.input_weight.map(share),
            bias: gradients.bias.map(share),
            activation_bias: gradients.activation_bias.map(|bar| (Shared(bar.as_mut_ptr()), bar.len())),
        }
    }

    /// Whether [`Rows::y`] will be read.
    pub fn wants_states(&self) -> bool {
        self.activation_bias.is_some()
    }

    /// The gradient of h0 as real numbers.
    pub fn h0_bar(&self) -> Option<*mut T::Real> {
        self.h0.map(|bar| bar.0.cast())
    }

    /// Real numbers of scratch that a member needs for chunks of up to `rows` rows.
    pub fn scratch(&self, rows: usize) -> usize {
        Product::<T::Real>::scratch(self.context.sequence.features * T::PARTS, rows)
    }

    /// Packs this member's part of conj(V); a barrier has to follow.
    pub fn pack(&self, member: &Member<'_>) {
        let Sequence { features, input_weight, .. } = self.context.sequence;
        if self.x.is_some() {
            // SAFETY: V has n rows and d columns.
            unsafe { self.input.fill(Operand::new(input_weight.as_ptr(), features).conj(), member) }
        }
    }

    /// Adds a chunk: this member's part.
    ///
    /// # Safety
    /// The rows are complete; all members gather together.
    pub unsafe fn gather(
        &self,
        rows: &Rows<T::Real>,
        steps: &Range<usize>,
        scratch: *mut T::Real,
        first: bool,
        member: &Member<'_>,
    ) {
        let Context { width, law, sequence, .. } = self.context;
        let d = sequence.features * T::PARTS;
        let own =
            |sums: &Buffer<T::Real>| sums.ptr().wrapping_add(rows.half * sums.len() / self.context.halves);
        let (width, add) = (*width, !first);
        // SAFETY: passed on from the caller.
        unsafe {
            if !self.gathered.is_empty() {
                let (x, bar) = (Operand::new(rows.x, d), Operand::new(rows.bar, width));
                let product = Product::new((d, width, rows.rows), x.t(), bar, own(&self.gathered), width);
                let product = if first { product } else { product.add() };
                product.run(member, scratch);
            }
            if !self.sums.is_empty() {
                Columns {
                    bar: rows.bar,
                    along: None,
                    rows: rows.rows,
                    width,
                    sums: own(&self.sums),
                    add,
                    columns: member.share(width, lanes::<T::Real>()),
                }
                .call();
            }
            if !self.activation_sums.is_empty() {
                let each = if rows.apart == 0 { rows.rows } else { rows.of.len() };
                for i in 0..rows.rows / each.max(1) {
                    let y = rows.y.add(i * rows.apart);
                    Columns {
                        bar: rows.value_bar.add(i * each * width),
                        along: Some(Along { phi: law.phi(), y, from: rows.from }),
                        rows: each,
                        width,
                        sums: own(&self.activation_sums),
                        add: add || i > 0,
                        columns: law.bias_columns(member),
                    }
                    .call();
                }
            }
            if let Some(x_bar) = self.x {
                self.inputs(x_bar.0.cast(), rows, steps, member);
            }
        }
    }

    /// x_bar = U_bar conj(V) for this member's rows of the chunk.
    unsafe fn inputs(
        &self,
        x_bar: *mut T::Real,
        rows: &Rows<T::Real>,
        steps: &Range<usize>,
        member: &Member<'_>,
    ) {
        let Context { schedule, width, sequence, .. } = self.context;
        let (batch, d) = (sequence.batch, sequence.features * T::PARTS);
        // SAFETY: passed on from the caller; the products of rows are independent of each other.
        unsafe {
            if self.context.halves > 1 {
                for (t, before) in steps.clone().zip((0..).step_by(rows.of.len())) {
                    let mut map = Affine::new(d, usize::MAX, x_bar.add((t * batch + rows.of.start) * d));
                    map.terms[0] = self.input.times(rows.bar.add(before * width));
                    map.run(member.share(rows.of.len(), MAX_ROWS), 0..d);
                }
                return;
            }
            if schedule.full(steps) {
                let mut map = Affine::new(d, usize::MAX, x_bar.add(rows.first * batch * d));
                map.terms[0] = self.input.times(rows.bar);
                map.run(member.share(rows.rows, MAX_ROWS), 0..d);
                return;
            }
            for t in steps.clone() {
                let (active, out) = (schedule.active(t), x_bar.add(t * batch * d));
                let mut map = Affine::new(d, usize::MAX, out);
                map.terms[0] = self.input.times(rows.bar.add(schedule.rows(&(steps.start..t)) * width));
                map.run(member.share(active, MAX_ROWS), 0..d);
                if member.id == 0 {
                    out.add(active * d).write_bytes(0, (batch - active) * d);
                }
            }
        }
    }

    /// Writes what was gathered.
    ///
    /// # Safety
    /// Every chunk has been gathered by all members.
    pub unsafe fn finish(&self, member: &Member<'_>) {
        if member.id != 0 {
            return;
        }
        let Context { width, law, sequence, halves, .. } = self.context;
        let Sequence { n, features, .. } = *sequence;
        if *halves == 2 {
            for sums in [&self.gathered, &self.sums, &self.activation_sums] {
                let len = sums.len() / 2;
                for at in 0..len {
                    // SAFETY: the other members write nothing any more.
                    unsafe { *sums.ptr().add(at) += sums[len + at] };
                }
            }
        }
        // SAFETY: the sizes were checked; the other members write nothing any more.
        unsafe {
            if let Some(bar) = self.input_weight {
                let bar = std::slice::from_raw_parts_mut(bar.0, n * features);
                for i in 0..n {
                    for j in 0..features {
                        let part =
                            |p: usize, q: usize| self.gathered[(j * T::PARTS + p) * width + i * T::PARTS + q];
                        // conj(x) u = (x_re u_re + x_im u_im) + i (x_re u_im - x_im u_re)
                        bar[i * features + j] = if T::PARTS == 1 {
                            T::real(part(0, 0))
                        } else {
                            T::new(part(0, 0) + part(1, 1), part(0, 1) - part(1, 0))
                        };
                    }
                }
            }
            if let Some(bar) = self.bias {
                parts_mut(std::slice::from_raw_parts_mut(bar.0, n)).copy_from_slice(&self.sums[..*width]);
            }
            if let Some((bar, count)) = self.activation_bias {
                units(
                    law.kind,
                    &self.activation_sums[..*width],
                    std::slice::from_raw_parts_mut(bar.0, count),
                );
            }
        }
    }
}
