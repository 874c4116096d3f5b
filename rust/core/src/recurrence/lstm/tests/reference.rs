//! The textbook LSTM in double precision: a loop over sequences, steps and elements, and its gradient.

/// Arrays as in [`super::super::Lstm`]; absent ones are zeros.
#[derive(Clone)]
pub struct Problem {
    pub steps: usize,
    pub batch: usize,
    pub d: usize,
    pub n: usize,
    /// x, w, u, b, h0, start_state
    pub arrays: [Vec<f64>; 6],
    pub lengths: Vec<usize>,
    pub reverse: bool,
    /// (T, B)
    pub marks: Vec<bool>,
}

/// What one step of one sequence knows.
struct Step {
    row: usize,
    /// Whether the state before it is that of a mark.
    marked: bool,
    /// (h, c) before and after
    previous: Vec<f64>,
    state: Vec<f64>,
    /// i, f, g, o
    gates: Vec<f64>,
}

fn sigma(z: f64) -> f64 {
    1.0 / (1.0 + (-z).exp())
}

impl Problem {
    fn walk(&self, b: usize) -> Vec<Step> {
        let [x, w, u, bias, h0, fresh] = &self.arrays;
        let (n, d, length) = (self.n, self.d, self.lengths[b]);
        let own = b * 2 * n..(b + 1) * 2 * n;
        let mut state = h0[own.clone()].to_vec();
        let mut steps = vec![];
        for k in 0..length {
            let t = if self.reverse { length - 1 - k } else { k };
            let row = t * self.batch + b;
            // backwards in time a piece ends before the step that follows it
            let mark = if self.reverse { (k > 0).then_some(row + self.batch) } else { Some(row) };
            let marked = mark.is_some_and(|at| self.marks[at]);
            let previous = if marked { fresh[own.clone()].to_vec() } else { state };
            let argument = |i: usize| -> f64 {
                let of_h: f64 = (0..n).map(|j| w[i * n + j] * previous[j]).sum();
                let of_x: f64 = (0..d).map(|j| u[i * d + j] * x[row * d + j]).sum();
                of_h + of_x + bias[i]
            };
            let gate = |i: usize| if i / n == 2 { argument(i).tanh() } else { sigma(argument(i)) };
            let gates: Vec<f64> = (0..4 * n).map(gate).collect();
            let c = |i: usize| gates[n + i] * previous[n + i] + gates[i] * gates[2 * n + i];
            state = (0..n).map(|i| gates[3 * n + i] * c(i).tanh()).chain((0..n).map(c)).collect();
            steps.push(Step { row, marked, previous, state: state.clone(), gates });
        }
        steps
    }

    pub fn forward(&self) -> Vec<f64> {
        let width = 2 * self.n;
        let mut states = vec![0.0; self.steps * self.batch * width];
        for step in (0..self.batch).flat_map(|b| self.walk(b)) {
            states[step.row * width..][..width].copy_from_slice(&step.state);
        }
        states
    }

    /// The gradients of the arrays, in their order.
    pub fn backward(&self, ct: &[f64]) -> [Vec<f64>; 6] {
        let (n, d) = (self.n, self.d);
        let [x, w, u, ..] = &self.arrays;
        let mut bars = self.arrays.each_ref().map(|array| vec![0.0; array.len()]);
        for b in 0..self.batch {
            let mut carried = vec![0.0; 2 * n];
            for Step { row, marked, previous, state, gates } in self.walk(b).into_iter().rev() {
                (0..2 * n).for_each(|i| carried[i] += ct[row * 2 * n + i]);
                let mut before = vec![0.0; 2 * n];
                for j in 0..n {
                    let [i, f, g, o] = [0, 1, 2, 3].map(|gate| gates[gate * n + j]);
                    let (h_bar, tanh) = (carried[j], state[n + j].tanh());
                    let s = carried[n + j] + h_bar * o * (1.0 - tanh * tanh);
                    let into = [
                        s * g * i * (1.0 - i),
                        s * previous[n + j] * f * (1.0 - f),
                        s * i * (1.0 - g * g),
                        h_bar * tanh * o * (1.0 - o),
                    ];
                    before[n + j] = s * f;
                    for (gate, bar) in into.into_iter().enumerate() {
                        let unit = gate * n + j;
                        bars[3][unit] += bar;
                        for k in 0..n {
                            bars[1][unit * n + k] += bar * previous[k];
                            before[k] += bar * w[unit * n + k];
                        }
                        for k in 0..d {
                            bars[2][unit * d + k] += bar * x[row * d + k];
                            bars[0][row * d + k] += bar * u[unit * d + k];
                        }
                    }
                }
                carried = before;
                if marked {
                    let fresh = bars[5][b * 2 * n..].iter_mut();
                    fresh.zip(&mut carried).for_each(|(sum, bar)| *sum += std::mem::take(bar));
                }
            }
            bars[4][b * 2 * n..(b + 1) * 2 * n].copy_from_slice(&carried);
        }
        bars
    }
}
