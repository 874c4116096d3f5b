//! The arguments of an object: one list per object declares them, for every device, the seam and Python.
//!
//! Arrays are borrowed. A batch of operators has its size as the first axis of every array; the arrays of a single operator
//! may lack that axis.

pub(crate) use crate::argument;
use crate::error::{Error, Result};
use crate::parallel::{Shared, cut};
use crate::scalar::{Real, Scalar};
use crate::sizes::{check_len, work};
use std::ops::Range;

/// The numbers of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// Of the type of the matrix.
    Matrix,
    /// The same, and always complex.
    Complex,
    /// Real, also where the matrix is complex.
    Real,
    /// Real angles: their e^{i angle} make the matrix complex.
    Angles,
    /// A single real number, which has no gradient.
    Number,
    /// Integers, which have no gradient.
    Integer,
    /// None: only the shape matters.
    Shape,
}

impl Kind {
    /// Whether they are real, also where the matrix is complex.
    ///
    /// ```
    /// use isometry_core::argument::Kind;
    ///
    /// assert!(Kind::Angles.real() && !Kind::Matrix.real());
    /// ```
    pub fn real(self) -> bool {
        matches!(self, Kind::Real | Kind::Angles | Kind::Number)
    }
}

/// One array argument of an object.
///
/// ```
/// use isometry_core::operators::householder::ARGUMENTS;
///
/// let [vectors, sign, phases] = ARGUMENTS else { unreachable!() };
/// assert_eq!((vectors.name, vectors.rank()), ("vectors", 2)); // n x m
/// assert_eq!((sign.rank(), phases.rank()), (0, 1)); // a number; n angles
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Its name, and in error messages the name of its gradient.
    pub name: &'static str,
    /// Name of the gradient in error messages.
    pub bar: &'static str,
    /// The axes after the batch, in the object's sizes: "n m", "n(n-1)/2", "" for a number.
    pub axes: &'static str,
    /// What its numbers are.
    pub kind: Kind,
    /// It has a gradient.
    pub trained: bool,
    /// Arguments of one group are not given together.
    pub group: &'static str,
    /// Any number of such arrays.
    pub list: bool,
    /// It may be left out.
    pub optional: bool,
}

/// An [`Argument`]: `argument!("name", "axes")` of the type of the matrix, then any of its [`Kind`] in lower case, `fixed`,
/// `list`, `optional`, `group "name"`.
///
/// ```
/// use isometry_core::argument;
/// use isometry_core::argument::{Argument, Kind};
///
/// const ARGUMENTS: &[Argument] = &[argument!("upper", "n(n-1)/2"), argument!("phases", "n", angles, group "last")];
/// assert_eq!((ARGUMENTS[1].kind, ARGUMENTS[1].trained), (Kind::Angles, true));
/// ```
#[macro_export]
macro_rules! argument {
    ($name:literal, $axes:literal $(, $key:ident $($value:literal)?)*) => {{
        #[allow(unused_mut, reason = "an argument without keywords")]
        let mut argument = $crate::argument::Argument {
            name: $name,
            bar: concat!($name, "_bar"),
            axes: $axes,
            kind: $crate::argument::Kind::Matrix,
            trained: true,
            group: "",
            list: false,
            optional: false,
        };
        $($crate::argument!(@ argument $key $($value)?);)*
        argument
    }};
    (@ $argument:ident complex) => { $argument.kind = $crate::argument::Kind::Complex };
    (@ $argument:ident real) => { $argument.kind = $crate::argument::Kind::Real };
    (@ $argument:ident angles) => { $argument.kind = $crate::argument::Kind::Angles };
    (@ $argument:ident number) => { $crate::argument!(@ $argument fixed Number) };
    (@ $argument:ident integer) => { $crate::argument!(@ $argument fixed Integer) };
    (@ $argument:ident shape) => { $crate::argument!(@ $argument fixed Shape) };
    (@ $argument:ident fixed $($kind:ident)?) => {
        $($argument.kind = $crate::argument::Kind::$kind;)?
        $argument.trained = false
    };
    (@ $argument:ident list) => { $argument.list = true };
    (@ $argument:ident optional) => { $argument.optional = true };
    (@ $argument:ident group $value:literal) => { $argument.group = $value };
}

