//! Gradients, part by part in reverse; the states before each part are computed first, those inside it again.

use super::chunks::Chunks;
use super::part::{EARLY, Factor, Part};
use super::{COLLECT, DOTS, Delta, GATES, GATES_WIDE, MASK_VJP, VALUES, WIDE_VJP};
use crate::device::Record;
use crate::shader::{arrays, groups};
use crate::{Array, Field};
use isometry_core::Result;
use isometry_core::internal::sizes::check_len;

/// The gradients of q, k, v, beta, g and the initial states.
pub(crate) type Bars = [Option<Array>; 6];

/// Those that are wanted, from those of o (B, T, HV, V) and of the states behind the sequences (N, HV, K, V).
pub(crate) fn backward(
    record: &mut Record<'_>,
    delta: &Delta<'_>,
    (o_bar, state_bar): (&Array, &Array),
    wanted: [bool; 6],
) -> Result<Bars> {
    delta.check()?;
    let sizes = &delta.sizes;
    let (heads, key, value) = (sizes.value_heads, sizes.key, sizes.value);
    check_len("o_bar", o_bar.len(), &[sizes.batch, sizes.tokens, heads, value])?;
    let shape = [sizes.sequences(), heads, key, value];
    check_len("state_bar", state_bar.len(), &shape)?;
    let room = |shape: &[usize]| Array::room(record.context(), Field::Real, shape);
    let chunks = Chunks::new(delta, record.context(), 2 * Part::numbers(delta))?;
    let (last, initial_bar) = (room(&shape)?, room(&shape)?);
    // of the sequence that is in progress where a part begins
    let before = room(&[chunks.parts.len(), heads, key, value])?;
    let mut pull = Pull::new(record, Part::new(record, delta, &chunks)?, wanted)?;
    let one = heads * key * value;
    for (p, (range, begun)) in chunks.parts.iter().zip(&chunks.begun).enumerate() {
        if let Some(n) = begun {
            record.copy_part((&last, n * one), (&before, p * one), one)?;
        }
        if let Some(Some(_)) = chunks.begun.get(p + 1) {
            pull.part.range = range.clone();
            pull.part.prepare(record)?;
            pull.part.states(record, &last)?;
        }
    }
    for (p, (range, begun)) in chunks.parts.iter().zip(&chunks.begun).enumerate().rev() {
        if let Some(n) = begun {
            record.copy_part((&before, p * one), (&last, n * one), one)?;
        }
        pull.part.range = range.clone();
        pull.part.prepare(record)?;
        pull.part.states(record, &last)?;
        pull.through_states(record, o_bar, (state_bar, &initial_bar))?;
        let [q, k, v, beta, g, _] = wanted;
        if q || k || v || beta || g {
            pull.through_values(record)?;
        }
        if q || k || g {
            pull.through_products(record)?;
            pull.through_chunks(record)?;
        }
    }
    let [q, k, v, beta] = pull.bars;
    let mut found = [Some(q), Some(k), Some(v), Some(beta), pull.g_bar, delta.initial.map(|_| initial_bar)];
    found.iter_mut().zip(wanted).filter(|(_, wanted)| !wanted).for_each(|(bar, _)| *bar = None);
    Ok(found)
}

/// The gradients of a part, each with a task for each chunk of a value head; o is scale O_bar.
struct Pull<'a> {
    part: Part<'a>,
    /// (tasks, tokens, V)
    o: Array,
    /// (tasks, rows and queries, V): the gradient of U, then -V_bar, and below it o.
    vo: Array,
    /// (tasks, rows, V): beta R_bar is V_bar, beta Z is U.
    r_bar: Array,
    z: Array,
    /// (tasks, K, V): of the state behind each chunk.
    behind: Array,
    /// (tasks, rows, rows and queries): of A times beta, and of P, transposed.
    x: Array,
    /// (tasks, rows and queries, K): of e^c * K and e^c * Q.
    early: Array,
    /// (tasks, rows, K): of e^(c_C - c) * K.
    late: Array,
    /// (tasks, rows and queries, K): of keys and queries in the products inside a chunk.
    inside: Array,
    /// Of q, k, v and beta.
    bars: [Array; 4],
    g_bar: Option<Array>,
    wanted: [bool; 6],
    /// (tasks, tokens, K): the cotangents of the gates from the decays, by wide_vjp.wgsl.
    crossing: Array,
    /// The products of rows that the gradients of gates are summed from, those of the states last.
    dots: [Array; 3],
}

