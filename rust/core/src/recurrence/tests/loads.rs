//! An operator on rows is prepared once by each thread.

use crate::argument::{Argument, Array, Bar};
use crate::budget::Budget;
use crate::cpu::Cpu;
use crate::operator::Operator;
use crate::operators::rotation::Rotation;
use crate::recurrence::{Run, Sequence, backward, forward};
use crate::rows::{MatrixBars, RowPass, Rows};
use crate::testing::fill;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// An operator that counts how often it is loaded.
struct Counted<'a>(Rotation<'a, f32>, AtomicUsize);

impl Operator<f32> for Counted<'_> {
    fn sizes(&self) -> [usize; 3] {
        self.0.sizes()
    }
    fn arguments(&self) -> &'static [Argument] {
        self.0.arguments()
    }
    fn argument(&self, i: usize) -> Array<'_, f32> {
        self.0.argument(i)
    }
}

impl Cpu<f32> for Counted<'_> {
    fn rows(&self) -> Option<&dyn Rows<f32>> {
        Some(self)
    }
}

// SAFETY: every answer is the rotation's.
unsafe impl Rows<f32> for Counted<'_> {
    fn work(&self) -> usize {
        self.0.work()
    }
    fn scratch(&self, rows: usize) -> usize {
        self.0.scratch(rows)
    }
    fn sums(&self) -> usize {
        self.0.sums()
    }
    unsafe fn load(&self, k: usize, scratch: *mut f32) {
        self.1.fetch_add(1, Relaxed);
        // SAFETY: the contract of the trait.
        unsafe { self.0.load(k, scratch) }
    }
    unsafe fn deal(&self, k: usize, sums: &mut [f32], bars: MatrixBars<'_, f32>, scratch: *mut f32) {
        // SAFETY: the contract of the trait.
        unsafe { self.0.deal(k, sums, bars, scratch) }
    }
    unsafe fn apply_rows(&self, pass: RowPass, x: *const f32, out: *mut f32, scratch: *mut f32) {
        // SAFETY: the contract of the trait.
        unsafe { self.0.apply_rows(pass, x, out, scratch) }
    }
    unsafe fn pull_rows(
        &self,
        pass: RowPass,
        rows: [*const f32; 2],
        sums: *mut f32,
        x_bar: Option<*mut f32>,
        scratch: *mut f32,
    ) {
        // SAFETY: the contract of the trait.
        unsafe { self.0.pull_rows(pass, rows, sums, x_bar, scratch) }
    }
}

#[test]
fn an_operator_on_rows_is_loaded_once_by_each_thread() {
    let (n, batch, steps) = (6, 7, 50);
    let (x, v) = (fill::<f32>(steps * batch, 1.0, 1), fill::<f32>(n, 1.0, 2));
    let (start, end) = (fill::<f32>(n, 1.0, 3), fill::<f32>(n, 1.0, 4));
    let counted = Counted(Rotation::new(&start, &end, 1, n).unwrap(), AtomicUsize::new(0));
    let run = Run::new([steps, batch, 1, n], &x);
    let sequence = Sequence { run, input_weight: &v, bias: None, on_input: false };
    let (mut states, mut bar) = (vec![0.0; steps * batch * n], vec![0.0; n]);
    let mut x_bar = vec![0.0; x.len()];
    for threads in [1, 3] {
        let budget = Budget::of(threads);
        forward(&counted, &sequence, &mut states, &budget).unwrap();
        assert!((1..=threads).contains(&counted.1.swap(0, Relaxed)), "{threads} threads");
        let (own, bars) = (&mut [Bar::Real(&mut bar)], &mut [Bar::Own(&mut x_bar)]);
        backward(&counted, own, &sequence, &states, &states, bars, &budget).unwrap();
        // once more for the gradients of the arguments from their sums
        assert!((2..=threads + 1).contains(&counted.1.swap(0, Relaxed)), "{threads} threads");
    }
}
