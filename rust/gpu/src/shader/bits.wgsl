// float32 by their bits: a compiler may assume that comparisons, max and min see no NaN.

fn is_nan(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}

// y; x where that is NaN
fn keep(x: f32, y: f32) -> f32 {
    return bitcast<f32>(select(bitcast<u32>(y), bitcast<u32>(x), is_nan(x)));
}

// 2^-e for x = f 2^e, 1 <= f < 2, with e from -126 to 126: exact, which exp2 need not be
fn power(x: f32) -> f32 {
    let e = (bitcast<u32>(x) >> 23u) & 255u;
    return bitcast<f32>(min(254u - min(e, 253u), 253u) << 23u);
}

