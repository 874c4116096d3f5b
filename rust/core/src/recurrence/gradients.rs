//! The gradients other than those of the transition: V_bar = U_bar^T conj(X), x_bar = U_bar conj(V), sums for the
//! biases, where U_bar is the cotangent of V x + b.
//!
//! V_bar is accumulated as the real product X^T U_bar of (d, n) arrays of real and imaginary parts, which fills the
//! lanes for any d, and is combined at the end.

use super::context::{Context, Setting};
use super::packed::Packed;
use super::sequence::Sequence;
use crate::activation::Source;
use crate::error::{Error, Result};
use crate::kernels::{MAX_ROWS, Operand, Product, lanes};
use crate::parallel::{Member, Shared};
use crate::scalar::{Scalar, parts_mut};
use crate::scratch::{Arena, Region};
use crate::sizes::check_len;
use isometry_kernels::activation::{Along, Columns, units};
use isometry_kernels::recurrence::Affine;
use std::ops::Range;

/// The outputs, each fully overwritten; None for gradients not requested.
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
    /// Returns an error for sizes that do not fit the sequence.
    pub fn check(&self, sequence: &Sequence<'_, T>) -> Result<()> {
        let Sequence { steps, batch, features, n, .. } = *sequence;
        let units = sequence.activation.bias_units(n);
        let sizes = [
            ("x_bar", self.x.as_ref().map(|bar| bar.len()), &[steps, batch, features][..]),
            ("input_weight_bar", self.input_weight.as_ref().map(|bar| bar.len()), &[n, features]),
            ("h0_bar", self.h0.as_ref().map(|bar| bar.len()), &[batch, n]),
            ("bias_bar", self.bias.as_ref().map(|bar| bar.len()), &[n]),
            ("activation_bias_bar", self.activation_bias.as_ref().map(|bar| bar.len()), &[units]),
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

    pub(super) fn wants(&self) -> Wants {
        let Gradients { x, input_weight, bias, activation_bias, .. } = self;
        [x.is_some(), input_weight.is_some(), bias.is_some(), activation_bias.is_some()]
    }
}

/// The rows of a half of the batch in a chunk, contiguous.
pub struct Rows<R> {
    /// Index of the half.
    pub half: usize,
    /// Its rows of the batch.
    pub of: Range<usize>,
    /// First step.
    pub first: usize,
    /// Number of rows.
    pub rows: usize,
    /// Cotangents of V x + b.
    pub bar: *const R,
    /// Cotangents of the values of the activation.
    pub value_bar: *const R,
    /// Inputs.
    pub x: *const R,
    /// Values or arguments of the activation.
    pub y: *const R,
    /// Whether `y` holds values or arguments.
    pub from: Source,
    /// Stride between steps, in numbers; 0 if the steps are contiguous like the rows.
    pub apart: usize,
}

/// The memory of a [`Gatherer`]; empty for gradients not requested.
pub struct Gathered<T: Scalar> {
    /// conj(V), for x_bar.
    input: Packed<T>,
    /// X^T U_bar as real numbers; this and the sums exist once per half.
    products: Region<T::Real>,
    sums: Region<T::Real>,
    activation_sums: Region<T::Real>,
}

/// Which of [`Gradients`] are requested: x, input_weight, bias, activation_bias.
pub type Wants = [bool; 4];

impl<T: Scalar> Gathered<T> {
    /// With separate sums for each half.
    pub fn carve(arena: &mut Arena, setting: &Setting<'_, T>, halves: usize, wants: Wants) -> Self {
        let Sequence { features, n, .. } = setting.sequence;
        let [x, input_weight, bias, activation_bias] = wants;
        let products = arena.take(&[usize::from(input_weight), halves, features, T::PARTS, setting.width]);
        let [sums, activation_sums] =
            [bias, activation_bias].map(|wanted| arena.take(&[usize::from(wanted), halves, setting.width]));
        let input = if x { Packed::new(arena, n, features) } else { Packed::new(arena, 0, 0) };
        Gathered { input, products, sums, activation_sums }
    }
}

/// Accumulates the gradients chunk by chunk.
pub struct Gatherer<'a, T: Scalar> {
    context: &'a Context<'a, T>,
    x: Option<Shared<T>>,
    h0: Option<Shared<T>>,
    input_weight: Option<Shared<T>>,
    bias: Option<Shared<T>>,
    activation_bias: Option<(Shared<T::Real>, usize)>,
    gathered: &'a Gathered<T>,
}

impl<'a, T: Scalar> Gatherer<'a, T> {
    /// For gradients that passed [`Gradients::check`].
    ///
    /// # Safety
    /// The memory is alive, was carved for these gradients, and is not otherwise in use.
    pub unsafe fn new(
        context: &'a Context<'a, T>,
        gathered: &'a Gathered<T>,
        gradients: Gradients<'a, T>,
    ) -> Self {
        for sums in [gathered.products, gathered.sums, gathered.activation_sums] {
            // SAFETY: the sums are alive and not otherwise in use.
            unsafe { sums.zeroed() };
        }
        let share = |bar: &mut [T]| Shared(bar.as_mut_ptr());
        Gatherer {
            context,
            gathered,
            x: gradients.x.map(share),
            h0: gradients.h0.map(share),
            input_weight: gradients.input_weight.map(share),
            bias: gradients.bias.map(share),
            activation_bias: gradients.activation_bias.map(|bar| (Shared(bar.as_mut_ptr()), bar.len())),
        }
    }

