// The gradients of keys and queries through the products of wide.wgsl, from those of A and P, X; and what their decays give: to the gates up to
// token i what they take from those up to token j. A thread for each column of K of a task.

#import "elements"
#import "delta"

@group(0) @binding(1) var<storage, read> decays: array<f32>;           // (3, task, tokens, K)
@group(0) @binding(2) var<storage, read> kq: array<f32>;               // (task, rows and queries, K)
@group(0) @binding(3) var<storage, read> x: array<f32>;                // (task, rows, rows and queries)
@group(0) @binding(4) var<storage, read_write> inside: array<f32>;     // (task, rows and queries, K)
@group(0) @binding(5) var<storage, read_write> crossing: array<f32>;   // (task, tokens, K)

fn element(at: u32) {
    let rows = rows_of_chunk();
    let all = all_of_chunk();
    let key = sizes.key;
    let task = at / key;
    let d = at % key;
    let first = task * all * key + d;
    let gates = task * sizes.tokens * key + d;
    for (var i = 0u; i < all; i++) {
        inside[first + i * key] = 0.0;
    }
    for (var t = 0u; t < sizes.tokens; t++) {
        crossing[gates + t * key] = 0.0;
    }
    for (var j = 0u; j < rows; j++) {
        let own = kq[first + j * key];
        var decay = 1.0;
        var sum = 0.0;
        var taken = 0.0;
        for (var i = j; i < rows; i++) {
            let t = i / sizes.m;
            if i > j && i % sizes.m == 0u {
                decay *= decays[place_of_decay(OWN, task, t, d)];
            }
            var given = 0.0;
            if i > j {
                let weight = x[(task * rows + j) * all + i] * decay;
                let other = weight * kq[first + i * key];
                inside[first + i * key] += weight * own;
                sum += other;
                given = other * own;
            }
            if (i + 1u) % sizes.m == 0u {
                let weight = x[(task * rows + j) * all + rows + t] * decay;
                let other = weight * kq[first + (rows + t) * key];
                inside[first + (rows + t) * key] += weight * own;
                sum += other;
                given += other * own;
            }
            if t > j / sizes.m {
                crossing[gates + t * key] += given;
                taken += given;
            }
        }
        inside[first + j * key] += sum;
        crossing[gates + j / sizes.m * key] -= taken;
    }
}
