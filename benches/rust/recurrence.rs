//! The recurrence on six workloads of the literature, f32: `cargo bench --bench recurrence [-- filter [threads]]`.
//!
//! Values are checked against a loop in f64 first. Times are the median and the minimum over alternating runs, forward
//! and backward with the gradients of the transition, V and the biases; shares are relative to a matrix product measured
//! between the runs in the same process.

use isometry_core::activation::Activation;
use isometry_core::argument::Bar;
use isometry_core::internal::kernels::{Operand, Product, isa};
use isometry_core::internal::parallel;
use isometry_core::internal::scratch::Scratch;
use isometry_core::operators::{Last, dense::Dense, householder::Householder};
use isometry_core::recurrence::{self, Run, Sequence};
use isometry_core::{Budget, Cpu};
use std::time::{Duration, Instant};

struct Work {
    name: &'static str,
    n: usize,
    /// Reflections, or 0 for a dense matrix.
    m: usize,
    batch: usize,
    steps: usize,
    d: usize,
    modrelu: bool,
    /// Forward and backward times of the prototypes on two threads, in ms.
    goal: [f64; 2],
}

const WORK: [Work; 6] = [
    Work { name: "copying", n: 190, m: 0, batch: 20, steps: 1020, d: 10, modrelu: true, goal: [7.4, 15.4] },
    Work { name: "pixels170", n: 170, m: 0, batch: 50, steps: 784, d: 1, modrelu: true, goal: [11.1, 25.9] },
    Work { name: "pixels512", n: 512, m: 0, batch: 50, steps: 784, d: 1, modrelu: true, goal: [92.4, 205.0] },
    Work { name: "adding", n: 128, m: 16, batch: 50, steps: 400, d: 2, modrelu: false, goal: [1.0, 4.5] },
    Work { name: "pixels256", n: 256, m: 32, batch: 1, steps: 784, d: 1, modrelu: false, goal: [0.53, 0.85] },
    Work { name: "letters", n: 512, m: 0, batch: 1, steps: 118, d: 49, modrelu: false, goal: [0.63, 0.90] },
];

fn fill(count: usize, scale: f32, seed: u64) -> Vec<f32> {
    let mut s = seed.wrapping_mul(0x9e3779b97f4a7c15) | 1;
    let mut next = || {
        s ^= s << 13;
        s ^= s >> 7;
        s ^= s << 17;
        scale * ((s >> 40) as f32 / (1u64 << 23) as f32 - 1.0)
    };
    (0..count).map(|_| next()).collect()
}

struct Data {
    /// W (n, n), or U (n, m).
    transition: Vec<f32>,
    x: Vec<f32>,
    v: Vec<f32>,
    bias: Vec<f32>,
    ct: Vec<f32>,
    states: Vec<f32>,
    transition_bar: Vec<f32>,
    v_bar: Vec<f32>,
    bias_bar: Vec<f32>,
}

impl Work {
    fn data(&self) -> Data {
        let Work { n, m, batch, steps, d, modrelu, .. } = *self;
        let transition = if m > 0 { fill(n * m, 1.0, 1) } else { orthogonal(n) };
        let zeros = |len: usize| vec![0.0; len];
        Data {
            transition_bar: zeros(transition.len()),
            transition,
            x: fill(steps * batch * d, 1.0, 2),
            v: fill(n * d, 0.1, 3),
            bias: if modrelu { vec![-0.01; n] } else { fill(n, 0.01, 4) },
            ct: fill(steps * batch * n, 1.0, 5),
            states: zeros(steps * batch * n),
            v_bar: zeros(n * d),
            bias_bar: zeros(n),
        }
    }

