//! What both directions compute of a part: its chunks, their triangles, and the states before them.

use super::chunks::Chunks;
use super::{DECAYS, Delta, LAY, MASK, PASS, SPREAD, WIDE};
use crate::device::Record;
use crate::householder::inverse::inverse_into;
use crate::product::{Operand, Product};
use crate::shader::{Shader, Variant, arrays, groups};
use crate::{Array, Field};
use isometry_core::Result;
use isometry_core::internal::sizes::work;
use std::ops::Range;

/// Where beta e^c k, e^(c_C - c) k and e^c k are in `sides`.
const SCALED: usize = 0;
const LATE: usize = 1;
pub const EARLY: usize = 2;
/// Columns of a workgroup of pass.wgsl.
const COLUMNS: usize = 16;

/// The arrays of a part, each (tasks, rows, columns) with a task for each chunk of a value head.
pub struct Part<'a> {
    pub delta: &'a Delta<'a>,
    pub chunks: &'a Chunks,
    /// The chunks that are computed.
    pub range: Range<usize>,
    /// (tasks, rows and queries, K): keys and queries.
    pub kq: Array,
    /// -W, and e^c * Q.
    pub early: Array,
    /// (3, tasks, rows, K)
    pub sides: Array,
    /// (3, tasks, tokens, width)
    pub decays: Array,
    /// (tasks, rows, rows and queries): (K K^T * D)^T above the diagonal, and P^T.
    pub gram: Array,
    /// (tasks, rows, rows): (I + A)^T in the form that is inverted.
    upper: Array,
    /// X^-1, and what its computation takes.
    pub inverse: Array,
    between: Array,
    /// (tasks, rows, V)
    pub u: Array,
    laid: Array,
    /// (tasks, K, V): before each chunk.
    pub states: Array,
}

/// What [`Part::pass`] multiplies by: an array, and its first number and rows of a task.
#[derive(Clone, Copy)]
pub struct Factor<'a> {
    pub array: &'a Array,
    pub first: usize,
    pub rows: usize,
    /// Rows from task to task.
    pub pitch: usize,
}

impl<'a> Part<'a> {
    /// Room for the largest part.
    pub fn new(record: &Record<'_>, delta: &'a Delta<'a>, chunks: &'a Chunks) -> Result<Self> {
        let tasks = chunks.most() * delta.sizes.value_heads;
        let (key, value, width) = (delta.sizes.key, delta.sizes.value, delta.width());
        let rows = chunks.tokens * delta.sizes.householders;
        let all = rows + chunks.tokens;
        let room = |sizes: &[usize]| Array::room(record.context(), Field::Real, sizes);
        Ok(Part {
            kq: room(&[tasks, all, key])?,
            early: room(&[tasks, all, key])?,
            sides: room(&[3, tasks, rows, key])?,
            decays: room(&[3, tasks, chunks.tokens, width])?,
            gram: room(&[tasks, rows, all])?,
            upper: room(&[tasks, rows, rows])?,
            inverse: room(&[tasks, rows, rows])?,
            between: room(&[tasks, rows, rows])?,
            u: room(&[tasks, rows, value])?,
            laid: room(&[tasks, rows, value])?,
            states: room(&[tasks, key, value])?,
            delta,
            chunks,
            range: 0..0,
        })
    }

    /// Numbers of these arrays for each row of a value head, about.
    pub fn numbers(delta: &Delta<'_>) -> usize {
        let (key, value, m) = (delta.sizes.key, delta.sizes.value, delta.sizes.householders);
        8 * key + 3 * value + 6 * 64.max(m) + work(&[key, value]) / 32
    }

    pub fn tasks(&self) -> usize {
        self.range.len() * self.delta.sizes.value_heads
    }

    /// Rows of a task.
    pub fn rows(&self) -> usize {
        self.chunks.tokens * self.delta.sizes.householders
    }

    /// Rows and queries of a task.
    pub fn all(&self) -> usize {
        self.rows() + self.chunks.tokens
    }

