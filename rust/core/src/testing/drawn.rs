//! The arguments of operators, drawn.

use super::fill;
use crate::argument::{Argument, Array, Bar, Given, Kind};
use crate::operators::OBJECTS;
use crate::scalar::{Real, Scalar, parts, parts_mut};
use num_traits::Float;

/// The array of an argument.
#[derive(Clone, Debug)]
pub enum Held<T: Scalar> {
    None,
    Own(Vec<T>),
    Real(Vec<T::Real>),
    Integers(Vec<i64>),
}

impl<T: Scalar> Held<T> {
    pub fn array(&self) -> Array<'_, T> {
        match self {
            Held::None => Array::None,
            Held::Own(own) => Array::Own(own),
            Held::Real(real) => Array::Real(real),
            Held::Integers(integers) => Array::Integers(integers),
        }
    }

    pub fn bar(&mut self) -> Bar<'_, T> {
        match self {
            Held::Own(own) => Bar::Own(own),
            Held::Real(real) => Bar::Real(real),
            _ => Bar::None,
        }
    }

    /// Sets as many real and imaginary parts.
    pub fn set(&mut self, numbers: &[f64]) {
        let set = |x: &mut [T::Real]| x.iter_mut().zip(numbers).for_each(|(x, &by)| *x = T::Real::of(by));
        match self {
            Held::Own(own) => set(parts_mut(own)),
            Held::Real(real) => set(real),
            _ => {}
        }
    }

    /// Its real and imaginary parts; none of integers.
    pub fn numbers(&self) -> Vec<f64> {
        let wide = |x: &[T::Real]| x.iter().map(|x| x.f64()).collect();
        match self {
            Held::Own(own) => wide(parts(own)),
            Held::Real(real) => wide(real),
            _ => vec![],
        }
    }
}

/// An object with arguments of its own.
#[derive(Clone, Debug)]
pub struct Drawn<T: Scalar> {
    pub object: &'static str,
    pub held: Vec<(Vec<usize>, Held<T>)>,
}

/// The share of matrix k in an array of `batch`.
pub fn part<X>(x: &[X], k: usize, batch: usize) -> &[X] {
    let each = x.len() / batch;
    &x[k * each..(k + 1) * each]
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn list(object: &str) -> &'static [Argument] {
    OBJECTS.iter().find(|(name, _)| *name == object).unwrap().1
}

impl<T: Scalar> Drawn<T> {
    pub fn dense(n: usize, scale: f64) -> Self {
        Drawn { object: "dense", held: vec![(vec![n, n], Held::Own(fill(n * n, scale, 8)))] }
    }

    /// m reflections, with a sign (1), with phases of a complex type (2), or without either.
    pub fn reflections(n: usize, m: usize, last: usize) -> Self {
        let sizes = [&[n, m][..], &[], &[n]];
        Self::stack("householder", &sizes[..1 + last], 1).unwrap().member(0)
    }

    /// One that acts on rows alone: a rotation, or with complex numbers transforms between diagonal matrices.
    pub fn rows(n: usize) -> Self {
        let drawn = match T::PARTS {
            1 => Self::stack("rotation", &[&[n], &[n]], 1),
            _ => Self::stack("fourier", &[&[3, n], &[2, n], &[n]], 1),
        };
        drawn.unwrap().member(0)
    }

