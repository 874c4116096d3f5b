//! Numbers that know how they were computed: the gradient of any formula, by the chain rule backwards over a tape.

use std::cell::RefCell;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// Where every number that depends on others got them, and the derivatives by them.
#[derive(Default)]
struct Tape {
    edges: Vec<(usize, f64)>,
    /// Of each number, the end of its edges.
    ends: Vec<usize>,
}

thread_local! {
    static TAPE: RefCell<Tape> = RefCell::default();
}

/// A real number; one without a place on the tape is constant.
#[derive(Clone, Copy)]
pub struct Var {
    at: Option<usize>,
    pub value: f64,
}

/// The gradient of the sum of ct x, for every number; the tape starts again.
pub fn pull(outputs: impl Iterator<Item = (Var, f64)>) -> impl Fn(Var) -> f64 {
    let tape = TAPE.take();
    let mut bars = vec![0.0; tape.ends.len()];
    outputs.for_each(|(x, ct)| x.at.into_iter().for_each(|at| bars[at] += ct));
    for at in (1..bars.len()).rev() {
        for &(from, by) in &tape.edges[tape.ends[at - 1]..tape.ends[at]] {
            bars[from] += by * bars[at];
        }
    }
    move |x| x.at.map_or(0.0, |at| bars[at])
}

impl Var {
    pub const ZERO: Var = Var::constant(0.0);
    pub const ONE: Var = Var::constant(1.0);

    pub const fn constant(value: f64) -> Self {
        Var { at: None, value }
    }

    /// One with a gradient.
    pub fn leaf(value: f64) -> Self {
        Var { at: Some(TAPE.with_borrow_mut(|tape| tape.node())), value }
    }

    /// A number with its derivatives by others.
    fn of<const N: usize>(value: f64, from: [(Var, f64); N]) -> Self {
        let edges = from.into_iter().filter_map(|(x, by)| Some((x.at?, by)));
        Var { at: TAPE.with_borrow_mut(|tape| tape.result(edges)), value }
    }

    /// Whether it is the constant zero.
    fn nothing(self) -> bool {
        self.at.is_none() && self.value == 0.0
    }

    /// The sum of sign x y.
    pub fn products(terms: impl Iterator<Item = (f64, Var, Var)>) -> Self {
        TAPE.with_borrow_mut(|tape| {
            let (mut value, start) = (0.0, tape.edges.len());
            for (sign, x, y) in terms.filter(|(_, x, y)| !x.nothing() && !y.nothing()) {
                value += sign * x.value * y.value;
                tape.edges.extend(x.at.map(|at| (at, sign * y.value)));
                tape.edges.extend(y.at.map(|at| (at, sign * x.value)));
            }
            let at = (tape.edges.len() > start).then(|| tape.node());
            Var { at, value }
        })
    }

    /// f(x), for f and its derivative.
    pub fn map(self, f: impl Fn(f64) -> f64, derivative: impl Fn(f64) -> f64) -> Self {
        Var::of(f(self.value), [(self, derivative(self.value))])
    }
    pub fn tanh(self) -> Self {
        self.map(f64::tanh, |x| 1.0 - x.tanh().powi(2))
    }
    pub fn sigma(self) -> Self {
        let sigma = |x: f64| 1.0 / (1.0 + (-x).exp());
        self.map(sigma, |x| sigma(x) * sigma(-x))
    }
    pub fn sqrt(self) -> Self {
        self.map(f64::sqrt, |x| 0.5 / x.sqrt())
    }
}

impl Tape {
    fn node(&mut self) -> usize {
        self.ends.push(self.edges.len());
        self.ends.len() - 1
    }

    fn result(&mut self, edges: impl Iterator<Item = (usize, f64)>) -> Option<usize> {
        let start = self.edges.len();
        self.edges.extend(edges);
        (self.edges.len() > start).then(|| self.node())
    }
}

impl Add for Var {
    type Output = Var;
    fn add(self, other: Var) -> Var {
        Var::of(self.value + other.value, [(self, 1.0), (other, 1.0)])
    }
}
impl Sub for Var {
    type Output = Var;
    fn sub(self, other: Var) -> Var {
        Var::of(self.value - other.value, [(self, 1.0), (other, -1.0)])
    }
}
impl Mul for Var {
    type Output = Var;
    fn mul(self, other: Var) -> Var {
        Var::of(self.value * other.value, [(self, other.value), (other, self.value)])
    }
}
impl Div for Var {
    type Output = Var;
    fn div(self, other: Var) -> Var {
        let value = self.value / other.value;
        Var::of(value, [(self, 1.0 / other.value), (other, -value / other.value)])
    }
}
impl Neg for Var {
    type Output = Var;
    fn neg(self) -> Var {
        self.map(|x| -x, |_| -1.0)
    }
}

/// A complex number; the imaginary part of a real one is a constant zero.
#[derive(Clone, Copy)]
pub struct Z {
    pub re: Var,
    pub im: Var,
}

impl Z {
    pub const ZERO: Z = Z::real(Var::ZERO);
    pub const ONE: Z = Z::real(Var::ONE);

    pub const fn real(re: Var) -> Self {
        Z { re, im: Var::ZERO }
    }

    /// The sum of x y.
    pub fn dot(x: &[Z], y: &[Z]) -> Self {
        let pairs = || x.iter().zip(y);
        let re = Var::products(pairs().flat_map(|(x, y)| [(1.0, x.re, y.re), (-1.0, x.im, y.im)]));
        let im = Var::products(pairs().flat_map(|(x, y)| [(1.0, x.re, y.im), (1.0, x.im, y.re)]));
        Z { re, im }
    }

    /// Both parts by a function of real numbers.
    pub fn apart(self, f: impl Fn(Var) -> Var) -> Self {
        let im = if self.im.nothing() { self.im } else { f(self.im) };
        Z { re: f(self.re), im }
    }
    pub fn scale(self, by: Var) -> Self {
        self.apart(|part| part * by)
    }
    pub fn tanh(self) -> Self {
        self.apart(Var::tanh)
    }
    pub fn sigma(self) -> Self {
        self.apart(Var::sigma)
    }
}

impl Add for Z {
    type Output = Z;
    fn add(self, other: Z) -> Z {
        Z { re: self.re + other.re, im: self.im + other.im }
    }
}
impl Sub for Z {
    type Output = Z;
    fn sub(self, other: Z) -> Z {
        Z { re: self.re - other.re, im: self.im - other.im }
    }
}
impl Mul for Z {
    type Output = Z;
    fn mul(self, other: Z) -> Z {
        Z::dot(&[self], &[other])
    }
}

/// Numbers with a gradient, from `each` parts of every one: 1, or 2 of complex ones.
pub fn leaves(parts: &[f64], each: usize) -> Vec<Z> {
    let one =
        |part: &[f64]| Z { re: Var::leaf(part[0]), im: part.get(1).map_or(Var::ZERO, |&im| Var::leaf(im)) };
    parts.chunks_exact(each).map(one).collect()
}

/// `f` of `each` parts of every number.
pub fn flat(numbers: &[Z], each: usize, f: impl Fn(Var) -> f64) -> Vec<f64> {
    numbers.iter().flat_map(|z| [z.re, z.im].into_iter().take(each)).map(f).collect()
}

/// A x for A with rows as long as x.
pub fn times(a: &[Z], x: &[Z]) -> Vec<Z> {
    a.chunks(x.len()).map(|row| Z::dot(row, x)).collect()
}

/// Element by element.
pub fn sum(a: &[Z], b: &[Z]) -> Vec<Z> {
    a.iter().zip(b).map(|(&a, &b)| a + b).collect()
}
