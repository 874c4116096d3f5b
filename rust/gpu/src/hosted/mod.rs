//! Operators whose arrays are the caller's: uploaded, computed on the device, downloaded. Objects without
//! kernels on the device, and arguments for which the kernels are not accurate, go through their matrix,
//! which the CPU forms.

mod recurrence;

use crate::array::zeros;
use crate::dense::Dense;
use crate::device::{Context, context};
use crate::objects::{OBJECTS, holds, view};
use crate::operator::Operator as _;
use crate::{Array, Field};
use isometry_core::argument::{self, Argument, Bar};
use isometry_core::error::{Error, Result};
use isometry_core::scalar::{Scalar, parts, parts_mut};
use isometry_core::sizes::size;
use isometry_core::{Budget, Cpu, Operator, Saves, Side};
use std::any::TypeId;
use std::sync::{Arc, OnceLock};

/// An operator of the core that computes on the device.
pub struct Hosted<'a, T: Scalar> {
    object: &'a str,
    operator: Box<dyn Cpu<T> + 'a>,
    field: Field,
    context: OnceLock<Arc<Context>>,
    has_kernels: OnceLock<bool>,
}

impl<'a, T: Scalar> Hosted<'a, T> {
    /// The operator of an object, in single precision.
    pub fn new(object: &'a str, operator: Box<dyn Cpu<T> + 'a>) -> Result<Self> {
        let field = field_of::<T>()?;
        Ok(Hosted { object, operator, field, context: OnceLock::new(), has_kernels: OnceLock::new() })
    }

    /// The device, opened where a call needs it.
    fn context(&self) -> Result<&Arc<Context>> {
        match self.context.get() {
            Some(context) => Ok(context),
            None => context().map(|context| self.context.get_or_init(|| context)),
        }
    }

    /// Whether the kernels of the device are used for these arguments.
    fn has_kernels(&self) -> Result<bool> {
        if let Some(&known) = self.has_kernels.get() {
            return Ok(known);
        }
        let own = OBJECTS.contains(&self.object) && !empty(&*self.operator);
        let found = own && holds(self.object, &*self.operator)?;
        Ok(*self.has_kernels.get_or_init(|| found))
    }

    /// Runs `f` on the operator of the device.
    fn on_device<R>(&self, f: impl FnOnce(&dyn crate::operator::Operator) -> Result<R>) -> Result<R> {
        let held = self.uploaded()?;
        let given: Vec<_> = held.iter().map(Option::as_ref).collect();
        f(&*view(self.object, &given)?)
    }

    /// The arguments on the device.
    fn uploaded(&self) -> Result<Vec<Option<Array>>> {
        let (batch, (n, _)) = (self.operator.batch(), self.operator.shape());
        let one = |(i, argument): (usize, &Argument)| match self.operator.argument(i) {
            argument::Array::None => Ok(None),
            argument::Array::Own(x) => {
                self.sent(argument, x.len(), batch, n, self.field, single(parts(x))?).map(Some)
            }
            argument::Array::Real(x) => {
                self.sent(argument, x.len(), batch, n, Field::Real, single(x)?).map(Some)
            }
            argument::Array::Integers(_) => Err(Error::Device(format!("{} holds integers", argument.name))),
        };
        self.operator.arguments().iter().enumerate().map(one).collect()
    }

    /// An argument with its axes: the batch, n_out, and what is left.
    fn sent(
        &self,
        argument: &Argument,
        len: usize,
        batch: usize,
        n: usize,
        field: Field,
        x: &[f32],
    ) -> Result<Array> {
        let each = len / batch.max(1);
        let shape = match argument.rank() {
            0 => vec![batch],
            1 => vec![batch, each],
            _ => vec![batch, n, each / n.max(1)],
        };
        Array::upload(self.context()?, field, &shape, x)
    }

    fn rows(&self, x: &[T], rows: usize, n: usize) -> Result<Array> {
        Array::upload(self.context()?, self.field, &[self.operator.batch(), rows, n], single(parts(x))?)
    }

