//! The recurrence on the caller's arrays.

use super::{Copies, Hosted, fetch, single, single_mut};
use crate::array::zeros;
use crate::recurrence::{self as device, Wanted};
use crate::{Array, Field};
use isometry_core::argument::Bar;
use isometry_core::error::Result;
use isometry_core::recurrence::{Gradients, Run, Sequence};
use isometry_core::scalar::{Scalar, parts, parts_mut};
use isometry_core::{Budget, Error};
use isometry_core::{Operator, Saves};

/// The arrays of a sequence on the device.
struct Sent {
    w: Array,
    x: Array,
    input_weight: Array,
    h0: Option<Array>,
    bias: Option<Array>,
    activation_bias: Option<Array>,
}

impl<T: Scalar> Hosted<'_, T> {
    fn sequence(&self, sequence: &Sequence<'_, T>, budget: &Budget<'_>) -> Result<Sent> {
        sequence.check()?;
        let Run { steps, batch, features, n, x, h0, activation_bias, .. } = sequence.run;
        let send =
            |x: &[T], shape: &[usize]| Array::upload(self.context()?, self.field, shape, single(parts(x))?);
        let real = |x: &[T::Real]| Array::upload(self.context()?, Field::Real, &[x.len()], single(x)?);
        if self.operator.batch() != 1 || self.shape() != (n, n) {
            return Err(Error::shape(
                "transition",
                format!("one operator of shape ({n}, {n})"),
                format!("{:?}", self.shape()),
            ));
        }
        Ok(Sent {
            w: self.device_matrix(budget)?.reshaped(&[n, n])?,
            x: send(x, &[steps, batch, features])?,
            input_weight: send(sequence.input_weight, &[n, features])?,
            h0: h0.map(|h0| send(h0, &[batch, n])).transpose()?,
            bias: sequence.bias.map(|bias| send(bias, &[n])).transpose()?,
            activation_bias: activation_bias.map(real).transpose()?,
        })
    }

    /// The states, (T, B, n).
    pub fn forward(&self, sequence: &Sequence<'_, T>, states: &mut [T], budget: &Budget<'_>) -> Result<()> {
        let sent = self.sequence(sequence, budget)?;
        fetch(&device::forward(&sent.view(sequence))?, states, budget)
    }

    /// The gradients from the states and their cotangents.
    pub fn backward(
        &self,
        bars: &mut [Bar<'_, T>],
        sequence: &Sequence<'_, T>,
        states: &[T],
        ct: &[T],
        gradients: Gradients<'_, T>,
        budget: &Budget<'_>,
    ) -> Result<()> {
        self.check_bars(bars)?;
        let sent = self.sequence(sequence, budget)?;
        let shape = sequence.run.sizes();
        let send = |x: &[T]| Array::upload(self.context()?, self.field, &shape, single(parts(x))?);
        let (ct, states) = (send(ct)?, send(states)?);
        let Gradients { x, input_weight, h0, bias, activation_bias, .. } = gradients;
        let wanted = Wanted {
            w: bars.iter().any(|bar| !matches!(bar, Bar::None)),
            x: x.is_some(),
            input_weight: input_weight.is_some(),
            h0: h0.is_some(),
            bias: bias.is_some(),
            activation_bias: activation_bias.is_some(),
        };
        let found = device::backward(&sent.view(sequence), &states, &ct, wanted)?;
        if let Some(w_bar) = &found.w {
            self.context()?.settled(budget.cancel)?;
            self.pull_device_matrix(&sent.w, w_bar, bars, budget)?;
        }
        let mut copies = Copies::new();
        let own = [(&found.x, x), (&found.input_weight, input_weight), (&found.h0, h0), (&found.bias, bias)];
        for (found, to) in own {
            if let (Some(found), Some(to)) = (found, to) {
                copies.push((found, single_mut(parts_mut(to))?));
            }
        }
        if let (Some(found), Some(to)) = (&found.activation_bias, activation_bias) {
            copies.push((found, single_mut(to)?));
        }
        Array::download_all(&mut copies, budget.cancel)
    }

    /// W on the device.
    fn device_matrix(&self, budget: &Budget<'_>) -> Result<Array> {
        if self.has_kernels()? {
            return self.on_device(|operator| operator.matrix());
        }
        self.matrices(&self.formed(budget)?)
    }

    /// The gradients of the arguments from that of W, which is on the device.
    fn pull_device_matrix(
        &self,
        w: &Array,
        w_bar: &Array,
        bars: &mut [Bar<'_, T>],
        budget: &Budget<'_>,
    ) -> Result<()> {
        let (p, q) = self.shape();
        if self.has_kernels()? {
            let (w, w_bar) = (w.reshaped(&[1, p, q])?, w_bar.reshaped(&[1, p, q])?);
            let wanted = super::wanted(bars);
            let found = self.on_device(|operator| operator.matrix_vjp(Some(&w), &w_bar, &wanted))?;
            let mut copies = Copies::new();
            super::collect(&found, bars, &mut copies)?;
            return Array::download_all(&mut copies, budget.cancel);
        }
        let mut host = zeros::<T>(p * q)?;
        fetch(w_bar, &mut host, budget)?;
        let saved = match self.operator.matrix_saves()? {
            Saves::Result => Some(self.formed(budget)?),
            Saves::Elements(_) => None,
        };
        self.operator.matrix_vjp(saved.as_deref(), &host, bars, budget)
    }
}

impl Sent {
    fn view<'a, T: Scalar>(&'a self, sequence: &Sequence<'a, T>) -> device::Sequence<'a> {
        device::Sequence {
            w: &self.w,
            x: &self.x,
            input_weight: &self.input_weight,
            h0: self.h0.as_ref(),
            bias: self.bias.as_ref(),
            activation: sequence.run.activation,
            activation_bias: self.activation_bias.as_ref(),
            on_input: sequence.on_input,
            lengths: sequence.run.lengths,
            reverse: sequence.run.reverse,
        }
    }
}
