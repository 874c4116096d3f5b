// Complex numbers: (real part, imaginary part).

alias T = vec2<f32>;

// float32 of a number
const PARTS: u32 = 2;

const ZERO: T = vec2<f32>(0.0, 0.0);
const ONE: T = vec2<f32>(1.0, 0.0);

// y; x in the parts where that is NaN
fn keep_parts(x: T, y: T) -> T {
    return vec2<f32>(keep(x.x, y.x), keep(x.y, y.y));
}

fn conj_if(x: T, yes: bool) -> T {
    return vec2<f32>(x.x, select(x.y, -x.y, yes));
}

// x y + z
fn mul_add(x: T, y: T, z: T) -> T {
    return vec2<f32>(fma(x.x, y.x, fma(-x.y, y.y, z.x)), fma(x.x, y.y, fma(x.y, y.x, z.y)));
}

fn mul(x: T, y: T) -> T {
    return vec2<f32>(x.x * y.x - x.y * y.y, x.x * y.y + x.y * y.x);
}

fn conj(x: T) -> T {
    return vec2<f32>(x.x, -x.y);
}

fn real(x: T) -> f32 {
    return x.x;
}

fn number(x: f32) -> T {
    return vec2<f32>(x, 0.0);
}

// |x|^2
fn square(x: T) -> f32 {
    return dot(x, x);
}

// 1 / x
fn inverse(x: T) -> T {
    let by = dot(x, x);
    return vec2<f32>(quotient(x.x, by), quotient(-x.y, by));
}

// x / y of the parts
fn divide_parts(x: T, y: T) -> T {
    return vec2<f32>(quotient(x.x, y.x), quotient(x.y, y.y));
}

fn exp_parts(x: T) -> T {
    return vec2<f32>(exponential(x.x), exponential(x.y));
}

fn imag(x: T) -> f32 {
    return x.y;
}

// x.x + i x.y
fn from_parts(x: vec2<f32>) -> T {
    return x;
}

// i x
fn imaginary(x: f32) -> T {
    return vec2<f32>(0.0, x);
}
