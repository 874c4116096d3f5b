//! Measured and carved sizes agree, and writes past a region are detected.

use super::region::LINE;
use super::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

struct Places {
    head: Region<f32>,
    own: Regions<u32>,
    frames: Frames,
    tail: Region<f64>,
}

fn inner(arena: &mut Arena) -> [Region<f64>; 3] {
    let first = arena.take(&[3]);
    let either = [5, 9].map(|len| arena.reusing(|arena| arena.take(&[len])));
    [first, either[0], either[1]]
}

fn carve(arena: &mut Arena) -> Places {
    Places {
        head: arena.take(&[7, 3]),
        own: arena.regions(3, &[17]),
        frames: arena.frames(2, inner),
        tail: arena.take(&[0]),
    }
}

/// (start, end) in bytes.
fn span<T>(region: Region<T>) -> (usize, usize) {
    let start = region.ptr().addr();
    (start, start + region.len() * size_of::<T>())
}

#[test]
fn regions_start_at_lines_and_do_not_meet() {
    let scratch = Scratch::new(carve).unwrap();
    let mut spans = vec![span(scratch.head)];
    spans.extend((0..3).map(|id| span(scratch.own.of(id))));
    for id in 0..2 {
        let [first, a, b] = inner(&mut scratch.frames.of(id).arena());
        assert_eq!(a.ptr(), b.ptr());
        spans.extend([span(first), span(b)]);
    }
    for pair in spans.windows(2) {
        assert!(pair[0].1 + LINE <= pair[1].0, "{spans:?}");
    }
    assert!(spans.iter().all(|span| span.0.is_multiple_of(LINE)));
    assert!(scratch.tail.is_empty() && scratch.tail.or_null().is_null());
    for id in [3, usize::MAX] {
        assert!(catch_unwind(AssertUnwindSafe(|| scratch.own.of(id))).is_err());
        assert!(catch_unwind(AssertUnwindSafe(|| scratch.frames.of(id))).is_err());
    }
    assert!(catch_unwind(AssertUnwindSafe(|| scratch.head.at(22))).is_err());
}

#[test]
fn fresh_memory_is_nan() {
    let scratch = Scratch::new(carve).unwrap();
    // SAFETY: guarded memory is written when it is allocated.
    assert!((0..21).all(|i| unsafe { *scratch.head.at(i) }.is_nan()));
}

#[test]
fn what_is_written_behind_a_region_is_seen() {
    for member in [false, true] {
        let scratch = Scratch::new(carve).unwrap();
        let end = if member { scratch.own.of(1).at(17) } else { scratch.head.at(21).cast() };
        // SAFETY: the guard line lies within the memory, which is not otherwise in use.
        unsafe { end.write(0) };
        assert!(catch_unwind(AssertUnwindSafe(|| drop(scratch))).is_err());
    }
    let scratch = Scratch::new(|arena: &mut Arena| arena.frame(inner)).unwrap();
    let [_, short, long] = {
        let mut arena = scratch.arena();
        let first: Region<f64> = arena.take(&[3]);
        [first, arena.reusing(|arena| arena.take(&[5])), first]
    };
    assert_eq!(long.len(), 3);
    // SAFETY: as above.
    unsafe { short.at(5).write(0.0) };
    assert!(catch_unwind(AssertUnwindSafe(|| inner(&mut scratch.arena()))).is_err());
    assert!(catch_unwind(AssertUnwindSafe(|| drop(scratch))).is_err());
}

#[test]
fn a_frame_is_not_cut_beyond_its_end() {
    let scratch = Scratch::new(|arena: &mut Arena| arena.frame(inner)).unwrap();
    let more = |arena: &mut Arena| (inner(arena), arena.take::<f64>(&[2]), arena.take::<u8>(&[1000]));
    assert!(catch_unwind(AssertUnwindSafe(|| more(&mut scratch.arena()))).is_err());
}
