//! What the textbook has for the results of a problem.

use super::problem::{Marks, Problem, Results, numbers, wide};
use super::textbook::Step;
use crate::budget::Budget;
use crate::operators::view;
use crate::scalar::Scalar;
use crate::testing::drawn::{Drawn, Held};
use crate::testing::tape::{Var, Z, flat, leaves, pull};

impl<T: Scalar> Problem<T> {
    /// What the textbook has for [`Problem::run`].
    pub fn expected(&self) -> Results {
        let ([steps, batch, d, n], width, each) = (self.case.sizes, self.width(), T::PARTS);
        let array = |(shape, held): &(Vec<usize>, Held<T>)| match held {
            Held::None => vec![Z::ZERO; shape.iter().product()],
            Held::Real(_) => leaves(&held.numbers(), 1),
            _ => leaves(&held.numbers(), each),
        };
        let arrays: Vec<Vec<Z>> = self.arrays.iter().map(array).collect();
        let operator = self.operator.as_ref().map(Drawn::wide);
        let mut matrix = vec![T::Wide::default(); if operator.is_some() { n * n } else { 0 }];
        if let Some(own) = &operator {
            let w = view(own.object, &own.given()).unwrap();
            w.matrix(&mut matrix, None, &Budget::of(1)).unwrap();
        }
        let matrix = leaves(&wide(&matrix), each);
        let bias: Vec<Var> = arrays[self.at("activation_bias")].iter().map(|z| z.re).collect();
        let step = Step {
            n,
            array: &|name| &arrays[self.at(name)],
            matrix: &matrix,
            settings: self.case.settings,
            activation: self.case.activation,
            activation_bias: &bias,
        };
        let [x, h0, fresh] = ["x", "h0", "start_state"].map(|name| &arrays[self.at(name)]);
        let mut states = vec![Z::ZERO; steps * batch * width];
        let (mut last, mut memories) = (vec![], vec![]);
        for b in 0..batch {
            let (mut state, length) = (h0[b * width..][..width].to_vec(), self.lengths[b]);
            let mut memory = vec![];
            if !self.memory_ct.is_empty() {
                let r0 = &self.arrays[self.at("r0")].1;
                let identity = (0..n * n).map(|at| if at % (n + 1) == 0 { Z::ONE } else { Z::ZERO });
                let given = || arrays[self.at("r0")][b * n * n..][..n * n].to_vec();
                memory = if matches!(r0, Held::None) { identity.collect() } else { given() };
            }
            for k in 0..length {
                let row = if self.case.reverse { length - 1 - k } else { k } * batch + b;
                // backwards in time a piece ends before the step that follows it
                let mark = if self.case.reverse { (k > 0).then_some(row + batch) } else { Some(row) };
                if let Some(at) = mark.filter(|&at| self.case.marks != Marks::None && self.marks[at]) {
                    let at = if self.case.marks == Marks::Each { at } else { b };
                    state = fresh[at * width..][..width].to_vec();
                }
                state = (self.case.cell.step)(&step, &x[row * d..][..d], &state, &mut memory);
                states[row * width..][..width].copy_from_slice(&state);
            }
            last.extend(state);
            memories.extend(memory);
        }
        let values = |z: &[Z]| flat(z, each, |x| x.value);
        let mut results = vec![("states".into(), values(&states)), ("last".into(), values(&last))];
        results.push(("memory".into(), values(&memories)));
        let loss = if self.of_last { &last } else { &states };
        let both = |z: &[Z]| z.iter().flat_map(|z| [z.re, z.im].into_iter().take(each)).collect::<Vec<_>>();
        let outputs = both(loss).into_iter().zip(wide(&self.ct));
        let bar = pull(outputs.chain(both(&memories).into_iter().zip(wide(&self.memory_ct))));
        for ((argument, array), (_, held)) in self.cell.arguments.iter().zip(&arrays).zip(&self.arrays) {
            let gradient = match held {
                Held::Own(_) => flat(array, each, &bar),
                Held::Real(_) => flat(array, 1, &bar),
                _ => vec![],
            };
            results.push((argument.name.into(), gradient));
        }
        if let Some(own) = operator {
            let w_bar: Vec<T::Wide> =
                flat(&matrix, each, &bar).chunks(each).map(|z| T::Wide::new(z[0], z[each - 1])).collect();
            let mut rooms = own.rooms();
            let w = view(own.object, &own.given()).unwrap();
            w.matrix_vjp(None, &w_bar, &mut rooms.bars(), &Budget::of(1)).unwrap();
            results.extend(numbers(&rooms));
        }
        results
    }
}