    fn sequence<'a>(&self, x: &'a [f32], v: &'a [f32], bias: &'a [f32]) -> Sequence<'a, f32> {
        let activation =
            if self.modrelu { Activation::Modrelu } else { Activation::LeakyRelu { slope: 0.1 } };
        Sequence {
            run: Run {
                activation,
                activation_bias: self.modrelu.then_some(bias),
                ..Run::new([self.steps, self.batch, self.d, self.n], x)
            },
            input_weight: v,
            bias: (!self.modrelu).then_some(bias),
            on_input: false,
        }
    }

    fn forward(&self, data: &mut Data, threads: usize) {
        let Data { transition, x, v, bias, states, .. } = data;
        let sequence = self.sequence(x, v, bias);
        let operator = self.operator(transition);
        recurrence::forward(&*operator, &sequence, states, &Budget::of(threads)).unwrap();
    }

    /// W.
    fn operator<'a>(&self, transition: &'a [f32]) -> Box<dyn Cpu<f32> + 'a> {
        if self.m > 0 {
            Box::new(Householder::new(transition, Last::None, 1, self.n, self.m).unwrap())
        } else {
            Box::new(Dense::new(transition, 1, self.n, self.n).unwrap())
        }
    }

    fn backward(&self, data: &mut Data, threads: usize) {
        let Data { transition, x, v, bias, ct, states, transition_bar, v_bar, bias_bar } = data;
        let sequence = self.sequence(x, v, bias);
        let mut bars = [Bar::None, Bar::Own(v_bar), Bar::None, Bar::None, Bar::None];
        if self.modrelu {
            bars[4] = Bar::Real(bias_bar);
        } else {
            bars[3] = Bar::Own(bias_bar);
        }
        let (operator, own) = (self.operator(transition), &mut [Bar::Own(transition_bar)]);
        recurrence::backward(
            &*operator,
            own,
            &sequence,
            states.as_slice(),
            ct.as_slice(),
            &mut bars,
            &Budget::of(threads),
        )
        .unwrap();
    }

    /// Largest relative error of the states and of V_bar over the first steps of a batch against a loop in f64.
    fn error(&self) -> f64 {
        let small = Work { steps: 12, ..*self };
        let mut data = small.data();
        small.forward(&mut data, 2);
        small.backward(&mut data, 2);
        let Work { n, m, batch, d, .. } = small;
        let w = if m > 0 {
            product(&data.transition, n, m)
        } else {
            data.transition.iter().map(|&x| x.into()).collect()
        };
        let (mut states, mut v_bar) = (vec![0f64; data.states.len()], vec![0f64; n * d]);
        for t in 0..small.steps {
            for b in 0..batch {
                let row = t * batch + b;
                for i in 0..n {
                    let mut z = 0.0;
                    for j in 0..if t > 0 { n } else { 0 } {
                        z += w[i * n + j] * states[(row - batch) * n + j];
                    }
                    for j in 0..d {
                        z += f64::from(data.v[i * d + j]) * f64::from(data.x[row * d + j]);
                    }
                    let bias = f64::from(data.bias[i]);
                    states[row * n + i] = if self.modrelu {
                        (z.abs() + bias).max(0.0) * z.signum()
                    } else {
                        (z + bias).max(0.1 * (z + bias))
                    };
                }
            }
        }
        let mut g = vec![0f64; batch * n];
        for t in (0..small.steps).rev() {
            for b in 0..batch {
                let row = t * batch + b;
                let mut z_bar = vec![0f64; n];
                for i in 0..n {
                    let (h, g) = (states[row * n + i], g[b * n + i] + f64::from(data.ct[row * n + i]));
                    let low = if self.modrelu { 0.0 } else { 0.1 };
                    let live = if self.modrelu { h != 0.0 } else { h > 0.0 };
                    z_bar[i] = if live { g } else { low * g };
                    for j in 0..d {
                        v_bar[i * d + j] += z_bar[i] * f64::from(data.x[row * d + j]);
                    }
                }
                for j in 0..n {
                    g[b * n + j] = (0..n).map(|i| z_bar[i] * w[i * n + j]).sum();
                }
            }
        }
        relative(&data.states, &states).max(relative(&data.v_bar, &v_bar))
    }
}

/// An orthogonal matrix: a cyclic shift times some reflections.
fn orthogonal(n: usize) -> Vec<f32> {
    let u = fill(n * 16, 1.0, 9);
    let w = product(&u, n, 16);
    (0..n * n).map(|i| w[i / n * n + (i + 7) % n] as f32).collect()
}