    /// Keys or queries, of these columns, of an array that has both.
    pub fn of_all(&self, array: &'a Array, columns: usize) -> [Operand<'a>; 2] {
        let whole = Operand::new(array, self.all() * columns, columns);
        [whole, whole.from(self.rows(), 0)]
    }

    /// Matrices of that many rows and columns.
    pub fn each(array: &Array, rows: usize, columns: usize) -> Operand<'_> {
        Operand::new(array, rows * columns, columns)
    }

    /// C = A B of every task, or what `with` makes of it.
    pub fn product<'b>(
        &self,
        record: &mut Record<'_>,
        sizes: (usize, usize, usize),
        a: Operand<'b>,
        b: Operand<'b>,
        c: Operand<'b>,
        with: impl FnOnce(Product<'b>) -> Product<'b>,
    ) -> Result<()> {
        with(Product::new(self.tasks(), sizes, a, b, c)).record(record, Field::Real)
    }

    /// The sizes of delta.wgsl; the first and the last four are the shader's own.
    fn sizes(&self, count: usize, [choice, pitch, from]: [usize; 3], scale: f32) -> Vec<u32> {
        let sizes = &self.delta.sizes;
        let all = [
            count,
            self.range.start,
            self.tasks(),
            self.chunks.tokens,
            sizes.householders,
            sizes.heads,
            sizes.value_heads,
            sizes.key,
            sizes.value,
            self.delta.width(),
            choice,
            pitch,
            from,
        ];
        all.into_iter().map(|size| size as u32).chain([scale.to_bits()]).collect()
    }

    /// A thread for each of `count` elements.
    pub fn elements(
        &self,
        record: &mut Record<'_>,
        shader: &'static Shader,
        arrays: &[(&str, &Array)],
        scale: f32,
        count: usize,
    ) -> Result<()> {
        let arrays = [&[("chunks", &self.chunks.table)], arrays].concat();
        record.elements(shader.of(Field::Real), &arrays, &self.sizes(count, [0; 3], scale), count)
    }

    /// A workgroup for each of `count` rows of keys or queries; whether these are normalised is its choice.
    pub fn workgroups(
        &self,
        record: &mut Record<'_>,
        shader: &'static Shader,
        arrays: &[(&str, &Array)],
        variant: usize,
        count: usize,
    ) -> Result<()> {
        let variant = Variant { shader, field: Field::Real, constants: shader.variants[variant] };
        let arrays = [&[("chunks", &self.chunks.table)], arrays].concat();
        let sizes = self.sizes(0, [usize::from(self.delta.normalise), 0, 0], 1.0);
        record.dispatch(variant, &arrays, &sizes, groups(count))
    }

    /// Lays out rows of width V, m of each token if `by_rows`, in rows from `from` on of `pitch`, times a factor and, if `rated`, beta.
    pub fn lay(
        &self,
        record: &mut Record<'_>,
        (x, by_rows, rated): (&Array, bool, bool),
        (out, pitch, from): (&Array, usize, usize),
        scale: f32,
    ) -> Result<()> {
        let variant =
            Variant { shader: &LAY, field: Field::Real, constants: LAY.variants[usize::from(by_rows)] };
        let rows = if by_rows { self.rows() } else { self.chunks.tokens };
        let arrays = [("chunks", &self.chunks.table), ("x", x), ("beta", self.delta.beta), ("out", out)];
        let count = self.tasks() * rows * self.delta.sizes.value;
        record.elements(variant, &arrays, &self.sizes(count, [usize::from(rated), pitch, from], scale), count)
    }

    /// All of a part that does not depend on states, and U with a state of 0.
    pub fn prepare(&self, record: &mut Record<'_>) -> Result<()> {
        let Delta { q, k, v, beta, .. } = *self.delta;
        let (tasks, rows, all) = (self.tasks(), self.rows(), self.all());
        let (key, value, width) = (self.delta.sizes.key, self.delta.sizes.value, self.delta.width());
        let Part { kq, early, sides, decays, gram, upper, inverse, between, u, laid, .. } = self;
        let g = self.delta.g.unwrap_or(beta);
        self.elements(record, &DECAYS, &[("g", g), ("decays", decays)], 1.0, tasks * width)?;
        let arrays = arrays![q, k, beta, decays, kq, sides, early];
        self.workgroups(record, &SPREAD, &arrays, 0, tasks * all)?;
        self.lay(record, (v, true, true), (laid, rows, 0), 1.0)?;
        let keys = self.of_all(kq, key)[0];
        if self.delta.wide() {
            let arrays = [("decays", decays), ("kq", kq), ("gram", gram)];
            self.elements(record, &WIDE, &arrays, 1.0, tasks * rows)?;
        } else {
            self.product(record, (rows, all, key), keys, keys.t(), Self::each(gram, rows, all), |x| x)?;
        }
        let arrays = [("g", g), ("beta", beta), ("gram", gram), ("upper", upper)];
        self.elements(record, &MASK, &arrays, 1.0, tasks * rows * all)?;
        inverse_into(record, tasks, upper, inverse, between)?;
        let inverse = Self::each(inverse, rows, rows).t();
        let scaled = self.side(SCALED);
        let w = self.of_all(early, key)[0];
        self.product(record, (rows, key, rows), inverse, scaled, w, |x| x.alpha(-1.0))?;
        let [u, laid] = [u, laid].map(|array| Self::each(array, rows, value));
        self.product(record, (rows, value, rows), inverse, laid, u, |x| x)
    }

    /// The values, where prepare has had those times beta.
    pub fn values(&self, record: &mut Record<'_>) -> Result<Operand<'_>> {
        let (rows, value) = (self.rows(), self.delta.sizes.value);
        self.lay(record, (self.delta.v, true, false), (&self.laid, rows, 0), 1.0)?;
        Ok(Self::each(&self.laid, rows, value))
    }

    /// Keys times a factor.
    pub fn side(&self, which: usize) -> Operand<'_> {
        let (rows, key) = (self.rows(), self.delta.sizes.key);
        Self::each(&self.sides, rows, key).later(which * self.tasks())
    }

    /// The late keys, as a factor.
    pub fn late(&self) -> Factor<'_> {
        let (rows, key) = (self.rows(), self.delta.sizes.key);
        Factor { array: &self.sides, first: LATE * self.tasks() * rows * key, rows, pitch: rows }
    }

    /// The states before every chunk, from those in `last`, where the last then are; U of every chunk.
    pub fn states(&self, record: &mut Record<'_>, last: &Array) -> Result<()> {
        let w = Factor { array: &self.early, first: 0, rows: self.rows(), pitch: self.all() };
        let given = self.delta.initial;
        self.pass(record, (w, self.late()), (given, &self.u, self.rows()), (&self.states, last), false)
    }

    /// pass.wgsl.
    pub fn pass(
        &self,
        record: &mut Record<'_>,
        (a, b): (Factor<'_>, Factor<'_>),
        (given, u, pitch): (Option<&Array>, &Array, usize),
        (states, last): (&Array, &Array),
        reversed: bool,
    ) -> Result<()> {
        let sizes = &self.delta.sizes;
        let (n, heads, key, value) = (sizes.sequences(), sizes.value_heads, sizes.key, sizes.value);
        let (sequences, decays, start) =
            (&self.chunks.sequences, &self.decays, given.unwrap_or(&self.decays));
        let arrays = arrays![sequences, a = a.array, b = b.array, decays, given = start, u, states, last];
        let numbers = [
            self.range.start,
            self.range.len(),
            n,
            usize::from(reversed),
            heads,
            key,
            value,
            a.rows,
            b.rows,
            a.first,
            a.pitch * key,
            b.first,
            b.pitch * key,
            pitch * value,
            self.chunks.tokens,
            self.delta.width(),
            usize::from(given.is_some()),
        ];
        let adds = work(&[self.tasks(), a.rows + b.rows, key, value]);
        let count = groups(n * heads * value.div_ceil(COLUMNS));
        record.dispatches(PASS.of(Field::Real), &arrays, [numbers.map(|number| number as u32)], count, adds)
    }
}
