//! Layers of a recurrence over one another, each in one or two directions, without gradients: what `torch.nn.RNN`, `GRU` and
//! `LSTM` compute, from torch's list of weights.

use super::affine::{Affine, Sequence};
use super::driver::ends::Written;
use super::gru::{Gru, Reset};
use super::lstm::Lstm;
use super::time::timeline::Run;
use super::unit::Unit;
use crate::activation::Activation;
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::kernels::{Buffer, collected};
use crate::operators::dense::Dense;
use crate::scalar::Real;
use crate::sizes::{check_len, work};

/// A recurrent layer of torch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Layer {
    /// h_t = phi(W h_{t-1} + U x_t + b)
    Rnn(Activation),
    /// With the reset after the product; gates in the order r, z, h.
    Gru,
    /// A state is h and c.
    Lstm,
}

impl Layer {
    /// That of torch's operator `lstm`, `gru`, `rnn_tanh` or `rnn_relu`.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "rnn_tanh" => Some(Layer::Rnn(Activation::Tanh)),
            "rnn_relu" => Some(Layer::Rnn(Activation::Relu)),
            "gru" => Some(Layer::Gru),
            "lstm" => Some(Layer::Lstm),
            _ => None,
        }
    }

    /// Blocks of n rows of the weights, and vectors of a state.
    pub const fn sizes(self) -> [usize; 2] {
        match self {
            Layer::Rnn(_) => [1, 1],
            Layer::Gru => [3, 1],
            Layer::Lstm => [4, 2],
        }
    }
}

/// The arguments of a call.
#[derive(Clone, Copy)]
pub struct Stacked<'a, R> {
    /// Which.
    pub layer: Layer,
    /// Steps T, sequences B, features of x, units n.
    pub sizes: [usize; 4],
    /// (T, B, features), or with `counts` the steps without what lies past the end of a sequence.
    pub x: &'a [R],
    /// h, and c of an LSTM, before the first step: (layers * directions, B, n) each.
    pub states: &'a [&'a [R]],
    /// Of each layer and direction W_ih and W_hh, then, with biases, b_ih and b_hh.
    pub weights: &'a [&'a [R]],
    /// Whether there are biases.
    pub biases: bool,
    /// 1 or 2.
    pub directions: usize,
    /// The sequences that have a step t, not increasing; all have all if absent.
    pub counts: Option<&'a [usize]>,
}