/// H(U[:,0]) ... H(U[:,m-1])
fn product(u: &[f32], n: usize, m: usize) -> Vec<f64> {
    let mut w: Vec<f64> = (0..n * n).map(|i| f64::from(u8::from(i / n == i % n))).collect();
    for j in 0..m {
        let u: Vec<f64> = (0..n).map(|i| f64::from(u[i * m + j])).collect();
        let scale = 2.0 / u.iter().map(|x| x * x).sum::<f64>();
        for row in w.chunks_mut(n) {
            let dot = scale * row.iter().zip(&u).map(|(a, b)| a * b).sum::<f64>();
            row.iter_mut().zip(&u).for_each(|(a, b)| *a -= dot * b);
        }
    }
    w
}

fn relative(got: &[f32], expected: &[f64]) -> f64 {
    let error: f64 = got.iter().zip(expected).map(|(&a, b)| (f64::from(a) - b).powi(2)).sum();
    (error / expected.iter().map(|b| b * b).sum::<f64>()).sqrt()
}

/// GFLOP/s of a product of 384 x 384 matrices.
fn peak(threads: usize) -> f64 {
    let n = 384;
    let (a, b) = (fill(n * n, 1.0, 1), fill(n * n, 1.0, 2));
    let c = parallel::Shared(vec![0f32; n * n].leak().as_mut_ptr());
    let room = Scratch::new(|arena| arena.regions(threads, &[Product::<f32>::scratch(n, n)])).unwrap();
    let start = Instant::now();
    let mut count = 0;
    while start.elapsed() < Duration::from_millis(3) {
        parallel::run(threads, &|member| {
            let product =
                Product::new((n, n, n), Operand::new(a.as_ptr(), n), Operand::new(b.as_ptr(), n), c.at(0), n);
            // SAFETY: three n x n arrays; the members run the same product.
            unsafe { product.run(member, room.of(member.id).ptr()) }
        });
        count += 1;
    }
    let rate = 2e-9 * (n * n * n * count) as f64 / start.elapsed().as_secs_f64();
    // SAFETY: leaked above with this length, and not used any more.
    drop(unsafe { Vec::from_raw_parts(c.at(0), n * n, n * n) });
    rate
}

fn median(mut times: Vec<f64>) -> (f64, f64) {
    times.sort_by(f64::total_cmp);
    (times[times.len() / 2], times[0])
}

fn main() {
    // cargo passes --bench
    let mut words = std::env::args().skip(1).filter(|a| !a.starts_with('-'));
    let only = words.next().unwrap_or_default();
    let counts: Vec<usize> =
        words.next().map_or(vec![1, 2], |word| vec![word.parse().expect("a number of threads")]);
    println!("{:?}; ms: median (minimum), share of the product peak; prototypes on two threads", isa());
    for work in WORK.iter().filter(|work| work.name.contains(&only)) {
        let error = work.error();
        assert!(error < 1e-4, "{}: relative error {error:e}", work.name);
        let Work { n, m, batch, steps, .. } = *work;
        let mut data = work.data();
        let flops = 1e-9 * (2 * batch * steps * n * if m > 0 { 2 * m } else { n }) as f64;
        for &threads in &counts {
            let mut times = [vec![], vec![], vec![]];
            let start = Instant::now();
            while start.elapsed() < Duration::from_millis(2500) || times[0].len() < 3 {
                times[2].push(peak(threads));
                // several short calls in a row, as in a training loop
                for _ in 0..if times[0].last().is_some_and(|&ms| ms < 2.0) { 20 } else { 1 } {
                    let now = Instant::now();
                    work.forward(&mut data, threads);
                    times[0].push(now.elapsed().as_secs_f64() * 1e3);
                    let now = Instant::now();
                    work.backward(&mut data, threads);
                    times[1].push(now.elapsed().as_secs_f64() * 1e3);
                }
            }
            let [forward, backward, rates] = times.map(median);
            let share = |ms: f64, flops: f64| 100.0 * flops / (ms * 1e-3) / rates.0;
            println!(
                "{:>9} n{n} m{m} B{batch} T{steps} {threads} thread(s): forward {:.2} ({:.2}) {:.0} %, backward {:.2} ({:.2}) {:.0} %; peak {:.0}; goal {:?}",
                work.name,
                forward.0,
                forward.1,
                share(forward.0, flops),
                backward.0,
                backward.1,
                share(backward.0, 2.0 * flops),
                rates.0,
                work.goal,
            );
        }
    }
}