impl Argument {
    /// Number of axes after the batch.
    pub fn rank(&self) -> usize {
        self.axes.split_whitespace().count()
    }
}

/// An array of another device, or room for one: only the crate of that device can look inside.
pub type Remote<'a> = &'a (dyn std::any::Any + Send + Sync);

/// The array of an argument, by its field.
#[derive(Clone, Copy, Debug)]
pub enum Array<'a, T: Scalar> {
    /// Not given.
    None,
    /// Of the type of the matrix.
    Own(&'a [T]),
    /// Of its real type.
    Real(&'a [T::Real]),
    /// Integers.
    Integers(&'a [i64]),
    /// On another device; no function of this crate takes it.
    Remote(Remote<'a>),
}

impl<'a, T: Scalar> Array<'a, T> {
    /// Of the type of the matrix, if it is given.
    pub(crate) fn own(array: Option<&'a [T]>) -> Self {
        array.map_or(Array::None, Array::Own)
    }

    /// Of its real type, if it is given.
    pub(crate) fn real(array: Option<&'a [T::Real]>) -> Self {
        array.map_or(Array::None, Array::Real)
    }

    /// Number of elements.
    pub(crate) fn elements(&self) -> Option<usize> {
        match self {
            Array::None | Array::Remote(_) => None,
            Array::Own(array) => Some(array.len()),
            Array::Real(array) => Some(array.len()),
            Array::Integers(array) => Some(array.len()),
        }
    }
}

/// Where the matrices `own` of `batch` have their share of so many elements.
pub(crate) fn part(elements: usize, batch: usize, own: &Range<usize>) -> Range<usize> {
    let each = elements / batch.max(1);
    own.start * each..own.end * each
}

/// The output array of an argument's gradient; it is overwritten.
///
/// ```
/// use isometry_core::argument::Bar;
///
/// let mut room = [0.0f32; 2];
/// let mut bar = Bar::<f32>::Own(&mut room);
/// if let Some(gradient) = bar.again().own() {
///     gradient.fill(1.0);
/// }
/// assert!(!bar.is_empty() && bar.real().is_none()); // it is not that of a real argument
/// assert_eq!(room, [1.0; 2]);
/// ```
#[derive(Debug, Default)]
pub enum Bar<'a, T: Scalar> {
    /// Not wanted.
    #[default]
    None,
    /// Of the type of the matrix.
    Own(&'a mut [T]),
    /// Of its real type.
    Real(&'a mut [T::Real]),
    /// On another device; no function of this crate takes it.
    Remote(Remote<'a>),
}

impl<'a, T: Scalar> Bar<'a, T> {
    /// The same array, borrowed for a shorter time.
    pub fn again(&mut self) -> Bar<'_, T> {
        match self {
            Bar::None => Bar::None,
            Bar::Own(bar) => Bar::Own(bar),
            Bar::Real(bar) => Bar::Real(bar),
            &mut Bar::Remote(room) => Bar::Remote(room),
        }
    }

    /// The room of the matrices `own` of `batch`.
    pub(crate) fn part(&mut self, batch: usize, own: &Range<usize>) -> Bar<'_, T> {
        match self {
            Bar::None => Bar::None,
            Bar::Own(bar) => {
                let own = part(bar.len(), batch, own);
                Bar::Own(&mut bar[own])
            }
            Bar::Real(bar) => {
                let own = part(bar.len(), batch, own);
                Bar::Real(&mut bar[own])
            }
            &mut Bar::Remote(room) => Bar::Remote(room),
        }
    }

    /// The room of each of `count` operators.
    #[doc(hidden)]
    pub fn each(self, count: usize) -> Vec<Bar<'a, T>> {
        match self {
            Bar::None => (0..count).map(|_| Bar::None).collect(),
            Bar::Own(bar) => {
                let each = bar.len() / count.max(1);
                cut(Some(bar), each, count).flatten().map(Bar::Own).collect()
            }
            Bar::Real(bar) => {
                let each = bar.len() / count.max(1);
                cut(Some(bar), each, count).flatten().map(Bar::Real).collect()
            }
            Bar::Remote(room) => (0..count).map(|_| Bar::Remote(room)).collect(),
        }
    }

    /// Whether nothing is to be written.
    pub fn is_empty(&self) -> bool {
        match self {
            Bar::None => true,
            Bar::Own(bar) => bar.is_empty(),
            Bar::Real(bar) => bar.is_empty(),
            Bar::Remote(_) => false,
        }
    }

    /// The array of a gradient of the type of the matrix, if it is wanted.
    pub fn own(self) -> Option<&'a mut [T]> {
        if let Bar::Own(bar) = self { Some(bar) } else { None }
    }

    /// The array of a real gradient, if it is wanted.
    pub fn real(self) -> Option<&'a mut [T::Real]> {
        if let Bar::Real(bar) = self { Some(bar) } else { None }
    }
}

