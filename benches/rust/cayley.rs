//! Times of the Cayley transform, forward and backward, after a check of the values: `cargo bench --bench cayley`.
//! Arguments: `c32`, `f64`, `c64` for another type than f32, `1` for one thread, `norm=30` for larger A, part of a row's
//! name to select it.

use isometry_core::argument::Bar;
use isometry_core::internal::kernels;
use isometry_core::operators::{Last, cayley::Cayley};
use isometry_core::scalar::{Real, Scalar, c32, c64};
use isometry_core::{Budget, Cpu};
use std::time::Instant;

fn numbers<T: Scalar>(n: usize, scale: f64) -> Vec<T> {
    let mut s = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = || {
        s ^= s << 13;
        s ^= s >> 7;
        s ^= s << 17;
        T::Real::of(((s >> 40) as f64 / (1u64 << 23) as f64 - 1.0) * scale)
    };
    (0..n).map(|_| T::new(next(), next())).collect()
}

/// Median and least milliseconds of a call, over about `seconds`.
fn time(seconds: f64, mut f: impl FnMut()) -> (f64, f64) {
    let mut times = vec![];
    let start = Instant::now();
    while start.elapsed().as_secs_f64() < seconds || times.len() < 7 {
        let begin = Instant::now();
        f();
        times.push(begin.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    (times[times.len() / 2], times[0])
}

/// max |(I + A) W - (I - A)| of one matrix in double precision.
fn residual<T: Scalar>(upper: &[T], w: &[T], n: usize) -> f64 {
    let mut a = vec![T::Wide::default(); n * n];
    let mut e = 0;
    for i in 0..n {
        for j in i + 1..n {
            a[i * n + j] = upper[e].widen();
            a[j * n + i] = -upper[e].widen().conj();
            e += 1;
        }
    }
    let mut worst = 0.0f64;
    for i in 0..n {
        let mut row = vec![T::Wide::default(); n];
        for j in 0..n {
            row[j] = w[i * n + j].widen() + a[i * n + j];
        }
        row[i] -= T::Wide::real(1.0);
        for p in 0..n {
            for j in 0..n {
                row[j] += a[i * n + p] * w[p * n + j].widen();
            }
        }
        worst = row.iter().map(|x| x.modulus()).fold(worst, f64::max);
    }
    worst
}

fn row<T: Scalar>(batch: usize, n: usize, norm: f64, threads: usize) {
    let len = n * (n - 1) / 2;
    let upper: Vec<T> = numbers(batch * len, norm / (n as f64).sqrt());
    let ct: Vec<T> = numbers(batch * n * n, 1.0);
    let (mut w, mut grad) = (vec![T::default(); batch * n * n], vec![T::default(); batch * len]);
    let view = Cayley::new(&upper, None, Last::None, batch, n).unwrap();
    let budget = Budget::of(threads);
    view.matrix(&mut w, None, &budget).unwrap();
    for b in [0, batch / 2, batch - 1] {
        let r = residual(&upper[b * len..(b + 1) * len], &w[b * n * n..(b + 1) * n * n], n);
        let bound = 200.0 * norm * norm.max(1.0) * (n as f64).sqrt() * T::Real::EPS.f64();
        assert!(r < bound, "{batch} x {n}: residual {r:e}");
    }
    let (forward, least) = time(0.4, || view.matrix(&mut w, None, &budget).unwrap());
    let (backward, least_backward) = time(0.4, || {
        view.matrix_vjp(Some(&w), &ct, &mut [Bar::Own(&mut grad)], &budget).unwrap();
    });
    let flops = 2e-6 * (batch * n * n * n * T::PARTS * T::PARTS) as f64;
    println!(
        "{batch:5} x {n:4}, {threads} threads: forward {forward:.4} ({least:.4}) ms {:.0} GF/s, backward {backward:.4} ({least_backward:.4}) ms {:.0} GF/s",
        flops / least,
        2.0 * flops / least_backward
    );
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let has = |x: &str| args.iter().any(|a| a == x);
    let norm = args.iter().find_map(|a| a.strip_prefix("norm=")).map_or(0.5, |x| x.parse().unwrap());
    let threads = if has("1") { 1 } else { 2 };
    println!("{} {}", kernels::isa().name(), args.join(" "));
    for (batch, n) in
        [(1, 190), (1, 512), (1, 1024), (512, 8), (4096, 4), (8192, 16), (128, 32), (64, 64), (1, 8)]
    {
        let chosen: Vec<&String> = args.iter().filter(|a| a.contains('x')).collect();
        if !chosen.is_empty() && !chosen.iter().any(|a| **a == format!("{batch}x{n}")) {
            continue;
        }
        match () {
            () if has("c32") => row::<c32>(batch, n, norm, threads),
            () if has("f64") => row::<f64>(batch, n, norm, threads),
            () if has("c64") => row::<c64>(batch, n, norm, threads),
            () => row::<f32>(batch, n, norm, threads),
        }
    }
}
