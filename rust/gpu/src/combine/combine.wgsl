// out = alpha a + beta b, or alpha a.

#import "numbers"
#import "elements"

struct Sizes {
    count: u32,
    both: u32,   // 1: with b
    alpha_real: f32,
    alpha_imag: f32,
    beta_real: f32,
    beta_imag: f32,
}

var<immediate> sizes: Sizes;

@group(0) @binding(0) var<storage, read> a: array<T>;           // (count)
@group(0) @binding(1) var<storage, read> b: array<T>;           // (count)
@group(0) @binding(2) var<storage, read_write> out: array<T>;   // (count)

fn element(at: u32) {
    var sum = mul(from_parts(vec2<f32>(sizes.alpha_real, sizes.alpha_imag)), a[at]);
    if sizes.both == 1u {
        sum = mul_add(from_parts(vec2<f32>(sizes.beta_real, sizes.beta_imag)), b[at], sum);
    }
    out[at] = sum;
}
