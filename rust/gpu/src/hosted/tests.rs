//! Every object with kernels, on arrays of the caller and of the device, against the core in double precision.

use crate::testing::{Numbers, close, device, draw, of_parts, own, widened};
use crate::{Array, Field, Room};
use isometry_core::argument::{self, Bar, Given};
use isometry_core::internal::Task;
use isometry_core::operators::{OBJECTS, view};
use isometry_core::scalar::{Scalar, c32, c64, parts};
use isometry_core::{Budget, Result, Side};
use std::sync::Arc;

const NONE: Given<'static, f32> = Given { shape: &[], array: argument::Array::None };

/// An operator: the arrays of its arguments, (batch, ...), by name.
#[derive(Clone, Debug)]
struct Case {
    object: &'static str,
    field: Field,
    batch: usize,
    shape: [usize; 2],
    rows: usize,
    given: Vec<(&'static str, Vec<usize>, Vec<f64>)>,
    /// Of rounding, of results and of gradients.
    units: [f64; 2],
}

impl Case {
    fn new(object: &'static str, field: Field, batch: usize, shape: [usize; 2], units: [f64; 2]) -> Self {
        Case { object, field, batch, shape, rows: 3, given: vec![], units }
    }

    /// With an argument of these axes; `change` makes its values.
    fn with(self, name: &'static str, axes: &[usize], scale: f64, change: impl Fn(f64) -> f64) -> Self {
        let shape = [&[self.batch], axes].concat();
        let own = ["upper", "vectors", "weight"].contains(&name);
        let field = if own { self.field } else { Field::Real };
        let seed = 3 + 7 * self.given.len() as u64;
        let drawn = draw(field, shape.iter().product(), scale, seed).into_iter().map(change).collect();
        Case { given: [self.given, vec![(name, shape, drawn)]].concat(), ..self }
    }

