//! Products of reflections, float32: values are checked first, then forward and gradient are timed against the flops and
//! the multiply-add peak of one thread, measured alongside. `cargo bench --bench householder [filter] [threads]`.

use isometry_core::argument::Bar;
use isometry_core::internal::kernels::{Operand, Product};
use isometry_core::internal::parallel::{self, Shared};
use isometry_core::internal::scratch::Scratch;
use isometry_core::operators::{Last, householder::Householder};
use isometry_core::scalar::{Scalar, c32};
use isometry_core::{Budget, Cpu, Side};
use std::hint::black_box;
use std::time::Instant;

/// Deterministic numbers in (-1, 1).
fn numbers(n: usize, seed: u64) -> Vec<f32> {
    let mut s = seed.wrapping_mul(0x9e3779b97f4a7c15) | 1;
    let mut next = || {
        s ^= s << 13;
        s ^= s >> 7;
        s ^= s << 17;
        (s >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    (0..n).map(|_| next()).collect()
}

/// Seconds: processor time of this thread for one thread (excluding other processes), wall-clock time otherwise.
fn seconds(threads: usize, start: Instant) -> f64 {
    if threads > 1 {
        return start.elapsed().as_secs_f64();
    }
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is writable.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut now) };
    now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9
}

/// Shortest and median time of one call in microseconds, over about `budget` seconds.
fn time(budget: f64, threads: usize, mut f: impl FnMut()) -> (f64, f64) {
    f();
    let epoch = Instant::now();
    let start = seconds(threads, epoch);
    f();
    let once = (seconds(threads, epoch) - start).max(1e-9);
    let inner = (100e-6 / once).ceil() as usize;
    let mut all = vec![];
    let begin = Instant::now();
    while begin.elapsed().as_secs_f64() < budget || all.len() < 5 {
        let start = seconds(threads, epoch);
        for _ in 0..inner {
            f();
        }
        all.push((seconds(threads, epoch) - start) / inner as f64 * 1e6);
    }
    all.sort_by(f64::total_cmp);
    (all[0], all[all.len() / 2])
}

fn report(name: &str, flops: f64, threads: usize, budget: f64, f: impl FnMut()) {
    let (best, median) = time(budget, threads, f);
    println!("{name:44} {best:10.2} us (median {median:10.2})  {:6.1} GF/s", flops / best * 1e-3);
}

fn product<T: Scalar>(m: usize, n: usize, k: usize, transposed: (bool, bool), threads: usize, budget: f64) {
    let parts = T::PARTS * size_of::<T::Real>() / 4;
    let (a, b, mut c) = (numbers(m * k * parts, 1), numbers(k * n * parts, 2), vec![0f32; m * n * parts]);
    // two arbitrary f32 read as one f64 give numbers of any magnitude, at the same cost
    let (a, b) = (Shared(a.as_ptr().cast_mut().cast::<T>()), Shared(b.as_ptr().cast_mut().cast::<T>()));
    let c = Shared(c.as_mut_ptr().cast::<T>());
    let room = Scratch::new(|arena| arena.regions(threads, &[Product::<T>::scratch(m, k)])).unwrap();
    let name = format!(
        "product {} {m}x{n}x{k} {}{} {threads} threads",
        std::any::type_name::<T>().rsplit("::").next().unwrap_or(""),
        if transposed.0 { "T" } else { "N" },
        if transposed.1 { "T" } else { "N" }
    );
    report(&name, 2.0 * (m * n * k * T::PARTS * T::PARTS) as f64, threads, budget, || {
        parallel::run(threads, &|member| {
            let a = if transposed.0 { Operand::new(a.at(0), m).t() } else { Operand::new(a.at(0), k) };
            let b = if transposed.1 { Operand::new(b.at(0), k).t() } else { Operand::new(b.at(0), n) };
            // SAFETY: the arrays and the scratch have the sizes of the product.
            unsafe { Product::new((m, n, k), a, b, c.at(0), n).run(member, room.of(member.id).ptr()) };
        });
    });
}

/// Largest distance of a (k x n) from b.
fn far(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).fold(0f32, |worst, (a, b)| worst.max((a - b).abs()))
}