impl<R: Real> Stacked<'_, R> {
    /// Fills the states of the last layer, in the order of x, (T, B, directions * n), and the last states, as `states`.
    ///
    /// ```
    /// use isometry_core::Budget;
    /// use isometry_core::recurrence::{Layer, Stacked};
    ///
    /// // an LSTM of one unit without weights: i, f and o are 1/2 and g is 0, so c is halved
    /// let (x, w, h, c) = ([0.0f64], [0.0; 4], [0.0], [1.0]);
    /// let (states, weights): ([&[f64]; 2], [&[f64]; 2]) = ([&h, &c], [&w, &w]);
    /// let (sizes, layer) = ([1, 1, 1, 1], Layer::Lstm);
    /// let call = Stacked { layer, sizes, x: &x, states: &states, weights: &weights, biases: false, directions: 1, counts: None };
    /// let (mut output, mut h, mut c) = ([0.0], [0.0], [0.0]);
    /// call.forward(&mut output, &mut [&mut h, &mut c], &Budget::of(1))?;
    /// assert_eq!(c, [0.5]);
    /// # Ok::<(), isometry_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Arrays that do not fit; lack of memory; [`Error::Interrupted`] once the budget says so.
    pub fn forward(&self, output: &mut [R], last: &mut [&mut [R]], budget: &Budget<'_>) -> Result<()> {
        let ([steps, batch, features, n], [gates, parts]) = (self.sizes, self.layer.sizes());
        let (each, directions) = (if self.biases { 4 } else { 2 }, self.directions);
        let count = self.weights.len() / each;
        let entries = self.counts.map_or(work(&[steps, batch]), |counts| counts.iter().sum());
        check_len("x", self.x.len(), &[entries, features])?;
        check_len("output", output.len(), &[entries, directions, n])?;
        check_len("weights", self.weights.len(), &[count, each])?;
        check_len("states", self.states.len(), &[parts])?;
        check_len("last", last.len(), &[parts])?;
        if count == 0 || n == 0 || directions == 0 || !count.is_multiple_of(directions) {
            return Err(Error::shape(
                "weights",
                format!("those of layers of {directions} directions"),
                count,
            ));
        }
        for len in self.states.iter().map(|part| part.len()).chain(last.iter().map(|part| part.len())) {
            check_len("states", len, &[count, batch, n])?;
        }
        let lengths = self.counts.map(|counts| self.lengths(counts)).transpose()?;
        let (width, both) = (work(&[parts, n]), work(&[directions, n]));
        let size = work(&[steps, batch]);
        let mut states = Buffer::<R>::zeroed(work(&[size, width]))?;
        let mut rows = [Buffer::<R>::zeroed(work(&[batch, width]))?, Buffer::zeroed(work(&[batch, width]))?];
        let mut below = Buffer::<R>::zeroed(if self.counts.is_some() { work(&[size, features]) } else { 0 })?;
        let mut above = Buffer::<R>::zeroed(0)?;
        if let Some(counts) = self.counts {
            spread(counts, (batch, features), self.x, &mut below);
        }
        for layer in 0..count / directions {
            let final_ = (layer + 1) * directions == count && self.counts.is_none();
            let features = if layer == 0 { features } else { both };
            if !final_ {
                above = Buffer::zeroed(work(&[size, both]))?;
            }
            let x: &[R] = if layer == 0 && self.counts.is_none() { self.x } else { &below };
            let out: &mut [R] = if final_ { &mut *output } else { &mut above };
            for direction in 0..directions {
                let (i, own) = (layer * directions + direction, work(&[batch, n]));
                let [h0, end] = &mut rows;
                for (part, given) in self.states.iter().enumerate() {
                    for (to, from) in h0.chunks_exact_mut(width).zip(given[i * own..].chunks_exact(n)) {
                        to[part * n..(part + 1) * n].copy_from_slice(from);
                    }
                }
                let run = Run {
                    h0: Some(h0),
                    lengths: lengths.as_deref(),
                    reverse: direction == 1,
                    ..Run::new([steps, batch, features, width], x)
                };
                let alone = parts == 1 && directions == 1;
                let all = if alone { &mut *out } else { &mut *states };
                let written = Written { states: Some(all), last: Some(end), ..Written::default() };
                self.one(run, &self.weights[i * each..(i + 1) * each], gates * n, written, budget)?;
                if !alone {
                    for (to, from) in out.chunks_exact_mut(both).zip(states.chunks_exact(width)) {
                        to[direction * n..(direction + 1) * n].copy_from_slice(&from[..n]);
                    }
                }
                for (part, last) in last.iter_mut().enumerate() {
                    for (to, from) in
                        last[i * own..(i + 1) * own].chunks_exact_mut(n).zip(end.chunks_exact(width))
                    {
                        to.copy_from_slice(&from[part * n..(part + 1) * n]);
                    }
                }
            }
            std::mem::swap(&mut below, &mut above);
        }
        if let Some(counts) = self.counts {
            gather(counts, (batch, both), &below, output);
        }
        Ok(())
    }

    /// One layer in one direction.
    fn one(
        &self,
        run: Run<'_, R>,
        weights: &[&[R]],
        rows: usize,
        written: Written<'_, R>,
        budget: &Budget<'_>,
    ) -> Result<()> {
        let (u, w, n) = (weights[0], weights[1], self.sizes[3]);
        check_len("weights", u.len(), &[rows, run.features])?;
        check_len("weights", w.len(), &[rows, n])?;
        for bias in &weights[2..] {
            check_len("weights", bias.len(), &[rows])?;
        }
        let summed = |biases: &[&[R]]| match biases {
            [first, second] => collected(first.iter().zip(*second).map(|(a, b)| *a + *b)).map(Some),
            _ => Ok(None),
        };
        match self.layer {
            Layer::Rnn(activation) => {
                let (b, w) = (summed(&weights[2..])?, Dense::new(w, 1, n, n)?);
                let run = Run { activation, ..run };
                let sequence = Sequence { run, input_weight: u, bias: b.as_deref(), on_input: false };
                Affine { transition: &w, sequence }.forward(written, &mut [], None, budget)
            }
            Layer::Lstm => {
                let b = summed(&weights[2..])?;
                Lstm { run, w, u, b: b.as_deref() }.forward(written, &mut [], None, budget)
            }
            Layer::Gru => {
                let [b, hidden_bias] = [2, 3].map(|i| weights.get(i).copied());
                let gru =
                    Gru { run, w, transition: None, u, b, reset: Reset::After, hidden_bias, r_first: true };
                gru.forward(written, &mut [], None, budget)
            }
        }
    }

    /// The steps of each sequence.
    fn lengths(&self, counts: &[usize]) -> Result<Vec<usize>> {
        let [steps, batch, ..] = self.sizes;
        check_len("counts", counts.len(), &[steps])?;
        if counts.windows(2).any(|pair| pair[0] < pair[1]) || counts.first() != Some(&batch) {
            return Err(Error::value("counts", "must not increase, from the number of sequences on"));
        }
        collected((0..batch).map(|b| counts.partition_point(|&count| count > b)))
    }
}

/// Packed steps with room for all sequences in each.
fn spread<R: Real>(counts: &[usize], (batch, width): (usize, usize), packed: &[R], padded: &mut [R]) {
    let mut from = 0;
    for (count, to) in counts.iter().zip(padded.chunks_exact_mut((batch * width).max(1))) {
        to[..count * width].copy_from_slice(&packed[from..from + count * width]);
        from += count * width;
    }
}

/// The inverse.
fn gather<R: Real>(counts: &[usize], (batch, width): (usize, usize), padded: &[R], packed: &mut [R]) {
    let mut to = 0;
    for (count, from) in counts.iter().zip(padded.chunks_exact((batch * width).max(1))) {
        packed[to..to + count * width].copy_from_slice(&from[..count * width]);
        to += count * width;
    }
}