    /// All results in T, each call made by `call`.
    fn results<T: Scalar>(
        &self,
        call: impl Fn(&[Given<'_, T>], Task<'_, T>) -> Result<()>,
    ) -> Vec<(String, Vec<f64>)> {
        let (_, list) = OBJECTS.iter().find(|(name, _)| *name == self.object).unwrap();
        let find = |name: &str| self.given.iter().find(|(own, ..)| *own == name);
        let arrays: Vec<_> = list
            .iter()
            .map(|a| find(a.name).map(|(_, shape, x)| (shape, Numbers::<T>::new(a.kind.real(), x))))
            .collect();
        let given: Vec<_> = arrays
            .iter()
            .map(|array| match array {
                Some((shape, x)) => Given { shape, array: x.array() },
                None => Given { shape: &[], array: argument::Array::None },
            })
            .collect();
        let ([p, q], batch, rows) = (self.shape, self.batch, self.rows);
        let own = |shape: &[usize; 3], seed: u64| {
            of_parts::<T>(&draw(self.field, shape.iter().product(), 1.0, seed))
        };
        let none = Given { shape: &[], array: argument::Array::None };
        let (square, mut w) = ([batch, p, q], vec![T::zero(); batch * p * q]);
        call(&given, Task::Matrix(Bar::Own(&mut w))).unwrap();
        let mut all = vec![("W".to_string(), widened(&w))];
        let pulled = |what: &str, run: &dyn Fn(Vec<Bar<'_, T>>)| {
            let mut rooms: Vec<_> = list
                .iter()
                .zip(&arrays)
                .map(|(a, array)| array.as_ref().filter(|_| a.trained).map(|(_, x)| x.zeros()))
                .collect();
            run(rooms.iter_mut().map(|room| room.as_mut().map_or(Bar::None, Numbers::bar)).collect());
            let named = list.iter().zip(rooms);
            named
                .filter_map(|(a, room)| Some((format!("{} {what}", a.bar), room?.widened())))
                .collect::<Vec<_>>()
        };
        let ct = own(&square, 77);
        let ct = Given { shape: &square, array: argument::Array::Own(&ct) };
        all.extend(pulled("from W", &|bars| call(&given, Task::MatrixVjp(none, ct, bars)).unwrap()));
        for (side, [from, into]) in [(Side::Forward, [q, p]), (Side::Adjoint, [p, q])] {
            let shapes = [[batch, rows, from], [batch, rows, into]];
            let (x, ct) = (own(&shapes[0], 5), own(&shapes[1], 6));
            let x = Given { shape: &shapes[0], array: argument::Array::Own(&x) };
            let ct = Given { shape: &shapes[1], array: argument::Array::Own(&ct) };
            let mut y = vec![T::zero(); batch * rows * into];
            call(&given, Task::Apply(x, side, Bar::Own(&mut y))).unwrap();
            all.push((format!("rows {side:?}"), widened(&y)));
            let x_bar = std::cell::RefCell::new(vec![T::zero(); batch * rows * from]);
            all.extend(pulled(&format!("{side:?}"), &|bars| {
                let x_bar = &mut *x_bar.borrow_mut();
                call(&given, Task::ApplyVjp([none, x, ct], side, bars, Bar::Own(x_bar))).unwrap();
            }));
            all.push((format!("x_bar {side:?}"), widened(&x_bar.into_inner())));
        }
        all
    }

    fn by_core<T: Scalar>(&self) -> Vec<(String, Vec<f64>)> {
        let budget = Budget::of(1);
        let numbers = |given: &Given<'_, T>| match given.array {
            argument::Array::Own(x) => x.to_vec(),
            _ => vec![],
        };
        self.results::<T>(|given, task| {
            let operator = view(self.object, given)?;
            match task {
                Task::Matrix(out) => operator.matrix(out.own().unwrap(), None, &budget),
                Task::MatrixVjp(_, ct, mut bars) => {
                    operator.matrix_vjp(None, &numbers(&ct), &mut bars, &budget)
                }
                Task::Apply(x, side, out) => {
                    operator.apply(&numbers(&x), self.rows, side, out.own().unwrap(), None, &budget)
                }
                Task::ApplyVjp([_, x, ct], side, mut bars, x_bar) => {
                    let (x, ct) = (numbers(&x), numbers(&ct));
                    operator.apply_vjp(None, &x, &ct, self.rows, side, &mut bars, x_bar.own(), &budget)
                }
            }
        })
    }

    /// With arguments of the caller, or on the device, where their values are not looked at.
    fn on_device<T: Scalar<Real = f32>>(&self, resident: bool) -> Vec<(String, Vec<f64>)> {
        let context = device().unwrap();
        self.results::<T>(|given, task| {
            let held = |given: &Given<'_, T>| match given.array {
                argument::Array::Own(x) => {
                    Some(Room::from(Array::upload(&context, self.field, given.shape, parts(x)).unwrap()))
                }
                argument::Array::Real(x) => {
                    Some(Room::from(Array::upload(&context, Field::Real, given.shape, x).unwrap()))
                }
                _ => None,
            };
            let rooms: Vec<_> = given.iter().map(held).collect();
            let there = given.iter().zip(&rooms).map(|(given, room)| match room {
                Some(room) if resident => Given { shape: given.shape, array: argument::Array::Remote(room) },
                _ => *given,
            });
            let there: Vec<_> = there.collect();
            super::operator(self.object, &there, task, &Budget::of(1)).map(drop)
        })
    }

    fn check(&self) {
        let core = match self.field {
            Field::Real => self.by_core::<f64>(),
            Field::Complex => self.by_core::<c64>(),
        };
        for resident in [false, true] {
            let found = match self.field {
                Field::Real => self.on_device::<f32>(resident),
                Field::Complex => self.on_device::<c32>(resident),
            };
            for ((what, found), (own, expected)) in found.iter().zip(&core) {
                assert_eq!(what, own);
                let units = self.units[usize::from(what.contains("_bar") && !what.starts_with("x_bar"))];
                let case = (self.object, self.field, self.batch, self.shape, resident);
                close(found, expected, units, &format!("{what} of {case:?}"));
            }
        }
    }
}

