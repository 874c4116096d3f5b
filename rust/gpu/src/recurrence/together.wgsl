// Many steps of a recurrence (see steps.wgsl) in one dispatch: a workgroup has the states of LANES x EACH sequences in its memory
// and reads M once for each step. A thread computes a pair of features of EACH sequences.

#import "numbers"
#import "activation"
#import "biases"
#import "steps"

override PAIRS: u32 = 16;   // at least those of a row
override EACH: u32 = 1;
override LANES: u32 = 256u / PAIRS;
override WIDTH: u32 = 2u * PAIRS;
const MOST: u32 = 4;        // of EACH

var<workgroup> state: array<T, WIDTH * LANES * EACH>;

@compute @workgroup_size(PAIRS, LANES)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
) {
    let n = sizes.n;
    let pair = local.x;
    let place = places(pair, n, sizes.phi);
    let there = pair < pairs(n);
    let two = place.y < n;
    let slot = local.y * EACH;
    let top = (group.y * groups.x + group.x) * LANES * EACH + slot;
    for (var r = 0u; r < EACH; r++) {
        if there && top + r < sizes.batch {
            let k = select(sizes.first, sizes.first + sizes.count - 1u, BACK == 1u);
            state[(slot + r) * WIDTH + place.x] = before(top + r, k, place.x);
            if two {
                state[(slot + r) * WIDTH + place.y] = before(top + r, k, place.y);
            }
        }
    }
    workgroupBarrier();
    for (var i = 0u; i < sizes.count; i++) {
        let k = sizes.first + select(i, sizes.count - 1u - i, BACK == 1u);
        var sum: array<Pair, MOST>;
        for (var r = 0u; r < EACH; r++) {
            sum[r] = Pair(ZERO, ZERO);
        }
        if there {
            let second = min(place.y, n - 1u);
            for (var j = 0u; j < n; j++) {
                let a = entry(j, place.x);
                let b = entry(j, second);
                for (var r = 0u; r < EACH; r++) {
                    let s = state[(slot + r) * WIDTH + j];
                    sum[r].a = mul_add(s, a, sum[r].a);
                    sum[r].b = mul_add(s, b, sum[r].b);
                }
            }
        }
        workgroupBarrier();
        for (var r = 0u; r < EACH; r++) {
            if there && top + r < sizes.batch {
                let s = finish(pair, top + r, k, sum[r]);
                state[(slot + r) * WIDTH + place.x] = s.a;
                if two {
                    state[(slot + r) * WIDTH + place.y] = s.b;
                }
            }
        }
        workgroupBarrier();
    }
}