impl<T: Scalar> Bar<'_, T> {
    /// The array of a gradient of the type of the matrix, if it is wanted, as members of a call share it.
    pub(crate) fn shared(self) -> Option<Shared<T>> {
        self.own().map(|bar| Shared(bar.as_mut_ptr()))
    }

    /// That of a real gradient, and its length.
    pub(crate) fn shared_real(self) -> Option<(Shared<T::Real>, usize)> {
        self.real().map(|bar| (Shared(bar.as_mut_ptr()), bar.len()))
    }
}

/// An argument as given by the caller: an array and its shape.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a, T: Scalar> {
    /// Sizes of the axes.
    pub shape: &'a [usize],
    /// The elements.
    pub array: Array<'a, T>,
}

impl<'a, T: Scalar> Given<'a, T> {
    /// Sizes of exactly N axes: the leading batch axes count as one, of size 1 where there are none.
    pub(crate) fn sizes<const N: usize>(&self, argument: &'static str) -> Result<[usize; N]> {
        let Some(batch) = (self.shape.len() + 1).checked_sub(N) else {
            let axes = N - 1;
            return Err(Error::shape(argument, format!("{axes} axes or more"), format!("{:?}", self.shape)));
        };
        let mut sizes = [work(&self.shape[..batch]); N];
        sizes[1..].copy_from_slice(&self.shape[batch..]);
        check_len(argument, self.array.elements().unwrap_or(0), &sizes)?;
        Ok(sizes)
    }

    /// The argument of the i-th operator of a batch. The batch is the first axis of the array; where its size is 1, all operators share it.
    #[doc(hidden)]
    pub fn member(&self, i: usize) -> Given<'a, T> {
        let Some((&batch, shape)) = self.shape.split_first() else { return *self };
        let own = if batch == 1 { 0..1 } else { i..i + 1 };
        let array = match self.array {
            array @ (Array::None | Array::Remote(_)) => array,
            Array::Own(array) => Array::Own(&array[part(array.len(), batch, &own)]),
            Array::Real(array) => Array::Real(&array[part(array.len(), batch, &own)]),
            Array::Integers(array) => Array::Integers(&array[part(array.len(), batch, &own)]),
        };
        Given { shape, array }
    }

    /// The elements of an argument of the type of the matrix, if it is given.
    pub(crate) fn some(&self) -> Option<&'a [T]> {
        if let Array::Own(array) = self.array { Some(array) } else { None }
    }

    /// The elements of an argument of the type of the matrix.
    pub(crate) fn own(&self, argument: &'static str) -> Result<&'a [T]> {
        if let Array::Own(array) = self.array { Ok(array) } else { Err(missing(argument)) }
    }

    /// The elements of a real argument, if it is given.
    pub(crate) fn real(&self) -> Option<&'a [T::Real]> {
        if let Array::Real(array) = self.array { Some(array) } else { None }
    }

    /// The elements of an argument of integers.
    pub(crate) fn integers(&self, argument: &'static str) -> Result<&'a [i64]> {
        let Array::Integers(array) = self.array else { return Err(Error::value(argument, "must be given")) };
        Ok(array)
    }
}