    fn matrices(&self, w: &[T]) -> Result<Array> {
        let (p, q) = self.operator.shape();
        Array::upload(self.context()?, self.field, &[self.operator.batch(), p, q], single(parts(w))?)
    }

    /// W, by the CPU.
    fn formed(&self, budget: &Budget<'_>) -> Result<Vec<T>> {
        let (p, q) = self.operator.shape();
        let mut w = zeros(size("matrix", &[self.operator.batch(), p, q])?)?;
        self.operator.matrix(&mut w, None, budget)?;
        Ok(w)
    }
}

/// Whether there is nothing to compute; the CPU handles this case.
fn empty<T: Scalar>(operator: &dyn Cpu<T>) -> bool {
    let (p, q) = operator.shape();
    operator.batch() == 0 || p == 0 || q == 0
}

/// float32 or complex64.
pub fn field_of<T: Scalar>() -> Result<Field> {
    if TypeId::of::<T::Real>() != TypeId::of::<f32>() {
        let text = "the GPU computes in float32 and complex64: convert the arrays, or use backend=\"cpu\"";
        return Err(Error::Dtype(text.into()));
    }
    Ok(if T::PARTS == 2 { Field::Complex } else { Field::Real })
}

/// The numbers of a type that was found to be f32.
fn single<R: 'static>(x: &[R]) -> Result<&[f32]> {
    if TypeId::of::<R>() != TypeId::of::<f32>() {
        return Err(Error::Device("not single precision".into()));
    }
    // SAFETY: R is f32.
    Ok(unsafe { std::slice::from_raw_parts(x.as_ptr().cast(), x.len()) })
}

fn single_mut<R: 'static>(x: &mut [R]) -> Result<&mut [f32]> {
    if TypeId::of::<R>() != TypeId::of::<f32>() {
        return Err(Error::Device("not single precision".into()));
    }
    // SAFETY: R is f32.
    Ok(unsafe { std::slice::from_raw_parts_mut(x.as_mut_ptr().cast(), x.len()) })
}

fn fetch<T: Scalar>(array: &Array, out: &mut [T], budget: &Budget<'_>) -> Result<()> {
    array.download_into(single_mut(parts_mut(out))?, budget.cancel)
}

/// Arrays of the device with the caller's arrays, to which they are copied together, with one wait.
type Copies<'a> = Vec<(&'a Array, &'a mut [f32])>;

fn wanted<T: Scalar>(bars: &[Bar<'_, T>]) -> Vec<bool> {
    bars.iter().map(|bar| !matches!(bar, Bar::None)).collect()
}

/// Collects the gradients that were wanted; where there is none it is 0.
fn collect<'a, T: Scalar>(
    found: &'a [Option<Array>],
    bars: &'a mut [Bar<'_, T>],
    copies: &mut Copies<'a>,
) -> Result<()> {
    for (bar, found) in bars.iter_mut().zip(found.iter().chain(std::iter::repeat(&None))) {
        match (bar, found) {
            (Bar::Own(bar), Some(found)) => copies.push((found, single_mut(parts_mut(bar))?)),
            (Bar::Real(bar), Some(found)) => copies.push((found, single_mut(bar)?)),
            (Bar::Own(bar), None) => bar.fill(T::zero()),
            (Bar::Real(bar), None) => single_mut(bar)?.fill(0.0),
            (Bar::None, _) => {}
        }
    }
    Ok(())
}

impl<T: Scalar> Operator<T> for Hosted<'_, T> {
    fn sizes(&self) -> [usize; 3] {
        self.operator.sizes()
    }
    fn arguments(&self) -> &'static [Argument] {
        self.operator.arguments()
    }
    fn argument(&self, i: usize) -> argument::Array<'_, T> {
        self.operator.argument(i)
    }
}