    /// The gradient of h0 as real numbers.
    pub fn h0_bar(&self) -> Option<*mut T::Real> {
        self.h0.map(|bar| bar.0.cast())
    }

    /// Packs this member's part of conj(V); must be followed by a barrier.
    pub fn pack(&self, member: &Member<'_>) {
        let Sequence { features, input_weight, .. } = self.context.sequence;
        if self.x.is_some() {
            // SAFETY: V has n rows and d columns; all members pack it, and a barrier follows.
            unsafe { self.gathered.input.fill(Operand::new(input_weight.as_ptr(), features).conj(), member) }
        }
    }

    /// Adds a chunk: this member's part.
    ///
    /// # Safety
    /// The rows are complete; all members gather together, each with its own scratch for the products.
    pub unsafe fn gather(
        &self,
        rows: &Rows<T::Real>,
        steps: &Range<usize>,
        scratch: *mut T::Real,
        first: bool,
        member: &Member<'_>,
    ) {
        let Setting { width, law, sequence, .. } = self.context.setting;
        let Gathered { products, sums, activation_sums, .. } = *self.gathered;
        let d = sequence.features * T::PARTS;
        let own = |sums: Region<T::Real>| sums.at(rows.half * (sums.len() / self.context.halves));
        let (width, add) = (*width, !first);
        // SAFETY: the contract above; members write disjoint columns of the sums and disjoint rows of x_bar.
        unsafe {
            if !products.is_empty() {
                let (x, bar) = (Operand::new(rows.x, d), Operand::new(rows.bar, width));
                let product = Product::new((d, width, rows.rows), x.t(), bar, own(products), width);
                let product = if first { product } else { product.add() };
                product.run(member, scratch);
            }
            if !sums.is_empty() {
                Columns {
                    bar: rows.bar,
                    along: None,
                    rows: rows.rows,
                    width,
                    sums: own(sums),
                    add,
                    columns: member.share(width, lanes::<T::Real>()),
                }
                .call();
            }
            if !activation_sums.is_empty() {
                let each = if rows.apart == 0 { rows.rows } else { rows.of.len() };
                for i in 0..rows.rows / each.max(1) {
                    let y = rows.y.add(i * rows.apart);
                    Columns {
                        bar: rows.value_bar.add(i * each * width),
                        along: Some(Along { phi: law.phi(), y, from: rows.from }),
                        rows: each,
                        width,
                        sums: own(activation_sums),
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
    ///
    /// # Safety
    /// As [`Gatherer::gather`].
    unsafe fn inputs(
        &self,
        x_bar: *mut T::Real,
        rows: &Rows<T::Real>,
        steps: &Range<usize>,
        member: &Member<'_>,
    ) {
        let Setting { schedule, width, sequence, .. } = self.context.setting;
        let (batch, d) = (sequence.batch, sequence.features * T::PARTS);
        // SAFETY: the contract above; the products of different rows are independent.
        unsafe {
            if self.context.halves > 1 {
                for (t, before) in steps.clone().zip((0..).step_by(rows.of.len())) {
                    let mut map = Affine::new(d, usize::MAX, x_bar.add((t * batch + rows.of.start) * d));
                    map.terms[0] = self.gathered.input.times(rows.bar.add(before * width));
                    map.run(member.share(rows.of.len(), MAX_ROWS), 0..d);
                }
                return;
            }
            if schedule.full(steps) {
                let mut map = Affine::new(d, usize::MAX, x_bar.add(rows.first * batch * d));
                map.terms[0] = self.gathered.input.times(rows.bar);
                map.run(member.share(rows.rows, MAX_ROWS), 0..d);
                return;
            }
            for t in steps.clone() {
                let (active, out) = (schedule.active(t), x_bar.add(t * batch * d));
                let mut map = Affine::new(d, usize::MAX, out);
                map.terms[0] =
                    self.gathered.input.times(rows.bar.add(schedule.rows(&(steps.start..t)) * width));
                map.run(member.share(active, MAX_ROWS), 0..d);
                if member.id == 0 {
                    out.add(active * d).write_bytes(0, (batch - active) * d);
                }
            }
        }
    }

    /// Writes the accumulated gradients.
    ///
    /// # Safety
    /// Every chunk has been gathered by all members.
    pub unsafe fn finish(&self, member: &Member<'_>) {
        if member.id != 0 {
            return;
        }
        let Setting { width, law, sequence, .. } = self.context.setting;
        let Gathered { products, sums, activation_sums, .. } = *self.gathered;
        let Sequence { n, features, .. } = *sequence;
        // SAFETY: sizes were checked, the sums started from zero, and all other members have finished with them.
        unsafe {
            if self.context.halves == 2 {
                for sums in [products, sums, activation_sums] {
                    let len = sums.len() / 2;
                    for at in 0..len {
                        *sums.at(at) += *sums.at(len + at);
                    }
                }
            }
            let row = |sums: Region<T::Real>| std::slice::from_raw_parts(sums.ptr(), *width);
            if let Some(bar) = self.input_weight {
                let bar = std::slice::from_raw_parts_mut(bar.0, n * features);
                for i in 0..n {
                    for j in 0..features {
                        let part =
                            |p: usize, q: usize| *products.at((j * T::PARTS + p) * width + i * T::PARTS + q);
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
                parts_mut(std::slice::from_raw_parts_mut(bar.0, n)).copy_from_slice(row(sums));
            }
            if let Some((bar, count)) = self.activation_bias {
                let bar = std::slice::from_raw_parts_mut(bar.0, count);
                units(law.kind, row(activation_sums), bar);
            }
        }
    }
}