/// Gradients by the names of their arguments, all others unwanted: as a call of this list takes them.
///
/// ```
/// use isometry_core::argument::{Bar, wanted};
/// use isometry_core::recurrence::gru::ARGUMENTS;
///
/// let mut h0_bar = [0.0f32; 3];
/// let bars = wanted(ARGUMENTS, [("h0", &mut h0_bar[..])]);
/// assert!(matches!(bars[4], Bar::Own(_)) && matches!(bars[0], Bar::None));
/// ```
pub fn wanted<'a, R: Real, const N: usize>(
    arguments: &[Argument],
    named: [(&str, &'a mut [R]); N],
) -> Vec<Bar<'a, R>> {
    let mut bars: Vec<_> = arguments.iter().map(|_| Bar::None).collect();
    for (name, bar) in named {
        if let Some(at) = arguments.iter().position(|argument| argument.name == name) {
            bars[at] = if arguments[at].kind.real() { Bar::Real(bar) } else { Bar::Own(bar) };
        }
    }
    bars
}

/// The arrays of the first N gradients, none behind the last.
pub(crate) fn rooms<'s, T: Scalar, const N: usize>(bars: &'s mut [Bar<'_, T>]) -> [Bar<'s, T>; N] {
    let mut each = bars.iter_mut();
    std::array::from_fn(|_| each.next().map_or(Bar::None, Bar::again))
}

fn missing(argument: &'static str) -> Error {
    Error::value(argument, "must be given, of the type of the matrix")
}

/// The last N sizes of a shape; 0 for an argument that is not given.
pub(crate) fn tail<const N: usize>(shape: &[usize]) -> [usize; N] {
    shape.last_chunk().copied().unwrap_or([0; N])
}

/// The arguments of an object that has N of them.
pub(crate) fn all<'g, 'a, T: Scalar, const N: usize>(
    given: &'g [Given<'a, T>],
) -> Result<&'g [Given<'a, T>; N]> {
    given.try_into().map_err(|_| Error::shape("arguments", format!("{N} arrays"), given.len()))
}

/// Refuses gradients that do not fit the arguments: another number of them, other lengths or fields, or
/// gradients of arguments that were not given or are not trained.
pub(crate) fn check_bars<'a, T: Scalar>(
    arguments: &'static [Argument],
    held: impl Fn(usize) -> Array<'a, T>,
    bars: &[Bar<'_, T>],
) -> Result<()> {
    for (i, bar) in bars.iter().enumerate() {
        let Some(argument) = arguments.get(i).or(arguments.last().filter(|last| last.list)) else {
            return Err(Error::shape("bars", format!("at most {} gradients", arguments.len()), bars.len()));
        };
        let held = held(i);
        let got = match (bar, held) {
            (Bar::None, _) => continue,
            (Bar::Own(bar), Array::Own(_)) => bar.len(),
            (Bar::Real(bar), Array::Real(_)) => bar.len(),
            _ => return Err(Error::value(argument.bar, "is wanted, but there is no such argument")),
        };
        if !argument.trained {
            return Err(Error::value(argument.bar, "is wanted, but the argument is fixed"));
        }
        check_len(argument.bar, got, &[held.elements().unwrap_or(0)])?;
    }
    Ok(())
}