impl<T: Scalar> Cpu<T> for Hosted<'_, T> {
    /// W, if the gradient starts from it.
    fn matrix_saves(&self) -> Result<Saves> {
        match self.operator.matrix_saves()? {
            Saves::Result => Ok(Saves::Result),
            own if !self.has_kernels()? => Ok(own),
            Saves::Elements(_) => Ok(Saves::Elements(0)),
        }
    }

    fn matrix(&self, out: &mut [T], saved: Option<&mut [T]>, budget: &Budget<'_>) -> Result<()> {
        self.check_matrix("out", out)?;
        if !self.has_kernels()? {
            return self.operator.matrix(out, saved, budget);
        }
        fetch(&self.on_device(|operator| operator.matrix())?, out, budget)
    }

    fn matrix_vjp(
        &self,
        saved: Option<&[T]>,
        ct: &[T],
        bars: &mut [Bar<'_, T>],
        budget: &Budget<'_>,
    ) -> Result<()> {
        self.check_matrix("ct", ct)?;
        self.check_bars(bars)?;
        if !self.has_kernels()? {
            return self.operator.matrix_vjp(saved, ct, bars, budget);
        }
        let (ct, wanted) = (self.matrices(ct)?, wanted(bars));
        let found = self.on_device(|operator| {
            let w = saved.map(|saved| self.matrices(saved)).transpose()?;
            operator.matrix_vjp(w.as_ref(), &ct, &wanted)
        })?;
        let mut copies = Copies::new();
        collect(&found, bars, &mut copies)?;
        Array::download_all(&mut copies, budget.cancel)
    }

    fn apply_saves(&self, _rows: usize, _side: Side) -> Result<Saves> {
        Ok(Saves::Elements(0))
    }

    fn apply(
        &self,
        x: &[T],
        rows: usize,
        side: Side,
        out: &mut [T],
        _saved: Option<&mut [T]>,
        budget: &Budget<'_>,
    ) -> Result<()> {
        self.check_rows(x, rows, side, out)?;
        if empty(&*self.operator) || rows == 0 {
            return self.operator.apply(x, rows, side, out, None, budget);
        }
        let x = self.rows(x, rows, self.features(side).0)?;
        if !self.has_kernels()? {
            let w = self.matrices(&self.formed(budget)?)?;
            return fetch(&Dense::new(&w)?.apply(&x, side)?, out, budget);
        }
        fetch(&self.on_device(|operator| operator.apply(&x, side))?, out, budget)
    }

    fn apply_vjp(
        &self,
        _saved: Option<&[T]>,
        x: &[T],
        ct: &[T],
        rows: usize,
        side: Side,
        bars: &mut [Bar<'_, T>],
        x_bar: Option<&mut [T]>,
        budget: &Budget<'_>,
    ) -> Result<()> {
        self.check_pull(x, ct, rows, side, x_bar.as_deref())?;
        self.check_bars(bars)?;
        if empty(&*self.operator) || rows == 0 {
            return self.operator.apply_vjp(None, x, ct, rows, side, bars, x_bar, budget);
        }
        let (from, into) = self.features(side);
        let (x, ct) = (self.rows(x, rows, from)?, self.rows(ct, rows, into)?);
        let wanted = wanted(bars);
        let x_wanted = x_bar.is_some();
        let pulled = if self.has_kernels()? {
            self.on_device(|operator| operator.apply_vjp(&x, &ct, side, &wanted, x_wanted))?
        } else {
            let formed = self.formed(budget)?;
            let w = self.matrices(&formed)?;
            let some = wanted.contains(&true);
            let pulled = Dense::new(&w)?.apply_vjp(&x, &ct, side, &[some], x_wanted)?;
            if let Some(Some(w_bar)) = pulled.arguments.first() {
                let mut host = zeros::<T>(formed.len())?;
                fetch(w_bar, &mut host, budget)?;
                let saved = (self.operator.matrix_saves()? == Saves::Result).then_some(&formed[..]);
                self.operator.matrix_vjp(saved, &host, bars, budget)?;
            }
            pulled
        };
        let mut copies = Copies::new();
        if self.has_kernels()? {
            collect(&pulled.arguments, bars, &mut copies)?;
        }
        if let (Some(found), Some(x_bar)) = (&pulled.x, x_bar) {
            copies.push((found, single_mut(parts_mut(x_bar))?));
        }
        Array::download_all(&mut copies, budget.cancel)
    }
}
