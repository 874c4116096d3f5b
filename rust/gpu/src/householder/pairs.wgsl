// The inverse of a triangle T = striu(S) + diag(S) / 2 from those of its diagonal blocks, for pairs of neighbouring blocks:
//
//   Y = T_12 X_2,  X_12 = -X_1 Y.
//
// A workgroup of SIDE x SIDE threads computes SIDE columns of a pair, HEIGHT rows at a time: both products of all rows, or one of
// them of HEIGHT rows. X_1 and X_2 are triangles, whose zeros are not multiplied.

#import "numbers"
#import "squares"

const SIDE: u32 = 16;
const EACH: u32 = 4;
const HEIGHT: u32 = SIDE * EACH;

struct Sizes {
    count: u32,    // workgroups
    m: u32,
    size: u32,     // rows of a block
    pairs: u32,    // of a matrix
    high: u32,     // workgroups along the rows of a pair: 1 where each takes them all
    first: u32,    // the products, 0 and 1
    last: u32,
}

var<immediate> sizes: Sizes;

@group(0) @binding(0) var<storage, read> gram: array<T>;            // S, (batch, m, m)
@group(0) @binding(1) var<storage, read_write> x: array<T>;         // (batch, m, m)
@group(0) @binding(2) var<storage, read_write> between: array<T>;   // Y, at the places of X_12

var<workgroup> left: array<T, HEIGHT * SIDE>;   // row by row
var<workgroup> right: array<T, SIDE * SIDE>;

fn work(number: u32, local: vec2<u32>) {
    let m = sizes.m;
    let size = sizes.size;
    let wide = size / SIDE;
    if number >= sizes.count {
        return;
    }
    let pair = number / (wide * sizes.high);
    let base = pair / sizes.pairs * m * m;
    let top = pair % sizes.pairs * 2u * size;
    let low = top + size;
    let start = low + number % wide * SIDE;
    if start >= m {
        return;
    }
    let own = number / wide % sizes.high;
    let begin = top + own * HEIGHT;
    let end = select(min(begin + HEIGHT, low), low, sizes.high == 1u);
    let id = local.y * SIDE + local.x;
    let column = start + local.x;
    for (var product = sizes.first; product <= sizes.last; product++) {
        let second = product == 1u;
        for (var row = begin; row < end; row += HEIGHT) {
            let opening = select(low, row, second);
            let closing = select(min(start + SIDE, m), low, second);
            var sum: array<T, EACH>;
            for (var r = 0u; r < EACH; r++) {
                sum[r] = ZERO;
            }
            for (var depth = opening; depth < closing; depth += SIDE) {
                for (var r = 0u; r < EACH; r++) {
                    let i = row + local.y + r * SIDE;
                    let k = depth + local.x;
                    var value = ZERO;
                    if i < low && k < closing {
                        let at = base + i * m + k;
                        if second {
                            value = x[at];
                        } else {
                            value = gram[at];
                        }
                    }
                    left[id + r * SIDE * SIDE] = value;
                }
                let k = depth + local.y;
                var value = ZERO;
                if k < closing && column < m {
                    let at = base + k * m + column;
                    if second {
                        value = between[at];
                    } else {
                        value = x[at];
                    }
                }
                right[id] = value;
                workgroupBarrier();
                for (var j = 0u; j < SIDE; j++) {
                    for (var r = 0u; r < EACH; r++) {
                        sum[r] = mul_add(left[(local.y + r * SIDE) * SIDE + j], right[j * SIDE + local.x], sum[r]);
                    }
                }
                workgroupBarrier();
            }
            for (var r = 0u; r < EACH; r++) {
                let i = row + local.y + r * SIDE;
                if i < low && column < m {
                    let at = base + i * m + column;
                    if second {
                        x[at] = -sum[r];
                    } else {
                        between[at] = sum[r];
                    }
                }
            }
        }
        // no barrier: of a tile that has both products, a thread reads the rows of Y that it has written, as both are local.y modulo SIDE
    }
}