fn matrix(n: usize, m: usize, threads: usize, budget: f64) {
    let (vectors, ct) = (numbers(n * m, 3), numbers(n * n, 4));
    let op = Householder::new(&vectors, Last::None, 1, n, m).unwrap();
    let call = Budget::of(threads);
    let (mut w, mut bar) = (vec![0f32; n * n], vec![0f32; n * m]);
    op.matrix(&mut w, None, &call).unwrap();
    // one column of W by reflections in double precision
    let mut y = vec![0f64; n];
    y[n / 2] = 1.0;
    for j in (0..m).rev() {
        let (mut dot, mut norm) = (0.0, 0.0);
        for i in 0..n {
            let u = f64::from(vectors[i * m + j]);
            dot += u * y[i];
            norm += u * u;
        }
        for i in 0..n {
            y[i] -= 2.0 * dot / norm * f64::from(vectors[i * m + j]);
        }
    }
    let column: Vec<f32> = (0..n).map(|i| w[i * n + n / 2]).collect();
    let exact: Vec<f32> = y.iter().map(|y| *y as f32).collect();
    assert!(far(&column, &exact) < 1e-4, "matrix {n}/{m}: {}", far(&column, &exact));
    let (nf, mf) = (n as f64, m as f64);
    let forward = 2.0 * nf * mf * mf + mf * mf * mf / 3.0 + 2.0 * nf * nf * mf;
    let backward = 2.0 * nf * mf * mf + mf * mf * mf / 3.0 + 4.0 * nf * nf * mf + 4.0 * nf * mf * mf;
    report(&format!("matrix {n}/{m} {threads} threads"), forward, threads, budget, || {
        op.matrix(black_box(&mut w), None, &call).unwrap();
    });
    let mut keep = vec![0f32; m * (m + n)];
    op.matrix(&mut w, Some(&mut keep), &call).unwrap();
    let less = backward - 2.0 * nf * mf * mf - mf * mf * mf / 3.0;
    report(&format!("matrix vjp kept {n}/{m} {threads} threads"), less, threads, budget, || {
        let bars = &mut [Bar::Own(black_box(&mut bar))];
        op.matrix_vjp(Some(&keep), &ct, bars, &call).unwrap();
    });
    report(&format!("matrix vjp {n}/{m} {threads} threads"), backward, threads, budget, || {
        let bars = &mut [Bar::Own(black_box(&mut bar))];
        op.matrix_vjp(None, &ct, bars, &call).unwrap();
    });
}

fn apply(n: usize, m: usize, rows: usize, threads: usize, budget: f64) {
    let (vectors, x, ct) = (numbers(n * m, 3), numbers(rows * n, 4), numbers(rows * n, 5));
    let op = Householder::new(&vectors, Last::None, 1, n, m).unwrap();
    let call = Budget::of(threads);
    let (mut out, mut bar, mut x_bar) = (vec![0f32; rows * n], vec![0f32; n * m], vec![0f32; rows * n]);
    op.apply(&x, rows, Side::Forward, &mut out, None, &call).unwrap();
    let mut back = vec![0f32; rows * n];
    op.apply(&out, rows, Side::Adjoint, &mut back, None, &call).unwrap();
    assert!(far(&back, &x) < 1e-3, "apply {n}/{m}: W^H W x is off by {}", far(&back, &x));
    let (nf, mf, k) = (n as f64, m as f64, rows as f64);
    let forward = nf * mf * mf + mf * mf * mf / 3.0 + 4.0 * nf * mf * k + mf * mf * k;
    let backward = 10.0 * nf * mf * k + 3.0 * mf * mf * k + 3.0 * nf * mf * mf + mf * mf * mf / 3.0;
    report(&format!("apply {n}/{m} B{rows} {threads} threads"), forward, threads, budget, || {
        op.apply(&x, rows, Side::Forward, black_box(&mut out), None, &call).unwrap();
    });
    report(&format!("apply vjp {n}/{m} B{rows} {threads} threads"), backward, threads, budget, || {
        let bars = &mut [Bar::Own(black_box(&mut bar))];
        op.apply_vjp(None, &x, &ct, rows, Side::Forward, bars, Some(&mut x_bar), &call).unwrap();
    });
}

fn main() {
    let given: Vec<String> = std::env::args().skip(1).filter(|x| !x.starts_with("--")).collect();
    let filter = given.first().map_or("", String::as_str);
    let threads: Vec<usize> = match given.get(1).and_then(|x| x.parse().ok()) {
        Some(threads) => vec![threads],
        None => vec![1, 2],
    };
    let budget = 0.3;
    for &threads in &threads {
        if "product".contains(filter) {
            for n in [64, 128, 190, 256, 512, 1024] {
                for transposed in [(false, false), (true, false), (false, true)] {
                    product::<f32>(n, n, n, transposed, threads, budget);
                    product::<c32>(n, n, n, transposed, threads, budget);
                }
            }
            for (m, n, k) in [(50, 16, 128), (50, 128, 16), (128, 16, 128), (16, 16, 128), (6, 32, 64)] {
                product::<f32>(m, n, k, (false, false), threads, budget);
                product::<f32>(m, n, k, (true, false), threads, budget);
                product::<f32>(m, n, k, (false, true), threads, budget);
            }
        }
        if "matrix".contains(filter) {
            for (n, m) in [(128, 16), (256, 32), (512, 512), (1024, 1024)] {
                matrix(n, m, threads, budget);
            }
        }
        if "apply".contains(filter) {
            for (n, m, rows) in [
                (8, 2, 1),
                (128, 16, 50),
                (256, 32, 1),
                (512, 128, 64),
                (1024, 256, 256),
                (256, 256, 1),
                (128, 16, 2),
                (128, 16, 4),
                (128, 16, 5),
                (128, 16, 8),
                (256, 256, 4),
                (256, 256, 5),
                (256, 256, 8),
                (256, 256, 50),
                (64, 64, 4),
                (64, 64, 5),
                (64, 64, 8),
                (1024, 1024, 4),
                (1024, 1024, 5),
                (1024, 1024, 50),
                (256, 256, 9),
                (512, 512, 100),
                (512, 512, 16),
            ] {
                apply(n, m, rows, threads, budget);
            }
        }
    }
}
