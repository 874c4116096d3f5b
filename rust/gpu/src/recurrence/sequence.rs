//! The arguments of a recurrence, checked, and the operations that both directions use.

use crate::activation::RowActivation;
use crate::array::zeros;
use crate::device::{Context, Record, too_large};
use crate::product::{Base, Operand, Product};
use crate::shader::{Shader, Variant};
use crate::{Array, Field};
use isometry_core::activation::Activation;
use isometry_core::{Error, Result};
use std::sync::Arc;

/// begin.wgsl
pub(crate) static BEGIN: Shader =
    Shader { name: "begin", source: include_str!("begin.wgsl"), variants: &[&[]] };
/// start.wgsl
pub(crate) static START: Shader =
    Shader { name: "start", source: include_str!("start.wgsl"), variants: &[&[]] };
/// transpose.wgsl
pub(crate) static TRANSPOSE: Shader =
    Shader { name: "transpose", source: include_str!("transpose.wgsl"), variants: &[&[]] };
/// within.wgsl
pub(crate) static WITHIN: Shader =
    Shader { name: "within", source: include_str!("within.wgsl"), variants: &[&[]] };

/// The arguments of a recurrence, all of one field except the bias of the activation.
#[derive(Clone, Copy, Debug)]
pub struct Sequence<'a> {
    /// W (n, n)
    pub w: &'a Array,
    /// (T, B, d)
    pub x: &'a Array,
    /// V (n, d)
    pub input_weight: &'a Array,
    /// (B, n), zeros if absent
    pub h0: Option<&'a Array>,
    /// b (n)
    pub bias: Option<&'a Array>,
    /// phi
    pub activation: Activation,
    /// Of the modReLUs, real, one per feature.
    pub activation_bias: Option<&'a Array>,
    /// phi acts on V x_t + b only.
    pub on_input: bool,
    /// Steps of each sequence, in any order; all T if absent.
    pub lengths: Option<&'a [usize]>,
    /// From the end of each sequence to its beginning.
    pub reverse: bool,
}

/// A checked sequence on its device.
pub(super) struct Setting<'a> {
    pub sequence: Sequence<'a>,
    pub steps: usize,
    pub batch: usize,
    pub features: usize,
    pub n: usize,
    pub field: Field,
    pub phi: RowActivation,
    /// phi acts on the input part only, and is not the identity.
    pub on_input: bool,
    /// u32
    pub lengths: Option<Array>,
}

impl<'a> Setting<'a> {
    pub fn new(sequence: &Sequence<'a>) -> Result<Self> {
        let Sequence { w, x, input_weight, h0, bias, .. } = *sequence;
        let (&[steps, batch, features], &[_, n]) = (x.shape(), w.shape()) else {
            let got = format!("{:?} and {:?}", x.shape(), w.shape());
            return Err(Error::shape("x and w", "(T, B, d) and (n, n)", got));
        };
        if steps == 0 || batch == 0 || n == 0 {
            let got = format!("{steps} steps of {batch} sequences with {n} states");
            return Err(Error::shape("x", "at least one step, one sequence and one state", got));
        }
        let arrays = [
            ("w", Some(w), &[n, n][..]),
            ("input_weight", Some(input_weight), &[n, features]),
            ("h0", h0, &[batch, n]),
            ("bias", bias, &[n]),
        ];
        for (name, array, shape) in arrays {
            array.map_or(Ok(()), |array| checked(name, x, array, shape))?;
        }
        // rows of all arrays have 32-bit indices
        if u32::try_from(steps.saturating_mul(batch).saturating_mul(n.max(features))).is_err() {
            return Err(too_large(format!(
                "{steps} steps of {batch} sequences are too many for the indices of the device, 32 bits"
            )));
        }
        let phi =
            RowActivation::new(x.context(), x.field(), sequence.activation, n, sequence.activation_bias)?;
        let lengths = sequence.lengths.map(|lengths| sent(x.context(), lengths, steps, batch)).transpose()?;
        let on_input = sequence.on_input && !phi.is_identity();
        let field = x.field();
        Ok(Setting { sequence: *sequence, steps, batch, features, n, field, phi, on_input, lengths })
    }

    /// (T, B, n)
    pub fn shape(&self) -> [usize; 3] {
        [self.steps, self.batch, self.n]
    }

    /// All T B rows.
    pub fn rows(&self) -> usize {
        self.steps * self.batch
    }

    /// Refuses states, or their cotangents, of another size.
    pub fn check_states(&self, name: &'static str, states: &Array) -> Result<()> {
        checked(name, self.sequence.x, states, &self.shape())
    }

    /// phi of the steps.
    pub fn step_phi(&self) -> RowActivation {
        if self.on_input { self.phi.identity() } else { self.phi.clone() }
    }

    /// Whether a backward pass needs the arguments of phi.
    pub fn wants_arguments(&self) -> bool {
        self.on_input || !self.phi.readable()
    }

    /// A copy of rows (T, B, m), 0 past the ends of the sequences.
    pub fn copied(&self, record: &mut Record, x: &Array) -> Result<Array> {
        within(record, x, self.lengths.as_ref())
    }

    /// x, 0 past the ends of the sequences: values there may be NaN, and must not be multiplied by the zeros
    /// of their gradients.
    pub fn inputs(&self, record: &mut Record) -> Result<Array> {
        let x = self.sequence.x;
        if self.lengths.is_some() { self.copied(record, x) } else { Ok(x.clone()) }
    }

