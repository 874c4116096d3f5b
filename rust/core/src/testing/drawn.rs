//! The arguments of operators, drawn.

use super::fill;
use crate::argument::{Array, Bar, Given};
use crate::scalar::{Real, Scalar, parts};

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

impl<T: Scalar> Drawn<T> {
    pub fn dense(n: usize, scale: f64) -> Self {
        Drawn { object: "dense", held: vec![(vec![n, n], Held::Own(fill(n * n, scale, 8)))] }
    }

    /// m reflections, with a sign (1), with phases (2), or without either.
    pub fn reflections(n: usize, m: usize, last: usize) -> Self {
        let sign = if last == 1 { Held::Real(vec![T::Real::of(-0.5)]) } else { Held::None };
        let phases = if last == 2 { Held::Real(fill(n, 3.0, 7)) } else { Held::None };
        let vectors = Held::Own(fill(n * m, 1.0, 8));
        Drawn { object: "householder", held: vec![(vec![n, m], vectors), (vec![], sign), (vec![n], phases)] }
    }

    /// One that acts on rows alone: a rotation, or with complex numbers transforms between diagonal matrices.
    pub fn rows(n: usize) -> Self {
        if T::PARTS == 1 {
            let own = |seed| (vec![n], Held::Real(fill(n, 1.0, seed)));
            return Drawn { object: "rotation", held: vec![own(8), own(9)] };
        }
        let permutation = (0..n as i64).rev().collect();
        let held = vec![
            (vec![3, n], Held::Real(fill(3 * n, 3.0, 8))),
            (vec![2, n], Held::Own(fill(2 * n, 1.0, 9))),
            (vec![n], Held::Integers(permutation)),
        ];
        Drawn { object: "fourier", held }
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

    /// NaN in all arrays, for their gradients.
    pub fn rooms(&self) -> Self {
        let mut rooms = self.clone();
        let nan = T::Real::of(f64::NAN);
        for (_, held) in &mut rooms.held {
            match held {
                Held::Own(own) => own.fill(T::real(nan)),
                Held::Real(real) => real.fill(nan),
                _ => {}
            }
        }
        rooms
    }

    /// The arrays as those of gradients.
    pub fn bars(&mut self) -> Vec<Bar<'_, T>> {
        self.held.iter_mut().map(|(_, held)| held.bar()).collect()
    }
}
