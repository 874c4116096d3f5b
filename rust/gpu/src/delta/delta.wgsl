// The chunks of a part of a call. A task is a chunk of a value head; a chunk has so many tokens of m rows each, of which those past the end
// of its sequence are zeros. A token has one query, which follows its rows.

struct Sizes {
    count: u32,          // of elements, where a thread has one
    first: u32,          // the first chunk of the part
    tasks: u32,          // its chunks times value heads
    tokens: u32,         // of a chunk
    m: u32,
    heads: u32,
    value_heads: u32,
    key: u32,
    value: u32,
    width: u32,          // numbers of a gate: 0 (none), 1 or key
    choice: u32,         // each shader's own
    pitch: u32,          // rows of a task in an array that has others too
    start: u32,          // the first of them
    scale: f32,
}

var<immediate> sizes: Sizes;

@group(0) @binding(0) var<storage, read> chunks: array<vec2<u32>>;   // first token, counted through the batch, and number of tokens

fn rows_of_chunk() -> u32 {
    return sizes.tokens * sizes.m;
}

// Rows and queries.
fn all_of_chunk() -> u32 {
    return sizes.tokens * (sizes.m + 1u);
}

// Whether token t of a task is one of its sequence.
fn lives(task: u32, t: u32) -> bool {
    return t < chunks[sizes.first + task / sizes.value_heads].y;
}

// Row t of the task's head in an array (tokens, value heads).
fn of_head(task: u32, t: u32) -> u32 {
    return (chunks[sizes.first + task / sizes.value_heads].x + t) * sizes.value_heads + task % sizes.value_heads;
}

// Row i of the task's head in an array (rows, value heads).
fn row_of_head(task: u32, i: u32) -> u32 {
    return (chunks[sizes.first + task / sizes.value_heads].x * sizes.m + i) * sizes.value_heads + task % sizes.value_heads;
}

// What a token has in the array of decays, (task, tokens, width) of each: e^c before it, e^(c_C - c) after it, e^g of its own.
const BEFORE: u32 = 0;
const AFTER: u32 = 1;
const OWN: u32 = 2;

fn place_of_decay(which: u32, task: u32, t: u32, d: u32) -> u32 {
    return ((which * sizes.tasks + task) * sizes.tokens + t) * sizes.width + min(d, sizes.width - 1u);
}
