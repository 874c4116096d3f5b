//! A call of a cell, computed by the core and on the device.

use super::super::{Cell, Gradients, Outcome};
use crate::Field;
use crate::device::Record;
use crate::hosted::Uploads;
use crate::recurrence::steps::Route;
use crate::recurrence::{pull, run};
use crate::testing::{Numbers, close, draw, of_parts, widened};
use isometry_core::activation::Activation;
use isometry_core::argument::{Array, Bar, Given};
use isometry_core::recurrence::{Call, Cotangent, Outcome as Core, declared, sequence, sequence_vjp};
use isometry_core::scalar::{Scalar, c32, c64};
use isometry_core::{Budget, Result};

/// Results by name.
type Results = Vec<(String, Vec<f64>)>;

/// A call; numbers of an array are drawn for each sequence.
#[derive(Clone, Debug)]
pub struct Case {
    pub cell: &'static str,
    pub field: Field,
    pub sizes: [usize; 4],
    pub activation: Activation,
    pub settings: &'static [f64],
    /// Also the arguments that may be left out.
    pub all: bool,
    /// The longest first, as the core takes them; the device takes any order.
    pub lengths: Option<Vec<usize>>,
    pub reverse: bool,
    /// Numbers in place of those drawn.
    pub set: Vec<(&'static str, Vec<f64>)>,
    /// What stands past the ends of sequences in x and in the cotangents.
    pub past: f64,
    /// The states are their own cotangents.
    pub own_ct: bool,
    /// Of rounding.
    pub units: f64,
}

/// The arrays of a call in T: numbers with their shapes, None where one is not given.
pub struct Drawn<T: Scalar> {
    arrays: Vec<Option<(Vec<usize>, Numbers<T>)>>,
    w: Vec<T>,
    square: [usize; 2],
    ct: Vec<T>,
    last_ct: Option<Vec<T>>,
}

impl Case {
    pub fn new(cell: &'static str, settings: &'static [f64]) -> Self {
        Case {
            cell,
            field: Field::Real,
            sizes: [5, 4, 3, 6],
            activation: Activation::Tanh,
            settings,
            all: true,
            lengths: None,
            reverse: false,
            set: vec![],
            past: 0.5,
            own_ct: false,
            units: if cell == "rum" { 256.0 } else { 64.0 },
        }
    }

    /// `x` (T, B, m) with what stands past the ends.
    fn spoilt(&self, mut x: Vec<f64>) -> Vec<f64> {
        let [steps, batch, ..] = self.sizes;
        let each = x.len() / (steps * batch);
        for (b, &length) in self.lengths.iter().flatten().enumerate() {
            for t in length..steps {
                x[(t * batch + b) * each..][..each].fill(self.past);
            }
        }
        x
    }

    pub fn drawn<T: Scalar>(&self) -> Drawn<T> {
        let (cell, [steps, batch, _, n]) = (declared(self.cell).unwrap(), self.sizes);
        let remembers = !cell.memory.is_empty() && self.settings[0] == 1.0;
        let mut seed = 0;
        let mut draw = |count: usize, scale: f64, field: Field| -> Vec<f64> {
            seed += 1;
            draw(field, count, scale, seed)
        };
        let mut arrays = Vec::new();
        for (i, argument) in cell.arguments.iter().enumerate() {
            let units = self.activation.bias_units(n);
            let shape = cell.shape(i, self.sizes).unwrap_or_else(|| vec![units]);
            let set = self.set.iter().find(|(name, _)| *name == argument.name);
            let given = match argument.name {
                "start_state" => false,
                "activation_bias" => units > 0,
                "hidden_bias" | "r0" => self.all && self.settings[0] == 1.0,
                _ => self.all || !argument.optional || set.is_some(),
            };
            let scale = match argument.name {
                "w" | "r0" => 1.0 / (n as f64).sqrt(),
                "activation_bias" => 0.25,
                _ => 0.7,
            };
            let field = if argument.kind.real() { Field::Real } else { self.field };
            let mut drawn = draw(shape.iter().product(), scale, field);
            set.into_iter().for_each(|(_, numbers)| drawn.clone_from(numbers));
            if argument.name == "x" {
                drawn = self.spoilt(drawn);
            }
            let own = Numbers::new(argument.kind.real(), &drawn);
            arrays.push(given.then_some((shape, own)));
        }
        let scale = (3.0 / (n * self.field.parts()) as f64).sqrt();
        let (w, width) = (of_parts(&draw(n * n, scale, self.field)), n * cell.width);
        let ct = self.spoilt(draw(steps * batch * width, 1.0, self.field));
        let last_ct = draw(batch * n * n, 1.0, Field::Real);
        Drawn { arrays, w, square: [n, n], ct: of_parts(&ct), last_ct: remembers.then(|| of_parts(&last_ct)) }
    }

    pub fn call<'a, T: Scalar>(&'a self, drawn: &'a Drawn<T>) -> Call<'a, T> {
        let cell = declared(self.cell).unwrap();
        let given = drawn.arrays.iter().map(|array| match array {
            Some((shape, x)) => Given { shape, array: x.array() },
            None => Given { shape: &[], array: Array::None },
        });
        let w = Given { shape: &drawn.square, array: Array::Own(&drawn.w[..]) };
        Call {
            cell,
            given: given.collect(),
            transition: (cell.operator == "transition").then(|| ("dense", vec![w])),
            activation: self.activation,
            settings: self.settings,
            lengths: self.lengths.as_deref(),
            reverse: self.reverse,
            marks: None,
            packs: None,
        }
    }

