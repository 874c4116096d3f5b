//! The gradients of a recurrence: the steps turn a copy of the cotangents into z_bar, then products over all rows give the gradients.

use super::sequence::{Sequence, Setting};
use super::steps::{Route, Steps, route};
use crate::Array;
use crate::device::Record;
use crate::operator::submitted;
use crate::product::{Operand, Product};
use crate::rows::sum;
use isometry_core::Result;

/// Which gradients are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Of W.
    pub w: bool,
    /// Of x.
    pub x: bool,
    /// Of V.
    pub input_weight: bool,
    /// Of h0, also if it was absent.
    pub h0: bool,
    /// Of b, also if it was absent.
    pub bias: bool,
    /// Of the bias of the activation.
    pub activation_bias: bool,
}

/// The gradients, None where one was not wanted.
#[derive(Clone, Debug, Default)]
pub struct Gradients {
    /// (n, n)
    pub w: Option<Array>,
    /// (T, B, d)
    pub x: Option<Array>,
    /// (n, d)
    pub input_weight: Option<Array>,
    /// (B, n)
    pub h0: Option<Array>,
    /// (n)
    pub bias: Option<Array>,
    /// Real, one per bias.
    pub activation_bias: Option<Array>,
}

/// The gradients from the states, zeros past the ends of sequences, and their cotangents, (T, B, n), ignored there.
pub fn backward(sequence: &Sequence<'_>, states: &Array, ct: &Array, wanted: Wanted) -> Result<Gradients> {
    submitted(sequence.x.context(), |record| record_backward(record, sequence, states, ct, wanted))
}

/// The same in a call that is being recorded.
pub(crate) fn record_backward(
    record: &mut Record,
    sequence: &Sequence<'_>,
    states: &Array,
    ct: &Array,
    wanted: Wanted,
) -> Result<Gradients> {
    let setting = Setting::new(sequence)?;
    pull(record, &setting, states, ct, wanted, route(setting.field, setting.batch, setting.n))
}

pub(super) fn pull(
    record: &mut Record,
    setting: &Setting<'_>,
    states: &Array,
    ct: &Array,
    wanted: Wanted,
    route: Route,
) -> Result<Gradients> {
    setting.check_states("states", states)?;
    setting.check_states("ct", ct)?;
    setting.phi.check_wanted(wanted.activation_bias)?;
    let x = setting.inputs(record)?;
    let arguments = match setting.wants_arguments() {
        true => Some(setting.arguments(record, &x, states)?),
        false => None,
    };
    let bars = Bars::new(record, setting, states, arguments.as_ref(), ct, wanted, route)?;
    bars.gradients(record, setting, states, &x, wanted)
}

/// Cotangents of all steps, (T, B, n).
struct Bars {
    /// Of W h_{t-1}.
    state: Array,
    /// Of V x_t + b.
    input: Array,
    /// The summands of the gradient of the bias of the activation.
    along: Option<Array>,
}

impl Bars {
    fn new(
        record: &mut Record,
        setting: &Setting<'_>,
        states: &Array,
        arguments: Option<&Array>,
        ct: &Array,
        wanted: Wanted,
        route: Route,
    ) -> Result<Self> {
        let state = setting.copied(record, ct)?;
        let along = match wanted.activation_bias {
            true => Some(setting.phi.along(record, setting.rows())?),
            false => None,
        };
        let steps = Steps {
            back: true,
            reverse: setting.sequence.reverse,
            phi: &setting.step_phi(),
            m: setting.sequence.w,
            start: None,
            lengths: setting.lengths.as_ref(),
            y: Some(match arguments {
                Some(arguments) if !setting.on_input => arguments,
                _ => states,
            }),
            rows: &state,
            along: along.as_ref().filter(|_| !setting.on_input),
        };
        steps.record(record, route)?;
        let mut input = state.clone();
        if let Some(z) = arguments.filter(|_| setting.on_input) {
            input = Array::room(record.context(), setting.field, &setting.shape())?;
            setting.phi.pull(record, z, &state, &input, along.as_ref())?;
        }
        Ok(Bars { state, input, along })
    }

    fn gradients(
        &self,
        record: &mut Record,
        setting: &Setting<'_>,
        states: &Array,
        x: &Array,
        wanted: Wanted,
    ) -> Result<Gradients> {
        let Setting { n, features: d, batch, field, .. } = *setting;
        let Sequence { w, input_weight, h0, reverse, .. } = setting.sequence;
        let mut out = Gradients::default();
        let begun = (wanted.w && h0.is_some()) || wanted.h0;
        let begin = if begun { Some(setting.begin(record, &self.state)?) } else { None };
        if wanted.w {
            let bar = Array::room(record.context(), field, &[n, n])?;
            let (now, before) = if reverse { (0, batch) } else { (batch, 0) };
            let left = Operand::new(&self.state, 0, n).from(now, 0).t();
            let right = Operand::new(states, 0, n).from(before, 0).conj();
            Product::new(1, (n, n, setting.rows() - batch), left, right, Operand::new(&bar, 0, n))
                .record_deep(record, field)?;
            if let (Some(h0), Some((begin, row))) = (h0, &begin) {
                let left = Operand::new(begin, 0, n).from(*row, 0).t();
                let (right, into) = (Operand::new(h0, 0, n).conj(), Operand::new(&bar, 0, n));
                Product::new(1, (n, n, batch), left, right, into).add().record_deep(record, field)?;
            }
            out.w = Some(bar);
        }
        if let (true, Some((begin, row))) = (wanted.h0, &begin) {
            let bar = Array::room(record.context(), field, &[batch, n])?;
            let (right, into) = (Operand::new(w, 0, n).conj(), Operand::new(&bar, 0, n));
            let left = Operand::new(begin, 0, n).from(*row, 0);
            Product::new(1, (batch, n, n), left, right, into).record(record, field)?;
            out.h0 = Some(bar);
        }
        if wanted.x {
            let bar = Array::room(record.context(), field, x.shape())?;
            let (bars, v) = (Operand::new(&self.input, 0, n), Operand::new(input_weight, 0, d).conj());
            Product::new(1, (setting.rows(), d, n), bars, v, Operand::new(&bar, 0, d))
                .record(record, field)?;
            out.x = Some(bar);
        }
        if wanted.input_weight {
            let bar = Array::room(record.context(), field, &[n, d])?;
            let (left, right) = (Operand::new(&self.input, 0, n).t(), Operand::new(x, 0, d).conj());
            Product::new(1, (n, d, setting.rows()), left, right, Operand::new(&bar, 0, d))
                .record_deep(record, field)?;
            out.input_weight = Some(bar);
        }
        if wanted.bias {
            let bar = Array::room(record.context(), field, &[n])?;
            sum(record, (setting.rows(), n), &self.input, &bar)?;
            out.bias = Some(bar);
        }
        if let Some(along) = &self.along {
            out.activation_bias = Some(setting.phi.bias_bar(record, along)?);
        }
        Ok(out)
    }
}