impl<'a> Pull<'a> {
    fn new(record: &Record<'_>, part: Part<'a>, wanted: [bool; 6]) -> Result<Self> {
        let Delta { sizes, q, k, v, beta, g, .. } = *part.delta;
        let (tasks, tokens) = (part.chunks.most() * sizes.value_heads, part.chunks.tokens);
        let (rows, all, key, value) = (part.rows(), part.all(), sizes.key, sizes.value);
        let room = |shape: &[usize]| Array::room(record.context(), Field::Real, shape);
        let own = |i: usize, of: &Array| room(if wanted[i] { of.shape() } else { &[0] });
        let (crossing, dots) = match part.delta.width() {
            0 => (0, [0; 3]),
            1 => (0, [all, rows, 1]),
            _ => (tokens * key, [0, 0, key]),
        };
        let [early, late, through] = dots.map(|each| room(&[tasks, each]));
        Ok(Pull {
            o: room(&[tasks, tokens, value])?,
            vo: room(&[tasks, all, value])?,
            r_bar: room(&[tasks, rows, value])?,
            z: room(&[tasks, rows, value])?,
            behind: room(&[tasks, key, value])?,
            x: room(&[tasks, rows, all])?,
            early: room(&[tasks, all, key])?,
            late: room(&[tasks, rows, key])?,
            inside: room(&[tasks, all, key])?,
            bars: [own(0, q)?, own(1, k)?, room(v.shape())?, room(beta.shape())?],
            g_bar: g.filter(|_| wanted[4]).map(|g| room(g.shape())).transpose()?,
            wanted,
            crossing: room(&[tasks, crossing])?,
            dots: [early?, late?, through?],
            part,
        })
    }

    /// The gradients of U and of the states.
    fn through_states(
        &self,
        record: &mut Record<'_>,
        o_bar: &Array,
        (state_bar, initial_bar): (&Array, &Array),
    ) -> Result<()> {
        let part = &self.part;
        let (rows, all, tokens) = (part.rows(), part.all(), part.chunks.tokens);
        let (value, scale) = (part.delta.sizes.value, part.delta.scale);
        part.lay(record, (o_bar, false, false), (&self.o, tokens, 0), scale)?;
        part.lay(record, (o_bar, false, false), (&self.vo, all, rows), scale)?;
        let vo = part.of_all(&self.vo, value)[0];
        let p = Part::each(&part.gram, rows, all).from(0, rows);
        part.product(record, (rows, value, tokens), p, Part::each(&self.o, tokens, value), vo, |x| x)?;
        let b = Factor { array: &part.early, first: 0, rows: all, pitch: all };
        let states = (&self.behind, initial_bar);
        part.pass(record, (part.late(), b), (Some(state_bar), &self.vo, all), states, true)
    }

    /// Those of values and rates.
    fn through_values(&self, record: &mut Record<'_>) -> Result<()> {
        let part = &self.part;
        let (rows, all, key, value) = (part.rows(), part.all(), part.delta.sizes.key, part.delta.sizes.value);
        let vo = part.of_all(&self.vo, value)[0];
        let [r_bar, z, u] = [&self.r_bar, &self.z, &part.u].map(|array| Part::each(array, rows, value));
        let inverse = Part::each(&part.inverse, rows, rows);
        part.product(record, (rows, value, rows), inverse, vo, r_bar, |x| x)?;
        if self.wanted[3] {
            let v = part.values(record)?;
            let states = Part::each(&part.states, key, value);
            part.product(record, (rows, value, key), part.side(EARLY), states, z, |x| {
                x.alpha(-1.0).plus(crate::product::Base::Array(v))
            })?;
            let gram = Part::each(&part.gram, rows, all).t();
            part.product(record, (rows, value, rows), gram, u, z, |x| x.alpha(-1.0).add())?;
        }
        let Pull { r_bar, z, vo, bars: [_, _, v_bar, beta_bar], .. } = self;
        let arrays = arrays![beta = part.delta.beta, r_bar, z, vo, v_bar, beta_bar];
        part.workgroups(record, &VALUES, &arrays, 0, part.tasks() * rows)
    }

