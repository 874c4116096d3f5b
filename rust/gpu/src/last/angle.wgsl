// (cos x, sin x) of float32, both to two units in the last place for every finite x: those of WGSL are
// accurate to 2^-11 only.
//
// x / (2 pi) modulo 1 is computed in integers (Payne and Hanek): the 24 bits of x times the bits of 1 / (2 pi) that its exponent
// selects. Nothing is rounded, and there is nothing that a compiler may reassociate. The remainder is at most
// pi/4, where polynomials with decreasing terms suffice.

// bits of 1 / (2 pi) after the point, and a word before it
const INVERSE = array<u32, 8>(
    0x00000000u, 0x28be60dbu, 0x9391054au, 0x7f09d5f4u, 0x7d4d3770u, 0x36d8a566u, 0x4f10e410u, 0x7f9458eau,
);
// 2 pi / 8 in units of 2^-32
const TURN: u32 = 0xc90fdaa2u;
// bits of the largest float32 below pi/4
const NEAR: u32 = 0x3f490fdau;

// x y: the high word, the low one
fn wide(x: u32, y: u32) -> vec2<u32> {
    let a = x >> 16u;
    let b = x & 0xffffu;
    let c = y >> 16u;
    let d = y & 0xffffu;
    let middle = a * d + ((b * d) >> 16u);
    let other = b * c + (middle & 0xffffu);
    return vec2<u32>(a * c + (middle >> 16u) + (other >> 16u), x * y);
}

// The high word of both, shifted to the left
fn shifted(high: u32, low: u32, by: u32) -> u32 {
    if by == 0u {
        return high;
    }
    return (high << by) | (low >> (32u - by));
}

// x / (2 pi) modulo 1 in units of 2^-64, from the bits of x >= 1/2
fn turns(x: u32) -> vec2<u32> {
    let f = (x << 8u) | 0x80000000u;   // x = f 2^(e - 32)
    let e = (x >> 23u) - 126u;
    var words = INVERSE;
    let i = e / 32u;
    let by = e % 32u;
    let high = shifted(words[i], words[i + 1u], by);
    let middle = wide(f, shifted(words[i + 1u], words[i + 2u], by));
    let low = wide(f, shifted(words[i + 2u], words[i + 3u], by)).x;
    let sum = middle.y + low;
    return vec2<u32>(f * high + middle.x + select(0u, 1u, sum < low), sum);
}

// (cos r, sin r) for 0 <= r <= pi/4
fn near_zero(r: f32) -> vec2<f32> {
    let z = r * r;
    let s = fma(fma(-1.9515295891e-4, z, 8.3321608736e-3), z, -1.6666654611e-1);
    let c = fma(fma(2.443315711809948e-5, z, -1.388731625493765e-3), z, 4.166664568298827e-2);
    return vec2<f32>(fma(fma(c, z, -0.5), z, 1.0), fma(s * z, r, r));
}

// (cos x, sin x); x itself, twice, where it is not finite
fn direction(x: f32) -> vec2<f32> {
    let bits = bitcast<u32>(x) & 0x7fffffffu;
    if bits >= 0x7f800000u {
        return vec2<f32>(x);
    }
    let sign = select(1.0, -1.0, bitcast<u32>(x) >> 31u == 1u);
    if bits <= NEAR {
        let e = near_zero(bitcast<f32>(bits));
        return vec2<f32>(e.x, sign * e.y);
    }
    let t = turns(bits);
    // x = quarter pi/2 + r, |r| <= pi/4
    let quarter = (t.x + 0x20000000u) >> 30u;
    var high = t.x - (quarter << 30u);
    var low = t.y;
    let negative = high >> 31u == 1u;
    if negative {
        high = ~high + select(0u, 1u, low == 0u);
        low = ~low + 1u;
    }
    let empty = high == 0u;
    let top = select(high, low, empty);
    let zeros = countLeadingZeros(top);
    let f = wide(shifted(top, select(low, 0u, empty), zeros), TURN).x;
    let exponent = 127u - 29u - zeros - select(0u, 32u, empty);
    let e = near_zero(f32(f) * bitcast<f32>(exponent << 23u));
    let turned = vec2<f32>(e.x, select(e.y, -e.y, negative));
    var out = turned;
    if quarter == 1u {
        out = vec2<f32>(-turned.y, turned.x);
    } else if quarter == 2u {
        out = -turned;
    } else if quarter == 3u {
        out = vec2<f32>(turned.y, -turned.x);
    }
    return vec2<f32>(out.x, sign * out.y);
}
