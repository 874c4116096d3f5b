// One step of a recurrence (see steps.wgsl): a workgroup of SIDE x SIDE threads computes a tile of the new states, ROWS sequences
// and PAIRS pairs of features per thread, from tiles of depth SIDE in workgroup memory.

#import "numbers"
#import "activation"
#import "biases"
#import "steps"

override ROWS: u32 = 1;
override PAIRS: u32 = 1;
const SIDE: u32 = 16;
const MOST_ROWS: u32 = 4;    // registers are of fixed number
const MOST_PAIRS: u32 = 2;
override HEIGHT: u32 = SIDE * ROWS;
override WIDTH: u32 = 2u * SIDE * PAIRS;

var<workgroup> left: array<T, HEIGHT * SIDE>;   // states, row by row
var<workgroup> right: array<T, SIDE * WIDTH>;   // M, the columns of a pair beside each other

@compute @workgroup_size(SIDE, SIDE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>) {
    let n = sizes.n;
    let k = sizes.first;
    let top = group.y * HEIGHT;
    let first = group.x * SIDE * PAIRS;
    let id = local.y * SIDE + local.x;
    var sum: array<array<Pair, MOST_PAIRS>, MOST_ROWS>;
    for (var p = 0u; p < ROWS; p++) {
        for (var q = 0u; q < PAIRS; q++) {
            sum[p][q] = Pair(ZERO, ZERO);
        }
    }
    for (var depth = 0u; depth < n; depth += SIDE) {
        for (var r = 0u; r < ROWS; r++) {
            let at = id + r * SIDE * SIDE;
            let b = top + at / SIDE;
            let j = depth + at % SIDE;
            var s = ZERO;
            if b < sizes.batch && j < n {
                s = before(b, k, j);
            }
            left[at] = s;
        }
        for (var r = 0u; r < 2u * PAIRS; r++) {
            let at = id + r * SIDE * SIDE;
            let i = depth + at / WIDTH;
            let column = at % WIDTH;
            let place = places(first + column / 2u, n, sizes.phi);
            let j = select(place.x, place.y, column % 2u == 1u);
            var s = ZERO;
            if i < n && j < n {
                s = entry(i, j);
            }
            right[at] = s;
        }
        workgroupBarrier();
        for (var j = 0u; j < SIDE; j++) {
            for (var p = 0u; p < ROWS; p++) {
                let s = left[(local.y + p * SIDE) * SIDE + j];
                for (var q = 0u; q < PAIRS; q++) {
                    let at = j * WIDTH + 2u * (local.x + q * SIDE);
                    sum[p][q].a = mul_add(s, right[at], sum[p][q].a);
                    sum[p][q].b = mul_add(s, right[at + 1u], sum[p][q].b);
                }
            }
        }
        workgroupBarrier();
    }
    for (var p = 0u; p < ROWS; p++) {
        for (var q = 0u; q < PAIRS; q++) {
            let b = top + local.y + p * SIDE;
            let pair = first + local.x + q * SIDE;
            if b < sizes.batch && pair < pairs(n) {
                finish(pair, b, k, sum[p][q]);
            }
        }
    }
}
