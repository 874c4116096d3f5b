// Real numbers.

alias T = f32;

// float32 of a number
const PARTS: u32 = 1;

const ZERO: T = 0.0;
const ONE: T = 1.0;

// y; x where that is NaN
fn keep_parts(x: T, y: T) -> T {
    return keep(x, y);
}

fn conj_if(x: T, yes: bool) -> T {
    return x;
}

// x y + z
fn mul_add(x: T, y: T, z: T) -> T {
    return fma(x, y, z);
}

fn mul(x: T, y: T) -> T {
    return x * y;
}

fn conj(x: T) -> T {
    return x;
}

fn real(x: T) -> f32 {
    return x;
}

fn number(x: f32) -> T {
    return x;
}

// |x|^2
fn square(x: T) -> f32 {
    return x * x;
}

// 1 / x
fn inverse(x: T) -> T {
    return quotient(1.0, x);
}

// x / y of the parts
fn divide_parts(x: T, y: T) -> T {
    return quotient(x, y);
}

fn exp_parts(x: T) -> T {
    return exponential(x);
}

fn imag(x: T) -> f32 {
    return 0.0;
}

// x.x + i x.y
fn from_parts(x: vec2<f32>) -> T {
    return x.x;
}

// i x
fn imaginary(x: f32) -> T {
    return 0.0;
}