    /// States, memory and gradients by the core.
    fn by_core<T: Scalar>(&self) -> Results {
        let (drawn, [_, batch, _, n]) = (self.drawn::<T>(), self.sizes);
        let call = self.call(&drawn);
        let (cell, budget) = (call.cell, Budget::of(1));
        let zeros = |len: usize| vec![T::zero(); len];
        let mut states = zeros(drawn.ct.len());
        let mut last = zeros(if drawn.last_ct.is_some() { batch * n * n } else { 0 });
        let mut saved = zeros(cell.saves(self.settings) * states.len() / cell.width);
        sequence(call.clone(), (&mut states[..]).into(), &mut last, Some(&mut saved), &budget).unwrap();
        let mut rooms: Vec<_> =
            drawn.arrays.iter().map(|array| array.as_ref().map(|(_, x)| x.zeros())).collect();
        let mut bars: Vec<_> =
            rooms.iter_mut().map(|room| room.as_mut().map_or(Bar::None, Numbers::bar)).collect();
        let mut w_bar = zeros(n * n);
        let mut of_operator = if call.transition.is_some() { vec![Bar::Own(&mut w_bar[..])] } else { vec![] };
        let outcome = Core {
            states: (&states[..]).into(),
            last: &last,
            saved: &saved,
            ct: Cotangent::States(if self.own_ct { &states } else { &drawn.ct }),
            last_ct: drawn.last_ct.as_deref(),
        };
        sequence_vjp(call, &outcome, &mut bars, &mut of_operator, &budget).unwrap();
        drop((bars, of_operator));
        let mut all = vec![
            ("states".into(), widened(&states)),
            ("memory".into(), widened(&last)),
            ("transition_bar".into(), if cell.operator == "transition" { widened(&w_bar) } else { vec![] }),
        ];
        let each = cell.arguments.iter().zip(&rooms);
        all.extend(each.filter_map(|(argument, room)| Some((argument.bar.into(), room.as_ref()?.widened()))));
        all
    }

    /// The same on the device.
    fn on_device<T: Scalar>(&self, route: Option<Route>) -> Result<Results> {
        let (drawn, [steps, batch, _, n]) = (self.drawn::<T>(), self.sizes);
        let call = self.call(&drawn);
        let mut uploads = Uploads::new()?;
        let mut record = Record::new(uploads.context())?;
        let w = match &call.transition {
            Some((_, given)) => Some(uploads.needed("transition", &given[0], &[n, n])?),
            None => None,
        };
        let cell = Cell::new(&mut uploads, &call, w)?;
        let (states, memory) = match route {
            Some(route) => (run(&mut record, &cell, route)?, None),
            None => (cell.kernels.forward)(&mut record, &cell)?,
        };
        let last_ct = drawn.last_ct.as_ref().map(|ct| uploads.made(ct, &[batch, n, n])).transpose()?;
        let ct = uploads.made(&drawn.ct, &[steps, batch, cell.state])?;
        let ct = if self.own_ct { states.clone() } else { ct };
        let outcome = Outcome { states, ct, last_ct };
        let wanted: Vec<_> = drawn.arrays.iter().map(Option::is_some).collect();
        let mut out = Gradients::new(call.cell, &wanted, true);
        match route {
            Some(route) => pull(&mut record, &cell, &outcome, &mut out, route)?,
            None => (cell.kernels.backward)(&mut record, &cell, &outcome, &mut out)?,
        }
        record.submit()?;
        let wide =
            |array: &crate::Array| Ok(array.download()?.into_iter().map(f64::from).collect::<Vec<_>>());
        let some = |array: Option<&crate::Array>| array.map_or(Ok(vec![]), wide);
        let (found, w_bar) = out.found();
        let mut all = vec![
            ("states".into(), wide(&outcome.states)?),
            ("memory".into(), some(memory.as_ref())?),
            ("transition_bar".into(), some(w_bar.as_ref())?),
        ];
        for (argument, found) in call.cell.arguments.iter().zip(&found) {
            all.extend(found.as_ref().map(|found| Ok((argument.bar.into(), wide(found)?))).transpose()?);
        }
        Ok(all)
    }

    pub fn check_on(&self, routes: &[Option<Route>]) {
        let core = match self.field {
            Field::Real => self.by_core::<f64>(),
            Field::Complex => self.by_core::<c64>(),
        };
        for &route in routes {
            let found = match self.field {
                Field::Real => self.on_device::<f32>(route),
                Field::Complex => self.on_device::<c32>(route),
            };
            let found = found.unwrap();
            assert!(found.iter().map(|(what, _)| what).eq(core.iter().map(|(what, _)| what)), "{self:?}");
            for ((what, found), (_, expected)) in found.iter().zip(&core) {
                close(found, expected, self.units, &format!("{what} of {route:?} {self:?}"));
            }
        }
    }

    pub fn check(&self) {
        self.check_on(&[None]);
    }
}