    /// A stack with arguments of these shapes for each matrix, each entry of a list a factor; an argument without a shape is absent.
    /// Where all have a shape, only that form of the last factor is drawn which the type has. None for an object whose matrices are
    /// complex, if the type is real.
    pub fn stack(object: &'static str, sizes: &[&[usize]], batch: usize) -> Option<Self> {
        let list = list(object);
        let whole = sizes.len() == list.len();
        let draw = |(i, shape): (usize, &&[usize])| {
            let (argument, len) = (list.get(i).or(list.last())?, batch * shape.iter().product::<usize>());
            let numbers = || fill::<T::Real>(len, 3.0, 7 + i as u64);
            let (real, n) = (T::PARTS == 1, (*shape.last().unwrap_or(&1)).max(1));
            // multiples of a number that has an inverse modulo n, each matrix further on
            let times = (2..).find(|&by| gcd(by, n) == 1).unwrap_or(1);
            let place = |at: usize| (at % n * times + at / n) % n;
            let of = sizes[0][0];
            let pair = |at: usize| (at / 2 % of + at % 2 * (1 + at / 2 / of % (of - 1))) % of;
            let held = match (object, argument.name) {
                ("householder", "sign") if !real && whole => Held::None,
                ("householder", "sign") => Held::Real(vec![T::Real::of(-0.5); batch]),
                ("bounded_svd", "margin") => Held::Real(vec![T::Real::of(1.0); batch]),
                ("cayley" | "exponential", "diagonal") if real => Held::None,
                ("givens", "pairs") => Held::Integers((0..len).map(|at| pair(at) as i64).collect()),
                _ => match argument.kind {
                    Kind::Integer => Held::Integers((0..len).map(|at| place(at) as i64).collect()),
                    Kind::Complex if real => return None,
                    Kind::Angles if real && i == 0 => return None,
                    Kind::Angles if real => Held::None,
                    Kind::Real if argument.trained => Held::Real(numbers()),
                    Kind::Real if real || !whole => {
                        Held::Real(numbers().iter().map(|x| Float::signum(*x)).collect())
                    }
                    Kind::Real => Held::None,
                    Kind::Angles => Held::Real(numbers()),
                    _ => Held::Own(fill(len, 1.0, 7 + i as u64)),
                },
            };
            Some(([&[batch], *shape].concat(), held))
        };
        let mut held = sizes.iter().enumerate().map(draw).collect::<Option<Vec<_>>>()?;
        held.extend((held.len()..list.len()).map(|_| (vec![batch], Held::None)));
        Some(Drawn { object, held })
    }

    /// Matrix k of a stack.
    pub fn member(&self, k: usize) -> Self {
        let one = |(shape, held): &(Vec<usize>, Held<T>)| {
            let batch = shape[0];
            let held = match held {
                Held::None => Held::None,
                Held::Own(x) => Held::Own(part(x, k, batch).to_vec()),
                Held::Real(x) => Held::Real(part(x, k, batch).to_vec()),
                Held::Integers(x) => Held::Integers(part(x, k, batch).to_vec()),
            };
            (shape[1..].to_vec(), held)
        };
        Drawn { object: self.object, held: self.held.iter().map(one).collect() }
    }

    pub fn given(&self) -> Vec<Given<'_, T>> {
        self.held.iter().map(|(shape, held)| Given { shape, array: held.array() }).collect()
    }

    /// In double precision.
    pub fn wide(&self) -> Drawn<T::Wide> {
        let wide = |held: &Held<T>| match held {
            Held::None => Held::None,
            Held::Own(own) => Held::Own(super::wide(own)),
            Held::Real(real) => Held::Real(super::wide(real)),
            Held::Integers(integers) => Held::Integers(integers.clone()),
        };
        Drawn {
            object: self.object,
            held: self.held.iter().map(|(shape, held)| (shape.clone(), wide(held))).collect(),
        }
    }

    /// NaN in all arrays that have a gradient, and no others.
    pub fn rooms(&self) -> Self {
        let (mut rooms, list) = (self.clone(), list(self.object));
        let nan = T::Real::of(f64::NAN);
        for (i, (_, held)) in rooms.held.iter_mut().enumerate() {
            match held {
                _ if !list.get(i).or(list.last()).is_some_and(|argument| argument.trained) => {
                    *held = Held::None
                }
                Held::Own(own) => own.fill(T::real(nan)),
                Held::Real(real) => real.fill(nan),
                _ => {}
            }
        }
        rooms
    }

    /// The numbers of every array.
    pub fn numbers(&self) -> Vec<Vec<f64>> {
        self.held.iter().map(|(_, held)| held.numbers()).collect()
    }

    /// The arrays as those of gradients.
    pub fn bars(&mut self) -> Vec<Bar<'_, T>> {
        self.held.iter_mut().map(|(_, held)| held.bar()).collect()
    }
}
