//! A call of a cell with arguments drawn from its declaration: its results, and those of the textbook.

use super::textbook::Textbook;
use crate::activation::Activation;
use crate::argument::{Argument, Bar, Given};
use crate::budget::Budget;
use crate::error::Result;
use crate::internal::{Beside, BesideMut};
use crate::recurrence::{
    Call, Checkpoint, Cotangent, Declaration, Outcome, Trajectory, Written, declared, pack, packed, sequence,
    sequence_vjp,
};
use crate::scalar::{Real, Scalar, parts};
use crate::testing::drawn::{Drawn, Held};
use crate::testing::{Guarded, fill};

/// The operator of a cell that has one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Matrix {
    Dense,
    /// So many, and their last factor.
    Reflections(usize, usize),
    Rows,
}

/// Steps before which a state begins anew.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Marks {
    None,
    /// From zeros.
    Plain,
    /// From one state for each sequence.
    Own,
    /// From a state for every mark.
    Each,
}

#[derive(Clone, Copy)]
pub struct Case {
    pub cell: &'static Textbook,
    pub settings: &'static [f64],
    pub matrix: Matrix,
    /// T, B, d and n.
    pub sizes: [usize; 4],
    pub activation: Activation,
    pub reverse: bool,
    /// Sequences have lengths of their own, some none.
    pub varied: bool,
    /// All optional arguments are given.
    pub all: bool,
    pub marks: Marks,
}

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Case { cell, settings, matrix, sizes, activation, reverse, varied, all, marks } = self;
        write!(f, "{} {settings:?}, {matrix:?}, {sizes:?}, {activation:?}, ", cell.name)?;
        write!(f, "reverse {reverse}, varied {varied}, all {all}, marks {marks:?}")
    }
}

/// Recurrences whose states lie beside one another; the second is the problem.
const OTHERS: usize = 3;

/// Arrays by name, in double precision.
pub type Results = Vec<(String, Vec<f64>)>;

pub struct Problem<T: Scalar> {
    pub case: Case,
    pub cell: &'static Declaration,
    /// By the axes of the declaration.
    pub arrays: Vec<(Vec<usize>, Held<T>)>,
    pub operator: Option<Drawn<T>>,
    pub lengths: Vec<usize>,
    pub marks: Vec<bool>,
    /// Of all states, or of the last ones.
    pub ct: Vec<T>,
    pub of_last: bool,
    /// States and cotangents lie among those of other recurrences.
    pub beside: bool,
    pub memory_ct: Vec<T>,
}

pub fn wide<T: Scalar>(x: &[T]) -> Vec<f64> {
    parts(x).iter().map(|x| x.f64()).collect()
}

/// Whether the cell returns a memory.
pub fn remembers(case: &Case) -> bool {
    let cell = declared(case.cell.name).unwrap();
    let at = cell.settings.iter().position(|own| *own == cell.memory);
    at.is_some_and(|at| !case.settings[at].is_nan())
}

impl<T: Scalar> Problem<T> {
    pub fn new(case: Case) -> Self {
        let (cell, sizes @ [steps, batch, d, n]) = (declared(case.cell.name).unwrap(), case.sizes);
        let (nan, width) = (T::real(T::Real::of(f64::NAN)), n * cell.width);
        let lengths: Vec<usize> =
            (0..batch).map(|b| steps.saturating_sub(if case.varied { 2 * b } else { 0 })).collect();
        let marks: Vec<bool> = (0..steps * batch).map(|at| at * 7 % 5 == 1 || at % 11 == 3).collect();
        let per_unit = 1.0 / ((n * T::PARTS) as f64).sqrt();
        let draw = |(i, argument): (usize, &Argument)| {
            let (mut shape, mut seed) = (cell.shape(i, sizes).unwrap_or_default(), 10 + i as u64);
            let held = match argument.name {
                "activation_bias" => {
                    // biases of both signs in half of the cases, so that modReLU takes both branches
                    let shift = if case.all { 0.0 } else { -0.31 };
                    shape = vec![case.activation.bias_units(n)];
                    let drawn = fill::<T::Real>(shape[0], 0.3, seed);
                    let own: Vec<_> = drawn.iter().map(|b| *b + T::Real::of(shift)).collect();
                    return (shape, if own.is_empty() { Held::None } else { Held::Real(own) });
                }
                "start_state" => {
                    if case.marks != Marks::Each {
                        shape.remove(0);
                    }
                    matches!(case.marks, Marks::Own | Marks::Each)
                }
                name if name == case.cell.belongs.0 => {
                    case.all && !case.settings[case.cell.belongs.1].is_nan()
                }
                _ => !argument.optional || case.all,
            };
            seed += u64::from(case.varied);
            let scale = match argument.axes {
                "B n n" => per_unit,
                axes if axes.contains(['T', 'B']) => 1.0,
                axes if axes.ends_with(" n") && argument.name != "b" => 1.2 * per_unit,
                axes if axes.ends_with('d') => 0.7,
                _ => 0.4,
            };
            let mut array = fill::<T>(shape.iter().product(), scale, seed);
            // what lies past the end of a sequence, or is the state of no mark, must not be read
            let per_row = if argument.name == "x" { d } else { width };
            if argument.name == "x" || (argument.name == "start_state" && case.marks == Marks::Each) {
                let unread = |row: &usize| match argument.name {
                    "x" => row / batch >= lengths[row % batch],
                    _ => !marks[*row],
                };
                (0..marks.len()).filter(unread).for_each(|row| array[row * per_row..][..per_row].fill(nan));
            }
            (shape, if held { Held::Own(array) } else { Held::None })
        };
        let arrays = cell.arguments.iter().enumerate().map(draw).collect();
        let operator = match case.matrix {
            _ if cell.operator.is_empty() => None,
            Matrix::Dense => Some(Drawn::dense(n, 1.2 * per_unit)),
            Matrix::Reflections(m, last) => Some(Drawn::reflections(n, m, last)),
            Matrix::Rows => Some(Drawn::rows(n)),
        };
        let mut ct = fill::<T>(steps * batch * width, 1.0, 2);
        for row in (0..steps * batch).filter(|row| row / batch >= lengths[row % batch]) {
            ct[row * width..][..width].fill(nan);
        }
        let memory = if remembers(&case) { batch * n * n } else { 0 };
        let memory_ct = fill(memory, 1.0, 3);
        let (of_last, beside) = (false, false);
        Problem { case, cell, arrays, operator, lengths, marks, ct, of_last, beside, memory_ct }
    }

