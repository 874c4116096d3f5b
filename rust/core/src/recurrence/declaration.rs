//! What the core says of a cell: its arrays with their axes, its settings and results. Sizes, gradients, the calls of the seam and the tables
//! of Python follow from it.

use crate::argument::{Argument, Array, Given};
use crate::error::{Error, Result};
use crate::scalar::Scalar;
use crate::sizes::check_len;
use crate::transition::packed;

/// The name of an operator that is all of W.
const WHOLE: &str = "transition";
/// Most arrays of a cell.
pub(super) const MOST: usize = 10;

/// A cell.
///
/// ```
/// use isometry_core::recurrence::{CELLS, declared};
///
/// assert!(CELLS.iter().any(|cell| cell.name == "lstm"));
/// let lstm = declared("lstm")?;
/// assert_eq!((lstm.width, lstm.arguments[1].name, lstm.arguments[1].axes), (2, "w", "4n n"));
/// # Ok::<(), isometry_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Declaration {
    /// Its name in calls and graphs.
    pub name: &'static str,
    /// Its arrays, axes in T, B, d and n: x first, the state before marked steps last.
    pub arguments: &'static [Argument],
    /// Numbers and flags besides the activation.
    pub settings: &'static [&'static str],
    /// Numbers of a state, in n.
    pub width: usize,
    /// Numbers of each unit that forward saves for backward at a step: it takes an array (saved, T, B, n).
    pub saved: usize,
    /// The setting with which it saves one more.
    pub saves_more: &'static str,
    /// The setting with which it also returns a matrix for each sequence.
    pub memory: &'static str,
    /// The argument whose last matrix is an operator; "transition" where the operator is all of W.
    pub operator: &'static str,
    /// The cell of which it is the form with an operator.
    pub dense: &'static str,
    /// The arrays whose matrices a caller may pack, by their places, each with the rows of its matrices in n; a matrix that is all of
    /// W may follow.
    pub packs: &'static [(usize, &'static [usize])],
    pub(super) forms: [[Axis; 3]; MOST],
    pub(super) n_at: (usize, usize),
    pub(super) h0_at: usize,
    /// An argument that may have other axes instead.
    pub(super) also: Option<(&'static str, [Axis; 3])>,
}

/// An axis: so many times a size, or a number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    times: usize,
    /// T, B, d or n; 0 for a number.
    size: u8,
}

const NONE: Axis = Axis { times: 0, size: 0 };

impl Axis {
    /// Its size for T, B, d and n.
    fn of(&self, [t, b, d, n]: [usize; 4]) -> usize {
        match self.size {
            b'T' => t,
            b'B' => b,
            b'd' => d,
            b'n' => n.saturating_mul(self.times),
            _ => self.times,
        }
    }
}

/// The axes of arguments, each with its rank.
const fn forms(arguments: &[Argument]) -> [[Axis; 3]; MOST] {
    let (mut forms, mut i) = ([[NONE; 3]; MOST], 0);
    while i < arguments.len() {
        let text = arguments[i].axes.as_bytes();
        let (mut at, mut axis) = (0, 0);
        while at < text.len() {
            let mut own = NONE;
            while at < text.len() && text[at].is_ascii_digit() {
                own.times = 10 * own.times + (text[at] - b'0') as usize;
                at += 1;
            }
            if at < text.len() && text[at] != b' ' {
                own.size = text[at];
                own.times = if own.times == 0 { 1 } else { own.times };
                at += 1;
            }
            forms[i][axis] = own;
            axis += 1;
            at += 1;
        }
        i += 1;
    }
    forms
}

/// The first array that has an axis n, and which axis it is.
const fn n_at(forms: &[[Axis; 3]; MOST]) -> (usize, usize) {
    let mut i = 0;
    while i < MOST {
        let mut axis = 0;
        while axis < 3 {
            if forms[i][axis].size == b'n' && forms[i][axis].times == 1 {
                return (i, axis);
            }
            axis += 1;
        }
        i += 1;
    }
    panic!("no array has an axis n");
}

/// The position of h0.
const fn h0_at(arguments: &[Argument]) -> usize {
    let mut i = 0;
    while i < arguments.len() {
        if let [b'h', b'0'] = arguments[i].name.as_bytes() {
            return i;
        }
        i += 1;
    }
    panic!("a cell has an initial state");
}

impl Declaration {
    /// A cell that saves nothing and has no settings, with these arguments: the last two are activation_bias and start_state.
    pub(super) const fn new(name: &'static str, arguments: &'static [Argument]) -> Self {
        let forms = forms(arguments);
        Declaration {
            name,
            arguments,
            settings: &[],
            width: 1,
            saved: 0,
            saves_more: "",
            memory: "",
            operator: "",
            dense: "",
            packs: &[],
            n_at: n_at(&forms),
            h0_at: h0_at(arguments),
            forms,
            also: None,
        }
    }

    /// The same, where an argument may have the axes of another one instead.
    pub(super) const fn also(mut self, name: &'static str, other: usize) -> Self {
        self.also = Some((name, self.forms[other]));
        self
    }

