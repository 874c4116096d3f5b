mod shared;

use super::*;
use crate::testing::tape::{self, Var};
use crate::testing::{Guarded, Random, near, within_work};
use crate::{Budget, Error};

/// The arguments of a case, and cotangents of its results.
struct Case<R> {
    sizes: [usize; 7],
    /// Numbers of a gate per row of S, and per head.
    wide: bool,
    gated: bool,
    ends: Option<Vec<i64>>,
    normalise: bool,
    q: Vec<R>,
    k: Vec<R>,
    v: Vec<R>,
    beta: Vec<R>,
    g: Vec<R>,
    initial: Option<Vec<R>>,
    o_bar: Vec<R>,
    state_bar: Vec<R>,
}

/// What a call returns, with its gradients of q, k, v, beta, g and the initial state.
type Found<R> = (Vec<R>, Vec<R>, [Vec<R>; 6]);

impl<R: Real> Case<R> {
    fn new(sizes: [usize; 7], gate: &str, initial: bool, seed: u64) -> Self {
        let [b, t, m, h, hv, key, value] = sizes;
        let mut random = Random::new(seed);
        let (wide, gated) = (gate == "row", gate != "none");
        let mut beta = random.array::<R>(b * t * m * hv, 1.0);
        // beta in (0, 2), some of them 0 and 2
        for (i, x) in beta.iter_mut().enumerate() {
            *x = match i % 5 {
                3 => R::of(0.0),
                4 => R::of(2.0),
                _ => *x + R::of(1.0),
            };
        }
        let width = if wide { key } else { usize::from(gated) };
        let mut g = random.array::<R>(b * t * hv * width, 0.5);
        for (i, x) in g.iter_mut().enumerate() {
            *x = match i % 11 {
                9 => R::of(-50.0),
                10 => R::of(f64::NEG_INFINITY),
                _ => *x - R::of(0.5),
            };
        }
        let mut k = random.array::<R>(b * t * m * h * key, 1.0);
        for row in k.chunks_mut(key) {
            let length = row.iter().map(|x| x.f64() * x.f64()).sum::<f64>().sqrt();
            row.iter_mut().for_each(|x| *x = R::of(x.f64() / length));
        }
        Case {
            sizes,
            wide,
            gated,
            ends: None,
            normalise: false,
            q: random.array(b * t * h * key, 1.0),
            k,
            v: random.array(b * t * m * hv * value, 1.0),
            beta,
            g,
            initial: initial.then(|| random.array(b * hv * key * value, 1.0)),
            o_bar: random.array(b * t * hv * value, 1.0),
            state_bar: random.array(b * hv * key * value, 1.0),
        }
    }