    pub fn at(&self, name: &str) -> usize {
        self.cell.arguments.iter().position(|argument| argument.name == name).unwrap()
    }

    /// Numbers of a state.
    pub fn width(&self) -> usize {
        self.case.sizes[3] * self.cell.width
    }

    pub fn call<'a>(&'a self, packs: Option<&'a [T::Real]>) -> Call<'a, T> {
        Call {
            cell: self.cell,
            given: self.arrays.iter().map(|(shape, held)| Given { shape, array: held.array() }).collect(),
            transition: self.operator.as_ref().map(|own| (own.object, own.given())),
            activation: self.case.activation,
            settings: self.case.settings,
            lengths: self.case.varied.then_some(&self.lengths),
            reverse: self.case.reverse,
            marks: (self.case.marks != Marks::None).then_some(&self.marks),
            packs,
        }
    }

    /// The matrices that a caller may pack.
    pub fn packs(&self) -> Vec<T::Real> {
        let (n, mut matrices) = (self.case.sizes[3], vec![]);
        for &(array, parts) in self.cell.packs {
            let (shape, Held::Own(mut rows)) = self.arrays[array].clone() else { unreachable!() };
            for part in parts {
                let behind = rows.split_off(part * n * shape[shape.len() - 1]);
                matrices.push((rows, part * n));
                rows = behind;
            }
        }
        if let Some(Held::Own(w)) = self
            .operator
            .as_ref()
            .map(|own| own.held[0].1.clone())
            .filter(|_| self.case.matrix == Matrix::Dense)
        {
            matrices.push((w, n));
        }
        let mut packs = vec![];
        for (matrix, rows) in matrices {
            let (start, k) = (packs.len(), matrix.len() / rows);
            packs.resize(start + packed::<T>(rows, k), T::Real::of(f64::NAN));
            pack(&matrix, rows, k, &mut packs[start..]).unwrap();
        }
        packs
    }

    /// The states alone, from packed operands where there are any, nothing saved; the first part of each, written alone, is the same.
    pub fn states(&self, packs: Option<&[T::Real]>, budget: &Budget<'_>) -> Result<Vec<f64>> {
        let (mut states, mut memory) = (Guarded::new(self.ct_len()), Guarded::new(self.memory_ct.len()));
        sequence(self.call(packs), states.inner().into(), memory.inner(), None, budget)?;
        let (n, mut first) = (self.case.sizes[3], Guarded::new(self.ct_len() / self.cell.width));
        let beside = Some(BesideMut::first(first.inner(), n, self.width()));
        sequence(self.call(packs), Written { beside, ..Written::default() }, memory.inner(), None, budget)?;
        let parts = states.read().chunks(self.width()).flat_map(|state| &state[..n]);
        assert!(parts.eq(first.read()), "the first parts alone: {}", self.case);
        Ok(wide(states.read()))
    }

    fn ct_len(&self) -> usize {
        self.case.sizes[0] * self.case.sizes[1] * self.width()
    }

    /// Everything that the cell returns, with all states kept or those of a checkpoint.
    pub fn run(&self, threads: usize, checkpoint: Option<Checkpoint>) -> Result<Results> {
        self.results([&Budget::of(threads); 2], checkpoint)
    }