    /// T, B, d and n of arrays in the order of the arguments. A first axis of 1 may be missing, that of a single step or sequence; and
    /// T where one array serves all steps.
    ///
    /// # Errors
    /// Another number of arrays, one that is missing, shapes that do not fit.
    #[doc(hidden)]
    pub fn sizes<T: Scalar>(&self, given: &[Given<'_, T>]) -> Result<[usize; 4]> {
        if given.len() != self.arguments.len() {
            return Err(Error::shape("arrays", format!("{} arrays", self.arguments.len()), given.len()));
        }
        let (steps, batch, features) = match *given[0].shape {
            [steps, batch, features] => (steps, batch, features),
            [batch, features] => (1, batch, features),
            _ => return Err(Error::shape("x", "the axes T B d", format!("shape {:?}", given[0].shape))),
        };
        let n = given[self.n_at.0].shape.get(self.n_at.1).copied().unwrap_or(0);
        let sizes = [steps, batch, features, n];
        let each = self.arguments.iter().zip(&self.forms).zip(given);
        for ((argument, form), given) in each.skip(1) {
            match given.array {
                Array::None if argument.optional => {}
                Array::None => return Err(Error::value(argument.name, "must be given")),
                _ => fits(argument, form, given.shape, sizes).or_else(|error| match &self.also {
                    Some((name, form)) if *name == argument.name => {
                        fits(argument, form, given.shape, sizes).map_err(|_| error)
                    }
                    _ => Err(error),
                })?,
            }
        }
        Ok(sizes)
    }

    /// The shape of an argument for T, B, d and n; None for one without declared axes.
    #[doc(hidden)]
    pub fn shape(&self, argument: usize, sizes: [usize; 4]) -> Option<Vec<usize>> {
        let axes = self.forms[argument].iter().take_while(|axis| axis.times > 0);
        let shape: Vec<_> = axes.map(|axis| axis.of(sizes)).collect();
        (!shape.is_empty()).then_some(shape)
    }

    /// The place of h0.
    #[doc(hidden)]
    pub fn h0_at(&self) -> usize {
        self.h0_at
    }

    /// The places of its own arrays: those besides x, h0, the bias of the activation and the state before marked steps.
    pub(super) fn own(&self) -> impl Iterator<Item = usize> + use<> {
        let h0_at = self.h0_at;
        (1..self.arguments.len() - 2).filter(move |i| *i != h0_at)
    }

    /// Refuses another number of elements of an argument.
    pub(super) fn check_len(&self, argument: usize, len: usize, sizes: [usize; 4]) -> Result<()> {
        let name = self.arguments[argument].name;
        let check = |form: &[Axis; 3]| {
            check_len(name, len, &form.map(|axis| if axis.times == 0 { 1 } else { axis.of(sizes) }))
        };
        check(&self.forms[argument]).or_else(|error| match &self.also {
            Some((other, form)) if *other == name => check(form).map_err(|_| error),
            _ => Err(error),
        })
    }

    /// Rows and columns of the matrices that a caller may pack.
    pub(super) fn packed(&self, [_, _, d, n]: [usize; 4]) -> impl Iterator<Item = [usize; 2]> {
        let declared = self.packs.iter().flat_map(move |(array, matrices)| {
            let last = self.forms[*array].iter().rfind(|axis| axis.times > 0);
            let columns = if last.is_some_and(|axis| axis.size == b'd') { d } else { n };
            matrices.iter().map(move |rows| [rows.saturating_mul(n), columns])
        });
        declared.chain((self.operator == WHOLE).then_some([n, n]))
    }

    /// Refuses another length of these matrices, packed one after the other; W of an operator may be missing.
    pub(super) fn check_packs<T: Scalar>(&self, len: usize, sizes: [usize; 4]) -> Result<()> {
        let (mut all, mut but_last) = (0usize, 0);
        for [n, k] in self.packed(sizes) {
            (but_last, all) = (all, all.saturating_add(packed::<T>(n, k)));
        }
        if self.operator == WHOLE && len == but_last { Ok(()) } else { check_len("packs", len, &[all]) }
    }

    /// Numbers of each unit that forward saves for backward at a step, with these settings.
    #[doc(hidden)]
    pub fn saves(&self, settings: &[f64]) -> usize {
        self.saved + usize::from(self.set(self.saves_more, settings))
    }

    /// Whether a setting of this name is given and not zero.
    fn set(&self, name: &str, settings: &[f64]) -> bool {
        let at = self.settings.iter().position(|own| *own == name);
        at.and_then(|at| settings.get(at)).is_some_and(|setting| !setting.is_nan() && *setting != 0.0)
    }

    /// h0 among arrays in the order of the arguments.
    pub(super) fn h0<'g, A>(&self, arrays: &'g [A]) -> &'g A {
        &arrays[self.h0_at]
    }
}

/// Refuses a shape other than that of the axes, without a first T or a first axis of 1; an array without declared axes has any.
fn fits(argument: &Argument, form: &[Axis; 3], shape: &[usize], sizes: [usize; 4]) -> Result<()> {
    let size = |axis: &Axis| axis.of(sizes);
    let all = &form[..form.iter().take_while(|axis| axis.times > 0).count()];
    let same = |axes: &[Axis]| axes.iter().map(size).eq(shape.iter().copied());
    let but_one = |axes: &[Axis]| axes.first().is_some_and(|first| size(first) == 1) && same(&axes[1..]);
    let steps = usize::from(all.first().is_some_and(|first| first.size == b'T'));
    if argument.axes.is_empty() || same(all) || same(&all[steps..]) || but_one(&all[steps..]) {
        return Ok(());
    }
    let expected: Vec<_> = all.iter().map(size).collect();
    Err(Error::shape(argument.name, format!("shape {expected:?}"), format!("{shape:?}")))
}
