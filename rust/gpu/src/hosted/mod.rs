//! Operators whose arrays are the caller's: uploaded, computed on the device, downloaded. Objects without
//! kernels on the device, and arguments for which the kernels are not accurate, go through their matrix,
//! which the CPU forms.

mod cell;
mod gated;
mod lstm;
mod recurrence;
mod rum;
pub mod sequence;
mod uploads;

use crate::array::zeros;
use crate::objects::{OBJECTS, holds, view};
use crate::{Array, Field};
use isometry_core::argument::{self, Argument, Bar};
use isometry_core::internal::sizes::size;
use isometry_core::scalar::{Scalar, parts_mut};
use isometry_core::{Budget, Cpu, Operator, Saves, Side};
use isometry_core::{Error, Result};
use std::any::TypeId;
use std::sync::OnceLock;
use uploads::Uploads;

/// An operator of the core that computes on the device.
pub struct Hosted<'a, T: Scalar> {
    object: &'a str,
    operator: Box<dyn Cpu<T> + 'a>,
    has_kernels: OnceLock<bool>,
}

/// An object with kernels, and its arguments on the device.
struct Held<'o, T> {
    object: &'o str,
    arrays: Vec<Option<Array>>,
    /// The matrix, if the CPU has formed it.
    formed: Vec<T>,
}

impl<T> Held<'_, T> {
    fn given(&self) -> Vec<Option<&Array>> {
        self.arrays.iter().map(Option::as_ref).collect()
    }
}

impl<'a, T: Scalar> Hosted<'a, T> {
    /// The operator of an object, in single precision.
    pub fn new(object: &'a str, operator: Box<dyn Cpu<T> + 'a>) -> Result<Self> {
        field_of::<T>()?;
        Ok(Hosted { object, operator, has_kernels: OnceLock::new() })
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

    /// The operator on the device; where its kernels are not used, its matrix, which the CPU forms.
    fn transition<'b>(&'b self, uploads: &mut Uploads<'b>, budget: &Budget<'_>) -> Result<Held<'b, T>> {
        if !self.has_kernels()? {
            let formed = self.formed(budget)?;
            let arrays = vec![Some(self.matrices(uploads, &formed)?)];
            return Ok(Held { object: "dense", arrays, formed });
        }
        let (batch, (n, _)) = (self.operator.batch(), self.operator.shape());
        let one = |(i, argument): (usize, &Argument)| {
            let shape = |len: usize| axes(argument, len, batch, n);
            match self.operator.argument(i) {
                argument::Array::None => Ok(None),
                argument::Array::Own(x) => uploads.own(x, &shape(x.len())).map(Some),
                argument::Array::Real(x) => uploads.real(x, &shape(x.len())).map(Some),
                argument::Array::Integers(_) => {
                    Err(Error::Device(format!("{} holds integers", argument.name)))
                }
            }
        };
        let arrays = self.operator.arguments().iter().enumerate().map(one).collect::<Result<_>>()?;
        Ok(Held { object: self.object, arrays, formed: vec![] })
    }

    fn rows(&self, uploads: &Uploads<'_>, x: &[T], rows: usize, n: usize) -> Result<Array> {
        uploads.made(x, &[self.operator.batch(), rows, n])
    }

    fn matrices(&self, uploads: &Uploads<'_>, w: &[T]) -> Result<Array> {
        let (p, q) = self.operator.shape();
        uploads.made(w, &[self.operator.batch(), p, q])
    }

    /// W, by the CPU.
    fn formed(&self, budget: &Budget<'_>) -> Result<Vec<T>> {
        let (p, q) = self.operator.shape();
        let mut w = zeros(size("matrix", &[self.operator.batch(), p, q])?)?;
        self.operator.matrix(&mut w, None, budget)?;
        Ok(w)
    }

    /// The gradients of the arguments from W and its gradient, by the CPU.
    fn pull_formed(&self, w: &[T], w_bar: &[T], bars: &mut [Bar<'_, T>], budget: &Budget<'_>) -> Result<()> {
        let saved = self.operator.matrix_saves()? == Saves::Result;
        self.operator.matrix_vjp(saved.then_some(w), w_bar, bars, budget)
    }
}

/// The axes of an argument: the batch, n_out, and what is left.
fn axes(argument: &Argument, len: usize, batch: usize, n: usize) -> Vec<usize> {
    let each = len / batch.max(1);
    match argument.rank() {
        0 => vec![batch],
        1 => vec![batch, each],
        _ => vec![batch, n, each / n.max(1)],
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
        let held = self.transition(&mut Uploads::new()?, budget)?;
        fetch(&view(held.object, &held.given())?.matrix()?, out, budget)
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
        let mut uploads = Uploads::new()?;
        let held = self.transition(&mut uploads, budget)?;
        let w = saved.map(|saved| self.matrices(&uploads, saved)).transpose()?;
        let ct = self.matrices(&uploads, ct)?;
        let found = view(held.object, &held.given())?.matrix_vjp(w.as_ref(), &ct, &wanted(bars))?;
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
        let mut uploads = Uploads::new()?;
        let held = self.transition(&mut uploads, budget)?;
        let x = self.rows(&uploads, x, rows, self.features(side).0)?;
        fetch(&view(held.object, &held.given())?.apply(&x, side)?, out, budget)
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
        let mut uploads = Uploads::new()?;
        let held = self.transition(&mut uploads, budget)?;
        let (x, ct) = (self.rows(&uploads, x, rows, from)?, self.rows(&uploads, ct, rows, into)?);
        let wanted = wanted(bars);
        let through = !self.has_kernels()?;
        let own = if through { vec![wanted.contains(&true)] } else { wanted };
        let pulled = view(held.object, &held.given())?.apply_vjp(&x, &ct, side, &own, x_bar.is_some())?;
        let mut copies = Copies::new();
        let mut w_bar = vec![];
        match pulled.arguments.first() {
            Some(Some(found)) if through => {
                w_bar = zeros::<T>(found.len())?;
                copies.push((found, single_mut(parts_mut(&mut w_bar))?));
            }
            _ if through => {}
            _ => collect(&pulled.arguments, bars, &mut copies)?,
        }
        if let (Some(found), Some(x_bar)) = (&pulled.x, x_bar) {
            copies.push((found, single_mut(parts_mut(x_bar))?));
        }
        Array::download_all(&mut copies, budget.cancel)?;
        if w_bar.is_empty() { Ok(()) } else { self.pull_formed(&held.formed, &w_bar, bars, budget) }
    }
}