    /// With the budgets of both passes.
    pub fn results(
        &self,
        [forward, backward]: [&Budget<'_>; 2],
        checkpoint: Option<Checkpoint>,
    ) -> Result<Results> {
        let [steps, batch, ..] = self.case.sizes;
        let (len, ends) = (self.ct_len(), batch * self.width());
        let saves = self.cell.saves(self.case.settings);
        let borders = checkpoint.map_or(0, |kind| kind.borders(steps, batch, [saves, self.cell.width]));
        let width = self.width();
        let all = if self.beside { OTHERS * len } else { len };
        let (mut states, mut last) = (Guarded::<T>::new(all), Guarded::<T>::new(ends));
        let (mut saved, mut marks) = (
            Guarded::<T>::new(if checkpoint.is_some() { 0 } else { saves * len / self.cell.width }),
            Guarded::<T>::new(borders * ends),
        );
        let mut memory = Guarded::<T>::new(self.memory_ct.len());
        let mut written = Written::from(states.inner());
        if let Some(all) = written.states.take_if(|_| self.beside) {
            written.beside = BesideMut::cut(all, OTHERS, width).nth(1);
        }
        written.last = Some(last.inner());
        written.marks = checkpoint.map(|kind| (kind, marks.inner()));
        let room = checkpoint.is_none().then(|| saved.inner());
        sequence(self.call(None), written, memory.inner(), room, forward)?;
        let (states, last, memory) = (states.take(), last.take(), memory.take());
        let cts = if self.beside { among(&self.ct, width) } else { vec![] };
        let [all, all_cts] = [&states, &cts].map(|array| Beside::cut(array, OTHERS, width).nth(1).unwrap());
        let outcome = Outcome {
            states: match checkpoint {
                Some(kind) => Trajectory::Marks(kind, marks.read(), &last),
                None if self.beside => Trajectory::Beside(all),
                None => Trajectory::All(&states),
            },
            last: &memory,
            saved: saved.read(),
            ct: match checkpoint {
                _ if self.of_last => Cotangent::Last(&self.ct),
                None if self.beside => Cotangent::Beside(all_cts),
                _ => Cotangent::States(&self.ct),
            },
            last_ct: (!memory.is_empty()).then_some(&self.memory_ct),
        };
        let rooms = self.arrays.iter().map(|(_, held)| match held {
            Held::Own(own) => (Guarded::<T>::new(own.len()), Guarded::new(0)),
            Held::Real(real) => (Guarded::new(0), Guarded::<T::Real>::new(real.len())),
            _ => (Guarded::new(0), Guarded::new(0)),
        });
        let mut rooms: Vec<_> = rooms.collect();
        let each = rooms.iter_mut().zip(&self.arrays);
        let mut bars: Vec<_> = each
            .map(|((own, real), (_, held))| match held {
                Held::Own(_) => Bar::Own(own.inner()),
                Held::Real(_) => Bar::Real(real.inner()),
                _ => Bar::None,
            })
            .collect();
        let mut of_operator = self.operator.as_ref().map(Drawn::rooms);
        let mut own_bars = of_operator.as_mut().map_or(vec![], Drawn::bars);
        sequence_vjp(self.call(None), &outcome, &mut bars, &mut own_bars, backward)?;
        drop(bars);
        let states = if self.beside { alone(&states, width) } else { states };
        let mut results = vec![("states".into(), wide(&states)), ("last".into(), wide(&last))];
        results.push(("memory".into(), wide(&memory)));
        for (argument, (own, real)) in self.cell.arguments.iter().zip(&rooms) {
            results.push((argument.name.into(), [wide(own.read()), wide(real.read())].concat()));
        }
        results.extend(of_operator.iter().flat_map(numbers));
        Ok(results)
    }
}

/// An array with NaN in place of the rows of other recurrences.
fn among<T: Scalar>(array: &[T], width: usize) -> Vec<T> {
    let nan = vec![T::real(T::Real::of(f64::NAN)); width];
    array.chunks(width).flat_map(|row| [&nan[..], row, &nan[..]].concat()).collect()
}

/// The rows of the problem alone, after a check that nothing wrote those of the others.
fn alone<T: Scalar>(array: &[T], width: usize) -> Vec<T> {
    let (own, others): (Vec<_>, Vec<_>) = array.chunks(width).enumerate().partition(|(i, _)| i % OTHERS == 1);
    let untouched = |row: &[T]| wide(row).iter().step_by(T::PARTS).all(|x| x.is_nan());
    assert!(others.iter().all(|(_, row)| untouched(row)), "written beside");
    own.into_iter().flat_map(|(_, row)| row.to_vec()).collect()
}

/// The gradients of an operator's arguments.
pub fn numbers<T: Scalar>(of: &Drawn<T>) -> Results {
    let name = |i: usize| format!("argument {i} of {}", of.object);
    of.held.iter().enumerate().map(|(i, (_, held))| (name(i), held.numbers())).collect()
}