    fn view(&self) -> Delta<'_, R> {
        let [batch, tokens, householders, heads, value_heads, key, value] = self.sizes;
        let gate = match (self.gated, self.wide) {
            (false, _) => Gate::None,
            (true, false) => Gate::Head(&self.g),
            (true, true) => Gate::Row(&self.g),
        };
        let Case { q, k, v, beta, .. } = self;
        let (initial, ends) = (self.initial.as_deref(), self.ends.as_deref());
        let (scale, normalise) = (0.3, self.normalise);
        Delta {
            batch,
            tokens,
            householders,
            heads,
            value_heads,
            key,
            value,
            q,
            k,
            v,
            beta,
            gate,
            initial,
            ends,
            scale,
            normalise,
        }
    }

    fn found(&self, threads: usize) -> Found<R> {
        let (view, budget) = (self.view(), Budget::of(threads));
        let mut saved = Guarded::<R>::new(view.saved().iter().product());
        let (mut o, mut state) =
            (Guarded::<R>::new(self.o_bar.len()), Guarded::<R>::new(self.state_bar.len()));
        forward(&view, o.inner(), state.inner(), Some(saved.inner()), &budget).unwrap();
        let (mut again, mut last) =
            (Guarded::<R>::new(self.o_bar.len()), Guarded::<R>::new(self.state_bar.len()));
        forward(&view, again.inner(), last.inner(), None, &budget).unwrap();
        assert!(o.read() == again.read() && state.read() == last.read(), "the same without saving");
        if let Some(initial) = &self.initial {
            let (mut o, mut last) = (vec![R::zero(); self.o_bar.len()], initial.clone());
            advance(&Delta { initial: None, ..self.view() }, &mut o, &mut last, &budget).unwrap();
            assert!(o == again.read() && last == state.read(), "the same in place");
        }
        let given = [&self.q, &self.k, &self.v, &self.beta, &self.g];
        let mut bars = given.map(|x| Guarded::<R>::new(x.len()));
        let mut initial_bar = Guarded::<R>::new(self.initial.as_ref().map_or(0, Vec::len));
        let [q, k, v, beta, g] = &mut bars;
        let gradients = DeltaGradients {
            q: Some(q.inner()),
            k: Some(k.inner()),
            v: Some(v.inner()),
            beta: Some(beta.inner()),
            g: self.gated.then(|| g.inner()),
            initial: self.initial.is_some().then(|| initial_bar.inner()),
        };
        backward(&view, saved.read(), (&self.o_bar, &self.state_bar), gradients, &budget).unwrap();
        let [q, k, v, beta, g] = bars.map(Guarded::take);
        (o.take(), state.take(), [q, k, v, beta, g, initial_bar.take()])
    }

    /// The definition, token by token.
    fn defined(&self) -> Found<f64> {
        let [b, t, m, h, hv, key, value] = self.sizes;
        let leaves = |x: &[R]| x.iter().map(|x| Var::leaf(x.f64())).collect::<Vec<_>>();
        let given = [&self.q, &self.k, &self.v, &self.beta, &self.g].map(|x| leaves(x));
        let [q, k, v, beta, g] = &given;
        let initial = self.initial.as_deref().map_or(vec![], leaves);
        let unit = |row: &[Var]| {
            let square = Var::products(row.iter().map(|&x| (1.0, x, x))) + Var::constant(1e-6);
            row.iter().map(|&x| if self.normalise { x / square.sqrt() } else { x }).collect::<Vec<_>>()
        };
        let [q, k] = [q, k].map(|x| x.chunks(key).flat_map(unit).collect::<Vec<_>>());
        let size = key * value;
        let (mut o, mut last) = (vec![Var::ZERO; self.o_bar.len()], vec![]);
        for pair in 0..b * hv {
            let (n, head) = (pair / hv, pair % hv);
            let of_key = |i: usize, rows: usize, d: usize| ((n * rows + i) * h + head / (hv / h)) * key + d;
            let of_head = |i: usize, rows: usize| (n * rows + i) * hv + head;
            let mut s = vec![Var::ZERO; size];
            initial.iter().skip(pair * size).zip(&mut s).for_each(|(x, s)| *s = *x);
            for row in 0..t * m {
                let token = row / m;
                if row.is_multiple_of(m) && self.gated {
                    for (at, x) in s.iter_mut().enumerate() {
                        let gate = of_head(token, t);
                        let gate = if self.wide { gate * key + at / value } else { gate };
                        *x = *x * g[gate].map(f64::exp, f64::exp);
                    }
                }
                let key_at = |d: usize| k[of_key(row, t * m, d)];
                // of V less that of S^T k
                let u = (0..value).map(|j| {
                    let old = Var::products((0..key).map(|d| (1.0, key_at(d), s[d * value + j])));
                    v[of_head(row, t * m) * value + j] - old
                });
                let u: Vec<_> = u.map(|u| beta[of_head(row, t * m)] * u).collect();
                (0..size).for_each(|at| s[at] = s[at] + key_at(at / value) * u[at % value]);
                for j in (0..value).filter(|_| row % m == m - 1) {
                    let terms = (0..key).map(|d| (0.3, q[of_key(token, t, d)], s[d * value + j]));
                    o[of_head(token, t) * value + j] = Var::products(terms);
                }
            }
            last.extend(s);
        }
        let cts = self.o_bar.iter().chain(&self.state_bar);
        let bar = tape::pull(o.iter().chain(&last).copied().zip(cts.map(|ct| ct.f64())));
        let values = |x: &[Var]| x.iter().map(|x| x.value).collect();
        let bars = |x: &Vec<Var>| x.iter().map(|x| bar(*x)).collect();
        let [q, k, v, beta, g] = given.each_ref().map(bars);
        (values(&o), values(&last), [q, k, v, beta, g, bars(&initial)])
    }
}

