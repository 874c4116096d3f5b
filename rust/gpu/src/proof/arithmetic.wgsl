// The worst that WGSL permits of what arithmetic.wgsl computes: results off by as much, up or down by a coin of their bits, denormals zero, and
// zero where a divisor is beyond the range of division.

// Heads or tails
fn coin(x: f32, y: f32) -> bool {
    let mixed = (bitcast<u32>(x) ^ (bitcast<u32>(y) * 0x85ebca6bu)) * 0x9e3779b1u;
    return ((mixed >> 16u) & 1u) == 1u;
}

fn flushed(x: f32) -> f32 {
    let bits = bitcast<u32>(x);
    return bitcast<f32>(select(bits, bits & 0x80000000u, (bits & 0x7f800000u) == 0u));
}

// x and so many units in the last place
fn off(x: f32, units: u32, up: bool) -> f32 {
    let bits = bitcast<u32>(flushed(x));
    let size = bits & 0x7fffffffu;
    if size == 0u || size >= 0x7f7fffffu - units {
        return x;
    }
    return flushed(bitcast<f32>(select(bits - min(units, size), bits + units, up)));
}

fn quotient(x: f32, y: f32) -> f32 {
    let found = flushed(x) / flushed(y);
    if abs(y) > 8.507059e37 {
        return found * 0.0;
    }
    return off(found, 2u, coin(x, y));
}

fn root(x: f32) -> f32 {
    return off(sqrt(flushed(x)), 4u, coin(x, x));
}

fn exponential(x: f32) -> f32 {
    return off(exp(flushed(x)), u32(min(2.5 + 2.0 * abs(x), 1000.0)), coin(x, x));
}

// x y + z, rounded once or twice
fn fused_or_not(x: f32, y: f32, z: f32) -> f32 {
    let product = x * y;
    return select(fma(x, y, z), product + z, coin(x, y));
}