const FIELDS: [Field; 2] = [Field::Real, Field::Complex];

#[test]
fn products_of_reflections() {
    let Some(_) = device() else { return };
    for field in FIELDS {
        for (batch, n, m, rows) in [
            (1, 1, 1, 2),
            (2, 5, 3, 4),
            (1, 7, 7, 1),
            (3, 6, 9, 2),
            (1, 40, 33, 3),
            (1, 20, 70, 2),
            (2, 12, 70, 1),
            // two pairs of blocks beside a part of one
            (1, 12, 165, 1),
            (0, 3, 2, 2),
            (1, 3, 0, 2),
            (1, 3, 2, 0),
            // sums over rows in parts
            (1, 3, 2, 600),
        ] {
            let units = 20.0 + 4.0 * n.max(m) as f64;
            let own = Case::new("householder", field, batch, [n, n], [units, 10.0 * units]);
            let own = Case { rows, ..own }.with("vectors", &[n, m], 1.0, |x| x);
            own.check();
            own.clone().with("sign", &[], 1.0, |x| x).check();
            if field == Field::Complex {
                own.with("phases", &[n], 1.0, |x| x).check();
            }
        }
    }
    // lengths of the vectors do not matter
    for length in [1e-18, 3e18] {
        let own = Case::new("householder", Field::Real, 1, [4, 4], [30.0, 300.0]);
        let own = own.with("vectors", &[4, 3], 1.0, |x| f64::from((x * length) as f32));
        let w = |results: Vec<(String, Vec<f64>)>| results.into_iter().next().unwrap().1;
        close(&w(own.on_device::<f32>(true)), &w(own.by_core::<f64>()), 30.0, "W of long and short vectors");
    }
}

#[test]
fn cayley_transforms() {
    let Some(_) = device() else { return };
    let sizes = [(1, 1), (3, 2), (5, 7), (9, 8), (2, 9), (3, 16), (2, 17), (2, 32), (1, 33), (1, 64)];
    let large = [(2, 65), (1, 130), (0, 5), (0, 100)];
    for field in FIELDS {
        for (batch, n) in sizes.into_iter().chain(large) {
            let scale = 2.0 / (n as f64).sqrt();
            let own = Case::new("cayley", field, batch, [n, n], [20.0, 40.0]);
            let own = own.with("upper", &[n * (n - 1) / 2], scale, |x| x);
            own.check();
            let signed = own.clone().with("signs", &[n], 1.0, |x| if x < 0.0 { -1.0 } else { 1.0 });
            match field {
                Field::Real => signed.check(),
                Field::Complex => {
                    own.with("diagonal", &[n], scale, |x| x).with("phases", &[n], 3.0, |x| x).check();
                    signed.check();
                }
            }
        }
    }
}

#[test]
fn matrices_and_objects_without_kernels() {
    let Some(_) = device() else { return };
    for field in FIELDS {
        for (batch, p, q) in [(1, 1, 1), (2, 5, 3), (3, 4, 33)] {
            let own = Case::new("dense", field, batch, [p, q], [40.0, 40.0]);
            own.with("weight", &[p, q], 1.0, |x| x).check();
        }
        let own = Case::new("exponential", field, 2, [6, 6], [40.0, 400.0]);
        own.with("upper", &[15], 0.5, |x| x).check();
    }
}

#[test]
fn what_is_no_argument_is_refused() {
    let Some(_) = device() else { return };
    let mut out = [0.0f32; 4];
    let mut call = |object: &str, given: &[Given<'_, f32>]| {
        super::operator(object, given, Task::Matrix(Bar::Own(&mut out)), &Budget::of(1)).map(drop)
    };
    let (shape, weight) = ([1, 2, 2], [0.0; 4]);
    let own = Given { shape: &shape, array: argument::Array::Own(&weight) };
    call("dense", &[own]).unwrap();
    assert!(call("dense", &[NONE]).is_err());
    assert!(call("none", &[own]).is_err());
    // room that no call has filled, and what is no array of this device
    let (room, other) = (Room::new(Field::Real, shape.to_vec()), 1u8);
    for remote in [argument::Array::Remote(&room), argument::Array::Remote(&other)] {
        assert!(call("dense", &[Given { shape: &shape, array: remote }]).is_err());
        assert!(call("exponential", &[Given { shape: &[1, 1], array: remote }]).is_err());
    }
}