const NAMES: [&str; 6] = ["q", "k", "v", "beta", "g", "initial"];

fn check<R: Real>(sizes: [usize; 7], gate: &str, initial: bool, normalise: bool) {
    let case = Case::<R> { normalise, ..Case::new(sizes, gate, initial, 5) };
    let (o, state, bars) = case.found(1);
    let (own_o, own_state, own_bars) = case.defined();
    let tolerance = if R::EPS.f64() > 1e-10 { 2e-5 } else { 2e-13 };
    let what = |name: &str| format!("{name} of {sizes:?}, gate {gate}");
    near(&o, &own_o, tolerance, what("o"));
    near(&state, &own_state, tolerance, what("state"));
    for (i, name) in NAMES.iter().enumerate() {
        near(&bars[i], &own_bars[i], 5.0 * tolerance, what(name));
    }
    for threads in [2, 3] {
        assert!((o.clone(), state.clone(), bars.clone()) == case.found(threads), "{threads} threads");
    }
}

#[test]
fn values_and_gradients_are_those_of_the_definition() {
    for (sizes, gate, initial) in [
        ([1, 1, 1, 1, 1, 4, 4], "none", false),
        ([2, 5, 1, 2, 2, 4, 3], "head", true),
        ([1, 9, 1, 1, 1, 4, 3], "head", false),
        ([1, 63, 1, 1, 2, 8, 5], "head", false),
        ([2, 64, 1, 1, 1, 5, 5], "none", true),
        ([1, 65, 1, 2, 4, 16, 8], "head", true),
        ([1, 130, 1, 1, 1, 32, 32], "head", true),
        ([1, 7, 2, 1, 1, 6, 4], "none", true),
        ([2, 33, 3, 2, 2, 8, 8], "head", false),
        ([1, 4, 70, 1, 1, 8, 5], "head", true),
        ([1, 40, 1, 2, 2, 8, 6], "row", true),
        ([1, 66, 2, 1, 2, 7, 9], "row", false),
        ([1, 3, 2, 1, 2, 7, 9], "row", true),
        ([2, 0, 1, 1, 1, 3, 2], "head", true),
        ([0, 4, 1, 1, 1, 3, 2], "none", false),
    ] {
        if within_work(&[sizes.iter().map(|size| size.max(&1)).product()]) {
            for normalise in [false, true] {
                check::<f32>(sizes, gate, initial, normalise);
                check::<f64>(sizes, gate, initial, normalise);
            }
        }
    }
}

#[test]
fn wrong_sizes_and_ends_are_refused_and_a_call_is_cancelled() {
    let case = Case::<f32>::new([1, 200, 1, 1, 1, 64, 64], "head", false, 1);
    let (mut o, mut state) = (vec![0.0; case.o_bar.len()], vec![0.0; case.state_bar.len()]);
    let mut call = |delta: &Delta<'_, f32>, cancel: bool| {
        let cancel = || cancel;
        forward(delta, &mut o, &mut state, None, &Budget { threads: 1, cancel: &cancel })
    };
    assert_eq!(call(&case.view(), false), Ok(()));
    assert_eq!(call(&case.view(), true), Err(Error::Interrupted));
    for ends in [&[0, 4, 2, 200][..], &[0, 4], &[1, 200], &[], &[0, -1, 200]] {
        assert!(call(&Delta { ends: Some(ends), ..case.view() }, false).is_err(), "{ends:?}");
    }
    assert!(call(&Delta { q: &case.q[1..], ..case.view() }, false).is_err());
    assert!(call(&Delta { value_heads: 0, ..case.view() }, false).is_err());
    assert!(call(&Delta { gate: Gate::Row(&case.g), ..case.view() }, false).is_err());
}