    /// V x_t + b for all steps.
    pub fn drive(&self, record: &mut Record, x: &Array) -> Result<Array> {
        let out = Array::room(record.context(), self.field, &self.shape())?;
        let (Sequence { input_weight, bias, .. }, d) = (self.sequence, self.features);
        let base = bias.map_or(Base::Nothing, |bias| Base::Array(Operand::row(bias)));
        let (x, v) = (Operand::new(x, 0, d), Operand::new(input_weight, 0, d).t());
        let product = Product::new(1, (self.rows(), self.n, d), x, v, Operand::new(&out, 0, self.n));
        product.plus(base).record(record, self.field)?;
        Ok(out)
    }

    /// z of all steps from the states, which are 0 past the ends of sequences: V x_t + b, and W h_{t-1} with it unless phi acts on the
    /// input part only. Unspecified past the ends.
    pub fn arguments(&self, record: &mut Record, x: &Array, states: &Array) -> Result<Array> {
        let z = self.drive(record, x)?;
        if self.on_input {
            return Ok(z);
        }
        let Setting { steps, batch, n, field, .. } = *self;
        let Sequence { w, h0, reverse, .. } = self.sequence;
        let (w, all) = (Operand::new(w, 0, n).t(), Operand::new(&z, 0, n));
        let (now, before) = if reverse { (0, batch) } else { (batch, 0) };
        let states = Operand::new(states, 0, n).from(before, 0);
        Product::new(1, (self.rows() - batch, n, n), states, w, all.from(now, 0))
            .add()
            .record(record, field)?;
        let Some(h0) = h0.map(|h0| Operand::new(h0, 0, n)) else { return Ok(z) };
        match (&self.lengths, reverse) {
            (Some(lengths), true) => {
                let first = Array::room(record.context(), field, &[batch, n])?;
                Product::new(1, (batch, n, n), h0, w, Operand::new(&first, 0, n)).record(record, field)?;
                let arrays = [("first", &first), ("lengths", lengths), ("x", &z)];
                let variant = Variant { shader: &START, field, constants: &[] };
                record.elements(variant, &arrays, &[first.len() as u32, n as u32], first.len())?;
            }
            (_, reverse) => {
                let first = if reverse { (steps - 1) * batch } else { 0 };
                Product::new(1, (batch, n, n), h0, w, all.from(first, 0)).add().record(record, field)?;
            }
        }
        Ok(z)
    }

    /// W^T
    pub fn transposed(&self, record: &mut Record) -> Result<Array> {
        let (w, n) = (self.sequence.w, self.n);
        let out = Array::room(record.context(), self.field, &[n, n])?;
        let variant = Variant { shader: &TRANSPOSE, field: self.field, constants: &[] };
        record.elements(variant, &[("x", w), ("out", &out)], &[n as u32], n * n)?;
        Ok(out)
    }

    /// The rows of x (T, B, n) at which the sequences begin: an array and its first row.
    pub fn begin(&self, record: &mut Record, x: &Array) -> Result<(Array, usize)> {
        match (&self.lengths, self.sequence.reverse) {
            (_, false) => Ok((x.clone(), 0)),
            (None, true) => Ok((x.clone(), (self.steps - 1) * self.batch)),
            (Some(lengths), true) => {
                let (batch, n) = (self.batch, self.n);
                let out = Array::room(record.context(), self.field, &[batch, n])?;
                let arrays = [("x", x), ("lengths", lengths), ("out", &out)];
                let variant = Variant { shader: &BEGIN, field: self.field, constants: &[] };
                record.elements(variant, &arrays, &[(batch * n) as u32, n as u32], batch * n)?;
                Ok((out, 0))
            }
        }
    }
}

/// A copy of rows (T, B, m), 0 past the ends of sequences of these lengths.
pub(crate) fn within(record: &mut Record, x: &Array, lengths: Option<&Array>) -> Result<Array> {
    let out = Array::room(record.context(), x.field(), x.shape())?;
    let [batch, n] = [1, 2].map(|axis| x.shape().get(axis).copied().unwrap_or(1) as u32);
    let sizes = [x.len() as u32, batch, n, u32::from(lengths.is_some())];
    let arrays = [("x", x), ("lengths", lengths.unwrap_or(x)), ("out", &out)];
    record.elements(
        Variant { shader: &WITHIN, field: x.field(), constants: &[] },
        &arrays,
        &sizes,
        x.len(),
    )?;
    Ok(out)
}

/// Refuses an array of another shape, field or device.
pub(crate) fn checked(name: &'static str, like: &Array, array: &Array, shape: &[usize]) -> Result<()> {
    like.fits(name, array)?;
    if array.shape() == shape {
        return Ok(());
    }
    Err(Error::shape(name, format!("{shape:?}"), format!("{:?}", array.shape())))
}

/// Lengths on the device.
pub(crate) fn sent(context: &Arc<Context>, lengths: &[usize], steps: usize, batch: usize) -> Result<Array> {
    if lengths.len() != batch {
        return Err(Error::shape("lengths", format!("{batch} elements"), lengths.len()));
    }
    if let Some(&wrong) = lengths.iter().find(|&&length| length > steps) {
        return Err(Error::value("lengths", format!("must be at most {steps}, got {wrong}")));
    }
    let mut bits = zeros::<f32>(batch)?;
    for (bits, &length) in bits.iter_mut().zip(lengths) {
        *bits = f32::from_bits(length as u32);
    }
    Array::upload(context, Field::Real, &[batch], &bits)
}