/// Matrices that the latest calls have formed are found by the numbers that were uploaded, and bounded with these.
#[test]
fn formed_matrices_are_few() {
    use super::formed::{Key, NUMBERS, find, keep};
    let Some(context) = own() else { return };
    let each = NUMBERS / 4;
    let key = |first: f32, len: usize| {
        let mut numbers = vec![0.5; len];
        numbers[0] = first;
        let array = Array::upload(&context, Field::Real, &[1, 2, len / 2], &numbers).unwrap();
        let shape = [2, len / 2];
        let given = Given { shape: &shape, array: argument::Array::Own(&numbers) };
        let mut key = Key::new("householder", &[given])?;
        key.push(Some(&(array, Some(numbers.clone().into()))));
        Some(key)
    };
    for first in [0.0, 1.0, 2.0, 3.0, 4.0, 5.0] {
        let w = Array::room(&context, Field::Real, &[1, 2, 2]).unwrap();
        keep(key(first, each).unwrap(), w.clone());
        let found = find(&context, &key(first, each).unwrap()).unwrap();
        assert!(Arc::ptr_eq(found.memory(), w.memory()));
    }
    let kept =
        [0.0, -0.0, 2.0, 3.0, 4.0, 5.0].map(|first| find(&context, &key(first, each).unwrap()).is_some());
    assert_eq!(kept, [false, false, false, true, true, true]);
    assert!(key(0.0, 2 * NUMBERS).is_none());
}

/// Every task of every object with kernels asks between its parts, of which tests have small ones.
#[test]
fn a_cancelled_call_of_an_operator_stops() {
    let Some(_) = device() else { return };
    let budget = Budget { threads: 1, cancel: &|| true };
    let n = 128;
    for (object, shape) in [
        ("dense", [1, n, n].to_vec()),
        ("cayley", [1, n * (n - 1) / 2].to_vec()),
        ("householder", [1, n, n].to_vec()),
    ] {
        let own = of_parts::<f32>(&draw(Field::Real, shape.iter().product(), 0.1, 1));
        let own = Given { shape: &shape, array: argument::Array::Own(&own) };
        let given = [&[own][..], &vec![NONE; if object == "cayley" { 3 } else { 2 }]].concat();
        let given = if object == "dense" { &given[..1] } else { &given[..] };
        let (rows, square) = ([1, 256, n], [1, n, n]);
        let numbers = vec![0.1; 256 * n];
        let x = Given { shape: &rows, array: argument::Array::Own(&numbers) };
        let ct = Given { shape: &square, array: argument::Array::Own(&numbers[..n * n]) };
        let run = |task: Task<'_, f32>| {
            let done = super::operator(object, given, task, &budget);
            assert_eq!(done, Err(isometry_core::Error::Interrupted), "{object}");
        };
        let mut room = vec![0.0; 256 * n];
        let bars = |room| {
            let mut bars = vec![Bar::Own(room)];
            bars.resize_with(given.len(), || Bar::None);
            bars
        };
        run(Task::Apply(x, Side::Forward, Bar::Own(&mut room)));
        let own_bar = &mut vec![0.0; own.shape.iter().product()][..];
        run(Task::ApplyVjp([NONE, x, x], Side::Forward, bars(own_bar), Bar::None));
        if object != "dense" {
            run(Task::Matrix(Bar::Own(&mut room[..n * n])));
            let own_bar = &mut vec![0.0; own.shape.iter().product()][..];
            run(Task::MatrixVjp(NONE, ct, bars(own_bar)));
        }
    }
}