    /// The gradients of the products that keys and queries stand in, and of the gates.
    fn through_products(&self, record: &mut Record<'_>) -> Result<()> {
        let part = &self.part;
        let (tasks, rows, all) = (part.tasks(), part.rows(), part.all());
        let (key, value) = (part.delta.sizes.key, part.delta.sizes.value);
        let (u, vo) = (Part::each(&part.u, rows, value), Part::each(&self.vo, all, value));
        let (x, inside) = (Part::each(&self.x, rows, all), Part::each(&self.inside, all, key));
        part.product(record, (rows, all, value), u, vo.t(), x, |x| x)?;
        let [states, behind] = [&part.states, &self.behind].map(|s| Part::each(s, key, value).t());
        part.product(record, (all, key, value), vo, states, Part::each(&self.early, all, key), |x| x)?;
        part.product(record, (rows, key, value), u, behind, Part::each(&self.late, rows, key), |x| x)?;
        if part.delta.wide() {
            let (Part { decays, kq, .. }, Pull { x, inside, crossing, .. }) = (part, self);
            let arrays = arrays![decays, kq, x, inside, crossing];
            part.elements(record, &WIDE_VJP, &arrays, 1.0, tasks * key)?;
            return self.wide_gates(record);
        }
        self.gates(record)?;
        if !self.wanted[0] && !self.wanted[1] {
            return Ok(());
        }
        let g = part.delta.g.unwrap_or(part.delta.beta);
        part.elements(record, &MASK_VJP, &[("g", g), ("x", &self.x)], 1.0, tasks * rows * all)?;
        let [keys, _] = part.of_all(&part.kq, key);
        part.product(record, (all, key, rows), x.t(), keys, inside, |x| x)?;
        part.product(record, (rows, key, all), x, keys, inside, |x| x.add())
    }

    /// x . y of so many rows of n numbers of every task; the arrays have so many in all.
    fn dots(
        &self,
        record: &mut Record<'_>,
        (x, y): (&Array, &Array),
        (rows, n): (usize, usize),
        [pitch_x, pitch_y]: [usize; 2],
        out: &Array,
    ) -> Result<()> {
        let count = self.part.tasks() * rows;
        let sizes = [count, rows, n, pitch_x, pitch_y].map(|size| size as u32);
        record.dispatch(DOTS.of(Field::Real), &[("x", x), ("y", y), ("out", out)], &sizes, groups(count))
    }

    /// The gradients of the gates of heads, if they are wanted.
    fn gates(&self, record: &mut Record<'_>) -> Result<()> {
        let (part, Some(g_bar)) = (&self.part, &self.g_bar) else { return Ok(()) };
        let (rows, all, key, value) = (part.rows(), part.all(), part.delta.sizes.key, part.delta.sizes.value);
        let [early, late, through] = &self.dots;
        self.dots(record, (&self.early, &part.kq), (all, key), [all; 2], early)?;
        self.dots(record, (&self.late, &part.kq), (rows, key), [rows, all], late)?;
        self.dots(record, (&part.states, &self.behind), (1, key * value), [1; 2], through)?;
        let (Part { decays, gram, .. }, x) = (part, &self.x);
        let arrays = arrays![decays, early, late, through, x, gram, g_bar];
        part.elements(record, &GATES, &arrays, 1.0, part.tasks() * part.chunks.tokens)
    }

    /// Those of gates for each row of the state.
    fn wide_gates(&self, record: &mut Record<'_>) -> Result<()> {
        let (part, Some(g_bar)) = (&self.part, &self.g_bar) else { return Ok(()) };
        let (key, value) = (part.delta.sizes.key, part.delta.sizes.value);
        let through = &self.dots[2];
        self.dots(record, (&part.states, &self.behind), (key, value), [key; 2], through)?;
        let (Part { decays, kq, .. }, Pull { early, late, crossing, .. }) = (part, self);
        let arrays = arrays![decays, kq, early_bar = early, late_bar = late, through, crossing, g_bar];
        part.elements(record, &GATES_WIDE, &arrays, 1.0, part.tasks() * key)
    }

    /// The gradients of keys and queries.
    fn through_chunks(&self, record: &mut Record<'_>) -> Result<()> {
        let part = &self.part;
        let count = part.range.len() * part.delta.sizes.heads;
        let [q_bar, k_bar, ..] = &self.bars;
        let of = [(part.delta.k, k_bar, part.rows()), (part.delta.q, q_bar, part.chunks.tokens)];
        for (queries, (x, x_bar, rows)) in of.into_iter().enumerate() {
            if !self.wanted[1 - queries] {
                continue;
            }
            let (Part { decays, kq, .. }, Pull { early, late, inside, .. }) = (part, self);
            let arrays = arrays![x, decays, kq, early_bar = early, late_bar = late, inside, x_bar];
            part.workgroups(record, &COLLECT, &arrays, queries, count * rows)?;
        }
        Ok(())
    }
}
